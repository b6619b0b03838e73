//! Asks people for what the arguments do not say.

use super::{Args, Plan, names, owned};
use crate::failure::Failure;
use std::io::{self, Write};

/// A plan from arguments and answers.
///
/// # Errors
///
/// The terminal is closed, or an argument cannot be used.
pub(super) fn plan(mut args: Args) -> Result<Plan, Failure> {
    if args.group.is_none() {
        let group = text("group", names::GROUP, names::check_group)?;
        args.group = Some(group);
    }
    if args.kind.is_none() {
        let kind = names::kind_of(&args.name);
        args.kind = Some(text("kind", &kind, names::check_kind)?);
    }
    if args.version.is_none() {
        let version = text("version", names::VERSION, names::check_version)?;
        args.version = Some(version);
    }
    if args.owns.is_empty() {
        let question = format!("kinds that it owns, of {}", owned::all());
        let check = |answer: &str| owned::find(&words(answer)).map(drop);
        args.owns = words(&text(&question, owned::DEFAULT, check)?);
    }
    if !args.status {
        args.status = is_wanted("a status with conditions", true)?;
    }
    if !args.finalizer {
        args.finalizer = is_wanted("a finalizer, to clean up outside of the cluster", false)?;
    }
    Plan::of(args).map_err(Failure::Usage)
}

fn words(answer: &str) -> Vec<String> {
    let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Asks until the answer can be used.
fn text(
    question: &str,
    default: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<String, Failure> {
    loop {
        let answer = answer(&format!("{question} [{default}]: "))?;
        let answer = if answer.is_empty() { default } else { &answer };
        match check(answer) {
            Ok(()) => return Ok(answer.to_owned()),
            Err(why) => println!("{why}"),
        }
    }
}

fn is_wanted(what: &str, default: bool) -> Result<bool, Failure> {
    let choices = if default { "Y/n" } else { "y/N" };
    loop {
        match answer(&format!("{what}? [{choices}]: "))?
            .to_ascii_lowercase()
            .as_str()
        {
            "" => return Ok(default),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => println!("y or n"),
        }
    }
}

fn answer(prompt: &str) -> Result<String, Failure> {
    let closed = |error: io::Error| Failure::Other(format!("cannot ask: {error}"));
    print!("{prompt}");
    io::stdout().flush().map_err(closed)?;
    let mut line = String::new();
    if io::stdin().read_line(&mut line).map_err(closed)? == 0 {
        return Err(Failure::Other(
            "nothing is made: the input has ended".to_owned(),
        ));
    }
    Ok(line.trim().to_owned())
}

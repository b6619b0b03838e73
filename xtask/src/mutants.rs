//! Whether the tests of the lease's state machine notice when one of its comparisons is turned.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::cargo::cargo;
use crate::tidy;

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print one JSON object, with `mutants`, `caught`, and the `survivors`
    #[arg(long)]
    json: bool,
}

/// The state machine.
const FILE: &str = "crates/core/src/lease/machine.rs";

/// What each comparison is turned into: the bound moves by one step, or the answer becomes the other one.
const TURNS: &[(&str, &[&str])] = &[
    (" < ", &[" <= ", " >= "]),
    (" <= ", &[" < ", " > "]),
    (" > ", &[" >= ", " <= "]),
    (" >= ", &[" > ", " < "]),
    (" == ", &[" != "]),
    (" != ", &[" == "]),
];

/// Those that change nothing that can be seen: a part of the line, what it becomes, and why.
const SAME: &[(&str, &str, &str)] = &[];

/// How long the tests may take. Some mutants never end.
const LIMIT: Duration = Duration::from_secs(180);

struct Mutant {
    /// Counted from 1.
    line: usize,
    before: String,
    after: String,
    source: String,
}

/// Turns each comparison in a copy of the repository, and runs the tests there.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = tidy::root();
    let copy = root.join("target/mutants/tree");
    if copy.exists() {
        fs::remove_dir_all(&copy).context("cannot remove the copy of the last time")?;
    }
    copy_tree(root, &copy)?;
    let source =
        fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    ensure!(passes(&copy)?, "the tests fail before anything is turned");
    let mutants = mutants(&source);
    let mut survivors = Vec::new();
    for mutant in &mutants {
        fs::write(copy.join(FILE), &mutant.source)?;
        let caught = !passes(&copy)?;
        let verdict = if caught { "caught" } else { "SURVIVES" };
        eprintln!(
            "{verdict}: line {}: {} -> {}",
            mutant.line, mutant.before, mutant.after
        );
        if !caught {
            survivors.push(mutant);
        }
    }
    if args.json {
        let lines = survivors
            .iter()
            .map(|mutant| format!("{FILE}:{}: {}", mutant.line, mutant.after));
        let report = json!({
            "mutants": mutants.len(),
            "caught": mutants.len() - survivors.len(),
            "survivors": lines.collect::<Vec<_>>(),
        });
        println!("{report}");
    } else {
        println!(
            "{} of {} mutants were caught",
            mutants.len() - survivors.len(),
            mutants.len()
        );
    }
    Ok(if survivors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// All that there are, but for those that are known to change nothing.
fn mutants(source: &str) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let mut offset = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let is_code = !line.trim_start().starts_with("//");
        for (from, turns) in TURNS.iter().filter(|_| is_code) {
            for (place, _) in line.match_indices(from) {
                for to in *turns {
                    let is_same = |(part, becomes, _): &&(&str, &str, &str)| {
                        line.contains(part) && becomes.trim() == to.trim()
                    };
                    if SAME.iter().any(|same| is_same(&same)) {
                        continue;
                    }
                    let mut after = line.to_owned();
                    after.replace_range(place..place + from.len(), to);
                    let mut turned = source.to_owned();
                    turned.replace_range(offset..offset + line.len(), &after);
                    mutants.push(Mutant {
                        line: number + 1,
                        before: line.trim().to_owned(),
                        after: after.trim().to_owned(),
                        source: turned,
                    });
                }
            }
        }
        offset += line.len();
    }
    mutants
}

/// Whether the tests of leases pass in this folder.
fn passes(folder: &Path) -> anyhow::Result<bool> {
    let mut command = cargo(&[
        "test",
        "--quiet",
        "--package=homeostat-core",
        "--lib",
        "lease::",
    ]);
    let target = tidy::root().join("target/mutants/target");
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // The tests are ended together with cargo.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().context("cannot start cargo")?;
    let mut output = child.stdout.take().context("it has no output")?;
    let (tell, told) = mpsc::channel();
    // It ends when cargo and the tests have ended.
    let reading = thread::spawn(move || {
        let read = io::copy(&mut output, &mut io::sink());
        // Nobody listens when it took too long.
        drop(tell.send(read));
    });
    if told.recv_timeout(LIMIT).is_err() {
        end(&mut child)?;
    }
    let status = child.wait()?;
    drop(reading.join());
    Ok(status.success())
}

/// Kills a process, and those that it has started.
fn end(child: &mut Child) -> anyhow::Result<()> {
    if cfg!(unix) {
        let kill = format!("kill -KILL -{}", child.id());
        Command::new("sh").args(["-c", &kill]).status()?;
    } else {
        child.kill()?;
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let place = to.join(&name);
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), &place)
                .with_context(|| format!("cannot copy {}", place.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::mutants;

    #[test]
    fn each_comparison_is_turned_and_nothing_else() {
        let source = "// a < b\nlet a: Vec<u8> = b;\nif now < until && a == b {\n";
        let turned = mutants(source);
        let turned: Vec<_> = turned
            .iter()
            .map(|mutant| (mutant.line, &*mutant.after))
            .collect();
        let expected = [
            (3, "if now <= until && a == b {"),
            (3, "if now >= until && a == b {"),
            (3, "if now < until && a != b {"),
        ];
        assert_eq!(turned, expected);
    }
}

//! The rules of this repository that no compiler knows.
//!
//! A [`Rule`] is a value: a name, the reason for it, and a check that reads a `Tree` and nothing
//! else. So every rule has a test with a tree that breaks it, and the last test asks the real
//! repository.

use std::fmt::Write as _;
use std::process::ExitCode;

pub(crate) use self::crates::is_version;
use self::tree::Tree;
pub(crate) use self::tree::{Graph, Package, root};

mod code;
mod crates;
mod files;
mod minimum_rust;
mod modules;
mod source;
mod third_party;
mod translations;
mod tree;

#[cfg(test)]
mod tests;

/// One rule of the repository.
pub(crate) struct Rule {
    /// What a finding is reported under.
    pub(crate) name: &'static str,
    /// What the rule says and what it protects, as one sentence.
    pub(crate) why: &'static str,
    /// Every place that breaks the rule.
    pub(crate) check: fn(&Tree) -> Vec<Finding>,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    /// Counted from 1; 1 as well when the whole file is meant.
    pub(crate) line: usize,
    /// What to do about it.
    pub(crate) advice: String,
}

/// Every rule, in the order of the report.
const RULES: &[Rule] = &[
    crates::DIRECTION,
    crates::KUBE_RUNTIME,
    crates::API_VERSION,
    minimum_rust::MINIMUM_RUST,
    third_party::THIRD_PARTY,
    files::FILE_LENGTH,
    files::MODULE_NAME,
    modules::CIRCLE,
    code::HONEST_TESTS,
    code::PAUSED_TIME,
    code::LINT_REASON,
    code::PURE_CORE,
    code::TASK_OWNER,
    files::DOC_BLOCK,
    files::LINK,
    translations::TRANSLATION,
    files::MACHINE_PATH,
    files::FILE_SIZE,
];

/// Checks the repository and prints one line per finding.
///
/// # Errors
///
/// When the repository cannot be read, e.g. because `cargo metadata` fails.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let findings = findings(&Tree::of_repository()?);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{} found; `cargo xtask tidy --help` gives the reasons",
        findings.len()
    );
    Ok(ExitCode::FAILURE)
}

/// The help text of `cargo xtask tidy`: what it prints and the reason of each rule.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Check the rules of this repository that no compiler knows.\n\n\
         Prints one line per finding, `rule: path:line: what to do`, and exits with status 1 if \
         there is any. Looks at the files that git tracks, as they are on disk.\n\nRules:",
    );
    for Rule { name, why, .. } in RULES {
        write!(text, "\n  {name}: {why}").expect("a string takes any text");
    }
    text
}

/// What every rule finds, one printable line each.
fn findings(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    for Rule { name, check, .. } in RULES {
        let mut found = check(tree);
        found.sort();
        lines.extend(found.iter().map(|finding| {
            let Finding { path, line, advice } = finding;
            format!("{name}: {path}:{line}: {advice}")
        }));
    }
    lines
}

//! The recorded cases, and those of them that are known to differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A recorded case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) text: String,
    /// It must not run beside others.
    pub(crate) exclusive: bool,
    /// It is for servers that put something into every namespace, others are for those that do not.
    pub(crate) furnished: bool,
    /// Roles decide in it.
    pub(crate) guarded: bool,
}

/// An ability that the server does not have: its cases are skipped.
const ABSENT: &str = "apf";

/// Abilities that are switched on for the cases that need them.
const GUARDED: [&str; 2] = ["authn", "authz"];

/// An ability that is switched on for the cases that need it.
const FURNISHED: &str = "namespace-defaults";

/// The recordings that are part of this crate.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// Every case of a directory that the server has the abilities for, by `area/name`.
///
/// # Errors
///
/// What cannot be read, and a directory without cases.
pub(crate) fn cases(directory: &Path) -> Result<BTreeMap<String, Case>, String> {
    let mut cases = BTreeMap::new();
    for area in list(directory)?.iter().filter(|path| path.is_dir()) {
        for file in list(area)? {
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
            let text = fs::read_to_string(&file).map_err(|error| wrong(&error))?;
            let case: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
            let (Some(area), Some(name)) = (case["area"].as_str(), case["name"].as_str()) else {
                return Err(wrong(&"a case has an area and a name"));
            };
            let name = format!("{area}/{name}");
            let requires = case["requires"].as_array().into_iter().flatten();
            let abilities: Vec<&str> = requires.filter_map(Value::as_str).collect();
            if !abilities.contains(&ABSENT) {
                let case = Case {
                    guarded: GUARDED.iter().any(|ability| abilities.contains(ability)),
                    exclusive: case["exclusive"] == true,
                    furnished: abilities.contains(&FURNISHED),
                    text,
                };
                cases.insert(name, case);
            }
        }
    }
    if cases.is_empty() {
        let directory = directory.display();
        return Err(format!("{directory}: no <area>/<case>.json is in it"));
    }
    Ok(cases)
}

/// The cases of which DIFFERENCES.md says why the server answers otherwise: `### area/name` is the
/// heading of each, below `## Entries`.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) fn differences() -> Result<BTreeSet<String>, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../DIFFERENCES.md");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let entries = text.lines().skip_while(|line| *line != "## Entries");
    let names = entries.filter_map(|line| line.strip_prefix("### "));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let entries = fs::read_dir(directory).map_err(wrong)?;
    entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(wrong))
        .collect()
}

//! Replays requests that were recorded with their answers from a real API server, and compares.
//!
//! `known_failures.txt` names the cases that do not pass yet, one on a line. A case that fails and
//! is not named there fails the test, and so does one that is named and passes. With the environment
//! variable `REPLAY` set to a part of a name, only those cases run, and each failure is shown.

mod bindings;
mod compare;
mod player;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Abilities that the server does not have: their cases are skipped.
const ABSENT: [&str; 4] = ["authn", "authz", "apf", "namespace-defaults"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Every recorded case that the server has the abilities for, by `area/name`.
fn cases() -> BTreeMap<String, String> {
    let mut cases = BTreeMap::new();
    for area in
        fs::read_dir(directory().join("conformance")).expect("the recordings are part of the crate")
    {
        let area = area.expect("the recordings are part of the crate").path();
        if !area.is_dir() {
            continue;
        }
        for file in fs::read_dir(&area).expect("the recordings are part of the crate") {
            let text =
                fs::read_to_string(file.expect("the recordings are part of the crate").path())
                    .expect("the recordings are part of the crate");
            let case: Value =
                serde_json::from_str(&text).expect("the recordings are part of the crate");
            let name = |member: &str| {
                case[member]
                    .as_str()
                    .expect("the recordings are part of the crate")
                    .to_owned()
            };
            let requires = case["requires"].as_array().into_iter().flatten();
            if requires
                .filter_map(Value::as_str)
                .all(|ability| !ABSENT.contains(&ability))
            {
                cases.insert(format!("{}/{}", name("area"), name("name")), text);
            }
        }
    }
    cases
}

fn known_failures() -> BTreeSet<String> {
    let text = fs::read_to_string(directory().join("replay/known_failures.txt"))
        .expect("the recordings are part of the crate");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn play(text: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("the recordings are part of the crate");
    runtime.block_on(player::play(text))
}

#[test]
fn recorded_cases() {
    let only = std::env::var("REPLAY").ok();
    let known = known_failures();
    let mut areas: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut failed = BTreeSet::new();
    let all = cases();
    for (name, text) in &all {
        if only
            .as_ref()
            .is_some_and(|part| !name.contains(part.as_str()))
        {
            continue;
        }
        let (passes, failures) = areas
            .entry(name.split('/').next().unwrap_or_default().to_owned())
            .or_default();
        match play(text) {
            Ok(()) => *passes += 1,
            Err(why) => {
                *failures += 1;
                failed.insert(name.clone());
                if only.is_some() || !known.contains(name) {
                    problems.push(format!("{name}: {why}"));
                }
            }
        }
    }
    for (area, (passes, failures)) in &areas {
        println!("{area:15} {passes:3} passed {failures:3} failed");
    }
    if only.is_none() {
        let fixed = known.iter().filter(|name| !failed.contains(*name));
        problems.extend(fixed.map(|name| format!("{name}: passes, or is no case: unlist it")));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

//! Replays requests that were recorded with their answers from a real API server, and compares.
//!
//! A case that fails and has no entry in DIFFERENCES.md fails the test, and so does one that has an
//! entry and passes. With the environment variable `REPLAY` set to a part of a name, only those cases
//! run, and each failure is shown. `cargo xtask conformance` plays the cases over HTTP too.

mod arms;
mod bindings;
mod compare;
mod corpus;
mod player;
mod stage;

use std::collections::BTreeMap;

use corpus::Case;

fn recorded() -> BTreeMap<String, Case> {
    corpus::cases(&corpus::directory()).expect("the recordings are part of the crate")
}

/// All of them over HTTP takes real time, which `cargo xtask conformance` has.
#[tokio::test]
async fn on_a_socket_the_answers_are_the_same() {
    let mut cases = recorded();
    cases.retain(|name, _| {
        ["discovery/", "errors/"]
            .iter()
            .any(|area| name.starts_with(area))
    });
    assert!(cases.len() > 20, "{}", cases.len());
    let known = corpus::differences().expect("the differences are part of the repository");
    cases.retain(|name, _| !known.contains(name));
    let outcomes = arms::on_a_socket(&cases)
        .await
        .expect("there is a free port");
    let failed = outcomes
        .iter()
        .filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
    assert_eq!(failed.collect::<Vec<_>>(), []);
}

#[test]
fn recorded_cases() {
    let only = std::env::var("REPLAY").ok();
    let known = corpus::differences().expect("the differences are part of the repository");
    let mut cases = recorded();
    cases.retain(|name, _| only.as_ref().is_none_or(|part| name.contains(part)));
    let outcomes = arms::in_process(&cases);
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, outcome) in &outcomes {
        let area = name.split('/').next().unwrap_or_default();
        let (passes, failures) = areas.entry(area).or_default();
        match outcome {
            Ok(()) => *passes += 1,
            Err(why) => {
                *failures += 1;
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
        let fixed = known
            .iter()
            .filter(|name| !matches!(outcomes.get(*name), Some(Err(_))));
        problems.extend(fixed.map(|name| format!("{name}: passes, or is no case: unlist it")));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

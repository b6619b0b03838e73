//! The command as people and programs use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::process::{Command, Output};

fn homeostat(args: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_homeostat");
    Command::new(binary).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The summary is the only thing on standard output; with the `--` of `cargo demo -- --json` too.
#[test]
fn the_demo_converges_and_says_so_in_json() {
    let output = homeostat(&["demo", "--", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["converged"], true);
    assert_eq!(summary["reconciles_after_convergence"], 100);
    assert_eq!(summary["writes_after_convergence"], 0);
    assert!(summary["reconciles"].as_u64() > Some(110), "{summary}");
    assert!(summary["failures"].as_u64() >= Some(4), "{summary}");
    // Three children, a finalizer and a status for each of two sites, and what changed later.
    assert!(summary["writes"].as_u64() >= Some(10), "{summary}");
    assert!(
        summary["writes"].as_u64() < summary["requests"].as_u64(),
        "{summary}"
    );
}

#[test]
fn the_demo_tells_its_story() {
    let output = homeostat(&["demo"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let story = String::from_utf8(output.stdout).unwrap();
    let mut rest = story.as_str();
    for part in [
        "1. A site appears",
        "created Website blog",
        "created Deployment blog",
        "Ready=True Serving",
        "scaled Deployment blog from 2 to 3",
        "could not reconcile shop",
        "(again, after 0.2 s)",
        "(again, after 0.4 s)",
        "(again, after 0.8 s)",
        "4. A spec that nobody can make true",
        "Reconciled=False InvalidSpec",
        "5. Somebody deletes a child",
        "removed Deployment blog",
        "created Deployment blog",
        "brought 3 pods of Deployment blog up",
        "6. The second site is deleted",
        "marked Website shop for deletion",
        "removed Website shop",
        "removed Service shop",
        "7. The replica that leads is killed",
        "killed replica one",
        "replica two leads",
        "8. Nothing is left to do",
        "forced 100 reconciles, and counted 0 writes",
        "Converged.",
        "How to go on:",
        "homeostat dev",
    ] {
        let found = rest.find(part);
        assert!(
            found.is_some(),
            "{part:?} is missing, or in the wrong place:\n{story}"
        );
        rest = &rest[found.unwrap()..];
    }
    // A permanent error is told once, and is no attempt that failed again.
    assert_eq!(
        story.matches("this waited for a change").count(),
        1,
        "{story}"
    );
    assert!(!story.contains("after 0.0 s"), "{story}");
    // No heading comes before the part before it was told: each part has lines, and what happened to a child is told
    // under the same heading as what follows from it.
    for part in story
        .split("\n\n")
        .filter(|part| part.starts_with(char::is_numeric))
    {
        assert!(part.lines().count() > 2, "{part}");
        let of = |what: &str| part.matches(&format!("{what} Deployment blog")).count();
        assert_eq!(of("removed"), of("deleted"), "{part}");
    }
    assert!(
        !story.contains('\u{1b}'),
        "no colours where there is no terminal"
    );
}

#[test]
fn a_bad_manifest_is_the_callers_fault() {
    let dir = std::env::temp_dir().join(format!("homeostat-cli-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for (name, text, expected) in [
        ("list.yaml", "- 1\n- [2", "not one YAML document"),
        (
            "pod.yaml",
            "apiVersion: v1\nkind: Pod\n",
            r#"it is a "Pod" of "v1""#,
        ),
    ] {
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        let output = homeostat(&["demo", "--manifest", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        let message = stderr(&output);
        assert!(
            message.contains(name) && message.contains(expected),
            "{message}"
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
    let output = homeostat(&["demo", "--manifest", "no/such/file.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read no/such/file.yaml"));
}

/// A site that the operator cannot make true from the start ends the story with what did not happen.
#[test]
fn a_demo_that_does_not_converge_fails() {
    let file = std::env::temp_dir().join(format!("homeostat-cli-bad-{}.yaml", std::process::id()));
    let site = "apiVersion: demo.homeostat.dev/v1\nkind: Website\nmetadata: {name: blog}\n\
                spec: {host: 'not a host', html: hello}\n";
    std::fs::write(&file, site).unwrap();
    let output = homeostat(&["demo", "--json", "--manifest", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["converged"], false);
    let message = stderr(&output);
    assert!(
        message.contains("A site appears") && message.contains("did not happen"),
        "{message}"
    );
}

#[test]
fn help_and_unknown_flags() {
    let output = homeostat(&["demo", "--help"]);
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    for flag in ["--json", "--keep", "--manifest"] {
        assert!(help.contains(flag), "{help}");
    }
    assert_eq!(
        homeostat(&["demo", "--no-such-flag"]).status.code(),
        Some(2)
    );
    assert_eq!(homeostat(&[]).status.code(), Some(2));
}

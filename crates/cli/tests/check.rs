//! `homeostat check`, with a cargo that stands in for the real one: it tells of one test, and writes what its checks do.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A folder with a cargo in it. The test says whether the operator is sound.
fn project(name: &str, is_sound: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sound.rs"), "use homeostat_testing::Scenario;").unwrap();
    let source = folder.join("sound.rs");
    let source = source.display();
    let (status, verdict) = if is_sound {
        (0, "sound")
    } else {
        (101, "not sound")
    };
    let script = format!(
        r#"#!/bin/sh
if [ "$1" = metadata ]; then
    echo '{{"packages":[{{"name":"op","targets":[{{"kind":["test"],"name":"sound","src_path":"{source}"}}]}}]}}'
    exit 0
fi
mkdir -p "$HOMEOSTAT_SAVE"
echo '{{"test":"it","done":1,"plans":2,"faults":0}}' > "$HOMEOSTAT_SAVE/it.progress.json"
echo '[]' > "$HOMEOSTAT_SAVE/it.1-idle.log.json"
echo "The operator is {verdict}." > "$HOMEOSTAT_SAVE/it.txt"
echo "{{\"test\":\"it\",\"sound\":{is_sound},\"args\":\"$*\",\"budget\":\"$HOMEOSTAT_BUDGET\"}}" > "$HOMEOSTAT_SAVE/it.json"
exit {status}
"#
    );
    let cargo = folder.join("cargo");
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn check(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    command.env("CARGO", folder.join("cargo"));
    command.arg("check").args(args).output().unwrap()
}

#[test]
fn a_sound_project_passes_and_the_report_is_printed() {
    let folder = project("sound", true);
    let output = check(&folder, &[]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "== it\nThe operator is sound.\n\n");
}

#[test]
fn json_has_the_reports_and_the_settings_reach_the_tests() {
    let folder = project("json", true);
    let output = check(&folder, &["it_is", "--json", "--budget", "7"]);
    assert!(output.status.success());
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["sound"], true);
    assert_eq!(all["checks"].as_array().unwrap().len(), 1);
    assert_eq!(all["checks"][0]["budget"], "7");
    let args = "test --package=op --test=sound it_is";
    assert_eq!(all["checks"][0]["args"], args);
}

#[test]
fn what_is_not_sound_fails_and_can_be_saved() {
    let folder = project("unsound", false);
    let saved = folder.join("saved");
    let output = check(&folder, &["--save", saved.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("The operator is not sound."), "{text}");
    assert!(saved.join("0/it.json").exists());
}

#[test]
fn a_project_without_such_tests_is_told_so() {
    let folder = project("none", true);
    let output = check(&folder, &["--package", "another"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("docs/guide/testing.md"), "{text}");
}

#[test]
fn help_has_examples() {
    let output = check(Path::new("."), &["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("homeostat check --seeds 1000"), "{text}");
}

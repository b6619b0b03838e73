//! `homeostat rbac`, with a cargo that stands in for the real one: its tests let an operator make two requests.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const NOTES: &str = r#"{"verb":"watch","group":"x.io","resource":"sites","userAgent":"op/homeostat-1","why":"asked"}
{"verb":"patch","group":"x.io","resource":"sites","subresource":"status","namespace":"a","name":"b","userAgent":"op/homeostat-1","why":"asked"}
{"verb":"delete","group":"x.io","resource":"sites","namespace":"a","name":"b","userAgent":"","why":"asked"}
"#;

/// A folder with a cargo in it, whose tests end with this status.
fn project(name: &str, status: u8) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\nmkdir -p \"$HOMEOSTAT_REQUESTS\"\ncat > \"$HOMEOSTAT_REQUESTS/1.jsonl\" <<'END'\n{NOTES}END\n\
         echo \"said: $*\"\nexit {status}\n"
    );
    let cargo = folder.join("cargo");
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn rbac(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    command
        .env("CARGO", folder.join("cargo"))
        .current_dir(folder);
    command.arg("rbac").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn what_is_written_passes_the_check_and_other_roles_do_not() {
    let folder = project("rbac", 0);
    let written = rbac(&folder, &["--name", "op"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let yaml = text(&written.stdout);
    let rules = "rules:\n  - apiGroups: [x.io]\n    resources: [sites]\n    verbs: [list, watch]\n  \
        - apiGroups: [x.io]\n    resources: [sites/status]\n    verbs: [patch]\n";
    assert!(yaml.contains(rules), "{yaml}");

    fs::write(folder.join("rbac.yaml"), &yaml).unwrap();
    let checked = rbac(&folder, &["--check", "rbac.yaml"]);
    assert_eq!(
        text(&checked.stdout),
        "the roles grant 3 rights, and each is needed\n"
    );
    assert!(checked.status.success());

    let other = yaml.replace("verbs: [patch]", "verbs: [update]");
    fs::write(folder.join("other.yaml"), other).unwrap();
    let checked = rbac(&folder, &["--check", "other.yaml"]);
    assert_eq!(
        text(&checked.stdout),
        "missing: patch sites.x.io/status in the whole cluster\n\
         surplus: update sites.x.io/status in the whole cluster, in ClusterRole op: not needed\n"
    );
    assert_eq!(checked.status.code(), Some(1));
    let json = rbac(&folder, &["--check", "other.yaml", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["exact"], false);
    assert_eq!(json["missing"][0]["verb"], "patch");
    assert_eq!(json["surplus"][0]["role"], "ClusterRole op");
}

#[test]
fn tests_that_fail_tell_nothing() {
    let folder = project("rbac-failing", 101);
    let output = rbac(&folder, &["--package", "site", "some_test"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let told = text(&output.stderr);
    assert!(
        told.contains("said: test --tests --package site -- some_test"),
        "{told}"
    );
    assert!(told.contains("the tests fail"), "{told}");
}

#[test]
fn bad_arguments_are_told() {
    let folder = project("rbac-bad", 0);
    fs::write(folder.join("none.yaml"), "kind: ConfigMap\n").unwrap();
    for (args, expected) in [
        (&["--check", "gone.yaml"][..], "cannot read gone.yaml"),
        (
            &["--check", "none.yaml"],
            "no Role or ClusterRole with rules",
        ),
        (&["--requests", "nowhere"], "no operator made a request"),
        (&["--user-agent", "nobody"], "no operator made a request"),
    ] {
        let output = rbac(&folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let told = text(&output.stderr);
        assert!(told.contains(expected), "{args:?}: {told}");
    }
}

//! `homeostat new`, without building what it makes: `cargo xtask new-project` does that, and CI checks that it compiles.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn new(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    // It would be asked for on a terminal.
    command.current_dir(folder).stdin(Stdio::null());
    command.arg("new").args(args).output().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn documents(file: &Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn every_file_is_filled_in() {
    let folder = folder("new-filled");
    for (name, args, count) in [
        ("plain", &[][..], 22),
        (
            "whole-operator",
            &[
                "--group=a.example.com",
                "--kind=Policy",
                "--version=v1",
                "--status",
                "--finalizer",
                "--owns",
                "ConfigMap",
                "CronJob",
                "Deployment",
                "Secret",
                "Service",
                "ServiceAccount",
                "StatefulSet",
            ],
            23,
        ),
    ] {
        let mut all = vec![name];
        all.extend(args);
        let output = new(&folder, &all);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let project = folder.join(name);
        let files = files(&project);
        assert_eq!(files.len(), count, "{files:?}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let name = file.display();
            assert!(!text.contains("%%") && !text.contains("{{kind"), "{name}");
            assert!(text.ends_with('\n') && !text.starts_with('\n'), "{name}");
            if file.extension().is_some_and(|it| it == "yaml") {
                assert!(!documents(&file).is_empty(), "{name}");
            }
        }
    }
    let definition = documents(&folder.join("whole-operator/deploy/crd.yaml")).remove(0);
    assert_eq!(definition["metadata"]["name"], "policies.a.example.com");
    let manifest = fs::read_to_string(folder.join("plain/Cargo.toml")).unwrap();
    assert!(
        manifest.contains(r#"homeostat = { version = "0."#),
        "{manifest}"
    );
    let account = &documents(&folder.join("whole-operator/deploy/rbac.yaml"))[0];
    let deployment = &documents(&folder.join("whole-operator/deploy/deployment.yaml"))[0];
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], account["metadata"]["name"]);
    assert_eq!(
        deployment["metadata"]["namespace"],
        account["metadata"]["namespace"]
    );
}

#[test]
fn nothing_that_is_there_is_changed() {
    let folder = folder("new-there");
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/Cargo.toml"), "mine").unwrap();
    let output = new(&folder, &["mine"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("mine is there already"), "{told}");
    assert_eq!(files(&folder.join("mine")).len(), 1);
    fs::write(folder.join("file"), "").unwrap();
    assert_eq!(new(&folder, &["file"]).status.code(), Some(2));
    // An empty folder has nothing to lose.
    fs::create_dir(folder.join("empty")).unwrap();
    assert!(new(&folder, &["empty"]).status.success());
}

#[test]
fn names_that_cannot_be_used_make_nothing() {
    let folder = folder("new-bad");
    for (args, expected) in [
        (&["../outside"][..], "cannot be the name of a project"),
        (&["tokio"], "a crate that it depends on has it"),
        (&["op", "--group", "example"], "take a domain of yours"),
        (&["op", "--group", "apps.k8s.io"], "only Kubernetes itself"),
        (&["op", "--kind", "cache"], "cannot be a kind"),
        (&["op", "--kind", "Context"], "calls something else so"),
        (
            &["op", "--kind", "Secret", "--owns", "Secret"],
            "the name of a kind that it owns",
        ),
        (&["op", "--version", "1"], "no version of an API"),
        (&["op", "--owns", "Pod"], "take some of ConfigMap, CronJob"),
        (&["op", "--path", "."], "no clone of homeostat"),
    ] {
        let output = new(&folder, args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(expected), "{args:?}: {told}");
    }
    assert!(files(&folder).is_empty());
}

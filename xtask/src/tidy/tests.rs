use serde_json::{Value, json};

use super::tree::{Graph, Tree};
use super::{RULES, Rule};

mod code;
mod crates;
mod files;
mod minimum_rust;
mod modules;
mod source;
mod third_party;
mod translations;
mod tree;

#[test]
fn the_repository_keeps_every_rule() {
    let tree = Tree::of_repository().expect("the repository can be read");
    assert!(
        tree.file("xtask/src/main.rs").is_some(),
        "it reads something else"
    );
    assert!(
        tree.graph.members().any(|package| package.name == "xtask"),
        "it reads something else"
    );
    let findings = super::findings(&tree);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_report_names_rule_place_and_deed() {
    let tree = files(&[
        ("crates/b/src/lib.rs", "\n#[allow(dead_code)]"),
        ("a.rs", "#[ignore]"),
    ]);
    let findings = super::findings(&tree);
    let lines: Vec<&str> = findings
        .iter()
        .map(String::as_str)
        .filter(|line| !line.contains("deny.toml"))
        .collect();
    assert_eq!(
        lines,
        [
            "honest-tests: a.rs:1: repair the test or delete it",
            "lint-reason: crates/b/src/lib.rs:2: add `reason = \"..\"`",
        ]
    );
}

#[test]
fn the_help_has_every_rule_once() {
    let help = super::help();
    for Rule { name, why, .. } in RULES {
        let line = format!("  {name}: {why}");
        assert_eq!(help.lines().filter(|l| *l == line).count(), 1, "{line}");
    }
}

/// A repository with these files and no packages.
fn files(files: &[(&str, &str)]) -> Tree {
    with_graph(files, Graph::default())
}

fn with_graph(files: &[(&str, &str)], graph: Graph) -> Tree {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    Tree::new(files, graph)
}

/// What `cargo metadata` would say about these packages; those in a folder are members.
fn graph(packages: &[Value]) -> Graph {
    let id = |package: &Value| package["id"].clone();
    let members: Vec<Value> = packages
        .iter()
        .filter(|package| package["source"].is_null())
        .map(id)
        .collect();
    let nodes: Vec<Value> = packages
        .iter()
        .map(|package| json!({ "id": package["id"], "dependencies": package["uses"] }))
        .collect();
    let metadata = json!({
        "packages": packages,
        "workspace_root": "/r",
        "workspace_members": members,
        "resolve": { "nodes": nodes },
    });
    serde_json::from_value(metadata).expect("it has the form of cargo's")
}

/// A library of this repository.
fn member(name: &str, folder: &str, dependencies: &Value) -> Value {
    json!({
        "name": name,
        "version": "0.1.0",
        "id": name,
        "manifest_path": format!("/r/{folder}/Cargo.toml"),
        "license": "Apache-2.0",
        "source": null,
        "targets": [{ "kind": ["lib"] }],
        "dependencies": dependencies,
        "uses": [],
    })
}

/// What the rule finds, without its name.
fn found(rule: &Rule, tree: &Tree) -> Vec<String> {
    let mut findings = (rule.check)(tree);
    findings.sort();
    findings
        .iter()
        .map(|f| format!("{}:{}: {}", f.path, f.line, f.advice))
        .collect()
}

/// Checks that the rule finds exactly these lines of the files, as `path:line`.
#[track_caller]
fn check(rule: &Rule, these: &[(&str, &str)], expected: &[&str]) {
    check_tree(rule, &files(these), expected);
}

#[track_caller]
fn check_tree(rule: &Rule, tree: &Tree, expected: &[&str]) {
    let findings = found(rule, tree);
    let places: Vec<&str> = findings
        .iter()
        .map(|line| line.split(": ").next().unwrap_or_default())
        .collect();
    assert_eq!(places, expected, "{}: {findings:#?}", rule.name);
}

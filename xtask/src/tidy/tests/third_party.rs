use serde_json::{Value, json};

use super::super::third_party::THIRD_PARTY;
use super::{found, graph, member, with_graph};

const POLICY: &str = r#"
[licenses]
allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]

[bans]
deny = [
    { crate = "openssl", reason = "we have rustls" },
    { crate = "kube-runtime", reason = "we are it", wrappers = ["bench"] },
]

[sources]
allow-registry = ["https://example.com/index"]
"#;

fn package(name: &str, license: Option<&str>) -> Value {
    json!({
        "name": name,
        "version": "1.2.3",
        "id": name,
        "manifest_path": "/registry/Cargo.toml",
        "license": license,
        "source": "registry+https://example.com/index",
        "uses": [],
    })
}

#[track_caller]
fn check(packages: &[Value], expected: &[&str]) {
    let tree = with_graph(&[("deny.toml", POLICY)], graph(packages));
    let expected: Vec<String> = expected
        .iter()
        .map(|e| format!("deny.toml:1: {e}"))
        .collect();
    assert_eq!(found(&THIRD_PARTY, &tree), expected);
}

#[test]
fn licences() {
    for license in [
        "MIT",
        "MIT OR GPL-3.0-only",
        "GPL-3.0-only/MIT",
        "(MIT OR GPL-3.0-only) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        check(&[package("a", Some(license))], &[]);
    }
    for license in [
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "MIT WITH LLVM-exception",
        "no licence",
        "CDLA-Permissive-2.0",
    ] {
        let expected = format!("a 1.2.3: its licence {license} is not allowed; replace it");
        check(&[package("a", Some(license))], &[&expected]);
    }
    check(&[package("roots", Some("CDLA-Permissive-2.0"))], &[]);
    check(
        &[package("a", None)],
        &["a 1.2.3: has no licence expression; replace it"],
    );
}

#[test]
fn bans() {
    let using = |name: &str, used: &str| {
        let mut user = member(name, name, &json!([]));
        user["uses"] = json!([used]);
        vec![user, package(used, Some("MIT"))]
    };
    let rustls = "openssl 1.2.3: bench must not use it: we have rustls";
    check(&using("bench", "openssl"), &[rustls]);
    let runtime = "kube-runtime 1.2.3: website must not use it: we are it";
    check(&using("website", "kube-runtime"), &[runtime]);
    check(&using("bench", "kube-runtime"), &[]);
}

#[test]
fn sources() {
    let from = |source: &str| {
        let mut package = package("a", Some("MIT"));
        package["source"] = json!(source);
        vec![package]
    };
    let expected = "a 1.2.3: its source git+https://example.com/index is not allowed; replace it";
    check(&from("git+https://example.com/index"), &[expected]);
    check(&from("registry+https://example.com/index"), &[]);
}

#[test]
fn a_policy_that_is_missing_or_broken_is_a_finding() {
    let missing = found(&THIRD_PARTY, &super::files(&[]));
    assert_eq!(
        missing,
        ["deny.toml:1: write the file: it says what dependencies are allowed"]
    );
    let broken = found(&THIRD_PARTY, &super::files(&[("deny.toml", "[licenses]")]));
    assert_eq!(
        broken,
        ["deny.toml:1: cannot be read: missing field `allow`"]
    );
}

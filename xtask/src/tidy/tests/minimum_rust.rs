use serde_json::{Value, json};

use super::super::minimum_rust::MINIMUM_RUST;
use super::{found, graph, member, with_graph};

fn ours(rust_version: &Value) -> Value {
    let mut package = member("homeostat", "crates/runtime", &json!([]));
    package["rust_version"] = rust_version.clone();
    package
}

fn theirs(rust_version: &Value) -> Value {
    let mut package = member("educe", "registry/educe", &json!([]));
    package["source"] = json!("registry+https://example.com/index");
    package["rust_version"] = rust_version.clone();
    package
}

#[test]
fn no_dependency_asks_for_a_newer_rust() {
    let ours = ours(&json!("1.89"));
    for fine in [
        json!(null),
        json!("1.89"),
        json!("1.89.0"),
        json!("1.9"),
        json!("1"),
    ] {
        let tree = with_graph(&[], graph(&[ours.clone(), theirs(&fine)]));
        assert!(found(&MINIMUM_RUST, &tree).is_empty(), "{fine}");
    }
    for newer in ["1.89.1", "1.90", "1.100", "2.0", "unreadable"] {
        let tree = with_graph(&[], graph(&[ours.clone(), theirs(&json!(newer))]));
        let expected = format!(
            "Cargo.lock:1: educe 0.1.0 asks for Rust {newer}; take an older version of it, or \
             raise rust-version in Cargo.toml and the README"
        );
        assert_eq!(found(&MINIMUM_RUST, &tree), [expected]);
    }
}

#[test]
fn every_package_says_what_it_compiles_with() {
    let tree = with_graph(&[], graph(&[ours(&json!(null))]));
    let expected = "crates/runtime/Cargo.toml:1: say `rust-version.workspace = true`";
    assert_eq!(found(&MINIMUM_RUST, &tree), [expected]);
}

use serde_json::{Value, json};

use super::super::crates::{API_VERSION, DIRECTION, KUBE_RUNTIME};
use super::super::{Rule, tree::Tree};
use super::{check_tree, found, graph, member, with_graph};

/// A repository with this package.
fn only(name: &str, folder: &str, dependencies: &Value) -> Tree {
    with_graph(&[], graph(&[member(name, folder, dependencies)]))
}

#[track_caller]
fn bad(rule: &Rule, name: &str, folder: &str, dependency: &Value) {
    let place = format!("{folder}/Cargo.toml:1");
    check_tree(rule, &only(name, folder, &json!([dependency])), &[&place]);
}

#[track_caller]
fn good(rule: &Rule, name: &str, folder: &str, dependency: &Value) {
    check_tree(rule, &only(name, folder, &json!([dependency])), &[]);
}

fn local(name: &str, kind: Option<&str>) -> Value {
    json!({ "name": name, "kind": kind, "path": "/r/crates/x" })
}

#[test]
fn no_package_depends_on_a_higher_one() {
    let cases = [
        ("homeostat-core", "crates/core", local("homeostat", None)),
        (
            "homeostat-core",
            "crates/core",
            local("homeostat-apiserver", Some("dev")),
        ),
        (
            "homeostat-apiserver",
            "crates/apiserver",
            local("homeostat-core", None),
        ),
        (
            "homeostat-apiserver",
            "crates/apiserver",
            local("homeostat", Some("dev")),
        ),
        (
            "homeostat",
            "crates/runtime",
            local("homeostat-apiserver", None),
        ),
        (
            "homeostat",
            "crates/runtime",
            local("homeostat-cli", Some("dev")),
        ),
        (
            "homeostat-testing",
            "crates/testing",
            local("homeostat-cli", None),
        ),
        ("homeostat-cli", "crates/cli", local("xtask", Some("build"))),
        ("homeostat-new", "crates/new", local("homeostat-core", None)),
    ];
    for (name, folder, dependency) in cases {
        bad(&DIRECTION, name, folder, &dependency);
    }
    let cases = [
        ("homeostat", "crates/runtime", local("homeostat-core", None)),
        (
            "homeostat",
            "crates/runtime",
            local("homeostat-apiserver", Some("dev")),
        ),
        (
            "homeostat-testing",
            "crates/testing",
            local("homeostat", None),
        ),
        (
            "homeostat-testing",
            "crates/testing",
            local("homeostat-apiserver", None),
        ),
        (
            "homeostat-cli",
            "crates/cli",
            local("homeostat-testing", None),
        ),
        ("homeostat-cli", "crates/cli", local("website", None)),
        ("website", "examples/website", local("homeostat", None)),
        ("xtask", "xtask", local("homeostat-core", None)),
    ];
    for (name, folder, dependency) in cases {
        good(&DIRECTION, name, folder, &dependency);
    }
}

#[test]
fn core_depends_on_data_only() {
    for name in ["tokio", "kube", "rand", "jiff"] {
        let dependency = json!({ "name": name, "kind": null });
        bad(&DIRECTION, "homeostat-core", "crates/core", &dependency);
        good(&DIRECTION, "homeostat", "crates/runtime", &dependency);
        let in_tests = json!({ "name": name, "kind": "dev" });
        good(&DIRECTION, "homeostat-core", "crates/core", &in_tests);
    }
    let data = json!({ "name": "hashbrown", "kind": null });
    good(&DIRECTION, "homeostat-core", "crates/core", &data);
}

#[test]
fn the_finding_is_at_the_dependency() {
    let manifest = "[dependencies]\ntokio-util = \"1\"\ntokio.workspace = true\n";
    let package = member(
        "homeostat-core",
        "crates/core",
        &json!([{ "name": "tokio" }]),
    );
    let tree = with_graph(&[("crates/core/Cargo.toml", manifest)], graph(&[package]));
    check_tree(&DIRECTION, &tree, &["crates/core/Cargo.toml:3"]);
}

#[test]
fn nothing_uses_kubes_runtime_but_comparisons() {
    let direct = |kind: &str| json!({ "name": "kube-runtime", "kind": kind });
    let with = |kind: &str, feature: &str| json!({ "name": "kube", "kind": kind, "features": ["client", feature] });
    let in_build = [
        direct("build"),
        with("build", "runtime"),
        with("build", "unstable-runtime"),
    ];
    let in_tests = [direct("dev"), with("dev", "runtime")];
    for dependency in in_build.iter().chain(&in_tests) {
        bad(&KUBE_RUNTIME, "homeostat", "crates/runtime", dependency);
        bad(&KUBE_RUNTIME, "website", "examples/website", dependency);
    }
    for dependency in &in_build {
        bad(&KUBE_RUNTIME, "homeostat-bench", "bench", dependency);
    }
    for dependency in &in_tests {
        good(&KUBE_RUNTIME, "homeostat-bench", "bench", dependency);
        good(&KUBE_RUNTIME, "porting", "tests/porting", dependency);
    }
    good(
        &KUBE_RUNTIME,
        "homeostat",
        "crates/runtime",
        &with("build", "derive"),
    );
}

#[test]
fn no_feature_enables_kubes_runtime() {
    let enabling = |values: &Value| {
        let mut package = member("homeostat", "crates/runtime", &json!([]));
        package["features"] = json!({ "extra": values });
        found(&KUBE_RUNTIME, &with_graph(&[], graph(&[package])))
    };
    let expected = "crates/runtime/Cargo.toml:1: feature extra must not enable kube's runtime";
    assert_eq!(
        enabling(&json!(["kube/derive", "kube/runtime"])),
        [expected]
    );
    assert_eq!(enabling(&json!(["kube?/unstable-runtime-x"])), [expected]);
    assert!(enabling(&json!(["kube/derive", "tokio/runtime", "dep:kube"])).is_empty());
}

#[test]
fn no_library_chooses_the_api_version() {
    let with = |kind: &str, feature: &str| json!({ "name": "k8s-openapi", "kind": kind, "features": [feature] });
    for dependency in [
        with("build", "v1_36"),
        with("build", "latest"),
        with("build", "earliest"),
    ] {
        bad(&API_VERSION, "homeostat", "crates/runtime", &dependency);
        let mut sample = member("website", "examples/website", &json!([dependency]));
        sample["publish"] = json!([]);
        check_tree(&API_VERSION, &with_graph(&[], graph(&[sample])), &[]);
        let mut binary = member("homeostat-cli", "crates/cli", &json!([dependency]));
        binary["targets"] = json!([{ "kind": ["bin"] }]);
        check_tree(&API_VERSION, &with_graph(&[], graph(&[binary])), &[]);
    }
    for dependency in [with("dev", "v1_36"), with("build", "schemars")] {
        good(&API_VERSION, "homeostat", "crates/runtime", &dependency);
    }

    let mut package = member("homeostat", "crates/runtime", &json!([]));
    package["features"] = json!({ "default": ["k8s-openapi/v1_36"] });
    let tree = with_graph(&[], graph(&[package]));
    check_tree(&API_VERSION, &tree, &["crates/runtime/Cargo.toml:1"]);
}

//! Which package may depend on which.

use super::tree::{Dependency, Kind, Package, Tree};
use super::{Finding, Rule};

pub(crate) const DIRECTION: Rule = Rule {
    name: "direction",
    why: "cli uses testing, testing uses runtime, runtime uses core, nothing goes back; core knows no I/O and apiserver none of the others, so that it shares no mistake with what it tests",
    check: direction,
};

pub(crate) const KUBE_RUNTIME: Rule = Rule {
    name: "kube-runtime",
    why: "nothing uses kube's runtime, whose place homeostat takes, but tests that compare the two",
    check: kube_runtime,
};

pub(crate) const API_VERSION: Rule = Rule {
    name: "api-version",
    why: "no library chooses a version feature of k8s-openapi; that is up to the user's binary",
    check: api_version,
};

/// What a package below `crates/` may use of this repository.
struct Layer {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

/// From the lowest to the highest. Whatever stands elsewhere (examples, bench, xtask) is used by
/// nobody and may use everything.
const LAYERS: &[Layer] = &[
    Layer {
        name: "homeostat-core",
        uses: &[],
        tests_use: &[],
    },
    Layer {
        name: "homeostat-derive",
        uses: &[],
        tests_use: &["homeostat"],
    },
    Layer {
        name: "homeostat-apiserver",
        uses: &[],
        tests_use: &[],
    },
    Layer {
        name: "homeostat",
        uses: &["homeostat-core", "homeostat-derive"],
        tests_use: &["homeostat-apiserver", "homeostat-testing"],
    },
    Layer {
        name: "homeostat-testing",
        uses: &["homeostat-core", "homeostat", "homeostat-apiserver"],
        tests_use: &["website"],
    },
    Layer {
        name: "homeostat-cli",
        uses: &[
            "homeostat-core",
            "homeostat",
            "homeostat-apiserver",
            "homeostat-testing",
            "website",
        ],
        tests_use: &[],
    },
];

/// What core may use: containers, hashing, JSON values, and types of Kubernetes that are nothing but
/// data. No runtime, no client, no clock and no source of randomness.
const CORE_MAY_USE: &[&str] = &[
    "hashbrown",
    "k8s-openapi",
    "kube-core",
    "rustc-hash",
    "serde_json",
];

/// The folders of packages whose tests compare homeostat with kube's runtime.
const COMPARISONS: &[&str] = &["bench", "tests/porting"];

fn direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.graph.members() {
        if !tree.graph.folder(package).starts_with("crates/") {
            continue;
        }
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            let advice = "give the package a place in LAYERS of xtask/src/tidy/crates.rs";
            findings.push(in_manifest(tree, package, "name", advice.to_owned()));
            continue;
        };
        for dependency in &package.dependencies {
            let Dependency {
                name, kind, path, ..
            } = dependency;
            let allowed = match kind {
                Kind::Normal | Kind::Build => layer.uses.contains(&name.as_str()),
                Kind::Dev => [layer.uses, layer.tests_use]
                    .concat()
                    .contains(&name.as_str()),
            };
            if path.is_some() && !allowed {
                let advice = format!("{} must not depend on {name}", layer.name);
                findings.push(in_manifest(tree, package, name, advice));
            }
            let foreign_to_core = layer.name == "homeostat-core"
                && *kind != Kind::Dev
                && !CORE_MAY_USE.contains(&name.as_str());
            if path.is_none() && foreign_to_core {
                let advice = format!(
                    "core must not depend on {name}; if it is plain data, add it to CORE_MAY_USE \
                     of xtask/src/tidy/crates.rs"
                );
                findings.push(in_manifest(tree, package, name, advice));
            }
        }
    }
    findings
}

fn kube_runtime(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.graph.members() {
        let compares = COMPARISONS.contains(&tree.graph.folder(package));
        for Dependency {
            name,
            kind,
            features,
            ..
        } in &package.dependencies
        {
            if compares && *kind == Kind::Dev {
                continue;
            }
            if name == "kube-runtime" || (name == "kube" && features.iter().any(is_runtime)) {
                let advice = "use homeostat instead of kube's runtime".to_owned();
                findings.push(in_manifest(tree, package, name, advice));
            }
        }
        if let Some(name) = feature_that_enables(package, "kube", is_runtime) {
            let advice = format!("feature {name} must not enable kube's runtime");
            findings.push(in_manifest(tree, package, name, advice));
        }
    }
    findings
}

fn api_version(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.graph.published_libraries() {
        for Dependency {
            name,
            kind,
            features,
            ..
        } in &package.dependencies
        {
            if name == "k8s-openapi" && *kind != Kind::Dev && features.iter().any(is_version) {
                let advice = "choose the version feature in dev-dependencies only".to_owned();
                findings.push(in_manifest(tree, package, name, advice));
            }
        }
        if let Some(name) = feature_that_enables(package, "k8s-openapi", is_version) {
            let advice = format!("feature {name} must not choose the version");
            findings.push(in_manifest(tree, package, name, advice));
        }
    }
    findings
}

fn is_runtime(feature: &String) -> bool {
    feature == "runtime" || feature.starts_with("unstable-runtime")
}

pub(crate) fn is_version(feature: &String) -> bool {
    feature.starts_with("v1_") || feature == "latest" || feature == "earliest"
}

/// The name of a feature of the package that enables such a feature of the dependency.
fn feature_that_enables<'a>(
    package: &'a Package,
    dependency: &str,
    is_such: fn(&String) -> bool,
) -> Option<&'a str> {
    let enables = |value: &String| {
        value
            .split_once('/')
            .filter(|(name, _)| name.trim_end_matches('?') == dependency)
            .is_some_and(|(_, feature)| is_such(&feature.to_owned()))
    };
    let (name, _) = package
        .features
        .iter()
        .find(|(_, values)| values.iter().any(enables))?;
    Some(name)
}

fn in_manifest(tree: &Tree, package: &Package, word: &str, advice: String) -> Finding {
    let folder = tree.graph.folder(package);
    let path = if folder.is_empty() {
        "Cargo.toml".to_owned()
    } else {
        format!("{folder}/Cargo.toml")
    };
    let line = tree.line_starting_with(&path, word);
    Finding { path, line, advice }
}

//! Each published library alone: its code as its users build it, its documentation as docs.rs does.
//!
//! In a build of several packages each has the features of dependencies that the others enable, so
//! that what a manifest forgets is not noticed.

use std::process::ExitCode;

use serde_json::Value;

use super::status;
use crate::cargo::cargo;
use crate::tidy::{Graph, Package, root};

const COMMANDS: &[&[&str]] = &[
    &["check", "--quiet", "--lib"],
    &["doc", "--quiet", "--no-deps"],
];

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let graph = Graph::of_repository(root())?;
    for library in graph.published_libraries() {
        println!("{}", library.name);
        for command in COMMANDS {
            let mut command = cargo(command);
            command.args(selection(library));
            let code = status(command.env("RUSTDOCFLAGS", "-D warnings"))?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The package, with the features that its manifest names for docs.rs, in `package.metadata.docs.rs`.
fn selection(library: &Package) -> Vec<&str> {
    let Package { name, metadata, .. } = library;
    let mut arguments = vec!["--package", name];
    let features = metadata.pointer("/docs/rs/features");
    let features = features.and_then(Value::as_array).into_iter().flatten();
    for feature in features.filter_map(Value::as_str) {
        arguments.extend(["--features", feature]);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::selection;
    use crate::tidy::Package;

    #[track_caller]
    fn check(metadata: &Value, expected: &[&str]) {
        let package = json!({
            "name": "a",
            "version": "0.1.0",
            "id": "a",
            "manifest_path": "/r/a/Cargo.toml",
            "metadata": metadata,
        });
        let package: Package = serde_json::from_value(package).expect("it has the form of cargo's");
        assert_eq!(
            selection(&package),
            [&["--package", "a"], expected].concat()
        );
    }

    #[test]
    fn features_are_those_of_docs_rs() {
        check(&json!(null), &[]);
        check(&json!({ "docs": { "rs": {} } }), &[]);
        let features = json!({ "docs": { "rs": { "features": ["x", "y/z"] } } });
        check(&features, &["--features", "x", "--features", "y/z"]);
    }
}

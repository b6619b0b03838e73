//! Finds the tests of a project that use the checker.

use crate::failure::Failure;
use serde_json::Value;
use std::{ffi::OsString, fmt, fs, path::Path};
use tokio::process::Command;

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    package: String,
    test: String,
}

/// What a test calls the checker.
const CRATE: &str = "homeostat_testing";

/// The cargo to run: the one that runs this program, if one does.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The tests of the project that use the checker.
pub(super) async fn find(
    manifest: Option<&Path>,
    package: Option<&str>,
) -> Result<Vec<Target>, Failure> {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--no-deps", "--format-version=1"]);
    if let Some(manifest) = manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    let output = command.output().await;
    let output = output.map_err(|error| Failure::Other(format!("cannot run cargo: {error}")))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::Usage(text));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Other(format!("cargo metadata: {error}")))?;
    Ok(targets(&metadata, package, |path| {
        fs::read_to_string(path).unwrap_or_default()
    }))
}

fn targets(metadata: &Value, only: Option<&str>, read: impl Fn(&str) -> String) -> Vec<Target> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in items(&metadata["packages"]) {
        let name = text(&package["name"]);
        if only.is_some_and(|only| only != name) {
            continue;
        }
        for target in items(&package["targets"]) {
            let is_test = items(&target["kind"]).iter().any(|kind| kind == "test");
            if is_test && read(&text(&target["src_path"])).contains(CRATE) {
                found.push(Target {
                    package: name.clone(),
                    test: text(&target["name"]),
                });
            }
        }
    }
    found
}

impl Target {
    /// What makes `cargo test` run it alone.
    pub(super) fn arguments(&self) -> [String; 2] {
        let Self { package, test } = self;
        [format!("--package={package}"), format!("--test={test}")]
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.package, self.test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_tests_that_use_the_checker_are_found() {
        let target =
            |kind: &str, name: &str| json!({ "kind": [kind], "name": name, "src_path": name });
        let metadata = json!({ "packages": [
            { "name": "a", "targets": [target("lib", "a"), target("test", "sound"), target("test", "other")] },
            { "name": "b", "targets": [target("test", "sound")] },
        ]});
        let read = |path: &str| match path {
            "sound" | "a" => "use homeostat_testing::Scenario;".to_owned(),
            _ => String::new(),
        };
        let found = |only| {
            let found = targets(&metadata, only, read);
            let found = found.iter().map(ToString::to_string);
            found.collect::<Vec<_>>()
        };
        assert_eq!(found(None), ["a sound", "b sound"]);
        assert_eq!(found(Some("b")), ["b sound"]);
        assert!(found(Some("c")).is_empty());
    }
}

//! Every version of Kubernetes that a program can choose for k8s-openapi.
//!
//! The choice changes types: what is required in one version is optional in the next. So the
//! libraries are compiled with each version.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;

use super::status;
use crate::cargo::cargo;
use crate::tidy::{Graph, is_version, root};

const CRATE: &str = "k8s-openapi";

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let graph = Graph::of_repository(root())?;
    let types = graph.packages.iter().find(|package| package.name == CRATE);
    let types = types.with_context(|| format!("nothing uses {CRATE}"))?;
    let libraries = graph.published_libraries();
    let libraries: Vec<&str> = libraries
        .filter(|library| library.needs(CRATE))
        .flat_map(|library| ["--package", library.name.as_str()])
        .collect();
    for choice in choices(&types.features) {
        let feature = format!("{CRATE}/{choice}");
        println!("{feature}");
        let mut command = cargo(&["check", "--quiet", "--lib", "--features", &feature]);
        let code = status(command.args(&libraries))?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The features to compile with. An alias such as `latest` is taken in place of its version: both
/// compile the same.
fn choices(features: &BTreeMap<String, Vec<String>>) -> Vec<&str> {
    let (versions, aliases): (Vec<_>, Vec<_>) = features
        .iter()
        .filter(|(name, _)| is_version(name))
        .partition(|(_, enabled)| enabled.is_empty());
    let of_an_alias =
        |version: &String| aliases.iter().any(|(_, for_)| **for_ == [version.clone()]);
    let versions = versions.iter().filter(|(name, _)| !of_an_alias(name));
    versions
        .chain(&aliases)
        .map(|(name, _)| name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::choices;

    #[test]
    fn each_version_once() {
        let features = [
            ("default", vec!["std"]),
            ("earliest", vec!["v1_33"]),
            ("latest", vec!["v1_35"]),
            ("schemars", vec!["dep:schemars"]),
            ("v1_33", vec![]),
            ("v1_34", vec![]),
            ("v1_35", vec![]),
        ];
        let features: BTreeMap<String, Vec<String>> = features
            .into_iter()
            .map(|(name, enabled)| {
                (
                    name.to_owned(),
                    enabled.iter().map(ToString::to_string).collect(),
                )
            })
            .collect();
        assert_eq!(choices(&features), ["v1_34", "earliest", "latest"]);
    }
}

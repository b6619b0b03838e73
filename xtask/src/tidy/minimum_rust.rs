//! The oldest Rust that this repository compiles with.
//!
//! Few machines have that toolchain. What can be read off everywhere is what dependencies say of
//! themselves: cargo refuses to build a package with a Rust that is older than it asks for.

use super::tree::{Package, Tree};
use super::{Finding, Rule};

pub(crate) const MINIMUM_RUST: Rule = Rule {
    name: "minimum-rust",
    why: "every package of the repository names the oldest Rust that it compiles with, and no dependency asks for a newer one",
    check: minimum_rust,
};

fn minimum_rust(tree: &Tree) -> Vec<Finding> {
    let finding = |path: String, advice| Finding {
        path,
        line: 1,
        advice,
    };
    let mut findings = Vec::new();
    let mut oldest = None;
    for package in tree.graph.members() {
        if let Some(version) = package.rust_version.as_deref().and_then(parse) {
            oldest = Some(oldest.map_or(version, |oldest| version.min(oldest)));
        } else {
            let manifest = format!("{}/Cargo.toml", tree.graph.folder(package));
            let advice = "say `rust-version.workspace = true`".to_owned();
            findings.push(finding(manifest, advice));
        }
    }
    let Some(oldest) = oldest else {
        return findings;
    };
    for package in &tree.graph.packages {
        let Package {
            name,
            version,
            rust_version,
            source: Some(_),
            ..
        } = package
        else {
            continue;
        };
        if let Some(asked) = rust_version
            && parse(asked).is_none_or(|asked| asked > oldest)
        {
            let advice = format!(
                "{name} {version} asks for Rust {asked}; take an older version of it, or raise \
                 rust-version in Cargo.toml and the README"
            );
            findings.push(finding("Cargo.lock".to_owned(), advice));
        }
    }
    findings
}

/// The numbers of `1.89` or `1.89.0`.
fn parse(version: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let mut parts = version.split('.');
    for (number, part) in numbers.iter_mut().zip(&mut parts) {
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

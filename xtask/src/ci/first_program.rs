//! What a newcomer copies: the dependencies of the README and the first programs of the guide.
//!
//! They become a package of their own, outside of the workspace, so that no feature that other
//! packages enable helps. The versions are those of `Cargo.lock`: nothing is downloaded.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::status;
use crate::cargo::cargo;
use crate::tidy::root;

/// Where the README says that the clone is, seen from the newcomer's package.
const CLONE: &str = "../homeostat";

/// Where each text comes from, and what it is in the package.
const PROGRAMS: &[(&str, &str)] = &[
    ("docs/guide/reconciler.md", "src/main.rs"),
    // An example sees what tests see.
    ("docs/guide/testing.md", "examples/test.rs"),
];

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let read = |path: &str| {
        fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
    };
    let target = root().join("target");
    let package = target.join("first-program");
    let write = |path: &str, text: &str| {
        let path = package.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&package))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let manifest = manifest(&read("README.md")?, root()).context("README.md")?;
    write("Cargo.toml", &manifest)?;
    write("Cargo.lock", &read("Cargo.lock")?)?;
    for (page, file) in PROGRAMS {
        let text = read(page)?;
        let program = blocks(&text, "rust").next();
        write(
            file,
            program.with_context(|| format!("{page} has no program"))?,
        )?;
    }
    let mut check = cargo(&["check", "--quiet", "--offline", "--bins", "--examples"]);
    check.arg("--target-dir").arg(&target);
    status(check.arg("--manifest-path").arg(package.join("Cargo.toml")))
}

/// A package with the dependencies of the README. Those that it takes from a clone come from `clone`.
fn manifest(readme: &str, clone: &Path) -> anyhow::Result<String> {
    let mut all = blocks(readme, "toml").filter(|block| block.starts_with("[dependencies]"));
    let Some(dependencies) = all.next() else {
        bail!("has no block of dependencies");
    };
    let from_clone = format!("\"{CLONE}/");
    if !dependencies.contains(&from_clone) {
        bail!("takes nothing from {CLONE}");
    }
    let clone = clone.to_str().context("the path is not UTF-8")?;
    let dependencies = dependencies.replace(&from_clone, &format!("\"{clone}/"));
    let package = "[package]\nname = \"first-program\"\nversion = \"0.0.0\"\nedition = \"2024\"";
    Ok(format!("{package}\n\n[workspace]\n\n{dependencies}"))
}

/// The code blocks in this language, whatever else is said after its name.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let mut parts = text.split("```").skip(1).step_by(2);
    std::iter::from_fn(move || {
        parts.find_map(|block| {
            let (info, code) = block.split_once('\n')?;
            (info.split(',').next() == Some(language)).then_some(code)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{blocks, manifest};

    const README: &str = "
```rust
fn main() {}
```
```toml
[lints]
```
```toml
[dependencies]
homeostat = { path = \"../homeostat/crates/runtime\" }
kube = \"5\"

[dev-dependencies]
tokio = \"1\"
```
";

    #[test]
    fn the_first_block_of_a_language_is_the_program() {
        let text = "`a`\n```text\nx\n```\nb\n```rust,no_run\ny\nz\n```\n```rust\nw\n```\n";
        let found: Vec<&str> = blocks(text, "rust").collect();
        assert_eq!(found, ["y\nz\n", "w\n"]);
    }

    #[test]
    fn the_manifest_is_the_block_with_another_clone() {
        let expected = "[package]
name = \"first-program\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]

[dependencies]
homeostat = { path = \"/r/crates/runtime\" }
kube = \"5\"

[dev-dependencies]
tokio = \"1\"
";
        let found = manifest(README, Path::new("/r")).expect("it has the block");
        assert_eq!(found, expected);
    }

    #[test]
    fn a_readme_without_dependencies_is_reported() {
        for (readme, complaint) in [
            ("```toml\n[lints]\n```", "has no block of dependencies"),
            (
                "```toml\n[dependencies]\nkube = \"5\"\n```",
                "takes nothing from ../homeostat",
            ),
        ] {
            let error = manifest(readme, Path::new("/r")).expect_err("it lacks something");
            assert_eq!(error.to_string(), complaint);
        }
    }
}

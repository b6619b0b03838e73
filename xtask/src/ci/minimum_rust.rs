//! The libraries with the oldest Rust that they say they compile with.
//!
//! Only the compiler of that version knows for sure. Where it is not installed, two checks are left,
//! which run everywhere: clippy's `incompatible_msrv` knows since when items of the standard library
//! are there, and `cargo xtask tidy` reads what dependencies ask for. Neither knows the language.

use std::ffi::OsStr;
use std::process::{Command, ExitCode};

use super::status;
use crate::tidy::{Graph, Package, root};

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let graph = Graph::of_repository(root())?;
    let installed = installed();
    for library in graph.published_libraries() {
        let Package {
            name, rust_version, ..
        } = library;
        // `cargo xtask tidy` asks for one.
        let wanted = rust_version.as_deref().unwrap_or_default();
        let Some(toolchain) = matching(&installed, wanted) else {
            println!(
                "skipped: no toolchain of Rust {wanted} is installed (`rustup toolchain install \
                 {wanted}`). Its language is not checked; of its standard library, clippy knows \
                 (incompatible_msrv), and of what dependencies ask for, tidy (minimum-rust)."
            );
            return Ok(ExitCode::SUCCESS);
        };
        println!("{name} with {toolchain}");
        let mut command = rustup(["run", toolchain, "cargo", "check", "--quiet", "--lib"]);
        command.args(["--package", name, "--target-dir", "target/minimum-rust"]);
        if library.needs("k8s-openapi") {
            command.args(["--features", "k8s-openapi/latest"]);
        }
        // This program was started by another toolchain, whose compiler these would name.
        for name in ["RUSTC", "RUSTDOC", "CARGO", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        let code = status(&mut command)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn rustup<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("rustup");
    command.args(arguments).current_dir(root());
    command
}

/// The installed toolchains; none where there is no rustup to ask.
fn installed() -> Vec<String> {
    let Ok(output) = rustup(["toolchain", "list", "--quiet"]).output() else {
        return Vec::new();
    };
    let names = String::from_utf8_lossy(&output.stdout);
    names.lines().map(|line| line.trim().to_owned()).collect()
}

/// The toolchain of this version, of any patch level.
fn matching<'a>(installed: &'a [String], version: &str) -> Option<&'a str> {
    let names = installed.iter().map(String::as_str);
    let mut matching = names.filter(|name| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    });
    matching.next()
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn the_toolchain_is_of_that_version() {
        let installed = [
            "stable-x86_64",
            "1.8-x86_64",
            "1.890-x86_64",
            "1.89.0-x86_64",
        ];
        let installed = installed.map(str::to_owned);
        assert_eq!(matching(&installed, "1.89"), Some("1.89.0-x86_64"));
        assert_eq!(matching(&installed, "1.89.0"), Some("1.89.0-x86_64"));
        assert_eq!(matching(&installed, "1.8"), Some("1.8-x86_64"));
        assert_eq!(matching(&installed, "1.90"), None);
        assert_eq!(matching(&["1.89".to_owned()], "1.89"), Some("1.89"));
    }
}

//! Playing the recorded cases against the embedded API server.

use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cargo::{cargo, exit_code};

/// Arguments of `cargo xtask conformance`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The folder with the cases, as `<area>/<case>.json` [default: those of the repository]
    dir: Option<PathBuf>,
    /// Play them against this server only, which listens on plain HTTP and serves `/debug/compact`:
    /// `homeostat dev --debug`
    #[arg(long, value_name = "ADDR:PORT")]
    server: Option<String>,
    /// Only the cases whose area/name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Starts the program that plays them, which is an example of the server's package: nobody who
/// checks or measures something else has to build the server first.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let package = ["run", "--quiet", "--package", "homeostat-apiserver"];
    let mut command = cargo(&package);
    command.args(["--example", "conformance", "--"]);
    command.args(arguments(args)?);
    let status = command.status().context("cannot start cargo")?;
    Ok(exit_code(status))
}

/// The arguments of the program, which runs in another folder.
fn arguments(args: &Args) -> anyhow::Result<Vec<OsString>> {
    let Args { dir, server, only } = args;
    let mut arguments = Vec::new();
    for (option, value) in [("--server", server), ("--only", only)] {
        if let Some(value) = value {
            arguments.extend([option.into(), value.into()]);
        }
    }
    if let Some(dir) = dir {
        let name = |dir: &Path| format!("{} is no folder that can be read", dir.display());
        arguments.push(absolute(dir).with_context(|| name(dir))?.into());
    }
    Ok(arguments)
}

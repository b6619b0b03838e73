//! What a manager costs.

use std::process::Command;

use crate::cargo::cargo;

/// Arguments of the benchmarks of a manager.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Print one JSON object, of which `holds` says whether the figures are as they are to be
    #[arg(long)]
    json: bool,
}

/// The program that measures `subject`.
pub(super) fn command(subject: &str, args: &Args) -> Command {
    // What holds without optimisation holds with it, and this is built already where tests were.
    let mut command = cargo(&[
        "bench",
        "--quiet",
        "--profile=dev",
        "--package=homeostat",
        "--features=metrics,tls",
        "--bench=manager",
        "--",
        subject,
    ]);
    if args.json {
        command.arg("--json");
    }
    command
}

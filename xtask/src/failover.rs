//! Hand-overs between processes, in real time.

use std::process::ExitCode;

use anyhow::Context;

use crate::cargo::{cargo, exit_code};

/// Arguments of `cargo xtask failover`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print one JSON object, with `converged`, `doubled` (writes of an old leader after the first of the new one),
    /// `lost` (sites that are not as they should be at the end), `handover_s` (the longest time from a signal until
    /// another operator's first write; null if there was none), and what it was measured with
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    play(args.json, &[])
}

/// Plays it, or what these arguments ask for.
pub(crate) fn play(json: bool, arguments: &[&str]) -> anyhow::Result<ExitCode> {
    // Optimised: an API server that is not is too slow for so many changes on two processors.
    let mut command = cargo(&[
        "bench",
        "--quiet",
        "--package=website",
        "--bench=failover",
        "--",
    ]);
    command.args(arguments);
    if json {
        command.arg("--json");
    }
    Ok(exit_code(command.status().context("cannot start cargo")?))
}

//! Outages over real sockets and in real time.

use std::process::ExitCode;

use anyhow::Context;

use crate::cargo::{cargo, exit_code};

/// Arguments of `cargo xtask outage`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print one JSON object per kind of outage, with `kind`, `recovered_s` (how long after its end all 5,000 objects
    /// were well; null if they were not), `sockets` (the most that were open at once) and `peak_mb`
    #[arg(long)]
    json: bool,
    /// Use kube's client as it is, to see the difference
    #[arg(long)]
    kube_client: bool,
}

/// Plays the outages.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // What it waits for is time, not the processor, so it need not be optimised.
    let mut command = cargo(&[
        "bench",
        "--quiet",
        "--profile=dev",
        "--package=homeostat",
        "--bench=outage",
        "--",
    ]);
    if args.json {
        command.arg("--json");
    }
    if args.kube_client {
        command.arg("--kube-client");
    }
    Ok(exit_code(command.status().context("cannot start cargo")?))
}

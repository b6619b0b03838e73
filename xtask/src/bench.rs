//! Benchmarks.

use std::process::{Command, ExitCode};

use anyhow::Context;

mod queue;

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand, Debug)]
enum Subject {
    /// Time per operation of the queue, for several numbers of keys
    Queue(queue::Args),
}

/// Runs a benchmark. A debug build starts the release build with the same arguments.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
            .args(std::env::args_os().skip(1))
            .status()
            .context("cannot start cargo")?;
        return Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    match &args.subject {
        Subject::Queue(args) => queue::run(args),
    }
    Ok(ExitCode::SUCCESS)
}

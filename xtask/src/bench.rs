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
    /// What it costs that a controller knows the writes of its reconciles
    Writes,
}

/// Runs a benchmark. A debug build starts the release build with the same arguments.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.subject {
        // A program of its own, so that this one stays quick to build.
        Subject::Writes => cargo(&["bench", "--quiet", "--package=homeostat", "--bench=writes"]),
        Subject::Queue(_) if cfg!(debug_assertions) => {
            let arguments = std::env::args().skip(1);
            let run = ["run", "--quiet", "--release", "--package", "xtask", "--"];
            let command: Vec<String> = run
                .map(str::to_owned)
                .into_iter()
                .chain(arguments)
                .collect();
            cargo(&command)
        }
        Subject::Queue(args) => {
            queue::run(args);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn cargo(arguments: &[impl AsRef<std::ffi::OsStr>]) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(arguments).status();
    let status = status.context("cannot start cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

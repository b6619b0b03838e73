//! Benchmarks.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::cargo::{cargo, exit_code};

mod check;
mod manager;
mod queue;

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Option<Subject>,
    /// Every scenario: one object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Subject {
    /// Time per operation of the queue, for several numbers of keys
    Queue(queue::Args),
    /// How many plans per second and core the checker runs on examples/website
    Check(check::Args),
    /// What it costs that a controller knows the writes of its reconciles
    Writes,
    /// How long a scrape of `/metrics` takes with 100,000 objects, and how many series it has
    Scrape(manager::Args),
    /// How much a manager with 10,000 converged objects works, and what it asks the server for, in 30 s
    Idle(manager::Args),
    /// How much more memory three controllers of one kind and five of Secrets have than one of each, and how many watches
    Shared(manager::Args),
    /// Requests per second and p99 of the embedded API server, and the memory of many objects
    #[command(disable_help_flag = true)]
    Apiserver(Passed),
    /// CPU, memory and latency of a controller next to one of `kube::runtime`: `SCENARIO... [--json] [--rounds N]`
    #[command(external_subcommand)]
    Compare(Vec<OsString>),
}

/// Arguments for a benchmark that is a program of its own: nobody who checks or measures something
/// else has to build what it measures.
#[derive(clap::Args, Debug)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs a benchmark.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.subject {
        None => compare(&["--json"][..usize::from(args.json)]),
        Some(Subject::Compare(words)) => compare(words),
        Some(Subject::Queue(_)) if cfg!(debug_assertions) => {
            let mut command = cargo(&["run", "--quiet", "--release", "--package=xtask", "--"]);
            command.args(std::env::args_os().skip(1));
            finish(command)
        }
        Some(Subject::Queue(args)) => {
            queue::run(args);
            Ok(ExitCode::SUCCESS)
        }
        Some(Subject::Check(args)) => check::run(args),
        Some(Subject::Writes) => finish(cargo(&[
            "bench",
            "--quiet",
            "--package=homeostat",
            "--bench=writes",
        ])),
        Some(Subject::Scrape(args)) => finish(manager::command("scrape", args)),
        Some(Subject::Idle(args)) => finish(manager::command("idle", args)),
        Some(Subject::Shared(args)) => finish(manager::command("shared", args)),
        Some(Subject::Apiserver(Passed { arguments })) => {
            let package = "--package=homeostat-apiserver";
            let mut command = cargo(&["bench", "--quiet", package, "--bench=server", "--"]);
            command.args(arguments);
            finish(command)
        }
    }
}

/// Runs scenarios with homeostat and with `kube::runtime`. A word that names none prints their names.
fn compare<S: AsRef<OsStr>>(words: &[S]) -> anyhow::Result<ExitCode> {
    let package = "--package=bench";
    let mut command = cargo(&["bench", "--quiet", package, "--bench=compare", "--"]);
    command.args(words);
    finish(command)
}

fn finish(mut command: Command) -> anyhow::Result<ExitCode> {
    Ok(exit_code(command.status().context("cannot start cargo")?))
}

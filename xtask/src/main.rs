//! Checks and benchmarks of this repository.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool reports on its standard streams"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod cargo;
mod ci;
mod conformance;
mod failover;
mod mutants;
mod new_project;
mod outage;
mod shards;
mod tidy;

/// Checks and benchmarks of this repository.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Check the rules of this repository that no compiler knows, see `cargo xtask tidy --help`
    #[command(long_about = tidy::help())]
    Tidy,
    /// Run every check that a change must pass, in order, until one fails
    #[command(long_about = ci::help())]
    Ci(ci::Args),
    /// Play recorded requests against the embedded API server, in process and over HTTP
    ///
    /// Prints each case that fails with the reason, then `N passed, N failed` for each way to play
    /// them. Ends with status 1 if a case fails of which DIFFERENCES.md does not say why.
    Conformance(conformance::Args),
    /// Measure
    Bench(bench::Args),
    /// Play 30 s of 503, and 30 s of accepted connections without an answer, against a controller of 5,000 objects
    ///
    /// Over real sockets and in real time, so it takes a bit more than a minute.
    Outage(outage::Args),
    /// Kill the leader of two operators, and pause the next one, while 200 changes are made a second
    ///
    /// Real processes over HTTP, in real time: it takes about 40 s. Ends with status 1 if something was lost or done twice.
    Failover(failover::Args),
    /// Let three operators share the sites, kill one, let another one come, and pause one, while 200 changes are made a second
    ///
    /// Real processes over HTTP, in real time: it takes about 75 s. Ends with status 1 if something was lost, or was done by
    /// two.
    Shards(shards::Args),
    /// Turn each comparison in the state machine of leases, and see whether its tests notice
    ///
    /// It works on a copy of the repository, in `target/mutants`, and takes some minutes. Ends with status 1 if a mutant
    /// survives.
    Mutants(mutants::Args),
    /// Make projects with `homeostat new` in a temporary folder, test them, start them, and see them reconcile
    ///
    /// It takes some minutes, most of it to build what they depend on with the features that they want. Ends with status 1
    /// if something does not work.
    NewProject(new_project::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().command {
        Command::Tidy => tidy::run(),
        Command::Ci(args) => ci::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Outage(args) => outage::run(&args),
        Command::Failover(args) => failover::run(&args),
        Command::Shards(args) => shards::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::NewProject(args) => new_project::run(&args),
    }
}

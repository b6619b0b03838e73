//! The `homeostat` command.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to people on its standard streams"
)]

mod demo;

use clap::{Parser, Subcommand};
use std::{ffi::OsString, process::ExitCode};
use tracing_subscriber::EnvFilter;

/// A controller runtime for Kubernetes: see it at work.
#[derive(Parser, Debug)]
#[command(name = "homeostat", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Watch a sample operator converge on an embedded API server
    Demo(demo::Args),
}

fn main() -> ExitCode {
    let Args { command } = Args::parse_from(without_separator(std::env::args_os()));
    // Silent unless RUST_LOG asks for more; what a command has to say it says itself.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match command {
        Command::Demo(args) => demo::run(args),
    }
}

/// `cargo demo -- --json` is `homeostat demo -- --json`, with a `--` that people mean for cargo.
fn without_separator(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let args = args.enumerate();
    args.filter(|(place, arg)| !(*place == 2 && arg == "--"))
        .map(|(_, arg)| arg)
}

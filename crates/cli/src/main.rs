//! The `homeostat` command.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to people on its standard streams"
)]

mod check;
mod demo;
mod dev;
mod failure;
mod file;
mod new;
mod rbac;
mod why;

use clap::{Parser, Subcommand};
use std::{ffi::OsString, io::IsTerminal, process::ExitCode};
use tracing_subscriber::EnvFilter;

/// A controller runtime for Kubernetes: see it at work, make operators, check them, ask them, and develop against an
/// API server.
#[derive(Parser, Debug)]
#[command(name = "homeostat", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Check(check::Args),
    Demo(demo::Args),
    Dev(dev::Args),
    New(new::Args),
    Rbac(rbac::Args),
    Why(why::Args),
}

fn main() -> ExitCode {
    let Args { command } = Args::parse_from(without_separator(std::env::args_os()));
    log(match &command {
        Command::Check(_)
        | Command::Demo(_)
        | Command::New(_)
        | Command::Rbac(_)
        | Command::Why(_) => None,
        Command::Dev(args) => args.log_directive(),
    });
    match command {
        Command::Check(args) => check::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Dev(args) => dev::run(args),
        Command::New(args) => new::run(args),
        Command::Rbac(args) => rbac::run(&args),
        Command::Why(args) => why::run(&args),
    }
}

/// Silent unless `RUST_LOG` asks for more, or the command; what it has to say it says itself.
fn log(directive: Option<&str>) {
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    if let Some(directive) = directive.and_then(|directive| directive.parse().ok()) {
        filter = filter.add_directive(directive);
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(homeostat::clock::Timer)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// `cargo demo -- --json` is `homeostat demo -- --json`, with a `--` that people mean for cargo.
fn without_separator(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let args = args.enumerate();
    args.filter(|(place, arg)| !(*place == 2 && arg == "--"))
        .map(|(_, arg)| arg)
}

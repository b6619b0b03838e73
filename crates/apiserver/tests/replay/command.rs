//! Plays the recorded cases in process and over HTTP, and prints what differs.
//!
//! `cargo xtask conformance` starts this.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool reports on its standard streams"
)]

mod arms;
mod bindings;
mod compare;
mod corpus;
mod player;
mod stage;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use arms::Outcomes;
use clap::Parser;

/// Play the recorded cases in process and over HTTP, and print what differs.
///
/// Prints each case that fails with the reason, then `N passed, N failed` for each way to play them.
/// Ends with status 1 if a case fails of which DIFFERENCES.md does not say why.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask conformance", bin_name = "cargo xtask conformance")]
struct Args {
    /// The folder with the cases, as `<area>/<case>.json` [default: those of the repository]
    dir: Option<PathBuf>,
    /// Play them against this server, which listens on plain HTTP and serves `/debug/compact`:
    /// `homeostat dev --debug`
    #[arg(long, value_name = "ADDR:PORT")]
    server: Option<SocketAddr>,
    /// Only the cases whose area/name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("cargo xtask conformance: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything passed that has to.
fn run(args: Args) -> Result<bool, String> {
    let Args { dir, server, only } = args;
    let mut cases = corpus::cases(&dir.unwrap_or_else(corpus::directory))?;
    cases.retain(|name, _| only.as_ref().is_none_or(|part| name.contains(part)));
    let differences = corpus::differences()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    if let Some(address) = server {
        // `homeostat dev` puts nothing into namespaces.
        let outcomes = runtime.block_on(arms::over_http(address, false, &cases));
        return Ok(report(&address.to_string(), &outcomes, &differences));
    }
    let passed = report("in process", &arms::in_process(&cases), &differences);
    let over_http = runtime.block_on(arms::on_a_socket(&cases))?;
    Ok(report("over HTTP", &over_http, &differences) && passed)
}

/// Prints what failed, and how many. Answers whether all did that have to.
fn report(arm: &str, outcomes: &Outcomes, differences: &BTreeSet<String>) -> bool {
    let (mut passed, mut failed, mut different) = (0, 0, 0);
    for (name, outcome) in outcomes {
        match outcome {
            Ok(()) => passed += 1,
            Err(_) if differences.contains(name) => different += 1,
            Err(why) => {
                failed += 1;
                println!("{arm}: {name}: {why}");
            }
        }
    }
    let explained = match different {
        0 => String::new(),
        count => format!(", {count} differ as DIFFERENCES.md says"),
    };
    println!("{arm}: {passed} passed, {failed} failed{explained}");
    failed == 0
}

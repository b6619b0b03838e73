//! How fast the server answers, and how much memory its objects take.
//!
//! `cargo xtask bench apiserver` starts this.

#![expect(
    clippy::print_stdout,
    reason = "a command line tool reports on its standard streams"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says so by a panic"
)]

mod definitions;
mod memory;
mod patterns;
mod requests;
mod watchers;
mod way;

use std::process::Command;
use std::time::Duration;

use clap::Parser;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use way::Way;

/// How fast the API server answers, and how much memory its objects take.
///
/// In process, everything runs on one thread. Over loopback, client and server have a thread each,
/// and requests come on several connections.
#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask bench apiserver",
    bin_name = "cargo xtask bench apiserver"
)]
struct Args {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Measure only this
    #[arg(long, value_name = "OPERATION")]
    only: Option<String>,
    /// Measure in process only
    #[arg(long)]
    in_process: bool,
    /// Requests of each kind; of lists a thousandth of that
    #[arg(long, default_value_t = 50_000)]
    requests: usize,
    /// What `cargo bench` says to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) way: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) per_second: f64,
    pub(crate) p99: Duration,
    /// What is wanted: so many per second at least, or so long at most.
    pub(crate) target: Option<Target>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    PerSecond(f64),
    P99(Duration),
}

/// The number of objects of which a list is measured.
const LISTED: usize = 10_000;

fn main() {
    let args = Args::parse();
    if args.only.as_deref() == Some(memory::CHILD) {
        memory::measure();
        return;
    }
    if args.only.as_deref() == Some(definitions::CHILD) {
        definitions::measure_memory();
        return;
    }
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
    let ways: &[fn() -> _] = &[Way::in_process, Way::over_loopback];
    for way in &ways[..if args.in_process { 1 } else { ways.len() }] {
        for (operation, measure) in requests::OPERATIONS {
            if wanted(operation) {
                report(
                    &args,
                    &single_thread().block_on(async { measure(way().await, args.requests).await }),
                );
            }
        }
        if wanted(watchers::OPERATION) {
            report(
                &args,
                &single_thread().block_on(async { watchers::measure(way().await).await }),
            );
        }
    }
    if wanted(definitions::OPERATION) && !args.in_process {
        let measuring = async { definitions::measure(Way::over_loopback().await).await };
        report(&args, &single_thread().block_on(measuring));
    }
    if wanted(patterns::OPERATION) && !args.in_process {
        let measuring = async { patterns::measure(Way::over_loopback().await).await };
        for figure in single_thread().block_on(measuring) {
            report(&args, &figure);
        }
    }
    if wanted("memory") {
        memory::report(&child(memory::CHILD), memory::MAPS, args.json);
    }
    if wanted("definitions") {
        let what = memory::What {
            operation: "definitions",
            objects: definitions::COUNT,
            of: "definitions of 30 KB and more",
            most: definitions::MOST,
        };
        memory::report(&child(definitions::CHILD), what, args.json);
    }
}

/// What a measurement prints that runs in a process of its own.
fn child(only: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--only", only]);
    String::from_utf8(child.output().unwrap().stdout).unwrap()
}

pub(crate) fn single_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn report(args: &Args, figure: &Figure) {
    let Figure {
        way,
        operation,
        per_second,
        p99,
        target,
    } = figure;
    let p99_us = p99.as_secs_f64() * 1e6;
    let (wanted, met) = match target {
        None => (String::new(), true),
        Some(Target::PerSecond(least)) => (format!(">= {least}/s"), per_second >= least),
        Some(Target::P99(most)) => (format!("< {most:?}"), p99 < most),
    };
    if args.json {
        let mut line = json!({
            "way": way,
            "operation": operation,
            "per_second": per_second.round(),
            "p99_us": (p99_us * 10.0).round() / 10.0,
        });
        if target.is_some() {
            line["target"] = json!(wanted);
            line["met"] = json!(met);
        }
        println!("{line}");
    } else {
        let verdict = match (target, met) {
            (None, _) => "",
            (Some(_), true) => "met",
            (Some(_), false) => "MISSED",
        };
        println!(
            "{way:14} {operation:12} {per_second:>10.0}/s   p99 {p99_us:>10.1} us   {wanted} {verdict}"
        );
    }
}

//! What a manager costs: at a scrape, at rest, and for each further controller of the same kinds. `cargo xtask bench
//! scrape`, `idle` and `shared` run it.

#![expect(clippy::print_stdout, reason = "it reports on its standard output")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "it cannot go on then")]

mod idle;
mod process;
mod scrape;
mod server;
mod shared;

use serde_json::Value;
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().filter(|word| !word.starts_with("--"));
    let subject = words.next().map_or("", String::as_str);
    let rest: Vec<&str> = words.map(String::as_str).collect();
    let runtime = Runtime::new().unwrap();
    let report = match subject {
        "scrape" => runtime.block_on(scrape::measure()),
        "idle" => runtime.block_on(idle::measure()),
        "shared" => runtime.block_on(shared::measure()),
        // The processes that they start.
        "server" => {
            runtime.block_on(server::run(&rest));
            return ExitCode::SUCCESS;
        }
        "controllers" => {
            runtime.block_on(shared::run(&rest));
            return ExitCode::SUCCESS;
        }
        other => panic!("{other:?} is none of scrape, idle and shared"),
    };
    if arguments.iter().any(|argument| argument == "--json") {
        println!("{report}");
    } else {
        print(&report);
    }
    // What the figures must be is a part of them.
    if report["holds"] == true {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print(report: &Value) {
    for (name, value) in report.as_object().unwrap() {
        println!("{name:>16}: {value}");
    }
}

/// With two decimals.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

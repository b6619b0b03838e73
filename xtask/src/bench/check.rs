//! How many plans a second the checker runs.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};

use crate::cargo::{cargo, exit_code};
use crate::tidy;

/// Arguments of `cargo xtask bench check`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Build without optimization, as `cargo test` does
    #[arg(long)]
    debug: bool,
}

/// The test that is measured.
const TEST: &str = "it_converges_whatever_happens";

/// The folder of the report, in the one of builds.
const FOLDER: &str = "target/bench-check";

pub(super) fn run(Args { json, debug }: &Args) -> anyhow::Result<ExitCode> {
    let folder = tidy::root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut command = cargo(&["test", "--quiet", "--package=website", "--test=sound", TEST]);
    if !debug {
        command.arg("--release");
    }
    let output = command.env("HOMEOSTAT_SAVE", &folder).output()?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        eprint!("{}", String::from_utf8_lossy(&output.stdout));
        return Ok(exit_code(output.status));
    }
    let path = folder.join(format!("{TEST}.json"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let figures = figures(&serde_json::from_str(&text)?);
    if *json {
        println!("{figures}");
    } else {
        println!(
            "examples/website: {} plans in {:.1} s on {} threads, {:.0} plans per second and core",
            figures["plans"],
            figures["seconds"].as_f64().unwrap_or_default(),
            figures["threads"],
            figures["plans_per_second_per_core"]
                .as_f64()
                .unwrap_or_default(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be told of a report.
fn figures(report: &Value) -> Value {
    let plans = report["plans"]["run"].as_f64().unwrap_or_default();
    let seconds = report["seconds"].as_f64().unwrap_or_default();
    let threads = report["threads"].as_f64().unwrap_or(1.0);
    json!({
        "example": "website",
        "plans": report["plans"]["run"],
        "sound": report["sound"],
        "seconds": seconds,
        "threads": report["threads"],
        "plans_per_second_per_core": plans / seconds / threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_one_thread() {
        let report =
            json!({ "plans": { "run": 600 }, "seconds": 3.0, "threads": 2, "sound": true });
        assert_eq!(figures(&report)["plans_per_second_per_core"], 100.0);
    }
}

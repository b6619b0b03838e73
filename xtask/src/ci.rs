//! Every check that a change must pass, one after the other.

use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;

use crate::cargo::{cargo, exit_code};
use crate::tidy;

mod alone;
mod browser;
mod first_program;
mod minimum_rust;
#[cfg(test)]
mod tests;
mod versions;

/// One check.
struct Step {
    name: &'static str,
    run: Run,
}

enum Run {
    /// The rules of the repository, in this process.
    Tidy,
    /// Cargo with these arguments and environment.
    Cargo(
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
    ),
    /// As `Cargo` several times, with what only this program knows; this is what people read.
    Each(&'static str, fn() -> anyhow::Result<ExitCode>),
    /// As `Cargo`, where this subcommand is installed.
    Installed(&'static [&'static str]),
    /// As `Cargo`, and what it prints must be the report of a demo that went well.
    Demo(&'static [&'static str]),
}

/// What is cheap and fails often comes first.
const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        run: Run::Cargo(&["fmt", "--all", "--check"], &[]),
    },
    Step {
        name: "tidy",
        run: Run::Tidy,
    },
    Step {
        name: "clippy",
        run: Run::Cargo(
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
            &[],
        ),
    },
    Step {
        name: "versions",
        run: Run::Each(
            "cargo check --lib, of the libraries with each version of k8s-openapi",
            versions::run,
        ),
    },
    Step {
        name: "minimum-rust",
        run: Run::Each(
            "cargo check --lib, of each library, with the Rust of `rust-version` if it is installed",
            minimum_rust::run,
        ),
    },
    Step {
        name: "alone",
        run: Run::Each(
            "cargo check --lib and cargo doc --no-deps, for each library alone, as docs.rs does",
            alone::run,
        ),
    },
    Step {
        name: "first-program",
        run: Run::Each(
            "cargo check, of the guide's first programs with the README's dependencies",
            first_program::run,
        ),
    },
    Step {
        name: "test",
        run: Run::Cargo(&["test", "--workspace"], &[]),
    },
    Step {
        name: "browser",
        run: Run::Each(
            "cargo test --package=homeostat --features=metrics --test=browser, where Chromium and Node.js are installed",
            browser::run,
        ),
    },
    Step {
        name: "doc",
        run: Run::Cargo(
            &["doc", "--workspace", "--no-deps"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        ),
    },
    // Known vulnerabilities are left out: they would fail a commit that passed the day before.
    Step {
        name: "deny",
        run: Run::Installed(&["deny", "check", "bans", "licenses", "sources"]),
    },
    Step {
        name: "demo",
        run: Run::Demo(&["demo", "--", "--json"]),
    },
];

/// Arguments of `cargo xtask ci`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only these checks
    #[arg(value_name = "CHECK", value_parser = STEPS.iter().map(|step| step.name).collect::<Vec<_>>())]
    only: Vec<String>,
}

/// Runs the steps until one fails, and ends with the status of that one.
///
/// # Errors
///
/// When a step cannot be started at all.
pub(crate) fn run(Args { only }: &Args) -> anyhow::Result<ExitCode> {
    let begin = now();
    let asked = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    for step in STEPS.iter().filter(asked) {
        println!("\n== {}: {}", step.name, step.run.command_line());
        let step_begin = now();
        let status = step
            .run
            .run()
            .with_context(|| format!("cannot run {}", step.name))?;
        let seconds = step_begin.elapsed().as_secs_f32();
        if status != ExitCode::SUCCESS {
            println!("== {}: failed after {seconds:.1} s", step.name);
            return Ok(status);
        }
        println!("== {}: {seconds:.1} s", step.name);
    }
    println!(
        "\n== all of it passed in {:.1} s",
        begin.elapsed().as_secs_f32()
    );
    Ok(ExitCode::SUCCESS)
}

/// The help text of `cargo xtask ci`.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Run every check that a change must pass, in order, until one fails.\n\n\
         Ends with the status of the check that failed.\n\nChecks:",
    );
    for Step { name, run } in STEPS {
        write!(text, "\n  {name}: {}", run.command_line()).expect("a string takes any text");
    }
    text
}

#[expect(
    clippy::disallowed_types,
    reason = "how long a check takes is told to people only"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

// === impl Run ===

impl Run {
    fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Tidy => tidy::run(),
            Self::Each(_, run) => run(),
            Self::Cargo(args, env) => status(cargo(args).envs(env.iter().copied())),
            Self::Installed(args) => {
                let silent = cargo(&[args[0], "--version"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()?;
                if silent.success() {
                    return status(&mut cargo(args));
                }
                println!("skipped: cargo-{} is not installed", args[0]);
                Ok(ExitCode::SUCCESS)
            }
            Self::Demo(args) => {
                let output = cargo(args).stderr(Stdio::inherit()).output()?;
                let report = String::from_utf8_lossy(&output.stdout);
                print!("{report}");
                if !output.status.success() {
                    return Ok(exit_code(output.status));
                }
                Ok(match verdict(&report) {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(complaint) => {
                        println!("{complaint}");
                        ExitCode::FAILURE
                    }
                })
            }
        }
    }

    /// What a person would type.
    fn command_line(&self) -> String {
        match self {
            Self::Tidy => "cargo xtask tidy".to_owned(),
            Self::Each(description, _) => (*description).to_owned(),
            Self::Cargo(args, env) => {
                let mut words: Vec<String> = env
                    .iter()
                    .map(|(name, value)| format!("{name}='{value}'"))
                    .collect();
                words.push("cargo".to_owned());
                words.extend(args.iter().map(|&arg| arg.to_owned()));
                words.join(" ")
            }
            Self::Installed(args) | Self::Demo(args) => format!("cargo {}", args.join(" ")),
        }
    }
}

fn status(command: &mut Command) -> anyhow::Result<ExitCode> {
    Ok(exit_code(command.status()?))
}

/// What is wrong with the report of the demo.
fn verdict(report: &str) -> Result<(), String> {
    let report: serde_json::Value = serde_json::from_str(report)
        .map_err(|error| format!("the report of the demo is not one JSON value: {error}"))?;
    let expected = [
        ("converged", serde_json::json!(true)),
        ("writes_after_convergence", 0.into()),
    ];
    for (name, value) in expected {
        match report.get(name) {
            Some(found) if *found == value => {}
            Some(found) => return Err(format!("the demo reports {name}: {found}, not {value}")),
            None => return Err(format!("the demo does not report {name}")),
        }
    }
    Ok(())
}

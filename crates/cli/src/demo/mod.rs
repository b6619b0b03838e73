//! `homeostat demo`: a sample operator converges on an embedded API server, step by step.

mod journal;
mod manifest;
mod narrator;
mod replica;
mod report;
mod scenario;
mod stage;
mod witness;

use self::{narrator::Narrator, report::Report, stage::Stage};
use crate::failure::Failure;
use std::{path::PathBuf, process::ExitCode};
use website::Website;

/// Arguments of `homeostat demo`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Watch a sample operator converge on an embedded API server",
    long_about = "Starts an embedded Kubernetes API server, installs the Website resource, runs the sample \
    operator of examples/website, and drives it through a story: children are created, a spec changes, an external \
    dependency fails and recovers, a spec that cannot be made true waits, a deleted child comes back, a site is \
    deleted through its finalizer, the operator's other replica takes over, and a hundred forced reconciles write nothing.\n\n\
    Exit status: 0 if everything converged, 1 if not, 2 for a bad argument or manifest."
)]
pub(crate) struct Args {
    /// Print the summary as one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Leave the server and the operator up afterwards, and tell how to reach them with kubectl
    #[arg(long)]
    keep: bool,
    /// The Website to begin with, as YAML or JSON [default: examples/website/site.yaml]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// How to go on.
const NEXT: &str = "\nHow to go on:
   homeostat demo --keep   plays this again, and leaves the server and the operator up for kubectl
   homeostat dev           starts an empty API server for an operator of your own
   examples/website        is the operator of this story, to read and to copy
   docs/guide              explains what it does, from reconciler.md on";

pub(crate) fn run(args: Args) -> ExitCode {
    let Args {
        json,
        keep,
        manifest,
    } = args;
    let site = match manifest::read(manifest.as_deref()) {
        Ok(site) => site,
        Err(problem) => return Failure::Usage(problem).report("demo"),
    };
    let narrator = if json {
        Narrator::silent()
    } else {
        Narrator::on_terminal()
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failure::Other(format!("cannot start a runtime: {error}")).report("demo");
        }
    };
    runtime.block_on(play(site, keep, json, narrator))
}

async fn play(site: Website, keep: bool, json: bool, narrator: Narrator) -> ExitCode {
    let stage = match Stage::build(site, narrator.clone()).await {
        Ok(stage) => stage,
        Err(problem) => return Failure::Other(problem).report("demo"),
    };
    let outcome = scenario::play(&stage).await;
    let report = Report::new(&stage, &outcome);
    if json {
        println!("{}", report.json());
    } else {
        narrator.summary(report.converged(), &report);
        if !keep {
            narrator.line(NEXT);
        }
    }
    if let Err(problem) = &outcome {
        eprintln!("homeostat demo: {problem}");
    }
    if keep && let Err(problem) = stage.keep().await {
        return Failure::Other(problem).report("demo");
    }
    if report.converged() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

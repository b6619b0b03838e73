//! `homeostat check`: runs the checker's tests of a project, and tells how far they are and what they found.

mod progress;
mod targets;

pub(crate) use self::targets::cargo;
use self::{
    progress::Progress,
    targets::{Target, find},
};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};
use tokio::process::Command;

/// Arguments of `homeostat check`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Check that the operators of this project converge, whatever happens in between",
    long_about = "Runs the tests of this project that use homeostat-testing: each operator is run under crashes, \
    failed requests, lost answers, old caches, deletions and edits, in virtual time. Tells how far it is, and prints \
    the report of each test.\n\n\
    Exit status: 0 if all are sound, 1 if not or if a test fails, 2 for a bad argument or if there is no such test.",
    after_long_help = "Examples:
  homeostat check                        all checks of the project in this folder
  homeostat check it_is_sound            the tests with this in their name
  homeostat check -p website --json      one package, the report for programs
  homeostat check --budget 100           the 100 simplest plans of each
  homeostat check --seeds 1000           1,000 seeds with some plans each, in place of one with all
  homeostat check --save target/check    keep the reports, and the whole log of each fault
  homeostat check it_is_sound --replay '1:crash-after=10007'
                                         repeat what a report tells, with its whole log"
)]
pub(crate) struct Args {
    /// Only tests with this in their name
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// Only this package
    #[arg(short, long, value_name = "NAME")]
    package: Option<String>,
    /// The project's Cargo.toml [default: the one of this folder or above]
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,
    /// Build with optimization
    #[arg(long)]
    release: bool,
    /// The most plans of each check
    #[arg(long, value_name = "PLANS")]
    budget: Option<u64>,
    /// Where everything random comes from
    #[arg(long, value_name = "SEED", conflicts_with = "replay")]
    seed: Option<u64>,
    /// Try this many seeds, with some plans each
    #[arg(long, value_name = "COUNT", conflicts_with = "replay")]
    seeds: Option<u64>,
    /// Run only this plan, as a report prints it
    #[arg(long, value_name = "SEED:PLAN")]
    replay: Option<String>,
    /// Keep reports and logs in this folder
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
}

/// How often progress is looked at.
const GLANCE: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(check(args)),
        Err(error) => Err(Failure::Other(format!("cannot start a runtime: {error}"))),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report("check"),
    }
}

async fn check(args: &Args) -> Result<ExitCode, Failure> {
    let targets = find(args.manifest_path.as_deref(), args.package.as_deref()).await?;
    if targets.is_empty() {
        let text = "no test of this project uses homeostat_testing; docs/guide/testing.md shows how to write one";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut reports = Vec::new();
    let mut failed = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let folder = folder(args, index);
        let output = test(args, target, &folder).await?;
        let found = read(&folder)?;
        let is_told = found.iter().any(|(report, _)| report["sound"] == false);
        if !output.is_empty() && !is_told {
            eprint!("{output}");
        }
        if !output.is_empty() {
            failed.push(target.to_string());
        }
        if !args.json {
            for (report, text) in &found {
                println!("== {}\n{text}", report["test"].as_str().unwrap_or_default());
            }
        }
        reports.extend(found.into_iter().map(|(report, _)| report));
        if args.save.is_none() {
            // It is the system's to remove otherwise.
            let _ = fs::remove_dir_all(&folder);
        }
    }
    if reports.is_empty() && failed.is_empty() {
        return Err(Failure::Usage("no check has this name".to_owned()));
    }
    let is_sound = failed.is_empty() && reports.iter().all(|report| report["sound"] == true);
    if args.json {
        let all = json!({ "sound": is_sound, "failed": failed, "checks": reports });
        println!("{all}");
    }
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where the reports of a target go.
fn folder(args: &Args, index: usize) -> PathBuf {
    let process = std::process::id();
    let base = args
        .save
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("homeostat-check-{process}")));
    let base = std::path::absolute(&base).unwrap_or(base);
    base.join(index.to_string())
}

/// Runs a target's tests. Answers what cargo has printed if they failed.
async fn test(args: &Args, target: &Target, folder: &Path) -> Result<String, Failure> {
    // Of a check before this one.
    let _ = fs::remove_dir_all(folder);
    let mut command = Command::new(cargo());
    command.arg("test").args(target.arguments());
    if let Some(manifest) = &args.manifest_path {
        command.arg("--manifest-path").arg(manifest);
    }
    if args.release {
        command.arg("--release");
    }
    command.args(&args.filter);
    command.env("HOMEOSTAT_SAVE", folder);
    let settings = [
        ("HOMEOSTAT_BUDGET", args.budget.map(|it| it.to_string())),
        ("HOMEOSTAT_SEED", args.seed.map(|it| it.to_string())),
        ("HOMEOSTAT_SEEDS", args.seeds.map(|it| it.to_string())),
        ("HOMEOSTAT_REPLAY", args.replay.clone()),
    ];
    for (name, value) in settings {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let cannot = |error| Failure::Other(format!("cannot run cargo: {error}"));
    let child = command.spawn().map_err(cannot)?;
    let mut progress = Progress::of(target);
    let mut output = Box::pin(child.wait_with_output());
    let output = loop {
        tokio::select! {
            output = &mut output => break output.map_err(cannot)?,
            () = tokio::time::sleep(GLANCE) => progress.show(folder),
        }
    };
    progress.end();
    if output.status.success() {
        return Ok(String::new());
    }
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    let text = [stderr.as_slice(), stdout.as_slice()].concat();
    Ok(format!("{}\n", String::from_utf8_lossy(&text)))
}

/// The reports in a folder, for programs and for people.
fn read(folder: &Path) -> Result<Vec<(Value, String)>, Failure> {
    let mut reports = Vec::new();
    for path in files(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".json")
            || name.ends_with(".log.json")
            || name.ends_with(".progress.json")
        {
            continue;
        }
        let cannot = |error: String| Failure::Other(format!("{}: {error}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| cannot(error.to_string()))?;
        let report = serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))?;
        // The same for people lies beside it.
        let text = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        reports.push((report, text));
    }
    Ok(reports)
}

/// The files of a folder in the order of their names; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

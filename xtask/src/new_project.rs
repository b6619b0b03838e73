//! What a newcomer does: makes the project of an operator, tests it, starts it, changes an object, and sees it reconciled.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::cargo::{cargo, exit_code};
use crate::tidy::root;

/// Arguments of `cargo xtask new-project`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only the project with this name
    #[arg(value_name = "PROJECT", value_parser = PROJECTS.map(|(name, _)| name))]
    only: Option<String>,
}

/// The least that a project has, two in between, and all that one can have.
const PROJECTS: [(&str, &[&str]); 4] = [
    ("plain-operator", &[]),
    ("telling-operator", &["--status"]),
    (
        "cache-operator",
        &[
            "--group=caches.example.com",
            "--finalizer",
            "--status",
            "--owns",
            "ConfigMap",
            "Deployment",
        ],
    ),
    (
        "whole-operator",
        &[
            "--group=a.example.com",
            "--kind=Policy",
            "--version=v1",
            "--status",
            "--finalizer",
            "--owns",
            "ConfigMap",
            "CronJob",
            "Deployment",
            "Secret",
            "Service",
            "ServiceAccount",
            "StatefulSet",
        ],
    ),
];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = std::env::temp_dir().join(format!("homeostat-new-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let outcome = in_folder(args, &folder);
    // What is left behind, the system cleans up.
    drop(fs::remove_dir_all(&folder));
    outcome
}

fn in_folder(args: &Args, folder: &Path) -> anyhow::Result<ExitCode> {
    let built = cargo(&["build", "--quiet", "--package=homeostat-cli"]).status()?;
    if !built.success() {
        return Ok(exit_code(built));
    }
    let is_wanted = |name: &str| args.only.as_ref().is_none_or(|only| only == name);
    for (name, options) in PROJECTS.iter().filter(|(name, _)| is_wanted(name)) {
        println!("== {name}");
        let mut new = Command::new(root().join("target/debug/homeostat"));
        new.current_dir(folder).stdin(Stdio::null());
        new.args(["new", name, "--path"]).arg(root()).args(*options);
        if !new.status()?.success() {
            bail!("homeostat new {name} failed");
        }
        let project = folder.join(name);
        // The versions of the repository: nothing is downloaded, and little is built anew.
        fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock"))?;
        for command in [
            &["fmt", "--check"][..],
            &["test", "--quiet", "--offline"],
            &[
                "clippy",
                "--quiet",
                "--offline",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ] {
            let status = in_project(&project, command).status()?;
            if !status.success() {
                println!("cargo {} failed", command.join(" "));
                return Ok(exit_code(status));
            }
        }
        reconciles(&project).with_context(|| format!("{name} --dev"))?;
    }
    println!("== all of it works");
    Ok(ExitCode::SUCCESS)
}

fn in_project(project: &Path, args: &[&str]) -> Command {
    let mut command = cargo(args);
    command.current_dir(project);
    command.env("CARGO_TARGET_DIR", root().join("target"));
    command
}

/// Starts the operator with `--dev`, changes the sample, and waits until its config map says so.
fn reconciles(project: &Path) -> anyhow::Result<()> {
    let mut command = in_project(project, &["run", "--quiet", "--offline", "--", "--dev"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn()?);
    let stdout = running.0.stdout.take().context("it was asked for")?;
    let mut lines = BufReader::new(stdout).lines();
    let mut said = || lines.next().transpose()?.context("it has ended");
    let url: String = said()?;
    let address = url.strip_prefix("listening on http://");
    let address = address.with_context(|| format!("it says {url:?}"))?;
    // `try: kubectl -s URL get PLURAL`
    let hint: String = said()?;
    let plural = hint.rsplit(' ').next().unwrap_or_default();
    let resource = fs::read_to_string(project.join("sample.yaml"))?;
    let version = resource
        .lines()
        .find_map(|line| line.strip_prefix("apiVersion: "));
    let version = version.context("the sample has no apiVersion")?;

    let path = format!("/apis/{version}/namespaces/default/{plural}/sample");
    let body = r#"{"spec":{"message":"good bye"}}"#;
    let mut patched = String::new();
    ask(address, "PATCH", &path, body)?.read_to_string(&mut patched)?;
    if !patched.contains(" 200 ") {
        bail!("PATCH {path}: {patched}");
    }
    let watch =
        "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dsample";
    for line in BufReader::new(ask(address, "GET", watch, "")?).lines() {
        if line
            .context("the config map does not say what the object says")?
            .contains("good bye")
        {
            return Ok(());
        }
    }
    bail!("the watch has ended")
}

fn ask(address: &str, method: &str, path: &str, body: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nContent-Type: application/merge-patch+json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    Ok(stream)
}

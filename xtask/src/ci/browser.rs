//! The page of a manager in a browser, where there is one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use super::status;
use crate::cargo::cargo;
use crate::tidy::root;

/// The names that Chromium goes by.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Where the test is, and what it needs of other people's.
const FOLDER: &str = "crates/runtime/tests/browser";
const PACKAGES: &[&str] = &["package.json", "package-lock.json"];

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let (Some(browser), Some(_)) = (BROWSERS.iter().find_map(|it| program(it)), program("node"))
    else {
        println!("skipped: Chromium and Node.js are not both installed");
        return Ok(ExitCode::SUCCESS);
    };
    let folder = root().join("target/browser");
    let shots = folder.join("screenshots");
    fs::create_dir_all(&shots).with_context(|| shots.display().to_string())?;
    for name in PACKAGES {
        let from = root().join(FOLDER).join(name);
        fs::copy(&from, folder.join(name)).with_context(|| from.display().to_string())?;
    }
    install(&folder)?;
    let mut test = cargo(&[
        "test",
        "--package=homeostat",
        "--features=metrics",
        "--test=browser",
    ]);
    test.env("BROWSER_MODULES", folder.join("node_modules"))
        .env("BROWSER_SHOTS", &shots)
        .env("CHROMIUM", browser);
    let code = status(&mut test)?;
    println!("what it looked like: {}", shots.display());
    Ok(code)
}

/// Installs the packages of the lock file, if they are not there.
fn install(folder: &Path) -> anyhow::Result<()> {
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
    ]);
    let status = npm
        .current_dir(folder)
        .status()
        .context("cannot start npm")?;
    ensure!(
        status.success(),
        "npm cannot install what the test of the page needs"
    );
    Ok(())
}

/// Where a program is, if it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

//! Writes reports to files.

use crate::{log::Timeline, report::Report};
use serde_json::{Value, json};
use std::{fs, io, path::Path};

/// Writes the report of a test into a folder: as text, as JSON, and the whole log of each run in it in both forms.
pub(crate) fn save(report: &Report, test: &str, folder: &Path) -> io::Result<()> {
    let test = file_name(if test.is_empty() { "check" } else { test });
    fs::create_dir_all(folder)?;
    let path = |rest: &str| folder.join(format!("{test}.{rest}"));
    fs::write(path("txt"), report.to_string())?;
    let mut value = report.to_json();
    value["test"] = json!(test);
    fs::write(path("json"), pretty(&value))?;
    for (index, finding) in report.findings().iter().enumerate() {
        let name = format!("{}-{}", index + 1, file_name(&finding.plan().to_string()));
        let entries = finding.entries();
        fs::write(
            path(&format!("{name}.log.txt")),
            Timeline(entries).to_string(),
        )?;
        fs::write(path(&format!("{name}.log.json")), pretty(&json!(entries)))?;
    }
    Ok(())
}

/// Tells how far a check is, in a file that another program reads.
pub(crate) fn progress(test: &str, folder: &Path, done: usize, all: usize, faults: usize) {
    let test = file_name(if test.is_empty() { "check" } else { test });
    let value = json!({ "test": test, "done": done, "plans": all, "faults": faults });
    // Whoever shows it misses one line at most.
    let _ = fs::create_dir_all(folder);
    let _ = fs::write(
        folder.join(format!("{test}.progress.json")),
        value.to_string(),
    );
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A text without what file systems do not take.
fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

//! Tells on standard error how far a check is.

use super::{files, targets::Target};
use serde_json::Value;
use std::{
    fs,
    io::{IsTerminal, Write as _},
    path::Path,
};

/// What was told of a target so far.
pub(super) struct Progress {
    target: String,
    told: String,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn of(target: &Target) -> Self {
        eprintln!("{target}: building");
        Self {
            target: target.to_string(),
            told: String::new(),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Looks at what the checks have written, and tells it if it is new: in place on a terminal, and elsewhere once
    /// for each tenth.
    pub(super) fn show(&mut self, folder: &Path) {
        let mut parts = Vec::new();
        for path in files(folder) {
            if !path.to_string_lossy().ends_with(".progress.json") {
                continue;
            }
            // It may be written at this moment.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let Ok(value) = serde_json::from_str::<Value>(&text) else {
                continue;
            };
            let number = |name: &str| value[name].as_u64().unwrap_or_default();
            let (mut done, all, faults) = (number("done"), number("plans"), number("faults"));
            if !self.is_terminal {
                let step = (all / 10).max(1);
                done = done / step * step;
            }
            let name = value["test"].as_str().unwrap_or_default();
            let faults = if faults > 0 {
                format!(", {faults} not as they should be")
            } else {
                String::new()
            };
            parts.push(format!("{name} {done} of {all} plans{faults}"));
        }
        let text = parts.join("; ");
        if text.is_empty() || text == self.told {
            return;
        }
        if self.is_terminal {
            eprint!("\r{}: {text}\x1b[K", self.target);
            // Somebody who does not see it misses little.
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{}: {text}", self.target);
        }
        self.told = text;
    }

    pub(super) fn end(&self) {
        if self.is_terminal && !self.told.is_empty() {
            eprintln!();
        }
    }
}

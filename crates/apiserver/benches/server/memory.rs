//! How much memory many objects take.

use std::fs;

use serde_json::json;

use crate::requests::fill;
use crate::single_thread;
use crate::way::Way;

/// The measurement that runs in a process of its own.
pub(crate) const CHILD: &str = "memory-of-this-process";

const OBJECTS: usize = 200_000;

/// What was measured.
#[derive(Clone, Copy)]
pub(crate) struct What {
    pub(crate) operation: &'static str,
    pub(crate) objects: usize,
    pub(crate) of: &'static str,
    /// In kilobytes.
    pub(crate) most: u64,
}

pub(crate) const MAPS: What = What {
    operation: "memory",
    objects: OBJECTS,
    of: "ConfigMaps of 1 KB",
    most: 600_000,
};

/// Fills a server, and prints how many kilobytes of memory this process has.
pub(crate) fn measure() {
    single_thread().block_on(async {
        let way = Way::in_process().await;
        fill(&way, OBJECTS).await;
        println!("{} {}", status("VmRSS:"), status("VmHWM:"));
    });
}

/// A line of what Linux knows about this process, in kilobytes; 0 elsewhere.
pub(crate) fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Prints what the process measured.
pub(crate) fn report(text: &str, what: What, as_json: bool) {
    let What {
        operation,
        objects,
        of,
        most,
    } = what;
    let mut numbers = text
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok());
    let (rss, peak) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if as_json {
        let line = json!({
            "operation": operation, "objects": objects, "rss_kb": rss, "peak_kb": peak,
            "target": format!("< {most} kB"), "met": rss < most,
        });
        println!("{line}");
    } else {
        let verdict = if rss < most { "met" } else { "MISSED" };
        println!("{objects} {of}: {rss} kB resident, {peak} kB at most   < {most} kB {verdict}");
    }
}

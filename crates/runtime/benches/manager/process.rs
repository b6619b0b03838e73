//! A process of this program that talks over its standard streams, and what the system tells of a process.

use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process of this program. It is killed when this is dropped.
pub(crate) struct Process {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

// === impl Process ===

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        line.unwrap().unwrap().unwrap()
    }

    /// Asks for a line.
    pub(crate) async fn ask(&mut self) -> String {
        self.input.write_all(b"\n").await.unwrap();
        self.line().await
    }
}

/// How much memory this process has, in bytes.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: u64 = line
        .unwrap()
        .trim()
        .strip_suffix("kB")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kilobytes << 10
}

/// How long processors have worked for this process.
pub(crate) fn worked() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The program's name comes second, in parentheses, and may have anything in it.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks: u64 = [11, 12]
        .into_iter()
        .map(|place: usize| fields[place].parse::<u64>().unwrap())
        .sum();
    // Linux counts hundredths of a second here on every architecture.
    Duration::from_millis(ticks * 10)
}

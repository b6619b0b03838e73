//! A program that runs, and its log.

use super::{DEADLINE, program};
use std::{
    net::SocketAddr,
    path::Path,
    process::{ExitStatus, Stdio},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
    time::timeout,
};

/// A program that runs, and is killed when this is dropped.
pub(crate) struct Operator {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    told: String,
}

impl Operator {
    pub(crate) fn start(config: &Path, args: &[&str]) -> Self {
        let mut child = program()
            .args(args)
            .env("KUBECONFIG", config)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            lines: BufReader::new(child.stderr.take().unwrap()).lines(),
            told: String::new(),
            child,
        }
    }

    /// Waits until its log says this, and gives the line.
    pub(crate) async fn until(&mut self, what: &str) -> String {
        let found = async {
            loop {
                let Some(line) = self.lines.next_line().await.unwrap() else {
                    panic!("it ended and did not say {what:?}:\n{}", self.told);
                };
                self.told.push_str(&line);
                self.told.push('\n');
                if line.contains(what) {
                    return line;
                }
            }
        };
        timeout(DEADLINE, found).await.unwrap()
    }

    /// Where it answers probes.
    pub(crate) async fn address(&mut self) -> SocketAddr {
        let line = self.until("probes are answered").await;
        let (_, address) = line.rsplit_once("address=").unwrap();
        address.trim().parse().unwrap()
    }

    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().await;
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended, and gives what it said after what was read.
    pub(crate) async fn ended(mut self) -> (ExitStatus, String) {
        let ended = async {
            let mut rest = String::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                rest.push_str(&line);
                rest.push('\n');
            }
            (self.child.wait().await.unwrap(), rest)
        };
        timeout(DEADLINE, ended).await.unwrap()
    }
}

/// The status and the body of what is answered there.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let asked = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    };
    timeout(DEADLINE, asked).await.unwrap()
}

/// Waits until a probe succeeds.
pub(crate) async fn until_ok(address: SocketAddr, path: &str) {
    let ok = async {
        while get(address, path).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, ok).await.unwrap();
}

//! The processes.

use super::{
    LEASE, NAMESPACE, PATIENCE, RENEW, RETRY,
    log::{Entry, Log},
};
use kube::Client;
use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{self, Stdio},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

/// The server's process. It ends with this.
pub(crate) struct Server {
    address: SocketAddr,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

/// An operator's process. It is killed when this is dropped.
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    /// Where it answers probes, once it has said so.
    address: watch::Receiver<Option<SocketAddr>>,
    child: Child,
}

/// What lies on the disk for as long as the program runs.
struct Kubeconfig(PathBuf);

// === impl Server ===

impl Server {
    pub(crate) async fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("--server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = timeout(PATIENCE, output.next_line())
            .await
            .unwrap()
            .unwrap();
        Self {
            address: address.unwrap().parse().unwrap(),
            input: child.stdin.take().unwrap(),
            output,
            _child: child,
        }
    }

    /// A client for a user, whose token is the user's name.
    pub(crate) fn client(&self, user: &str) -> Client {
        let url = format!("http://{}", self.address);
        let mut config = kube::Config::new(url.parse().unwrap());
        config.auth_info.token = Some(user.to_owned().into());
        Client::try_from(config).unwrap()
    }

    /// What the operators have asked to write.
    pub(crate) async fn log(&mut self) -> Log {
        self.input.write_all(b"\n").await.unwrap();
        let mut entries: Vec<Entry> = Vec::new();
        let read = async {
            loop {
                let line = self.output.next_line().await.unwrap().unwrap();
                if line.is_empty() {
                    break;
                }
                entries.push(serde_json::from_str(&line).unwrap());
            }
        };
        timeout(PATIENCE, read).await.unwrap();
        Log::new(entries)
    }
}

// === impl Operator ===

impl Operator {
    /// Starts one that works with others as `together` says.
    pub(crate) fn start(server: &Server, name: &'static str, together: &str) -> Self {
        let config = Kubeconfig::write(server.address, name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_website"))
            .arg("--serve=127.0.0.1:0")
            .arg(together)
            .arg(format!("--leader-elect-lease-duration={LEASE}s"))
            .arg(format!("--leader-elect-renew-deadline={RENEW}s"))
            .arg(format!("--leader-elect-retry-period={RETRY}s"))
            .env("KUBECONFIG", &config.0)
            // A part of its identity, as a pod's name is.
            .env("HOSTNAME", name)
            .env("RUST_LOG", "homeostat=info")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (told, address) = watch::channel(None);
        tokio::spawn(async move {
            // It has read its configuration when it says something.
            let _config = config;
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, address)) = line.split_once("address=") {
                    told.send_replace(address.trim().parse().ok());
                }
                if line.contains("ERROR") || line.contains("panicked") {
                    eprintln!("{name}: {line}");
                }
            }
        });
        Self {
            name,
            address,
            child,
        }
    }

    /// Waits until its caches are complete.
    pub(crate) async fn until_ready(&self) {
        let mut address = self.address.clone();
        let ready = async {
            let address = address.wait_for(Option::is_some).await.unwrap().unwrap();
            while !is_ready(address).await.unwrap_or(false) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let ready = timeout(PATIENCE, ready).await;
        ready.unwrap_or_else(|_| panic!("{} is not ready within {PATIENCE:?}", self.name));
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap();
        // Every shell has it, and not every system the program.
        let mut shell = process::Command::new("sh");
        let sent = shell
            .arg("-c")
            .arg(format!("kill -{signal} {pid}"))
            .status();
        assert!(sent.unwrap().success(), "{signal} to {pid}");
    }
}

async fn is_ready(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let head = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}

// === impl Kubeconfig ===

impl Kubeconfig {
    fn write(server: SocketAddr, user: &str) -> Self {
        let name = format!("homeostat-failover-{}-{user}.yaml", process::id());
        let path = std::env::temp_dir().join(name);
        let text = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters: [{{name: c, cluster: {{server: \"http://{server}\"}}}}]\n\
             users: [{{name: u, user: {{token: \"{user}\"}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u, namespace: {NAMESPACE}}}}}]\n\
             current-context: x\n"
        );
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // It is in the folder for such files, where somebody else may have been faster.
        drop(std::fs::remove_file(&self.0));
    }
}

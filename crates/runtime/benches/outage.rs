//! How soon a controller is well again after an outage of its API server, over real sockets and in real time.
//! `cargo xtask outage` runs it; with `--kube-client` it shows what kube's client does on its own.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it reports on its standard streams"
)]
#![expect(clippy::unwrap_used, reason = "it cannot go on then")]

use futures::{StreamExt, future};
use homeostat::{Action, Controller, client::Tracked, error_policy, watcher};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep},
};

const OBJECTS: usize = 5000;
const OUTAGE: Duration = Duration::from_secs(30);
/// How long it may take until all is well.
const LONGEST: Duration = Duration::from_secs(300);
const KINDS: [&str; 2] = ["503", "silent"];

/// An API server of config maps that nobody changes.
struct Server {
    /// What is wrong with it: one of [`KINDS`], or nothing.
    trouble: watch::Sender<Option<&'static str>>,
    sockets: AtomicUsize,
    most_sockets: AtomicUsize,
    watches: AtomicUsize,
}

fn main() {
    let arguments: BTreeSet<String> = std::env::args().skip(1).collect();
    let kind = KINDS.into_iter().find(|kind| arguments.contains(*kind));
    let json = arguments.contains("--json");
    let Some(kind) = kind else {
        // Each kind has a process of its own, so that its memory is its own.
        for kind in KINDS {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(arguments.iter().filter(|argument| *argument != "--bench"));
            let status = command.arg(kind).status().unwrap();
            assert!(status.success(), "{kind} failed");
        }
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let line = runtime.block_on(play(kind, arguments.contains("--kube-client")));
    if json {
        println!("{line}");
    } else {
        let figure = |name: &str| line[name].to_string();
        println!(
            "{kind:>8}: all {OBJECTS} objects were well {} s after the end, with {} sockets and {} MB at most",
            figure("recovered_s"),
            figure("sockets"),
            figure("peak_mb"),
        );
    }
}

async fn play(kind: &'static str, kube_client: bool) -> Value {
    let server = Arc::new(Server {
        trouble: watch::Sender::new(None),
        sockets: AtomicUsize::new(0),
        most_sockets: AtomicUsize::new(0),
        watches: AtomicUsize::new(0),
    });
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(listen(listener, Arc::clone(&server)));
    let config = kube::Config::new(url.parse().unwrap());
    let client = if kube_client {
        Client::try_from(config).unwrap()
    } else {
        Tracked::client(config).unwrap()
    };

    let fine = Arc::<Mutex<BTreeSet<String>>>::default();
    let controller = Controller::new(
        Api::<ConfigMap>::all(client.clone()),
        watcher::Config::default(),
    );
    let reconcile = {
        let fine = Arc::clone(&fine);
        move |map: Arc<ConfigMap>, _: Arc<()>| {
            let (maps, fine) = (
                Api::<ConfigMap>::default_namespaced(client.clone()),
                Arc::clone(&fine),
            );
            async move {
                maps.get(&map.name_any()).await?;
                fine.lock().unwrap().insert(map.name_any());
                Ok::<_, kube::Error>(Action::await_change())
            }
        }
    };
    let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
    let task = tokio::spawn(run.for_each(|_| future::ready(())));
    // From the first reconcile on.
    while server.watches.load(SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    server.trouble.send_replace(Some(kind));
    sleep(OUTAGE).await;
    server.trouble.send_replace(None);
    let end = Instant::now();
    while fine.lock().unwrap().len() < OBJECTS && end.elapsed() < LONGEST {
        sleep(Duration::from_millis(20)).await;
    }
    task.abort();
    let recovered = (end.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    let well = fine.lock().unwrap().len();
    if well < OBJECTS {
        eprintln!("{kind}: {well} of {OBJECTS} objects are well after {LONGEST:?}");
    }
    json!({
        "kind": kind,
        "recovered_s": (well == OBJECTS).then_some(recovered),
        "sockets": server.most_sockets.load(SeqCst),
        "peak_mb": peak_megabytes(),
    })
}

/// The most memory that this process ever had, where the system tells: on Linux.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.div_ceil(1024))
}

async fn listen(listener: TcpListener, server: Arc<Server>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let server = Arc::clone(&server);
        let open = server.sockets.fetch_add(1, SeqCst) + 1;
        server.most_sockets.fetch_max(open, SeqCst);
        tokio::spawn(async move {
            // A client that goes away ends its connection.
            let _ = serve(stream, &server).await;
            server.sockets.fetch_sub(1, SeqCst);
        });
    }
}

/// Answers the requests of a connection, one after the other.
async fn serve(stream: TcpStream, server: &Server) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(first) = lines.next_line().await? {
        while lines
            .next_line()
            .await?
            .is_some_and(|line| !line.is_empty())
        {}
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let trouble = *server.trouble.borrow();
        match trouble {
            Some("silent") => {
                // Until the client gives up.
                while lines.next_line().await?.is_some() {}
                return Ok(());
            }
            Some(_) => {
                let status = json!({ "kind": "Status", "status": "Failure", "code": 503, "message": "", "reason": "" });
                answer(&mut write, "503 Service Unavailable", &status.to_string()).await?;
            }
            None if target.contains("watch=true") => {
                return watch(&mut write, &target, server).await;
            }
            None => {
                let name = target
                    .split('?')
                    .next()
                    .and_then(|path| path.rsplit('/').next());
                answer(
                    &mut write,
                    "200 OK",
                    &object(name.unwrap_or_default()).to_string(),
                )
                .await?;
            }
        }
    }
    Ok(())
}

async fn answer(
    write: &mut (impl AsyncWriteExt + Unpin),
    status: &str,
    body: &str,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    write.write_all(head.as_bytes()).await
}

/// A watch, which ends when trouble begins.
async fn watch(
    write: &mut (impl AsyncWriteExt + Unpin),
    target: &str,
    server: &Server,
) -> io::Result<()> {
    write
        .write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        )
        .await?;
    if target.contains("sendInitialEvents=true") {
        let mut text = String::new();
        for number in 0..OBJECTS {
            let event = json!({ "type": "ADDED", "object": object(&format!("a{number}")) });
            text += &event.to_string();
            text.push('\n');
        }
        let end = json!({ "type": "BOOKMARK", "object": {
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": { "resourceVersion": "1", "annotations": { "k8s.io/initial-events-end": "true" } },
        } });
        text += &end.to_string();
        text.push('\n');
        write.write_all(text.as_bytes()).await?;
    }
    server.watches.fetch_add(1, SeqCst);
    let mut trouble = server.trouble.subscribe();
    // The server lives as long as the program.
    let _ = trouble.wait_for(Option::is_some).await;
    Ok(())
}

fn object(name: &str) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1" },
    })
}

//! A server of one collection, whose answers are made before it is asked.

use crate::{
    objects::Object,
    scenario::{Course, Kind, Scenario, listed_version},
};
use std::{
    collections::BTreeMap,
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

const PAGE: usize = 500;

struct Server {
    scenario: Scenario,
    objects: Vec<Object>,
    pages: Vec<Vec<u8>>,
    /// Whether the course begins.
    go: watch::Sender<bool>,
    /// Whether the watch has expired, for [`Course::Relist`].
    expired: AtomicBool,
}

/// Serves until standard input ends. Prints the address.
pub(crate) fn serve(scenario: Scenario) {
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Arc::new(Server::new(scenario));
        println!("{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                socket.set_nodelay(true).unwrap();
                let server = Arc::clone(&server);
                // A client that is gone ends its connection's task.
                tokio::spawn(async move { server.connection(socket).await.unwrap_or_default() });
            }
        });
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    runtime.shutdown_background();
}

impl Server {
    fn new(scenario: Scenario) -> Self {
        let numbers = 0..scenario.objects;
        let mut server = Self {
            scenario,
            objects: numbers
                .map(|number| Object::new(scenario.kind, number))
                .collect(),
            pages: Vec::new(),
            go: watch::Sender::new(false),
            expired: AtomicBool::new(false),
        };
        let pages = (0..scenario.objects)
            .step_by(PAGE)
            .map(|first| server.page(first, PAGE));
        server.pages = pages.collect();
        server
    }

    fn page(&self, first: usize, limit: usize) -> Vec<u8> {
        let end = first.saturating_add(limit).min(self.objects.len());
        let version = listed_version(self.objects.len());
        let more = if end < self.objects.len() {
            format!(",\"continue\":\"{end}\"")
        } else {
            String::new()
        };
        let kind = match self.scenario.kind {
            Kind::ConfigMap => "ConfigMapList",
            Kind::Pod => "PodList",
        };
        let mut page = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"{more}}},\"items\":["
        )
        .into_bytes();
        for number in first..end {
            if number > first {
                page.push(b',');
            }
            self.objects[number].write(listed_version(number), None, &mut page);
        }
        page.extend_from_slice(b"]}\n");
        page
    }

    async fn connection(&self, socket: TcpStream) -> std::io::Result<()> {
        let mut socket = BufReader::new(socket);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if socket.read_line(&mut head).await? == 0 {
                    return Ok(());
                }
            }
            let path = head.split(' ').nth(1).unwrap_or_default();
            let query = path.split_once('?').map_or("", |(_, query)| query);
            let query: BTreeMap<&str, &str> = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .collect();
            if path == "/go" {
                self.go.send_replace(true);
                answer(&mut socket, "200 OK", b"").await?;
            } else if query.get("sendInitialEvents") == Some(&"true") {
                let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sendInitialEvents is forbidden","reason":"Invalid","code":422}"#;
                answer(&mut socket, "422 Unprocessable Entity", body).await?;
            } else if query.contains_key("watch") {
                return self.watch(socket).await;
            } else {
                let first = query
                    .get("continue")
                    .and_then(|first| first.parse().ok())
                    .unwrap_or(0);
                let limit = query
                    .get("limit")
                    .and_then(|limit| limit.parse().ok())
                    .unwrap_or(usize::MAX);
                if limit == PAGE {
                    answer(&mut socket, "200 OK", &self.pages[first / PAGE]).await?;
                } else {
                    answer(&mut socket, "200 OK", &self.page(first, limit)).await?;
                }
            }
        }
    }

    async fn watch(&self, socket: BufReader<TcpStream>) -> std::io::Result<()> {
        let mut socket = BufWriter::with_capacity(1 << 16, socket.into_inner());
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        socket.write_all(head).await?;
        socket.flush().await?;
        self.go.subscribe().wait_for(|go| *go).await.unwrap();
        match self.scenario.course {
            Course::Start | Course::Drain => {}
            Course::Storm(events) => {
                for number in 0..events {
                    self.event(number, &mut socket).await?;
                }
            }
            Course::Latency(events) => {
                let mut ticks = interval(Duration::from_millis(10));
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for number in 0..events {
                    ticks.tick().await;
                    self.event(number, &mut socket).await?;
                    socket.flush().await?;
                }
            }
            Course::Relist if self.expired.swap(true, SeqCst) => {
                sleep(Duration::from_millis(50)).await;
                self.event(0, &mut socket).await?;
            }
            Course::Relist => {
                let expired = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}}"#;
                chunk(&mut socket, expired).await?;
                socket.write_all(b"0\r\n\r\n").await?;
                return socket.shutdown().await;
            }
        }
        socket.flush().await?;
        // Until the client is gone.
        drop(socket.read_u8().await);
        Ok(())
    }

    async fn event(&self, number: usize, socket: &mut BufWriter<TcpStream>) -> std::io::Result<()> {
        let (object, version) = self.scenario.event(number);
        let mut line = br#"{"type":"MODIFIED","object":"#.to_vec();
        self.objects[object].write(version, Some(now()), &mut line);
        line.extend_from_slice(b"}\n");
        chunk(socket, &line).await
    }
}

async fn chunk(socket: &mut BufWriter<TcpStream>, data: &[u8]) -> std::io::Result<()> {
    socket
        .write_all(format!("{:x}\r\n", data.len()).as_bytes())
        .await?;
    socket.write_all(data).await?;
    socket.write_all(b"\r\n").await
}

async fn answer(
    socket: &mut BufReader<TcpStream>,
    status: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body).await?;
    socket.flush().await
}

/// Nanoseconds since 1970: two processes are compared.
#[expect(
    clippy::disallowed_types,
    reason = "two processes have no other clock in common"
)]
pub(crate) fn now() -> u128 {
    std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
}

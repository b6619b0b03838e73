//! What a scrape costs when there are many objects.

use super::rounded;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use homeostat::{Action, Controller, Manager, client::Tracked, watcher};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, client::Body};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    fmt::Write as _,
    future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

const OBJECTS: usize = 100_000;
const SCRAPES: usize = 100;
/// The longest that a scrape may take, in milliseconds, and the most series.
const LIMIT: f64 = 20.0;
const SERIES: usize = 1000;

pub(crate) async fn measure() -> Value {
    let runs = Arc::<AtomicUsize>::default();
    let counting = Arc::clone(&runs);
    let reconcile = move |_: Arc<ConfigMap>, _: Arc<()>| {
        let number = counting.fetch_add(1, Relaxed);
        async move {
            // Some wait for a time, some back off, and some wait for a change.
            match number % 3 {
                0 => Ok(Action::requeue(Duration::from_secs(3600))),
                1 => Err(std::io::Error::other("on purpose")),
                _ => Ok(Action::await_change()),
            }
        }
    };
    let server = tower::service_fn(|request: http::Request<Body>| {
        future::ready(Ok::<_, Infallible>(answer(&request)))
    });
    let client = Tracked::wrap(Client::new(server, "default"));
    let maps = Controller::new(
        Api::<ConfigMap>::all(client.clone()),
        watcher::Config::default(),
    );
    let policy = |_: Arc<ConfigMap>, _: &std::io::Error, _: Arc<()>| {
        Action::requeue(Duration::from_secs(3600))
    };
    let manager = Manager::new(client)
        .add(maps.run(reconcile, policy, Arc::new(())))
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .stop_on(stream::pending());
    let handle = manager.handle();
    let task = tokio::spawn(manager.run());
    let start = Instant::now();
    while runs.load(Relaxed) < OBJECTS {
        assert!(start.elapsed() < Duration::from_secs(300), "{runs:?} runs");
        sleep(Duration::from_millis(10)).await;
    }
    let address = handle.address().unwrap();
    let mut times = Vec::new();
    let mut text = String::new();
    for _ in 0..SCRAPES {
        let begun = Instant::now();
        text = scrape(address).await;
        times.push(begun.elapsed());
    }
    task.abort();
    times.sort();
    let millis = |place: usize| rounded(times[place].as_secs_f64() * 1000.0);
    let series = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(' '))
        .count();
    json!({
        "holds": millis(SCRAPES * 99 / 100 - 1) < LIMIT && series < SERIES,
        "keys": OBJECTS,
        "median_ms": millis(SCRAPES / 2),
        "p99_ms": millis(SCRAPES * 99 / 100 - 1),
        "max_ms": millis(SCRAPES - 1),
        "series": series,
        "bytes": text.len(),
    })
}

async fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// The body of an answer.
type Answer = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A server of objects that nobody changes. It streams them, and says nothing more.
fn answer(request: &http::Request<Body>) -> http::Response<Answer> {
    let query = request.uri().query().unwrap_or_default();
    let first = if query.contains("sendInitialEvents=true") {
        events()
    } else {
        String::new()
    };
    let first = Ok::<_, Infallible>(Frame::data(Bytes::from(first)));
    let frames = stream::once(future::ready(first)).chain(stream::pending());
    let mut response = http::Response::new(StreamBody::new(frames.boxed()));
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

fn events() -> String {
    let mut text = String::new();
    for number in 0..OBJECTS {
        let metadata = json!({
            "name": format!("object-{number}"), "namespace": "default", "uid": number.to_string(), "resourceVersion": "1",
        });
        let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata });
        writeln!(text, "{}", json!({ "type": "ADDED", "object": object })).unwrap();
    }
    let end = json!({
        "resourceVersion": "1", "annotations": { "k8s.io/initial-events-end": "true" },
    });
    let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": end });
    writeln!(text, "{}", json!({ "type": "BOOKMARK", "object": object })).unwrap();
    text
}

//! A server that answers by a script, and a log of what was asked and what the stream yielded.

use crate::watcher::{Event, Result};
use bytes::Bytes;
use futures::{Stream, StreamExt, future, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Api, Client, Resource, ResourceExt, client::Body};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    fmt::Write as _,
    io,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout_at};

/// The answer to one request.
#[derive(Clone)]
pub(super) enum Answer {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status, a `Retry-After`, and a body that is no JSON.
    Text(u16, Option<&'static str>, &'static str),
    /// A success whose body comes piece by piece, and ends after that.
    Stream(Vec<Piece>),
    /// The same after a while.
    Late(Duration, Vec<Piece>),
    /// Nothing, for ever.
    Never,
    /// The connection is refused.
    Unreachable,
}

/// A piece of a body.
#[derive(Clone)]
pub(super) enum Piece {
    Text(String),
    Pause(Duration),
    /// The connection breaks.
    Break(io::ErrorKind),
    /// Nothing comes any more, and the connection stays.
    Hang,
}

/// Answers requests in order; when the script is over, never.
#[derive(Clone)]
pub(super) struct Server {
    script: Arc<Mutex<VecDeque<Answer>>>,
    log: Arc<Mutex<String>>,
    start: Instant,
}

type AnyBody = UnsyncBoxBody<Bytes, io::Error>;

// === impl Server ===

impl Server {
    pub(super) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        // Makes the delays the same in each run.
        fastrand::seed(7);
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            log: Arc::default(),
            start: Instant::now(),
        }
    }

    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, uri) = (server.clone(), request.uri().to_string());
            async move { server.answer(&uri).await }
        });
        Client::new(service, "default")
    }

    pub(super) fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client())
    }

    async fn answer(&self, uri: &str) -> io::Result<Response<AnyBody>> {
        let uri = uri
            .split_once("/v1/")
            .map_or(uri, |(_, rest)| rest)
            .replace("?&", "?");
        self.note(&uri);
        let answer = self.script.lock().unwrap().pop_front();
        match answer.unwrap_or(Answer::Never) {
            Answer::Json(code, body) => Ok(response(code, full(body.to_string()))),
            Answer::Text(code, retry_after, text) => {
                let mut response = response(code, full(text.to_owned()));
                if let Some(value) = retry_after {
                    let headers = response.headers_mut();
                    headers.insert("retry-after", value.parse().unwrap());
                }
                Ok(response)
            }
            Answer::Stream(pieces) => Ok(response(200, streamed(pieces))),
            Answer::Late(delay, pieces) => {
                sleep(delay).await;
                Ok(response(200, streamed(pieces)))
            }
            Answer::Never => future::pending().await,
            Answer::Unreachable => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// Adds a line to the log.
    fn note(&self, text: &str) {
        let time = format!("{:.1}s", self.start.elapsed().as_secs_f64());
        writeln!(self.log.lock().unwrap(), "{time:<7} {text}").unwrap();
    }

    /// Reads a stream for a while. Returns the log of requests and items.
    pub(super) async fn run<K: ResourceExt>(
        &self,
        stream: impl Stream<Item = Result<Event<K>>>,
        duration: Duration,
    ) -> String {
        self.follow(
            stream.map(|item| item.map(|event| event.to_string())),
            duration,
        )
        .await
    }

    /// The same for streams of anything.
    pub(super) async fn follow(
        &self,
        stream: impl Stream<Item = Result<String>>,
        duration: Duration,
    ) -> String {
        let end = Instant::now() + duration;
        let mut stream = pin!(stream);
        while let Ok(Some(item)) = timeout_at(end, stream.next()).await {
            match item {
                Ok(text) => self.note(&format!("-> {text}")),
                Err(error) => self.note(&format!("-> {error}")),
            }
        }
        self.log.lock().unwrap().clone()
    }

    /// How many requests and items there were.
    pub(super) fn lines(&self) -> usize {
        self.log.lock().unwrap().lines().count()
    }
}

fn response(code: u16, body: AnyBody) -> Response<AnyBody> {
    Response::builder().status(code).body(body).unwrap()
}

fn full(text: String) -> AnyBody {
    if text.is_empty() {
        return Empty::new().map_err(|never| match never {}).boxed_unsync();
    }
    Full::from(text)
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn streamed(pieces: Vec<Piece>) -> AnyBody {
    let chunks = stream::unfold(pieces.into_iter(), |mut pieces| async move {
        loop {
            let chunk = match pieces.next()? {
                Piece::Text(text) => Ok(Frame::data(Bytes::from(text))),
                Piece::Break(kind) => Err(kind.into()),
                Piece::Pause(duration) => {
                    sleep(duration).await;
                    continue;
                }
                Piece::Hang => future::pending().await,
            };
            return Some((chunk, pieces));
        }
    });
    StreamBody::new(chunks).boxed_unsync()
}

// === objects and events ===

/// A config map.
pub(super) fn object(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "x", "resourceVersion": version.to_string() },
    })
}

/// A config map that is none.
pub(super) fn bad_object(name: &str, version: u64) -> Value {
    let mut object = object(name, version);
    object["data"] = json!({ "password": 1234 });
    object
}

/// A page of a list.
pub(super) fn page(version: u64, token: &str, items: &[Value]) -> Answer {
    Answer::Json(
        200,
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": { "resourceVersion": version.to_string(), "continue": token },
            "items": items,
        }),
    )
}

fn event(kind: &str, object: &Value) -> Piece {
    let event = json!({ "type": kind, "object": object });
    Piece::Text(format!("{event}\n"))
}

pub(super) fn added(name: &str, version: u64) -> Piece {
    event("ADDED", &object(name, version))
}

pub(super) fn modified(object: &Value) -> Piece {
    event("MODIFIED", object)
}

pub(super) fn deleted(object: &Value) -> Piece {
    event("DELETED", object)
}

pub(super) fn bookmark(version: u64) -> Piece {
    event(
        "BOOKMARK",
        &json!({ "metadata": { "resourceVersion": version.to_string() } }),
    )
}

/// The end of a streamed list.
pub(super) fn end(version: u64) -> Piece {
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    let meta = json!({ "resourceVersion": version.to_string(), "annotations": annotations });
    event("BOOKMARK", &json!({ "metadata": meta }))
}

/// A status as an event.
pub(super) fn error(code: u16, reason: &str) -> Piece {
    event("ERROR", &status(code, reason, "the message"))
}

/// A status as an answer.
pub(super) fn refusal(code: u16, reason: &str) -> Answer {
    Answer::Json(code, status(code, reason, "the message"))
}

pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    })
}

pub(super) fn pause(seconds: u64) -> Piece {
    Piece::Pause(Duration::from_secs(seconds))
}

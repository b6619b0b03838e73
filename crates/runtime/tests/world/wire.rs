//! The wire between a controller and the server, which a test can spoil in ways that are no answers
//! of the server.

use bytes::Bytes;
use futures::stream;
use homeostat::client::Settings;
use homeostat_apiserver::{ApiServer, ResponseBody, Service};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use serde_json::json;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};
use tower::{Layer, ServiceExt};

/// What tells the requests on the wire from those of the test.
pub(super) const USER_AGENT: &str = "controller";

/// A wire. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Wire {
    server: Service,
    spoilt: Arc<Mutex<Spoilt>>,
    /// How often the watches of each resource were silenced.
    silences: watch::Sender<BTreeMap<String, u32>>,
}

#[derive(Default)]
struct Spoilt {
    no_streaming: bool,
    /// The next watch of a resource is cut after so many lines.
    cuts: BTreeMap<String, (usize, Cut)>,
    /// The watches that are open, in the order in which they were opened.
    open: Vec<oneshot::Sender<Cut>>,
    /// How long each line of the watches of a resource takes to arrive, one after the other.
    delays: BTreeMap<String, Duration>,
    noise: Option<Noise>,
}

/// How a connection ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As if the server had come to an end.
    Cleanly,
    /// In the middle of the next line.
    Midway,
    /// With an error.
    Broken,
}

/// Trouble by chance. Each figure is how many in a thousand lines or answers it meets.
#[derive(Clone)]
pub(crate) struct Noise {
    pub(crate) random: Arc<Mutex<fastrand::Rng>>,
    /// A line of a watch comes late, by up to 3 s. So what happened to two kinds comes in another
    /// order than it happened in. In one watch the order stays: the protocol relies on it.
    pub(crate) late: u32,
    /// A line of a watch comes twice.
    pub(crate) twice: u32,
    /// A watch is cut in the middle of a line.
    pub(crate) cut: u32,
    /// A watch says nothing any more, and stays open.
    pub(crate) silent: u32,
    /// The answer to a request that was carried out is lost.
    pub(crate) lost: u32,
}

/// A watch on the wire.
struct Watched {
    wire: Wire,
    plural: String,
    body: ResponseBody,
    /// Lines that came and were not passed on, each with its line feed.
    lines: VecDeque<Bytes>,
    /// After how many more lines it is cut.
    cut: Option<(usize, Cut)>,
    /// Tells that it is cut now.
    cut_now: oneshot::Receiver<Cut>,
    silences: watch::Receiver<BTreeMap<String, u32>>,
    /// What `silences` says while this watch may speak.
    silences_seen: u32,
    over: bool,
}

type AnyBody = UnsyncBoxBody<Bytes, io::Error>;

// === impl Wire ===

impl Wire {
    pub(super) fn new(server: &ApiServer) -> Self {
        Self {
            server: server.service(),
            spoilt: Arc::default(),
            silences: watch::Sender::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let wire = wire.clone();
            async move { wire.carry(request).await }
        });
        Client::new(service, "default")
    }

    /// From now on the server is one that does not stream lists. It answers as such servers do.
    pub(crate) fn refuse_streaming(&self) {
        self.spoilt.lock().unwrap().no_streaming = true;
    }

    /// Cuts the next watch of a resource after so many lines.
    pub(crate) fn cut_next(&self, plural: &str, lines: usize, how: Cut) {
        let cuts = &mut self.spoilt.lock().unwrap().cuts;
        cuts.insert(plural.into(), (lines, how));
    }

    /// Cuts all watches that are open now, in the order in which they were opened.
    pub(crate) fn cut_watches(&self, how: Cut) {
        let open = std::mem::take(&mut self.spoilt.lock().unwrap().open);
        for watch in open {
            // One that has ended does not listen.
            watch.send(how).ok();
        }
    }

    /// What is open now of the watches of a resource says nothing any more, and stays open.
    pub(crate) fn silence(&self, plural: &str) {
        self.silences
            .send_modify(|silences| *silences.entry(plural.into()).or_default() += 1);
    }

    /// From now on each line of the watches of a resource comes so much later, one after the other.
    pub(crate) fn delay(&self, plural: &str, delay: Duration) {
        let delays = &mut self.spoilt.lock().unwrap().delays;
        delays.insert(plural.into(), delay);
    }

    /// The same as [`client`](Self::client), with what records the writes of reconciles.
    pub(crate) fn tracked(&self) -> Client {
        let client = self.client();
        let namespace = client.default_namespace().to_owned();
        let send = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        // As a layer the settings say that nothing below sends requests again, so nobody warns of that.
        Client::new(Settings::default().layer(send), namespace)
    }

    /// Begins or ends trouble by chance.
    pub(crate) fn set_noise(&self, noise: Option<Noise>) {
        self.spoilt.lock().unwrap().noise = noise;
    }

    async fn carry(&self, mut request: Request<Body>) -> io::Result<Response<AnyBody>> {
        let agent = HeaderValue::from_static(USER_AGENT);
        request.headers_mut().insert(header::USER_AGENT, agent);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let plural = request.uri().path().rsplit('/').next().map(str::to_owned);
        let plural = plural.unwrap_or_default();
        if self.spoilt.lock().unwrap().no_streaming && query.contains("sendInitialEvents=true") {
            return Ok(streaming_is_unknown());
        }
        let answer = self.server.clone().oneshot(request).await;
        let answer = answer.map_err(|error| io::Error::other(error.to_string()))?;
        if query.contains("watch=true") && answer.status().is_success() {
            return Ok(answer.map(|body| self.watched(plural, body)));
        }
        let noise = self.spoilt.lock().unwrap().noise.clone();
        if noise.is_some_and(|noise| noise.meets(noise.lost)) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(answer.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
    }

    fn watched(&self, plural: String, body: ResponseBody) -> AnyBody {
        let (cutter, cut_now) = oneshot::channel();
        let mut spoilt = self.spoilt.lock().unwrap();
        spoilt.open.retain(|watch| !watch.is_closed());
        spoilt.open.push(cutter);
        let cut = spoilt.cuts.remove(&plural);
        drop(spoilt);
        let silences = self.silences.subscribe();
        let until = silences.borrow().get(&plural).copied().unwrap_or_default();
        let watched = Watched {
            wire: self.clone(),
            plural,
            body,
            lines: VecDeque::new(),
            cut,
            cut_now,
            silences,
            silences_seen: until,
            over: false,
        };
        let pieces = stream::unfold(watched, |mut watched| async move {
            let piece = watched.next().await?;
            Some((piece.map(Frame::data), watched))
        });
        StreamBody::new(pieces).boxed_unsync()
    }
}

/// What a server says that does not know `sendInitialEvents`.
fn streaming_is_unknown() -> Response<AnyBody> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Invalid",
        "code": 422,
        "message": "sendInitialEvents is forbidden for watch",
    });
    let body = Full::from(status.to_string()).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    response
}

// === impl Watched ===

impl Watched {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.over {
            return None;
        }
        let line = match self.line_or_cut().await {
            Ok(Some(line)) if !self.is_silenced() => line,
            Ok(None) if !self.is_silenced() => return None,
            Ok(_) => std::future::pending().await,
            Err(how) => return self.end(how, &Bytes::from_static(b"{\"type\":")),
        };
        if let Some(how) = self.is_cut() {
            return self.end(how, &line);
        }
        let delay = self
            .wire
            .spoilt
            .lock()
            .unwrap()
            .delays
            .get(&self.plural)
            .copied();
        if let Some(delay) = delay {
            sleep(delay).await;
        }
        let noise = self.wire.spoilt.lock().unwrap().noise.clone();
        if let Some(noise) = noise {
            if noise.meets(noise.silent) {
                std::future::pending::<()>().await;
            }
            if noise.meets(noise.cut) {
                return self.end(Cut::Midway, &line);
            }
            if noise.meets(noise.twice) {
                self.lines.push_front(line.clone());
            }
            if noise.meets(noise.late) {
                sleep(noise.lateness()).await;
            }
        }
        Some(Ok(line))
    }

    /// The next line of the server, `None` at the end, unless the connection is cut before.
    async fn line_or_cut(&mut self) -> Result<Option<Bytes>, Cut> {
        let Self {
            body,
            lines,
            cut_now,
            ..
        } = self;
        tokio::select! {
            biased;
            Ok(how) = cut_now => Err(how),
            line = next_line(body, lines) => Ok(line),
        }
    }

    fn is_silenced(&self) -> bool {
        let silences = self.silences.borrow();
        silences.get(&self.plural).copied().unwrap_or_default() != self.silences_seen
    }

    /// Whether the connection is cut instead of passing on another line.
    fn is_cut(&mut self) -> Option<Cut> {
        let (left, how) = self.cut.as_mut()?;
        if *left == 0 {
            return Some(*how);
        }
        *left -= 1;
        None
    }

    fn end(&mut self, how: Cut, line: &Bytes) -> Option<io::Result<Bytes>> {
        self.over = true;
        match how {
            Cut::Cleanly => None,
            // Half a line, and then the connection ends.
            Cut::Midway => Some(Ok(line.slice(..line.len() / 2))),
            Cut::Broken => Some(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

/// The next line of the server; `None` at the end. Those behind it wait in `lines`.
async fn next_line(body: &mut ResponseBody, lines: &mut VecDeque<Bytes>) -> Option<Bytes> {
    while lines.is_empty() {
        let frame = body.frame().await?;
        let frame = frame.unwrap_or_else(|never| match never {});
        let chunk = frame.into_data().unwrap_or_default();
        let split = chunk.split_inclusive(|byte| *byte == b'\n');
        lines.extend(split.map(Bytes::copy_from_slice));
    }
    lines.pop_front()
}

// === impl Noise ===

impl Noise {
    fn meets(&self, per_mille: u32) -> bool {
        self.random.lock().unwrap().u32(0..1000) < per_mille
    }

    fn lateness(&self) -> Duration {
        Duration::from_millis(self.random.lock().unwrap().u64(0..3000))
    }
}

//! Requests for one collection, and what the answers mean for the protocol.

use super::{config::Config, lines::TooLong, part::Part};
use crate::client::OwnPatience;
use bytes::{Bytes, BytesMut};
use homeostat_core::watch::{Fault, Phase};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::BodyExt;
use kube::{
    Api, Client, Resource,
    api::{ListParams, Request, VersionMatch, WatchParams},
    client::Body,
    core::{
        Status,
        response::{StatusDetails, reason},
    },
};
use std::{error::Error as StdError, io, time::Duration};
use tokio::time::timeout;

/// A collection on a server.
pub(super) struct Source {
    client: Client,
    request: Request,
    /// Only the metadata of the objects is asked for.
    metadata: bool,
    label_selector: Option<String>,
    field_selector: Option<String>,
    /// Which of the objects are asked for, if not all.
    pub(super) part: Option<Part>,
    pub(super) target: Target,
}

/// The names of a collection.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(super) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
}

/// Why there is no answer that goes on.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server says so.
    Status(Box<Status>),
    /// It says nothing, or something that makes no sense.
    Trouble(Trouble),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("{}", chain(.0))]
    Request(#[source] kube::Error),
    #[error("nothing came within {0:?}")]
    Silent(Duration),
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("{0}")]
    Malformed(String),
}

/// How much of the body of a refusal is read; a `Status` is much shorter.
const REFUSAL_LIMIT: usize = 64 << 10;

// === impl Source ===

impl Source {
    pub(super) fn new<K: Resource>(api: Api<K>, config: Config) -> Self {
        Self {
            request: Request::new(api.resource_url()),
            metadata: K::metadata_api(),
            label_selector: config.label_selector,
            field_selector: config.field_selector,
            part: None,
            target: Target::new(api.resource_url(), api.namespace()),
            client: api.into_client(),
        }
    }

    /// The same, but for the metadata of the objects.
    pub(super) fn of_metadata(self) -> Self {
        Self {
            metadata: true,
            ..self
        }
    }

    /// The same, but for a part of the objects if the server can select it.
    pub(super) fn of_part(self, part: Part) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// Asks for a list or a page of it. The answer may take `patience` to begin, and then for each
    /// part.
    pub(super) async fn list(
        &self,
        limit: Option<u32>,
        continue_token: Option<String>,
        resource_version: Option<String>,
        patience: Duration,
    ) -> Result<Bytes, Failure> {
        let params = ListParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            limit,
            continue_token,
            version_match: resource_version
                .as_ref()
                .map(|_| VersionMatch::NotOlderThan),
            resource_version,
            ..ListParams::default()
        };
        let request = if self.metadata {
            self.request.list_metadata(&params)
        } else {
            self.request.list(&params)
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("list");
        request.extensions_mut().insert(OwnPatience);
        let mut body = in_time(patience, self.send(request)).await?;
        let first = in_time(patience, next_chunk(&mut body))
            .await?
            .unwrap_or_default();
        let Some(second) = in_time(patience, next_chunk(&mut body)).await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(&*first);
        whole.extend_from_slice(&second);
        while let Some(chunk) = in_time(patience, next_chunk(&mut body)).await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// Asks for a watch, which has to begin within `patience`.
    pub(super) async fn watch(
        &self,
        resource_version: &str,
        send_initial_events: bool,
        bookmarks: bool,
        duration: Duration,
        patience: Duration,
    ) -> Result<Body, Failure> {
        let params = WatchParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            timeout: Some(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)),
            bookmarks,
            send_initial_events,
        };
        let request = if self.metadata {
            self.request.watch_metadata(&params, resource_version)
        } else {
            self.request.watch(&params, resource_version)
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("watch");
        // Servers may compress each event by itself, which kube's client cannot undo.
        let identity = HeaderValue::from_static("identity");
        request
            .headers_mut()
            .insert(header::ACCEPT_ENCODING, identity);
        in_time(patience, self.send(request)).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Body, Failure> {
        if let Some(part) = &self.part
            && let Some(selected) = part.select(&request)
        {
            let response = self.client.send(selected.map(Body::from)).await?;
            if !part.is_refused(response.status()) {
                return taken(response).await;
            }
        }
        taken(self.client.send(request.map(Body::from)).await?).await
    }
}

/// The body of an answer, if it is a success.
async fn taken(response: Response<Body>) -> Result<Body, Failure> {
    if response.status().is_success() {
        Ok(response.into_body())
    } else {
        Err(Failure::Status(Box::new(refusal(response).await)))
    }
}

/// The status in an answer that is no success. What is no `Status` is not shown: it can be anything.
async fn refusal(response: Response<Body>) -> Status {
    let (head, mut body) = response.into_parts();
    let mut text = BytesMut::new();
    while text.len() < REFUSAL_LIMIT
        && let Ok(Some(chunk)) = next_chunk(&mut body).await
    {
        text.extend_from_slice(&chunk);
    }
    let mut status = match serde_json::from_slice::<Status>(&text) {
        Ok(status) if status.is_failure() => status,
        Ok(_) | Err(_) => Status::failure("", reason::UNKNOWN),
    };
    if status.code == 0 {
        status.code = head.status.as_u16();
    }
    if let Some(seconds) = retry_after(&head.headers) {
        let details = status.details.get_or_insert_with(no_details);
        if details.retry_after_seconds == 0 {
            details.retry_after_seconds = seconds;
        }
    }
    status
}

fn retry_after(headers: &HeaderMap) -> Option<u32> {
    headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// The next data of a body; `None` at its end.
pub(super) async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, kube::Error> {
    while let Some(frame) = body.frame().await {
        // What is no data are trailers, which nobody sends.
        if let Ok(chunk) = frame?.into_data() {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// Fails when `answer` takes longer than `patience`.
async fn in_time<T, E: Into<Failure>>(
    patience: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    match timeout(patience, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(Trouble::Silent(patience).into()),
    }
}

// === impl Target ===

impl Target {
    /// Takes the names out of a path: `/api/v1/pods`, `/apis/apps/v1/namespaces/a/deployments`.
    pub(super) fn new(path: &str, namespace: Option<&str>) -> Self {
        let mut segments = path.trim_matches('/').split('/').map(str::to_owned);
        let group = match segments.next().as_deref() {
            Some("apis") => segments.next(),
            Some(_) | None => None,
        };
        Self {
            group: group.unwrap_or_default(),
            version: segments.next().unwrap_or_default(),
            plural: segments.next_back().unwrap_or_default(),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// What is done in a phase, as in `list websites.example.com in all namespaces`.
    pub(super) fn context(&self, phase: Phase) -> String {
        let verb = match phase {
            Phase::List => "list",
            Phase::WatchStart => "start to watch",
            Phase::Watch => "watch",
        };
        format!("{verb} {self}")
    }

    /// The kind as its server knows it, as in `websites.example.com/v1`.
    pub(super) fn versioned(&self) -> String {
        let Self {
            group,
            version,
            plural,
            namespace: _,
        } = self;
        let dot = if group.is_empty() { "" } else { "." };
        format!("{plural}{dot}{group}/{version}")
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            group,
            version: _,
            plural,
            namespace,
        } = self;
        let dot = if group.is_empty() { "" } else { "." };
        match namespace {
            Some(namespace) => write!(f, "{plural}{dot}{group} in namespace {namespace}"),
            None => write!(f, "{plural}{dot}{group} in all namespaces"),
        }
    }
}

// === impl Failure ===

impl Failure {
    /// What the protocol makes of it.
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::Status(status) => fault(status),
            Self::Trouble(Trouble::Silent(_)) => Fault::Silent,
            Self::Trouble(Trouble::Request(_) | Trouble::TooLong(_) | Trouble::Malformed(_)) => {
                Fault::Other { retry_after: None }
            }
        }
    }
}

fn fault(status: &Status) -> Fault {
    let details = status.details.as_ref();
    let ahead =
        |cause: &kube::core::response::StatusCause| cause.reason == "ResourceVersionTooLarge";
    if details.is_some_and(|details| details.causes.iter().any(ahead)) {
        return Fault::Expired;
    }
    match (status.reason.as_str(), status.code) {
        (reason::EXPIRED | reason::GONE, _) | (_, 410) => Fault::Expired,
        (_, 400 | 405 | 422) => Fault::Refused,
        (_, 403) => Fault::Forbidden,
        (_, 404) => Fault::Missing,
        _ => Fault::Other {
            retry_after: details
                .map(|details| details.retry_after_seconds)
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.into())),
        },
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Trouble(Trouble::Request(error))
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Whether a connection just ended without its end, as it does when something between the server
/// and here loses interest after minutes of silence. To a watch that is an end like any other.
pub(super) fn is_cut(error: &kube::Error) -> bool {
    let mut error: &(dyn StdError + 'static) = error;
    loop {
        let cut = error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        if cut || error.to_string().contains("unexpected EOF during chunk") {
            return true;
        }
        match error.source() {
            Some(source) => error = source,
            None => return false,
        }
    }
}

/// What an error and its sources say, without repetitions.
fn chain(error: &kube::Error) -> String {
    let mut error: &(dyn StdError + 'static) = if let kube::Error::Service(error) = error {
        &**error
    } else {
        error
    };
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        let more = source.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        error = source;
    }
    text
}

pub(super) fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{self, HeaderMap};
use http::{Method, Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Limited};

use super::media::Media;
use super::resource::{self, Outcome};
use super::{Answer, Body, Query, Route, debug, discovery};
use crate::faults::Verdict;
use crate::requests::RequestFacts;
use crate::server::Core;
use crate::status::Status;

/// The API as a tower service. Clones share one server.
#[derive(Clone)]
pub struct Service {
    core: Arc<Core>,
}

/// The body of an answer.
pub struct ResponseBody {
    inner: Body,
}

/// A connection that failed: what a fault wanted the client to see.
#[derive(Debug, Clone, thiserror::Error)]
#[error("connection refused by an injected fault")]
pub struct TransportError(());

/// What a request says, its body read.
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) query: Query,
    pub(super) user_agent: String,
    pub(super) accept: String,
    content_type: String,
    pub(super) body: Bytes,
}

// === impl Service ===

impl Service {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        serve(Arc::clone(&self.core), request).boxed()
    }
}

async fn serve<B>(
    core: Arc<Core>,
    request: Request<B>,
) -> Result<Response<ResponseBody>, TransportError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let route = Route::parse(parts.uri.path());
    let query = Query::parse(parts.uri.query());
    let user_agent = text(&parts.headers, header::USER_AGENT);
    let facts = RequestFacts::new(&parts.method, &route, &query, &user_agent);
    let accept = text(&parts.headers, header::ACCEPT);
    let media = Media::of_answer(&accept);
    let now = core.now();
    match core.faults.judge(&facts).await {
        Verdict::Serve => {}
        Verdict::Refuse => {
            core.requests.record(now, facts, None, false);
            return Err(TransportError(()));
        }
        Verdict::Answer(answer) => {
            core.requests.record(now, facts, Some(answer.code()), false);
            return Ok(finish(answer, media));
        }
    }
    let limited = Limited::new(body, core.config.max_request_bytes);
    let Ok(body) = limited.collect().await else {
        let limit = core.config.max_request_bytes;
        let status = Status::too_large(format!("limit is {limit}"));
        core.requests.record(now, facts, Some(status.code), false);
        return Ok(finish(status.into(), media));
    };
    let incoming = Incoming {
        method: parts.method,
        query,
        user_agent,
        accept,
        content_type: text(&parts.headers, header::CONTENT_TYPE),
        body: body.to_bytes(),
    };
    let Outcome { answer, changed } = dispatch(&core, &route, &incoming).await;
    core.requests
        .record(now, facts, Some(answer.code()), changed);
    Ok(finish(answer, media))
}

async fn dispatch(core: &Arc<Core>, route: &Route, incoming: &Incoming) -> Outcome {
    let answer = match route {
        Route::Resource(path) => return resource::serve(core, path, incoming).await,
        Route::Version => Answer::ok(discovery::version()),
        Route::Health => Answer::Text {
            code: 200,
            text: "ok".to_owned(),
            retry_after: None,
        },
        Route::Debug(action) => debug::answer(core, action, incoming).await,
        Route::Unknown => Answer::page_not_found(),
        Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Resources { .. }
        | Route::Descriptions
        | Route::Description { .. } => {
            let accept = &incoming.accept;
            core.stage
                .with(|registry| discovery::answer(&registry.catalog, route, accept))
        }
    };
    Outcome {
        answer,
        changed: false,
    }
}

fn finish(answer: Answer, media: Media) -> Response<ResponseBody> {
    answer
        .into_response(media)
        .map(|inner| ResponseBody { inner })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

// === impl Incoming ===

impl Incoming {
    /// The media type of the body, without parameters.
    pub(super) fn media_type(&self) -> String {
        let media_type = self.content_type.split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }
}

// === impl ResponseBody ===

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

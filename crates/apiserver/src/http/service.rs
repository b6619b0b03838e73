use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Limited};
use serde_json::Value;

use super::incoming::Incoming;
use super::media::Media;
use super::resource::{self, Outcome};
use super::{Answer, Body, Query, Route, debug, discovery, openapi};
use crate::access::{Attributes, Caller, Entrance, Requester, impersonated};
use crate::faults::Verdict;
use crate::requests::RequestFacts;
use crate::state::Core;
use crate::status::Status;

/// The API as a tower service. Clones share one server.
#[derive(Clone)]
pub struct Service {
    core: Arc<Core>,
    entrance: Entrance,
}

/// The body of an answer.
pub struct ResponseBody {
    inner: Body,
}

/// A connection that failed: what a fault wanted the client to see.
#[derive(Debug, Clone, thiserror::Error)]
#[error("connection refused by an injected fault")]
pub struct TransportError(());

// === impl Service ===

impl Service {
    pub(crate) fn new(core: Arc<Core>, entrance: Entrance) -> Self {
        Self { core, entrance }
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
        serve(Arc::clone(&self.core), self.entrance.clone(), request).boxed()
    }
}

async fn serve<B>(
    core: Arc<Core>,
    entrance: Entrance,
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
    let mut facts = RequestFacts::new(&parts.method, &route, &query, &user_agent);
    let accept = text(&parts.headers, header::ACCEPT);
    let media = Media::of_answer(&accept);
    let now = core.now();
    let log = |facts, status: Option<u16>, changed| {
        log_line(&parts.method, &parts.uri, &facts, status);
        core.requests.record(now, facts, status, changed);
    };
    let open = matches!(route, Route::Version | Route::Health);
    let caller = Caller {
        entrance: &entrance,
        authorization: parts
            .headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes),
        agent: &user_agent,
        open,
    };
    let requester = match identify(&core, caller, &parts.headers) {
        Ok(requester) => requester,
        Err(status) => {
            log(facts, Some(status.code), false);
            return Ok(finish(status.into(), media));
        }
    };
    facts.user.clone_from(&requester.user.name);
    let mut in_vain = None;
    match core.faults.judge(&facts).await {
        Verdict::Serve => {}
        Verdict::ServeInVain(answer) => in_vain = Some(answer),
        Verdict::Refuse => {
            log(facts, None, false);
            return Err(TransportError(()));
        }
        Verdict::Answer(answer) => {
            log(facts, Some(answer.code()), false);
            return Ok(finish(answer, media));
        }
    }
    let wanted = facts.attributes(&requester.user, &parts.method, parts.uri.path());
    let body = match admit(&core, &requester, (!open).then_some(&wanted), body).await {
        Ok(body) => body,
        Err(status) => {
            log(facts, Some(status.code), false);
            return Ok(finish(status.into(), media));
        }
    };
    let incoming = Incoming {
        method: parts.method.clone(),
        query,
        requester,
        user_agent,
        accept,
        content_type: text(&parts.headers, header::CONTENT_TYPE),
        may_be_form: matches!(entrance, Entrance::Socket) && may_be_form(&parts.headers),
        body,
        from_outside: entrance == Entrance::Socket,
    };
    let Outcome { answer, changed } = dispatch(&core, &route, &Arc::new(incoming)).await;
    let heard = in_vain.unwrap_or(Some(answer));
    log(facts, heard.as_ref().map(Answer::code), changed);
    let response = heard.map(|answer| finish(answer, media));
    let response = response.ok_or(TransportError(()))?;
    Ok(answer_to(&parts.method, response))
}

/// Who makes a request, or as whom.
fn identify(core: &Core, caller: Caller<'_>, headers: &HeaderMap) -> Result<Requester, Status> {
    let account = |claims: &Value| core.stage.with(|registry| registry.account_of(claims));
    let requester = core.access.identify(caller, account)?;
    if !requester.has_roles() {
        return Ok(requester);
    }
    let need = |wanted: &Attributes<'_>| need(core, &requester, wanted);
    let user = impersonated(headers, &requester, need)?;
    Ok(match user {
        Some(user) => requester.acting_as(user),
        None => requester,
    })
}

/// Reads the body of a request, if the requester may make it.
async fn admit<B>(
    core: &Core,
    requester: &Requester,
    wanted: Option<&Attributes<'_>>,
    body: B,
) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(wanted) = wanted {
        need(core, requester, wanted)?;
    }
    let limit = core.config.max_request_bytes;
    let Ok(body) = Limited::new(body, limit).collect().await else {
        return Err(Status::too_large(&format!("limit is {limit}")));
    };
    Ok(body.to_bytes())
}

/// Refuses what the requester may not do.
fn need(core: &Core, requester: &Requester, wanted: &Attributes<'_>) -> Result<(), Status> {
    requester.need(wanted, |ruling| {
        core.stage.with(|registry| ruling(&registry.store))
    })
}

/// What a request of this method gets to see of a response.
fn answer_to(method: &Method, response: Response<ResponseBody>) -> Response<ResponseBody> {
    if *method == Method::HEAD {
        without_body(response)
    } else {
        response
    }
}

/// What `RUST_LOG` with the target `homeostat_apiserver::requests` shows of a request. Nothing of
/// its bodies.
fn log_line(method: &Method, uri: &Uri, facts: &RequestFacts, status: Option<u16>) {
    let RequestFacts {
        user, user_agent, ..
    } = facts;
    let status = status.unwrap_or_default();
    tracing::debug!(
        target: "homeostat_apiserver::requests",
        "{method} {uri} {status} {user:?} {user_agent:?}",
    );
}

async fn dispatch(core: &Arc<Core>, route: &Route, incoming: &Arc<Incoming>) -> Outcome {
    let is_get = incoming.method == Method::GET;
    let answer = match route {
        Route::Version
        | Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Resources { .. }
        | Route::WholeDescription
            if !is_get =>
        {
            Status::method_not_allowed().into()
        }
        Route::Resource(path) => return resource::serve(core, path, incoming).await,
        Route::Version => Answer::ok(discovery::version()),
        Route::Health => Answer::Text {
            code: 200,
            text: "ok".to_owned(),
            retry_after: None,
        },
        Route::Debug(action) => debug::answer(core, action, incoming).await,
        Route::Unknown => Answer::page_not_found(),
        Route::WholeDescription => {
            // Writing it takes long: nobody else has to wait for it.
            let catalog = core.stage.with(|registry| registry.catalog.clone());
            openapi::whole(&catalog, &incoming.accept)
        }
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

/// An answer to HEAD says how long the body would be, and has none.
fn without_body(response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.map(|_| ResponseBody {
        inner: Empty::new().boxed_unsync(),
    })
}

/// Whether a form on a web page can send these headers. A page cannot make a browser send any of those that are
/// looked for to another origin without asking the server first.
fn may_be_form(headers: &HeaderMap) -> bool {
    let starts_with = |name: header::HeaderName, start: &[u8]| {
        let values = headers.get_all(name).iter();
        let mut starts = values.map(|value| value.as_bytes().to_ascii_lowercase());
        starts.any(|value| value.starts_with(start))
    };
    !(headers.contains_key("x-homeostat-debug")
        || starts_with(header::CONTENT_TYPE, b"application/json")
        || starts_with(header::AUTHORIZATION, b"bearer "))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
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

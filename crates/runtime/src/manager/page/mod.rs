//! The page for people, and what it asks for.

mod samples;
mod state;

pub(super) use self::samples::STEP;
use self::{
    samples::Samples,
    state::{key_value, state},
};
use super::{Handle, handle::Shared};
use crate::controller::{About, Desk};
use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    fmt::Write,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{sync::Semaphore, time::sleep};

/// A text, or one that goes on.
pub(super) type Body =
    Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

const PAGE: &str = include_str!("page.html");
/// What stands in the page where a number goes that is used once.
const NONCE: &str = "NONCE";
/// How often the page is told what is going on.
const PERIOD: Duration = Duration::from_secs(1);
/// How many pages are kept up to date at once. Each takes a connection, of which probes need some.
const LIVE: usize = 16;
/// How many objects a search shows.
const FOUND: usize = 50;

/// The page of a manager.
pub(super) struct Page {
    shared: Arc<Shared>,
    /// What actions are allowed with, and everything from other machines.
    token: Option<String>,
    samples: Mutex<Samples>,
    live: Arc<Semaphore>,
}

/// What a request wants.
struct Asked {
    controller: String,
    namespace: Option<String>,
    name: String,
    text: String,
}

// === impl Page ===

impl Page {
    pub(super) fn new(shared: Arc<Shared>, token: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            shared,
            token,
            samples: Mutex::default(),
            live: Arc::new(Semaphore::new(LIVE)),
        })
    }

    /// Takes a sample of what the plots show.
    pub(super) fn sample(&self) {
        let units = self.controllers();
        let abouts = units.iter().filter_map(|(_, about)| about.get());
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.take(abouts);
    }

    /// The answer, if the page has this path. The request came to the address `local`.
    pub(super) async fn answer<B>(
        self: &Arc<Self>,
        local: SocketAddr,
        request: &Request<B>,
    ) -> Option<Response<Body>> {
        let path = request.uri().path();
        let wanted = match path {
            "/" | "/api/state" | "/api/live" | "/api/find" | "/api/explain" => Method::GET,
            "/api/requeue" => Method::POST,
            _ => return None,
        };
        let is_read = wanted == Method::GET;
        if *request.method() != wanted && !(is_read && *request.method() == Method::HEAD) {
            let mut answer = text(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{path} is for {wanted}\n"),
            );
            let allow = if is_read { "GET, HEAD" } else { "POST" };
            answer
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static(allow));
            return Some(answer);
        }
        if let Some((status, why)) = self.refusal(local, request, path, is_read) {
            return Some(text(status, why));
        }
        let asked = Asked::of(request.uri().query().unwrap_or_default());
        Some(match path {
            "/" => page(),
            "/api/live" => self.live(),
            "/api/state" => json_of(StatusCode::OK, &self.state().await),
            "/api/find" => self.find(asked).await,
            "/api/explain" => self.explain(asked).await,
            _ => self.requeue(asked).await,
        })
    }

    /// Why this is not answered.
    fn refusal<B>(
        &self,
        local: SocketAddr,
        request: &Request<B>,
        path: &str,
        is_read: bool,
    ) -> Option<(StatusCode, String)> {
        let is_near = local.ip().to_canonical().is_loopback();
        let Some(token) = &self.token else {
            let why = if !is_near {
                "the page is for the loopback interface; other addresses need a token: see manager::Server::token, \
                 or use kubectl port-forward with a server on 127.0.0.1\n"
            } else if !is_read {
                "actions need a token, and none was set: see manager::Server::token\n"
            } else {
                return None;
            };
            return Some((StatusCode::FORBIDDEN, why.into()));
        };
        // The page itself tells nothing.
        if path == "/" || is_read && is_near {
            return None;
        }
        let given = request.headers().get(header::AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer "));
        match given {
            Some(given) if is_same(given, token) => None,
            Some(_) => Some((StatusCode::UNAUTHORIZED, "this is not the token\n".into())),
            None => Some((
                StatusCode::UNAUTHORIZED,
                "send the token as `Authorization: Bearer TOKEN`\n".into(),
            )),
        }
    }

    /// The controllers, by name.
    fn controllers(&self) -> Vec<(String, Arc<OnceLock<About>>)> {
        let units = self.shared.units();
        let controllers = units.values().filter(|known| known.is_controller);
        controllers
            .map(|known| (known.name.clone(), Arc::clone(&known.about)))
            .collect()
    }

    async fn state(&self) -> Value {
        let samples = {
            let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            samples.to_value()
        };
        let handle = Handle::new(Arc::clone(&self.shared));
        state(&handle, self.controllers(), samples, self.token.is_some()).await
    }

    /// The state, again and again, as server-sent events.
    fn live(self: &Arc<Self>) -> Response<Body> {
        let Ok(permit) = Arc::clone(&self.live).try_acquire_owned() else {
            let why = format!("{LIVE} pages are open already, which is the most\n");
            return text(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let begin = (Arc::clone(self), permit, false);
        let events = stream::unfold(begin, |(page, permit, is_late)| async move {
            if is_late {
                sleep(PERIOD).await;
            }
            let event = format!("data: {}\n\n", page.state().await);
            Some((Ok(Frame::data(Bytes::from(event))), (page, permit, true)))
        });
        let body = Either::Right(StreamBody::new(events.boxed()));
        with_headers(Response::new(body), "text/event-stream")
    }

    /// Asks a controller by name.
    async fn ask<T: Send + 'static>(
        &self,
        controller: &str,
        question: impl FnOnce(&mut dyn Desk) -> T + Send + 'static,
    ) -> Result<T, Response<Body>> {
        let mut named = self.controllers().into_iter();
        let named = named.find(|(name, _)| name == controller);
        let Some((_, about)) = named else {
            let why = format!("there is no controller {controller:?}\n");
            return Err(text(StatusCode::NOT_FOUND, why));
        };
        let answer = match about.get() {
            Some(about) => about.asker.ask(question).await,
            None => None,
        };
        answer.ok_or_else(|| {
            let why = format!("{controller} does not answer: it starts, has ended or is blocked\n");
            text(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    async fn find(&self, asked: Asked) -> Response<Body> {
        let Asked {
            controller, text, ..
        } = asked;
        let found = self.ask(&controller, move |desk| desk.find(&text, FOUND));
        match found.await {
            Ok(found) => {
                let found: Vec<Value> = found.iter().map(key_value).collect();
                json_of(StatusCode::OK, &json!({ "objects": found, "limit": FOUND }))
            }
            Err(refusal) => refusal,
        }
    }

    async fn explain(&self, asked: Asked) -> Response<Body> {
        let Asked {
            controller,
            namespace,
            name,
            ..
        } = asked;
        let wanted = (namespace.clone(), name.clone());
        let question = move |desk: &mut dyn Desk| desk.look_up(wanted.0.as_deref(), &wanted.1);
        match self.ask(&controller, question).await {
            Ok(Some((status, explanation))) => {
                let mut value = key_value(&status);
                value["explanation"] = explanation.to_string().into();
                json_of(StatusCode::OK, &value)
            }
            Ok(None) => not_there(&controller, namespace, &name),
            Err(refusal) => refusal,
        }
    }

    async fn requeue(&self, asked: Asked) -> Response<Body> {
        let Asked {
            controller,
            namespace,
            name,
            ..
        } = asked;
        let wanted = (namespace.clone(), name.clone());
        let question = move |desk: &mut dyn Desk| desk.run_now(wanted.0.as_deref(), &wanted.1);
        match self.ask(&controller, question).await {
            Ok(true) => {
                tracing::info!(controller, namespace, name, "a person asks for a run");
                json_of(StatusCode::OK, &json!({ "requeued": true }))
            }
            Ok(false) => not_there(&controller, namespace, &name),
            Err(refusal) => refusal,
        }
    }
}

// === impl Asked ===

impl Asked {
    fn of(query: &str) -> Self {
        let mut asked = Self {
            controller: String::new(),
            namespace: None,
            name: String::new(),
            text: String::new(),
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match &*name {
                "controller" => asked.controller = value,
                "namespace" if !value.is_empty() => asked.namespace = Some(value),
                "name" => asked.name = value,
                "text" => asked.text = value,
                _ => {}
            }
        }
        asked
    }
}

/// Whether two texts are the same, in a time that does not tell how much of them is.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes());
    let differences = differences.fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

fn page() -> Response<Body> {
    let mut number = [0; 16];
    if getrandom::fill(&mut number).is_err() {
        let why = "this system gives no random numbers\n".into();
        return text(StatusCode::INTERNAL_SERVER_ERROR, why);
    }
    let nonce = number.iter().fold(String::new(), |mut text, byte| {
        let _never_fails = write!(text, "{byte:02x}");
        text
    });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let body = Either::Left(Full::new(Bytes::from(PAGE.replace(NONCE, &nonce))));
    let mut answer = with_headers(Response::new(body), "text/html; charset=utf-8");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        answer
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn not_there(controller: &str, namespace: Option<String>, name: &str) -> Response<Body> {
    let place = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
    let why = format!("the cache of {controller} has no object {place}{name}\n");
    text(StatusCode::NOT_FOUND, why)
}

fn json_of(status: StatusCode, value: &Value) -> Response<Body> {
    let body = Either::Left(Full::new(Bytes::from(value.to_string())));
    let mut answer = with_headers(Response::new(body), "application/json");
    *answer.status_mut() = status;
    answer
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    let body = Either::Left(Full::new(Bytes::from(text)));
    let mut answer = with_headers(Response::new(body), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

fn with_headers(mut answer: Response<Body>, content_type: &'static str) -> Response<Body> {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::{Page, is_same};
    use crate::manager::handle::Shared;
    use http::Request;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn other_machines_need_the_token_and_so_does_whatever_changes_something() {
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            Ok::<_, std::io::Error>(http::Response::new(kube::client::Body::empty()))
        });
        let (near, far) = ("127.0.0.1:80", "10.0.0.1:80");
        for (token, local, path, is_read, given, status) in [
            (None, near, "/", true, None, None),
            (None, near, "/api/state", true, None, None),
            (None, near, "/api/requeue", false, None, Some(403)),
            (None, near, "/api/requeue", false, Some(""), Some(403)),
            (None, far, "/", true, None, Some(403)),
            (None, far, "/api/state", true, Some("x"), Some(403)),
            (Some("x"), near, "/api/state", true, None, None),
            (Some("x"), near, "/api/requeue", false, None, Some(401)),
            (Some("x"), near, "/api/requeue", false, Some("y"), Some(401)),
            (Some("x"), near, "/api/requeue", false, Some("x"), None),
            (Some("x"), far, "/", true, None, None),
            (Some("x"), far, "/api/state", true, None, Some(401)),
            (Some("x"), far, "/api/state", true, Some("x"), None),
            (Some("x"), "[::1]:80", "/api/state", true, None, None),
        ] {
            let client = kube::Client::new(service, "default");
            let shared = Arc::new(Shared::new(client, mpsc::unbounded_channel().0));
            let page = Page::new(shared, token.map(str::to_owned));
            let mut request = Request::builder();
            if let Some(given) = given {
                request = request.header("authorization", format!("Bearer {given}"));
            }
            let request = request.body(()).unwrap();
            let refusal = page.refusal(local.parse().unwrap(), &request, path, is_read);
            let refusal = refusal.map(|(status, _)| status.as_u16());
            assert_eq!(refusal, status, "{token:?} {local} {path} {given:?}");
        }
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same("abc", "abc"));
        for other in ["", "ab", "abd", "abcd", "xbc"] {
            assert!(!is_same("abc", other), "{other}");
        }
    }
}

//! Looking at a write of a run that is observed: what is sent, and the object before and after it.
//!
//! Only runs that are suspected to loop are observed, a few each, so the read before each of their
//! writes weighs nothing. What is seen stays within the process; what is reported of it is shortened,
//! and of Secrets it is only the place.

use super::{
    request::{Target, Verb},
    texts::Part,
};
use bytes::Bytes;
use homeostat_core::loops::{Form, Sight};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::Mutex;
use tower::{BoxError, Service, ServiceExt};

/// What a write is going to do.
pub(super) struct Intent {
    form: Form,
    /// The body of the request; `None` if it is none that can be looked at twice.
    sent: Option<Body>,
    /// How to read the object before the write; `None` if there is none yet.
    get: Option<Request<Body>>,
}

impl Intent {
    pub(super) fn of(request: &Request<Body>, target: &Target) -> Self {
        let has_object =
            target.texts.get(Part::Name).is_some() && target.verb != Verb::DeleteCollection;
        Self {
            form: form(request, target.verb),
            sent: request.body().try_clone(),
            get: has_object.then(|| get(request, target)).flatten(),
        }
    }

    /// Looks at the object before the write. What comes after it is not known yet.
    pub(super) async fn look<S, B>(self, inner: &Mutex<S>) -> Sight
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes>,
    {
        let Self { form, sent, get } = self;
        let before = match get {
            Some(get) => read(inner, get).await,
            None => None,
        };
        let sent = match sent {
            Some(sent) => sent.collect_bytes().await.unwrap_or_default(),
            None => Bytes::new(),
        };
        Sight {
            form,
            sent: serde_json::from_slice(&sent).unwrap_or(Value::Null),
            before,
            after: None,
        }
    }
}

/// The request that reads what `request` writes. It reads the object for its status: that shows the same, and roles
/// allow operators to read the object, but seldom the subresource.
fn get(request: &Request<Body>, target: &Target) -> Option<Request<Body>> {
    const STATUS: &str = "/status";
    let is_status = target.texts.get(Part::Subresource) == Some(&STATUS[1..]);
    let path = request.uri().path();
    let path = path
        .strip_suffix(STATUS)
        .filter(|_| is_status)
        .unwrap_or(path);
    let mut get = Request::new(Body::empty());
    *get.method_mut() = Method::GET;
    *get.uri_mut() = path.parse().ok()?;
    let json = HeaderValue::from_static("application/json");
    get.headers_mut().insert(header::ACCEPT, json);
    if let Some(agent) = request.headers().get(header::USER_AGENT) {
        get.headers_mut().insert(header::USER_AGENT, agent.clone());
    }
    Some(get)
}

/// The object that is read, if there is one.
async fn read<S, B>(inner: &Mutex<S>, get: Request<Body>) -> Option<Value>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes>,
{
    let answer = {
        let mut inner = inner.lock().await;
        inner.ready().await.ok()?.call(get)
    };
    let response = answer.await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = response.into_body().collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}

fn form(request: &Request<Body>, verb: Verb) -> Form {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let is_json_patch =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json-patch"));
    match verb {
        Verb::Create | Verb::Update => Form::Whole,
        Verb::Patch if is_json_patch => Form::Other,
        Verb::Patch | Verb::Apply => Form::Merge,
        Verb::Delete | Verb::DeleteCollection => Form::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::request::Target, get};
    use http::Request;
    use kube::client::Body;

    #[test]
    fn a_status_is_read_by_the_path_of_its_object() {
        for (path, expected) in [
            (
                "/apis/x.io/v1/namespaces/a/sites/b/status?force=true",
                "/apis/x.io/v1/namespaces/a/sites/b",
            ),
            (
                "/apis/x.io/v1/namespaces/a/sites/status",
                "/apis/x.io/v1/namespaces/a/sites/status",
            ),
            (
                "/apis/x.io/v1/namespaces/a/sites/b/scale",
                "/apis/x.io/v1/namespaces/a/sites/b/scale",
            ),
            ("/api/v1/namespaces/a/status", "/api/v1/namespaces/a"),
        ] {
            let request = Request::patch(path).body(Body::empty()).unwrap();
            let target = Target::of(&request).unwrap();
            let get = get(&request, &target).unwrap();
            assert_eq!(get.uri().path(), expected, "{path}");
        }
    }
}

//! A server that answers what a test tells it to, in order, as people test their operators.

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::Value;
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

/// The script, and what was asked for. Clones are one server.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    asked: Vec<(String, Value)>,
}

struct Step {
    /// The method and the beginning of the path.
    expected: (Method, String),
    answer: (u16, Value),
}

// === impl Scripted ===

impl Scripted {
    /// The next request must be this one. `path` is its beginning.
    pub(crate) fn expect(self, method: Method, path: &str, status: u16, answer: Value) -> Self {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .steps
            .push_back(Step {
                expected: (method, path.to_owned()),
                answer: (status, answer),
            });
        self
    }

    /// A client of the server.
    pub(crate) fn client(&self) -> Client {
        let state = Arc::clone(&self.state);
        let service = tower::service_fn(move |request: Request<Body>| {
            let state = Arc::clone(&state);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap_or_default();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let answer = state.lock().unwrap_or_else(PoisonError::into_inner).answer(
                    &parts.method,
                    &parts.uri.to_string(),
                    body,
                );
                Ok::<_, Infallible>(answer)
            }
        });
        Client::new(service, "default")
    }

    /// The bodies of the requests so far, after the script has come to its end.
    pub(crate) fn finished(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left: Vec<_> = state.steps.iter().map(|step| &step.expected).collect();
        assert!(left.is_empty(), "still expected: {left:?}");
        state.asked.iter().map(|(_, body)| body.clone()).collect()
    }
}

impl State {
    fn answer(&mut self, method: &Method, uri: &str, body: Value) -> Response<Body> {
        let step = self.steps.pop_front();
        let step = step.unwrap_or_else(|| panic!("nothing more is expected: {method} {uri}"));
        let (expected, path) = &step.expected;
        assert!(
            expected == method && uri.starts_with(path.as_str()),
            "expected {expected} {path}, and not {method} {uri}"
        );
        self.asked.push((format!("{method} {uri}"), body));
        let (status, answer) = step.answer;
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = http::StatusCode::from_u16(status).expect("it is a status");
        response
    }
}

//! The program's traces as a collector receives them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use homeostat::{client::Tracked, wait::await_condition_within};
use homeostat_apiserver::ApiServer;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    api::{ObjectMeta, PostParams},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpListener, sync::oneshot};
use tracing_example::COPIED;

const DEADLINE: Duration = Duration::from_secs(30);

/// A span as it was received.
#[derive(Debug, Clone)]
struct Span {
    name: String,
    trace: String,
    id: String,
    parent: String,
    attributes: BTreeMap<String, String>,
    links: usize,
}

impl Span {
    fn read(span: &Value) -> Self {
        let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
        let list = |name: &str| span[name].as_array().cloned().unwrap_or_default();
        let attribute = |of: &Value| {
            let value = of["value"].as_object().unwrap().values().next().unwrap();
            let value = value.as_str().map_or_else(|| value.to_string(), Into::into);
            (of["key"].as_str().unwrap().to_owned(), value)
        };
        Self {
            name: text("name"),
            trace: text("traceId"),
            id: text("spanId"),
            parent: text("parentSpanId"),
            attributes: list("attributes").iter().map(attribute).collect(),
            links: list("links").len(),
        }
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// What a collector has received.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

impl Collector {
    /// Listens, and returns its address.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let collector = self.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let collector = collector.clone();
                let service = service_fn(move |request| collector.clone().receive(request));
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(serving);
            }
        });
        address
    }

    async fn receive(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        assert_eq!(request.uri().path(), "/v1/traces");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let of = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        for resource in of(&body, "resourceSpans") {
            for scope in of(&resource, "scopeSpans") {
                let spans = of(&scope, "spans");
                self.0.lock().unwrap().extend(spans.iter().map(Span::read));
            }
        }
        Ok(Response::new(Full::new(Bytes::from_static(b"{}"))))
    }

    /// The spans of a name.
    fn spans(&self, name: &str) -> Vec<Span> {
        let spans = self.0.lock().unwrap();
        spans
            .iter()
            .filter(|span| span.name == name)
            .cloned()
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_its_run_and_the_requests_of_that_are_one_trace() {
    let collector = Collector::default();
    let provider = tracing_example::provider(&collector.start().await).unwrap();
    tracing::subscriber::set_global_default(tracing_example::subscriber(&provider)).unwrap();

    let server = ApiServer::builder().build();
    let listening = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}", listening.address());
    let client = Tracked::client(Config::new(url.parse().unwrap())).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(tracing_example::run(client, async {
        drop(stopped.await);
    }));

    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("settings".into()),
            labels: Some([(COPIED.into(), "yes".into())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("colour".into(), "green".into())].into()),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let is_there = |copy: Option<&ConfigMap>| copy.is_some();
    await_condition_within(maps, "settings-copy", is_there, DEADLINE)
        .await
        .unwrap();
    stop.send(()).unwrap();
    running.await.unwrap();
    tokio::task::spawn_blocking(move || provider.shutdown())
        .await
        .unwrap()
        .unwrap();

    let runs = collector.spans("reconciling object");
    let run = runs.first().unwrap();
    assert_eq!(
        run.attribute("object.ref"),
        "ConfigMap.v1./settings.default"
    );
    assert_eq!(run.attribute("attempt"), "1");
    assert_eq!(run.attribute("outcome"), "succeeded");
    let events = collector.spans("event");
    let event = events.iter().find(|event| event.id == run.parent);
    let event = event.unwrap_or_else(|| panic!("{run:?} in {events:?}"));
    assert_eq!(event.attribute("object.key"), "default/settings");
    assert!(event.parent.is_empty(), "{event:?}");
    let writes = collector.spans("write");
    let write = writes.iter().find(|write| write.parent == run.id).unwrap();
    let request = {
        let all = collector.0.lock().unwrap();
        all.iter().find(|span| span.parent == write.id).cloned()
    };
    let request = request.unwrap();
    assert_eq!(request.attribute("http.method"), "PATCH");
    assert_eq!(request.attribute("http.status_code"), "201");
    let traces = [event, run, write, &request].map(|span| &span.trace);
    assert!(traces.iter().all(|trace| *trace == traces[0]), "{traces:?}");
    assert_eq!(run.links, 0, "one event has led to it");
}

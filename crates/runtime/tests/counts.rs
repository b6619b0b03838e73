//! How often memory is allocated: for each object at the start, for each event and for each run. These are counts, the
//! same on every machine, so they fail here when something gets more expensive.

#![expect(clippy::cast_precision_loss, reason = "what is counted is small")]

use bytes::Bytes;
use futures::{StreamExt, future, stream};
use homeostat::{Action, Controller, client::Tracked, watcher};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt, client::Body};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use std::{
    alloc::System,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::{sync::mpsc, task::yield_now};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const OBJECTS: usize = 2000;

/// How often memory is allocated at the most, besides what decoding the object takes. A tenth more than was counted
/// when it was last looked at; lower them when something gets better.
const PER_OBJECT: f64 = 25.3;
const PER_EVENT: f64 = 26.4;
const PER_RUN: f64 = 18.7;

type Frames = mpsc::UnboundedReceiver<Bytes>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

#[derive(Debug, thiserror::Error)]
enum Never {}

fn config_map(number: usize, version: usize) -> Value {
    json!({
        "metadata": {
            "name": format!("team-application-{number:06}"),
            "namespace": format!("namespace-{}", number % 10),
            "uid": format!("6d0e9a3c-52f1-4c0b-9a55-{number:012}"),
            "resourceVersion": version.to_string(),
            "labels": { "app.kubernetes.io/name": "application", "app.kubernetes.io/managed-by": "Helm" },
            "managedFields": [{
                "manager": "helm", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:data": { ".": {}, "f:log-level": {} } },
            }],
        },
        "data": { "log-level": "info" },
    })
}

/// A client of a server with one list and one watch, whose events come from `events`.
fn client(events: Frames) -> Client {
    let items: Vec<Value> = (0..OBJECTS)
        .map(|number| config_map(number, number + 1))
        .collect();
    let version = (OBJECTS + 1).to_string();
    let list = json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": version }, "items": items });
    let list = Bytes::from(list.to_string());
    let events = Mutex::new(Some(events));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let answer: Answer = if query.contains("watch=true") {
            let events = events
                .lock()
                .ok()
                .and_then(|mut events| events.take())
                .expect("there is one watch");
            let frames = stream::unfold(events, |mut events| async move {
                let frame = http_body::Frame::data(events.recv().await?);
                Some((Ok(frame), events))
            });
            Response::new(BodyExt::boxed(StreamBody::new(frames)))
        } else {
            Response::new(http_body_util::Full::new(list.clone()).boxed())
        };
        future::ready(Ok::<_, Infallible>(answer))
    });
    Tracked::wrap(Client::new(service, "default"))
}

/// How often memory was allocated for each of so many.
fn each(stats: Stats, number: usize) -> f64 {
    (stats.allocations + stats.reallocations) as f64 / number as f64
}

async fn until(count: &AtomicUsize, wanted: usize) {
    while count.load(Relaxed) < wanted {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn allocations_do_not_become_more() {
    let (events, frames) = mpsc::unbounded_channel();
    let (trigger, mut triggers) = mpsc::unbounded_channel();
    let triggers = stream::poll_fn(move |cx| triggers.poll_recv(cx));
    let runs = Arc::new(AtomicUsize::new(0));
    let api = Api::<ConfigMap>::all(client(frames));
    let lines: Vec<Bytes> = (0..OBJECTS)
        .map(|number| config_map(number, OBJECTS + 2 + number))
        .map(|object| {
            Bytes::from(json!({ "type": "MODIFIED", "object": object }).to_string() + "\n")
        })
        .collect();
    let mut object = config_map(1, 1);
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let text = object.to_string();

    let region = Region::new(MEMORY);
    let object: ConfigMap = serde_json::from_str(&text).unwrap();
    let decoding = each(region.change(), 1);
    assert_eq!(object.name_any(), "team-application-000001");

    let region = Region::new(MEMORY);
    let counted = Arc::clone(&runs);
    let controller = Controller::new(api, watcher::Config::default().page_size(100_000))
        .reconcile_all_on(triggers)
        .run(
            move |_, _| {
                counted.fetch_add(1, Relaxed);
                future::ready(Ok::<_, Never>(Action::await_change()))
            },
            |_, error: &Never, _| match *error {},
            Arc::new(()),
        );
    let running = tokio::spawn(controller.for_each(|_| future::ready(())));
    until(&runs, OBJECTS).await;
    let per_object = each(region.change(), OBJECTS) - decoding;

    trigger.send(()).unwrap();
    until(&runs, 2 * OBJECTS).await;
    let region = Region::new(MEMORY);
    trigger.send(()).unwrap();
    until(&runs, 3 * OBJECTS).await;
    let per_run = each(region.change(), OBJECTS);

    let region = Region::new(MEMORY);
    for line in lines {
        events.send(line).unwrap();
    }
    until(&runs, 4 * OBJECTS).await;
    let per_event = each(region.change(), OBJECTS) - decoding;

    println!(
        "allocations: {decoding} to decode; {per_object:.2} per object, {per_event:.2} per event, {per_run:.2} per run"
    );
    assert!(!running.is_finished());
    assert!(per_object <= PER_OBJECT, "{per_object} per object");
    assert!(per_event <= PER_EVENT, "{per_event} per event");
    assert!(per_run <= PER_RUN, "{per_run} per run");
}

//! Tests with a script: the reconciler of an operator, and each request that it makes.

use super::runtime::{
    controller::Action,
    events::{Event, EventType, Recorder, Reporter},
    finalizer::{self, finalizer},
};
use crate::{cluster::from, scripted::Scripted};
use http::Method;
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event as Recorded};
use kube::{Api, Client, Resource, api::ListParams};
use serde_json::json;
use std::{sync::Arc, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

#[derive(Debug)]
enum Error {
    Kube(kube::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Kube(error) = self;
        error.fmt(f)
    }
}

impl std::error::Error for Error {}

fn event(reason: &str) -> Event {
    Event {
        type_: EventType::Normal,
        reason: reason.into(),
        note: None,
        action: "Testing".into(),
        secondary: None,
    }
}

struct Operator {
    client: Client,
    recorder: Recorder,
}

impl Operator {
    fn new(client: Client) -> Self {
        let reporter = Reporter {
            controller: "operator".into(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
        }
    }

    async fn reconcile(&self, map: Arc<ConfigMap>) -> Result<Action, finalizer::Error<Error>> {
        let maps = Api::<ConfigMap>::default_namespaced(self.client.clone());
        finalizer(
            &maps,
            "example.com/finalizer",
            map,
            async |event| match event {
                finalizer::Event::Apply(map) => self.apply(&map).await,
                finalizer::Event::Cleanup(map) => self.cleanup(&map).await,
            },
        )
        .await
    }

    async fn apply(&self, map: &ConfigMap) -> Result<Action, Error> {
        let about = map.object_ref(&());
        let published = self.recorder.publish(&event("Applied"), &about).await;
        published.map_err(Error::Kube)?;
        Ok(Action::requeue(Duration::from_secs(300)))
    }

    async fn cleanup(&self, map: &ConfigMap) -> Result<Action, Error> {
        let about = map.object_ref(&());
        let published = self.recorder.publish(&event("CleanedUp"), &about).await;
        published.map_err(Error::Kube)?;
        Ok(Action::await_change())
    }
}

fn map(more: serde_json::Value) -> Arc<ConfigMap> {
    let mut metadata = json!({ "name": "a", "namespace": "default", "uid": "u" });
    let more = more.as_object().expect("it is an object").clone();
    metadata
        .as_object_mut()
        .expect("it is an object")
        .extend(more);
    Arc::new(from(json!({ "metadata": metadata })))
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_comes_first_and_asks_for_nothing() {
    let answer = json!({ "metadata": { "name": "a" } });
    let path = format!("{MAPS}/a");
    let server = Scripted::default().expect(Method::PATCH, &path, 200, answer);
    let operator = Operator::new(server.client());
    let action = operator.reconcile(map(json!({}))).await;
    let action = action.expect("the finalizer is added");
    assert_eq!(action, Action::await_change());
    assert_eq!(format!("{action:?}"), "Action { requeue_after: None }");
    server.finished();
}

#[tokio::test(start_paused = true)]
async fn an_event_is_published_within_the_reconciler() {
    let server = Scripted::default().expect(Method::POST, EVENTS, 201, json!({}));
    let operator = Operator::new(server.client());
    let finalizers = json!({ "finalizers": ["example.com/finalizer"] });
    let action = operator.reconcile(map(finalizers)).await;
    let action = action.expect("the event is published");
    assert_eq!(
        format!("{action:?}"),
        "Action { requeue_after: Some(300s) }"
    );
    let [event] = &server.finished()[..] else {
        panic!("there is one request");
    };
    assert_eq!(event["reason"], "Applied");
    assert_eq!(event["regarding"]["uid"], "u");
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_before_the_end_of_the_finalizer() {
    let server = Scripted::default()
        .expect(Method::POST, EVENTS, 201, json!({}))
        .expect(
            Method::PATCH,
            &format!("{MAPS}/a"),
            200,
            json!({ "metadata": {} }),
        );
    let operator = Operator::new(server.client());
    let deleted = json!({
        "finalizers": ["example.com/finalizer"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    });
    let action = operator.reconcile(map(deleted)).await;
    assert_eq!(action.expect("all is cleaned up"), Action::await_change());
    server.finished();
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_fails_the_reconciler() {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "no events today", "reason": "Forbidden", "code": 403,
    });
    let server = Scripted::default().expect(Method::POST, EVENTS, 403, status);
    let operator = Operator::new(server.client());
    let finalizers = json!({ "finalizers": ["example.com/finalizer"] });
    let failed = operator.reconcile(map(finalizers)).await;
    let Err(finalizer::Error::ApplyFailed(Error::Kube(kube::Error::Api(status)))) = failed else {
        panic!("the server refuses: {failed:?}");
    };
    assert_eq!(
        (status.code, status.message.as_str()),
        (403, "no events today")
    );
    server.finished();
}

#[tokio::test(start_paused = true)]
async fn what_was_published_can_be_listed() {
    let cluster = crate::cluster::Cluster::start();
    let recorder = Recorder::new(cluster.program(), "lister".into());
    let map = map(json!({}));
    let events = cluster.api::<Recorded>();
    for count in 1..=3 {
        let published = recorder.publish(&event("Seen"), &map.object_ref(&())).await;
        published.expect("the server takes events");
        let list = events.list(&ListParams::default()).await;
        let list = list.expect("the server lists").items;
        let counts = list
            .iter()
            .map(|event| event.series.as_ref().map_or(1, |series| series.count));
        assert_eq!(counts.collect::<Vec<_>>(), [count]);
    }
}

//! A controller whose errors can be sent to another thread and not shared, and who reports them.

use super::runtime::{Controller, controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, annotation, config_map, create, during, until},
    journal::Journal,
};
use futures::StreamExt;
use homeostat_apiserver::{Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{cell::Cell, error, fmt, sync::Arc, time::Duration};
use tokio::time::Instant;

/// What failed, and whether somebody has looked at it.
#[derive(Debug)]
struct Failure {
    cause: Box<dyn error::Error + Send>,
    seen: Cell<bool>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot stamp: {}", self.cause)
    }
}

impl error::Error for Failure {}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self {
            cause: Box::new(error),
            seen: Cell::new(false),
        }
    }
}

async fn stamp(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Failure> {
    if annotation(&*map, "example.com/stamp").is_none() {
        let api = Api::<ConfigMap>::default_namespaced(Client::clone(&client));
        let patch = json!({ "metadata": { "annotations": { "example.com/stamp": "yes" } } });
        let params = PatchParams::default();
        api.patch(&map.name_any(), &params, &Patch::Merge(patch))
            .await?;
    }
    Ok(Action::await_change())
}

fn on_failure(_: Arc<ConfigMap>, failure: &Failure, _: Arc<Client>) -> Action {
    failure.seen.set(true);
    Action::requeue(Duration::from_secs(7))
}

async fn run(client: Client, output: Journal) {
    let start = Instant::now();
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let mut results = Controller::new(maps, watcher::Config::default().labels("stamp"))
        .run(stamp, on_failure, Arc::new(client))
        .boxed_local();
    while let Some(result) = results.next().await {
        let seconds = start.elapsed().as_secs();
        if let Err(error @ controller::Error::ReconcilerFailed(..)) = result {
            output.say(format!("{seconds} {error}"));
            if let controller::Error::ReconcilerFailed(failure, _) = error {
                output.say(format!("seen {}", failure.seen.get()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_and_tried_again() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    let patches = Rule::any().verb(Verb::Patch).resource("configmaps");
    let fault = cluster
        .faults()
        .inject(patches.times(2), Fault::InternalError);
    let mut map = config_map("letter", &[]);
    map.labels_mut().insert("stamp".into(), String::new());
    create(&maps, &map).await;

    during(run(cluster.program(), output.clone()), async {
        until(&maps, "letter", |map| {
            annotation(map, "example.com/stamp").is_some()
        })
        .await;
    })
    .await;
    assert_eq!(fault.hits(), 2);
    let lines = output.lines();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    for (line, second) in [(&lines[0], "0 "), (&lines[2], "7 ")] {
        assert!(line.starts_with(second), "{line}");
        assert!(line.contains("ConfigMap.v1./letter.default"), "{line}");
        assert!(line.contains("cannot stamp: "), "{line}");
        assert!(line.contains("an injected fault"), "{line}");
    }
    assert_eq!([&lines[1], &lines[3]], ["seen true"; 2]);
}

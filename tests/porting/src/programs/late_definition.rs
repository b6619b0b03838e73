//! A controller that is started before its kind is installed, and a watch that is not allowed yet.

use super::runtime::{
    Controller, WatchStreamExt, controller,
    controller::Action,
    utils::{Backoff, ResetTimerBackoff, StreamBackoff},
    watcher::{self, DefaultBackoff, watcher},
};
use crate::{
    cluster::{Cluster, config_map, create, during, merge, serve, until},
    journal::Journal,
};
use futures::StreamExt;
use homeostat_apiserver::{Fault, Rule};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Door", namespaced)]
struct DoorSpec {
    open: bool,
}

/// The same pause after each failure.
#[derive(Clone, Debug)]
struct Every(Duration);

impl Iterator for Every {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0)
    }
}

impl Backoff for Every {
    fn reset(&mut self) {}
}

async fn shut(door: Arc<Door>, doors: Arc<Api<Door>>) -> Result<Action, kube::Error> {
    if door.spec.open {
        let patch = Patch::Merge(json!({ "spec": { "open": false } }));
        doors
            .patch(&door.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, output: Journal) {
    let doors = Api::<Door>::default_namespaced(client);
    Controller::new(doors.clone(), watcher::Config::default())
        .trigger_backoff(Every(Duration::from_secs(3)))
        .run(shut, |_, _, _| Action::await_change(), Arc::new(doors))
        .for_each(|result| {
            let output = output.clone();
            async move {
                if let Err(controller::Error::QueueError(error)) = result {
                    output.say(error.to_string());
                }
            }
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_controller_waits_for_its_kind() {
    let cluster = Cluster::start();
    let output = Journal::default();
    during(run(cluster.program(), output.clone()), async {
        output.until_count(2).await;
        serve::<Door>(&cluster).await;
        let doors = cluster.api::<Door>();
        create(&doors, &Door::new("front", DoorSpec { open: true })).await;
        until(&doors, "front", |door| !door.spec.open).await;
        output.take();
        merge(&doors, "front", json!({ "spec": { "open": true } })).await;
        until(&doors, "front", |door| !door.spec.open).await;
    })
    .await;
    assert_eq!(output.lines(), [""; 0], "all is well again");
}

async fn list<B: Backoff + 'static>(client: Client, backoff: B, output: &Journal) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let events = watcher(maps, watcher::Config::default());
    let events: StreamBackoff<_, B> = events.backoff(backoff);
    let mut maps = std::pin::pin!(events.applied_objects());
    while let Some(item) = maps.next().await {
        match item {
            Ok(map) => return output.say(map.name_any()),
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) => {
                output.say(format!("{} {}", status.code, status.reason));
            }
            Err(error) => output.say(error.to_string()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_after_errors() {
    for (name, backoff) in [
        (
            "fixed",
            Box::new(Every(Duration::from_secs(2))) as Box<dyn Backoff>,
        ),
        ("default", Box::new(DefaultBackoff::default())),
        ("reset", {
            let every = Every(Duration::from_secs(5));
            Box::new(ResetTimerBackoff::new(every, Duration::from_secs(60)))
        }),
    ] {
        let cluster = Cluster::start();
        let output = Journal::default();
        create(&cluster.api::<ConfigMap>(), &config_map(name, &[])).await;
        let rule = Rule::any().resource("configmaps");
        let fault = cluster.faults().inject(rule, Fault::Forbidden);
        let allow = async {
            output.until_count(3).await;
            drop(fault);
        };
        futures::join!(list(cluster.program(), backoff, &output), allow);
        let refused = "403 Forbidden";
        assert_eq!(output.lines(), [refused, refused, refused, name]);
    }
}

//! A controller that deletes objects some time after it has first seen them.

use super::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use crate::cluster::{Cluster, an_hour, annotation, config_map, create, during, merge, until_gone};
use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

struct Reaper {
    client: Client,
    seen: Mutex<BTreeMap<String, Instant>>,
}

impl Reaper {
    fn first_seen(&self, uid: &str) -> Instant {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(uid.to_owned()).or_insert_with(Instant::now)
    }
}

async fn expire(map: Arc<ConfigMap>, reaper: Arc<Reaper>) -> Result<Action, kube::Error> {
    let minutes = annotation(&*map, "example.com/minutes").and_then(|it| it.parse().ok());
    let (Some(minutes), Some(uid)) = (minutes, map.uid()) else {
        return Ok(Action::await_change());
    };
    let lifetime = Duration::from_secs(60_u64.saturating_mul(minutes));
    let left = lifetime.saturating_sub(reaper.first_seen(&uid).elapsed());
    if !left.is_zero() {
        return Ok(Action::requeue(left));
    }
    let namespace = map.namespace().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(reaper.client.clone(), &namespace);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid),
        resource_version: None,
    });
    api.delete(&map.name_any(), &params).await?;
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let api = Api::<ConfigMap>::all(client.clone());
    let seen = Mutex::default();
    Controller::new(api, watcher::Config::default())
        .run(
            expire,
            |_, _, _| Action::requeue(Duration::from_secs(60)),
            Arc::new(Reaper { client, seen }),
        )
        .for_each(|result| {
            let _: Option<(ObjectRef<ConfigMap>, Action)> = result.ok();
            future::ready(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn objects_live_as_long_as_they_say() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    let minutes = |minutes: &str| json!({ "metadata": { "annotations": { "example.com/minutes": minutes } } });
    for (name, time) in [("short", "10"), ("long", "30"), ("eternal", "for ever")] {
        create(&maps, &config_map(name, &[])).await;
        merge(&maps, name, minutes(time)).await;
    }
    let start = Instant::now();
    let elapsed = || start.elapsed().as_secs() / 60;

    during(run(cluster.program()), async {
        until_gone(&maps, "short").await;
        assert_eq!(elapsed(), 10);
        // What changes is looked at earlier than was said.
        create(&maps, &config_map("short", &[])).await;
        merge(&maps, "long", minutes("11")).await;
        until_gone(&maps, "long").await;
        assert_eq!(elapsed(), 11);
        an_hour().await;
    })
    .await;
    let left = maps.list(&ListParams::default()).await.expect("a list");
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["eternal", "short"]);
    let expected = [
        "delete configmaps default/short",
        "delete configmaps default/long",
    ];
    assert_eq!(cluster.take_writes(), expected);
}

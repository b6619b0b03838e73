//! A controller that is dropped and made anew, as when a program loses its lease.

use super::runtime::{Controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, config_map, create, merge},
    journal::Journal,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

async fn lead(client: Client, output: &Journal) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let reconcile = async |map: Arc<ConfigMap>, output: Arc<Journal>| {
        output.say(map.name_any());
        Ok::<_, kube::Error>(Action::await_change())
    };
    Controller::new(maps, watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::await_change(),
            Arc::new(output.clone()),
        )
        .for_each(async |_| {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_the_one_before() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("a", &[])).await;
    let output = Journal::default();
    for term in 0..3 {
        // The lease is lost after an hour.
        let hour = Duration::from_secs(3600);
        let led = timeout(hour, lead(cluster.program(), &output)).await;
        assert!(led.is_err(), "it leads until it is told to stop");
        assert_eq!(output.take(), ["a"]);
        // What happens while nobody leads is seen by the next one, once.
        merge(&maps, "a", json!({ "data": { "term": term.to_string() } })).await;
        sleep(hour).await;
        assert!(output.take().is_empty());
    }
}

//! A program that follows its own settings.

use super::runtime::{WatchStreamExt, watcher::watch_object};
use crate::{
    cluster::{Cluster, config_map, create, delete, during, entry, merge},
    journal::Journal,
};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::json;

async fn run(client: Client, output: Journal) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let settings = watch_object(maps, "settings").default_backoff();
    pin_mut!(settings);
    while let Some(item) = settings.next().await {
        output.say(match item {
            Ok(Some(map)) => format!("level {}", entry(&map, "level").unwrap_or("unset")),
            Ok(None) => "no settings".to_owned(),
            Err(error) => error.to_string(),
        });
    }
}

#[tokio::test(start_paused = true)]
async fn settings_are_followed() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("others", &[("level", "9")])).await;
    during(run(cluster.program(), output.clone()), async {
        output.until_said("no settings").await;
        create(&maps, &config_map("settings", &[("level", "1")])).await;
        merge(&maps, "settings", json!({ "data": { "level": "2" } })).await;
        merge(&maps, "others", json!({ "data": { "level": "8" } })).await;
        delete(&maps, "settings").await;
        output.until_count(4).await;
        create(&maps, &config_map("settings", &[])).await;
        output.until_count(5).await;
    })
    .await;
    let expected = [
        "no settings",
        "level 1",
        "level 2",
        "no settings",
        "level unset",
    ];
    assert_eq!(output.lines(), expected);
}

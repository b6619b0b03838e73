//! A command that prints what is touched, until it has seen enough.

use super::runtime::{WatchStreamExt, watcher};
use crate::{
    cluster::{Cluster, config_map, create, delete, merge},
    journal::Journal,
};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::pin::pin;

async fn print(client: Client, selector: &str, output: Journal) -> watcher::Result<()> {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let config = watcher::Config::default().labels(selector);
    let mut maps = pin!(watcher(maps, config).default_backoff().touched_objects());
    while let Some(map) = maps.try_next().await? {
        output.say(format!(
            "{} {:?}",
            map.name_any(),
            map.data.unwrap_or_default()
        ));
        if output.lines().len() == 3 {
            break;
        }
    }
    output.say("enough");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn it_prints_and_ends() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    let shown = json!({ "metadata": { "labels": { "shown": "yes" } } });
    for name in ["a", "hidden"] {
        create(&maps, &config_map(name, &[])).await;
    }
    merge(&maps, "a", shown).await;
    let output = Journal::default();
    let scenario = async {
        output.until_count(1).await;
        merge(&maps, "hidden", json!({ "data": { "n": "0" } })).await;
        merge(&maps, "a", json!({ "data": { "n": "1" } })).await;
        output.until_count(2).await;
        delete(&maps, "a").await;
    };
    let program = print(cluster.program(), "shown=yes", output.clone());
    let (printed, ()) = futures::join!(program, scenario);
    printed.expect("nothing fails");
    let expected = ["a {}", "a {\"n\": \"1\"}", "a {\"n\": \"1\"}", "enough"];
    assert_eq!(output.take(), expected);
}

//! A controller for one object in one namespace, which is all that it may see.

use super::runtime::{Controller, controller::Action, watcher};
use crate::cluster::{Cluster, an_hour, config_map, create, during, entry, from, merge, until};
use futures::StreamExt;
use homeostat_apiserver::Verb;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Writes down the double of a number.
async fn double(map: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    let number = entry(&map, "number").and_then(|number| number.parse::<u64>().ok());
    let wanted = number.map(|number| (2 * number).to_string());
    if entry(&map, "double") != wanted.as_deref() {
        let patch = Patch::Merge(json!({ "data": { "double": wanted } }));
        api.patch(&map.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let api = Api::<ConfigMap>::namespaced(client, "blue");
    let only = watcher::Config::default()
        .fields("metadata.name=numbers")
        .disable_bookmarks();
    Controller::new(api.clone(), only)
        .run(
            double,
            |_, _, _| Action::requeue(Duration::from_secs(10)),
            Arc::new(api),
        )
        .for_each(|_| async {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_looked_at() {
    let cluster = Cluster::start();
    let namespaces = Api::<Namespace>::all(cluster.client());
    create(
        &namespaces,
        &from(json!({ "metadata": { "name": "blue" } })),
    )
    .await;
    let blue = Api::<ConfigMap>::namespaced(cluster.client(), "blue");
    let default = cluster.api::<ConfigMap>();
    for (api, name) in [(&blue, "others"), (&default, "numbers")] {
        create(api, &config_map(name, &[("number", "4")])).await;
    }
    let doubled =
        |wanted: Option<&'static str>| move |map: &ConfigMap| entry(map, "double") == wanted;

    during(run(cluster.program()), async {
        create(&blue, &config_map("numbers", &[("number", "21")])).await;
        until(&blue, "numbers", doubled(Some("42"))).await;
        merge(&blue, "numbers", json!({ "data": { "number": "none" } })).await;
        until(&blue, "numbers", doubled(None)).await;
        an_hour().await;
    })
    .await;
    for (api, name) in [(&blue, "others"), (&default, "numbers")] {
        until(api, name, doubled(None)).await;
    }
    for request in cluster.requests() {
        assert_eq!(
            (&*request.resource, &*request.namespace),
            ("configmaps", "blue")
        );
        if matches!(request.verb, Verb::List | Verb::Watch) {
            let only = (
                "fieldSelector".to_owned(),
                "metadata.name=numbers".to_owned(),
            );
            assert!(request.query.contains(&only), "{request:?}");
        }
    }
    assert_eq!(cluster.take_writes(), ["patch configmaps blue/numbers"; 2]);
}

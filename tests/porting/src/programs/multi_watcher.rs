//! A program that prints what is written to three kinds, as one stream.

use super::runtime::{WatchStreamExt, utils::EventDecode, watcher};
use crate::{
    cluster::{Cluster, config_map, create, delete, during, from, merge},
    journal::Journal,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

enum Written {
    Map(ConfigMap),
    Secret(Secret),
    Account(ServiceAccount),
}

/// The objects of a watch, of which the caller knows the type.
fn objects<K, S>(events: S) -> EventDecode<S>
where
    S: Stream<Item = watcher::Result<watcher::Event<K>>>,
{
    events.applied_objects()
}

async fn print(client: Client, output: Journal) -> watcher::Result<()> {
    let config = watcher::Config::default().labels("app=web");
    let maps = Api::<ConfigMap>::all(client.clone());
    let secrets = Api::<Secret>::all(client.clone());
    let accounts = Api::<ServiceAccount>::all(client);
    let maps = objects(watcher(maps, config.clone()).default_backoff());
    let secrets = objects(watcher(secrets, config.clone()).default_backoff());
    let accounts = objects(watcher(accounts, config).default_backoff());
    let mut all = stream::select_all([
        maps.map_ok(Written::Map).boxed(),
        secrets.map_ok(Written::Secret).boxed(),
        accounts.map_ok(Written::Account).boxed(),
    ]);
    while let Some(written) = all.try_next().await? {
        output.say(match written {
            Written::Map(map) => format!("map {}", map.name_any()),
            Written::Secret(secret) => format!("secret {}", secret.name_any()),
            Written::Account(account) => format!("account {}", account.name_any()),
        });
    }
    Ok(())
}

async fn run(client: Client, output: Journal) {
    if let Err(error) = print(client, output.clone()).await {
        output.say(error.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn three_kinds_come_as_one_stream() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let labelled = json!({ "name": "web", "labels": { "app": "web" } });
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &from(json!({ "metadata": labelled }))).await;
    create(&maps, &config_map("other", &[])).await;
    create(
        &cluster.api::<Secret>(),
        &from(json!({ "metadata": labelled })),
    )
    .await;

    during(run(cluster.program(), output.clone()), async {
        output.until_count(2).await;
        let mut lines = output.take();
        lines.sort();
        assert_eq!(lines, ["map web", "secret web"]);

        let accounts = cluster.api::<ServiceAccount>();
        create(&accounts, &from(json!({ "metadata": labelled }))).await;
        output.until_said("account web").await;
        merge(&maps, "web", json!({ "data": { "color": "blue" } })).await;
        output.until_said("map web").await;
        delete(&cluster.api::<Secret>(), "web").await;
        merge(
            &accounts,
            "web",
            json!({ "automountServiceAccountToken": false }),
        )
        .await;
        output.until_count(3).await;
        assert_eq!(output.take(), ["account web", "map web", "account web"]);
    })
    .await;
    assert!(cluster.take_writes().is_empty());
}

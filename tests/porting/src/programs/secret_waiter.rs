//! An operator whose error is that a secret is missing, with a long and fixed delay.

use super::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use crate::{
    cluster::{Cluster, config_map, create, during, entry, from},
    journal::Journal,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the secret {0} is missing")]
    Missing(String),
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

struct Context {
    secrets: Api<Secret>,
    begin: Instant,
    output: Journal,
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, Error> {
    let name = entry(&map, "secret").unwrap_or_default();
    let secret = ctx.secrets.get_opt(name).await?;
    let found = secret.ok_or_else(|| Error::Missing(name.into()));
    let at = ctx.begin.elapsed().as_secs();
    let word = if found.is_ok() { "found" } else { "missing" };
    ctx.output.say(format!("{word} {at}"));
    found.map(|_| Action::await_change())
}

async fn run(client: Client, output: Journal) {
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let ctx = Context {
        secrets: secrets.clone(),
        begin: Instant::now(),
        output,
    };
    let all = watcher::Config::default;
    Controller::new(maps, all())
        .watches(secrets, all(), |secret| {
            let map = secret.annotations().get("map").cloned();
            map.map(|map| ObjectRef::new(&map).within("default"))
        })
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(300)),
            Arc::new(ctx),
        )
        .for_each(async |_| {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_secret_ends_the_wait() {
    let cluster = Cluster::start();
    let map = config_map("a", &[("secret", "s")]);
    create(&cluster.api::<ConfigMap>(), &map).await;
    let output = Journal::default();
    during(run(cluster.program(), output.clone()), async {
        output.until_count(1).await;
        sleep(Duration::from_secs(100)).await;
        let metadata = json!({ "name": "s", "annotations": { "map": "a" } });
        let secret = from::<Secret>(json!({ "metadata": metadata }));
        create(&cluster.api::<Secret>(), &secret).await;
        output.until_count(2).await;
        crate::cluster::an_hour().await;
    })
    .await;
    assert_eq!(output.take(), ["missing 0", "found 100"]);
}

//! One operator for several kinds, generic over them, joined in one task.

use super::runtime::{Controller, controller::Action, watcher};
use crate::cluster::{Cluster, config_map, create, during, from, until};
use futures::StreamExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

struct Context<K> {
    api: Api<K>,
    value: &'static str,
}

async fn label<K>(object: Arc<K>, ctx: Arc<Context<K>>) -> Result<Action, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if object.labels().get("kind").map(String::as_str) != Some(ctx.value) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "kind": ctx.value } } }));
        let params = PatchParams::default();
        ctx.api.patch(&object.name_any(), &params, &patch).await?;
    }
    Ok(Action::await_change())
}

async fn run_for<K>(client: Client, value: &'static str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
{
    let api = Api::<K>::default_namespaced(client);
    let ctx = Context {
        api: api.clone(),
        value,
    };
    Controller::new(api, watcher::Config::default())
        .run(label::<K>, |_, _, _| Action::await_change(), Arc::new(ctx))
        .for_each(async |_| {})
        .await;
}

async fn run(client: Client) {
    futures::join!(
        run_for::<ConfigMap>(client.clone(), "map"),
        run_for::<Secret>(client, "secret"),
    );
}

#[tokio::test(start_paused = true)]
async fn each_kind_is_labelled() {
    let cluster = Cluster::start();
    let (maps, secrets) = (cluster.api::<ConfigMap>(), cluster.api::<Secret>());
    create(&maps, &config_map("a", &[])).await;
    during(run(cluster.program()), async {
        let labelled = |value: &'static str| move |labels: Option<&str>| labels == Some(value);
        let (map, secret) = (labelled("map"), labelled("secret"));
        until(&maps, "a", |it| map(crate::cluster::label(it, "kind"))).await;
        create(&secrets, &from(json!({ "metadata": { "name": "b" } }))).await;
        until(&secrets, "b", |it| {
            secret(crate::cluster::label(it, "kind"))
        })
        .await;
        crate::cluster::an_hour().await;
        let writes = ["patch configmaps default/a", "patch secrets default/b"];
        assert_eq!(cluster.take_writes(), writes);
    })
    .await;
}

//! A program whose traits come from preludes.

use super::{
    prelude::*,
    runtime::{watcher, watcher::Config},
};
use crate::cluster::{Cluster, create, from, serve};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
#[allow(
    unused_imports,
    reason = "the prelude of homeostat has all that this has"
)]
use kube::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Lamp", namespaced)]
struct LampSpec {
    watts: u32,
}

#[tokio::test(start_paused = true)]
async fn traits_are_in_scope() {
    let cluster = Cluster::start();
    serve::<Lamp>(&cluster).await;
    let lamps = cluster.api::<Lamp>();
    for watts in [40_u32, 60] {
        let name = format!("lamp-{watts}");
        let lamp = json!({ "metadata": { "name": name }, "spec": { "watts": watts } });
        create(
            &lamps,
            &from::<Lamp>(json!({
                "apiVersion": "example.com/v1", "kind": "Lamp",
                "metadata": lamp["metadata"], "spec": lamp["spec"],
            })),
        )
        .await;
    }
    // Of `CustomResourceExt`, `WatchStreamExt`, `ResourceExt` and `Resource`.
    assert_eq!(Lamp::crd_name(), "lamps.example.com");
    let lamps: Vec<Lamp> = watcher(lamps, Config::default())
        .default_backoff()
        .applied_objects()
        .take(2)
        .try_collect()
        .await
        .expect("the server lists");
    let names: Vec<String> = lamps.iter().map(|lamp| lamp.name_any()).collect();
    assert_eq!(names, ["lamp-40", "lamp-60"]);
    assert_eq!(lamps[0].object_ref(&()).kind.as_deref(), Some("Lamp"));
    assert_eq!(ConfigMap::kind(&()), "ConfigMap");
}

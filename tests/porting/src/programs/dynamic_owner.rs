//! A controller for kinds that it learns when it starts: a config map for each object.

use super::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use crate::{
    cluster::{Cluster, an_hour, create, delete, during, serve, until, until_gone},
    journal::Journal,
};
use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::PostParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Sensor", namespaced)]
struct SensorSpec {
    unit: String,
}

struct Context {
    client: Client,
    parent: ApiResource,
    child: ApiResource,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot make a child: {0}")]
struct Error(#[from] kube::Error);

async fn adopt(parent: Arc<DynamicObject>, ctx: Arc<Context>) -> Result<Action, Error> {
    let Context {
        client,
        parent: parent_type,
        child: child_type,
    } = &*ctx;
    let namespace = parent.namespace().unwrap_or_default();
    let children = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, child_type);
    let name = format!("{}-{}", parent_type.plural, parent.name_any());
    if children.get_opt(&name).await?.is_none() {
        let spec = parent.data.get("spec").cloned().unwrap_or_default();
        let mut child = DynamicObject::new(&name, child_type)
            .data(json!({ "data": { "spec": spec.to_string() } }));
        child.metadata.owner_references =
            parent.controller_owner_ref(parent_type).map(|it| vec![it]);
        children.create(&PostParams::default(), &child).await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, parent: GroupVersionKind, child: GroupVersionKind, output: Journal) {
    let parent = ApiResource::from_gvk(&parent);
    let child = ApiResource::from_gvk(&child);
    let parents = Api::<DynamicObject>::all_with(client.clone(), &parent);
    let children = Api::<DynamicObject>::all_with(client.clone(), &child);
    let ctx = Context {
        client,
        parent: parent.clone(),
        child: child.clone(),
    };
    Controller::new_with(parents, watcher::Config::default(), parent)
        .owns_with(children, child, watcher::Config::default())
        .run(adopt, |_, _, _| Action::await_change(), Arc::new(ctx))
        .for_each(|result| {
            if let Ok((reference, action)) = result {
                output.say(format!("{reference} {}", action == Action::await_change()));
            }
            future::ready(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn every_sensor_has_its_map() {
    let cluster = Cluster::start();
    let output = Journal::default();
    serve::<Sensor>(&cluster).await;
    let (sensors, maps) = (cluster.api::<Sensor>(), cluster.api::<ConfigMap>());
    let sensor = |unit: &str| SensorSpec { unit: unit.into() };
    create(&sensors, &Sensor::new("heat", sensor("K"))).await;
    let parent = GroupVersionKind::gvk("example.com", "v1", "Sensor");
    let child = GroupVersionKind::gvk("", "v1", "ConfigMap");

    during(
        run(cluster.program(), parent, child, output.clone()),
        async {
            let map = until(&maps, "sensors-heat", |_| true).await;
            let spec = map.data.and_then(|data| data.get("spec").cloned());
            assert_eq!(spec.as_deref(), Some(r#"{"unit":"K"}"#));
            delete(&maps, "sensors-heat").await;
            until(&maps, "sensors-heat", |_| true).await;
            an_hour().await;
            assert_eq!(cluster.take_writes(), ["create configmaps default"; 2]);

            delete(&sensors, "heat").await;
            until_gone(&maps, "sensors-heat").await;
            an_hour().await;
            assert!(cluster.take_writes().is_empty());
        },
    )
    .await;
    let resource = ApiResource::erase::<Sensor>(&());
    let reference = ObjectRef::<DynamicObject>::new_with("heat", resource).within("default");
    let said = format!("{reference} true");
    assert!(
        output.lines().iter().all(|line| *line == said),
        "{:?}",
        output.lines()
    );
    assert_eq!(said, "Sensor.v1.example.com/heat.default true");
}

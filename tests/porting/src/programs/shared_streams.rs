//! Two controllers for one kind, which share one watch and one store. T37: the way that the documents
//! of `kube::runtime` show it runs here, and does what they say.

use super::runtime::{
    Controller, WatchStreamExt,
    controller::{self, Action},
    reflector, watcher,
};
use crate::cluster::{Cluster, an_hour, annotation, create, during, from, label, merge, until};
use futures::{StreamExt, future};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

type Result<T, E = kube::Error> = std::result::Result<T, E>;

fn replicas(deployment: &Deployment) -> i32 {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

async fn change(api: &Api<Deployment>, name: &str, metadata: Value) -> Result<Action> {
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    api.patch_metadata(name, &PatchParams::default(), &patch)
        .await?;
    Ok(Action::await_change())
}

/// Labels deployments by their size.
async fn measure(deployment: Arc<Deployment>, api: Arc<Api<Deployment>>) -> Result<Action> {
    let size = if replicas(&deployment) > 3 {
        "large"
    } else {
        "small"
    };
    if label(&*deployment, "size") == Some(size) {
        return Ok(Action::await_change());
    }
    let labels = json!({ "labels": { "size": size } });
    change(&api, &deployment.name_any(), labels).await
}

/// Notes the highest number of replicas that a deployment has had.
async fn remember(deployment: Arc<Deployment>, api: Arc<Api<Deployment>>) -> Result<Action> {
    let before = annotation(&*deployment, "example.com/peak");
    let before = before.and_then(|value| value.parse().ok()).unwrap_or(0);
    let peak = replicas(&deployment).max(before);
    if peak == before {
        return Ok(Action::await_change());
    }
    let annotations = json!({ "annotations": { "example.com/peak": peak.to_string() } });
    change(&api, &deployment.name_any(), annotations).await
}

fn on_error<K>(_: Arc<K>, _: &kube::Error, _: Arc<Api<K>>) -> Action {
    Action::requeue(Duration::from_secs(10))
}

async fn run(client: Client) {
    let api = Api::<Deployment>::default_namespaced(client);
    let (reader, writer) = reflector::store_shared(128);
    let for_measure = writer.subscribe().expect("the store is shared");
    let for_remember = writer.subscribe().expect("the store is shared");
    let watch = watcher(api.clone(), watcher::Config::default())
        .default_backoff()
        .reflect_shared(writer)
        .for_each(|_| future::ready(()));

    let api = Arc::new(api);
    let one_at_a_time = controller::Config::default().concurrency(1);
    let sizes = Controller::for_shared_stream(for_measure, reader.clone())
        .with_config(one_at_a_time)
        .run(measure, on_error, Arc::clone(&api))
        .for_each(|_| future::ready(()));
    let peaks = Controller::for_shared_stream(for_remember, reader)
        .run(remember, on_error, api)
        .for_each(|_| future::ready(()));
    futures::join!(watch, sizes, peaks);
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    let labels = json!({ "app": name });
    from(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
            },
        },
    }))
}

#[tokio::test(start_paused = true)]
async fn both_controllers_see_all_objects_through_one_watch() {
    let cluster = Cluster::start();
    let api = cluster.api::<Deployment>();
    create(&api, &deployment("early", 5)).await;
    let is = |size: &'static str, peak: &'static str| {
        move |deployment: &Deployment| {
            label(deployment, "size") == Some(size)
                && annotation(deployment, "example.com/peak") == Some(peak)
        }
    };

    during(Box::pin(run(cluster.program())), async {
        until(&api, "early", is("large", "5")).await;
        create(&api, &deployment("late", 1)).await;
        until(&api, "late", is("small", "1")).await;
        merge(&api, "early", json!({ "spec": { "replicas": 2 } })).await;
        until(&api, "early", is("small", "5")).await;
        assert_eq!(cluster.watches_of("deployments"), 1);
        cluster.take_writes();
        an_hour().await;
        assert!(cluster.take_writes().is_empty());
    })
    .await;
}

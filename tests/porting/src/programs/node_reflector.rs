//! A program that counts the running pods of each worker, from two stores.

use super::runtime::{
    WatchStreamExt,
    reflector::{self, Store},
    utils::CancelableJoinHandle,
    watcher,
};
use crate::{
    cluster::{Cluster, create, during, from, merge, merge_status},
    journal::Journal,
};
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{Expression, Selector},
};
use serde_json::json;
use std::{collections::BTreeMap, pin::pin};
use tokio::runtime::Handle;

struct Inventory {
    nodes: Store<Node>,
    pods: Store<Pod>,
}

impl Inventory {
    /// The number of pods on each node, once both stores are complete.
    fn table(&self) -> Option<String> {
        self.nodes.wait_until_ready().now_or_never()?.ok()?;
        self.pods.wait_until_ready().now_or_never()?.ok()?;
        let mut counts = BTreeMap::new();
        for node in self.nodes.state() {
            counts.insert(node.name_any(), 0);
        }
        for pod in self.pods.state() {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref())?;
            if let Some(count) = counts.get_mut(node) {
                *count += 1;
            }
        }
        let rows = counts.iter().map(|(node, count)| format!("{node}:{count}"));
        Some(rows.collect::<Vec<_>>().join(" "))
    }
}

async fn run(client: Client, output: Journal) {
    let workers = Selector::from(Expression::In("role".into(), ["worker".to_owned()].into()));
    let (nodes, writer) = reflector::store();
    let config = watcher::Config::default().labels_from(&workers);
    let all_nodes = watcher(Api::<Node>::all(client.clone()), config)
        .default_backoff()
        .modify(|node| {
            node.managed_fields_mut().clear();
            node.status = None;
        })
        .reflect(writer)
        .touched_objects()
        .map(|_| ());

    let (pods, writer) = reflector::store();
    let running = watcher::Config::default().fields("status.phase=Running");
    let all_pods = watcher(Api::<Pod>::all(client), running.any_semantic())
        .default_backoff()
        .modify(|pod| pod.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects()
        .map(|_| ());

    let inventory = Inventory { nodes, pods };
    let printer = async move {
        let mut last = None;
        let mut changes = pin!(stream::select(all_nodes, all_pods));
        while let Some(()) = changes.next().await {
            let table = inventory.table();
            if table.is_some() && table != last {
                output.say(table.clone().unwrap_or_default());
                last = table;
            }
        }
    };
    CancelableJoinHandle::spawn(printer, &Handle::current()).await;
}

#[tokio::test(start_paused = true)]
async fn running_pods_are_counted_by_worker() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let nodes = Api::<Node>::all(cluster.client());
    let pods = cluster.api::<Pod>();
    for (name, role) in [("a", "worker"), ("b", "worker"), ("m", "main")] {
        let node = json!({ "metadata": { "name": name, "labels": { "role": role } } });
        create(&nodes, &from(node)).await;
    }
    for (name, node) in [("p1", "a"), ("p2", "b"), ("p3", "m")] {
        let containers = json!([{ "name": "main", "image": "example.com/main:1" }]);
        let spec = json!({ "nodeName": node, "containers": containers });
        create(
            &pods,
            &from(json!({ "metadata": { "name": name }, "spec": spec })),
        )
        .await;
    }
    let phase = async |name: &str, phase: &str| {
        merge_status(&pods, name, json!({ "status": { "phase": phase } })).await;
    };
    phase("p1", "Running").await;
    phase("p3", "Running").await;

    during(run(cluster.program(), output.clone()), async {
        phase("p2", "Running").await;
        output.until_said("a:1 b:1").await;
        merge(
            &nodes,
            "b",
            json!({ "metadata": { "labels": { "role": "spare" } } }),
        )
        .await;
        output.until_said("a:1").await;
        phase("p1", "Succeeded").await;
        output.until_said("a:0").await;
    })
    .await;
}

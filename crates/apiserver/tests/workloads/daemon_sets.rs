//! `DaemonSet`s and the nodes they are on.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::world::{World, assert_owner, numbers, template};

const COUNTS: [&str; 5] = [
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "updatedNumberScheduled",
    "numberReady",
    "numberAvailable",
];

fn spec(image: &str) -> Value {
    json!({
        "selector": { "matchLabels": { "app": "agent" } },
        "template": template("agent", image),
    })
}

async fn nodes(world: &World) -> Vec<String> {
    let pods = world.list("Pod").await;
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap().to_owned();
    let mut nodes: Vec<String> = pods.iter().map(node).collect();
    nodes.sort();
    nodes
}

#[tokio::test(start_paused = true)]
async fn each_node_has_a_pod() {
    let world = World::new();
    world.create("DaemonSet", "agent", spec("agent:1")).await;
    world.settle().await;
    assert_eq!(nodes(&world).await, ["node-1"]);
    world.create("Node", "node-2", json!({})).await;
    world
        .create("Node", "node-3", json!({ "unschedulable": true }))
        .await;
    world.settle().await;
    // It is on nodes that take no other pods.
    assert_eq!(nodes(&world).await, ["node-1", "node-2", "node-3"]);
    let set = world.get("DaemonSet", "agent").await;
    assert_eq!(numbers(&set, COUNTS), [3, 3, 3, 3, 3]);
    assert_eq!(set["status"]["observedGeneration"], 1);
    for pod in world.list("Pod").await {
        assert_owner(&pod, "DaemonSet", "agent");
    }

    world
        .patch(
            "DaemonSet",
            "agent",
            json!({ "spec": { "template": template("agent", "agent:2") } }),
        )
        .await;
    world.settle().await;
    let pods = world.list("Pod").await;
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "agent:2")
    );
    let set = world.get("DaemonSet", "agent").await;
    assert_eq!(numbers(&set, COUNTS), [3, 3, 3, 3, 3]);
    assert_eq!(world.names("ControllerRevision").await.len(), 2);

    world
        .delete("Node", "node-3", &DeleteParams::default())
        .await;
    let only = json!({ "kubernetes.io/hostname": "node-1" });
    let selector = json!({ "spec": { "template": { "spec": { "nodeSelector": only } } } });
    world.patch("DaemonSet", "agent", selector).await;
    world.settle().await;
    assert_eq!(nodes(&world).await, ["node-1"]);
    let set = world.get("DaemonSet", "agent").await;
    assert_eq!(numbers(&set, COUNTS), [1, 1, 1, 1, 1]);
}

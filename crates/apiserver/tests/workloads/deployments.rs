//! Deployments and their `ReplicaSet`s.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use homeostat_apiserver::{Fate, PodRule, Workload};
use kube::api::{DeleteParams, PropagationPolicy, WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::world::{World, assert_condition, assert_owner, numbers, template};

const COUNTS: [&str; 4] = [
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
];

fn spec(replicas: i64, image: &str) -> Value {
    json!({
        "replicas": replicas,
        "selector": { "matchLabels": { "app": "web" } },
        "template": template("web", image),
    })
}

#[tokio::test(start_paused = true)]
async fn a_deployment_makes_a_set_and_pods() {
    let world = World::new();
    world.create("Deployment", "web", spec(3, "app:1")).await;
    world.settle().await;

    let deployment = world.get("Deployment", "web").await;
    assert_eq!(numbers(&deployment, COUNTS), [3, 3, 3, 3]);
    assert_eq!(deployment["status"]["observedGeneration"], 1);
    assert_eq!(deployment["metadata"]["generation"], 1);
    let revision = &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    assert_eq!(revision, "1");
    assert_condition(&deployment, "Available", "True", "MinimumReplicasAvailable");
    assert_condition(&deployment, "Progressing", "True", "NewReplicaSetAvailable");

    let sets = world.list("ReplicaSet").await;
    assert_eq!(sets.len(), 1);
    let set = &sets[0];
    assert_owner(set, "Deployment", "web");
    let name = set["metadata"]["name"].as_str().unwrap();
    let hash = &set["metadata"]["labels"]["pod-template-hash"];
    assert_eq!(name, format!("web-{}", hash.as_str().unwrap()));
    let pods = world.list("Pod").await;
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_owner(pod, "ReplicaSet", name);
        assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], *hash);
        assert!(pod["metadata"]["name"].as_str().unwrap().starts_with(name));
        assert_eq!(pod["spec"]["nodeName"], "node-1");
        assert_eq!(pod["status"]["phase"], "Running");
        assert_condition(pod, "Ready", "True", "");
    }
}

/// Each step of a rollout, as somebody sees it who watches: never too many pods, never too few that are available.
#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_its_bounds() {
    for (surge, unavailable) in [
        (json!(1), json!(0)),
        (json!(0), json!(1)),
        (json!("50%"), json!("25%")),
    ] {
        let world = World::new();
        let mut spec = spec(4, "app:1");
        spec["strategy"] = json!({ "rollingUpdate": {
            "maxSurge": surge, "maxUnavailable": unavailable,
        } });
        world.create("Deployment", "web", spec).await;
        world.settle().await;
        let slow = Fate::ReadyAfter(Duration::from_secs(10));
        let _slow = world
            .server
            .workloads()
            .inject(PodRule::any().image("app:2"), slow);
        let before = world.list("Pod").await;
        let api = world.api("Pod");
        let version = world.server.revision().to_string();
        let watch = api.watch(&WatchParams::default(), &version).await.unwrap();
        let mut watch = watch.boxed();
        let template = json!({ "spec": { "template": template("web", "app:2") } });
        world.patch("Deployment", "web", template).await;

        let number = |value: &Value| match value.as_str() {
            Some("50%") => 2,
            Some(_) => 1,
            None => usize::try_from(value.as_i64().unwrap()).unwrap(),
        };
        let (most, least) = (4 + number(&surge), 4 - number(&unavailable));
        let state = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            let ready = crate::world::condition(pod, "Ready").0 == "True";
            (
                name,
                (ready, pod["spec"]["containers"][0]["image"] == "app:2"),
            )
        };
        let mut pods: BTreeMap<String, (bool, bool)> = before.iter().map(state).collect();
        let mut seen = (4, 4);
        while pods
            .values()
            .filter(|state| **state == (true, true))
            .count()
            < 4
        {
            let (gone, pod) = match watch.next().await.unwrap().unwrap() {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (false, json!(pod)),
                WatchEvent::Deleted(pod) => (true, json!(pod)),
                event @ (WatchEvent::Bookmark(_) | WatchEvent::Error(_)) => panic!("{event:?}"),
            };
            let (name, state) = state(&pod);
            if gone || !pod["metadata"]["deletionTimestamp"].is_null() {
                pods.remove(&name);
            } else {
                pods.insert(name, state);
            }
            let ready = pods.values().filter(|(ready, _)| *ready).count();
            seen = (seen.0.max(pods.len()), seen.1.min(ready));
        }
        assert_eq!(seen, (most, least), "{surge} {unavailable}");
        world.settle().await;
        let deployment = world.get("Deployment", "web").await;
        assert_eq!(numbers(&deployment, COUNTS), [4, 4, 4, 4]);
        assert_condition(&deployment, "Progressing", "True", "NewReplicaSetAvailable");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_pulled_is_late_and_then_rolled_back() {
    let world = World::new();
    let mut spec = spec(2, "app:1");
    spec["progressDeadlineSeconds"] = json!(60);
    world.create("Deployment", "web", spec).await;
    world.settle().await;
    let broken = world
        .server
        .workloads()
        .inject(PodRule::any().image("app:2"), Fate::ImagePullError);
    let template_of = |image: &str| json!({ "spec": { "template": template("web", image) } });
    world.patch("Deployment", "web", template_of("app:2")).await;
    world.pass(59).await;
    let deployment = world.get("Deployment", "web").await;
    assert_eq!(numbers(&deployment, COUNTS), [3, 1, 2, 2]);
    assert_condition(&deployment, "Progressing", "True", "ReplicaSetUpdated");
    let pods = world.list("Pod").await;
    let waiting = pods.iter().find(|pod| pod["status"]["phase"] == "Pending");
    let waiting = &waiting.unwrap()["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff");
    world.pass(2).await;
    let deployment = world.get("Deployment", "web").await;
    assert_condition(
        &deployment,
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
    );
    assert_condition(&deployment, "Available", "True", "MinimumReplicasAvailable");

    world.patch("Deployment", "web", template_of("app:1")).await;
    world.settle().await;
    let deployment = world.get("Deployment", "web").await;
    assert_eq!(numbers(&deployment, COUNTS), [2, 2, 2, 2]);
    assert_condition(&deployment, "Progressing", "True", "NewReplicaSetAvailable");
    let revision = &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    assert_eq!(revision, "3");
    assert_eq!(world.list("ReplicaSet").await.len(), 2);

    // When the image is there, it goes on by itself.
    world.patch("Deployment", "web", template_of("app:2")).await;
    world.pass(5).await;
    drop(broken);
    world.settle().await;
    let deployment = world.get("Deployment", "web").await;
    assert_eq!(numbers(&deployment, COUNTS), [2, 2, 2, 2]);
    assert!(
        world
            .list("Pod")
            .await
            .iter()
            .all(|pod| pod["status"]["phase"] == "Running")
    );
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_lost_are_replaced() {
    let world = World::new();
    world.create("Deployment", "web", spec(2, "app:1")).await;
    world.settle().await;
    let before = world.names("Pod").await;
    world
        .delete("Pod", &before[0], &DeleteParams::default())
        .await;
    world.settle().await;
    let after = world.names("Pod").await;
    assert_eq!(after.len(), 2);
    assert!(
        !after.contains(&before[0]) && after.contains(&before[1]),
        "{after:?}"
    );

    world
        .patch("Deployment", "web", json!({ "spec": { "replicas": 5 } }))
        .await;
    world.settle().await;
    assert_eq!(world.list("Pod").await.len(), 5);
    world
        .patch("Deployment", "web", json!({ "spec": { "replicas": 0 } }))
        .await;
    world.settle().await;
    assert_eq!(world.list("Pod").await.len(), 0);
    let deployment = world.get("Deployment", "web").await;
    assert_eq!(numbers(&deployment, COUNTS), [0, 0, 0, 0]);
    assert_eq!(deployment["status"]["observedGeneration"], 3);
}

/// An orphan is taken over, and one whose labels are changed is let go and replaced.
#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_released() {
    let world = World::new();
    let stray = json!({ "name": "stray", "labels": { "app": "web" } });
    let pod = json!({ "containers": [{ "name": "c", "image": "app:1" }] });
    world.create_with("Pod", stray, pod).await;
    world.create("ReplicaSet", "web", spec(2, "app:1")).await;
    world.settle().await;
    let pods = world.list("Pod").await;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert_owner(pod, "ReplicaSet", "web");
    }
    world
        .patch(
            "Pod",
            "stray",
            json!({ "metadata": { "labels": { "app": "x" } } }),
        )
        .await;
    world.settle().await;
    assert_eq!(world.list("Pod").await.len(), 3);
    let stray = world.get("Pod", "stray").await;
    assert_eq!(stray["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_the_dependents() {
    for (policy, left) in [
        (PropagationPolicy::Background, (0, 0)),
        (PropagationPolicy::Foreground, (0, 0)),
        (PropagationPolicy::Orphan, (1, 2)),
    ] {
        let world = World::new();
        world.create("Deployment", "web", spec(2, "app:1")).await;
        world.settle().await;
        let params = DeleteParams {
            propagation_policy: Some(policy.clone()),
            ..DeleteParams::default()
        };
        let slow = Fate::EndAfter(Duration::from_secs(5));
        let _slow = world.server.workloads().inject(PodRule::any(), slow);
        world.delete("Deployment", "web", &params).await;
        world.settle().await;
        // In the foreground the owner stays until the last pod has ended.
        let is_there = world.names("Deployment").await.len() == 1;
        assert_eq!(is_there, policy == PropagationPolicy::Foreground);
        world.pass(5).await;
        assert_eq!(world.names("Deployment").await.len(), 0);
        let found = (
            world.names("ReplicaSet").await.len(),
            world.names("Pod").await.len(),
        );
        assert_eq!(found, left, "{policy:?}");
    }
}

/// Nothing is done by one that is held back, and what others do goes on.
#[tokio::test(start_paused = true)]
async fn each_can_be_held_back() {
    let world = World::new();
    let held = [Workload::Pods, Workload::ReplicaSets, Workload::Deployments]
        .map(|workload| world.server.workloads().hold(workload));
    world.create("Deployment", "web", spec(1, "app:1")).await;
    let [pods, sets, deployments] = held;
    let found = async |world: &World| {
        world.settle().await;
        let pods = world.list("Pod").await;
        let running = pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running");
        (
            world.names("ReplicaSet").await.len(),
            pods.len(),
            running.count(),
        )
    };
    assert_eq!(found(&world).await, (0, 0, 0));
    drop(deployments);
    assert_eq!(found(&world).await, (1, 0, 0));
    drop(sets);
    assert_eq!(found(&world).await, (1, 1, 0));
    drop(pods);
    assert_eq!(found(&world).await, (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn pods_that_crash_do_so_less_and_less_often() {
    let world = World::new();
    let mut spec = spec(1, "app:1");
    spec["template"]["metadata"]["annotations"] = json!({ "homeostat.dev/pod": "crash-loop" });
    world.create("Deployment", "web", spec).await;
    for (seconds, restarts) in [(0, 1), (10, 2), (20, 3), (40, 4)] {
        world.pass(seconds).await;
        let pods = world.list("Pod").await;
        let container = &pods[0]["status"]["containerStatuses"][0];
        assert_eq!(container["restartCount"], restarts);
        assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    }
    let deployment = world.get("Deployment", "web").await;
    assert_condition(
        &deployment,
        "Available",
        "False",
        "MinimumReplicasUnavailable",
    );
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_a_node_and_for_their_first_containers() {
    let world = World::new();
    let mut spec = spec(1, "app:1");
    spec["template"]["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    spec["template"]["spec"]["initContainers"] = json!([{ "name": "i", "image": "init:1" }]);
    world.create("Deployment", "web", spec).await;
    world.settle().await;
    let pods = world.list("Pod").await;
    assert_condition(&pods[0], "PodScheduled", "False", "Unschedulable");
    let node = json!({ "name": "fast", "labels": { "disk": "ssd" } });
    world.create_with("Node", node, json!({})).await;
    world.settle().await;
    let node = world.get("Node", "fast").await;
    assert_condition(&node, "Ready", "True", "KubeletReady");
    let pods = world.list("Pod").await;
    assert_eq!(pods[0]["spec"]["nodeName"], "fast");
    assert_condition(&pods[0], "Ready", "True", "");
    let init = &pods[0]["status"]["initContainerStatuses"][0]["state"];
    assert_eq!(init["terminated"]["reason"], "Completed");
}

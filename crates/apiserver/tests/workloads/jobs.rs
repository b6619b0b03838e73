//! Jobs and their pods.

use std::time::Duration;

use homeostat_apiserver::{Fate, PodRule, Workload};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::world::{World, assert_condition, assert_owner, numbers};

const COUNTS: [&str; 3] = ["active", "succeeded", "failed"];

fn spec(more: &Value) -> Value {
    let mut spec = json!({ "template": { "spec": {
        "restartPolicy": "Never", "containers": [{ "name": "c", "image": "task:1" }],
    } } });
    for (member, value) in more.as_object().unwrap() {
        spec[member] = value.clone();
    }
    spec
}

#[tokio::test(start_paused = true)]
async fn a_job_completes() {
    let world = World::new();
    let run = Fate::RunFor(Duration::from_secs(30));
    let _run = world.server.workloads().inject(PodRule::any(), run);
    let spec = spec(&json!({ "completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 100 }));
    world.create("Job", "task", spec).await;
    world.settle().await;
    let job = world.get("Job", "task").await;
    assert_eq!(numbers(&job, COUNTS), [2, 0, 0]);
    assert_eq!(job["status"]["startTime"], "2026-01-01T00:00:00Z");
    for pod in world.list("Pod").await {
        assert_owner(&pod, "Job", "task");
        assert_eq!(
            pod["metadata"]["labels"]["batch.kubernetes.io/job-name"],
            "task"
        );
        assert_eq!(pod["status"]["phase"], "Running");
    }
    world.pass(30).await;
    assert_eq!(numbers(&world.get("Job", "task").await, COUNTS), [1, 2, 0]);
    world.pass(30).await;
    let job = world.get("Job", "task").await;
    assert_eq!(numbers(&job, COUNTS), [0, 3, 0]);
    assert_condition(&job, "Complete", "True", "CompletionsReached");
    assert_eq!(job["status"]["completionTime"], "2026-01-01T00:01:00Z");
    for pod in world.list("Pod").await {
        assert_eq!(pod["status"]["phase"], "Succeeded");
        assert_eq!(pod["metadata"]["finalizers"], Value::Null);
    }
    world.pass(100).await;
    assert_eq!(world.names("Job").await.len(), 0);
    assert_eq!(world.names("Pod").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_where_an_annotation_asks_for_it() {
    for (policy, failed, reason) in [
        ("Never", 2, "BackoffLimitExceeded"),
        ("OnFailure", 1, "BackoffLimitExceeded"),
    ] {
        let world = World::new();
        let mut spec = spec(&json!({ "backoffLimit": 1 }));
        spec["template"]["spec"]["restartPolicy"] = json!(policy);
        let metadata = json!({ "name": "task", "annotations": { "homeostat.dev/pod": "fail" } });
        world.create_with("Job", metadata, spec).await;
        world.pass(60).await;
        let job = world.get("Job", "task").await;
        assert_condition(&job, "Failed", "True", reason);
        assert_eq!(numbers(&job, COUNTS), [0, 0, failed], "{policy}");
        let pods = world.list("Pod").await;
        for pod in &pods {
            assert_eq!(pod["status"]["phase"], "Failed");
            let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
            assert_eq!(ended["exitCode"], 1);
        }
        assert_eq!(pods.len(), if policy == "Never" { 2 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_suspended_or_too_late() {
    let world = World::new();
    let run = Fate::RunFor(Duration::from_secs(1000));
    let _run = world.server.workloads().inject(PodRule::any(), run);
    let spec = spec(&json!({ "suspend": true, "activeDeadlineSeconds": 60 }));
    world.create("Job", "task", spec).await;
    world.pass(100).await;
    let job = world.get("Job", "task").await;
    assert_condition(&job, "Suspended", "True", "JobSuspended");
    assert_eq!(world.names("Pod").await.len(), 0);
    world
        .patch("Job", "task", json!({ "spec": { "suspend": false } }))
        .await;
    world.settle().await;
    let job = world.get("Job", "task").await;
    assert_condition(&job, "Suspended", "False", "JobResumed");
    assert_eq!(numbers(&job, COUNTS), [1, 0, 0]);
    world.pass(60).await;
    let job = world.get("Job", "task").await;
    assert_condition(&job, "Failed", "True", "DeadlineExceeded");
    assert_eq!(world.names("Pod").await.len(), 0);
}

/// Pods count though they are deleted while nobody looks, and they go when the job goes.
#[tokio::test(start_paused = true)]
async fn no_pod_is_lost_or_left() {
    let world = World::new();
    let held = world.server.workloads().hold(Workload::Jobs);
    world.create("Job", "task", spec(&json!({}))).await;
    drop(held);
    world.settle().await;
    assert_eq!(numbers(&world.get("Job", "task").await, COUNTS), [0, 1, 0]);
    for (policy, left) in [
        (PropagationPolicy::Orphan, 1),
        (PropagationPolicy::Foreground, 0),
        (PropagationPolicy::Background, 0),
    ] {
        let world = World::new();
        let run = Fate::RunFor(Duration::from_secs(1000));
        let _run = world.server.workloads().inject(PodRule::any(), run);
        world.create("Job", "task", spec(&json!({}))).await;
        world.settle().await;
        let params = DeleteParams {
            propagation_policy: Some(policy.clone()),
            ..DeleteParams::default()
        };
        world.delete("Job", "task", &params).await;
        world.settle().await;
        assert_eq!(world.names("Job").await.len(), 0, "{policy:?}");
        let pods = world.list("Pod").await;
        assert_eq!(pods.len(), left, "{policy:?}");
        assert!(
            pods.iter()
                .all(|pod| pod["metadata"]["finalizers"].is_null())
        );
    }
}

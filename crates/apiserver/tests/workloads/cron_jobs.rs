//! `CronJob`s by the server's clock, which begins at midnight.

use std::time::Duration;

use homeostat_apiserver::{Fate, PodRule};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::world::{World, assert_owner};

fn spec(schedule: &str, policy: &str) -> Value {
    json!({
        "schedule": schedule,
        "concurrencyPolicy": policy,
        "jobTemplate": { "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": "backup:1" }],
        } } } },
    })
}

#[tokio::test(start_paused = true)]
async fn jobs_are_made_in_time() {
    let world = World::new();
    world
        .create("CronJob", "backup", spec("*/10 * * * *", "Allow"))
        .await;
    world.pass(599).await;
    assert_eq!(world.names("Job").await.len(), 0);
    world.pass(1).await;
    // The number is that of the minutes since 1970.
    assert_eq!(world.names("Job").await, ["backup-29453770"]);
    let job = world.get("Job", "backup-29453770").await;
    assert_owner(&job, "CronJob", "backup");
    let cron_job = world.get("CronJob", "backup").await;
    assert_eq!(
        cron_job["status"]["lastScheduleTime"],
        "2026-01-01T00:10:00Z"
    );
    assert_eq!(
        cron_job["status"]["lastSuccessfulTime"],
        "2026-01-01T00:10:00Z"
    );
    assert_eq!(cron_job["status"]["active"], Value::Null);

    // Of those that are over, three are kept.
    world.pass(3600).await;
    let names = world.names("Job").await;
    assert_eq!(
        names,
        ["backup-29453810", "backup-29453820", "backup-29453830"]
    );
    world
        .patch("CronJob", "backup", json!({ "spec": { "suspend": true } }))
        .await;
    world.pass(3600).await;
    assert_eq!(world.names("Job").await, names);
    world
        .delete("CronJob", "backup", &DeleteParams::background())
        .await;
    world.settle().await;
    assert_eq!(
        world.names("Job").await.len() + world.names("Pod").await.len(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn jobs_that_take_longer_than_the_schedule() {
    for (policy, active) in [("Allow", 3), ("Forbid", 1), ("Replace", 1)] {
        let world = World::new();
        let run = Fate::RunFor(Duration::from_secs(1500));
        let _run = world.server.workloads().inject(PodRule::any(), run);
        world
            .create("CronJob", "backup", spec("*/10 * * * *", policy))
            .await;
        world.pass(1810).await;
        let cron_job = world.get("CronJob", "backup").await;
        let refs = cron_job["status"]["active"].as_array().unwrap();
        assert_eq!(refs.len(), active, "{policy}");
        let names = world.names("Job").await;
        assert_eq!(names.len(), active, "{policy}");
        let first = if policy == "Replace" {
            "backup-29453790"
        } else {
            "backup-29453770"
        };
        assert_eq!(names[0], first, "{policy}");
        for one in refs {
            assert!(names.iter().any(|name| one["name"] == **name));
        }
    }
}

//! A script that goes on when what it waits for has happened.

use super::runtime::{
    conditions,
    wait::{Condition, await_condition, delete::delete_and_finalize},
};
use crate::{
    cluster::{
        Cluster, an_hour, config_map, create, delete, during, entry, from, merge, merge_status,
        until,
    },
    journal::Journal,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn approved() -> impl Condition<ConfigMap> {
    |map: Option<&ConfigMap>| map.and_then(|map| entry(map, "approved")) == Some("yes")
}

fn withdrawn() -> impl Condition<ConfigMap> {
    |map: Option<&ConfigMap>| map.is_some_and(|map| entry(map, "withdrawn").is_some())
}

/// Waits for approval, and lets a pod migrate the data.
async fn migrate(client: Client, output: &Journal) -> Result<()> {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let pods = Api::<Pod>::default_namespaced(client);
    let soon = Duration::from_secs(5);
    let request = await_condition(maps.clone(), "migration", conditions::is_created());
    if timeout(soon, request).await.is_err() {
        output.say("nobody asked so far");
    }

    let decided = approved().or(withdrawn());
    let request = await_condition(maps.clone(), "migration", decided).await?;
    let request = request.ok_or("a request that is not there is not decided")?;
    if !approved()
        .and(withdrawn().not())
        .matches_object(Some(&request))
    {
        output.say("withdrawn");
        return Ok(());
    }
    output.say("approved");

    let pod = from::<Pod>(json!({
        "metadata": { "name": "migration", "finalizers": ["example.com/log"] },
        "spec": { "containers": [{ "name": "main", "image": "example.com/migrate:1" }] },
    }));
    pods.create(&PostParams::default(), &pod).await?;
    let pod = await_condition(pods.clone(), "migration", conditions::is_pod_running()).await?;
    output.say(format!(
        "{} runs",
        pod.map(|pod| pod.name_any()).unwrap_or_default()
    ));

    let at_once = DeleteParams::default().grace_period(0);
    delete_and_finalize(pods, "migration", &at_once).await?;
    output.say("the pod is gone");

    let uid = request.uid().ok_or("it comes from a server")?;
    await_condition(maps, "migration", conditions::is_deleted(&uid)).await?;
    output.say("the request is gone");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_script_goes_on_when_it_may() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let (maps, pods) = (cluster.api::<ConfigMap>(), cluster.api::<Pod>());
    let program = async {
        let done = Box::pin(migrate(cluster.program(), &output)).await;
        output.say(done.map_or_else(|error| error.to_string(), |()| "done".into()));
        std::future::pending::<()>().await;
    };

    during(program, async {
        output.until_said("nobody asked so far").await;
        create(&maps, &config_map("migration", &[])).await;
        an_hour().await;
        assert_eq!(output.take(), ["nobody asked so far"]);

        merge(&maps, "migration", json!({ "data": { "approved": "yes" } })).await;
        output.until_said("approved").await;
        until(&pods, "migration", |_| true).await;
        an_hour().await;
        merge_status(
            &pods,
            "migration",
            json!({ "status": { "phase": "Running" } }),
        )
        .await;
        output.until_said("migration runs").await;

        until(&pods, "migration", |pod| {
            pod.metadata.deletion_timestamp.is_some()
        })
        .await;
        an_hour().await;
        assert_eq!(output.take(), ["approved", "migration runs"]);
        merge(
            &pods,
            "migration",
            json!({ "metadata": { "finalizers": null } }),
        )
        .await;
        output.until_said("the pod is gone").await;

        // Another object under the same name is not the one that was waited for.
        an_hour().await;
        delete(&maps, "migration").await;
        create(&maps, &config_map("migration", &[])).await;
        output.until_said("done").await;
        assert_eq!(
            output.take(),
            ["the pod is gone", "the request is gone", "done"]
        );
    })
    .await;
    let expected = ["create pods default", "delete pods default/migration"];
    assert_eq!(cluster.take_writes(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_was_withdrawn_is_not_done() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    let both = config_map("migration", &[("approved", "yes"), ("withdrawn", "yes")]);
    create(&maps, &both).await;
    let done = Box::pin(migrate(cluster.program(), &output)).await;
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(output.lines(), ["withdrawn"]);
    assert!(cluster.take_writes().is_empty());
}

/// What cannot be deleted is an error of its own kind.
#[tokio::test(start_paused = true)]
async fn what_is_not_there_cannot_be_deleted() {
    use super::runtime::wait::delete::Error;
    let cluster = Cluster::start();
    let maps = Api::<ConfigMap>::default_namespaced(cluster.program());
    let deleted = delete_and_finalize(maps, "gone", &DeleteParams::default()).await;
    assert!(
        matches!(&deleted, Err(Error::Delete(kube::Error::Api(status))) if status.code == 404),
        "{deleted:?}"
    );
}

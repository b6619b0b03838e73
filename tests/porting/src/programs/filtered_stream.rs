//! A controller on a stream of its own, which reacts to specs and writes statuses.

use super::runtime::{
    Controller, Predicate, WatchStreamExt, controller::Action, predicates, reflector, watcher,
};
use crate::{
    cluster::{Cluster, an_hour, create, delete, during, merge, merge_status, serve, until},
    journal::Journal,
};
use futures::StreamExt;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Lamp",
    namespaced,
    status = "LampStatus"
)]
struct LampSpec {
    on: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct LampStatus {
    switched: Option<u32>,
    seen: Option<bool>,
}

struct Context {
    lamps: Api<Lamp>,
    output: Journal,
}

/// Counts how often a lamp was switched. Whoever counts must not be woken by the count.
async fn switch(lamp: Arc<Lamp>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
    let before = lamp.status.as_ref().and_then(|status| status.switched);
    ctx.output
        .say(format!("{} {}", lamp.name_any(), lamp.spec.on));
    let patch = json!({ "status": { "switched": before.unwrap_or(0) + 1 } });
    ctx.lamps
        .patch_status(
            &lamp.name_any(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await?;
    Ok(Action::await_change())
}

async fn run(client: Client, output: Journal) {
    let lamps = Api::<Lamp>::default_namespaced(client);
    let (reader, writer) = reflector::store();
    let events = watcher(lamps.clone(), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let lit = |lamp: &Lamp| lamp.labels().contains_key("lit").then_some(1);
    let wanted = predicates::generation.combine(lit.fallback(predicates::labels));
    let switched = predicate_filter!(events.applied_objects(), wanted);
    Controller::for_stream(switched, reader)
        .run(
            switch,
            |_, _, _| Action::await_change(),
            Arc::new(Context { lamps, output }),
        )
        .for_each(|_| async {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn statuses_wake_nobody() {
    let cluster = Cluster::start();
    let output = Journal::default();
    serve::<Lamp>(&cluster).await;
    let lamps = cluster.api::<Lamp>();
    let count = |count| {
        move |lamp: &Lamp| {
            lamp.status
                .as_ref()
                .is_some_and(|it| it.switched == Some(count))
        }
    };
    create(&lamps, &Lamp::new("hall", LampSpec { on: false })).await;

    during(run(cluster.program(), output.clone()), async {
        until(&lamps, "hall", count(1)).await;
        merge_status(&lamps, "hall", json!({ "status": { "seen": true } })).await;
        an_hour().await;
        merge(&lamps, "hall", json!({ "spec": { "on": true } })).await;
        until(&lamps, "hall", count(2)).await;
        merge(
            &lamps,
            "hall",
            json!({ "metadata": { "annotations": { "note": "new" } } }),
        )
        .await;
        an_hour().await;
        merge(
            &lamps,
            "hall",
            json!({ "metadata": { "labels": { "room": "big" } } }),
        )
        .await;
        until(&lamps, "hall", count(3)).await;
        an_hour().await;

        // Another lamp of this name is a new lamp, whatever its generation.
        delete(&lamps, "hall").await;
        let mut other = Lamp::new("hall", LampSpec { on: true });
        other.labels_mut().insert("room".into(), "big".into());
        create(&lamps, &other).await;
        until(&lamps, "hall", count(1)).await;
        an_hour().await;
    })
    .await;
    let expected = ["hall false", "hall true", "hall true", "hall true"];
    assert_eq!(output.lines(), expected);
    assert_eq!(
        cluster.take_writes(),
        ["patch lamps default/hall/status"; 4]
    );
}

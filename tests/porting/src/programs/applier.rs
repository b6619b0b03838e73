//! A controller from its parts: watches, a store, a queue of requests and what takes them.

use super::runtime::{
    Config, WatchStreamExt, applier,
    controller::{Action, trigger_owners, trigger_self, trigger_with},
    reflector::{self, ObjectRef},
    watcher,
};
use crate::{
    cluster::{Cluster, an_hour, config_map, create, delete, during, from, merge, until},
    journal::Journal,
};
use futures::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use std::{rc::Rc, sync::Arc};

struct Context {
    maps: Api<ConfigMap>,
    secrets: Api<Secret>,
    output: Journal,
}

/// Writes down how many secrets a map owns.
async fn count(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
    let owned = |secret: &&Secret| {
        let mut owners = secret.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == map.metadata.uid.as_ref())
    };
    let secrets = ctx.secrets.list(&ListParams::default()).await?;
    let count = secrets.items.iter().filter(owned).count().to_string();
    let data = map.data.as_ref();
    if data.and_then(|data| data.get("count")) != Some(&count) {
        let patch = Patch::Merge(json!({ "data": { "count": count } }));
        let params = PatchParams::default();
        ctx.maps.patch(&map.name_any(), &params, &patch).await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, output: Journal, reminders: Vec<&'static str>) {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let secrets = Api::<Secret>::default_namespaced(client);
    let config = watcher::Config::default();
    let (store, writer) = reflector::store();

    let changed = watcher(maps.clone(), config.clone())
        .default_backoff()
        .reflect(writer)
        .applied_objects();
    let changed = trigger_self::<ConfigMap, _>(changed, ());
    let owners = watcher(secrets.clone(), config)
        .default_backoff()
        .touched_objects();
    let owners = trigger_owners::<ConfigMap, _>(owners, (), ());
    let reminders = stream::iter(reminders).map(Ok);
    let reminders = trigger_with(reminders, |name| {
        [ObjectRef::<ConfigMap>::new(name).within("default")]
    });
    let queue = stream::select_all([changed.boxed(), owners.boxed(), reminders.boxed()]);

    let ctx = Context {
        maps,
        secrets,
        output,
    };
    // Nothing here goes to another thread.
    let failures = Rc::new(std::cell::Cell::new(0));
    let reconcile = |map, ctx| Box::pin(count(map, ctx));
    let policy = |_, _: &kube::Error, _| {
        failures.set(failures.get() + 1);
        Action::await_change()
    };
    let output = ctx.output.clone();
    let config = Config::default().concurrency(4);
    applier(reconcile, policy, Arc::new(ctx), store, queue, config)
        .try_for_each(|(reference, _)| {
            output.say(reference.name);
            future::ok(())
        })
        .await
        .unwrap_or_else(|error| output.say(error.to_string()));
    output.say(format!("{} failures", failures.get()));
}

#[tokio::test(start_paused = true)]
async fn owned_secrets_are_counted() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let (maps, secrets) = (cluster.api::<ConfigMap>(), cluster.api::<Secret>());
    let owner = create(&maps, &config_map("owner", &[])).await;
    create(&maps, &config_map("other", &[])).await;
    let child = |name: &str| {
        let owner = owner.owner_ref(&()).expect("it comes from a server");
        from::<Secret>(json!({ "metadata": { "name": name, "ownerReferences": [owner] } }))
    };
    let counted = |count: &'static str| {
        move |map: &ConfigMap| {
            let data = map.data.as_ref();
            data.and_then(|data| data.get("count")).map(String::as_str) == Some(count)
        }
    };

    during(
        run(cluster.program(), output.clone(), vec!["owner"]),
        async {
            until(&maps, "owner", counted("0")).await;
            until(&maps, "other", counted("0")).await;
            create(&secrets, &child("one")).await;
            create(&secrets, &child("two")).await;
            until(&maps, "owner", counted("2")).await;
            delete(&secrets, "one").await;
            until(&maps, "owner", counted("1")).await;
            merge(&maps, "other", json!({ "data": { "count": "many" } })).await;
            until(&maps, "other", counted("0")).await;
            cluster.take_writes();
            an_hour().await;
            assert!(cluster.take_writes().is_empty());
        },
    )
    .await;
    let lines = output.take();
    assert!(
        lines
            .iter()
            .all(|line| ["owner", "other"].contains(&line.as_str()))
    );
}

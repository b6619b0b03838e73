//! A controller that others tell which objects to look at.

use super::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use crate::cluster::{Cluster, an_hour, annotation, config_map, create, during, until};
use futures::{StreamExt, channel::mpsc};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Mutex;

/// Where people put up the prices that the maps show.
type Prices = Arc<Mutex<BTreeMap<String, u32>>>;

struct Context {
    maps: Api<ConfigMap>,
    prices: Prices,
}

async fn show(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
    let name = map.name_any();
    let price = ctx.prices.lock().await.get(&name).copied().unwrap_or(0);
    let price = price.to_string();
    if annotation(&*map, "price") != Some(price.as_str()) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { "price": price } } }));
        ctx.maps
            .patch(&name, &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, prices: Prices, changed: mpsc::UnboundedReceiver<String>) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let changed = changed.map(|name| ObjectRef::new(&name).within("default"));
    Controller::new(maps.clone(), watcher::Config::default())
        .reconcile_on(changed)
        .run(
            show,
            |_, _, _| Action::await_change(),
            Arc::new(Context { maps, prices }),
        )
        .for_each(|_| async {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn only_what_is_named_is_looked_at() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    for name in ["apple", "pear"] {
        create(&maps, &config_map(name, &[])).await;
    }
    let prices = Prices::default();
    let (say, changed) = mpsc::unbounded();
    let price =
        |price: &'static str| move |map: &ConfigMap| annotation(map, "price") == Some(price);

    during(
        run(cluster.program(), Arc::clone(&prices), changed),
        async {
            for name in ["apple", "pear"] {
                until(&maps, name, price("0")).await;
            }
            an_hour().await;
            cluster.take_writes();

            for (name, price) in [("apple", 3), ("pear", 4)] {
                prices.lock().await.insert(name.into(), price);
            }
            for name in ["pear", "pear", "pear"] {
                say.unbounded_send(name.into())
                    .expect("the controller listens");
            }
            until(&maps, "pear", price("4")).await;
            an_hour().await;
            assert_eq!(cluster.take_writes(), ["patch configmaps default/pear"]);
            say.unbounded_send("apple".into())
                .expect("the controller listens");
            until(&maps, "apple", price("3")).await;
        },
    )
    .await;
}

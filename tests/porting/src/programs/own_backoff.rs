//! An error policy with delays of the program's own, for each object.

use super::runtime::{Controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, config_map, create, during},
    journal::Journal,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

#[derive(Debug, thiserror::Error)]
#[error("not today")]
struct NotToday;

struct Context {
    failures: Mutex<BTreeMap<String, u32>>,
    begin: Instant,
    output: Journal,
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, NotToday> {
    let at = ctx.begin.elapsed().as_secs();
    ctx.output.say(format!("{} {at}", map.name_any()));
    let failures = ctx.failures.lock().unwrap_or_else(PoisonError::into_inner);
    match failures.get(&map.name_any()) {
        Some(4) => Ok(Action::await_change()),
        _ => Err(NotToday),
    }
}

fn error_policy(map: Arc<ConfigMap>, _: &NotToday, ctx: Arc<Context>) -> Action {
    let mut failures = ctx.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let failures = failures.entry(map.name_any()).or_default();
    *failures += 1;
    Action::requeue(Duration::from_secs(5 * 2_u64.pow(*failures)))
}

async fn run(client: Client, output: Journal) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let ctx = Context {
        failures: Mutex::default(),
        begin: Instant::now(),
        output,
    };
    Controller::new(maps, watcher::Config::default())
        .run(reconcile, error_policy, Arc::new(ctx))
        .for_each(async |_| {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn each_object_has_its_delays() {
    let cluster = Cluster::start();
    for name in ["a", "b"] {
        create(&cluster.api::<ConfigMap>(), &config_map(name, &[])).await;
    }
    let output = Journal::default();
    during(run(cluster.program(), output.clone()), async {
        crate::cluster::an_hour().await;
    })
    .await;
    for name in ["a", "b"] {
        let lines = output.lines();
        let of_it = lines
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("{name} ")));
        // 10, 20, 40 and 80 s after each other.
        assert_eq!(of_it.collect::<Vec<_>>(), ["0", "10", "30", "70", "150"]);
    }
}

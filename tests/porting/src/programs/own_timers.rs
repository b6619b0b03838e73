//! A controller under `select`, beside timers of the program's own.

use super::runtime::{Controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, config_map, create, during},
    journal::Journal,
};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::interval;

enum Happened {
    Reconciled(String),
    Tick,
}

async fn run(client: Client, output: Journal) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let reconcile = async |_: Arc<ConfigMap>, _: Arc<()>| {
        Ok::<_, kube::Error>(Action::requeue(Duration::from_secs(20)))
    };
    let reconciled = Controller::new(maps, watcher::Config::default())
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(()))
        .filter_map(async |result| result.ok())
        .map(|(reference, _)| Happened::Reconciled(reference.name));
    let ticks = stream::unfold(interval(Duration::from_secs(60)), async |mut interval| {
        interval.tick().await;
        Some((Happened::Tick, interval))
    });
    let mut happened = pin!(stream::select(reconciled, ticks));
    while let Some(happened) = happened.next().await {
        match happened {
            Happened::Reconciled(name) => output.say(name),
            Happened::Tick => output.say("tick"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn neither_starves_the_other() {
    let cluster = Cluster::start();
    let map = create(&cluster.api::<ConfigMap>(), &config_map("a", &[])).await;
    let output = Journal::default();
    during(run(cluster.program(), output.clone()), async {
        tokio::time::sleep(Duration::from_secs(630)).await;
    })
    .await;
    let count = |wanted: &str| {
        let lines = output.lines();
        lines.iter().filter(|line| *line == wanted).count()
    };
    assert_eq!(count("tick"), 11);
    // The first at once, and then one in 20 s.
    assert_eq!(count(&map.name_any()), 32);
}

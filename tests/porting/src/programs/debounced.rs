//! A controller with limits: few runs at once, and none while an object is still being edited.

use super::runtime::{Config, Controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, an_hour, config_map, create, during, entry, merge},
    journal::Journal,
};
use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

struct Press {
    running: AtomicUsize,
    most: AtomicUsize,
    start: Instant,
    output: Journal,
}

/// Prints a map, which takes ten seconds.
async fn print(map: Arc<ConfigMap>, press: Arc<Press>) -> Result<Action, Infallible> {
    let running = press.running.fetch_add(1, Ordering::Relaxed) + 1;
    press.most.fetch_max(running, Ordering::Relaxed);
    sleep(Duration::from_secs(10)).await;
    press.running.fetch_sub(1, Ordering::Relaxed);
    let second = press.start.elapsed().as_secs();
    let text = entry(&map, "text").unwrap_or_default();
    press
        .output
        .say(format!("{second} {} {text}", map.name_any()));
    Ok(Action::await_change())
}

async fn run(client: Client, config: Config, press: Arc<Press>) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    Controller::new(maps, watcher::Config::default())
        .with_config(config)
        .run(print, |_, _, _| Action::await_change(), press)
        .for_each(|_| future::ready(()))
        .await;
}

fn press(output: &Journal) -> Arc<Press> {
    Arc::new(Press {
        running: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        start: Instant::now(),
        output: output.clone(),
    })
}

#[tokio::test(start_paused = true)]
async fn an_object_is_printed_when_it_is_finished() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    let output = Journal::default();
    let config = Config::default().debounce(Duration::from_secs(30));
    during(run(cluster.program(), config, press(&output)), async {
        create(&maps, &config_map("letter", &[])).await;
        for draft in ["a", "b", "c"] {
            sleep(Duration::from_secs(20)).await;
            merge(&maps, "letter", json!({ "data": { "text": draft } })).await;
        }
        output.until_count(1).await;
        merge(&maps, "letter", json!({ "data": { "text": "d" } })).await;
        an_hour().await;
    })
    .await;
    assert_eq!(output.lines(), ["100 letter c", "140 letter d"]);
}

#[tokio::test(start_paused = true)]
async fn two_run_at_once() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    for name in ["a", "b", "c", "d", "e"] {
        create(&maps, &config_map(name, &[])).await;
    }
    let output = Journal::default();
    let press = press(&output);
    let config = Config::default().concurrency(2);
    during(run(cluster.program(), config, Arc::clone(&press)), async {
        output.until_count(5).await;
    })
    .await;
    assert_eq!(press.most.load(Ordering::Relaxed), 2);
    let seconds: Vec<_> = output
        .lines()
        .iter()
        .map(|line| line[..2].to_owned())
        .collect();
    assert_eq!(seconds, ["10", "10", "20", "20", "30"]);
}

/// What changes during a run is looked at once after it.
#[tokio::test(start_paused = true)]
async fn runs_of_an_object_do_not_overlap() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("letter", &[("text", "a")])).await;
    let output = Journal::default();
    let press = press(&output);
    let program = run(cluster.program(), Config::default(), Arc::clone(&press));
    during(program, async {
        for draft in ["b", "c", "d"] {
            sleep(Duration::from_secs(2)).await;
            merge(&maps, "letter", json!({ "data": { "text": draft } })).await;
        }
        an_hour().await;
    })
    .await;
    assert_eq!(press.most.load(Ordering::Relaxed), 1);
    assert_eq!(output.lines(), ["10 letter a", "20 letter d"]);
}

//! What a manager does when there is nothing to do.

use super::{
    process::{Process, worked},
    rounded,
};
use homeostat::{
    Action, Controller, Manager, client::Tracked, error_policy, leadership::LeaderElection, watcher,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

const OBJECTS: usize = 10_000;
const LENGTH: Duration = Duration::from_secs(30);
/// What is left of the start: the last answers, and memory that is given back.
const SETTLING: Duration = Duration::from_secs(5);
/// The most that it may work, in percent of a processor.
const LIMIT: f64 = 0.5;

pub(crate) async fn measure() -> Value {
    let mut server = Process::start(&["server", &OBJECTS.to_string(), "0"]);
    let url = format!("http://{}", server.line().await);
    let config = || kube::Config::new(url.parse().unwrap());
    let client = Tracked::client(config()).unwrap();
    let runs = Arc::<AtomicUsize>::default();
    let counting = Arc::clone(&runs);
    let reconcile = move |_: Arc<ConfigMap>, _: Arc<()>| {
        counting.fetch_add(1, Relaxed);
        async { Ok::<_, kube::Error>(Action::await_change()) }
    };
    let maps = Controller::new(
        Api::<ConfigMap>::all(client.clone()),
        watcher::Config::default(),
    );
    let election = LeaderElection::new(Tracked::client(config()).unwrap(), "default", "idle");
    let manager = Manager::new(client)
        .add(maps.run(reconcile, error_policy::backoff, Arc::new(())))
        .leader_election(election)
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .stop_on(futures::stream::pending());
    let task = tokio::spawn(manager.run());
    let start = Instant::now();
    while runs.load(Relaxed) < OBJECTS {
        assert!(start.elapsed() < Duration::from_secs(120), "{runs:?} runs");
        sleep(Duration::from_millis(10)).await;
    }
    let synced = start.elapsed().as_secs_f64();
    sleep(SETTLING).await;
    server.ask().await;
    let (before, begun) = (worked(), Instant::now());
    sleep(LENGTH).await;
    let work = worked().saturating_sub(before).as_secs_f64();
    let percent = rounded(work / begun.elapsed().as_secs_f64() * 100.0);
    let asked: BTreeMap<String, usize> = serde_json::from_str(&server.ask().await).unwrap();
    task.abort();
    let expected = |what: &str| what.ends_with(" leases") || what.starts_with("watch ");
    let unexpected: usize = asked
        .iter()
        .filter(|(what, _)| !expected(what))
        .map(|(_, count)| count)
        .sum();
    let again = runs.load(Relaxed) - OBJECTS;
    json!({
        "holds": percent < LIMIT && unexpected == 0 && again == 0,
        "objects": OBJECTS,
        "seconds": LENGTH.as_secs(),
        "cpu_percent": percent,
        "requests": asked,
        "other_requests": unexpected,
        "reconciles": again,
        "synced_s": rounded(synced),
    })
}

//! What further controllers of the same kinds cost.

use super::{
    process::{Process, memory},
    rounded,
};
use homeostat::{
    Action, Controller, Manager, client::Tracked, error_policy, manager::Unit, watcher,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::sleep;

const MAPS: usize = 5_000;
const SECRETS: usize = 20_000;
/// How many controllers there are of each kind.
const FEW: [usize; 2] = [1, 1];
const MANY: [usize; 2] = [3, 5];
/// How much more memory the many may have.
const LIMIT: f64 = 1.1;

pub(crate) async fn measure() -> Value {
    let (few, _) = play(FEW).await;
    let (many, asked) = play(MANY).await;
    let ratio = rounded(as_float(many) / as_float(few));
    let watches = |resource: &str| {
        asked
            .get(&format!("watch {resource}"))
            .copied()
            .unwrap_or_default()
    };
    let watches = [watches("configmaps"), watches("secrets")];
    json!({
        "holds": ratio <= LIMIT && watches == [1, 1],
        "objects": [MAPS, SECRETS],
        "controllers": MANY,
        "watches": watches,
        "requests": asked,
        "few_mb": few >> 20,
        "many_mb": many >> 20,
        "ratio": ratio,
    })
}

/// The memory of a process with these controllers, and what the server was asked for by it.
async fn play(controllers: [usize; 2]) -> (u64, BTreeMap<String, usize>) {
    let mut server = Process::start(&["server", &MAPS.to_string(), &SECRETS.to_string()]);
    let address = server.line().await;
    let [maps, secrets] = controllers.map(|count| count.to_string());
    let mut process = Process::start(&["controllers", &address, &maps, &secrets]);
    let memory = process.line().await.parse().unwrap();
    let asked = serde_json::from_str(&server.ask().await).unwrap();
    (memory, asked)
}

/// Runs so many controllers of each kind, and prints how much memory they have when nothing is left to do.
pub(crate) async fn run(arguments: &[&str]) {
    let url = format!("http://{}", arguments[0]);
    let client = Tracked::client(kube::Config::new(url.parse().unwrap())).unwrap();
    let count = |place: usize| arguments[place].parse::<usize>().unwrap();
    let runs = Arc::<AtomicUsize>::default();
    let mut manager = Manager::new(client.clone()).stop_on(futures::stream::pending());
    for _ in 0..count(1) {
        manager = manager.add(unit::<ConfigMap>(&client, &runs));
    }
    for _ in 0..count(2) {
        manager = manager.add(unit::<Secret>(&client, &runs));
    }
    let _task = tokio::spawn(manager.run());
    while runs.load(Relaxed) < count(1) * MAPS + count(2) * SECRETS {
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_secs(2)).await;
    println!("{}", memory());
    // Until nobody needs it any more.
    let _ended = tokio::task::spawn_blocking(|| io::stdin().lock().lines().count()).await;
}

fn unit<K>(client: &Client, runs: &Arc<AtomicUsize>) -> Unit
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let runs = Arc::clone(runs);
    let reconcile = move |_: Arc<K>, _: Arc<()>| {
        runs.fetch_add(1, Relaxed);
        async { Ok::<_, kube::Error>(Action::await_change()) }
    };
    let controller = Controller::new(Api::<K>::all(client.clone()), watcher::Config::default());
    Unit::new(controller.run(reconcile, error_policy::backoff, Arc::new(())))
}

#[expect(clippy::cast_precision_loss, reason = "no process has so much memory")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}

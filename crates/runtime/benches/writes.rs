//! What it costs to know a reconcile's writes, next to a reconcile that makes three of them in process:
//! `cargo xtask bench writes`.
//!
//! Whole controllers run on the embedded server, with a tracked client and everything that follows from
//! it, and with one that is not tracked. Rounds of the two take turns, so that both see the same machine.

#![expect(clippy::print_stdout, reason = "it tells its figures")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]
#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use futures::StreamExt;
use homeostat::{Action, Config, Controller, client::Tracked, error_policy, loops, watcher};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    client::ClientBuilder,
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Objects that are reconciled in a round, with three writes each.
const OBJECTS: u32 = 300;
const ROUNDS: usize = 15;

/// Time that reconciles took in a round.
async fn round(tracked: bool) -> Duration {
    let server = ApiServer::builder().build();
    let plain: Api<ConfigMap> = Api::default_namespaced(server.client());
    for number in 0..OBJECTS {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("object-{number}")),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        plain.create(&PostParams::default(), &map).await.unwrap();
    }
    let builder = ClientBuilder::new(server.service(), "default");
    let client: Client = if tracked {
        builder.with_layer(&Tracked).build()
    } else {
        builder.build()
    };
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    // A loop would be slowed down; here are as many writes as there are runs on purpose.
    let config = Config::default().concurrency(1);
    let config = if tracked {
        config
    } else {
        config.loops(None::<loops::Config>)
    };
    let done = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&done);
    let reconcile = move |map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>| {
        let counted = Arc::clone(&counted);
        async move {
            let name = map.metadata.name.clone().unwrap();
            if map.data.is_none() {
                for step in 0..3 {
                    let patch = Patch::Merge(json!({ "data": { "step": step.to_string() } }));
                    maps.patch(&name, &PatchParams::default(), &patch).await?;
                }
                counted.fetch_add(1, Relaxed);
            }
            Ok::<_, kube::Error>(Action::await_change())
        }
    };
    let start = Instant::now();
    let run = Controller::new(Api::<ConfigMap>::all(client), watcher::Config::default())
        .with_config(config)
        .run(reconcile, error_policy::backoff, Arc::new(maps));
    let mut run = std::pin::pin!(run);
    while done.load(Relaxed) < OBJECTS {
        run.next().await.unwrap().unwrap();
    }
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6 / f64::from(OBJECTS)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (mut plain, mut tracked) = (Vec::new(), Vec::new());
    for number in 0..=ROUNDS {
        let times = [round(false).await, round(true).await];
        // The first round warms up.
        if number > 0 {
            plain.push(times[0]);
            tracked.push(times[1]);
        }
    }
    let (plain, tracked) = (median(plain), median(tracked));
    println!("a reconcile with three writes: {plain:.1} us, with a tracked client {tracked:.1} us");
    println!(
        "overhead {:.1} us, {:.1} %; {:.1} us for each write",
        tracked - plain,
        (tracked / plain - 1.0) * 100.0,
        (tracked - plain) / 3.0
    );
}

//! What it costs to know a reconcile's writes, next to a reconcile that makes three of them in process:
//! `cargo xtask bench writes`.
//!
//! Whole controllers run on the embedded server: with a client that is not tracked, with one that is, and
//! step by step with what follows from it. Rounds of these take turns, so that all see the same machine.
//! There are two reconciles: one as small as can be, whose server does next to nothing, and one as
//! operators have it, with children that are applied and watched.

#![expect(clippy::print_stdout, reason = "it tells its figures")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]
#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use futures::StreamExt;
use homeostat::{Action, Config, Controller, client::Tracked, error_policy, loops, watcher};
use homeostat_apiserver::ApiServer;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    client::ClientBuilder,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Objects that are reconciled in a round, with three writes each. Rounds are short, so that those that are
/// compared see the same machine.
const OBJECTS: u32 = 100;
const ROUNDS: usize = 300;

/// What a reconcile writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Three merge patches of the object, each of a value.
    Values,
    /// Applies a Deployment and a Service, and patches the object.
    Children,
}

/// What is known of writes, and what is made of it; each with all before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Knowledge {
    Nothing,
    /// Writes are recorded.
    Log,
    /// Runs wait for caches.
    Gate,
    /// Loops are looked for.
    Loops,
}

/// What a reconciler has at hand.
struct Apis {
    writing: Writing,
    maps: Api<ConfigMap>,
    deployments: Api<Deployment>,
    services: Api<Service>,
    done: AtomicU32,
}

impl Apis {
    async fn reconcile(map: Arc<ConfigMap>, apis: Arc<Self>) -> kube::Result<Action> {
        if map.data.is_none() {
            let name = map.metadata.name.clone().unwrap();
            match apis.writing {
                Writing::Values => {
                    for step in 0..3 {
                        apis.patch(&name, step).await?;
                    }
                }
                Writing::Children => {
                    let owner = map.controller_owner_ref(&()).unwrap();
                    let apply = PatchParams::apply("bench").force();
                    let child = deployment(&name, &owner);
                    let child = Patch::Apply(&child);
                    apis.deployments.patch(&name, &apply, &child).await?;
                    let child = service(&name, &owner);
                    let child = Patch::Apply(&child);
                    apis.services.patch(&name, &apply, &child).await?;
                    apis.patch(&name, 1).await?;
                }
            }
            apis.done.fetch_add(1, Relaxed);
        }
        Ok(Action::await_change())
    }

    async fn patch(&self, name: &str, step: u32) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "data": { "step": step.to_string() } }));
        self.maps
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }
}

fn deployment(name: &str, owner: &OwnerReference) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "labels": { "app": name }, "ownerReferences": [owner] },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "nginx:1.29",
                    "ports": [{ "containerPort": 80 }],
                    "env": [{ "name": "SITE", "value": name }],
                    "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
                    "readinessProbe": { "httpGet": { "path": "/", "port": 80 } },
                }] },
            },
        },
    })
}

fn service(name: &str, owner: &OwnerReference) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "labels": { "app": name }, "ownerReferences": [owner] },
        "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] },
    })
}

/// Time that reconciles took in a round.
async fn round(writing: Writing, knowledge: Knowledge) -> Duration {
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
    let client: Client = if knowledge >= Knowledge::Log {
        builder.with_layer(&Tracked).build()
    } else {
        builder.build()
    };
    let apis = Arc::new(Apis {
        writing,
        maps: Api::default_namespaced(client.clone()),
        deployments: Api::default_namespaced(client.clone()),
        services: Api::default_namespaced(client.clone()),
        done: AtomicU32::new(0),
    });
    let mut config = Config::default().concurrency(1);
    if knowledge < Knowledge::Gate {
        config = config.wait_for_writes(Duration::ZERO);
    }
    if knowledge < Knowledge::Loops {
        config = config.loops(None::<loops::Config>);
    }
    let watched = watcher::Config::default;
    let mut controller =
        Controller::new(Api::<ConfigMap>::all(client.clone()), watched()).with_config(config);
    if writing == Writing::Children {
        controller = controller
            .owns(Api::<Deployment>::all(client.clone()), watched())
            .owns(Api::<Service>::all(client), watched());
    }
    let start = Instant::now();
    let run = controller.run(Apis::reconcile, error_policy::backoff, Arc::clone(&apis));
    let mut run = std::pin::pin!(run);
    while apis.done.load(Relaxed) < OBJECTS {
        run.next().await.unwrap().unwrap();
    }
    start.elapsed()
}

/// For each object in microseconds. Half of the rounds are below: that is less moved by what else the machine
/// does than a mean, or the fastest.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2] * 1e6 / f64::from(OBJECTS)
}

async fn compare(writing: Writing, name: &str) {
    const STEPS: [(Knowledge, &str); 4] = [
        // What this differs by is the machine's own noise.
        (Knowledge::Nothing, "unknown, once more"),
        (Knowledge::Log, "recorded"),
        (Knowledge::Gate, "and waited for"),
        (Knowledge::Loops, "and looked at for loops"),
    ];
    let mut plain = Vec::new();
    let mut more = STEPS.map(|_| Vec::new());
    for number in 0..=ROUNDS {
        let time = round(writing, Knowledge::Nothing).await.as_secs_f64();
        let mut times = Vec::new();
        for (knowledge, _) in STEPS {
            times.push(round(writing, knowledge).await.as_secs_f64());
        }
        // The first round warms up.
        if number > 0 {
            plain.push(time);
            for (more, known) in more.iter_mut().zip(times) {
                more.push(known - time);
            }
        }
    }
    let plain = median(plain);
    println!("{name}: {plain:.1} us");
    for ((_, step), more) in STEPS.iter().zip(more) {
        let more = median(more);
        println!(
            "  writes {step:24} + {more:4.1} us, {:4.1} %, {:4.1} us for each write",
            more / plain * 100.0,
            more / 3.0
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let given = |name: &str| std::env::args().any(|argument| argument == name);
    // For profilers: rounds of one kind only.
    let profiled = [
        ("plain", Knowledge::Nothing),
        ("recorded", Knowledge::Log),
        ("waited", Knowledge::Gate),
        ("tracked", Knowledge::Loops),
    ];
    if let Some((_, knowledge)) = profiled.into_iter().find(|(name, _)| given(name)) {
        let writing = [Writing::Values, Writing::Children][usize::from(given("children"))];
        for _ in 0..ROUNDS / 10 {
            round(writing, knowledge).await;
        }
        return;
    }
    compare(Writing::Values, "three merge patches of a value").await;
    compare(
        Writing::Children,
        "a Deployment and a Service applied, and a patch",
    )
    .await;
}

//! A process that is measured.

use crate::{
    measure::{Seen, Used, cpu, memory},
    scenario::{Course, Kind, Scenario, listed_version},
};
use ::homeostat::{Manager, client::Tracked};
use futures::{StreamExt, future, stream};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    serde::de::DeserializeOwned,
};
use kube::{Api, Client, Config, Resource};
use std::{fmt::Debug, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// Nothing has happened for so long: it is over.
const REST: Duration = Duration::from_millis(300);

/// What a reconciler works with.
struct Context {
    controller: usize,
    seen: Arc<Seen>,
}

#[derive(Debug, thiserror::Error)]
enum Never {}

/// What triggers all objects of the first controller, and what the controllers run in.
type Started = (mpsc::UnboundedSender<()>, JoinHandle<()>);

/// A controller of such objects, as the stream of its results, and what triggers all of them.
macro_rules! controller {
    ($runtime:ident, $kind:ty, $client:expr, $scenario:expr, $context:expr) => {{
        let (trigger, mut triggers) = mpsc::unbounded_channel::<()>();
        let triggers = stream::poll_fn(move |cx| triggers.poll_recv(cx));
        let config = ::$runtime::controller::Config::default().concurrency($scenario.concurrency);
        let api = Api::<$kind>::all($client.clone());
        let results = ::$runtime::Controller::new(api, ::$runtime::watcher::Config::default())
            .with_config(config)
            .reconcile_all_on(triggers)
            .run(
                |obj: Arc<$kind>, context: Arc<Context>| {
                    context.seen.take_in(context.controller, obj.meta());
                    future::ready(Ok::<_, Never>(
                        ::$runtime::controller::Action::await_change(),
                    ))
                },
                |_, error: &Never, _| match *error {},
                $context,
            );
        (trigger, results)
    }};
}

/// Runs a scenario with `runtime` against the server at `address`, and prints what that has used.
pub(crate) fn run(scenario: Scenario, runtime: &str, address: &str) {
    let tokio = Builder::new_multi_thread().enable_all().build().unwrap();
    let used = tokio.block_on(async {
        let seen = Arc::new(Seen::new(&scenario));
        let config = Config::new(format!("http://{address}").parse().unwrap());
        let contexts = (0..scenario.controllers).map(|controller| {
            let seen = Arc::clone(&seen);
            Arc::new(Context { controller, seen })
        });
        let contexts: Vec<_> = contexts.collect();
        let listed: Vec<u64> = (0..scenario.objects).map(listed_version).collect();
        seen.expect(&listed);
        let begin = Instant::now();
        let started = match (runtime, scenario.kind) {
            ("homeostat", Kind::ConfigMap) => homeostat::<ConfigMap>(config, &scenario, contexts),
            ("homeostat", Kind::Pod) => homeostat::<Pod>(config, &scenario, contexts),
            (_, Kind::ConfigMap) => kube_runtime::<ConfigMap>(config, &scenario, contexts),
            (_, Kind::Pod) => kube_runtime::<Pod>(config, &scenario, contexts),
        };
        let used = follow(&scenario, &seen, started, begin, address).await;
        if let Some(hold) = std::env::var_os("BENCH_HOLD") {
            sleep(Duration::from_secs(hold.to_str().unwrap().parse().unwrap())).await;
        }
        used
    });
    println!("{}", serde_json::to_string(&used).unwrap());
    std::process::exit(0);
}

fn kube_runtime<K>(config: Config, scenario: &Scenario, contexts: Vec<Arc<Context>>) -> Started
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let client = Client::try_from(config).unwrap();
    let mut triggers = Vec::new();
    let mut tasks = Vec::new();
    for context in contexts {
        let (trigger, results) = controller!(kube_runtime, K, client, scenario, context);
        triggers.push(trigger);
        tasks.push(tokio::spawn(results.for_each(|_| future::ready(()))));
    }
    let all = tokio::spawn(async move { drop(future::join_all(tasks).await) });
    (triggers.swap_remove(0), all)
}

fn homeostat<K>(config: Config, scenario: &Scenario, contexts: Vec<Arc<Context>>) -> Started
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let client = Tracked::client(config).unwrap();
    let mut triggers = Vec::new();
    if scenario.controllers == 1 {
        let context = contexts.into_iter().next().unwrap();
        let (trigger, results) = controller!(homeostat, K, client, scenario, context);
        return (
            trigger,
            tokio::spawn(results.for_each(|_| future::ready(()))),
        );
    }
    let mut manager = Manager::new(client.clone());
    for context in contexts {
        let (trigger, results) = controller!(homeostat, K, client, scenario, context);
        triggers.push(trigger);
        manager = manager.add(results);
    }
    let all = tokio::spawn(async move { manager.run().await.unwrap() });
    (triggers.swap_remove(0), all)
}

/// Waits for what happens in a scenario, and tells what that has used.
async fn follow(
    scenario: &Scenario,
    seen: &Seen,
    (trigger, controllers): Started,
    mut begin: Instant,
    address: &str,
) -> Used {
    seen.complete().await;
    let (mut cpu_before, mut reconciles_before) = (0.0, 0);
    let mut wall = begin.elapsed();
    if scenario.course != Course::Start {
        rest(seen).await;
        (cpu_before, reconciles_before) = (cpu(), seen.reconciles());
        begin = Instant::now();
        if scenario.course == Course::Drain {
            trigger.send(()).unwrap();
            while seen.reconciles() < reconciles_before + scenario.objects {
                sleep(Duration::from_millis(1)).await;
            }
        } else {
            seen.expect(&scenario.last_versions());
            go(address).await;
            seen.complete().await;
        }
        wall = begin.elapsed();
    }
    rest(seen).await;
    assert!(!controllers.is_finished(), "the controllers run on");
    let delays = seen.delays();
    Used {
        cpu_s: cpu() - cpu_before,
        peak_mb: memory("VmHWM:"),
        rest_mb: memory("VmRSS:"),
        wall_s: wall.as_secs_f64(),
        reconciles: seen.reconciles() - reconciles_before,
        p50_us: delays.map(|(p50, _)| p50),
        p99_us: delays.map(|(_, p99)| p99),
    }
}

/// Waits until nothing runs any more.
async fn rest(seen: &Seen) {
    loop {
        let before = seen.reconciles();
        sleep(REST).await;
        if seen.reconciles() == before {
            return;
        }
    }
}

/// Lets the server begin.
async fn go(address: &str) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /go HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(socket.read_u8().await.is_ok(), "the server answers");
}

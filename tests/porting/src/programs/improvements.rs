//! What homeostat does otherwise on purpose. Each test names its row in docs/porting.md.

use super::{
    HOMEOSTAT,
    runtime::{
        Controller, WatchStreamExt, conditions,
        controller::Action,
        events::{self, EventType, Recorder},
        finalizer::{Event, finalizer},
        reflector,
        scheduler::{ScheduleRequest, scheduler},
        wait::await_condition,
        watcher,
    },
};
use crate::{
    cluster::{
        Cluster, an_hour, config_map, create, delete, during, from, serve, until, until_gone,
    },
    journal::Journal,
};
use futures::{FutureExt, StreamExt, future, stream};
use homeostat_apiserver::{Fault, Rule};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event as Recorded,
};
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    convert::Infallible,
    fmt::Debug,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// Homeostat's value, or kube's.
fn either<T>(homeostat: T, kube: T) -> T {
    if HOMEOSTAT { homeostat } else { kube }
}

/// Runs a controller of config maps for ever.
async fn run<C, F, E>(
    client: Client,
    ctx: C,
    output: Journal,
    reconcile: impl FnMut(Arc<ConfigMap>, Arc<C>) -> F,
) where
    F: Future<Output = Result<Action, E>> + Send + 'static,
    E: std::error::Error + Send + 'static,
{
    let maps = Api::<ConfigMap>::default_namespaced(client);
    Controller::new(maps, watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(60)),
            Arc::new(ctx),
        )
        .for_each(|result| {
            if let Err(error) = result {
                output.say(error.to_string());
            }
            future::ready(())
        })
        .await;
}

/// "an object that is gone when its turn comes"
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("gone", &[])).await;
    let reconcile = |_, done: Arc<Journal>| async move {
        done.say("run");
        Ok::<_, Infallible>(Action::requeue(Duration::from_secs(60)))
    };
    let runs = Journal::default();
    let program = run(cluster.program(), runs.clone(), output.clone(), reconcile);
    during(program, async {
        runs.until_count(2).await;
        delete(&maps, "gone").await;
        an_hour().await;
    })
    .await;
    assert_eq!(runs.lines(), ["run"; 2]);
    assert_eq!(output.lines().len(), either(0, 1), "{:?}", output.lines());
}

/// "a panic in a reconciler ends the controller"
#[tokio::test(start_paused = true)]
async fn a_panic() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("bad", &[])).await;
    let reconcile = |map: Arc<ConfigMap>, done: Arc<Journal>| async move {
        assert_ne!(map.name_any(), "bad", "this one is bad");
        done.say(map.name_any());
        Ok::<_, Infallible>(Action::await_change())
    };
    let done = Journal::default();
    let program = run(cluster.program(), done.clone(), output.clone(), reconcile);
    let program = AssertUnwindSafe(program).catch_unwind().then(|_| {
        output.say("the end");
        future::pending()
    });
    during(program, async {
        output.until_count(1).await;
        create(&maps, &config_map("good", &[])).await;
        an_hour().await;
    })
    .await;
    assert_eq!(done.lines(), either(vec!["good"], vec![]));
    let ended = output.lines().iter().any(|line| line == "the end");
    assert_eq!(ended, !HOMEOSTAT, "{:?}", output.lines());
}

/// "a scheduler ends with its requests, and drops what waits"
#[tokio::test(start_paused = true)]
async fn a_scheduler_without_further_requests() {
    let run_at = Instant::now() + Duration::from_secs(5);
    let request = ScheduleRequest {
        message: "tea",
        run_at,
    };
    let due: Vec<_> = scheduler(stream::iter([request])).collect().await;
    assert_eq!(due, either(vec!["tea"], vec![]));
}

/// "SIGTERM before the store is ready waits", and so does any other order to stop
#[tokio::test(start_paused = true)]
async fn a_stop_before_the_start() {
    let cluster = Cluster::start();
    let forbidden = cluster.faults().inject(Rule::any(), Fault::Forbidden);
    let reconcile = |_, _: Arc<()>| future::err::<Action, _>(TooHot);
    let maps = Api::<ConfigMap>::default_namespaced(cluster.program());
    let program = Controller::new(maps, watcher::Config::default())
        .graceful_shutdown_on(sleep(Duration::from_secs(60)))
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(()))
        .for_each(|_| future::ready(()));
    let ended = timeout(Duration::from_secs(3600), program).await;
    assert_eq!(ended.is_ok(), HOMEOSTAT);
    assert!(forbidden.hits() > 0);
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Oven",
    namespaced,
    status = "OvenStatus"
)]
struct OvenSpec {
    heat: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct OvenStatus {
    attempts: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("too hot")]
struct TooHot;

/// "every error of a reconciler comes back after what the error policy says, and any event comes
/// before that"
#[tokio::test(start_paused = true)]
async fn an_error_that_is_written_into_the_status() {
    const ENOUGH: u32 = 20;
    let cluster = Cluster::start();
    serve::<Oven>(&cluster).await;
    let ovens = cluster.api::<Oven>();
    create(&ovens, &Oven::new("old", OvenSpec { heat: 900 })).await;
    let reconcile = |oven: Arc<Oven>, ovens: Arc<Api<Oven>>| async move {
        let attempts = oven.status.as_ref().map_or(0, |status| status.attempts) + 1;
        // Somewhere it has to end, because no time passes meanwhile.
        if attempts <= ENOUGH {
            let patch = Patch::Merge(json!({ "status": { "attempts": attempts } }));
            let params = PatchParams::default();
            let _ = ovens.patch_status("old", &params, &patch).await;
        }
        Err::<Action, _>(TooHot)
    };
    let program = Controller::new(
        Api::<Oven>::default_namespaced(cluster.program()),
        watcher::Config::default(),
    )
    .run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(60)),
        Arc::new(Api::default_namespaced(cluster.program())),
    )
    .for_each(|_| future::ready(()));
    during(program, sleep(Duration::from_secs(90))).await;
    let oven = ovens.get("old").await.expect("it is there");
    let attempts = oven.status.map_or(0, |status| status.attempts);
    assert_eq!(attempts, either(2, ENOUGH));
}

/// "subscribers see no deletions, and nothing from before they came"
#[tokio::test(start_paused = true)]
async fn a_late_subscriber() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("early", &[])).await;
    let (_, writer) = reflector::store_shared(16);
    let mut first = writer.subscribe().expect("the store is shared");
    let api = Api::<ConfigMap>::default_namespaced(cluster.program());
    let keep = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect_shared(writer)
        .for_each(|_| future::ready(()));
    let listen = async {
        assert!(first.next().await.is_some());
        let second = first.clone();
        drop(first);
        output.say("subscribed");
        second
            .for_each(|map| {
                output.say(map.name_any());
                future::ready(())
            })
            .await;
    };
    during(future::join(keep, listen).map(|_| ()), async {
        output.until_said("subscribed").await;
        an_hour().await;
        create(&maps, &config_map("late", &[])).await;
        output.until_said("late").await;
        delete(&maps, "late").await;
        an_hour().await;
    })
    .await;
    let homeostat = vec!["subscribed", "early", "late", "late"];
    assert_eq!(
        output.lines(),
        either(homeostat, vec!["subscribed", "late"])
    );
}

/// "a `Cleanup` that asks for a requeue has its finalizer removed"
#[tokio::test(start_paused = true)]
async fn a_cleanup_that_is_not_done() {
    const FINALIZER: &str = "example.com/furnace";
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("furnace", &[])).await;
    let reconcile = |map: Arc<ConfigMap>, ctx: Arc<(Api<ConfigMap>, Journal)>| async move {
        let (api, done) = &*ctx;
        finalizer(api, FINALIZER, map, |event| async move {
            Ok::<_, Infallible>(match event {
                Event::Apply(_) => Action::await_change(),
                Event::Cleanup(_) => {
                    done.say("cleanup");
                    let cold = done.lines().len() == 3;
                    if cold {
                        Action::await_change()
                    } else {
                        Action::requeue(Duration::from_secs(60))
                    }
                }
            })
        })
        .await
    };
    let done = Journal::default();
    let ctx = (Api::default_namespaced(cluster.program()), done.clone());
    let program = run(cluster.program(), ctx, output, reconcile);
    during(program, async {
        until(&maps, "furnace", |map| map.finalizers() == [FINALIZER]).await;
        delete(&maps, "furnace").await;
        until_gone(&maps, "furnace").await;
    })
    .await;
    assert_eq!(done.lines().len(), either(3, 1));
}

/// "`metadata.managedFields` are in the store"
#[tokio::test(start_paused = true)]
async fn managed_fields() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("any", &[("key", "value")])).await;
    let reconcile = |map: Arc<ConfigMap>, done: Arc<Journal>| async move {
        done.say(map.managed_fields().is_empty().to_string());
        Ok::<_, Infallible>(Action::await_change())
    };
    let done = Journal::default();
    let program = run(
        cluster.program(),
        done.clone(),
        Journal::default(),
        reconcile,
    );
    during(program, done.until_count(1)).await;
    assert_eq!(done.lines(), [HOMEOSTAT.to_string()]);
}

/// "concurrency is unbounded by default"
#[tokio::test(start_paused = true)]
async fn many_objects_at_once() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    for number in 0..20 {
        create(&maps, &config_map(&format!("map-{number}"), &[])).await;
    }
    let running = Arc::new(AtomicUsize::new(0));
    let reconcile = |_, running: Arc<Arc<AtomicUsize>>| async move {
        running.fetch_add(1, Ordering::Relaxed);
        future::pending::<Result<Action, Infallible>>().await
    };
    let program = run(
        cluster.program(),
        Arc::clone(&running),
        Journal::default(),
        reconcile,
    );
    during(program, an_hour()).await;
    assert_eq!(running.load(Ordering::Relaxed), either(16, 20));
}

/// "a relist triggers all objects"
#[tokio::test(start_paused = true)]
async fn a_server_that_restarts() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    for name in ["a", "b"] {
        create(&maps, &config_map(name, &[])).await;
    }
    let reconcile = |map: Arc<ConfigMap>, done: Arc<Journal>| async move {
        done.say(map.name_any());
        Ok::<_, Infallible>(Action::await_change())
    };
    let done = Journal::default();
    let program = run(
        cluster.program(),
        done.clone(),
        Journal::default(),
        reconcile,
    );
    during(program, async {
        done.until_count(2).await;
        // Nothing that is watched changes, but the server does not know any more.
        create(
            &cluster.api::<Secret>(),
            &from(json!({ "metadata": { "name": "c" } })),
        )
        .await;
        cluster.restart();
        an_hour().await;
        create(&maps, &config_map("d", &[])).await;
        done.until_said("d").await;
    })
    .await;
    let mut lines = done.lines();
    lines.sort();
    let kube = vec!["a", "a", "b", "b", "d"];
    assert_eq!(lines, either(vec!["a", "b", "d"], kube));
}

/// "an owner reference is matched by its full `apiVersion`"
#[tokio::test(start_paused = true)]
async fn an_owner_in_an_older_version() {
    let cluster = Cluster::start();
    serve::<Oven>(&cluster).await;
    let ovens = cluster.api::<Oven>();
    let oven = create(&ovens, &Oven::new("old", OvenSpec { heat: 200 })).await;
    let done = Journal::default();
    let reconcile = |oven: Arc<Oven>, done: Arc<Journal>| async move {
        done.say(oven.name_any());
        Ok::<_, Infallible>(Action::await_change())
    };
    let client = cluster.program();
    let program = Controller::new(
        Api::<Oven>::default_namespaced(client.clone()),
        watcher::Config::default(),
    )
    .owns(
        Api::<ConfigMap>::default_namespaced(client),
        watcher::Config::default(),
    )
    .run(
        reconcile,
        |_, _, _| Action::await_change(),
        Arc::new(done.clone()),
    )
    .for_each(|_| future::ready(()));
    during(program, async {
        done.until_count(1).await;
        let mut owner = oven.owner_ref(&()).expect("it comes from a server");
        owner.api_version = "example.com/v1alpha1".into();
        let mut child = config_map("child", &[]);
        child.metadata.owner_references = Some(vec![owner]);
        create(&cluster.api::<ConfigMap>(), &child).await;
        an_hour().await;
    })
    .await;
    assert_eq!(done.lines().len(), either(2, 1));
}

/// "`await_condition` fails when its watch fails for the first time"
#[tokio::test(start_paused = true)]
async fn a_wait_during_trouble() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("any", &[])).await;
    let trouble = cluster
        .faults()
        .inject(Rule::any().times(2), Fault::Unavailable);
    let maps = Api::<ConfigMap>::default_namespaced(cluster.program());
    let found = await_condition(maps, "any", conditions::is_created()).await;
    assert_eq!(found.is_ok(), HOMEOSTAT, "{found:?}");
    assert!(trouble.hits() > 0);
}

/// "an event is the same as before, whatever its note"
#[tokio::test(start_paused = true)]
async fn an_event_with_another_note() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    let recorder = Recorder::new(cluster.program(), "reporter".into());
    let event = |note: &str| events::Event {
        type_: EventType::Warning,
        reason: "TooHot".into(),
        note: Some(note.into()),
        action: "Cooling".into(),
        secondary: None,
    };
    let map = create(&maps, &config_map("oven", &[])).await;
    for note in ["hot", "hot", "very hot"] {
        let published = recorder.publish(&event(note), &map.object_ref(&())).await;
        assert!(published.is_ok(), "{published:?}");
    }
    an_hour().await;
    let list = cluster.api::<Recorded>().list(&ListParams::default()).await;
    let mut notes: Vec<_> = list
        .expect("the server lists")
        .iter()
        .map(|event| {
            let count = event.series.as_ref().map_or(1, |series| series.count);
            format!("{} {count}", event.note.as_deref().unwrap_or_default())
        })
        .collect();
    notes.sort();
    assert_eq!(notes, either(vec!["hot 2", "very hot 1"], vec!["hot 3"]));
}

//! When runs start: the controller with scripted objects and no server. What needs no script is in
//! `cases_backoff.rs` and `cases_scheduling.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{Stream, StreamExt, channel::mpsc, stream};
use homeostat::{
    Action, Config, Controller,
    controller::Error as ControllerError,
    error_policy,
    reflector::{self, ObjectRef, Store, store::Writer},
    watcher::{self, Event},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(&'static str);

type Objects = mpsc::UnboundedSender<Result<ConfigMap, watcher::Error>>;

const SECOND: Duration = Duration::from_secs(1);

/// An object in its `version`-th version.
fn object(name: &str, version: u32) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            uid: Some(format!("uid-of-{name}")),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// A store, its writer, and a way to say that an object was touched.
struct World {
    _writer: Writer<ConfigMap>,
    objects: Objects,
}

impl World {
    /// A world with these objects, and a controller for it.
    fn new(names: &[&str]) -> (Self, Controller<ConfigMap>) {
        let (reader, mut writer) = reflector::store();
        let (objects, stream) = mpsc::unbounded();
        writer.apply_watcher_event(&Event::Init);
        for obj in names.iter().map(|name| object(name, 1)) {
            writer.apply_watcher_event(&Event::InitApply(obj.clone()));
            objects.unbounded_send(Ok(obj)).unwrap();
        }
        writer.apply_watcher_event(&Event::InitDone);
        let world = Self {
            _writer: writer,
            objects,
        };
        (world, Controller::for_stream(stream, reader))
    }
}

/// When the runs of each object started, in whole seconds since the test began.
#[derive(Clone)]
struct Journal {
    start: Instant,
    runs: Arc<Mutex<BTreeMap<String, Vec<u64>>>>,
}

impl Journal {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            runs: Arc::default(),
        }
    }

    fn note(&self, obj: &ConfigMap) -> usize {
        let mut runs = self.runs.lock().unwrap();
        let name = obj.metadata.name.clone().unwrap_or_default();
        let runs = runs.entry(name).or_default();
        runs.push(self.start.elapsed().as_secs());
        runs.len()
    }

    fn of(&self, name: &str) -> Vec<u64> {
        self.runs
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }
}

/// Polls a controller's stream in the background.
fn drive<S: Stream + Send + 'static>(controller: S) -> tokio::task::JoinHandle<Vec<S::Item>>
where
    S::Item: Send,
{
    tokio::spawn(controller.collect())
}

/// T60: a reader of the stream that takes long for each item delays no run that was started, and
/// does not make the others wait for one item each.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_stall_the_controller() {
    let names: Vec<String> = (0..160).map(|number| format!("n{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_world, controller) = World::new(&names);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        sleep(Duration::from_millis(10)).await;
        journal.note(&obj);
        Ok::<_, Failure>(Action::await_change())
    };
    let run = controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone()));
    tokio::spawn(run.for_each(|_| sleep(10 * SECOND)));
    sleep(101 * SECOND).await;
    let last = names.iter().flat_map(|name| journal.of(name)).max();
    assert!(last <= Some(90), "the last of 160 runs ended at {last:?} s");
    assert_eq!(journal.runs.lock().unwrap().len(), 160);
}

/// R8: in a storm of events runs go on at their rate.
#[tokio::test]
async fn a_storm_of_events_does_not_starve_the_runs() {
    const EVENTS: u32 = 200_000;
    const KEYS: u32 = 10_000;
    let (reader, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for key in 0..KEYS {
        writer.apply_watcher_event(&Event::InitApply(object(&format!("n{key}"), 1)));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let finished = Arc::new(AtomicUsize::new(0));
    let during = Arc::new(AtomicUsize::new(0));
    let storm = {
        let (finished, during) = (Arc::clone(&finished), Arc::clone(&during));
        stream::iter(0..EVENTS).map(move |event| {
            during.store(finished.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(object(&format!("n{}", event % KEYS), 2))
        })
    };
    let reconcile = |_: Arc<ConfigMap>, finished: Arc<AtomicUsize>| async move {
        // A run that waits for three answers.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        finished.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = Controller::for_stream(storm, reader);
    controller
        .run(reconcile, error_policy::backoff, Arc::clone(&finished))
        .for_each(|_| std::future::ready(()))
        .await;
    let (during, all) = (
        during.load(Ordering::SeqCst),
        finished.load(Ordering::SeqCst),
    );
    assert!(all >= KEYS as usize, "{all} runs for {KEYS} objects");
    assert!(
        during >= 5_000,
        "{during} of {all} runs ended while events came in"
    );
}

/// R8: what is due now starts at once, without a tick of the clock.
#[tokio::test(start_paused = true)]
async fn what_is_due_starts_without_a_timer() {
    let (_world, controller) = World::new(&["a"]);
    let count = Arc::new(AtomicUsize::new(0));
    let reconcile = |_: Arc<ConfigMap>, count: Arc<AtomicUsize>| async move {
        match count.fetch_add(1, Ordering::SeqCst) {
            999 => Ok::<_, Failure>(Action::await_change()),
            _ => Ok(Action::requeue(Duration::ZERO)),
        }
    };
    let start = Instant::now();
    let run = controller.run(reconcile, error_policy::backoff, Arc::clone(&count));
    let items = run.take(1000).count().await;
    assert_eq!((items, count.load(Ordering::SeqCst)), (1000, 1000));
    assert_eq!(start.elapsed(), Duration::ZERO, "the clock stands still");
}

/// R9, T49: an object that is gone when its turn comes is a quiet no-op.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_no_error() {
    let (world, controller) = World::new(&["a"]);
    world.objects.unbounded_send(Ok(object("gone", 9))).unwrap();
    let reconcile =
        |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, Failure>(Action::await_change()) };
    let controller = controller.graceful_shutdown_on(sleep(10 * SECOND));
    let items = drive(controller.run(reconcile, error_policy::backoff, Arc::new(()))).await;
    let items: Vec<String> = items
        .unwrap()
        .into_iter()
        .map(|item| item.map_or_else(|error| error.to_string(), |(obj, _)| obj.name))
        .collect();
    assert_eq!(items, ["a"]);
}

/// Stopping starts nothing more, waits for what runs, and ends the stream.
#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_runs() {
    let (_world, controller) = World::new(&["a", "b", "c"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        sleep(10 * SECOND).await;
        journal.note(&obj);
        Ok::<_, Failure>(Action::requeue(Duration::ZERO))
    };
    let controller = controller
        .with_config(Config::default().concurrency(2))
        .graceful_shutdown_on(sleep(5 * SECOND))
        .graceful_shutdown_on(std::future::pending());
    let run = controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone()));
    assert_eq!(run.count().await, 2);
    assert_eq!(journal.start.elapsed(), 10 * SECOND);
    assert_eq!(
        (journal.of("a"), journal.of("b"), journal.of("c")),
        (vec![10], vec![10], vec![])
    );
}

/// Stopping before the store is ready is prompt.
#[tokio::test(start_paused = true)]
async fn shutdown_before_the_store_is_ready() {
    let (reader, _writer): (Store<ConfigMap>, _) = reflector::store();
    let reconcile =
        |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, Failure>(Action::await_change()) };
    let start = Instant::now();
    Controller::for_stream(stream::pending(), reader)
        .graceful_shutdown_on(sleep(SECOND))
        .run(reconcile, error_policy::backoff, Arc::new(()))
        .for_each(|_| std::future::ready(()))
        .await;
    assert_eq!(start.elapsed(), SECOND);
}

/// A store whose writer is gone is an error that says so.
#[tokio::test(start_paused = true)]
async fn a_store_without_writer_is_reported() {
    let (reader, writer): (Store<ConfigMap>, _) = reflector::store();
    drop(writer);
    let reconcile =
        |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, Failure>(Action::await_change()) };
    let run = Controller::for_stream(stream::pending(), reader)
        .graceful_shutdown_on(sleep(SECOND))
        .run(reconcile, error_policy::backoff, Arc::new(()));
    let items: Vec<_> = run.collect().await;
    assert!(
        matches!(items.as_slice(), [Err(ControllerError::RunnerError(_))]),
        "{items:?}"
    );
}

/// `reconcile_on` and `reconcile_all_on` run what they name, after what changed.
#[tokio::test(start_paused = true)]
async fn external_triggers() {
    let (_world, controller) = World::new(&["a", "b"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        journal.note(&obj);
        Ok::<_, Failure>(Action::await_change())
    };
    let one = stream::once(async {
        sleep(10 * SECOND).await;
        ObjectRef::new("b").within("default")
    });
    let all = stream::once(sleep(20 * SECOND));
    let controller = controller.reconcile_on(one).reconcile_all_on(all);
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone())));
    sleep(30 * SECOND).await;
    assert_eq!(journal.of("a"), [0, 20]);
    assert_eq!(journal.of("b"), [0, 10, 20]);
}

//! When runs start: the controller with scripted objects and no server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{Stream, StreamExt, channel::mpsc, stream};
use homeostat::{
    Action, Backoff, Config, Controller,
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

/// An object in its `version`-th version; the first `generation` is 1.
fn object(name: &str, version: u32, generation: i64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            uid: Some(format!("uid-of-{name}")),
            resource_version: Some(version.to_string()),
            generation: Some(generation),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// A store, its writer, and a way to say that an object was touched.
struct World {
    writer: Writer<ConfigMap>,
    objects: Objects,
    versions: u32,
}

impl World {
    /// A world with these objects, and a controller for it.
    fn new(names: &[&str]) -> (Self, Controller<ConfigMap>) {
        let (reader, writer) = reflector::store();
        let (objects, stream) = mpsc::unbounded();
        let mut world = Self {
            writer,
            objects,
            versions: 0,
        };
        world.writer.apply_watcher_event(&Event::Init);
        for name in names {
            let obj = world.next_version(name, 1);
            world
                .writer
                .apply_watcher_event(&Event::InitApply(obj.clone()));
            world.touch(obj);
        }
        world.writer.apply_watcher_event(&Event::InitDone);
        (world, Controller::for_stream(stream, reader))
    }

    fn next_version(&mut self, name: &str, generation: i64) -> ConfigMap {
        self.versions += 1;
        object(name, self.versions, generation)
    }

    fn touch(&self, obj: ConfigMap) {
        self.objects
            .unbounded_send(Ok(obj))
            .expect("the controller listens");
    }

    /// The object changes; its generation tells whether its spec did.
    fn change(&mut self, name: &str, generation: i64) {
        let obj = self.next_version(name, generation);
        self.writer.apply_watcher_event(&Event::Apply(obj.clone()));
        self.touch(obj);
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

/// Delays of 1, 2, 4, ... seconds, up to a minute, without jitter, so that tests can name them.
fn even_backoff() -> Config {
    Config::default().backoff(Backoff::exponential(SECOND, 60 * SECOND).jitter(0.0))
}

/// Polls a controller's stream in the background.
fn drive<S: Stream + Send + 'static>(controller: S) -> tokio::task::JoinHandle<Vec<S::Item>>
where
    S::Item: Send,
{
    tokio::spawn(controller.collect())
}

/// T01, T02: each object has delays of its own; they grow, and a success resets them.
#[tokio::test(start_paused = true)]
async fn backoff_grows_for_each_object_by_itself() {
    let (_world, controller) = World::new(&["bad", "good"]);
    let journal = Journal::new();
    let reconcile = move |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        let nth = journal.note(&obj);
        match (obj.metadata.name.as_deref(), nth) {
            (Some("bad"), nth) if nth != 5 => Err(Failure("not yet")),
            (Some("bad"), _) => Ok(Action::requeue(100 * SECOND)),
            _ => Ok(Action::requeue(10 * SECOND)),
        }
    };
    let controller = controller.with_config(even_backoff());
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone())));
    sleep(120 * SECOND).await;
    // Four failures with 1, 2, 4 and 8 s between; a success; then failures from the start again.
    assert_eq!(journal.of("bad"), [0, 1, 3, 7, 15, 115, 116, 118]);
    let good: Vec<u64> = (0..12).map(|nth| nth * 10).collect();
    assert_eq!(journal.of("good"), good);
}

/// T11, section A 1: events while an object backs off neither shorten the delay nor raise the
/// count, unless the desired state changed.
#[tokio::test(start_paused = true)]
async fn only_a_change_of_the_desired_state_ends_a_backoff() {
    let (mut world, controller) = World::new(&["a"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        journal.note(&obj);
        Err::<Action, _>(Failure("never"))
    };
    let controller = controller.with_config(even_backoff());
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone())));
    sleep(Duration::from_millis(3500)).await;
    for _ in 0..20 {
        world.change("a", 1);
    }
    sleep(6 * SECOND).await;
    assert_eq!(journal.of("a"), [0, 1, 3, 7], "status changes at 3.5 s");
    world.change("a", 2);
    sleep(40 * SECOND).await;
    // The spec changed at 9.5 s; that run failed too, and the sequence went on: 16 s, 32 s.
    assert_eq!(journal.of("a"), [0, 1, 3, 7, 9, 25]);
}

/// A reconcile that fails and writes status in every run follows the backoff all the same, with a
/// policy of a fixed interval too.
#[tokio::test(start_paused = true)]
async fn a_loop_through_the_own_status_follows_the_policy() {
    for policy in [Action::backoff(), Action::requeue(10 * SECOND)] {
        let (world, controller) = World::new(&["a"]);
        let world = Arc::new(Mutex::new(world));
        let journal = Journal::new();
        let reconcile = {
            let journal = journal.clone();
            move |obj: Arc<ConfigMap>, _: Arc<()>| {
                let (journal, world) = (journal.clone(), Arc::clone(&world));
                async move {
                    journal.note(&obj);
                    // What a watch tells of a status that was written.
                    world.lock().unwrap().change("a", 1);
                    Err::<Action, _>(Failure("never"))
                }
            }
        };
        let expected: &[u64] = if policy.is_backoff() {
            &[0, 1, 3, 7, 15, 31]
        } else {
            &[0, 10, 20, 30, 40, 50]
        };
        let error_policy = move |_: Arc<ConfigMap>, _: &Failure, _: Arc<()>| policy.clone();
        let controller = controller.with_config(even_backoff());
        drive(controller.run(reconcile, error_policy, Arc::new(())));
        sleep(Duration::from_millis(59_500)).await;
        assert_eq!(journal.of("a"), expected);
    }
}

/// T52: never two runs of an object at once; any number of events during a run lead to one more.
#[tokio::test(start_paused = true)]
async fn events_during_a_run_lead_to_one_more() {
    let (mut world, controller) = World::new(&["a"]);
    let journal = Journal::new();
    let at_once = Arc::new(AtomicUsize::new(0));
    let reconcile = {
        let (journal, at_once) = (journal.clone(), Arc::clone(&at_once));
        move |obj: Arc<ConfigMap>, _: Arc<()>| {
            let (journal, at_once) = (journal.clone(), Arc::clone(&at_once));
            async move {
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0);
                journal.note(&obj);
                sleep(10 * SECOND).await;
                at_once.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Failure>(Action::await_change())
            }
        }
    };
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(())));
    for _ in 0..50 {
        sleep(Duration::from_millis(100)).await;
        world.change("a", 1);
    }
    sleep(100 * SECOND).await;
    assert_eq!(journal.of("a"), [0, 10]);
}

/// T54: first come, first served: nobody waits for longer than all others once.
#[tokio::test(start_paused = true)]
async fn no_object_waits_for_others_twice() {
    let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_world, controller) = World::new(&names);
    let order = Arc::new(Mutex::new(Vec::new()));
    let reconcile = |obj: Arc<ConfigMap>, order: Arc<Mutex<Vec<String>>>| async move {
        order
            .lock()
            .unwrap()
            .push(obj.metadata.name.clone().unwrap_or_default());
        sleep(SECOND).await;
        Ok::<_, Failure>(Action::requeue(Duration::ZERO))
    };
    let controller = controller.with_config(Config::default().concurrency(1));
    drive(controller.run(reconcile, error_policy::backoff, Arc::clone(&order)));
    sleep(100 * SECOND).await;
    let order = order.lock().unwrap();
    assert!(order.len() >= 99, "{} runs", order.len());
    for round in order.chunks_exact(names.len()) {
        assert_eq!(round, names);
    }
}

/// T55: a steady stream of events puts a run off, but not for ever; a requeue is not put off.
#[tokio::test(start_paused = true)]
async fn debounce_has_a_longest_wait() {
    let (mut world, controller) = World::new(&["a"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        journal.note(&obj);
        Ok::<_, Failure>(Action::requeue(30 * SECOND))
    };
    let controller = controller.with_config(Config::default().debounce(2 * SECOND));
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone())));
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(journal.of("a"), [2]);
    for _ in 0..26 {
        world.change("a", 1);
        sleep(SECOND).await;
    }
    assert_eq!(
        journal.of("a"),
        [2, 22],
        "events each second from 2.5 s to 27.5 s"
    );
    sleep(40 * SECOND).await;
    // Quiet for 2 s at 29.5 s; then the requeue, 30 s later.
    assert_eq!(journal.of("a"), [2, 22, 29, 59]);
}

/// T56: a panic, in the future, in the call, or in the error policy, concerns one object alone.
#[tokio::test(start_paused = true)]
async fn a_panic_concerns_one_object() {
    let (_world, controller) = World::new(&["call", "good", "late", "policy"]);
    let journal = Journal::new();
    let reconcile = {
        let journal = journal.clone();
        move |obj: Arc<ConfigMap>, _: Arc<()>| {
            journal.note(&obj);
            let name = obj.metadata.name.clone().unwrap_or_default();
            assert_ne!(name, "call", "the call panics");
            async move {
                tokio::task::yield_now().await;
                match name.as_str() {
                    "late" => panic!("the future panics"),
                    "policy" => Err(Failure("ask the policy")),
                    _ => Ok(Action::requeue(5 * SECOND)),
                }
            }
        }
    };
    let policy = |_: Arc<ConfigMap>, _: &Failure, _: Arc<()>| -> Action { panic!("the policy") };
    let controller = controller
        .with_config(even_backoff())
        .graceful_shutdown_on(sleep(Duration::from_millis(7500)));
    let items = drive(controller.run(reconcile, policy, Arc::new(())))
        .await
        .unwrap();
    assert_eq!(journal.of("good"), [0, 5]);
    for name in ["call", "late", "policy"] {
        assert_eq!(journal.of(name), [0, 1, 3, 7], "{name}");
    }
    let panics: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            Err(ControllerError::ReconcilerPanicked(panic, obj)) => {
                Some(format!("{}: {panic}", obj.name))
            }
            _ => None,
        })
        .collect();
    assert_eq!(panics.len(), 12, "{panics:?}");
    for expected in ["late: the future panics", "policy: the policy"] {
        assert!(panics.iter().any(|panic| panic == expected), "{panics:?}");
    }
}

/// T58: a requeue after centuries never comes, and harms nobody.
#[tokio::test(start_paused = true)]
async fn the_longest_requeue_is_never() {
    let (mut world, controller) = World::new(&["a"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        journal.note(&obj);
        Ok::<_, Failure>(Action::requeue(Duration::MAX))
    };
    drive(controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone())));
    sleep(400 * 24 * 3600 * SECOND).await;
    assert_eq!(journal.of("a"), [0]);
    world.change("a", 1);
    sleep(SECOND).await;
    assert_eq!(journal.of("a").len(), 2);
}

/// T59: a run that takes too long is dropped, reported, and tried again after its backoff.
#[tokio::test(start_paused = true)]
async fn a_run_may_only_take_so_long() {
    let (_world, controller) = World::new(&["slow"]);
    let journal = Journal::new();
    let reconcile = |obj: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        if journal.note(&obj) < 3 {
            std::future::pending::<()>().await;
        }
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = controller
        .with_config(even_backoff().reconcile_timeout(5 * SECOND))
        .graceful_shutdown_on(sleep(60 * SECOND));
    let run = controller.run(reconcile, error_policy::backoff, Arc::new(journal.clone()));
    let items = drive(run).await.unwrap();
    // 5 s until the timeout and 1 s of backoff; 5 s and 2 s.
    assert_eq!(journal.of("slow"), [0, 6, 13]);
    let timeouts = items
        .iter()
        .filter(|item| matches!(item, Err(ControllerError::ReconcileTimeout(limit, _)) if *limit == 5 * SECOND))
        .count();
    assert_eq!((timeouts, items.len()), (2, 3));
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
        writer.apply_watcher_event(&Event::InitApply(object(&format!("n{key}"), 1, 1)));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let finished = Arc::new(AtomicUsize::new(0));
    let during = Arc::new(AtomicUsize::new(0));
    let storm = {
        let (finished, during) = (Arc::clone(&finished), Arc::clone(&during));
        stream::iter(0..EVENTS).map(move |event| {
            during.store(finished.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(object(&format!("n{}", event % KEYS), 2, 1))
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
    world.touch(object("gone", 9, 1));
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

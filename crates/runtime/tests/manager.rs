//! The manager: shared watches, changes while it runs, its end, and leadership.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "an error here fails the test, which is all it can do"
)]

mod world;

use futures::{StreamExt, stream};
use homeostat::{
    Action, Controller, Manager,
    client::Tracked,
    error_policy,
    events::{Event, EventType, Recorder, Reporter},
    leadership::LeaderElection,
    manager::{Error, Handle, Phase, STEPS, Task, Unit, UnitStatus, What},
    reflector::ObjectRef,
    watcher,
};
use homeostat_apiserver::{Fault, Rule, Verb};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use world::{Failure, SECOND, Widget, World};

/// Which objects were reconciled by whom, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Log {
    fn note(&self, who: &'static str, what: String) {
        self.0.lock().unwrap().push((who, what));
    }

    fn of(&self, who: &str) -> Vec<String> {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|(other, _)| *other == who)
            .map(|(_, what)| what.clone())
            .collect()
    }

    fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// A manager that runs.
struct Run {
    handle: Handle,
    stop: mpsc::UnboundedSender<()>,
    task: JoinHandle<Result<(), Error>>,
}

fn run(manager: Manager) -> Run {
    let (stop, stops) = mpsc::unbounded_channel();
    let stops = stream::unfold(stops, |mut stops| async move {
        let () = stops.recv().await?;
        Some(((), stops))
    });
    let handle = manager.handle();
    let task = tokio::spawn(manager.stop_on(stops.chain(stream::pending())).run());
    Run { handle, stop, task }
}

impl Run {
    fn unit(&self, name: &str) -> UnitStatus {
        let units = self.handle.status().units;
        let names: Vec<_> = units.iter().map(|unit| unit.name.clone()).collect();
        let found = units.into_iter().find(|unit| unit.name == name);
        found.unwrap_or_else(|| panic!("there is no {name} among {names:?}"))
    }

    async fn stopped(mut self) -> Result<(), Error> {
        self.stop.send(()).unwrap();
        let ended = timeout(120 * SECOND, &mut self.task).await;
        ended.unwrap().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn all() -> watcher::Config {
    watcher::Config::default()
}

/// A controller's stream that notes each run.
fn noting<K>(controller: Controller<K>, log: &Log, who: &'static str) -> Unit
where
    K: Resource<DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let log = log.clone();
    let reconcile = move |obj: Arc<K>, _: Arc<()>| {
        log.note(who, obj.name_any());
        async { Ok::<_, Failure>(Action::await_change()) }
    };
    Unit::new(controller.run(reconcile, error_policy::backoff, Arc::new(()))).named(who)
}

async fn create_secret(world: &World, name: &str, owner: Option<&str>) {
    let owner = match owner {
        Some(owner) => world.widgets.get(owner).await.unwrap().owner_ref(&()),
        None => None,
    };
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.into()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    secrets(world)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

fn secrets(world: &World) -> Api<Secret> {
    Api::default_namespaced(world.client.clone())
}

/// Three controllers of widgets, of which two watch Secrets, and three of Secrets.
fn six(world: &World, log: &Log) -> Manager {
    let client = world.wire.client();
    let mut manager = Manager::new(client);
    let plain = world.controller();
    manager = manager.add(noting(plain, log, "w1"));
    let owning = world.controller().owns(world.all::<Secret>(), all());
    manager = manager.add(noting(owning, log, "w2"));
    let watching = world
        .controller()
        .watches(world.all::<Secret>(), all(), |secret: Secret| {
            Some(ObjectRef::<Widget>::new(&secret.name_any()).within("default"))
        });
    manager = manager.add(noting(watching, log, "w3"));
    for who in ["s1", "s2", "s3"] {
        let controller = Controller::new(world.all::<Secret>(), all());
        manager = manager.add(noting(controller, log, who));
    }
    manager
}

#[tokio::test(start_paused = true)]
async fn equal_watches_are_one_and_each_follower_hears_all() {
    let world = World::new(&["a", "b"]).await;
    create_secret(&world, "b", Some("a")).await;
    let log = Log::default();
    let run = run(six(&world, &log));
    sleep(5 * SECOND).await;
    for plural in ["widgets", "secrets"] {
        assert_eq!(world.asked(Verb::Watch, plural).len(), 1, "{plural}");
        assert_eq!(world.asked(Verb::List, plural).len(), 0, "{plural}");
    }
    for who in ["w1", "w2", "w3"] {
        let mut names = log.of(who);
        names.sort();
        assert_eq!(names, ["a", "b"], "{who}");
    }
    for who in ["s1", "s2", "s3"] {
        assert_eq!(log.of(who), ["b"], "{who}");
    }
    let status = run.handle.status();
    assert!(status.ready, "{status:?}");
    assert_eq!(status.watches.len(), 2, "{:?}", status.watches);

    // A change of a Secret reaches its kind, its owner, and who is mapped to.
    log.clear();
    let patch = Patch::Merge(json!({ "data": { "key": "" } }));
    secrets(&world)
        .patch("b", &PatchParams::default(), &patch)
        .await
        .unwrap();
    sleep(SECOND).await;
    assert_eq!(log.of("w1"), Vec::<String>::new());
    assert_eq!(
        (log.of("w2"), log.of("w3")),
        (vec!["a".into()], vec!["b".into()])
    );
    assert_eq!(log.of("s2"), ["b"]);

    // So does its end.
    log.clear();
    secrets(&world)
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    sleep(SECOND).await;
    assert_eq!(
        (log.of("w2"), log.of("w3")),
        (vec!["a".into()], vec!["b".into()])
    );
    run.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_vanishes_while_a_shared_watch_is_down_is_noticed_by_all() {
    let world = World::new(&["a", "b"]).await;
    create_secret(&world, "b", Some("a")).await;
    let log = Log::default();
    let run = run(six(&world, &log));
    sleep(5 * SECOND).await;
    log.clear();
    let gap = [world.gap("secrets", 10 * SECOND)];
    secrets(&world)
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    sleep(30 * SECOND).await;
    drop(gap);
    assert_eq!(
        (log.of("w2"), log.of("w3")),
        (vec!["a".into()], vec!["b".into()])
    );
    assert!(run.handle.status().ready);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_scopes_tell_watches_apart() {
    let world = World::new(&["a"]).await;
    let log = Log::default();
    let client = world.wire.client();
    let labelled = Controller::new(Api::<Widget>::all(client.clone()), all().labels("a=b"));
    let namespaced = Controller::new(Api::<Widget>::namespaced(client.clone(), "default"), all());
    let paged = Controller::new(Api::<Widget>::all(client.clone()), all().page_size(7));
    let manager = Manager::new(client)
        .add(noting(labelled, &log, "labelled"))
        .add(noting(namespaced, &log, "namespaced"))
        .add(noting(paged, &log, "paged"))
        .add(noting(world.controller(), &log, "all"));
    let run = run(manager);
    sleep(5 * SECOND).await;
    assert_eq!(run.handle.status().watches.len(), 3);
    assert_eq!(log.of("labelled"), Vec::<String>::new());
    for who in ["namespaced", "paged", "all"] {
        assert_eq!(log.of(who), ["a"], "{who}");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_come_and_go() {
    let world = World::new(&["a", "b"]).await;
    let log = Log::default();
    let first = world.controller();
    let manager = Manager::new(world.wire.client()).add(noting(first, &log, "first"));
    let run = run(manager);
    sleep(5 * SECOND).await;

    // One that comes late hears of all that is there, of a watch that is there already.
    let late = world.controller().owns(world.all::<Secret>(), all());
    let store = late.store();
    run.handle.add(noting(late, &log, "late"));
    sleep(5 * SECOND).await;
    assert_eq!(log.of("late"), ["a", "b"]);
    assert_eq!(store.len(), 2);
    assert_eq!(world.asked(Verb::Watch, "widgets").len(), 1);
    assert_eq!(run.unit("late").phase, Phase::Running);

    // One that only watches Secrets comes still later, and nobody has kept them.
    create_secret(&world, "one", Some("b")).await;
    sleep(SECOND).await;
    log.clear();
    let later = world.controller().owns(world.all::<Secret>(), all());
    run.handle.add(noting(later, &log, "later"));
    sleep(5 * SECOND).await;
    assert_eq!(log.of("later"), ["a", "b"]);
    assert_eq!(
        log.of("late"),
        Vec::<String>::new(),
        "a list is no news to others"
    );
    // And one of Secrets themselves.
    run.handle.add(noting(
        Controller::new(world.all::<Secret>(), all()),
        &log,
        "secrets",
    ));
    sleep(5 * SECOND).await;
    assert_eq!(log.of("secrets"), ["one"]);
    log.clear();
    secrets(&world)
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    sleep(SECOND).await;
    assert_eq!(
        (log.of("late"), log.of("later")),
        (vec!["b".into()], vec!["b".into()])
    );

    // Those who are removed run no more, and watches that nobody follows end.
    for name in ["late", "later", "secrets"] {
        assert!(run.handle.remove(name).await);
    }
    assert!(!run.handle.remove("late").await, "it is gone");
    sleep(SECOND).await;
    assert_eq!(
        run.handle.status().watches,
        ["widgets.example.com in all namespaces"]
    );
    log.clear();
    world.set_value("a", 1).await;
    sleep(5 * SECOND).await;
    assert_eq!(log.of("first"), ["a"]);
    assert_eq!(log.of("late"), Vec::<String>::new());
    assert_eq!(
        store.len(),
        2,
        "the store that it shared is still kept up to date"
    );
    run.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_controller_waits_for_the_managers_stores() {
    let world = World::new(&["a"]).await;
    create_secret(&world, "one", None).await;
    let hang = world.inject(world::rule(Verb::Watch, "secrets"), Fault::Forbidden);
    let refuse = world.inject(world::rule(Verb::List, "secrets"), Fault::Forbidden);
    let log = Log::default();
    let manager = Manager::new(world.wire.client());
    let secrets = manager.store::<Secret>();
    let same = manager.store::<Secret>();
    let run = run(manager.add(noting(world.controller(), &log, "widgets")));
    sleep(60 * SECOND).await;
    assert_eq!(log.of("widgets"), Vec::<String>::new());
    let status = run.handle.status();
    assert!(!status.ready);
    assert!(
        status.waits_for.iter().any(|why| why.contains("secrets")),
        "{status:?}"
    );
    drop((hang, refuse));
    sleep(60 * SECOND).await;
    assert_eq!(log.of("widgets"), ["a"]);
    assert_eq!((secrets.len(), same.len()), (1, 1));
    assert!(run.handle.status().ready);
}

// T12 and E59: its custom resource is not installed, or is taken away.
#[tokio::test(start_paused = true)]
async fn a_controller_whose_definition_is_missing_waits_for_it() {
    let world = World::bare(homeostat_apiserver::ApiServer::builder().build());
    create_map(&world, "map").await;
    let log = Log::default();
    let maps = Controller::new(world.all::<ConfigMap>(), all());
    let manager = Manager::new(world.wire.client())
        .add(noting(world.controller(), &log, "widgets"))
        .add(noting(maps, &log, "maps"));
    let run = run(manager);
    sleep(60 * SECOND).await;
    assert_eq!(log.of("maps"), ["map"], "the others go on");
    let waiting = run.unit("widgets");
    assert_eq!(waiting.phase, Phase::WaitsForDefinition);
    let why = waiting.waits_for.join(" ");
    assert!(why.contains("CustomResourceDefinition"), "{why}");
    assert!(!run.handle.status().ready);
    world.install().await;
    world.create("a").await;
    sleep(60 * SECOND).await;
    assert_eq!(log.of("widgets"), ["a"]);
    assert_eq!(run.unit("widgets").phase, Phase::Running);
    assert!(run.handle.status().ready);
    // It goes, and comes back.
    world.uninstall().await;
    sleep(10 * SECOND).await;
    world.server.faults().drop_watches();
    sleep(60 * SECOND).await;
    assert_eq!(run.unit("widgets").phase, Phase::WaitsForDefinition);
    world.install().await;
    world.create("b").await;
    sleep(60 * SECOND).await;
    assert_eq!(log.of("widgets"), ["a", "b"]);
}

// T06: lists are allowed and watches are not, so nothing would run but by chance.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_is_seen_in_readiness() {
    let world = World::new(&["a"]).await;
    let log = Log::default();
    let forbidden = world.inject(world::rule(Verb::Watch, "widgets"), Fault::Forbidden);
    let manager = Manager::new(world.wire.client())
        .add(noting(world.controller(), &log, "first"))
        .add(noting(world.controller(), &log, "second"));
    let run = run(manager);
    sleep(60 * SECOND).await;
    let status = run.handle.status();
    assert!(!status.ready);
    for name in ["first", "second"] {
        let why = run.unit(name).waits_for.join(" ");
        assert!(
            why.contains("widgets.example.com") && why.contains("forbidden"),
            "{why}"
        );
    }
    drop(forbidden);
    sleep(60 * SECOND).await;
    assert!(run.handle.status().ready);
    assert_eq!(
        (log.of("first"), log.of("second")),
        (vec!["a".into()], vec!["a".into()])
    );
}

async fn create_map(world: &World, name: &str) {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    world
        .maps
        .create(&PostParams::default(), &map)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_one_stays_its_own() {
    let world = World::new(&["a"]).await;
    let log = Log::default();
    let panicking = world.controller().run(
        |_, _| async { Ok::<_, Failure>(Action::await_change()) },
        error_policy::backoff,
        Arc::new(()),
    );
    let panicking = panicking.inspect(|_| panic!("of an adapter"));
    let mapper = world.controller().watches(
        world.all::<Secret>(),
        all(),
        |_| -> Vec<ObjectRef<Widget>> { panic!("of a mapper") },
    );
    let related = world
        .controller()
        .watches(world.all::<Secret>(), all(), |_| {
            Some(ObjectRef::<Widget>::new("a").within("default"))
        });
    let manager = Manager::new(world.wire.client())
        .add(panicking)
        .add(noting(mapper, &log, "mapper"))
        .add(noting(related, &log, "related"))
        .task(Task::new("failing", |_| async { Err(Failure("no disk")) }))
        .task(Task::new("patient", |stopping| async move {
            stopping.requested().await;
            Ok::<_, Failure>(())
        }));
    let run = run(manager);
    sleep(5 * SECOND).await;
    log.clear();
    create_secret(&world, "one", None).await;
    sleep(5 * SECOND).await;
    assert_eq!(log.of("related"), ["a"]);
    assert_eq!(run.unit("failing").phase, Phase::Failed("no disk".into()));
    assert_eq!(run.unit("patient").phase, Phase::Running);
    let panicked = Phase::Failed("it panicked: of an adapter".into());
    assert_eq!(run.unit("widget").phase, panicked);
    assert!(!run.handle.status().ready);
    run.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_ends_at_once_before_its_caches_are_complete() {
    let world = World::new(&["a"]).await;
    let _silent = world.inject(Rule::any(), Fault::Hang);
    let election = LeaderElection::new(world.wire.client(), "default", "operator");
    let log = Log::default();
    let manager = Manager::new(world.wire.client())
        .add(noting(world.controller_of_both(), &log, "widgets"))
        .leader_election(election);
    let _secrets = manager.store::<Secret>();
    let run = run(manager);
    sleep(3 * SECOND).await;
    let start = Instant::now();
    run.stopped().await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// A manager whose one run takes so long. `ends` is told when a run has ended.
fn slow(world: &World, takes: Duration) -> (Run, mpsc::UnboundedReceiver<()>) {
    let (end, ends) = mpsc::unbounded_channel();
    let controller = world.controller().run(
        move |_, _| {
            let end = end.clone();
            async move {
                sleep(takes).await;
                end.send(()).unwrap();
                Ok::<_, Failure>(Action::await_change())
            }
        },
        error_policy::backoff,
        Arc::new(()),
    );
    (run(Manager::new(world.wire.client()).add(controller)), ends)
}

#[tokio::test(start_paused = true)]
async fn runs_end_within_the_time_for_that() {
    let world = World::new(&["a"]).await;
    let (run, mut ends) = slow(&world, 20 * SECOND);
    sleep(SECOND).await;
    let start = Instant::now();
    run.stopped().await.unwrap();
    assert!(ends.try_recv().is_ok());
    assert!(start.elapsed() <= 20 * SECOND);
}

// T62: the end has a deadline.
#[tokio::test(start_paused = true)]
async fn what_takes_longer_is_cancelled_and_named() {
    let world = World::new(&["a"]).await;
    let (run, mut ends) = slow(&world, 60 * SECOND);
    sleep(SECOND).await;
    let start = Instant::now();
    let error = run.stopped().await.unwrap_err();
    assert!(
        matches!(&error, Error::Overdue { units, .. } if units == &["widget"]),
        "{error}"
    );
    assert_eq!(start.elapsed().as_secs(), 25);
    assert!(ends.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_second_request_aborts() {
    let world = World::new(&["a"]).await;
    let (run, mut ends) = slow(&world, 60 * SECOND);
    sleep(SECOND).await;
    let start = Instant::now();
    run.stop.send(()).unwrap();
    sleep(SECOND).await;
    let error = run.stopped().await.unwrap_err();
    assert!(matches!(error, Error::Aborted), "{error}");
    assert_eq!(start.elapsed().as_secs(), 1);
    sleep(120 * SECOND).await;
    assert!(ends.try_recv().is_err(), "what ran was dropped");
}

#[tokio::test(start_paused = true)]
async fn servers_come_first_and_go_last() {
    let world = World::new(&["a"]).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let order = Arc::clone(&order);
        move |when: &'static str| order.lock().unwrap().push((when, what))
    };
    let (server, task) = (note("server"), note("task"));
    let manager = Manager::new(world.wire.client())
        .task(Task::new("task", move |stopping| {
            let note = task.clone();
            async move {
                note("start");
                stopping.requested().await;
                sleep(SECOND).await;
                note("stop");
                Ok::<_, Failure>(())
            }
        }))
        .task(Task::server("server", move |stopping| {
            let note = server.clone();
            async move {
                note("start");
                stopping.requested().await;
                note("stop");
                Ok::<_, Failure>(())
            }
        }));
    let run = run(manager);
    sleep(SECOND).await;
    run.stopped().await.unwrap();
    let expected = [
        ("start", "server"),
        ("start", "task"),
        ("stop", "task"),
        ("stop", "server"),
    ];
    assert_eq!(*order.lock().unwrap(), expected);
    let steps: Vec<_> = STEPS.iter().map(|step| step.what).collect();
    assert_eq!(
        steps,
        [
            What::Servers,
            What::Election,
            What::Controllers,
            What::Tasks
        ]
    );
    assert!(
        STEPS
            .iter()
            .all(|step| !step.start.is_empty() && !step.stop.is_empty())
    );
}

/// What all replicas of a program do, and when.
#[derive(Clone, Default)]
struct Work {
    /// Who runs at present.
    now: Arc<Mutex<BTreeMap<&'static str, usize>>>,
    /// Runs of two replicas at once.
    doubled: Arc<Mutex<usize>>,
    ended: Log,
}

struct Busy(Work, &'static str);

impl Work {
    fn begin(&self, who: &'static str) -> Busy {
        let mut now = self.now.lock().unwrap();
        *now.entry(who).or_default() += 1;
        if now.values().filter(|runs| **runs > 0).count() > 1 {
            *self.doubled.lock().unwrap() += 1;
        }
        Busy(self.clone(), who)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.now.lock().unwrap().get_mut(self.1).unwrap() -= 1;
    }
}

/// A replica that runs a widget for so long, and then writes into its status.
fn replica(world: &World, who: &'static str, takes: Duration, work: &Work) -> Run {
    let client = Tracked::wrap(world.wire.client());
    let election = LeaderElection::new(world.wire.client(), "default", "operator").identity(who);
    let (work, writing) = (work.clone(), client.clone());
    let reconcile = move |widget: Arc<Widget>, _: Arc<()>| {
        let (busy, work, client) = (work.begin(who), work.clone(), writing.clone());
        async move {
            let busy = busy;
            sleep(takes).await;
            let api = Api::<Widget>::default_namespaced(client);
            let patch = Patch::Merge(json!({ "status": { "seen": widget.spec.value } }));
            let written = api
                .patch_status(&widget.name_any(), &PatchParams::default(), &patch)
                .await;
            work.ended.note(who, widget.name_any());
            drop(busy);
            written.map(|_| Action::await_change())
        }
    };
    let controller = Controller::new(Api::<Widget>::all(client.clone()), all())
        .with_config(homeostat::Config::default().ignore_own_writes(true))
        .run(reconcile, error_policy::backoff, Arc::new(()));
    run(Manager::new(client)
        .add(controller)
        .leader_election(election))
}

fn leads(run: &Run) -> bool {
    run.handle
        .leadership()
        .is_some_and(|leadership| leadership.is_leader())
}

// E49 and T38: the lease is given up when the last run has ended, and the next leader has warm caches.
#[tokio::test(start_paused = true)]
async fn one_replica_works_and_the_other_takes_over_with_warm_caches() {
    let world = World::new(&["a", "b"]).await;
    let work = Work::default();
    let first = replica(&world, "first", SECOND, &work);
    sleep(SECOND).await;
    let second = replica(&world, "second", SECOND, &work);
    sleep(30 * SECOND).await;
    assert!(leads(&first) && !leads(&second));
    assert_eq!(work.ended.of("first"), ["a", "b"]);
    assert_eq!(work.ended.of("second"), Vec::<String>::new());
    assert_eq!(second.unit("widget").phase, Phase::Standby);
    assert!(second.handle.status().ready, "a warm standby is ready");
    let watches = world.asked(Verb::Watch, "widgets").len();

    // A run is under way when the first is told to stop: it ends, and only then the second begins.
    world.set_value("a", 7).await;
    sleep(Duration::from_millis(500)).await;
    let start = Instant::now();
    first.stopped().await.unwrap();
    assert_eq!(work.ended.of("first"), ["a", "b", "a"]);
    sleep(10 * SECOND).await;
    assert!(leads(&second));
    let begun = second.handle.leadership().unwrap().status();
    assert_eq!(begun.terms, 1);
    assert_eq!(work.ended.of("second"), ["a", "b"]);
    assert!(start.elapsed() < 20 * SECOND);
    assert_eq!(
        world.asked(Verb::Watch, "widgets").len(),
        watches,
        "its caches were warm"
    );
    assert_eq!(*work.doubled.lock().unwrap(), 0);
}

// T38: reconciles stop before another holder starts.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_cancels_its_runs_and_writes_nothing_more() {
    for fault in [Fault::Unavailable, Fault::Hang, Fault::LostAnswer] {
        let world = World::new(&["a"]).await;
        let work = Work::default();
        let first = replica(&world, "first", 3600 * SECOND, &work);
        sleep(SECOND).await;
        let second = replica(&world, "second", SECOND, &work);
        sleep(5 * SECOND).await;
        assert!(leads(&first));
        // From here on only the second reaches the lease.
        let holder = first.handle.leadership().unwrap();
        let rule = Rule::any().resource("leases").verb(Verb::Update);
        let fault = world.server.faults().inject(rule, fault);
        timeout(60 * SECOND, holder.lost()).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(
            work.now.lock().unwrap()["first"],
            0,
            "its run is cancelled at once"
        );
        assert_eq!(first.unit("widget").phase, Phase::Standby);
        drop(fault);
        sleep(40 * SECOND).await;
        assert_eq!(*work.doubled.lock().unwrap(), 0);
        // Whoever leads now has begun with all objects.
        let leader = if leads(&second) { "second" } else { "first" };
        let (runs, ended) = (
            work.now.lock().unwrap()[leader],
            work.ended.of(leader).len(),
        );
        assert!(runs + ended > 0, "{leader}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_of_an_old_term_is_not_sent() {
    let world = World::new(&["a"]).await;
    let client = Tracked::wrap(world.wire.client());
    let election = LeaderElection::new(world.wire.client(), "default", "operator").identity("me");
    let (tell, mut told) = mpsc::unbounded_channel();
    let writing = client.clone();
    let reconcile = move |widget: Arc<Widget>, _: Arc<()>| {
        let (tell, api) = (
            tell.clone(),
            Api::<Widget>::default_namespaced(writing.clone()),
        );
        async move {
            // What a run leaves behind is not cancelled with it.
            let name = widget.name_any();
            let detached = homeostat::spawn(async move {
                sleep(40 * SECOND).await;
                let patch = Patch::Merge(json!({ "spec": { "value": 9 } }));
                let written = api.patch(&name, &PatchParams::default(), &patch).await;
                tell.send(written.map(drop).map_err(|error| error.to_string()))
                    .unwrap();
            });
            drop(detached);
            sleep(3600 * SECOND).await;
            Ok::<_, Failure>(Action::await_change())
        }
    };
    let controller = Controller::new(Api::<Widget>::all(client.clone()), all()).run(
        reconcile,
        error_policy::backoff,
        Arc::new(()),
    );
    let run = run(Manager::new(client)
        .add(controller)
        .leader_election(election));
    sleep(5 * SECOND).await;
    let rule = Rule::any().resource("leases").verb(Verb::Update);
    let fault = world.server.faults().inject(rule, Fault::Unavailable);
    sleep(20 * SECOND).await;
    assert!(!leads(&run));
    drop(fault);
    sleep(10 * SECOND).await;
    assert!(leads(&run), "it leads again, in another term");
    let written = timeout(60 * SECOND, told.recv()).await.unwrap().unwrap();
    let error = written.unwrap_err();
    assert!(error.contains("this replica leads no more"), "{error}");
    assert_eq!(world.widgets.get("a").await.unwrap().spec.value, 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_steps_down_when_it_is_asked_to() {
    let world = World::new(&["a"]).await;
    let work = Work::default();
    let first = replica(&world, "first", 5 * SECOND, &work);
    sleep(SECOND).await;
    let second = replica(&world, "second", 5 * SECOND, &work);
    sleep(2 * SECOND).await;
    assert!(leads(&first));
    first.handle.step_down();
    sleep(SECOND).await;
    assert!(leads(&first), "its run goes on");
    sleep(6 * SECOND).await;
    assert!(!leads(&first) && leads(&second));
    assert_eq!(work.ended.of("first"), ["a"]);
    sleep(10 * SECOND).await;
    assert_eq!(work.ended.of("second"), ["a"]);
    // It stands by, and is there when it is needed.
    second.handle.step_down();
    sleep(10 * SECOND).await;
    assert!(leads(&first));
    assert_eq!(*work.doubled.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn tasks_follow_leadership_unless_they_are_everywhere() {
    let world = World::new(&[]).await;
    let log = Log::default();
    let task = |who: &'static str| {
        let log = log.clone();
        Task::new(who, move |stopping| {
            let log = log.clone();
            async move {
                log.note(who, "begins".into());
                stopping.requested().await;
                log.note(who, "ends".into());
                Ok::<_, Failure>(())
            }
        })
    };
    let client = world.wire.client();
    let election = || LeaderElection::new(world.client.clone(), "default", "operator");
    let first = run(Manager::new(client.clone())
        .task(task("first"))
        .leader_election(election().identity("first")));
    sleep(SECOND).await;
    let second = run(Manager::new(client)
        .task(task("second"))
        .task(task("everywhere").on_every_replica())
        .leader_election(election().identity("second")));
    sleep(5 * SECOND).await;
    assert_eq!((log.of("first").len(), log.of("second").len()), (1, 0));
    assert_eq!(log.of("everywhere"), ["begins"]);
    first.handle.step_down();
    sleep(5 * SECOND).await;
    assert_eq!(log.of("first"), ["begins", "ends"]);
    assert_eq!(log.of("second"), ["begins"]);
    second.handle.step_down();
    sleep(20 * SECOND).await;
    assert_eq!(log.of("first"), ["begins", "ends", "begins"]);
    second.stopped().await.unwrap();
    assert_eq!(log.of("everywhere"), ["begins", "ends"]);
}

async fn holder(world: &World) -> String {
    let leases: Api<Lease> = Api::default_namespaced(world.client.clone());
    let lease = leases.get("operator").await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap()
}

// E49: the workers first, then the lease.
#[tokio::test(start_paused = true)]
async fn the_lease_is_held_until_the_last_run_has_ended() {
    let world = World::new(&["a", "b"]).await;
    let work = Work::default();
    let first = replica(&world, "first", 10 * SECOND, &work);
    sleep(SECOND).await;
    let second = replica(&world, "second", 10 * SECOND, &work);
    sleep(SECOND).await;
    first.stop.send(()).unwrap();
    for _ in 0..7 {
        sleep(SECOND).await;
        assert_eq!(holder(&world).await, "first");
        assert!(!leads(&second));
    }
    sleep(4 * SECOND).await;
    assert_eq!(work.ended.of("first"), ["a", "b"]);
    assert_eq!(holder(&world).await, "second");
    assert_eq!(*work.doubled.lock().unwrap(), 0);
}

// E50: a standby that ends starts nothing of what the leader does.
#[tokio::test(start_paused = true)]
async fn a_standby_that_ends_starts_nothing() {
    let world = World::new(&["a"]).await;
    let work = Work::default();
    let first = replica(&world, "first", SECOND, &work);
    sleep(SECOND).await;
    let second = replica(&world, "second", SECOND, &work);
    sleep(5 * SECOND).await;
    let begun = Instant::now();
    // The lease is free at the same moment.
    first.stop.send(()).unwrap();
    second.stopped().await.unwrap();
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    sleep(60 * SECOND).await;
    assert_eq!(work.ended.of("second"), Vec::<String>::new());
    assert!(!work.now.lock().unwrap().contains_key("second"));
}

// E51: neither workers that wait for the server nor a server that is slow or away for a while cost the lease.
#[tokio::test(start_paused = true)]
async fn a_busy_client_and_a_stall_do_not_cost_the_lease() {
    let world = World::new(&["a", "b", "c"]).await;
    let hang = world.inject(world::rule(Verb::Patch, "widgets"), Fault::Hang);
    let work = Work::default();
    let first = replica(&world, "first", Duration::ZERO, &work);
    sleep(30 * SECOND).await;
    assert!(hang.hits() >= 3, "its workers wait");
    assert!(leads(&first));
    for (fault, length) in [
        (Fault::Delay(3 * SECOND), 30),
        (Fault::Unavailable, 5),
        (Fault::Refuse, 5),
        (Fault::Hang, 4),
        (Fault::TooManyRequests { retry_after: 1 }, 5),
    ] {
        let stall = world
            .server
            .faults()
            .inject(Rule::any().resource("leases"), fault.clone());
        sleep(length * SECOND).await;
        assert!(leads(&first), "{fault:?}");
        drop(stall);
        sleep(20 * SECOND).await;
    }
    let status = first.handle.leadership().unwrap().status();
    assert_eq!((status.leads, status.terms, status.loss), (true, 1, None));
}

// E52: losing the lease and ending at the same time does not lock anything up.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_it_ends_does_not_hold_up_the_end() {
    for (lost_after, stopped_after) in [(1, 5), (5, 1), (5, 5), (1, 30)] {
        let world = World::new(&["a"]).await;
        let work = Work::default();
        let first = replica(&world, "first", 3600 * SECOND, &work);
        sleep(SECOND).await;
        let lose = async {
            sleep(lost_after * SECOND).await;
            world
                .server
                .faults()
                .inject(Rule::any().resource("leases"), Fault::Hang)
        };
        let stop = async {
            sleep(stopped_after * SECOND).await;
            let begun = Instant::now();
            let ended = first.stopped().await;
            (ended, begun.elapsed())
        };
        let (_lost, (ended, took)) = tokio::join!(lose, stop);
        // The run has 25 s, or is cancelled with the lease; giving that up takes some seconds at the most.
        assert!(took <= 35 * SECOND, "{took:?}");
        assert!(
            matches!(ended, Ok(()) | Err(Error::Overdue { .. })),
            "{ended:?}"
        );
    }
}

// E53: those who begin at the same instant do not hold each other up.
#[tokio::test(start_paused = true)]
async fn one_of_two_that_begin_together_leads() {
    for seed in 0..20 {
        let world = World::new(&["a"]).await;
        fastrand::seed(seed);
        let work = Work::default();
        let both = ["first", "second"].map(|who| replica(&world, who, SECOND, &work));
        sleep(3 * SECOND).await;
        assert_eq!(both.iter().filter(|one| leads(one)).count(), 1, "{seed}");
        assert_eq!(*work.doubled.lock().unwrap(), 0);
    }
}

// E55: an event that comes when the manager has ended is no reason to panic.
#[tokio::test(start_paused = true)]
async fn an_event_after_the_end_is_published_like_any_other() {
    let world = World::new(&["a"]).await;
    let log = Log::default();
    let run =
        run(Manager::new(world.wire.client()).add(noting(world.controller(), &log, "widgets")));
    let recorder = Recorder::new(
        world.client.clone(),
        Reporter {
            controller: "example.com/tester".into(),
            instance: None,
        },
    );
    sleep(SECOND).await;
    run.stopped().await.unwrap();
    let event = Event {
        type_: EventType::Normal,
        reason: "Late".into(),
        note: None,
        action: "Ending".into(),
        secondary: None,
    };
    let widget = world.widgets.get("a").await.unwrap();
    recorder
        .publish(&event, &widget.object_ref(&()))
        .await
        .unwrap();
}

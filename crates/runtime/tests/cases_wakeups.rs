//! What wakes an object that failed, and what does not (rules R4a and R5): a whole controller against the embedded
//! server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::panic, reason = "some reconcilers here panic")]

mod world;

use futures::{Stream, StreamExt, channel::mpsc, future, stream};
use homeostat::{
    Action, Backoff, Classify, Config, Controller, applier,
    client::Tracked,
    controller::Handle,
    error_policy, predicates,
    reflector::{self, ObjectRef, Store, store::Writer},
    watcher,
};
use homeostat_apiserver::{ApiServer, Verb};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Secret},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use world::{Failure, SECOND, Widget, World, running::Running};

/// How long an object that failed is to be left alone, by those policies that say so.
const HOLD: Duration = Duration::from_secs(300);

/// What an error policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Requeue,
    Backoff,
    AwaitChange,
}

const POLICIES: [Policy; 3] = [Policy::Requeue, Policy::Backoff, Policy::AwaitChange];

/// What happens to an object that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    SecretAppears,
    ChildAppears,
    ChildChanges,
    ChildGoes,
    ChildChangesUnseen,
    Asked,
    AllAsked,
    AskedByHandle,
    Spec,
    Label,
    Annotation,
    Finalizer,
    Status,
}

const TRIGGERS: [Trigger; 13] = [
    Trigger::SecretAppears,
    Trigger::ChildAppears,
    Trigger::ChildChanges,
    Trigger::ChildGoes,
    Trigger::ChildChangesUnseen,
    Trigger::Asked,
    Trigger::AllAsked,
    Trigger::AskedByHandle,
    Trigger::Spec,
    Trigger::Label,
    Trigger::Annotation,
    Trigger::Finalizer,
    Trigger::Status,
];

/// What a run writes before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    Nothing,
    /// Another text each time.
    Status,
    Child,
}

/// A widget whose reconciles fail, and what can be done to it.
struct Failing {
    world: World,
    running: Running,
    asked: mpsc::UnboundedSender<ObjectRef<Widget>>,
    all_asked: mpsc::UnboundedSender<()>,
    by_handle: mpsc::UnboundedSender<ObjectRef<Widget>>,
    _handle: Handle<Widget>,
}

// === impl Policy ===

impl Policy {
    fn action(self) -> Action {
        match self {
            Self::Requeue => Action::requeue(HOLD),
            Self::Backoff => Action::backoff(),
            Self::AwaitChange => Action::await_change(),
        }
    }
}

// === impl Failing ===

impl Failing {
    /// A run takes `time`.
    async fn start(policy: Policy, tracked: bool, writes: Writes, time: Duration) -> Self {
        let world = World::new(&["a"]).await;
        world.create_child("a", "child").await;
        let backoff = Backoff::exponential(HOLD, HOLD).jitter(0.0);
        let ((asked, on), (all_asked, all_on)) = (mpsc::unbounded(), mpsc::unbounded());
        let (by_handle, on_handle) = mpsc::unbounded();
        let controller = world
            .controller_of_both()
            .watches(world.all::<Secret>(), watcher::Config::default(), |_| {
                [reference()]
            })
            .reconcile_on(on)
            .reconcile_all_on(all_on)
            .with_config(Config::default().backoff(backoff));
        let handle = controller.handle();
        handle.reconcile_on(on_handle);
        let client = if tracked {
            world.wire.tracked()
        } else {
            world.wire.client()
        };
        let reconcile = move |_, nth: usize| {
            let client = client.clone();
            async move {
                act(&client, writes, nth).await;
                sleep(time).await;
                Err(Failure("the secret is missing"))
            }
        };
        let running = world.run_with(controller, reconcile, move |_, _, _| policy.action());
        Self {
            world,
            running,
            asked,
            all_asked,
            by_handle,
            _handle: handle,
        }
    }

    async fn pull(&self, trigger: Trigger) {
        let Self { world, .. } = self;
        match trigger {
            Trigger::SecretAppears => self.create_secret("credentials").await,
            Trigger::ChildAppears => world.create_child("a", "another").await,
            Trigger::ChildChanges => world.touch_child("child", 1).await,
            Trigger::ChildGoes => world.delete_child("child").await,
            Trigger::ChildChangesUnseen => {
                let guards = world.gap("configmaps", SECOND);
                world.touch_child("child", 1).await;
                sleep(5 * SECOND).await;
                drop(guards);
            }
            Trigger::Asked => self.asked.unbounded_send(reference()).unwrap(),
            Trigger::AllAsked => self.all_asked.unbounded_send(()).unwrap(),
            Trigger::AskedByHandle => self.by_handle.unbounded_send(reference()).unwrap(),
            Trigger::Spec => world.set_value("a", 1).await,
            Trigger::Label => {
                self.meta(json!({ "labels": { "example.com/l": "x" } }))
                    .await;
            }
            Trigger::Annotation => {
                self.meta(json!({ "annotations": { "example.com/a": "x" } }))
                    .await;
            }
            Trigger::Finalizer => self.meta(json!({ "finalizers": ["example.com/f"] })).await,
            Trigger::Status => world.set_seen("a", 100).await,
        }
    }

    async fn meta(&self, metadata: serde_json::Value) {
        self.world.patch("a", json!({ "metadata": metadata })).await;
    }

    async fn create_secret(&self, name: &str) {
        let secrets: Api<Secret> = Api::default_namespaced(self.world.client.clone());
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }

    /// When the runs started, in milliseconds.
    fn runs(&self) -> Vec<u128> {
        let runs = self.running.runs().into_iter();
        runs.map(|run| run.at.as_millis()).collect()
    }
}

fn reference() -> ObjectRef<Widget> {
    ObjectRef::new("a").within("default")
}

/// What a run does before it fails. A read in any case, by which a tracked client is known.
async fn act(client: &Client, writes: Writes, nth: usize) {
    let (widgets, maps) = (
        Api::<Widget>::default_namespaced(client.clone()),
        Api::<ConfigMap>::default_namespaced(client.clone()),
    );
    maps.get_opt("child").await.unwrap();
    let params = PatchParams::default();
    match writes {
        Writes::Nothing => {}
        Writes::Status => {
            let patch = json!({ "status": { "seen": nth, "last_updated": format!("run {nth}") } });
            let patch = Patch::Merge(patch);
            widgets.patch_status("a", &params, &patch).await.unwrap();
        }
        Writes::Child => {
            let patch = Patch::Merge(json!({ "data": { "text": format!("run {nth}") } }));
            maps.patch("child", &params, &patch).await.unwrap();
        }
    }
}

// === What others do ===

/// Issue: the error is that a Secret is missing, the policy says five minutes, and the Secret appears. Each thing that
/// somebody else may do, against each policy, while the object is held and while the run that fails goes on.
async fn what_others_do_arrives(tracked: bool) {
    for policy in POLICIES {
        for trigger in TRIGGERS {
            for during in [false, true] {
                let (time, pulled) = if during {
                    (20 * SECOND, 10.0)
                } else {
                    (Duration::ZERO, 30.0)
                };
                let failing = Failing::start(policy, tracked, Writes::Nothing, time).await;
                failing.world.until(pulled).await;
                failing.pull(trigger).await;
                failing.world.until(100.0).await;
                let case = format!("{trigger:?}, {policy:?}, during {during}");
                let runs = failing.runs();
                // What is shown of an object is nobody's wish, so it does not cut a delay short.
                if trigger == Trigger::Status && policy != Policy::AwaitChange {
                    assert_eq!(runs.len(), 1, "{case}: {runs:?}");
                    continue;
                }
                assert_eq!(runs.len(), 2, "{case}: {runs:?}");
                let due = if during { 20_000 } else { 30_000 };
                // The watch is down for a second, and then pauses for another.
                let is_late = trigger == Trigger::ChildChangesUnseen && !during;
                let late = if is_late { 4_000 } else { 50 };
                assert!((due..due + late).contains(&runs[1]), "{case}: {runs:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_do_arrives_with_a_tracked_client() {
    what_others_do_arrives(true).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_do_arrives_with_any_client() {
    what_others_do_arrives(false).await;
}

/// A child that changes twice each second does not turn any delay into a hot loop, and the last change arrives.
#[tokio::test(start_paused = true)]
async fn a_flapping_child() {
    for tracked in [true, false] {
        for policy in POLICIES {
            let failing = Failing::start(policy, tracked, Writes::Nothing, Duration::ZERO).await;
            failing.world.until(10.25).await;
            for number in 0..1200 {
                failing.world.touch_child("child", number).await;
                sleep(SECOND / 2).await;
            }
            let runs = failing.runs();
            // At once, then 1 s doubling to 30 s, and besides the two ends of a hold of 5 min at most.
            let seconds: Vec<_> = runs.iter().map(|at| at / 1000).collect();
            assert_eq!(seconds[..7], [0, 10, 11, 13, 17, 25, 41], "{policy:?}");
            assert!(
                (24..=29).contains(&runs.len()),
                "{policy:?}: {}",
                runs.len()
            );
            let pauses = runs.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(pauses.max() <= Some(30_500), "{policy:?}: {runs:?}");
            failing.world.until(660.0).await;
            let last = *failing.runs().last().unwrap();
            assert!(last >= 610_000, "the last change arrives: {last}");
        }
    }
}

/// Asking for it is not spaced: somebody wants to know.
#[tokio::test(start_paused = true)]
async fn each_request_is_a_run() {
    for policy in POLICIES {
        let failing = Failing::start(policy, true, Writes::Nothing, Duration::ZERO).await;
        for number in 1..=20_u32 {
            failing.world.until(10.0 + f64::from(number) / 10.0).await;
            failing.pull(Trigger::Asked).await;
        }
        failing.world.until(60.0).await;
        assert_eq!(failing.runs().len(), 21, "{policy:?}");
    }
}

/// A success starts the spacing over.
#[tokio::test(start_paused = true)]
async fn a_success_starts_the_spacing_over() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let controller = world.controller_of_both();
    let reconcile = |_, nth: usize| async move {
        match nth {
            5 => Ok(Action::await_change()),
            _ => Err(Failure("not yet")),
        }
    };
    let policy = |_: Arc<Widget>, _: &Failure, _: Arc<()>| Action::requeue(HOLD);
    let running = world.run_with(controller, reconcile, policy);
    for number in 0..30_u32 {
        world.until(10.05 + f64::from(number) * 0.9).await;
        world.touch_child("child", number).await;
    }
    let tenths = |run: &world::running::Run| run.at.as_millis() / 100;
    let runs: Vec<_> = running.runs().iter().map(tenths).collect();
    assert_eq!(runs[..5], [0, 100, 110, 130, 170]);
    // The fifth one has succeeded. So the change at 17.25 s runs it at once, and after that has failed the next one, too.
    assert_eq!(runs[5..8], [172, 181, 191]);
}

// === What the object's own runs do ===

/// R4a: with a tracked client what a run writes wakes nobody who failed. With another one, changes of children may be
/// by anybody, and so may those of a status that a permanent error waits for: these runs are spaced.
#[tokio::test(start_paused = true)]
async fn own_writes() {
    for tracked in [true, false] {
        for policy in POLICIES {
            for writes in [Writes::Status, Writes::Child] {
                let failing = Failing::start(policy, tracked, writes, Duration::ZERO).await;
                failing.world.until(299.0).await;
                let runs = failing.runs();
                let case = format!("{policy:?}, {writes:?}, tracked {tracked}");
                let known = tracked || writes == Writes::Status && policy != Policy::AwaitChange;
                if known {
                    assert_eq!(runs.len(), 1, "{case}: {runs:?}");
                } else {
                    assert!((2..=16).contains(&runs.len()), "{case}: {runs:?}");
                }
                // Somebody else is heard all the same.
                failing.world.set_value("a", 1).await;
                sleep(SECOND / 2).await;
                assert_eq!(failing.runs().len(), runs.len() + 1, "{case}");
            }
        }
    }
}

/// A list that shows an own write cuts no delay short. A permanent error is looked at once more, because nobody knows
/// what else the list shows.
#[tokio::test(start_paused = true)]
async fn own_writes_in_a_list() {
    for policy in POLICIES {
        let world = World::new(&["a"]).await;
        world.create_child("a", "child").await;
        let client = world.wire.tracked();
        let reconcile = move |_, nth: usize| {
            let client = client.clone();
            async move {
                sleep(5 * SECOND).await;
                if nth == 1 {
                    act(&client, Writes::Child, nth).await;
                }
                Err(Failure("not yet"))
            }
        };
        let backoff = Backoff::exponential(HOLD, HOLD).jitter(0.0);
        let controller = world.controller_of_both();
        let controller = controller.with_config(Config::default().backoff(backoff));
        let running = world.run_with(controller, reconcile, move |_, _, _| policy.action());
        world.until(1.0).await;
        let guards = world.gap("configmaps", 7 * SECOND);
        world.until(100.0).await;
        drop(guards);
        let expected = 1 + usize::from(policy == Policy::AwaitChange);
        assert_eq!(running.runs().len(), expected, "{policy:?}");
    }
}

/// After a gap a list shows the run's own write, and under it what somebody else has changed before. A permanent error
/// waits for that, and for nothing that would come later.
#[tokio::test(start_paused = true)]
async fn a_change_under_an_own_write() {
    let world = World::new(&["a"]).await;
    let client = world.wire.tracked();
    let reconcile = move |_, nth: usize| {
        let client = client.clone();
        async move {
            if nth == 1 {
                sleep(5 * SECOND).await;
                act(&client, Writes::Status, nth).await;
            }
            Err(Failure("the spec is wrong"))
        }
    };
    let policy = |_: Arc<Widget>, _: &Failure, _: Arc<()>| Action::await_change();
    let running = world.run_with(world.controller(), reconcile, policy);
    world.until(1.0).await;
    let guards = world.gap("widgets", 7 * SECOND);
    world.set_value("a", 1).await;
    world.until(60.0).await;
    drop(guards);
    assert_eq!(running.values("a"), [0, 1]);
}

/// The owner has no namespace, and its children do. A run's own writes are known here, too, and those of others are
/// not mistaken for requests.
#[tokio::test(start_paused = true)]
async fn children_of_an_owner_without_a_namespace() {
    let server = ApiServer::builder().build();
    let client = server.client();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let role = ClusterRole {
        metadata: ObjectMeta {
            name: Some("owner".into()),
            ..ObjectMeta::default()
        },
        ..ClusterRole::default()
    };
    let params = PostParams::default();
    let role = roles.create(&params, &role).await.unwrap();
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some("child".into()),
            owner_references: role.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&params, &child).await.unwrap();

    let runs = Arc::new(AtomicU32::new(0));
    let own = Api::<ConfigMap>::namespaced(Tracked::wrap(client.clone()), "default");
    let noted = Arc::clone(&runs);
    let reconcile = move |_: Arc<ClusterRole>, _: Arc<()>| {
        let (maps, nth) = (own.clone(), noted.fetch_add(1, Relaxed));
        async move {
            let patch = Patch::Merge(json!({ "data": { "run": nth.to_string() } }));
            let params = PatchParams::default();
            maps.patch("child", &params, &patch).await.unwrap();
            Err::<Action, _>(Failure("never"))
        }
    };
    let mine = watcher::Config::default().fields("metadata.name=owner");
    let controller = Controller::new(Api::<ClusterRole>::all(client.clone()), mine)
        .owns(Api::<ConfigMap>::all(client), watcher::Config::default());
    let run = controller.run(reconcile, |_, _, _| Action::requeue(HOLD), Arc::new(()));
    let task = tokio::spawn(run.for_each(|_| future::ready(())));
    sleep(10 * SECOND).await;
    assert_eq!(runs.load(Relaxed), 1, "its own write wakes nobody");
    for number in 0..20 {
        let patch = Patch::Merge(json!({ "data": { "others": number.to_string() } }));
        maps.patch("child", &PatchParams::default(), &patch)
            .await
            .unwrap();
        sleep(SECOND / 10).await;
    }
    sleep(SECOND / 2).await;
    // At once and after a second: the spacing holds.
    assert_eq!(runs.load(Relaxed), 3);
    task.abort();
}

// === Ends and turns ===

/// A store with some config maps. It is ready as long as the writer is there.
fn stored(names: &[&str]) -> (Store<ConfigMap>, Writer<ConfigMap>) {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for name in names {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some((*name).into()),
                namespace: Some("default".into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        writer.apply_watcher_event(&watcher::Event::InitApply(map));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    (store, writer)
}

/// Requests for config maps.
fn requests(
    names: &[&'static str],
) -> impl Stream<Item = Result<ObjectRef<ConfigMap>, Failure>> + use<> {
    let names = names.to_vec();
    stream::iter(
        names
            .into_iter()
            .map(|name| Ok(ObjectRef::new(name).within("default"))),
    )
}

/// An applier whose queue has ended runs what was asked for, and then ends, whatever reconcilers and the policy ask for.
#[tokio::test(start_paused = true)]
async fn an_applier_ends_with_its_queue() {
    let endings: [Result<Action, Failure>; 7] = [
        Ok(Action::await_change()),
        Ok(Action::requeue(Duration::ZERO)),
        Ok(Action::requeue(SECOND)),
        Ok(Action::backoff()),
        Err(Failure("requeue")),
        Err(Failure("backoff")),
        Err(Failure("await")),
    ];
    for ending in endings {
        let (store, _writer) = stored(&["a", "b", "c"]);
        let queue = requests(&["a", "b", "c", "a"]);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&ran);
        let result = ending.clone();
        let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
            noted.lock().unwrap().push(map.name_any());
            let result = result.clone();
            Box::pin(async move {
                sleep(SECOND).await;
                result
            })
        };
        let policy = |_: Arc<ConfigMap>, error: &Failure, _: Arc<()>| match error.0 {
            "requeue" => Action::requeue(Duration::ZERO),
            "backoff" => Action::backoff(),
            _ => Action::await_change(),
        };
        let config = Config::default().concurrency(2);
        let start = Instant::now();
        let items = applier(reconcile, policy, Arc::new(()), store, queue, config).count();
        let items = tokio::time::timeout(10 * SECOND, items).await;
        assert_eq!(items, Ok(3), "{ending:?}");
        assert_eq!(*ran.lock().unwrap(), ["a", "b", "c"], "{ending:?}");
        assert_eq!(start.elapsed(), 2 * SECOND, "{ending:?}");
    }
}

/// Polls `busy`, which is never at rest, next to another task of the same thread until that had a hundred turns.
async fn a_hundred_turns(busy: impl Future<Output = ()>) {
    let others = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = busy => unreachable!("it has no end"),
        () = others => {}
    }
}

/// A reconciler that always wants to run again at once leaves whatever is polled next to it its turn, and so does a
/// queue that never pauses.
#[tokio::test]
async fn others_get_their_turn() {
    let endless = || stream::repeat_with(|| requests(&["none", "none"])).flatten();
    for asked in [
        requests(&["a"]).chain(stream::pending()).boxed(),
        requests(&["a"]).chain(endless()).boxed(),
    ] {
        let (store, _writer) = stored(&["a"]);
        let runs = AtomicU32::new(0);
        let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| {
            runs.fetch_add(1, Relaxed);
            future::ready(Ok::<_, Failure>(Action::requeue(Duration::ZERO)))
        };
        let policy = |_: Arc<ConfigMap>, _: &Failure, _: Arc<()>| Action::await_change();
        let items = applier(
            reconcile,
            policy,
            Arc::new(()),
            store,
            asked,
            Config::default(),
        );
        a_hundred_turns(items.for_each(|_| future::ready(()))).await;
        let runs = runs.load(Relaxed);
        assert!((100..100 * 128).contains(&runs), "{runs} runs in 100 turns");
    }
}

/// What is asked for arrives while another object runs again and again without a pause.
#[tokio::test]
async fn requests_get_their_turn() {
    let (store, _writer) = stored(&["a", "b"]);
    let (sender, queue) = mpsc::unbounded();
    let ask = |name| {
        let request: Result<_, Failure> = Ok(ObjectRef::new(name).within("default"));
        sender.unbounded_send(request).unwrap();
    };
    let ran = Mutex::new(Vec::new());
    let reconcile = |map: Arc<ConfigMap>, _: Arc<()>| {
        ran.lock().unwrap().push(map.name_any());
        future::ready(Ok::<_, Failure>(Action::requeue(Duration::ZERO)))
    };
    let policy = |_: Arc<ConfigMap>, _: &Failure, _: Arc<()>| Action::await_change();
    let config = Config::default().concurrency(1);
    let mut items = std::pin::pin!(applier(
        reconcile,
        policy,
        Arc::new(()),
        store,
        queue,
        config
    ));
    for name in ["a", "b"] {
        ask(name);
        a_hundred_turns(items.by_ref().for_each(|_| future::ready(()))).await;
        assert!(ran.lock().unwrap().iter().any(|ran| ran == name), "{name}");
    }
}

/// The same for a controller, and for who polls its stream next to something else.
#[tokio::test]
async fn others_get_their_turn_next_to_a_controller() {
    let world = World::new(&["a"]).await;
    let mut controller = Box::pin(world.controller().run(
        |_: Arc<Widget>, _: Arc<()>| {
            future::ready(Ok::<_, Failure>(Action::requeue(Duration::ZERO)))
        },
        |_, _, _| Action::await_change(),
        Arc::new(()),
    ));
    let mut items = 0_u32;
    while items < 10 {
        controller.next().await;
        items += 1;
    }
    a_hundred_turns(controller.for_each(|_| {
        items += 1;
        future::ready(())
    }))
    .await;
    assert!(
        (20..100 * 128).contains(&items),
        "{items} items in 100 turns"
    );
}

// === Everything against everything ===

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    status = "GadgetStatus"
)]
struct GadgetSpec {}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct GadgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

#[derive(Debug, thiserror::Error, Classify)]
enum Trouble {
    #[error("no route to {0}")]
    #[classify(transient)]
    Passing(&'static str),
    #[error("no route to {0}")]
    #[classify(permanent, reason = "NoRoute")]
    Lasting(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fine,
    Transient,
    Permanent,
    Panic,
    Timeout,
}

/// What the reconciler returns, or the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Backoff,
    Classified,
    AwaitChange,
    AtOnce,
    EachSecond,
}

/// What each run writes, in other words than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Nowhere,
    Status,
    /// The error, in the condition that the runtime keeps.
    Condition,
    Child,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    outcome: Outcome,
    answer: Answer,
    text: Text,
}

/// The gadgets of a controller, each of which is a case.
struct Gadgets {
    cases: Vec<Case>,
    runs: Mutex<Vec<usize>>,
    client: Client,
}

const HOSTS: [&str; 3] = ["alpha", "beta", "gamma"];

// === impl Case ===

impl Case {
    fn all(text: Text) -> Vec<Self> {
        use Answer::{AtOnce, AwaitChange, Backoff, Classified, EachSecond};
        let answers: [(Outcome, &[Answer]); 5] = [
            (Outcome::Fine, &[Backoff, AwaitChange, AtOnce, EachSecond]),
            (
                Outcome::Transient,
                &[Backoff, Classified, AwaitChange, AtOnce, EachSecond],
            ),
            (
                Outcome::Permanent,
                &[Backoff, Classified, AwaitChange, AtOnce, EachSecond],
            ),
            // No policy is asked.
            (Outcome::Panic, &[Backoff]),
            (Outcome::Timeout, &[Backoff]),
        ];
        let cases = answers.into_iter().flat_map(|(outcome, answers)| {
            answers.iter().map(move |&answer| Self {
                outcome,
                answer,
                text,
            })
        });
        cases.collect()
    }

    /// How many writes there may be in ten minutes.
    fn most_writes(self) -> usize {
        match (self.text, self.answer) {
            (Text::Nowhere, _) => 0,
            (_, Answer::EachSecond) => 601,
            _ => 60,
        }
    }

    /// Whether nobody is harmed by its runs, or they are what was asked for.
    fn asks_for_runs(self) -> bool {
        let polls = self.outcome == Outcome::Fine && self.answer == Answer::AtOnce;
        let writes = self.text == Text::Status || self.text == Text::Child;
        self.answer == Answer::EachSecond || polls && !writes
    }
}

// === impl Gadgets ===

impl Gadgets {
    fn case(&self, gadget: &Gadget) -> (Case, usize) {
        let number: usize = gadget.name_any()[1..].parse().unwrap();
        (self.cases[number], number)
    }

    /// Notes a run. Answers how many there were before.
    fn note(&self, number: usize) -> usize {
        let runs = &mut self.runs.lock().unwrap()[number];
        *runs += 1;
        *runs - 1
    }

    async fn write(&self, text: Text, gadget: &Gadget, host: &str) {
        let (name, params) = (gadget.name_any(), PatchParams::default());
        let text_now = format!("no route to {host}");
        match text {
            Text::Nowhere | Text::Condition => {}
            Text::Status => {
                let gadgets: Api<Gadget> = Api::default_namespaced(self.client.clone());
                let patch = Patch::Merge(json!({ "status": { "text": text_now } }));
                gadgets.patch_status(&name, &params, &patch).await.unwrap();
            }
            Text::Child => {
                let maps: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
                let patch = Patch::Merge(json!({ "data": { "text": text_now } }));
                maps.patch(&name, &params, &patch).await.unwrap();
            }
        }
    }
}

async fn fail(gadget: Arc<Gadget>, gadgets: Arc<Gadgets>) -> Result<Action, Trouble> {
    let (case, number) = gadgets.case(&gadget);
    let host = HOSTS[gadgets.note(number) % HOSTS.len()];
    sleep(SECOND / 100).await;
    gadgets.write(case.text, &gadget, host).await;
    match case.outcome {
        Outcome::Fine if case.asks_for_runs() && case.answer == Answer::AtOnce => {
            sleep(SECOND / 2).await;
            Ok(Action::requeue(Duration::ZERO))
        }
        Outcome::Fine => Ok(match case.answer {
            Answer::Backoff | Answer::Classified => Action::backoff(),
            Answer::AwaitChange => Action::await_change(),
            Answer::AtOnce => Action::requeue(Duration::ZERO),
            Answer::EachSecond => Action::requeue(SECOND),
        }),
        Outcome::Transient => Err(Trouble::Passing(host)),
        Outcome::Permanent => Err(Trouble::Lasting(host)),
        Outcome::Panic => panic!("no route to {host}"),
        Outcome::Timeout => future::pending().await,
    }
}

fn answer(gadget: Arc<Gadget>, error: &Trouble, gadgets: Arc<Gadgets>) -> Action {
    match gadgets.case(&gadget).0.answer {
        Answer::Backoff => Action::backoff(),
        Answer::Classified => error_policy::classified(gadget, error, gadgets),
        Answer::AwaitChange => Action::await_change(),
        Answer::AtOnce => Action::requeue(Duration::ZERO),
        Answer::EachSecond => Action::requeue(SECOND),
    }
}

/// Creates a gadget with a child for each case.
async fn furnish(client: &Client, cases: usize) {
    let (params, definitions) = (PostParams::default(), Api::all(client.clone()));
    let definition: CustomResourceDefinition = Gadget::crd();
    definitions.create(&params, &definition).await.unwrap();
    let gadgets: Api<Gadget> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..cases {
        let gadget = Gadget::new(&format!("g{number}"), GadgetSpec {});
        let gadget = gadgets.create(&params, &gadget).await.unwrap();
        let child = ConfigMap {
            metadata: ObjectMeta {
                name: gadget.metadata.name.clone(),
                owner_references: gadget.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        maps.create(&params, &child).await.unwrap();
    }
}

/// Every outcome with every policy: in ten minutes there are no more writes than a case may make, and what ran more
/// than twenty times for nothing is reported.
async fn no_failure_is_a_silent_loop(texts: &[Text], filtered: bool, tracked: bool) {
    fastrand::seed(7);
    let server = ApiServer::builder().build();
    let cases = texts.iter().copied().flat_map(Case::all);
    // What runs each second does so whatever is filtered, and is what takes long here.
    let cases = cases.filter(|case| !filtered || case.answer != Answer::EachSecond);
    let cases: Vec<Case> = cases.collect();
    furnish(&server.client(), cases.len()).await;
    let client = if tracked {
        Tracked::wrap(server.client())
    } else {
        server.client()
    };
    let gadgets = Arc::new(Gadgets {
        runs: Mutex::new(vec![0; cases.len()]),
        cases,
        client: client.clone(),
    });
    let config = Config::default().concurrency(0).reconcile_timeout(SECOND);
    let mut controller = Controller::new(
        Api::<Gadget>::all(client.clone()),
        watcher::Config::default(),
    )
    .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
    .with_config(config);
    if filtered {
        controller = controller.filter(predicates::generation);
    }
    let handle = controller.handle();
    let context = Arc::clone(&gadgets);
    let items = if texts.contains(&Text::Condition) {
        let controller = controller.status_conditions("Ready");
        controller.run(fail, answer, context).boxed()
    } else {
        controller.run(fail, answer, context).boxed()
    };
    let task = tokio::spawn(items.for_each(|_| future::ready(())));
    let first = server.requests().all().len();
    sleep(600 * SECOND).await;
    task.abort();

    let requests = server.requests().all();
    let runs = gadgets.runs.lock().unwrap().clone();
    let mut wrong = Vec::new();
    for (number, (case, runs)) in gadgets.cases.iter().zip(runs).enumerate() {
        let name = format!("g{number}");
        let of_case = requests[first..]
            .iter()
            .filter(|request| request.name == name);
        let writes = of_case
            .filter(|request| request.verb == Verb::Patch)
            .count();
        let told = handle.explain(&ObjectRef::new(&name).within("default"));
        let reported = told.incident.is_some();
        let silent = runs > 21 && !reported && !case.asks_for_runs();
        let line = format!("{case:?}: {runs} runs, {writes} writes, reported: {reported}");
        if writes > case.most_writes() || silent {
            wrong.push(line);
        }
    }
    let world = format!("filtered: {filtered}, tracked: {tracked}");
    assert!(wrong.is_empty(), "{world}\n{}", wrong.join("\n"));
}

const WRITTEN: [Text; 3] = [Text::Nowhere, Text::Status, Text::Child];

#[tokio::test(start_paused = true)]
async fn no_failure_is_a_silent_loop_with_a_tracked_client() {
    no_failure_is_a_silent_loop(&WRITTEN, false, true).await;
}

#[tokio::test(start_paused = true)]
async fn no_failure_is_a_silent_loop_with_a_tracked_client_and_a_filter() {
    no_failure_is_a_silent_loop(&WRITTEN, true, true).await;
}

#[tokio::test(start_paused = true)]
async fn no_failure_is_a_silent_loop_with_any_client() {
    no_failure_is_a_silent_loop(&WRITTEN, false, false).await;
}

#[tokio::test(start_paused = true)]
async fn no_failure_is_a_silent_loop_with_any_client_and_a_filter() {
    no_failure_is_a_silent_loop(&WRITTEN, true, false).await;
}

#[tokio::test(start_paused = true)]
async fn no_failure_is_a_silent_loop_in_the_condition_that_the_runtime_keeps() {
    for filtered in [false, true] {
        no_failure_is_a_silent_loop(&[Text::Condition], filtered, true).await;
        no_failure_is_a_silent_loop(&[Text::Condition], filtered, false).await;
    }
}

/// A permanent error runs and tells once: to write it down is no change, with or without a filter, and whatever the
/// client is. The change that heals the object runs it.
#[tokio::test(start_paused = true)]
async fn a_permanent_error_runs_once() {
    for tracked in [true, false] {
        let server = ApiServer::builder().build();
        furnish(&server.client(), 1).await;
        let client = if tracked {
            Tracked::wrap(server.client())
        } else {
            server.client()
        };
        let gadgets = Arc::new(Gadgets {
            cases: vec![Case {
                outcome: Outcome::Permanent,
                answer: Answer::Classified,
                text: Text::Condition,
            }],
            runs: Mutex::new(vec![0]),
            client: client.clone(),
        });
        let errors = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&errors);
        let controller = Controller::new(Api::<Gadget>::all(client), watcher::Config::default())
            .status_conditions("Ready");
        let items = controller.run(fail, answer, Arc::clone(&gadgets));
        let task = tokio::spawn(items.for_each(move |item| {
            told.fetch_add(item.is_err().into(), Relaxed);
            future::ready(())
        }));
        sleep(3600 * SECOND).await;
        let runs = gadgets.runs.lock().unwrap()[0];
        assert_eq!((runs, errors.load(Relaxed)), (1, 1), "tracked: {tracked}");
        let mine: Api<Gadget> = Api::default_namespaced(server.client());
        let conditions = mine.get("g0").await.unwrap().status.unwrap().conditions;
        assert_eq!(conditions[0].reason, "NoRoute");
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "example.com/l": "x" } } }));
        mine.patch("g0", &PatchParams::default(), &patch)
            .await
            .unwrap();
        sleep(SECOND).await;
        assert_eq!(gadgets.runs.lock().unwrap()[0], 2, "tracked: {tracked}");
        task.abort();
    }
}

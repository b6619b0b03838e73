//! Reconcilers that do not converge, and their correct twins: section B, T40.
//!
//! Each reconciler here is written once, with its mistake and without. With it, a report names the verdict, the
//! place and the field manager; without it, ten thousand events lead to none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::{StreamExt, future::BoxFuture};
use homeostat::{
    Action, Config, Controller, WatchStreamExt,
    controller::{Counts, Explanation, Handle},
    loops::{Incident, Verdict},
    reflector::{self, ObjectRef, Store},
    watcher,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event, rbac::v1::Role},
    jiff::Timestamp,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use world::{Failure, SECOND, Widget, World, idle, running::Running};

/// How many events a correct reconciler gets.
const EVENTS: u64 = 10_000;

/// Whether a reconciler has its mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Faulty,
    Twin,
}
use Side::{Faulty, Twin};

/// What a reconciler works with.
#[derive(Clone)]
struct Hands {
    widgets: Api<Widget>,
    client: Client,
    manager: &'static str,
    /// How long its requests take.
    latency: Duration,
    start: Instant,
    side: Side,
}

/// A reconciler: its hands, the object, and how often this ran before.
type Work = fn(Hands, Arc<Widget>, usize) -> BoxFuture<'static, ()>;

impl Hands {
    fn new(world: &World, manager: &'static str, side: Side) -> Self {
        let client = world.wire.tracked();
        Self {
            widgets: Api::default_namespaced(client.clone()),
            client,
            manager,
            latency: Duration::from_millis(10),
            start: Instant::now(),
            side,
        }
    }

    /// Sends a merge patch, to the status if that is named.
    async fn patch(&self, name: &str, patch: Value) {
        sleep(self.latency).await;
        let params = PatchParams {
            field_manager: Some(self.manager.into()),
            ..PatchParams::default()
        };
        let of_status = patch.get("status").is_some();
        let patch = Patch::Merge(patch);
        if of_status {
            self.widgets.patch_status(name, &params, &patch).await
        } else {
            self.widgets.patch(name, &params, &patch).await
        }
        .unwrap();
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.start.elapsed()
    }
}

/// Runs a reconciler.
fn run(world: &World, hands: Hands, work: Work) -> (Running, Handle<Widget>) {
    let controller = world.controller();
    run_with(world, controller, move |widget, nth| {
        work(hands.clone(), widget, nth)
    })
}

fn run_with<Fut>(
    world: &World,
    controller: Controller<Widget>,
    work: impl Fn(Arc<Widget>, usize) -> Fut + Send + 'static,
) -> (Running, Handle<Widget>)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let handle = controller.handle();
    let running = world.run(controller, move |widget, nth| {
        let work = work(widget, nth);
        async move {
            work.await;
            idle()
        }
    });
    (running, handle)
}

fn explained(handle: &Handle<Widget>) -> Explanation {
    handle.explain(&ObjectRef::new("a").within("default"))
}

fn incident(handle: &Handle<Widget>) -> Arc<Incident> {
    let told = explained(handle).incident;
    told.expect("a loop was found")
}

/// What a report says: the object and the verdict, and the places with those who write them.
fn findings(handle: &Handle<Widget>) -> Vec<String> {
    let incident = incident(handle);
    let mut lines = Vec::new();
    for finding in &incident.findings {
        lines.push(format!("{}: {}", finding.object, finding.verdict));
        for change in &finding.changes {
            let managers: Vec<_> = change.managers.iter().map(ToString::to_string).collect();
            let writer = change.writer.as_deref().unwrap_or_default();
            let line = match &*managers {
                [] => format!("{} sent by {writer}", change.path),
                managers => format!("{} by {}", change.path, managers.join(" and ")),
            };
            lines.push(line);
        }
    }
    lines
}

/// Somebody writes the status now and then, which wakes the reconciler.
async fn look_in(world: &World) {
    for seen in 1..100 {
        world.set_seen("a", seen).await;
        sleep(SECOND / 10).await;
    }
}

// === A value that is another one in each run ===

/// `status.last_updated = now`; the twin says when it last saw another value.
fn stamp(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let value = widget.spec.value;
        let seen = widget.status.as_ref().map(|status| status.seen);
        if hands.side == Faulty || seen != Some(value) {
            let now = hands.now();
            let status = json!({ "status": { "seen": value, "last_updated": now } });
            hands.patch("a", status).await;
        }
    })
}

/// T40, row 22: found, blamed and slowed down.
#[tokio::test(start_paused = true)]
async fn a_time_in_the_status() {
    let world = World::new(&["a"]).await;
    let (running, handle) = run(&world, Hands::new(&world, "stamper", Faulty), stamp);
    world.until(10.0).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::NotDeterministic);
    assert_eq!(
        findings(&handle),
        [
            "Widget default/a: nondeterministic value: it is another one in each run",
            ".status.last_updated by stamper (Update of status)",
        ]
    );
    assert_eq!(handle.counts().loops, 1);
    // Without damping it were hundreds of runs each second.
    let runs = running.runs().len();
    assert!(runs < 60, "{runs}");
    world.until(300.0).await;
    assert!(running.runs().len() < runs + 12, "{}", running.runs().len());
    assert!(explained(&handle).next.damped_for.is_some());

    // Somebody else's change is answered at once.
    world.set_value("a", 1).await;
    world.until(300.5).await;
    assert_eq!(running.first_since(300.0).unwrap().value, 1);

    // The object tells of it.
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(event.reason.as_deref(), Some("ReconcileLoop"));
    assert!(
        event
            .note
            .as_ref()
            .unwrap()
            .contains(".status.last_updated"),
        "{event:?}"
    );
}

/// The same where the objects come by a stream, or by one that is shared.
#[tokio::test(start_paused = true)]
async fn a_time_in_the_status_of_what_a_stream_brings() {
    for is_shared in [false, true] {
        let world = World::new(&["a"]).await;
        let hands = Hands::new(&world, "stamper", Faulty);
        let config = watcher::Config::default();
        let (store, writer) = reflector::store_shared(16);
        let subscriber = writer.subscribe().unwrap();
        let watch = watcher(world.all::<Widget>(), config).reflect_shared(writer);
        let controller = if is_shared {
            tokio::spawn(watch.for_each(|_| std::future::ready(())));
            Controller::for_shared_stream(subscriber, store)
        } else {
            Controller::for_stream(watch.applied_objects(), store)
        };
        let (running, handle) = run_with(&world, controller, move |widget, nth| {
            stamp(hands.clone(), widget, nth)
        });
        world.until(100.0).await;
        assert_eq!(
            findings(&handle)[1],
            ".status.last_updated by stamper (Update of status)"
        );
        assert!(running.runs().len() < 60, "{}", running.runs().len());
        let counts = handle.counts();
        assert_eq!(counts.self_triggers, counts.triggers - 1);
    }
}

/// A child with another name in each run.
#[tokio::test(start_paused = true)]
async fn a_child_for_each_run() {
    let world = World::new(&["a"]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let (_running, handle) = run_with(&world, world.controller_of_both(), move |widget, _| {
        let maps = maps.clone();
        async move {
            let map = ConfigMap {
                metadata: ObjectMeta {
                    generate_name: Some("a-".into()),
                    owner_references: widget.owner_ref(&()).map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                },
                ..ConfigMap::default()
            };
            let params = PostParams {
                field_manager: Some("breeder".into()),
                ..PostParams::default()
            };
            sleep(Duration::from_millis(10)).await;
            maps.create(&params, &map).await.unwrap();
        }
    });
    world.until(10.0).await;
    let [head, place] = &findings(&handle)[..] else {
        panic!("{}", incident(&handle))
    };
    assert!(head.starts_with("ConfigMap default/a-"), "{head}");
    assert!(
        head.ends_with(": nondeterministic value: it is another one in each run"),
        "{head}"
    );
    assert_eq!(place, ".metadata.name sent by breeder");
}

// === A run that undoes itself ===

/// Says that it begins, and then that it is done; the twin only says the latter.
fn report_phases(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let phase = |phase: String| json!({ "metadata": { "annotations": { "example.com/phase": phase } } });
        let done = format!("ready for {}", widget.spec.value);
        if hands.side == Faulty {
            hands.patch("a", phase("progressing".into())).await;
            hands.patch("a", phase(done)).await;
        } else if widget.annotations().get("example.com/phase") != Some(&done) {
            hands.patch("a", phase(done)).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_flip_flop() {
    let world = World::new(&["a"]).await;
    let hands = Hands::new(&world, "flipper", Faulty);
    let (_running, handle) = run(&world, hands, report_phases);
    world.until(10.0).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::FlipFlop);
    assert_eq!(
        findings(&handle),
        [
            "Widget default/a: flip-flop within a run: it changes something and changes it back",
            r#".metadata.annotations["example.com/phase"] by flipper (Update)"#,
        ]
    );
}

// === The same set in another order ===

/// Makes a Role whose names come out of a map with another order each time, as those of a `HashMap`; the twin takes
/// them from a sorted one. Both compare with the live one.
async fn render(hands: Hands, store: Store<Role>, widget: Arc<Widget>, nth: usize) {
    let value = format!("value-{}", widget.spec.value);
    let mut names: Vec<&str> = BTreeSet::from(["blog", "shop", &value])
        .into_iter()
        .collect();
    if hands.side == Faulty {
        names.rotate_left(nth % 3);
    }
    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"],
    }]);
    let live = store.owned_by(&*widget).into_iter().next();
    if live.is_some_and(|live| json!(live.rules) == rules) {
        return;
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "a", "ownerReferences": [widget.owner_ref(&()).unwrap()] },
        "rules": rules,
    });
    sleep(hands.latency).await;
    let api: Api<Role> = Api::default_namespaced(hands.client);
    let params = PatchParams::apply(hands.manager).force();
    api.patch("a", &params, &Patch::Apply(role)).await.unwrap();
}

fn run_renderer(world: &World, hands: Hands) -> (Running, Handle<Widget>) {
    let (store, writer) = reflector::store();
    let (api, config) = (world.all::<Role>(), watcher::Config::default());
    let watch = watcher(api.clone(), config.clone())
        .reflect(writer)
        .touched_objects();
    let controller = world.controller().owns_stream(watch);
    let controller = controller.reads(&store, &api, &config);
    run_with(world, controller, move |widget, nth| {
        render(hands.clone(), store.clone(), widget, nth)
    })
}

/// Row 23.
#[tokio::test(start_paused = true)]
async fn another_order() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run_renderer(&world, Hands::new(&world, "renderer", Faulty));
    world.until(10.0).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::Order);
    assert_eq!(
        findings(&handle),
        [
            "Role default/a: same set in another order each time",
            ".rules[0].resourceNames by renderer (Apply)",
        ]
    );
}

// === What the server does not keep ===

/// Wants a size by a name that the schema does not have, so that it never finds it; the twin knows the name.
fn set_size(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let size = 2 + widget.spec.value % 5;
        if hands.side == Faulty {
            let seen = serde_json::to_value(&widget.spec).unwrap();
            if seen.get("sise") != Some(&json!(size)) {
                hands.patch("a", json!({ "spec": { "sise": size } })).await;
            }
        } else if widget.spec.size != Some(size) {
            hands.patch("a", json!({ "spec": { "size": size } })).await;
        }
    })
}

/// Row 26: a structural schema drops what it does not know.
#[tokio::test(start_paused = true)]
async fn what_the_server_drops() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Hands::new(&world, "sizer", Faulty), set_size);
    look_in(&world).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::Reverted);
    assert_eq!(
        findings(&handle),
        [
            "Widget default/a: reverted by the server: it does not keep what is sent",
            ".spec.sise sent by sizer",
        ]
    );
    assert_eq!(
        incident(&handle).findings[0].changes[0].old.as_deref(),
        Some("2")
    );
    // It wakes nobody, so it is no reason to wait.
    assert_eq!(explained(&handle).next.damped_for, None);
}

/// Wants no size at all, where the schema has a default for it.
fn clear_size(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if widget.spec.size.is_some() {
            hands.patch("a", json!({ "spec": { "size": null } })).await;
        }
    })
}

/// The same with a replace of the whole object.
fn replace_without_size(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let mut desired = Widget::clone(&widget);
        desired.spec.size = None;
        if widget.spec != desired.spec {
            sleep(hands.latency).await;
            let params = PostParams {
                field_manager: Some(hands.manager.into()),
                ..PostParams::default()
            };
            let replaced = hands.widgets.replace("a", &params, &desired).await;
            // If somebody else was faster, that leads to another run.
            let conflict = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_conflict());
            assert!(replaced.as_ref().err().is_none_or(conflict), "{replaced:?}");
        }
    })
}

/// Row 26: the server puts a default back.
#[tokio::test(start_paused = true)]
async fn a_default_that_the_server_puts_back() {
    let mut definition = serde_json::to_value(Widget::crd()).unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    definition.pointer_mut(schema).unwrap()["default"] = json!(3);
    let definition = serde_json::from_value(definition).unwrap();
    for work in [clear_size, replace_without_size] {
        let world = World::bare(ApiServer::builder().build());
        world.install_as(&definition).await;
        world.create("a").await;
        let (_running, handle) = run(&world, Hands::new(&world, "sizer", Faulty), work);
        look_in(&world).await;
        assert_eq!(*incident(&handle).verdict(), Verdict::Reverted);
        let change = &incident(&handle).findings[0].changes[0];
        assert_eq!(change.path.to_string(), ".spec.size");
        assert_eq!((&change.old, change.new.as_deref()), (&None, Some("3")));
        assert_eq!(change.writer.as_deref(), Some("sizer"));
    }
}

// === Two who want different things ===

/// Writes who owns the object; the twins have an annotation each.
fn claim(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (key, value) = if hands.side == Faulty {
            ("owner".to_owned(), hands.manager.to_owned())
        } else {
            (hands.manager.to_owned(), widget.spec.value.to_string())
        };
        if widget.annotations().get(&key) != Some(&value) {
            let claim = json!({ "metadata": { "annotations": { key: value } } });
            hands.patch("a", claim).await;
        }
    })
}

/// Row 27: two controllers overwrite each other's annotation. Both tell whom they fight with.
#[tokio::test(start_paused = true)]
async fn a_fight() {
    let world = World::new(&["a"]).await;
    let [one, other] =
        ["one", "other"].map(|manager| run(&world, Hands::new(&world, manager, Faulty), claim));
    world.until(20.0).await;
    for ((running, handle), opponent) in [(&one, "other"), (&other, "one")] {
        assert_eq!(
            *incident(handle).verdict(),
            Verdict::Fight {
                with: Some(opponent.into()),
                own_name: false
            }
        );
        assert_eq!(
            findings(handle),
            [
                format!(
                    "Widget default/a: fight with {opponent}: each undoes what the other writes"
                ),
                ".metadata.annotations.owner by one (Update) and other (Update)".into(),
            ]
        );
        // Neither goes on as before.
        let runs = running.runs().len();
        assert!(runs < 60, "{runs}");
    }
}

/// Takes a request away when it is done, and tells so.
fn answer(hands: Hands, widget: Arc<Widget>, nth: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if widget.annotations().contains_key("restart") {
            hands.patch("a", json!({ "status": { "seen": nth } })).await;
            let done = json!({ "metadata": { "annotations": { "restart": null } } });
            hands.patch("a", done).await;
        }
    })
}

/// Others who ask for the same over and over are in no fight with who does it.
#[tokio::test(start_paused = true)]
async fn requests_that_say_the_same() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Hands::new(&world, "restarter", Twin), answer);
    for _ in 0..300 {
        let restart = json!({ "metadata": { "annotations": { "restart": "now" } } });
        world.patch("a", restart).await;
        sleep(SECOND / 10).await;
    }
    let told = explained(&handle);
    assert!(told.incident.is_none(), "{told}");
    assert_eq!(handle.counts().writes, 600);
}

// === Writes that change nothing ===

/// Writes without looking; the twin looks.
fn note(hands: Hands, widget: Arc<Widget>, _: usize) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let value = widget.spec.value.to_string();
        if hands.side == Faulty || widget.annotations().get("value") != Some(&value) {
            let note = json!({ "metadata": { "annotations": { "value": value } } });
            hands.patch("a", note).await;
        }
    })
}

/// Row 21: an unconditional write that changes nothing, at each event.
#[tokio::test(start_paused = true)]
async fn writes_that_change_nothing() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Hands::new(&world, "writer", Faulty), note);
    look_in(&world).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::Unchanged);
    assert_eq!(
        findings(&handle),
        [
            "Widget default/a: unchanged write: it is sent, and nothing is new",
            ".metadata.annotations.value by writer (Update)",
        ]
    );
    assert_eq!(explained(&handle).next.damped_for, None);
}

// === The twins ===

/// A twin that runs, and its name.
type Working = (&'static str, (Running, Handle<Widget>));

/// The hands of a twin. Each has another latency, so that their writes do not come at once, as one cause of one run.
fn twin(world: &World, manager: &'static str, latency: u64) -> Hands {
    Hands {
        latency: Duration::from_millis(latency),
        ..Hands::new(world, manager, Twin)
    }
}

fn start_twin(world: &World, manager: &'static str, latency: u64, work: Work) -> Working {
    (manager, run(world, twin(world, manager, latency), work))
}

/// Some twins look after one object, each in a controller of its own. So the events that each gets are changes by a
/// user, what the others write, and what it writes itself.
async fn check_twins(world: &World, twins: &[Working]) {
    let counts = || -> Vec<Counts> {
        let handles = twins.iter().map(|(_, (_, handle))| handle);
        handles.map(Handle::counts).collect()
    };
    let mut value = 0;
    while counts().iter().any(|counts| counts.triggers < EVENTS) {
        value += 1;
        world.set_value("a", value).await;
        sleep(SECOND / 10).await;
    }
    sleep(10 * SECOND).await;
    let settled = counts();
    for ((manager, (_, handle)), counts) in twins.iter().zip(&settled) {
        let told = explained(handle);
        assert!(told.incident.is_none(), "{manager}: {told}");
        assert_eq!((counts.loops, counts.failures), (0, 0), "{manager}");
        // Each change was something to do, and what was done woke it once more. Few events were merged.
        let changes = u64::from(value);
        assert!(counts.writes >= changes, "{manager}: {counts:?}");
        assert!(counts.self_triggers >= changes, "{manager}: {counts:?}");
        assert!(counts.runs >= EVENTS / 2, "{manager}: {counts:?}");
    }
    sleep(100 * SECOND).await;
    assert_eq!(counts(), settled, "it is quiet");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_events_of_one_who_could_loop_alone() {
    let world = World::new(&["a"]).await;
    let renderer = run_renderer(&world, twin(&world, "renderer", 20));
    let twins = [
        start_twin(&world, "stamper", 5, stamp),
        start_twin(&world, "flipper", 10, report_phases),
        start_twin(&world, "sizer", 15, set_size),
        ("renderer", renderer),
    ];
    check_twins(&world, &twins).await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_events_of_one_who_could_loop_with_others() {
    let world = World::new(&["a"]).await;
    let twins = [
        start_twin(&world, "one", 5, claim),
        start_twin(&world, "other", 10, claim),
        start_twin(&world, "writer", 15, note),
    ];
    check_twins(&world, &twins).await;
}

// === The rest ===

/// Writes that have nothing in common but that they do not end.
#[tokio::test(start_paused = true)]
async fn writes_without_end() {
    let world = World::new(&["a"]).await;
    let hands = Hands::new(&world, "writer", Faulty);
    let (_running, handle) = run(&world, hands, |hands, _, nth| {
        Box::pin(async move {
            let note = json!({ "metadata": { "annotations": { format!("run-{nth}"): "" } } });
            hands.patch("a", note).await;
        })
    });
    world.until(10.0).await;
    assert_eq!(*incident(&handle).verdict(), Verdict::Unexplained);
    assert!(explained(&handle).next.damped_for.is_some());
}

/// What is not looked for is not found.
#[tokio::test(start_paused = true)]
async fn detection_can_be_switched_off() {
    let world = World::new(&["a"]).await;
    let hands = Hands::new(&world, "stamper", Faulty);
    let controller = world
        .controller()
        .with_config(Config::default().loops(None));
    let (running, handle) = run_with(&world, controller, move |widget, nth| {
        stamp(hands.clone(), widget, nth)
    });
    world.until(10.0).await;
    assert!(explained(&handle).incident.is_none());
    assert!(
        running.runs().len() > 500,
        "nothing slows it down: {}",
        running.runs().len()
    );
}

/// Progress that ends, periodic looks and retries are no loops.
#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_is_no_loop() {
    let world = World::new(&["a", "b", "c"]).await;
    let hands = Hands::new(&world, "loops-test", Twin);
    let maps: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller();
    let handle = controller.handle();
    let _running = world.run(controller, move |widget, nth| {
        let (hands, maps) = (hands.clone(), maps.clone());
        async move {
            let name = widget.name_any();
            let status = json!({ "status": { "seen": nth } });
            match name.as_str() {
                // Step by step, as many as there are replicas.
                "a" if nth <= 100 => {
                    hands.patch(&name, status).await;
                    idle()
                }
                // A look at the world outside each second.
                "b" => {
                    let map = json!({ "metadata": { "name": "outside" }, "data": { "at": nth.to_string() },
                        "apiVersion": "v1", "kind": "ConfigMap" });
                    let params = PatchParams::apply("loops-test").force();
                    sleep(hands.latency).await;
                    maps.patch("outside", &params, &Patch::Apply(map)).await.unwrap();
                    Ok(Action::requeue(SECOND))
                }
                "c" => {
                    hands.patch(&name, status).await;
                    Err(Failure("not yet"))
                }
                _ => idle(),
            }
        }
    });
    world.until(600.0).await;
    for name in ["a", "b", "c"] {
        let told = handle.explain(&ObjectRef::new(name).within("default"));
        assert!(told.incident.is_none(), "{name}: {told}");
    }
}

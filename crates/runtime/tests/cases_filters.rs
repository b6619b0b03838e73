//! Which changes matter: predicates in a whole controller, and in watch streams, against the
//! embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{MINUTE, SECOND, Widget, World, idle};
use futures::{Stream, StreamExt, stream::BoxStream};
use homeostat::{
    Controller, Predicate, PredicateConfig, WatchStreamExt, error_policy, predicates, reflector,
    watcher,
};
use homeostat_apiserver::Verb;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
};
use serde_json::json;
use std::{
    fmt::{self, Debug},
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// A property that never changes: only what passes any filter passes this one.
#[expect(clippy::unnecessary_wraps, reason = "it is a predicate")]
fn nothing(_: &Widget) -> Option<u64> {
    Some(0)
}

/// The names of the objects that a stream yields now, each with an exclamation mark if it is being
/// deleted.
async fn passed<S>(stream: &mut Pin<&mut S>) -> Vec<String>
where
    S: Stream<Item = watcher::Result<Widget>>,
{
    let mut passed = Vec::new();
    while let Ok(Some(item)) = timeout(SECOND, stream.next()).await {
        let obj = item.unwrap();
        let mark = if obj.meta().deletion_timestamp.is_some() {
            "!"
        } else {
            ""
        };
        passed.push(obj.name_any() + mark);
    }
    passed
}

/// How many objects a filter remembers, which its `Debug` says.
fn remembered(filter: &impl Debug) -> usize {
    let text = format!("{filter:?}");
    let number = text.split("remembered: ").nth(1).unwrap();
    let digits = number.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// A watch with a `Debug`, which those of the filters around it need.
struct Watch(BoxStream<'static, watcher::Result<watcher::Event<Widget>>>);

impl Watch {
    fn new(world: &World) -> Self {
        Self(watcher(world.all(), watcher::Config::default()).boxed())
    }
}

/// The objects of a watch, through something that says nothing of deletions.
#[derive(Debug)]
struct Applied(Watch);

impl Stream for Applied {
    type Item = watcher::Result<Widget>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.0.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(
                    watcher::Event::Apply(obj) | watcher::Event::InitApply(obj),
                ))) => return Poll::Ready(Some(Ok(obj))),
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Stream for Watch {
    type Item = watcher::Result<watcher::Event<Widget>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

const FINALIZER: &str = "example.com/f";

async fn set_finalizers(world: &World, name: &str, finalizers: &[&str]) {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    world.patch(name, patch).await;
}

/// What a generation filter is for: changes of the status do not pass.
#[tokio::test(start_paused = true)]
async fn a_status_does_not_pass_a_generation_filter() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().filter(predicates::generation);
    let running = world.run(controller, |_, _| async { idle() });
    world.until(10.0).await;
    world.set_seen("a", 1).await;
    world.until(20.0).await;
    world.set_value("a", 1).await;
    world.until(30.0).await;
    assert_eq!(running.of("a"), [0, 20]);
    assert_eq!(
        running.runs()[1].seen,
        Some(1),
        "the store has it all the same"
    );
}

/// T41: a delete always passes.
#[tokio::test(start_paused = true)]
async fn a_delete_always_passes() {
    let world = World::new(&["a", "b"]).await;
    let stream = Watch::new(&world)
        .touched_objects()
        .predicate_filter(predicates::generation);
    let mut stream = pin!(stream);
    assert_eq!(passed(&mut stream).await, ["a", "b"]);
    world.set_seen("a", 1).await;
    assert_eq!(passed(&mut stream).await, [""; 0]);
    world.delete("a").await;
    assert_eq!(passed(&mut stream).await, ["a"]);
    // And what comes next under its name.
    world.create("a").await;
    assert_eq!(passed(&mut stream).await, ["a"]);
}

/// T41: a child that is deleted wakes its owner through a filter.
#[tokio::test(start_paused = true)]
async fn a_deleted_child_passes_a_filter() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let children = watcher(world.all::<ConfigMap>(), watcher::Config::default())
        .touched_objects()
        .predicate_filter(predicates::labels);
    let controller = world.controller().owns_stream(children);
    let running = world.run(controller, |_, _| async { idle() });
    world.until(10.0).await;
    world.touch_child("child", 1).await;
    world.until(20.0).await;
    assert_eq!(running.of("a"), [0]);
    world.delete_child("child").await;
    world.until(30.0).await;
    assert_eq!(running.of("a"), [0, 20]);
}

/// T42, section D 41: the mark of deletion and changes of finalizers always pass.
#[tokio::test(start_paused = true)]
async fn deletion_and_finalizers_always_pass() {
    async fn runs(predicate: impl Predicate<Widget> + Send + 'static) -> Vec<u64> {
        let world = World::new(&["a"]).await;
        let controller = world.controller().filter(predicate);
        let running = world.run(controller, |_, _| async { idle() });
        world.until(10.0).await;
        set_finalizers(&world, "a", &[FINALIZER, "example.com/g"]).await;
        world.until(20.0).await;
        world.set_seen("a", 1).await;
        world.until(30.0).await;
        world.delete("a").await;
        world.until(40.0).await;
        world.set_seen("a", 2).await;
        world.until(50.0).await;
        set_finalizers(&world, "a", &[FINALIZER]).await;
        world.until(60.0).await;
        set_finalizers(&world, "a", &[]).await;
        world.until(70.0).await;
        assert_eq!(running.stored(), [""; 0]);
        assert_eq!(running.errors(), [""; 0]);
        running.of("a")
    }
    assert_eq!(runs(predicates::generation).await, [0, 10, 30, 50]);
    assert_eq!(runs(nothing).await, [0, 10, 30, 50]);
}

/// Deletes and creates an object of the same spec; its generation is the same, too.
async fn recreate(world: &World, name: &str) {
    let before = world.widgets.get(name).await.unwrap();
    world.delete(name).await;
    let after = world.create(name).await;
    assert_ne!(before.uid(), after.uid());
    assert_eq!(before.meta().generation, after.meta().generation);
}

/// Whether the watch saw what happened, or a list did.
fn has_listed_twice(world: &World) -> bool {
    let asked = world.asked(Verb::Watch, "widgets");
    asked.iter().filter(|asked| asked.streams).count() == 2
}

/// T43: another object under the same name passes though its generation is the same, whether the
/// watch saw the deletion or not.
#[tokio::test(start_paused = true)]
async fn a_recreated_object_is_reconciled() {
    for gap in [false, true] {
        let world = World::new(&["a"]).await;
        let controller = world.controller().filter(predicates::generation);
        let running = world.run(controller, |_, _| async { idle() });
        world.until(10.0).await;
        let _gap = gap.then(|| world.gap("widgets", 5 * SECOND));
        world.until(11.0).await;
        recreate(&world, "a").await;
        world.until(20.0).await;
        assert_eq!(has_listed_twice(&world), gap);
        assert_eq!(running.of("a"), [0, if gap { 15 } else { 11 }]);
    }
}

/// T43: the same for streams.
#[tokio::test(start_paused = true)]
async fn a_recreated_object_passes() {
    for gap in [false, true] {
        let world = World::new(&["a"]).await;
        let stream = Watch::new(&world)
            .applied_objects()
            .predicate_filter(predicates::generation);
        let mut stream = pin!(stream);
        assert_eq!(passed(&mut stream).await, ["a"]);
        let _gap = gap.then(|| world.gap("widgets", 5 * SECOND));
        assert_eq!(passed(&mut stream).await, [""; 0]);
        recreate(&world, "a").await;
        sleep(10 * SECOND).await;
        assert_eq!(passed(&mut stream).await, ["a"], "{gap}");
        assert_eq!(has_listed_twice(&world), gap);
    }
}

/// T44: however long an object was quiet, its status alone does not pass: not in a controller, and
/// not in a stream that shows deletions.
#[tokio::test(start_paused = true)]
async fn a_filter_does_not_forget_an_idle_object() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().filter(predicates::generation);
    let running = world.run(controller, |_, _| async { idle() });
    let config = PredicateConfig::default().ttl(MINUTE);
    let stream = Watch::new(&world)
        .applied_objects()
        .predicate_filter_with(predicates::generation, config);
    let mut stream = pin!(stream);
    assert_eq!(passed(&mut stream).await, ["a"]);
    for nth in 1..=3 {
        sleep(120 * MINUTE).await;
        world.set_seen("a", nth).await;
        assert_eq!(passed(&mut stream).await, [""; 0]);
    }
    world.set_value("a", 1).await;
    assert_eq!(passed(&mut stream).await, ["a"]);
    assert_eq!(running.values("a"), [0, 1]);
}

/// T44: where deletions do not show, the time to live bounds the memory, by tokio's clock.
#[tokio::test(start_paused = true)]
async fn the_time_to_live_follows_the_paused_clock() {
    let world = World::new(&["a", "b"]).await;
    let config = PredicateConfig::default().ttl(60 * MINUTE);
    let stream = Applied(Watch::new(&world)).predicate_filter_with(predicates::generation, config);
    let mut stream = pin!(stream);
    assert_eq!(passed(&mut stream).await, ["a", "b"]);
    world.delete("b").await;
    for nth in 1..=3 {
        sleep(50 * MINUTE).await;
        world.set_seen("a", nth).await;
        assert_eq!(passed(&mut stream).await, [""; 0], "seen 50 minutes before");
    }
    assert_eq!(remembered(&stream), 1, "b was not seen for an hour");
    sleep(61 * MINUTE).await;
    world.set_seen("a", 4).await;
    assert_eq!(passed(&mut stream).await, ["a"]);
}

/// T32: nothing is remembered of objects that are gone, whether the watch saw it or a list does not
/// mention them.
#[tokio::test(start_paused = true)]
async fn a_filter_forgets_objects_that_are_gone() {
    let names: Vec<String> = (0..100).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names).await;
    let stream = Watch::new(&world)
        .applied_objects()
        .predicate_filter(predicates::generation);
    let mut stream = pin!(stream);
    assert_eq!(passed(&mut stream).await, names);
    assert_eq!(remembered(&stream), 100);
    for name in &names[..50] {
        world.delete(name).await;
    }
    assert_eq!(passed(&mut stream).await, [""; 0]);
    assert_eq!(remembered(&stream), 50);
    let _gap = world.gap("widgets", 5 * SECOND);
    assert_eq!(passed(&mut stream).await, [""; 0]);
    for name in &names[50..] {
        world.delete(name).await;
    }
    sleep(10 * SECOND).await;
    assert_eq!(passed(&mut stream).await, [""; 0]);
    assert_eq!(remembered(&stream), 0);
    assert_eq!(world.asked(Verb::Watch, "widgets").len(), 3);
}

/// The names of the objects that a controller runs for.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    /// Runs a controller in the background, and notes its runs here.
    fn run<K>(&self, controller: Controller<K>)
    where
        K: Resource + Clone + serde::de::DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Debug + Eq + std::hash::Hash + Clone + Unpin + Send + Sync,
    {
        let names = self.clone();
        let reconcile = move |obj: Arc<K>, _: Arc<()>| {
            names.0.lock().unwrap().push(obj.name_any());
            async { idle() }
        };
        let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
        tokio::spawn(run.for_each(|_| std::future::ready(())));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// T45: filters work in controllers of shared objects and of objects whose type is known at run
/// time.
#[tokio::test(start_paused = true)]
async fn filters_work_on_shared_and_dynamic_objects() {
    let world = World::new(&["a", "b"]).await;
    let (reader, writer) = reflector::store::<Widget>();
    let watch = watcher(world.all::<Widget>(), watcher::Config::default()).reflect(writer);
    let (by_controller, by_stream, dynamic) =
        (Names::default(), Names::default(), Names::default());
    by_controller.run(
        Controller::for_shared_stream(reader.subscribe(), reader.clone())
            .filter(predicates::generation),
    );
    let filtered = reader.subscribe().predicate_filter(predicates::generation);
    by_stream.run(Controller::for_shared_stream(filtered, reader));
    let kind = ApiResource::erase::<Widget>(&());
    let api: Api<DynamicObject> = Api::all_with(world.wire.client(), &kind);
    dynamic.run(
        Controller::new_with(api, watcher::Config::default(), kind).filter(predicates::generation),
    );
    tokio::spawn(watch.for_each(|_| std::future::ready(())));
    let all = [&by_controller, &by_stream, &dynamic];
    let check = async |expected: &[&str]| {
        sleep(Duration::from_millis(100)).await;
        assert_eq!(all.map(Names::take), [expected, expected, expected]);
    };
    check(&["a", "b"]).await;
    world.set_seen("a", 1).await;
    check(&[]).await;
    world.set_value("b", 1).await;
    check(&["b"]).await;
    set_finalizers(&world, "a", &[FINALIZER]).await;
    check(&["a"]).await;
}

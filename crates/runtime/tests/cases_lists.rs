//! Lists that come in pages, expire, break off, or show what is not there any more: a whole
//! controller against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{
    Asked, Failure, SECOND, Widget, WidgetSpec, World, delay, idle, is_delay, rule, wire::Cut,
};
use futures::{StreamExt, future};
use homeostat::{
    Action, Config, Controller, error_policy, predicates,
    reflector::{ObjectRef, Store},
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};

/// How a list comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Streamed,
    InPages,
}

const WAYS: [Way; 2] = [Way::Streamed, Way::InPages];

/// A world with these widgets whose lists come in that way, in pages of two.
async fn world(way: Way, names: &[&str]) -> World {
    let world = World::new(names).await;
    if way == Way::InPages {
        world.wire.refuse_streaming();
    }
    world
}

fn in_twos(way: Way) -> watcher::Config {
    match way {
        Way::Streamed => watcher::Config::default(),
        Way::InPages => watcher::Config::default().page_size(2),
    }
}

/// The lists and watches of widgets since a moment, each as what was asked for and its status.
fn asked_since(world: &World, seconds: f64) -> Vec<(&'static str, u16)> {
    let since = Duration::from_secs_f64(seconds);
    let what = |verb, asked: &Asked| match (verb, asked.streams) {
        (Verb::Watch, true) => "stream",
        (Verb::Watch, false) => "watch",
        (_, _) if asked.parameter("continue").is_empty() => "list",
        (_, _) => "page",
    };
    let all = |verb| {
        let asked = world.asked(verb, "widgets").into_iter();
        asked
            .filter(|asked| asked.at >= since)
            .map(|asked| (what(verb, &asked), asked.status.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    [all(Verb::List), all(Verb::Watch)].concat()
}

/// T13: a server that answers 410 to the start of a watch is asked for a list, once, and no version
/// that it does not know is tried again.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_expired_from_the_start() {
    for way in WAYS {
        let world = world(way, &["a", "b"]).await;
        let running = world.run(world.controller(), |_, _| async { idle() });
        world.until(100.0).await;
        let _expired = world.inject(rule(Verb::Watch, "widgets").times(1), Fault::Expired);
        world.server.faults().drop_watches();
        world.set_value("a", 1).await;
        world.until(101.0).await;
        let expected = match way {
            Way::Streamed => vec![("watch", 410), ("stream", 200)],
            Way::InPages => vec![("list", 200), ("watch", 410), ("watch", 200)],
        };
        assert_eq!(asked_since(&world, 100.0), expected);
        assert_eq!(running.of("a"), [0, 100]);
        assert_eq!(running.values("a"), [0, 1]);
        assert_eq!(running.of("b"), [0], "a relist is no change");
        assert_eq!(running.errors(), [""; 0]);
        world.until(110.0).await;
        world.set_value("b", 1).await;
        world.until(111.0).await;
        assert_eq!(running.of("b"), [0, 110]);
    }
}

/// T21: a version that the server has forgotten is routine: no error, no loss of readiness, and
/// nothing runs but what changed.
#[tokio::test(start_paused = true)]
async fn an_expired_version_is_no_error() {
    for way in WAYS {
        let world = world(way, &["a", "b"]).await;
        let running = world.run(world.controller(), |_, _| async { idle() });
        for nth in 1..=20 {
            world.until(f64::from(nth) * 100.0).await;
            world.server.faults().drop_watches();
            world.set_value("a", nth).await;
            world.server.compact();
        }
        world.until(2100.0).await;
        let expected: Vec<u64> = (0..=20).map(|nth| nth * 100).collect();
        assert_eq!(running.of("a"), expected);
        assert_eq!(running.of("b"), [0]);
        assert_eq!(running.errors(), [""; 0]);
        assert!(running.readiness.is_ready());
        let relist = match way {
            Way::Streamed => "stream",
            Way::InPages => "list",
        };
        let relists = asked_since(&world, 0.0);
        let relists = relists.iter().filter(|(word, _)| *word == relist).count();
        assert_eq!(relists, 21);
    }
}

/// T16: what a streamed list mentioned that broke off leaves no ghosts.
#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_breaks_off() {
    for how in [Cut::Cleanly, Cut::Midway, Cut::Broken] {
        let world = World::new(&["a", "b"]).await;
        // Both objects come, and the mark behind them does not.
        world.wire.cut_next("widgets", 2, how);
        let running = world.run(world.controller(), |_, _| async { idle() });
        world.until(0.5).await;
        assert_eq!(running.order(), [""; 0]);
        world.delete("b").await;
        world.until(60.0).await;
        assert_eq!(
            (running.stored(), running.order()),
            (vec!["a".to_owned()], vec!["a".to_owned()]),
            "{how:?}"
        );
        let asked = world.asked(Verb::Watch, "widgets");
        assert!(asked.iter().all(|asked| asked.streams));
        assert_eq!(asked.len(), 2);
        assert!(is_delay(asked[1].at, 0.8), "{asked:?}");
    }
}

/// T16: the same in a relist: what was known before stays until another list is complete.
#[tokio::test(start_paused = true)]
async fn a_streamed_relist_that_breaks_off() {
    let world = World::new(&["a", "b"]).await;
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(100.0).await;
    let _gap = world.gap("widgets", SECOND);
    world.wire.cut_next("widgets", 1, Cut::Cleanly);
    world.until(100.5).await;
    world.delete("a").await;
    world.create("c").await;
    // The list breaks off after b.
    world.until(101.5).await;
    assert_eq!(asked_since(&world, 100.5).len(), 1);
    assert_eq!(running.stored(), ["a", "b"]);
    assert_eq!(running.order(), ["a", "b"]);
    world.until(103.0).await;
    assert_eq!(running.stored(), ["b", "c"]);
    assert_eq!(running.order(), ["a", "b", "c"]);
    assert_eq!(
        asked_since(&world, 100.0),
        [("watch", 410), ("stream", 200), ("stream", 200)]
    );
}

/// T17, section F 62: no page is left out, also when one fails.
#[tokio::test(start_paused = true)]
async fn every_page_counts() {
    let names: Vec<String> = (0..10).map(|number| format!("w{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = world(Way::InPages, &names).await;
    let _fails = world.inject(
        rule(Verb::List, "widgets").after(2).times(1),
        Fault::Unavailable,
    );
    let config = watcher::Config::default().page_size(3);
    let controller = Controller::<Widget>::new(world.all(), config);
    let running = world.run(controller, |_, _| async { idle() });
    world.until(10.0).await;
    assert_eq!(running.order(), names);
    let asked = world.asked(Verb::List, "widgets");
    let statuses: Vec<_> = asked.iter().filter_map(|asked| asked.status).collect();
    assert_eq!(statuses, [200, 200, 503, 200, 200]);
    assert!(asked.iter().all(|asked| asked.parameter("limit") == "3"));
    let tokens: Vec<&str> = asked
        .iter()
        .map(|asked| asked.parameter("continue"))
        .collect();
    assert_eq!(tokens[0], "");
    assert_eq!(
        tokens[2], tokens[3],
        "the page that failed is asked for again"
    );
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 4);
}

/// T17, section F 67: a thousand objects, in pages without any settings.
#[tokio::test(start_paused = true)]
async fn a_thousand_objects() {
    let names: Vec<String> = (0..1001).map(|number| format!("w{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for way in WAYS {
        let world = world(way, &names).await;
        let running = world.run(world.controller(), |_, _| async { idle() });
        world.until(1.0).await;
        assert_eq!(running.order(), names);
        let pages = world.asked(Verb::List, "widgets").len();
        assert_eq!(pages, if way == Way::Streamed { 0 } else { 3 });
    }
}

/// Section F 64: only what the controller was told to watch is watched; reads of stores ask nobody.
#[tokio::test(start_paused = true)]
async fn reads_ask_nobody() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let controller = world.controller_of_both();
    let store = controller.store();
    let running = world.run(controller, move |obj: Arc<Widget>, _| {
        let reference = ObjectRef::from_obj(&*obj);
        let found = store.get(&reference).is_some() && store.len() == 1;
        let none = store.owned_by(&*obj).is_empty() && store.owner_of(&*obj).is_none();
        async move {
            if found && none {
                idle()
            } else {
                Err(Failure("something else was found"))
            }
        }
    });
    world.until(60.0).await;
    assert_eq!((running.successes(), running.errors()), (1, vec![]));
    for plural in ["widgets", "configmaps"] {
        let asked =
            [Verb::List, Verb::Watch, Verb::Get].map(|verb| world.asked(verb, plural).len());
        assert_eq!(asked, [0, 1, 0], "{plural}");
    }
}

/// Writes something and lets the server forget what was before, again and again.
fn forgetful(world: &World, interval: Duration) -> tokio::task::JoinHandle<()> {
    let (server, widgets) = (world.server.clone(), world.widgets.clone());
    tokio::spawn(async move {
        for nth in 0.. {
            sleep(interval).await;
            let patch = Patch::Merge(json!({ "status": { "seen": nth } }));
            let params = PatchParams::default();
            widgets.patch_status("e", &params, &patch).await.unwrap();
            // Watches that are open have seen it by then.
            sleep(Duration::from_millis(1)).await;
            server.compact();
        }
    })
}

/// T23: pages that take longer than the server remembers give way to one answer.
#[tokio::test(start_paused = true)]
async fn pages_that_expire() {
    let world = world(Way::InPages, &["a", "b", "c", "d", "e"]).await;
    let _slow = world.inject(rule(Verb::List, "widgets"), Fault::Delay(SECOND));
    let _forgetful = forgetful(&world, Duration::from_millis(1700));
    let controller = Controller::<Widget>::new(world.all(), in_twos(Way::InPages));
    let running = world.run(controller, |_, _| async { idle() });
    world.until(3.1).await;
    // A page at 1 s; the next one is asked for and expired at 1.7 s; all at 3 s.
    assert_eq!(running.order(), ["a", "b", "c", "d", "e"]);
    assert_eq!(
        asked_since(&world, 0.0),
        [("list", 200), ("page", 410), ("list", 200), ("watch", 200)]
    );
    let asked = world.asked(Verb::List, "widgets");
    assert_eq!(asked[2].parameter("limit"), "", "in one answer");
    world.until(10.0).await;
    assert_eq!(running.of("e"), [3, 3, 5, 6, 8], "the watch goes on");
    assert_eq!(running.errors(), [""; 0]);
}

/// T23: a list whose version is expired before its watch begins.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_expired_when_it_ends() {
    let world = world(Way::InPages, &["a", "e"]).await;
    let _slow = world.inject(rule(Verb::Watch, "widgets").times(3), Fault::Delay(SECOND));
    let _forgetful = forgetful(&world, Duration::from_millis(900));
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(60.0).await;
    // The server says 410 in three watches that begin too late.
    let lists = world.asked(Verb::List, "widgets");
    assert_eq!(lists.len(), 4, "{lists:?}");
    for pair in lists.windows(2).zip([0.8, 1.6, 3.2]) {
        let (pair, least) = pair;
        let delay = delay(pair[0].at + SECOND, pair[1].at);
        assert!(is_delay(delay, least), "{lists:?}");
    }
    assert_eq!(running.of("a"), [0]);
    assert_eq!(running.errors(), [""; 0]);
    let seen = running.runs().last().and_then(|run| run.seen);
    assert_eq!(seen, Some(65), "the watch goes on");
}

/// T25: one object of 500 that cannot be decoded is reported, and all others are delivered.
#[tokio::test(start_paused = true)]
async fn one_object_of_500_cannot_be_decoded() {
    let names: Vec<String> = (0..500).map(|number| format!("w{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for way in WAYS {
        let world = world(way, &names).await;
        let corrupt = |name: &str| {
            let rule = Rule::any().resource("widgets").name(name);
            world.server.faults().inject(rule, Fault::corrupt_labels())
        };
        let in_list = corrupt("w250");
        let running = world.run(world.controller(), |_, _| async { idle() });
        world.until(1.0).await;
        let others: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| *name != "w250")
            .collect();
        assert_eq!(running.order(), others);
        let report = |verb: &str, name: &str| {
            format!(
                "event queue error: {verb} widgets.example.com in all namespaces: Widget \
                 default/{name} does not fit its type at metadata.labels: "
            )
        };
        let errors = running.errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].starts_with(&report("list", "w250")), "{errors:?}");
        assert!(running.readiness.is_ready(), "one object is not all");

        // An event that cannot be decoded, and the watch goes on behind it.
        let in_watch = corrupt("w100");
        world.set_value("w100", 1).await;
        world.until(2.0).await;
        world.server.faults().drop_watches();
        world.until(3.0).await;
        let errors = running.errors();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(
            errors[1].starts_with(&report("watch", "w100")),
            "{errors:?}"
        );
        assert_eq!(running.values("w100"), [0]);
        assert_eq!(running.stored().len(), 499, "it keeps its known state");

        // A list that cannot show an object does not say that it is gone.
        let _expired = world.inject(rule(Verb::Watch, "widgets").times(1), Fault::Expired);
        world.server.faults().drop_watches();
        world.until(4.0).await;
        let mut errors = running.errors().split_off(2);
        errors.sort();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with(&report("list", "w100")), "{errors:?}");
        assert!(errors[1].starts_with(&report("list", "w250")), "{errors:?}");
        assert_eq!(running.stored().len(), 499);

        // It is mended.
        drop((in_list, in_watch));
        world.set_value("w100", 2).await;
        world.set_value("w250", 2).await;
        world.until(5.0).await;
        assert_eq!(running.values("w100"), [0, 2]);
        assert_eq!(running.values("w250"), [2]);
        assert_eq!((running.errors().len(), running.runs().len()), (4, 501));
    }
}

/// T26: an object that was deleted near a relist is not reconciled after it: not by its requeue, not
/// because its children go, and not because a page still showed it.
#[tokio::test(start_paused = true)]
async fn a_delete_near_a_relist() {
    for way in WAYS {
        for slow in [false, true] {
            let server = ApiServer::builder().garbage_collection(false).build();
            let world = World::bare(server);
            world.install().await;
            for name in ["a", "b", "c"] {
                world.create(name).await;
            }
            world.create_child("a", "child").await;
            if way == Way::InPages {
                world.wire.refuse_streaming();
            }
            let controller = Controller::<Widget>::new(world.all(), in_twos(way))
                .owns(world.all::<ConfigMap>(), in_twos(way));
            let running = world.run(controller, |_, _| async {
                Ok::<_, Failure>(Action::requeue(30 * SECOND))
            });
            world.until(100.0).await;
            let _gap = world.gap("widgets", SECOND);
            // The second page, or the whole streamed list, takes from 101 s until 106 s.
            let late = match way {
                Way::Streamed => rule(Verb::Watch, "widgets"),
                Way::InPages => rule(Verb::List, "widgets").after(1),
            };
            let _late = slow.then(|| world.inject(late.times(1), Fault::Delay(5 * SECOND)));
            world.until(if slow { 103.0 } else { 100.5 }).await;
            world.delete("a").await;
            world.until(if slow { 105.9 } else { 100.9 }).await;
            assert_eq!(running.stored(), ["a", "b", "c"], "nothing tells yet");
            world.until(107.0).await;
            assert_eq!(running.stored(), ["b", "c"], "{way:?}, {slow}");
            assert!(world.server.step_garbage_collection(), "the child goes");
            world.until(200.0).await;
            assert_eq!(running.of("a"), [0, 30, 60, 90], "{way:?}, {slow}");
            assert_eq!(running.of("b"), [0, 30, 60, 90, 120, 150, 180]);
            assert_eq!(running.errors(), [""; 0]);
        }
    }
}

/// T27: an object that is new in the first page of a relist is reconciled, once, with what the page
/// showed; while pages are missing, what was known before stays.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_new_in_the_first_page() {
    let world = world(Way::InPages, &["b", "c", "d"]).await;
    let controller = Controller::<Widget>::new(world.all(), in_twos(Way::InPages));
    let running = world.run(controller, |_, _| async { idle() });
    world.until(100.0).await;
    let _gap = world.gap("widgets", SECOND);
    let _slow = world.inject(
        rule(Verb::List, "widgets").after(1).times(1),
        Fault::Delay(5 * SECOND),
    );
    world.until(100.5).await;
    world.create("a").await;
    world.set_value("a", 5).await;
    world.set_value("b", 7).await;
    world.until(105.9).await;
    assert_eq!(
        world.asked(Verb::List, "widgets").len(),
        3,
        "a page is there"
    );
    assert_eq!(running.stored(), ["b", "c", "d"]);
    assert_eq!(running.order(), ["b", "c", "d"]);
    world.until(110.0).await;
    assert_eq!(
        asked_since(&world, 100.0),
        [("list", 200), ("page", 200), ("watch", 410), ("watch", 200)]
    );
    assert_eq!(running.stored(), ["a", "b", "c", "d"]);
    assert_eq!(running.order()[3..], ["a", "b"]);
    assert_eq!((running.of("a"), running.values("a")), (vec![106], vec![5]));
    assert_eq!(running.values("b"), [0, 7]);
    assert_eq!(running.errors(), [""; 0]);
}

/// T28: a child that was deleted while the watch was down, and so long ago that the server has
/// forgotten it, wakes its owner. A child that is still there wakes nobody.
#[tokio::test(start_paused = true)]
async fn a_child_that_was_deleted_in_a_gap() {
    for way in WAYS {
        let world = world(way, &["a", "b"]).await;
        world.create_child("a", "child-of-a").await;
        world.create_child("b", "child-of-b").await;
        let running = world.run(world.controller_of_both(), |_, _| async { idle() });
        world.until(100.0).await;
        let down = world.inject(rule(Verb::Watch, "configmaps"), Fault::Refuse);
        world.server.faults().drop_watches();
        world.until(101.0).await;
        world.delete_child("child-of-a").await;
        world.set_seen("b", 1).await;
        world.server.compact();
        world.until(103.0).await;
        assert_eq!((running.of("a"), running.of("b")), (vec![0], vec![0, 101]));
        let refused = running.errors().len();
        assert!((2..=3).contains(&refused), "{:?}", running.errors());
        drop(down);
        world.until(120.0).await;
        let runs = running.of("a");
        assert_eq!(runs.len(), 2, "{way:?}: {runs:?}");
        assert!((103..110).contains(&runs[1]), "{way:?}: {runs:?}");
        assert_eq!(running.of("b"), [0, 101]);
        assert_eq!(running.errors().len(), refused, "410 is no error");
    }
}

/// T28: objects of the controller's own kind that were deleted in a gap are forgotten, and one that
/// was created again under the same name is reconciled.
#[tokio::test(start_paused = true)]
async fn objects_that_were_deleted_in_a_gap() {
    for way in WAYS {
        let world = world(way, &["a", "b", "c"]).await;
        let uids: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&uids);
        let running = world.run(world.controller(), move |obj: Arc<Widget>, _| {
            noted.lock().unwrap().extend(obj.uid());
            async { Ok::<_, Failure>(Action::requeue(1000 * SECOND)) }
        });
        world.until(100.0).await;
        let down = world.inject(rule(Verb::Watch, "widgets"), Fault::Refuse);
        world.server.faults().drop_watches();
        world.until(101.0).await;
        world.delete("a").await;
        world.delete("b").await;
        let new = world.create("b").await;
        world.server.compact();
        drop(down);
        world.until(2000.0).await;
        assert_eq!(running.stored(), ["b", "c"]);
        assert_eq!(running.of("a"), [0]);
        assert_eq!(running.of("c"), [0, 1000]);
        let runs = running.of("b");
        assert_eq!(runs.len(), 3, "{runs:?}");
        assert!((101..105).contains(&runs[1]), "{runs:?}");
        assert_eq!(uids.lock().unwrap()[3], new.uid().unwrap());
    }
}

/// Widgets that count how often one is decoded in this thread. One with the value 13 does not fit.
mod counted {
    use kube::CustomResource;
    use serde::{Deserialize, Deserializer, Serialize, de::Error};
    use std::cell::Cell;

    thread_local! {
        pub(super) static DECODED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct CountedSpec {
        #[serde(deserialize_with = "counted")]
        pub(super) value: u32,
    }

    fn counted<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
        DECODED.set(DECODED.get() + 1);
        let value = u32::deserialize(value)?;
        if value == 13 {
            return Err(D::Error::custom("unlucky"));
        }
        Ok(value)
    }
}

/// A controller of counted widgets, one at a time. A run takes ten seconds if the value is 1.
struct Counted {
    store: Store<counted::Widget>,
    runs: Arc<Mutex<Vec<(String, u32)>>>,
    errors: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Counted {
    fn run(controller: Controller<counted::Widget>) -> Self {
        let (runs, errors) = (Arc::default(), Arc::default());
        let store = controller.store();
        let noted: Arc<Mutex<Vec<_>>> = Arc::clone(&runs);
        let reconcile = move |widget: Arc<counted::Widget>, _: Arc<()>| {
            let value = widget.spec.value;
            noted.lock().unwrap().push((widget.name_any(), value));
            async move {
                if value == 1 {
                    sleep(10 * SECOND).await;
                }
                Ok::<_, Failure>(Action::await_change())
            }
        };
        let told: Arc<Mutex<Vec<_>>> = Arc::clone(&errors);
        let results = controller
            .with_config(Config::default().concurrency(1))
            .run(reconcile, error_policy::backoff, Arc::new(()))
            .for_each(move |result| {
                let error = result.err().map(|error| error.to_string());
                told.lock().unwrap().extend(error);
                future::ready(())
            });
        Self {
            store,
            runs,
            errors,
            task: tokio::spawn(results),
        }
    }

    /// What happened since this was last asked for, as `name value`.
    fn runs(&self) -> Vec<String> {
        let mut runs = self.runs.lock().unwrap();
        let shown = runs
            .drain(..)
            .map(|(name, value)| format!("{name} {value}"));
        shown.collect()
    }

    fn errors(&self) -> usize {
        std::mem::take(&mut *self.errors.lock().unwrap()).len()
    }

    fn stored(&self, name: &str) -> Option<u32> {
        let reference = ObjectRef::new(name).within("default");
        let found = self.store.even_if_incomplete().get(&reference);
        found.map(|widget| widget.spec.value)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An event that a newer one overtakes before anybody reads the object is never decoded, unless somebody has to see
/// each version.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_overtaken_is_not_decoded() {
    for compares in [false, true] {
        let world = World::new(&["a", "b"]).await;
        world.set_value("a", 1).await;
        counted::DECODED.set(0);
        let controller = Controller::new(world.all(), watcher::Config::default());
        let running = Counted::run(if compares {
            controller.filter(predicates::generation)
        } else {
            controller
        });
        world.until(1.0).await;
        assert_eq!(running.runs(), ["a 1"], "b waits until a has run");
        assert_eq!(counted::DECODED.take(), 2);
        for value in 20..70 {
            world.set_value("b", value).await;
            world.until(1.0 + f64::from(value) / 100.0).await;
        }
        // Only the first one is compared with the object of the list.
        assert_eq!(counted::DECODED.take(), if compares { 50 } else { 1 });
        world.until(20.0).await;
        assert_eq!(running.runs(), ["b 69"]);
        assert_eq!(counted::DECODED.take(), usize::from(!compares));
        assert_eq!((running.stored("b"), running.errors()), (Some(69), 0));
        assert_eq!(counted::DECODED.take(), 0, "decoded once");

        // A reader that comes before the run decodes it for both.
        world.set_value("a", 2).await;
        world.set_value("a", 1).await;
        world.until(21.0).await;
        world.set_value("b", 80).await;
        world.until(22.0).await;
        counted::DECODED.set(0);
        assert_eq!(running.stored("b"), Some(80));
        world.until(40.0).await;
        assert_eq!(running.runs().last().map(String::as_str), Some("b 80"));
        assert_eq!(counted::DECODED.take(), usize::from(!compares));
    }
}

/// R13 for versions that are decoded late: the state that is known stays, it is reported once, at the latest when the
/// object's turn comes, and a version that is overtaken harms nobody.
#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_fit_is_reported_when_it_is_read() {
    let world = World::new(&["a", "b"]).await;
    world.set_value("a", 1).await;
    let controller = Controller::new(world.all(), watcher::Config::default());
    let running = Counted::run(controller);
    world.until(1.0).await;
    assert_eq!(running.runs(), ["a 1"]);
    for value in [2, 13, 3] {
        world.set_value("b", value).await;
    }
    world.until(20.0).await;
    assert_eq!(
        (running.runs(), running.errors()),
        (vec!["b 3".to_owned()], 0)
    );

    world.set_value("b", 13).await;
    world.until(21.0).await;
    assert_eq!((running.stored("b"), running.errors()), (Some(3), 1));
    let runs = running.runs();
    assert!(runs.iter().all(|run| run == "b 3"), "{runs:?}");
    world.until(30.0).await;
    assert_eq!((running.runs(), running.errors()), (Vec::new(), 0));

    // A list shows it again, and says so again, as of any other version that does not fit.
    let _expired = world.inject(rule(Verb::Watch, "widgets").times(1), Fault::Expired);
    world.server.faults().drop_watches();
    world.until(40.0).await;
    assert_eq!((running.stored("b"), running.errors()), (Some(3), 1));

    // A new object that does not fit is not there.
    let widget = Widget::new(
        "c",
        WidgetSpec {
            value: 13,
            ..WidgetSpec::default()
        },
    );
    world
        .widgets
        .create(&PostParams::default(), &widget)
        .await
        .unwrap();
    world.until(41.0).await;
    assert_eq!((running.stored("c"), running.errors()), (None, 1));
    assert_eq!(running.store.even_if_incomplete().len(), 2);
    assert_eq!(running.runs(), [""; 0]);

    // Both are mended.
    for name in ["b", "c"] {
        world.set_value(name, 5).await;
    }
    world.until(50.0).await;
    assert_eq!(
        (running.runs(), running.errors()),
        (vec!["b 5".to_owned(), "c 5".to_owned()], 0)
    );
}

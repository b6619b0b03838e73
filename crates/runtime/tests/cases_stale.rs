//! Reported cases of stale caches: section C, by its rows, and T11. The caches of these controllers are
//! seconds behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::StreamExt;
use homeostat::{
    Action, Config, Controller, WatchStreamExt, applier, children,
    controller::{Handle, trigger_self},
    error_policy, predicates,
    reflector::{self, ObjectRef, Store},
    watcher,
};
use homeostat_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use world::{
    Failure, MINUTE, SECOND, Widget, World, even_backoff, idle, rule, running::Running, wire::Noise,
};

/// What a reconciler here works with: a tracked client, and a store of config maps that is behind.
#[derive(Clone)]
struct Children {
    maps: Api<ConfigMap>,
    store: Store<ConfigMap>,
}

impl Children {
    /// The children and a controller that reads their store.
    fn new(world: &World) -> (Self, Controller<Widget>) {
        Self::of(world, &watcher::Config::default())
    }

    /// The same for those that a watch selects.
    fn of(world: &World, config: &watcher::Config) -> (Self, Controller<Widget>) {
        let (store, writer) = reflector::store();
        let api = world.all::<ConfigMap>();
        let watch = watcher(api.clone(), config.clone())
            .reflect(writer)
            .touched_objects();
        let controller = world
            .controller()
            .owns_stream(watch)
            .reads(&store, &api, config);
        let maps = Api::default_namespaced(world.wire.tracked());
        (Self { maps, store }, controller)
    }

    /// Creates a child unless the store shows one.
    async fn ensure_one(&self, owner: &Widget) {
        if self.store.owned_by(owner).is_empty() {
            self.create(owner, None, &[]).await;
        }
    }

    async fn create(&self, owner: &Widget, name: Option<&str>, labels: &[(&str, &str)]) {
        let child = child(owner, name, labels);
        self.maps
            .create(&PostParams::default(), &child)
            .await
            .unwrap();
    }
}

fn child(owner: &Widget, name: Option<&str>, labels: &[(&str, &str)]) -> ConfigMap {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()));
    ConfigMap {
        metadata: ObjectMeta {
            name: name.map(Into::into),
            generate_name: name.is_none().then(|| format!("{}-", owner.name_any())),
            owner_references: owner.owner_ref(&()).map(|owner| vec![owner]),
            labels: Some(labels.collect()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// Takes a second, in which [`delay_children`] makes the cache late.
async fn take_a_second() {
    tokio::time::sleep(SECOND).await;
}

/// From now on the store of children is behind; a controller that was just started runs.
async fn delay_children(world: &World, behind: Duration) {
    world.until(0.5).await;
    world.wire.delay("configmaps", behind);
}

async fn count(world: &World) -> usize {
    let all = world.maps.list(&ListParams::default()).await.unwrap().items;
    all.iter()
        .filter(|map| map.metadata.owner_references.is_some())
        .count()
}

/// How many children there are after a widget was changed every half a second, with caches that are
/// `behind`.
async fn children_created(config: Config, behind: Duration) -> usize {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    world.wire.delay("configmaps", behind);
    let _running = world.run(controller.with_config(config), move |widget, _| {
        let children = children.clone();
        async move {
            children.ensure_one(&widget).await;
            idle()
        }
    });
    // The store needs its list first: a bookmark, which is late as well.
    tokio::time::sleep(behind + 2 * SECOND).await;
    for value in 1..10 {
        world.set_value("a", value).await;
        tokio::time::sleep(SECOND / 2).await;
    }
    tokio::time::sleep(20 * SECOND + 2 * behind).await;
    count(&world).await
}

/// Rows 31, 32: a child with a generated name is made once, however late the cache is.
#[tokio::test(start_paused = true)]
async fn one_child_is_created_with_a_cache_that_is_behind() {
    for millis in [0, 300, 2000, 4000] {
        let behind = Duration::from_millis(millis);
        assert_eq!(
            children_created(Config::default(), behind).await,
            1,
            "{behind:?}"
        );
    }
}

/// Row 32: the wait times out, with a name that follows from the owner's, and with one that is generated. The first
/// is taken, and the second needs a wait that is long enough.
#[tokio::test(start_paused = true)]
async fn a_wait_that_times_out_makes_no_second_child() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let handle = controller.handle();
    let client = world.wire.tracked();
    let running = world.run(controller, move |widget, _| {
        let (children, client) = (children.clone(), client.clone());
        async move {
            take_a_second().await;
            if children.store.owned_by(&*widget).is_empty() {
                let set = children::Set::new(&client, &*widget, "test");
                let mut map = ConfigMap::default();
                map.metadata.name = Some(children::name(&widget.name_any(), "settings"));
                set.apply(map).await?;
            }
            Ok::<_, children::Error>(Action::requeue(SECOND))
        }
    });
    world.until(0.5).await;
    world.wire.silence("configmaps");
    world.until(30.0).await;
    assert_eq!(handle.counts().overdue_waits, 1, "the others wrote nothing");
    assert!(running.runs().len() > 5);
    assert_eq!(running.errors(), [""; 0]);
    assert_eq!(count(&world).await, 1);

    let behind = 20 * SECOND;
    let config = Config::default().wait_for_writes(MINUTE);
    assert_eq!(children_created(config, behind).await, 1);
}

/// The same without waiting: this is what the waiting is good for.
#[tokio::test(start_paused = true)]
async fn without_waiting_a_late_cache_leads_to_several_children() {
    let config = Config::default().wait_for_writes(Duration::ZERO);
    let created = children_created(config, 4 * SECOND).await;
    assert!(created > 1, "{created}");
}

/// Row 29: a run reads the status that the run before wrote.
#[tokio::test(start_paused = true)]
async fn the_own_status_is_read() {
    let world = World::new(&["a"]).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let running = world.run(world.controller(), move |widget, nth| {
        let widgets = widgets.clone();
        async move {
            if nth == 1 {
                take_a_second().await;
            }
            let seen = widget.status.as_ref().map_or(0, |status| status.seen);
            if seen == 4 {
                return idle();
            }
            let patch = Patch::Merge(json!({ "status": { "seen": seen + 1 } }));
            let params = PatchParams::default();
            widgets.patch_status("a", &params, &patch).await.unwrap();
            Ok(Action::requeue(SECOND / 10))
        }
    });
    world.until(0.5).await;
    world.wire.delay("widgets", SECOND);
    world.until(20.0).await;
    let seen: Vec<_> = running.runs().iter().map(|run| run.seen).collect();
    assert_eq!(seen, [None, Some(1), Some(2), Some(3), Some(4)]);
}

/// Row 31: an object that is created and deleted before the cache has seen it is neither waited for
/// without end nor forgotten before its time.
#[tokio::test(start_paused = true)]
async fn an_object_that_comes_and_goes_is_waited_for_until_it_is_gone() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let running = world.run(controller, move |widget, nth| {
        let (children, noted) = (children.clone(), Arc::clone(&noted));
        async move {
            noted
                .lock()
                .unwrap()
                .push(children.store.owned_by(&*widget).len());
            if nth > 1 {
                return Ok(Action::requeue(SECOND / 10));
            }
            take_a_second().await;
            children.create(&widget, Some("child"), &[]).await;
            children
                .maps
                .delete("child", &DeleteParams::default())
                .await
                .unwrap();
            Ok::<_, Failure>(Action::requeue(SECOND / 10))
        }
    });
    delay_children(&world, SECOND).await;
    world.until(5.0).await;
    // The run ends at 1 s, and both events are late by a second.
    assert_eq!(running.of("a")[1], 3);
    assert!(shown.lock().unwrap().iter().all(|shown| *shown == 0));
}

/// Row 31: an object that somebody else deletes before the cache has seen it is made anew, and the wait for it ends.
#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_deletes_at_once_is_made_anew() {
    for named in [None, Some("child")] {
        let world = World::new(&["a"]).await;
        let (children, controller) = Children::new(&world);
        let handle = controller.handle();
        let others = world.maps.clone();
        let running = world.run(controller, move |widget, nth| {
            let (children, others) = (children.clone(), others.clone());
            async move {
                take_a_second().await;
                if children.store.owned_by(&*widget).is_empty() {
                    children.create(&widget, named, &[]).await;
                }
                if nth == 1 {
                    let all = others.list(&ListParams::default()).await.unwrap();
                    for map in all
                        .items
                        .iter()
                        .filter(|map| !map.owner_references().is_empty())
                    {
                        let params = DeleteParams::default();
                        others.delete(&map.name_any(), &params).await.unwrap();
                    }
                }
                idle()
            }
        });
        delay_children(&world, SECOND).await;
        world.until(20.0).await;
        assert_eq!(count(&world).await, 1);
        let counts = handle.counts();
        assert_eq!((counts.writes, counts.overdue_waits), (2, 0));
        // The second run waits for the first child to be seen, and at its end sees that it is gone.
        assert_eq!(running.of("a"), [0, 2, 4]);
    }
}

/// Row 33: what was deleted is not counted as there, so that nothing more is deleted in its place.
#[tokio::test(start_paused = true)]
async fn a_deleted_child_is_not_seen_again() {
    let world = World::new(&["a"]).await;
    for name in ["one", "two", "three"] {
        world.create_child("a", name).await;
    }
    let (children, controller) = Children::new(&world);
    let _running = world.run(controller, move |widget, nth| {
        let children = children.clone();
        async move {
            take_a_second().await;
            // Never fewer than two are to be there.
            let there = children.store.owned_by(&*widget);
            if there.len() > 2 {
                let name = there[nth % there.len()].name_any();
                children
                    .maps
                    .delete(&name, &DeleteParams::default())
                    .await
                    .unwrap();
            }
            Ok::<_, Failure>(Action::requeue(SECOND / 10))
        }
    });
    delay_children(&world, 2 * SECOND).await;
    world.until(10.0).await;
    assert_eq!(count(&world).await, 2);
}

/// Row 34: a name that is fixed is not created twice, so there is no conflict to be adopted.
#[tokio::test(start_paused = true)]
async fn a_child_with_a_fixed_name_meets_no_conflict() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let running = world.run(controller, move |widget, _| {
        let children = children.clone();
        async move {
            take_a_second().await;
            if children.store.owned_by(&*widget).is_empty() {
                let child = child(&widget, Some("child"), &[]);
                let created = children.maps.create(&PostParams::default(), &child).await;
                created.map_err(|_| Failure("it is there already"))?;
            }
            Ok::<_, Failure>(Action::requeue(SECOND / 10))
        }
    });
    delay_children(&world, 3 * SECOND).await;
    world.until(10.0).await;
    assert_eq!(running.errors(), [""; 0]);
    assert_eq!(count(&world).await, 1);
}

/// Row 34: what is created anew because the cache is behind exists already. That is tried again, and passes; it is
/// no error that waits for somebody.
#[tokio::test(start_paused = true)]
async fn a_child_that_exists_already_is_found_in_the_end() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let config = even_backoff().wait_for_writes(Duration::ZERO);
    let reconcile = move |widget: Arc<Widget>, nth| {
        let children = children.clone();
        async move {
            take_a_second().await;
            if children.store.owned_by(&*widget).is_empty() {
                let child = child(&widget, Some("child"), &[]);
                children.maps.create(&PostParams::default(), &child).await?;
            }
            Ok::<_, kube::Error>(if nth == 1 {
                Action::requeue(SECOND)
            } else {
                Action::await_change()
            })
        }
    };
    let policy = error_policy::classified;
    let running = world.run_with(controller.with_config(config), reconcile, policy);
    delay_children(&world, 5 * SECOND).await;
    world.until(60.0).await;
    assert_eq!(running.of("a"), [0, 2, 4, 7]);
    let errors = running.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors.iter().all(|error| error.contains("already exists")),
        "{errors:?}"
    );
    assert_eq!(count(&world).await, 1);
}

/// Row 37: others go on while one key waits, and what no cache will see is not waited for.
#[tokio::test(start_paused = true)]
async fn only_the_key_that_wrote_waits_and_only_for_what_is_to_come() {
    let world = World::new(&["a", "b"]).await;
    let config = watcher::Config::default().labels("app in (web, api),!ignored");
    let api = world.all::<ConfigMap>();
    let controller = world.controller().owns(api, config);
    let maps: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let running = world.run(controller, move |widget, nth| {
        let maps = maps.clone();
        async move {
            take_a_second().await;
            let labels: &[(&str, &str)] = match (widget.name_any().as_str(), nth) {
                ("a", 1) => &[("app", "web")],
                // The watch will never tell of these.
                ("b", 1) => &[("app", "web"), ("ignored", "")],
                ("b", 2) => &[("app", "batch")],
                _ => return idle(),
            };
            let child = child(&widget, None, labels);
            maps.create(&PostParams::default(), &child).await.unwrap();
            Ok(Action::requeue(SECOND / 10))
        }
    });
    delay_children(&world, 3 * SECOND).await;
    world.until(8.0).await;
    let starts = |name: &str| -> Vec<_> {
        let runs = running.runs().into_iter().filter(|run| run.name == name);
        runs.map(|run| run.at.as_millis() / 100).collect()
    };
    // A run takes a second.
    assert_eq!(starts("b"), [0, 11, 22]);
    assert_eq!(starts("a"), [0, 40], "it waits for its child");
}

/// Row 37: an object that is deleted and made anew under its name has another uid.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_made_anew_is_waited_for() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let (children, controller) = Children::new(&world);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let running = world.run(controller, move |widget, nth| {
        let (children, noted) = (children.clone(), Arc::clone(&noted));
        async move {
            let uids = children
                .store
                .owned_by(&*widget)
                .into_iter()
                .filter_map(|map| map.uid());
            noted.lock().unwrap().push(uids.collect::<Vec<_>>());
            take_a_second().await;
            if nth == 1 {
                children
                    .maps
                    .delete("child", &DeleteParams::default())
                    .await
                    .unwrap();
                children.create(&widget, Some("child"), &[]).await;
            }
            Ok::<_, Failure>(Action::requeue(SECOND / 10))
        }
    });
    delay_children(&world, SECOND).await;
    world.until(5.5).await;
    let now = world.maps.get("child").await.unwrap().uid();
    let shown = shown.lock().unwrap();
    assert_eq!(running.of("a")[1], 3);
    assert_ne!(shown[0], shown[1]);
    assert_eq!(shown[1], Vec::from_iter(now));
}

/// Who is told of a child, besides its owner.
fn friends(map: &ConfigMap) -> Vec<ObjectRef<Widget>> {
    let friend = map.labels().get("friend").cloned();
    let friend = friend.map(|name| ObjectRef::new(&name).within("default"));
    friend.into_iter().collect()
}

/// Row 38: a child that is gone is in no index any more when its owner runs, whether the watch told of it or a list
/// did not show it any more. The last that is known of it says whom it concerned.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_gone_is_in_no_index_and_concerns_whom_it_did() {
    for gap in [false, true] {
        let world = World::new(&["a", "friend"]).await;
        for name in ["child", "stays"] {
            let labels = [("friend", "friend")];
            let owner = world.widgets.get("a").await.unwrap();
            let mut map = child(&owner, Some(name), &labels);
            map.data = Some([("key".into(), name.into())].into());
            world
                .maps
                .create(&PostParams::default(), &map)
                .await
                .unwrap();
        }
        let (children, controller) = Children::new(&world);
        let values = |map: &ConfigMap| map.data.clone().unwrap_or_default().into_values();
        let by_value = children.store.index(values);
        let api = world.all::<ConfigMap>();
        let controller = controller.watches(api, watcher::Config::default(), |map| friends(&map));
        let shown = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&shown);
        let running = world.run(controller, move |widget, _| {
            if widget.name_any() == "a" {
                let owned = children.store.owned_by(&*widget).len();
                let indexed = by_value.get(&"child".to_owned()).len();
                noted.lock().unwrap().push((owned, indexed));
            }
            async { idle() }
        });
        world.until(1.0).await;
        let down = gap.then(|| {
            let refused = world.inject(rule(Verb::Watch, "configmaps"), Fault::Refuse);
            world.server.faults().drop_watches();
            refused
        });
        world.until(2.0).await;
        world.delete_child("child").await;
        if gap {
            world.server.compact();
        }
        world.until(3.0).await;
        assert_eq!(running.of("a").len(), if gap { 1 } else { 2 });
        drop(down);
        world.until(30.0).await;
        assert_eq!(*shown.lock().unwrap(), [(2, 1), (1, 0)], "gap: {gap}");
        assert_eq!(running.of("friend").len(), 2, "gap: {gap}");
    }
}

/// Row 39: a child that leaves the selection of the watch is gone from the cache, and its owner hears of it. It still
/// is there, and is taken back.
#[tokio::test(start_paused = true)]
async fn a_child_that_leaves_the_selection_is_taken_back() {
    let world = World::new(&["a"]).await;
    let (children, controller) =
        Children::of(&world, &watcher::Config::default().labels("app=web"));
    let handle = controller.handle();
    let client = world.wire.tracked();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let running = world.run(controller, move |widget, _| {
        let (children, client, noted) = (children.clone(), client.clone(), Arc::clone(&noted));
        async move {
            let there = children.store.owned_by(&*widget).len();
            noted.lock().unwrap().push(there);
            if there == 0 {
                let set = children::Set::new(&client, &*widget, "test").force();
                let mut map = ConfigMap::default();
                map.metadata.name = Some("child".into());
                map.metadata.labels = Some([("app".into(), "web".into())].into());
                set.apply(map).await?;
            }
            Ok::<_, children::Error>(Action::await_change())
        }
    });
    world.until(1.0).await;
    let made = world.maps.get("child").await.unwrap();
    for labels in [json!(null), json!({ "app": "batch" })] {
        let patch = json!({ "metadata": { "labels": labels } });
        let params = PatchParams::default();
        world
            .maps
            .patch("child", &params, &Patch::Merge(patch))
            .await
            .unwrap();
        tokio::time::sleep(10 * SECOND).await;
        let child = world.maps.get("child").await.unwrap();
        assert_eq!(child.labels()["app"], "web");
        assert_eq!(child.uid(), made.uid(), "it is the same one");
    }
    assert_eq!(running.errors(), [""; 0]);
    // No run after the label was gone sees it, and each that made it is followed by one that does.
    assert_eq!(*shown.lock().unwrap(), [0, 1, 0, 1, 0, 1]);
    assert_eq!(handle.counts().overdue_waits, 0);
}

/// Row 39: the run itself takes the label away. The watch tells that the child is gone, which is all it will ever tell,
/// and until then the next run waits.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_sent_out_of_the_selection_is_waited_for() {
    let world = World::new(&["a"]).await;
    let owner = world.widgets.get("a").await.unwrap();
    let labelled = child(&owner, Some("child"), &[("app", "web")]);
    world
        .maps
        .create(&PostParams::default(), &labelled)
        .await
        .unwrap();
    let (children, controller) =
        Children::of(&world, &watcher::Config::default().labels("app=web"));
    let handle = controller.handle();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let running = world.run(controller, move |widget, nth| {
        let (children, noted) = (children.clone(), Arc::clone(&noted));
        async move {
            noted
                .lock()
                .unwrap()
                .push(children.store.owned_by(&*widget).len());
            take_a_second().await;
            if nth == 1 {
                let patch = Patch::Merge(json!({ "metadata": { "labels": null } }));
                let params = PatchParams::default();
                children.maps.patch("child", &params, &patch).await.unwrap();
            }
            idle()
        }
    });
    delay_children(&world, 2 * SECOND).await;
    world.until(10.0).await;
    assert_eq!(*shown.lock().unwrap(), [1, 0], "no ghost");
    assert_eq!(running.of("a"), [0, 3]);
    assert_eq!(
        (handle.counts().waits, handle.counts().overdue_waits),
        (1, 0)
    );
}

/// A cache that does not come is waited for five seconds, by default.
#[tokio::test(start_paused = true)]
async fn a_wait_is_bounded() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let handle = controller.handle();
    let running = world.run(controller, move |widget, nth| {
        let children = children.clone();
        async move {
            take_a_second().await;
            if nth == 1 {
                children.create(&widget, Some("child"), &[]).await;
            }
            Ok::<_, Failure>(Action::requeue(SECOND))
        }
    });
    world.until(0.5).await;
    world.wire.silence("configmaps");
    world.until(9.5).await;
    assert_eq!(running.of("a"), [0, 6, 8]);
    let told = handle
        .explain(&ObjectRef::new("a").within("default"))
        .to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[2].starts_with("  waited 5.0s in vain for configmaps default/child"),
        "{told}"
    );
    let counts = handle.counts();
    assert_eq!((counts.waits, counts.overdue_waits), (1, 1), "{counts:?}");
}

/// A source that fails from the start has no cache that could be waited for.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_is_not_waited_for() {
    let world = World::new(&["a"]).await;
    let _forbidden = [Verb::List, Verb::Watch]
        .map(|verb| world.inject(rule(verb, "configmaps"), Fault::Forbidden));
    let maps: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let running = world.run(world.controller_of_both(), move |widget, _| {
        let maps = maps.clone();
        async move {
            maps.create(&PostParams::default(), &child(&widget, None, &[]))
                .await
                .unwrap();
            Ok::<_, Failure>(Action::requeue(SECOND))
        }
    });
    world.until(3.5).await;
    assert_eq!(running.of("a"), [0, 1, 2, 3]);
}

/// Runs a controller that notes in an annotation which value it has seen, and how often it ran.
fn annotate(world: &World, config: Config) -> (Running, Handle<Widget>) {
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller().with_config(config);
    let handle = controller.handle();
    let running = world.run(controller, move |widget, _| {
        let widgets = widgets.clone();
        async move {
            let seen = widget.spec.value.to_string();
            if widget.annotations().get("seen") != Some(&seen) {
                let patch =
                    Patch::Merge(json!({ "metadata": { "annotations": { "seen": seen } } }));
                widgets
                    .patch("a", &PatchParams::default(), &patch)
                    .await
                    .unwrap();
            }
            idle()
        }
    });
    (running, handle)
}

/// Row 35: own events are told apart, and dropped if that is wanted.
#[tokio::test(start_paused = true)]
async fn own_events_are_known() {
    for (ignore, runs) in [(false, 4), (true, 2)] {
        let world = World::new(&["a"]).await;
        let (running, handle) = annotate(&world, Config::default().ignore_own_writes(ignore));
        world.until(1.0).await;
        world.set_value("a", 1).await;
        world.until(2.0).await;
        assert_eq!(running.runs().len(), runs);
        let told = handle.explain(&ObjectRef::new("a").within("default"));
        let own = told.runs.iter().filter(|run| run.self_triggered).count();
        assert_eq!(own, runs - 2);
        if !ignore {
            assert_eq!(told.runs[1].reason, "object updated (own write)");
        }
        let counts = handle.counts();
        // The list, the change of somebody else, and both annotations.
        assert_eq!((counts.triggers, counts.self_triggers), (4, 2));
        assert_eq!(
            (counts.runs, counts.self_triggered_runs),
            (runs as u64, own as u64)
        );
        assert_eq!((counts.writes, counts.requests), (2, 2));
        assert_eq!((counts.failures, counts.overdue_waits), (0, 0));
    }
}

/// Row 35: what others change in between passes, also if its event comes together with the own one's,
/// and also if a list shows both at once.
#[tokio::test(start_paused = true)]
async fn changes_of_others_in_between_pass() {
    for relist in [false, true] {
        let world = World::new(&["a"]).await;
        let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
        let config = Config::default().ignore_own_writes(true);
        let others = world.widgets.clone();
        let running = world.run(world.controller().with_config(config), move |_, nth| {
            let (widgets, others) = (widgets.clone(), others.clone());
            async move {
                if nth > 1 {
                    return idle();
                }
                tokio::time::sleep(SECOND).await;
                let params = PatchParams::default();
                let note = Patch::Merge(json!({ "metadata": { "annotations": { "own": "1" } } }));
                let spec = Patch::Merge(json!({ "spec": { "value": 7 } }));
                widgets.patch("a", &params, &note).await.unwrap();
                others.patch("a", &params, &spec).await.unwrap();
                let note = Patch::Merge(json!({ "metadata": { "annotations": { "own": "2" } } }));
                widgets.patch("a", &params, &note).await.unwrap();
                idle()
            }
        });
        world.until(0.5).await;
        let _gap = relist.then(|| world.gap("widgets", SECOND));
        world.until(20.0).await;
        assert_eq!(running.values("a"), [0, 7], "relist: {relist}");
    }
}

/// Row 35: a write that changes nothing has no event, and hides none.
#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_hides_no_event() {
    let world = World::new(&["a"]).await;
    world
        .patch(
            "a",
            json!({ "metadata": { "annotations": { "own": "1" } } }),
        )
        .await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let config = Config::default().ignore_own_writes(true);
    let controller = world.controller().with_config(config);
    let handle = controller.handle();
    let running = world.run(controller, move |_, _| {
        let widgets = widgets.clone();
        async move {
            let note = Patch::Merge(json!({ "metadata": { "annotations": { "own": "1" } } }));
            widgets
                .patch("a", &PatchParams::default(), &note)
                .await
                .unwrap();
            idle()
        }
    });
    for value in 1..4 {
        world.until(value.into()).await;
        world.set_value("a", value).await;
    }
    world.until(5.0).await;
    assert_eq!(running.values("a"), [0, 1, 2, 3]);
    let told = handle.explain(&ObjectRef::new("a").within("default"));
    let changed: Vec<_> = told
        .runs
        .iter()
        .map(|run| run.writes[0].changed())
        .collect();
    assert_eq!(changed, [Some(false); 4]);
}

/// T11: what the reconciler itself writes while it fails neither cuts the backoff short nor makes it
/// longer, wherever it writes it. A change by somebody else does.
#[tokio::test(start_paused = true)]
async fn own_writes_do_not_end_a_backoff() {
    let world = World::new(&["a"]).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, move |_, nth| {
        let widgets = widgets.clone();
        async move {
            let patch = Patch::Merge(json!({ "metadata": {
                "annotations": { "attempts": nth.to_string() },
                "labels": { "attempts": nth.to_string() },
            } }));
            widgets
                .patch("a", &PatchParams::default(), &patch)
                .await
                .unwrap();
            Err::<Action, _>(Failure("not yet"))
        }
    });
    world.until(8.0).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7]);
    // Somebody else's status is no reason, and the own annotation before it still is none.
    world.set_seen("a", 1).await;
    world.until(9.0).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7]);
    world.set_value("a", 1).await;
    world.until(10.0).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7, 9]);
}

/// Row 40: changes that come before it is written down that an object is known do not make it a new one: what is done
/// once for an object is done once, and the changes are seen.
#[tokio::test(start_paused = true)]
async fn what_is_done_once_is_done_once() {
    let world = World::new(&["a"]).await;
    let client = world.wire.tracked();
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let running = world.run(world.controller(), move |widget, _| {
        let (widgets, maps) = (widgets.clone(), maps.clone());
        async move {
            if !widget.annotations().contains_key("known") {
                take_a_second().await;
                let child = child(&widget, None, &[]);
                maps.create(&PostParams::default(), &child).await.unwrap();
                let known = Patch::Merge(json!({ "metadata": { "annotations": { "known": "" } } }));
                let params = PatchParams::default();
                widgets.patch("a", &params, &known).await.unwrap();
            }
            idle()
        }
    });
    world.until(0.2).await;
    world.wire.delay("widgets", SECOND);
    // Before and after the run has ended, and when the annotation has been written but is not seen.
    for (at, value) in [(0.4, 1), (0.8, 2), (1.2, 3)] {
        world.until(at).await;
        world.set_value("a", value).await;
    }
    world.until(20.0).await;
    assert_eq!(count(&world).await, 1);
    assert_eq!(running.values("a").last(), Some(&3));
}

/// Row 40: an update during a long run leads to one more run, also if the run itself writes.
#[tokio::test(start_paused = true)]
async fn an_update_during_a_run_that_writes_leads_to_one_more() {
    let world = World::new(&["a"]).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let config = Config::default().ignore_own_writes(true);
    let running = world.run(world.controller().with_config(config), move |widget, _| {
        let widgets = widgets.clone();
        async move {
            let seen = widget.spec.value;
            let patch = Patch::Merge(json!({ "status": { "seen": seen } }));
            widgets
                .patch_status("a", &PatchParams::default(), &patch)
                .await
                .unwrap();
            tokio::time::sleep(2 * SECOND).await;
            idle()
        }
    });
    world.until(1.0).await;
    world.set_value("a", 1).await;
    world.until(8.0).await;
    assert_eq!(running.values("a"), [0, 1]);
}

/// A controller whose client is not tracked works as ever.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_tracked_works_as_ever() {
    let world = World::new(&["a"]).await;
    let client: Client = world.wire.client();
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let controller = world.controller();
    let handle = controller.handle();
    let running = world.run(controller, move |_, nth| {
        let widgets = widgets.clone();
        async move {
            let patch = Patch::Merge(json!({ "status": { "seen": nth.min(2) } }));
            widgets
                .patch_status("a", &PatchParams::default(), &patch)
                .await
                .unwrap();
            idle()
        }
    });
    world.until(2.0).await;
    assert_eq!(running.runs().len(), 3);
    let told = handle.explain(&ObjectRef::new("a").within("default"));
    assert!(
        told.runs
            .iter()
            .all(|run| run.requests == 0 && run.writes.is_empty())
    );
}

/// What happened to an object is told while the controller runs.
#[tokio::test(start_paused = true)]
async fn the_history_of_an_object_is_told() {
    let world = World::new(&["a"]).await;
    let (children, controller) = Children::new(&world);
    let handle = controller.handle();
    let object = ObjectRef::new("a").within("default");
    assert_eq!(
        handle.explain(&object).to_string(),
        "not reconciled lately\n"
    );
    let _running = world.run(
        controller.with_config(even_backoff()),
        move |widget, nth| {
            let children = children.clone();
            async move {
                take_a_second().await;
                if nth == 1 {
                    children.create(&widget, Some("child"), &[]).await;
                    return Err(Failure("the child is not ready"));
                }
                idle()
            }
        },
    );
    delay_children(&world, SECOND / 2).await;
    assert!(handle.explain(&object).running_for.is_some());
    world.until(1.7).await;
    let told = handle.explain(&object);
    assert_eq!((told.next.failures, told.next.backing_off), (1, true));
    let counts = handle.counts();
    assert_eq!(
        (counts.failures, counts.waits, counts.overdue_waits),
        (1, 1, 0)
    );
    world.until(4.0).await;
    let told = handle.explain(&object).to_string();
    let version = world
        .maps
        .get("child")
        .await
        .unwrap()
        .resource_version()
        .unwrap();
    let expected = [
        "4.0s ago: object listed; took 1.0s, 1 request; failed: the child is not ready".to_owned(),
        format!("  create configmaps default/child to {version}"),
        format!("  waited 500.0ms for configmaps default/child at version {version}"),
    ];
    for (line, expected) in told.lines().zip(&expected) {
        assert_eq!(line, expected, "{told}");
    }
    assert!(told.ends_with("runs when something happens\n"), "{told}");
}

/// When each run of an applier that counts up in an annotation of its object started, in tenths of a second, and
/// what it saw. The store is a second behind.
async fn runs_of_an_applier(config: Config, fails: bool) -> Vec<(u128, u32)> {
    let world = World::new(&["a"]).await;
    let (store, writer) = reflector::store();
    let watch = watcher(world.all::<Widget>(), watcher::Config::default())
        .reflect(writer)
        .applied_objects();
    let queue = trigger_self::<Widget, _>(watch, ());
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let runs = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&runs);
    let start = Instant::now();
    let reconcile = move |widget: Arc<Widget>, _: Arc<()>| {
        let (widgets, noted) = (widgets.clone(), Arc::clone(&noted));
        Box::pin(async move {
            let count = widget.annotations().get("count");
            let count = count.map_or(0, |count| count.parse().unwrap());
            let at = start.elapsed().as_millis() / 100;
            noted.lock().unwrap().push((at, count));
            if at == 0 {
                tokio::time::sleep(SECOND / 2).await;
            }
            if count == 3 {
                return idle();
            }
            let count = (count + 1).to_string();
            let patch = Patch::Merge(json!({ "metadata": { "annotations": { "count": count } } }));
            let params = PatchParams::default();
            widgets.patch("a", &params, &patch).await.unwrap();
            if fails {
                Err(Failure("not yet"))
            } else {
                Ok(Action::requeue(SECOND / 10))
            }
        })
    };
    let policy = error_policy::backoff;
    let run = applier(reconcile, policy, Arc::new(()), store, queue, config);
    let task = tokio::spawn(run.for_each(|_| std::future::ready(())));
    world.until(0.3).await;
    world.wire.delay("widgets", SECOND);
    world.until(20.0).await;
    task.abort();
    let runs = runs.lock().unwrap();
    runs.clone()
}

/// An applier does not know what fills its store, and waits for it to have seen what a run wrote to its own object.
#[tokio::test(start_paused = true)]
async fn an_applier_waits_for_the_object_itself() {
    let runs = runs_of_an_applier(Config::default(), false).await;
    assert_eq!(runs[..4], [(0, 0), (15, 1), (25, 2), (35, 3)]);
    let config = Config::default().wait_for_writes(Duration::ZERO);
    let runs = runs_of_an_applier(config, false).await;
    assert_eq!(
        runs[..3],
        [(0, 0), (6, 0), (7, 0)],
        "this is what the waiting is for"
    );
}

/// T11 for an applier.
#[tokio::test(start_paused = true)]
async fn what_an_applier_writes_does_not_end_a_backoff() {
    let runs = runs_of_an_applier(even_backoff(), true).await;
    assert_eq!(runs, [(0, 0), (15, 1), (35, 2), (75, 3)]);
}

/// Runs a controller that shows in the status what its child says, while the store of its own kind is 8 s behind,
/// which is longer than it waits: the child says 1 at 1 s and 0 again half a second later. Tells what the status says
/// in the end, and when the runs were.
async fn follow_a_child(
    world: &World,
    controller: Controller<Widget>,
    resync: Option<Duration>,
    at_first: impl FnOnce(),
) -> (u32, Vec<u64>) {
    world.create_child("a", "child").await;
    world.touch_child("child", 0).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let maps = world.maps.clone();
    let running = world.run(controller, move |widget, _| {
        let (widgets, maps) = (widgets.clone(), maps.clone());
        async move {
            let child = maps.get("child").await.unwrap().data.unwrap();
            let said: u32 = child["value"].parse().unwrap();
            if widget.status.as_ref().map(|status| status.seen) != Some(said) {
                let patch = Patch::Merge(json!({ "status": { "seen": said } }));
                let params = PatchParams::default();
                let written = widgets.patch_status("a", &params, &patch).await;
                written.map_err(|_| Failure("the connection was lost"))?;
            }
            Ok::<_, Failure>(resync.map_or(Action::await_change(), Action::requeue))
        }
    });
    world.until(0.5).await;
    world.wire.delay("widgets", 8 * SECOND);
    world.until(1.0).await;
    at_first();
    world.touch_child("child", 1).await;
    world.until(1.1).await;
    world.wire.set_noise(None);
    world.until(1.5).await;
    world.touch_child("child", 0).await;
    world.until(60.0).await;
    let status = world.widgets.get("a").await.unwrap().status;
    (status.unwrap().seen, running.of("a"))
}

/// Rows 29, 31, 35: a run that begins before the caches have seen what was written is followed by one that has,
/// also if nobody hears of the event that shows it.
#[tokio::test(start_paused = true)]
async fn a_run_that_reads_too_little_is_followed_by_another() {
    for deaf in [false, true] {
        let world = World::new(&["a"]).await;
        let mut controller = world.controller_of_both();
        controller = if deaf {
            controller.filter(predicates::generation)
        } else {
            controller.with_config(Config::default().ignore_own_writes(true))
        };
        let handle = controller.handle();
        let (seen, runs) = follow_a_child(&world, controller, None, || {}).await;
        assert_eq!(seen, 0, "{runs:?}");
        // The third begins when the wait is over, and the fourth when its event is there.
        assert_eq!(runs, [0, 1, 6, 9]);
        let counts = handle.counts();
        // That run writes, too, but none comes after it.
        assert_eq!((counts.overdue_waits, counts.self_triggered_runs), (2, 1));
    }
}

/// A write whose answer is lost is known to nobody. Its event leads to a run that sees it, and a filter on the
/// generation hides just that event: such a reconciler has to look again by itself.
#[tokio::test(start_paused = true)]
async fn a_filter_hides_a_write_whose_answer_was_lost() {
    for (is_filtered, resync, expected) in [
        (false, None, 0),
        (true, None, 1),
        (true, Some(20 * SECOND), 0),
    ] {
        let world = World::new(&["a"]).await;
        let mut controller = world.controller_of_both().with_config(even_backoff());
        if is_filtered {
            controller = controller.filter(predicates::generation);
        }
        let lose_answers = || {
            world.wire.set_noise(Some(Noise {
                random: Arc::default(),
                late: 0,
                twice: 0,
                cut: 0,
                silent: 0,
                lost: 1000,
            }));
        };
        let (seen, runs) = follow_a_child(&world, controller, resync, lose_answers).await;
        assert_eq!(seen, expected, "{is_filtered} {resync:?} {runs:?}");
        // It fails at 1 s, and the next change of the child runs it before its delay is over.
        assert_eq!(
            runs.iter().filter(|second| **second == 1).count(),
            2,
            "{runs:?}"
        );
    }
}

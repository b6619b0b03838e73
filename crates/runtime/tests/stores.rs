//! Stores: indexes, owners, and subscribers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{FutureExt, StreamExt, channel::mpsc, stream};
use homeostat::{
    Action, Controller, WatchStreamExt, error_policy,
    reflector::{self, ObjectRef, ReflectHandle, store::Writer},
    utils::Change,
    watcher::{self, Event},
};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Node},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use std::sync::{Arc, Mutex};

/// A config map in its `version`-th version; its uid is `uid-of-<name>`.
fn map(namespace: &str, name: &str, version: u32) -> ConfigMap {
    ConfigMap {
        metadata: meta(Some(namespace), name, version),
        ..ConfigMap::default()
    }
}

fn meta(namespace: Option<&str>, name: &str, version: u32) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: namespace.map(Into::into),
        uid: Some(format!("uid-of-{name}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    }
}

fn owned(mut obj: ConfigMap, owner: &impl Resource<DynamicType = ()>) -> ConfigMap {
    obj.owner_references_mut().extend(owner.owner_ref(&()));
    obj
}

fn names<K: Resource>(objects: &[Arc<K>]) -> Vec<String> {
    objects.iter().map(|obj| obj.name_any()).collect()
}

/// What waits for a subscriber, as names and versions.
fn heard(handle: &mut ReflectHandle<ConfigMap>) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(Some(obj)) = handle.next().now_or_never() {
        heard.push(format!(
            "{}{}",
            obj.name_any(),
            obj.resource_version().unwrap()
        ));
    }
    heard
}

#[test]
fn an_index_follows_the_store() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let labelled = |name, version, label: &str| {
        let mut obj = map("default", name, version);
        obj.labels_mut().insert("color".into(), label.into());
        obj
    };
    writer.apply_watcher_event(&Event::Apply(labelled("a", 1, "red")));
    let by_color = store.index(|obj| obj.labels().get("color").cloned());
    let of = |color: &str| names(&by_color.get(&color.to_owned()));
    assert_eq!(of("red"), ["a"]);
    writer.apply_watcher_event(&Event::Apply(labelled("b", 2, "red")));
    writer.apply_watcher_event(&Event::Apply(labelled("a", 3, "blue")));
    assert_eq!(
        (of("red"), of("blue")),
        (vec!["b".into()], vec!["a".into()])
    );
    // What a deletion shows may differ from what was known.
    writer.apply_watcher_event(&Event::Delete(labelled("b", 4, "green")));
    assert_eq!((of("red"), of("green")), (vec![], vec![]));
    for event in [
        Event::Init,
        Event::InitApply(labelled("c", 5, "blue")),
        Event::InitDone,
    ] {
        writer.apply_watcher_event(&event);
    }
    assert_eq!(of("blue"), ["c"]);
    assert_eq!(by_color.count(&"blue".into()), 1);
}

#[test]
fn children_are_found_by_the_uid_of_their_owner() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let owner = Deployment {
        metadata: meta(Some("default"), "owner", 1),
        ..Deployment::default()
    };
    let mut recreated = owner.clone();
    recreated.metadata.uid = Some("another".into());
    writer.apply_watcher_event(&Event::Apply(owned(map("default", "a", 1), &owner)));
    writer.apply_watcher_event(&Event::Apply(map("default", "b", 2)));
    assert_eq!(names(&store.owned_by(&owner)), ["a"]);
    assert_eq!(names(&store.owned_by(&recreated)), [""; 0]);
    writer.apply_watcher_event(&Event::Apply(owned(map("default", "b", 3), &owner)));
    assert_eq!(names(&store.owned_by(&owner)), ["a", "b"]);
    writer.apply_watcher_event(&Event::Delete(map("default", "a", 4)));
    assert_eq!(names(&store.owned_by(&owner)), ["b"]);
}

#[test]
fn an_owner_is_found_by_name_and_uid() {
    let (store, mut writer) = reflector::store::<Node>();
    let node = Node {
        metadata: meta(None, "n", 1),
        ..Node::default()
    };
    writer.apply_watcher_event(&Event::Apply(node.clone()));
    // An object of the cluster owns one in a namespace.
    let child = owned(map("default", "a", 2), &node);
    assert_eq!(
        store.owner_of(&child).map(|obj| obj.name_any()),
        Some("n".into())
    );
    let mut stranger = child.clone();
    stranger.metadata.owner_references = Some(vec![OwnerReference {
        uid: "another".into(),
        ..node.owner_ref(&()).unwrap()
    }]);
    assert!(store.owner_of(&stranger).is_none());
    assert!(store.owner_of(&map("default", "b", 3)).is_none());
}

#[test]
fn objects_are_ordered_and_found_by_namespace() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    for (namespace, name) in [("b", "x"), ("a", "z"), ("ab", "y"), ("a", "w")] {
        writer.apply_watcher_event(&Event::Apply(map(namespace, name, 1)));
    }
    assert_eq!(names(&store.state()), ["w", "z", "y", "x"]);
    assert_eq!(names(&store.in_namespace("a")), ["w", "z"]);
    assert_eq!(names(&store.in_namespace("c")), [""; 0]);
    assert_eq!((store.len(), store.is_empty()), (4, false));
    let found = store.find(|obj| obj.name_any().as_str() > "w");
    assert_eq!(found.map(|obj| obj.name_any()), Some("z".into()));
    assert!(store.get(&ObjectRef::new("w").within("a")).is_some());
    assert!(store.get(&ObjectRef::new("w").within("b")).is_none());
}

/// Section F 63: before the first list is complete, a read can be told from one of an empty store.
#[test]
fn reads_before_the_first_list_are_an_error() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let read = || store.ready().map(reflector::Store::len);
    assert!(read().is_err());
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitApply(map("default", "a", 1)));
    assert!(read().is_err());
    writer.apply_watcher_event(&Event::InitDone);
    assert_eq!(read(), Ok(1));
    // A later list changes nothing of that.
    writer.apply_watcher_event(&Event::Init);
    assert_eq!(read(), Ok(1));
}

/// Section F 65: what a consumer does with an object does not reach the store or other consumers.
#[test]
fn consumers_cannot_change_what_is_in_the_store() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let mut handle = store.subscribe();
    writer.apply_watcher_event(&Event::Apply(map("default", "a", 1)));
    let mut mine = store.state().remove(0);
    Arc::make_mut(&mut mine)
        .labels_mut()
        .insert("mine".into(), String::new());
    let subscribed = handle.next().now_or_never().flatten().unwrap();
    for seen in [store.state().remove(0), subscribed] {
        assert!(seen.labels().is_empty());
    }
    assert_eq!(mine.labels().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn readiness_is_the_first_complete_list() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    assert!(store.wait_until_ready().now_or_never().is_none());
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitApply(map("default", "a", 1)));
    assert!(store.wait_until_ready().now_or_never().is_none());
    assert_eq!(store.len(), 0, "nobody sees a half-built store");
    writer.apply_watcher_event(&Event::InitDone);
    assert!(store.wait_until_ready().await.is_ok());
    drop(writer);
    assert!(store.wait_until_ready().await.is_ok(), "it was ready");
    let (store, writer) = reflector::store::<ConfigMap>();
    drop(writer);
    assert!(store.wait_until_ready().await.is_err());
}

/// T33: whoever comes late sees all objects, then each change, nothing twice and nothing missing.
#[test]
fn a_late_subscriber_sees_all() {
    let (store, mut writer) = reflector::store_shared::<ConfigMap>(1);
    let mut early = writer.subscribe().unwrap();
    for version in 1..=3 {
        let name = ["a", "b", "c"][version as usize - 1];
        writer.apply_watcher_event(&Event::Apply(map("default", name, version)));
    }
    assert_eq!(heard(&mut early), ["a1", "b2", "c3"]);
    let mut late = store.subscribe();
    writer.apply_watcher_event(&Event::Apply(map("default", "b", 4)));
    assert_eq!(heard(&mut late), ["a1", "b4", "c3"]);
    assert_eq!(heard(&mut early), ["b4"]);
    assert_eq!(heard(&mut early.clone()), ["a1", "b4", "c3"]);
    assert_eq!(heard(&mut late), [""; 0]);
}

/// T36: deletions reach subscribers, but for objects that came and went before they were read.
#[test]
fn subscribers_hear_of_deletions() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let mut subscriber = store.subscribe();
    writer.apply_watcher_event(&Event::Apply(map("default", "a", 1)));
    writer.apply_watcher_event(&Event::Apply(map("default", "b", 2)));
    writer.apply_watcher_event(&Event::Delete(map("default", "a", 3)));
    assert_eq!(heard(&mut subscriber), ["b2"]);
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitDone);
    assert_eq!(
        heard(&mut subscriber),
        ["b2"],
        "a list that does not mention b"
    );
    assert!(store.is_empty());
}

/// An object that took the place of another does not hide that the other is gone.
#[test]
fn subscribers_hear_of_both_objects_of_a_name() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let mut subscriber = store.subscribe();
    let mut other = map("default", "a", 1);
    other.metadata.uid = Some("never read".into());
    writer.apply_watcher_event(&Event::Apply(other));
    writer.apply_watcher_event(&Event::Apply(map("default", "a", 2)));
    assert_eq!(heard(&mut subscriber), ["a2"]);
    let mut second = map("default", "a", 3);
    second.metadata.uid = Some("another".into());
    writer.apply_watcher_event(&Event::Apply(second));
    assert_eq!(heard(&mut subscriber), ["a2", "a3"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_wakes_and_ends_with_the_writer() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let all = tokio::spawn(
        store
            .subscribe()
            .map(|obj| obj.name_any())
            .collect::<Vec<_>>(),
    );
    for (version, name) in (1..).zip(["a", "b"]) {
        tokio::task::yield_now().await;
        writer.apply_watcher_event(&Event::Apply(map("default", name, version)));
    }
    drop(writer);
    assert_eq!(all.await.unwrap(), ["a", "b"]);
    assert_eq!(
        store.subscribe().count().await,
        2,
        "what is there, and nothing more"
    );
}

type Maps = Vec<watcher::Result<Event<ConfigMap>>>;

#[tokio::test(start_paused = true)]
async fn changes_show_old_and_new() {
    let events: Maps = vec![
        Ok(Event::Init),
        Ok(Event::InitApply(map("default", "a", 1))),
        Ok(Event::InitApply(map("default", "b", 2))),
        Ok(Event::InitDone),
        Ok(Event::Apply(map("default", "a", 3))),
        Err(watcher::Error::NoResourceVersion),
        Ok(Event::Init),
        Ok(Event::InitApply(map("default", "a", 3))),
        Ok(Event::InitDone),
        Ok(Event::Delete(map("default", "a", 4))),
    ];
    let name =
        |obj: Arc<ConfigMap>| format!("{}{}", obj.name_any(), obj.resource_version().unwrap());
    let changes = stream::iter(events).changes().map(|change| match change {
        Ok(Change::Added(new)) => format!("added {}", name(new)),
        Ok(Change::Modified(old, new)) => format!("modified {} {}", name(old), name(new)),
        Ok(Change::Deleted(last)) => format!("deleted {}", name(last)),
        Err(_) => "error".into(),
    });
    assert_eq!(
        changes.collect::<Vec<_>>().await,
        [
            "added a1",
            "added b2",
            "modified a1 a3",
            "error",
            "deleted b2",
            "deleted a4"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_and_those_that_vanished() {
    let events = || -> Maps {
        vec![
            Ok(Event::Init),
            Ok(Event::InitApply(map("default", "a", 1))),
            Ok(Event::InitApply(map("default", "b", 2))),
            Ok(Event::InitDone),
            Ok(Event::Delete(map("default", "a", 3))),
            Ok(Event::Init),
            Ok(Event::InitDone),
        ]
    };
    let told = stream::iter(events()).deleted_objects();
    let told: Vec<_> = told.map(|obj| obj.unwrap().name_any()).collect().await;
    assert_eq!(told, ["a"]);
    let (_reader, writer) = reflector::store();
    let all = stream::iter(events()).reflect(writer).deleted_objects();
    let all: Vec<_> = all.map(|obj| obj.unwrap().name_any()).collect().await;
    assert_eq!(all, ["a", "b"]);
}

#[derive(Debug, thiserror::Error)]
enum Never {}

/// What a controller reconciled, in order.
type Runs = Arc<Mutex<Vec<String>>>;

async fn note<K: Resource>(obj: Arc<K>, runs: Arc<Runs>) -> Result<Action, Never> {
    runs.lock().unwrap().push(obj.name_any());
    Ok(Action::await_change())
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A writer with one object and a complete list.
fn filled(names: &[&str]) -> Writer<ConfigMap> {
    let mut writer = Writer::default();
    writer.apply_watcher_event(&Event::Init);
    for (version, name) in (1..).zip(names) {
        writer.apply_watcher_event(&Event::InitApply(map("default", name, version)));
    }
    writer.apply_watcher_event(&Event::InitDone);
    writer
}

/// T36, T33: two controllers share a store; a third comes late; children from a shared store wake
/// their owners, when they are deleted too.
#[tokio::test(start_paused = true)]
async fn controllers_share_stores() {
    let owners = filled(&["x", "y"]);
    let mut children = filled(&[]);
    let (reader, child_reader) = (owners.as_reader(), children.as_reader());
    let start = || {
        let runs: Runs = Arc::default();
        let controller = Controller::for_shared_stream(reader.subscribe(), reader.clone())
            .owns_shared_stream(child_reader.subscribe())
            .run(note, error_policy::backoff, Arc::new(Arc::clone(&runs)))
            .for_each(|_| std::future::ready(()));
        tokio::spawn(controller);
        runs
    };
    let take = |runs: &Runs| std::mem::take(&mut *runs.lock().unwrap());
    let (first, second) = (start(), start());
    settle().await;
    assert_eq!(
        (take(&first), take(&second)),
        (vec!["x".into(), "y".into()], vec!["x".into(), "y".into()])
    );

    let child = owned(map("default", "child", 9), &*reader.state()[1]);
    children.apply_watcher_event(&Event::Apply(child.clone()));
    settle().await;
    assert_eq!(
        (take(&first), take(&second)),
        (vec!["y".into()], vec!["y".into()])
    );

    let late = start();
    children.apply_watcher_event(&Event::Delete(child));
    settle().await;
    assert_eq!(
        (take(&first), take(&second)),
        (vec!["y".into()], vec!["y".into()])
    );
    assert_eq!(take(&late), ["x", "y"]);
}

/// A watch that is added to a controller that runs wakes it as any other.
#[tokio::test(start_paused = true)]
async fn sources_join_a_running_controller() {
    let owners = filled(&["x", "y"]);
    let runs: Runs = Arc::default();
    let controller =
        Controller::for_shared_stream(owners.as_reader().subscribe(), owners.as_reader());
    let handle = controller.handle();
    let readiness = controller.readiness();
    let run = controller
        .run(note, error_policy::backoff, Arc::new(Arc::clone(&runs)))
        .for_each(|_| std::future::ready(()));
    tokio::spawn(run);
    settle().await;
    assert_eq!(runs.lock().unwrap().len(), 2);
    let (requests, stream) = mpsc::unbounded();
    handle.reconcile_on(stream);
    requests
        .unbounded_send(ObjectRef::new("y").within("default"))
        .unwrap();
    settle().await;
    assert_eq!(*runs.lock().unwrap(), ["x", "y", "y"]);
    let sources: Vec<_> = readiness
        .sources()
        .into_iter()
        .map(|source| source.name)
        .collect();
    assert_eq!(sources, ["store", "stream of configmaps", "reconcile_on"]);
    assert!(readiness.is_ready());
}

/// How many objects wait for a subscriber.
fn waiting(handle: &ReflectHandle<ConfigMap>) -> usize {
    let text = format!("{handle:?}");
    let (_, count) = text.rsplit_once("waiting: ").unwrap();
    count.trim_end_matches([' ', '}']).parse().unwrap()
}

/// What waits for a subscriber that does not read is bounded by what it has seen and what is there.
#[test]
fn a_subscriber_that_does_not_read_costs_no_more_than_the_store() {
    let (store, mut writer) = reflector::store::<ConfigMap>();
    for name in ["seen", "read"] {
        writer.apply_watcher_event(&Event::Apply(map("default", name, 1)));
    }
    let mut handle = store.subscribe();
    assert_eq!(heard(&mut handle), ["read1", "seen1"]);
    let mut most = 0;
    for number in 0..200_000_u32 {
        let name = format!("a{number}");
        writer.apply_watcher_event(&Event::Apply(map("default", &name, 2 * number)));
        most = most.max(waiting(&handle));
        writer.apply_watcher_event(&Event::Delete(map("default", &name, 2 * number + 1)));
    }
    assert_eq!((most, waiting(&handle)), (1, 0));

    // What it has seen it hears of, once; of what came back, the latest; and what is there.
    writer.apply_watcher_event(&Event::Delete(map("default", "seen", 500_001)));
    writer.apply_watcher_event(&Event::Apply(map("default", "read", 500_002)));
    writer.apply_watcher_event(&Event::Delete(map("default", "read", 500_003)));
    writer.apply_watcher_event(&Event::Apply(map("default", "read", 500_004)));
    writer.apply_watcher_event(&Event::Apply(map("default", "new", 500_005)));
    assert_eq!(waiting(&handle), 3);
    assert_eq!(
        heard(&mut handle),
        ["seen500001", "read500004", "new500005"]
    );
    // It has heard that this one is gone, so when it comes and goes again there is nothing to say.
    writer.apply_watcher_event(&Event::Apply(map("default", "seen", 500_006)));
    writer.apply_watcher_event(&Event::Delete(map("default", "seen", 500_007)));
    assert_eq!(heard(&mut handle), [""; 0]);
    // A filter behind it forgets what is gone.
    let mut filtered = store
        .subscribe()
        .map(|obj| obj)
        .predicate_filter(|_: &ConfigMap| Some(0));
    let mut drain = || std::iter::from_fn(|| filtered.next().now_or_never().flatten()).count();
    assert_eq!(drain(), 2);
    writer.apply_watcher_event(&Event::Delete(map("default", "new", 500_008)));
    writer.apply_watcher_event(&Event::Apply(map("default", "new", 500_009)));
    assert_eq!(drain(), 0, "what is there again is as it was");
    writer.apply_watcher_event(&Event::Delete(map("default", "new", 500_010)));
    assert_eq!(drain(), 1, "a deletion passes");
    assert!(format!("{filtered:?}").contains("remembered: 1"));
}

//! The adapters for watch streams, with scripted events and no server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{Stream, StreamExt, stream};
use homeostat::{
    Predicate, PredicateConfig, WatchStreamExt, predicates, reflector,
    utils::{Backoff, ResetTimerBackoff, StreamBackoff},
    watcher::{self, Event},
};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::{
    ResourceExt,
    api::{ApiResource, DynamicObject, ObjectMeta},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

type Events = Vec<watcher::Result<Event<ConfigMap>>>;

/// A config map `name` with this uid, resourceVersion and generation.
fn object(name: &str, uid: &str, version: u32, generation: i64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            generation: Some(generation),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn with(mut obj: ConfigMap, change: impl FnOnce(&mut ObjectMeta)) -> ConfigMap {
    change(&mut obj.metadata);
    obj
}

#[expect(clippy::unnecessary_wraps, reason = "it stands among errors")]
fn apply(obj: ConfigMap) -> watcher::Result<Event<ConfigMap>> {
    Ok(Event::Apply(obj))
}

fn no_version() -> watcher::Result<Event<ConfigMap>> {
    Err(watcher::Error::NoResourceVersion)
}

/// The resourceVersions of what passes.
async fn versions<S>(stream: S) -> Vec<String>
where
    S: Stream<Item = watcher::Result<ConfigMap>>,
{
    let passed = stream.map(|item| match item {
        Ok(obj) => obj.resource_version().unwrap_or_default(),
        Err(_) => "error".into(),
    });
    passed.collect().await
}

/// Both ways to filter: directly after the events, where deletions show, and elsewhere.
async fn filtered<P>(events: impl Fn() -> Events, predicate: impl Fn() -> P) -> Vec<String>
where
    P: Predicate<ConfigMap>,
{
    let direct = stream::iter(events())
        .applied_objects()
        .predicate_filter(predicate());
    let elsewhere = stream::iter(events()).applied_objects().map(|item| item);
    let elsewhere = elsewhere.predicate_filter(predicate());
    let (direct, elsewhere) = (versions(direct).await, versions(elsewhere).await);
    assert_eq!(direct, elsewhere);
    direct
}

#[tokio::test(start_paused = true)]
async fn a_status_change_does_not_pass_a_generation_filter() {
    let events = || {
        vec![
            apply(object("a", "u", 1, 1)),
            apply(object("a", "u", 2, 1)),
            apply(object("b", "v", 3, 1)),
            no_version(),
            apply(object("a", "u", 4, 2)),
            apply(object("b", "v", 5, 1)),
        ]
    };
    let passed = filtered(events, || predicates::generation).await;
    assert_eq!(passed, ["1", "3", "error", "4"]);
}

/// T42, section D 41: the mark of deletion and changes of finalizers pass a generation filter.
#[tokio::test(start_paused = true)]
async fn deletion_and_finalizers_pass_a_generation_filter() {
    let finalizers = |meta: &mut ObjectMeta| meta.finalizers = Some(vec!["example.com/f".into()]);
    let deleting = |meta: &mut ObjectMeta| {
        meta.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
    };
    let events = || {
        let marked = with(with(object("a", "u", 4, 1), finalizers), deleting);
        vec![
            apply(object("a", "u", 1, 1)),
            apply(with(object("a", "u", 2, 1), finalizers)),
            apply(with(object("a", "u", 3, 1), finalizers)),
            apply(marked),
            apply(with(object("a", "u", 5, 1), deleting)),
        ]
    };
    let passed = filtered(events, || predicates::generation).await;
    assert_eq!(passed, ["1", "2", "4", "5"]);
}

/// T43: another object under the same name passes, though its generation is the same.
#[tokio::test(start_paused = true)]
async fn a_recreated_object_passes() {
    let events = || vec![apply(object("a", "u", 1, 1)), apply(object("a", "v", 2, 1))];
    assert_eq!(
        filtered(events, || predicates::generation).await,
        ["1", "2"]
    );
}

#[tokio::test(start_paused = true)]
async fn predicates_combine_and_fall_back() {
    let labels = |value: &str| {
        let value = value.to_owned();
        move |meta: &mut ObjectMeta| meta.labels = Some([("l".to_owned(), value)].into())
    };
    let no_generation = |meta: &mut ObjectMeta| meta.generation = None;
    let events = || {
        vec![
            apply(with(object("a", "u", 1, 1), labels("x"))),
            apply(with(object("a", "u", 2, 1), labels("y"))),
            apply(with(object("a", "u", 3, 2), labels("y"))),
            apply(with(object("a", "u", 4, 2), labels("y"))),
            apply(with(
                with(object("a", "u", 5, 2), labels("y")),
                no_generation,
            )),
            apply(with(
                with(object("a", "u", 6, 2), labels("y")),
                no_generation,
            )),
            apply(with(
                with(object("a", "u", 7, 2), labels("z")),
                no_generation,
            )),
        ]
    };
    let combined = filtered(events, || {
        predicates::generation.combine(predicates::labels)
    })
    .await;
    assert_eq!(combined, ["1", "2", "3", "5", "7"]);
    let fallback = filtered(events, || {
        predicates::generation.fallback(predicates::labels)
    })
    .await;
    assert_eq!(fallback, ["1", "3", "5", "7"]);
    // Without a generation nothing can be told, so everything passes.
    let generation = filtered(events, || predicates::generation).await;
    assert_eq!(generation, ["1", "3", "5", "6", "7"]);
    let desired = filtered(events, || predicates::desired_state).await;
    assert_eq!(desired, ["1", "2", "3", "5", "6", "7"]);
}

/// T41: a deleted object always passes, and the next one under its name does.
#[tokio::test(start_paused = true)]
async fn a_delete_always_passes() {
    let events: Events = vec![
        apply(object("a", "u", 1, 1)),
        Ok(Event::Delete(object("a", "u", 2, 1))),
        apply(object("a", "u", 3, 1)),
    ];
    let stream = stream::iter(events)
        .touched_objects()
        .predicate_filter(predicates::generation);
    assert_eq!(versions(stream).await, ["1", "2", "3"]);
}

/// T32: nothing is kept of objects that were deleted, or that a list does not mention.
#[tokio::test(start_paused = true)]
async fn a_filter_forgets_deleted_objects() {
    let events: Events = vec![
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        Ok(Event::InitApply(object("b", "v", 2, 1))),
        Ok(Event::InitDone),
        Ok(Event::Delete(object("a", "u", 3, 1))),
        no_version(),
        Ok(Event::Init),
        Ok(Event::InitDone),
    ];
    let filter = stream::iter(events)
        .applied_objects()
        .predicate_filter(predicates::generation);
    let mut filter = std::pin::pin!(filter);
    let remembered = |filter: &dyn std::fmt::Debug| {
        let text = format!("{filter:?}");
        text.split("remembered: ")
            .nth(1)
            .map(|rest| rest.starts_with("0,"))
    };
    assert!(filter.next().await.is_some_and(|item| item.is_ok()));
    assert!(filter.next().await.is_some_and(|item| item.is_ok()));
    assert_eq!(remembered(&filter), Some(false));
    assert!(
        filter.next().await.is_some_and(|item| item.is_err()),
        "after the deletion"
    );
    assert_eq!(remembered(&filter), Some(false), "b is left");
    assert!(filter.next().await.is_none());
    assert_eq!(remembered(&filter), Some(true), "the list is empty");
}

/// T44: where deletions do not show, an object is forgotten after the time to live, by tokio's
/// clock; where they show, an idle object is not, so its status changes never pass.
#[tokio::test(start_paused = true)]
async fn the_time_to_live_follows_the_paused_clock() {
    let paced = || {
        stream::iter(1..=4).then(|version| async move {
            // Seen at 0, 50, 110 and 230 minutes.
            sleep(Duration::from_secs(60 * [0, 50, 60, 120][version - 1])).await;
            apply(object("a", "u", u32::try_from(version).unwrap(), 1))
        })
    };
    let config = || PredicateConfig::default().ttl(Duration::from_secs(3600));
    // Objects that come from no events.
    let elsewhere = paced().filter_map(async |item| match item {
        Ok(Event::Apply(obj)) => Some(Ok(obj)),
        _ => None,
    });
    let elsewhere = elsewhere.predicate_filter_with(predicates::generation, config());
    assert_eq!(
        versions(elsewhere).await,
        ["1", "3", "4"],
        "idle for an hour, and for two"
    );

    let direct = paced().applied_objects();
    let direct = direct.predicate_filter_with(predicates::generation, config());
    assert_eq!(versions(direct).await, ["1"]);
}

/// How many objects a filter remembers.
fn remembered_by(filter: &impl std::fmt::Debug) -> usize {
    let text = format!("{filter:?}");
    let (_, count) = text.rsplit_once("remembered: ").unwrap();
    count.split([',', ' ']).next().unwrap().parse().unwrap()
}

/// Behind `.boxed()` and the like a filter knows as much as directly behind the events: deletions pass, what was
/// deleted or is in no list any more is forgotten, and time does not matter.
#[tokio::test(start_paused = true)]
async fn a_filter_knows_of_deletions_behind_other_adapters() {
    let events = || {
        let mut events = vec![Ok(Event::Init)];
        events.extend(["a", "b", "c"].map(|name| Ok(Event::InitApply(object(name, name, 1, 1)))));
        events.extend([
            Ok(Event::InitDone),
            Ok(Event::Delete(object("a", "a", 2, 1))),
            apply(object("a", "a2", 3, 1)),
            apply(object("b", "b", 4, 1)),
            // c is gone with this list, and comes again.
            Ok(Event::Init),
            Ok(Event::InitApply(object("a", "a2", 3, 1))),
            Ok(Event::InitApply(object("b", "b", 4, 1))),
            Ok(Event::InitDone),
            apply(object("c", "c", 5, 1)),
        ]);
        stream::iter(events).then(async |event| {
            sleep(Duration::from_secs(3 * 3600)).await;
            event
        })
    };
    for touched in [false, true] {
        let (direct, boxed, mapped, chained) = if touched {
            let objects = || events().touched_objects();
            (
                versions(objects().predicate_filter(predicates::generation)).await,
                versions(objects().boxed().predicate_filter(predicates::generation)).await,
                versions(
                    objects()
                        .map(|obj| obj)
                        .predicate_filter(predicates::generation),
                )
                .await,
                versions(
                    objects()
                        .boxed()
                        .predicate_filter(predicates::generation)
                        .predicate_filter(predicates::generation),
                )
                .await,
            )
        } else {
            let objects = || events().applied_objects();
            (
                versions(objects().predicate_filter(predicates::generation)).await,
                versions(objects().boxed().predicate_filter(predicates::generation)).await,
                versions(
                    objects()
                        .map(|obj| obj)
                        .predicate_filter(predicates::generation),
                )
                .await,
                versions(
                    objects()
                        .predicate_filter(predicates::generation)
                        .boxed()
                        .predicate_filter(predicates::generation),
                )
                .await,
            )
        };
        let expected: &[&str] = if touched {
            &["1", "1", "1", "2", "3", "5"]
        } else {
            &["1", "1", "1", "3", "5"]
        };
        for passed in [direct, boxed, mapped, chained] {
            assert_eq!(passed, expected, "touched: {touched}");
        }
    }
}

/// What a filter remembers is bounded by what is there, and not by what has happened: 24 MiB for 300,000 events of one
/// object, and 66 MiB for as many objects that came and went.
#[tokio::test(start_paused = true)]
async fn a_filter_remembers_what_is_there() {
    let came_and_went = || {
        stream::iter(0..30_000).flat_map(|number| {
            let name = format!("a{number}");
            let obj = object(&name, &name, number + 1, 1);
            stream::iter([apply(obj.clone()), Ok(Event::Delete(obj))])
        })
    };
    let (_reader, writer) = reflector::store();
    let mut behind = came_and_went()
        .reflect(writer)
        .applied_objects()
        .map(|item| item)
        .predicate_filter(predicates::generation);
    assert_eq!(behind.by_ref().count().await, 30_000);
    assert_eq!(remembered_by(&behind), 0, "a store says which are gone");
    // From events of a program's own it hears only how many are gone.
    let mut behind = came_and_went()
        .applied_objects()
        .map(|item| item)
        .predicate_filter(predicates::generation);
    assert_eq!(behind.by_ref().count().await, 30_000);
    let kept = remembered_by(&behind);
    assert!((1..=32).contains(&kept), "{kept}");

    let one: Vec<watcher::Result<_>> = (0..30_000)
        .map(|version| Ok(object("a", "u", version + 1, 1)))
        .collect();
    let mut one = stream::iter(one).predicate_filter(predicates::generation);
    assert_eq!(one.by_ref().count().await, 1);
    assert_eq!(remembered_by(&one), 1);
    assert!(format!("{one:?}").contains("ages: 1"), "{one:?}");
}

/// The first list comes out whole, also when some of its objects came before it, as in the scripts of tests.
#[tokio::test(start_paused = true)]
async fn the_first_list_comes_out_whole() {
    let events: Events = vec![
        apply(object("a", "u", 1, 1)),
        apply(object("c", "w", 2, 1)),
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        Ok(Event::InitApply(object("b", "v", 3, 1))),
        Ok(Event::InitDone),
    ];
    let (_reader, writer) = reflector::store();
    let passed = stream::iter(events).reflect(writer).map(|event| {
        let name = |obj: ConfigMap| obj.name_any();
        match event.unwrap() {
            Event::Apply(obj) => name(obj),
            Event::Delete(obj) => format!("-{}", name(obj)),
            Event::Init => "(".into(),
            Event::InitApply(obj) => format!("+{}", name(obj)),
            Event::InitDone => ")".into(),
        }
    });
    let passed: Vec<String> = passed.collect().await;
    assert_eq!(passed, ["a", "c", "(", "+a", "+b", "-c", ")"]);
}

/// An object that is gone is forgotten, whoever says so: it passes when it comes again, also under the same uid, as
/// the objects of tests do. The others stay.
#[tokio::test(start_paused = true)]
async fn a_store_says_to_filters_further_down_which_object_is_gone() {
    let events: Events = vec![
        apply(object("a", "u", 1, 1)),
        apply(object("b", "v", 2, 1)),
        Ok(Event::Delete(object("a", "u", 3, 1))),
        apply(object("a", "u", 4, 1)),
        apply(object("b", "v", 5, 1)),
    ];
    let (_reader, writer) = reflector::store();
    let objects = stream::iter(events).reflect(writer).applied_objects();
    let filtered = objects.boxed().predicate_filter(predicates::generation);
    assert_eq!(versions(filtered).await, ["1", "2", "4"]);
}

/// Of objects that nobody keeps for ever, such as borrowed ones, the adapters ask no more than kube's.
#[tokio::test(start_paused = true)]
async fn adapters_take_what_is_borrowed() {
    let text = String::from(" a ");
    let events = [text.as_str(), "b"].map(|text| Ok(Event::Apply(text)));
    let objects = stream::iter(events)
        .modify(|text: &mut &str| *text = text.trim())
        .touched_objects();
    let objects: Vec<&str> = objects.map(|item| item.unwrap()).collect().await;
    assert_eq!(objects, ["a", "b"]);
}

/// T45: filters work on shared objects and on dynamic ones.
#[tokio::test(start_paused = true)]
async fn filters_work_on_shared_and_dynamic_objects() {
    let shared = [
        object("a", "u", 1, 1),
        object("a", "u", 2, 1),
        object("a", "u", 3, 2),
    ];
    let shared = stream::iter(shared.map(Arc::new)).predicate_filter(predicates::generation);
    let shared: Vec<_> = shared.map(|obj| obj.resource_version()).collect().await;
    assert_eq!(shared, [Some("1".into()), Some("3".into())]);

    let kind = ApiResource::erase::<ConfigMap>(&());
    let dynamic = |version: &str, generation| {
        let mut obj = DynamicObject::new("a", &kind);
        obj.metadata.resource_version = Some(version.into());
        obj.metadata.generation = Some(generation);
        Ok(Event::Apply(obj))
    };
    let dynamic = stream::iter([dynamic("1", 1), dynamic("2", 1), dynamic("3", 2)])
        .applied_objects()
        .predicate_filter(predicates::generation);
    let dynamic: Vec<_> = dynamic
        .map(|obj| obj.unwrap().resource_version())
        .collect()
        .await;
    assert_eq!(dynamic, [Some("1".into()), Some("3".into())]);
}

/// What a stream of events says, one word an event.
async fn words(stream: impl Stream<Item = watcher::Result<Event<ConfigMap>>>) -> Vec<String> {
    let version = |obj: ConfigMap| format!("{}{}", obj.name_any(), obj.resource_version().unwrap());
    let words = stream.map(|item| match item {
        Ok(Event::Init) => "init".into(),
        Ok(Event::InitApply(obj)) => format!("init-apply {}", version(obj)),
        Ok(Event::InitDone) => "init-done".into(),
        Ok(Event::Apply(obj)) => format!("apply {}", version(obj)),
        Ok(Event::Delete(obj)) => format!("delete {}", version(obj)),
        Err(_) => "error".into(),
    });
    words.collect().await
}

/// R14, T17: the first list comes out whole, a later one as what it changed.
#[tokio::test(start_paused = true)]
async fn reflect_passes_on_true_changes() {
    let events: Events = vec![
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        no_version(),
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        Ok(Event::InitApply(object("b", "v", 2, 1))),
        Ok(Event::InitDone),
        apply(object("a", "u", 3, 1)),
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 3, 1))),
        Ok(Event::InitApply(object("c", "w", 4, 1))),
        Ok(Event::InitDone),
        Ok(Event::Delete(object("a", "u", 5, 1))),
    ];
    let (reader, writer) = reflector::store();
    let said = words(stream::iter(events).reflect(writer)).await;
    assert_eq!(
        said,
        [
            "error",
            "init",
            "init-apply a1",
            "init-apply b2",
            "init-done",
            "apply a3",
            "delete b2",
            "apply c4",
            "delete a5",
        ]
    );
    assert_eq!(reader.state().len(), 1);
}

/// Whoever hears of an object finds it in the store, in relists too.
#[tokio::test(start_paused = true)]
async fn what_reflect_passes_on_is_in_the_store() {
    let events: Events = vec![
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        Ok(Event::InitDone),
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 2, 1))),
        Ok(Event::InitApply(object("b", "v", 3, 1))),
        Ok(Event::InitDone),
    ];
    let (reader, writer) = reflector::store();
    let mut stream = std::pin::pin!(stream::iter(events).reflect(writer).applied_objects());
    let mut heard = 0;
    while let Some(item) = stream.next().await {
        let obj = item.unwrap();
        let stored = reader.get(&(&obj).into()).expect("it is in the store");
        assert_eq!(stored.resource_version(), obj.resource_version());
        heard += 1;
    }
    assert_eq!(heard, 3);
}

#[tokio::test(start_paused = true)]
async fn modify_reaches_every_object() {
    let events: Events = vec![
        Ok(Event::Init),
        Ok(Event::InitApply(object("a", "u", 1, 1))),
        Ok(Event::InitDone),
        apply(object("b", "v", 2, 1)),
        Ok(Event::Delete(object("c", "w", 3, 1))),
    ];
    let stream = stream::iter(events).modify(|obj| {
        obj.labels_mut().insert("seen".into(), "yes".into());
    });
    let labels: Vec<_> = stream
        .touched_objects()
        .map(|obj| obj.unwrap().labels().get("seen").cloned())
        .collect()
        .await;
    assert_eq!(labels, vec![Some("yes".to_owned()); 3]);
}

/// Delays of 1, 2, 3 s, and then none.
#[derive(Clone, Default)]
struct Three(u64);

impl Iterator for Three {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0 += 1;
        (self.0 <= 3).then(|| Duration::from_secs(self.0))
    }
}

impl Backoff for Three {
    fn reset(&mut self) {
        self.0 = 0;
    }
}

#[tokio::test(start_paused = true)]
async fn stream_backoff_waits_after_errors_and_gives_up() {
    let start = Instant::now();
    let items = [
        Err("a"),
        Ok(1),
        Err("b"),
        Err("c"),
        Err("d"),
        Err("e"),
        Ok(2),
    ];
    let times = StreamBackoff::new(stream::iter(items), Three::default())
        .map(|_| start.elapsed().as_secs());
    assert_eq!(times.collect::<Vec<_>>().await, [0, 1, 1, 2, 4, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_reset_timer_starts_over_after_quiet_time_only() {
    let mut backoff = ResetTimerBackoff::new(Three::default(), Duration::from_secs(60));
    assert_eq!(backoff.next(), Some(Duration::from_secs(1)));
    backoff.reset();
    assert_eq!(backoff.next(), Some(Duration::from_secs(2)));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(backoff.next(), Some(Duration::from_secs(1)));
}

#[test]
fn references_name_objects() {
    use reflector::{Lookup, ObjectRef};
    let obj = object("a", "u", 1, 1);
    let reference = ObjectRef::from_obj(&obj);
    assert_eq!(reference.to_string(), "ConfigMap.v1./a.default");
    assert_eq!(reference, ObjectRef::new("a").within("default"));
    assert_ne!(reference, ObjectRef::new("a"));
    assert_eq!(reference.extra.uid.as_deref(), Some("u"));
    let erased = reference.clone().erase();
    assert_eq!(erased.to_string(), reference.to_string());
    assert_eq!(erased.dyntype.api_version, "v1");
    assert_eq!(Lookup::resource_version(&obj).as_deref(), Some("1"));
    let other: ObjectRef<k8s_openapi::api::core::v1::Secret> = reference.into_kind_unchecked(());
    assert_eq!(other.to_string(), "Secret.v1./a.default");
}

/// Section D 46: the version in an owner reference does not count, its group and kind do.
#[test]
fn owners_are_found_across_versions() {
    use k8s_openapi::api::apps::v1::Deployment;
    use reflector::ObjectRef;
    let owner = |api_version: &str, kind: &str| OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: "a".into(),
        uid: "u".into(),
        ..OwnerReference::default()
    };
    let found = |api_version, kind| {
        let owner = owner(api_version, kind);
        ObjectRef::<Deployment>::from_owner_ref(Some("ns"), &owner, ()).map(|obj| obj.to_string())
    };
    let expected = Some("Deployment.v1.apps/a.ns".to_owned());
    assert_eq!(found("apps/v1", "Deployment"), expected);
    assert_eq!(found("apps/v1beta1", "Deployment"), expected);
    assert_eq!(found("v1", "Deployment"), None);
    assert_eq!(found("apps.example.com/v1", "Deployment"), None);
    assert_eq!(found("apps/v1", "ReplicaSet"), None);
}

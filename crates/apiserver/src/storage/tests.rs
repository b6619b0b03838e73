use serde_json::json;

use super::*;

fn store() -> (Store, Arc<str>) {
    (Store::new(100), Arc::from("/configmaps"))
}

fn named(name: &str, value: u64) -> Value {
    json!({ "metadata": { "name": name }, "value": value })
}

fn listed(store: &Store, resource: &Arc<str>, namespace: Option<&str>, at: u64) -> Vec<String> {
    store
        .scan(resource, namespace, at, None)
        .map(|(key, object)| format!("{}/{}={}", key.namespace, key.name, object["value"]))
        .collect()
}

#[test]
fn lists_are_ordered_and_show_any_kept_revision() {
    let (mut store, resource) = store();
    store.put(Key::new(&resource, "b", "x"), named("x", 1));
    store.put(Key::new(&resource, "a", "z"), named("z", 2));
    store.put(Key::new(&resource, "a", "y"), named("y", 3));
    let before = store.revision();
    store.put(Key::new(&resource, "a", "y"), named("y", 4));
    store.remove(&Key::new(&resource, "b", "x"));

    let now = store.revision();
    assert_eq!(listed(&store, &resource, None, now), ["a/y=4", "a/z=2"]);
    assert_eq!(
        listed(&store, &resource, None, before),
        ["a/y=3", "a/z=2", "b/x=1"]
    );
    assert_eq!(listed(&store, &resource, Some("b"), before), ["b/x=1"]);
}

#[test]
fn a_removal_carries_its_own_revision_and_the_last_state() {
    let (mut store, resource) = store();
    let key = Key::new(&resource, "a", "x");
    store.put(key.clone(), named("x", 1));
    let last = store.remove(&key).unwrap();
    assert_eq!(last["metadata"]["resourceVersion"], json!("3"));
    assert_eq!(last["value"], json!(1));
    let kinds: Vec<_> = store
        .changes_after(&resource, 0)
        .unwrap()
        .map(|change| change.kind)
        .collect();
    assert_eq!(kinds, [ChangeKind::Added, ChangeKind::Deleted]);
}

#[test]
fn compaction_forgets_changes_and_keeps_the_present_state() {
    let (mut store, resource) = store();
    store.put(Key::new(&resource, "a", "x"), named("x", 1));
    store.put(Key::new(&resource, "a", "x"), named("x", 2));
    store.put(Key::new(&resource, "a", "y"), named("y", 3));
    store.remove(&Key::new(&resource, "a", "y"));
    let now = store.revision();
    store.compact(now);
    assert_eq!(listed(&store, &resource, None, now), ["a/x=2"]);
    assert_eq!(store.changes_after(&resource, now).unwrap().len(), 0);
    assert_eq!(
        store.changes_after(&resource, 1).err(),
        Some(Compacted { oldest: now })
    );
    assert_eq!(store.entries.len(), 1);
}

#[test]
fn the_history_is_bounded() {
    let resource: Arc<str> = Arc::from("/configmaps");
    let mut store = Store::new(3);
    for value in 0..10 {
        store.put(Key::new(&resource, "a", "x"), named("x", value));
    }
    assert_eq!(store.log.len(), 3);
    assert_eq!(store.compacted(), store.revision() - 3);
    assert_eq!(store.entries[&Key::new(&resource, "a", "x")].len(), 4);
}

#[test]
fn objects_are_found_by_uid_and_by_owner() {
    let (mut store, resource) = store();
    let key = Key::new(&resource, "a", "x");
    let owned = json!({ "metadata": { "uid": "u1", "ownerReferences": [{ "uid": "o1" }] } });
    store.put(key.clone(), owned);
    assert_eq!(store.by_uid("u1"), Some(&key));
    assert_eq!(store.dependents("o1").collect::<Vec<_>>(), [&key]);
    store.put(key.clone(), json!({ "metadata": { "uid": "u1" } }));
    assert_eq!(store.dependents("o1").count(), 0);
    store.remove(&key);
    assert!(store.by_uid("u1").is_none());
}

#[test]
fn what_was_written_long_ago_reads_as_it_was_written() {
    let (mut store, resource) = (Store::new(10), Arc::from("/configmaps"));
    let key = |index: usize| Key::new(&resource, "a", &format!("{index:05}"));
    let written: Vec<Object> = (0..1_010)
        .map(|index| store.put(key(usize::try_from(index).unwrap()), named("x", index)))
        .map(|object| Object::new(Value::clone(&object)))
        .collect();
    assert_eq!(store.recent.borrow().len(), 1_000);
    for (index, object) in written.iter().enumerate() {
        let read = store.get(&key(index)).unwrap();
        assert_eq!(*read, **object);
        // As long as somebody uses it, it is not decoded again.
        let again = store.get(&key(index)).unwrap();
        let (read, again): (&Value, &Value) = (&read, &again);
        assert!(std::ptr::eq(read, again));
    }
}

#[test]
fn a_change_tells_the_states_around_it_as_long_as_it_is_known() {
    let (mut store, resource) = store();
    let key = Key::new(&resource, "a", "x");
    store.put(key.clone(), named("x", 1));
    store.compact(store.revision());
    store.put(key.clone(), named("x", 2));
    store.remove(&key);
    store.put(key, named("x", 3));

    let around = |change: &Change| {
        let shown = |object: Option<Object>| {
            object
                .map(|object| format!("{}@{}", object["value"], object::resource_version(&object)))
        };
        let states = [
            store.previous_of(change),
            store.object_of(change),
            store.last_of(change),
        ];
        (
            change.kind,
            states.map(shown).map(Option::unwrap_or_default),
        )
    };
    let changes: Vec<_> = store
        .all_changes_after(0)
        .map(|change| around(change))
        .collect();
    let states = |states: [&str; 3]| states.map(str::to_owned);
    assert_eq!(
        changes,
        [
            (ChangeKind::Modified, states(["1@2", "2@3", "1@3"])),
            (ChangeKind::Deleted, states(["2@3", "2@4", "2@4"])),
            (ChangeKind::Added, states(["", "3@5", ""])),
        ]
    );
}

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
    assert_eq!(store.by_uid("u1").map(|(key, _)| key), Some(&key));
    assert_eq!(store.dependents("o1").collect::<Vec<_>>(), [&key]);
    store.put(key.clone(), json!({ "metadata": { "uid": "u1" } }));
    assert_eq!(store.dependents("o1").count(), 0);
    store.remove(&key);
    assert!(store.by_uid("u1").is_none());
}

//! What was stored, as a test looks at it: every object, and every write.

use serde_json::Value;

use crate::registry::Registry;
use crate::storage::{ChangeKind, Key};

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredObject {
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace; empty if none.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The object, in the version in which it is stored.
    pub value: Value,
}

/// A write that was stored, whoever made it: a client, the garbage collector, the namespace controller.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredChange {
    /// The revision that the write made.
    pub revision: u64,
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace; empty if none.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The object before the write; none if the write created it.
    pub before: Option<Value>,
    /// The object after the write; none if the write removed it.
    pub after: Option<Value>,
}

/// All objects, in the order of their resources, namespaces and names.
pub(crate) fn objects(registry: &Registry) -> Vec<StoredObject> {
    let store = &registry.store;
    let found = store.keys().filter_map(|key| Some((key, store.get(key)?)));
    found
        .map(|(key, object)| {
            let (group, resource) = names(key);
            StoredObject {
                group,
                resource,
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                value: Value::clone(&object),
            }
        })
        .collect()
}

/// The writes after a revision, oldest first.
pub(crate) fn changes_after(registry: &Registry, revision: u64) -> Vec<StoredChange> {
    let store = &registry.store;
    store
        .all_changes_after(revision)
        .map(|change| {
            let (group, resource) = names(&change.key);
            let before = store.previous_of(change);
            let after = match change.kind {
                ChangeKind::Added | ChangeKind::Modified => store.object_of(change),
                ChangeKind::Deleted => None,
            };
            StoredChange {
                revision: change.revision,
                group,
                resource,
                namespace: change.key.namespace.clone(),
                name: change.key.name.clone(),
                before: before.map(|object| Value::clone(&object)),
                after: after.map(|object| Value::clone(&object)),
            }
        })
        .collect()
}

/// Group and plural name.
fn names(key: &Key) -> (String, String) {
    let (group, resource) = key.resource.split_once('/').unwrap_or(("", &key.resource));
    (group.to_owned(), resource.to_owned())
}

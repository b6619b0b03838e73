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

/// An object as it is stored, without a copy of it: what [`visit_objects`](crate::ApiServer::visit_objects) shows.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ObjectView<'a> {
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The namespace; empty if none.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The object, in the version in which it is stored.
    pub value: &'a Value,
}

/// A write without copies of the object: what [`visit_changes`](crate::ApiServer::visit_changes) shows.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ChangeView<'a> {
    /// The revision that the write made.
    pub revision: u64,
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The namespace; empty if none.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The object before the write; none if the write created it.
    pub before: Option<&'a Value>,
    /// The object after the write; none if the write removed it.
    pub after: Option<&'a Value>,
}

/// Shows all objects, in the order of their resources, namespaces and names.
pub(crate) fn visit_objects(registry: &Registry, mut look: impl FnMut(ObjectView<'_>)) {
    let store = &registry.store;
    for key in store.keys() {
        let Some(object) = store.get(key) else {
            continue;
        };
        let (group, resource) = names(key);
        look(ObjectView {
            group,
            resource,
            namespace: &key.namespace,
            name: &key.name,
            value: &object,
        });
    }
}

/// All objects, in the order of their resources, namespaces and names.
pub(crate) fn objects(registry: &Registry) -> Vec<StoredObject> {
    let mut objects = Vec::new();
    visit_objects(registry, |view| {
        objects.push(StoredObject {
            group: view.group.to_owned(),
            resource: view.resource.to_owned(),
            namespace: view.namespace.to_owned(),
            name: view.name.to_owned(),
            value: view.value.clone(),
        });
    });
    objects
}

/// Shows the writes after a revision, oldest first.
pub(crate) fn visit_changes(
    registry: &Registry,
    revision: u64,
    mut look: impl FnMut(ChangeView<'_>),
) {
    let store = &registry.store;
    for change in store.all_changes_after(revision) {
        let (group, resource) = names(&change.key);
        let before = store.previous_of(change);
        let after = match change.kind {
            ChangeKind::Added | ChangeKind::Modified => store.object_of(change),
            ChangeKind::Deleted => None,
        };
        look(ChangeView {
            revision: change.revision,
            group,
            resource,
            namespace: &change.key.namespace,
            name: &change.key.name,
            before: before.as_deref(),
            after: after.as_deref(),
        });
    }
}

/// The writes after a revision, oldest first.
pub(crate) fn changes_after(registry: &Registry, revision: u64) -> Vec<StoredChange> {
    let mut changes = Vec::new();
    visit_changes(registry, revision, |view| {
        changes.push(StoredChange {
            revision: view.revision,
            group: view.group.to_owned(),
            resource: view.resource.to_owned(),
            namespace: view.namespace.to_owned(),
            name: view.name.to_owned(),
            before: view.before.cloned(),
            after: view.after.cloned(),
        });
    });
    changes
}

/// Group and plural name.
fn names(key: &Key) -> (&str, &str) {
    key.resource.split_once('/').unwrap_or(("", &key.resource))
}

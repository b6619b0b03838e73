//! The end of custom resource definitions: their objects go first.

use std::collections::BTreeSet;

use super::{delete_options, write_options};
use crate::object;
use crate::registry::{CLEANUP_FINALIZER, Registry};
use crate::storage::Key;

/// Where definitions are stored.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Looks at each definition that changed, and remembers those that are being deleted.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    seen: u64,
    ending: BTreeSet<Key>,
}

impl Definitions {
    /// Deletes one object of a definition that is being deleted, or lets the definition go.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        let store = &registry.store;
        let is_definition = |key: &Key| &*key.resource == DEFINITIONS;
        let changed: BTreeSet<Key> = if self.seen < store.compacted() {
            let all = store.keys().filter(|key| is_definition(key));
            all.cloned().collect()
        } else {
            let changes = store.all_changes_after(self.seen);
            let own = changes.filter(|change| is_definition(&change.key));
            own.map(|change| change.key.clone()).collect()
        };
        self.seen = store.revision();
        let ends = |key: &Key| {
            store.get(key).is_some_and(|definition| {
                object::is_being_deleted(&definition)
                    && object::finalizers(&definition).any(|one| one == CLEANUP_FINALIZER)
            })
        };
        self.ending.retain(&ends);
        self.ending.extend(changed.into_iter().filter(ends));
        let ending: Vec<Key> = self.ending.iter().cloned().collect();
        ending.iter().any(|key| {
            // A definition is named `<plural>.<group>`.
            let (plural, group) = key.name.split_once('.').unwrap_or_default();
            step_of(registry, key, &format!("{group}/{plural}"))
        })
    }
}

fn step_of(registry: &mut Registry, definition: &Key, storage: &str) -> bool {
    let now = registry.store.revision();
    let objects: Vec<(Key, bool)> = registry
        .store
        .scan(&storage.into(), None, now, None)
        .map(|(key, object)| (key.clone(), object::is_being_deleted(&object)))
        .collect();
    if objects.is_empty() {
        return registry.edit(definition, &write_options(), |object| {
            let rest = object::finalizers(object).filter(|one| *one != CLEANUP_FINALIZER);
            let rest: Vec<String> = rest.map(str::to_owned).collect();
            object::set_finalizers(object, &rest);
        });
    }
    objects
        .iter()
        .filter(|(_, deleting)| !deleting)
        .any(|(key, _)| {
            let target = registry.target_of(key);
            target.is_some_and(|target| registry.delete(&target, &delete_options()).is_ok())
        })
}

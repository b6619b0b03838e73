//! The end of custom resource definitions: their objects go first.

use super::{delete_options, write_options};
use crate::object;
use crate::registry::{CLEANUP_FINALIZER, Registry};
use crate::storage::Key;

/// Deletes one object of a definition that is being deleted, or lets the definition go.
pub(super) fn step(registry: &mut Registry) -> bool {
    let Some(definitions) = registry
        .catalog
        .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .cloned()
    else {
        return false;
    };
    let now = registry.store.revision();
    let ending: Vec<(Key, String)> = registry
        .store
        .scan(&definitions.storage, None, now, None)
        .filter(|(_, definition)| object::is_being_deleted(definition))
        .filter(|(_, definition)| {
            object::finalizers(definition).any(|one| one == CLEANUP_FINALIZER)
        })
        .map(|(key, definition)| {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let group = text(&definition["spec"]["group"]);
            (
                key.clone(),
                format!("{group}/{}", text(&definition["spec"]["names"]["plural"])),
            )
        })
        .collect();
    ending
        .iter()
        .any(|(key, storage)| step_of(registry, key, storage))
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

//! The end of namespaces: what is in them goes first.

use std::sync::Arc;

use serde_json::json;

use super::{delete_options, write_options};
use crate::object;
use crate::registry::Registry;
use crate::storage::Key;

/// Deletes one object of a namespace that is being deleted, or lets an empty one go.
pub(super) fn step(registry: &mut Registry) -> bool {
    let Some(namespaces) = registry.catalog.find("", "v1", "namespaces").cloned() else {
        return false;
    };
    let now = registry.store.revision();
    let ending: Vec<String> = registry
        .store
        .scan(&namespaces.storage, None, now, None)
        .filter(|(_, namespace)| object::is_being_deleted(namespace))
        .filter(|(_, namespace)| namespace["spec"]["finalizers"][0] == "kubernetes")
        .map(|(key, _)| key.name.clone())
        .collect();
    ending
        .iter()
        .any(|name| step_of(registry, &Key::new(&namespaces.storage, "", name)))
}

fn step_of(registry: &mut Registry, namespace: &Key) -> bool {
    let mut is_empty = true;
    for storage in storages(registry) {
        let mut after = None;
        while let Some((key, deleting)) =
            next_in(registry, &storage, &namespace.name, after.as_ref())
        {
            is_empty = false;
            if !deleting
                && let Some(target) = registry.target_of(&key)
                && registry.delete(&target, &delete_options()).is_ok()
            {
                return true;
            }
            after = Some(key);
        }
    }
    is_empty && finish(registry, namespace)
}

/// Lets an empty namespace go.
fn finish(registry: &mut Registry, namespace: &Key) -> bool {
    let Some(mut target) = registry.target_of(namespace) else {
        return false;
    };
    target.subresource = Some("finalize".to_owned());
    let Some(stored) = registry.store.get(namespace) else {
        return false;
    };
    let mut body = serde_json::Value::clone(&stored);
    body["spec"]["finalizers"] = json!([]);
    registry.update(&target, body, &write_options()).is_ok()
}

/// Where objects of namespaces are stored, pods first.
fn storages(registry: &Registry) -> Vec<Arc<str>> {
    let namespaced = registry
        .catalog
        .all()
        .filter(|resource| resource.namespaced);
    let mut storages: Vec<_> = namespaced
        .map(|resource| Arc::clone(&resource.storage))
        .collect();
    storages.sort_by_key(|storage| (**storage != *"/pods", Arc::clone(storage)));
    storages.dedup();
    storages
}

/// The next object of a namespace behind a key, and whether it is being deleted.
fn next_in(
    registry: &Registry,
    storage: &Arc<str>,
    namespace: &str,
    after: Option<&Key>,
) -> Option<(Key, bool)> {
    let now = registry.store.revision();
    let mut objects = registry.store.scan(storage, Some(namespace), now, after);
    let (key, object) = objects.next()?;
    Some((key.clone(), object::is_being_deleted(&object)))
}

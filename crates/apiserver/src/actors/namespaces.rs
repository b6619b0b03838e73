//! The end of namespaces: what is in them goes first.

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
    let content = content(registry, &namespace.name);
    if content.is_empty() {
        let Some(mut target) = registry.target_of(namespace) else {
            return false;
        };
        target.subresource = Some("finalize".to_owned());
        let Some(stored) = registry.store.get(namespace) else {
            return false;
        };
        let mut body = serde_json::Value::clone(stored);
        body["spec"]["finalizers"] = json!([]);
        return registry.update(&target, body, &write_options()).is_ok();
    }
    content
        .iter()
        .filter(|(_, deleting)| !deleting)
        .any(|(key, _)| {
            let target = registry.target_of(key);
            target.is_some_and(|target| registry.delete(&target, &delete_options()).is_ok())
        })
}

/// What is in a namespace, pods first, and whether it is being deleted.
fn content(registry: &Registry, namespace: &str) -> Vec<(Key, bool)> {
    let now = registry.store.revision();
    let mut content = Vec::new();
    let mut storages: Vec<_> = registry
        .catalog
        .all()
        .filter(|resource| resource.namespaced)
        .map(|resource| &resource.storage)
        .collect();
    storages.sort_by_key(|storage| (***storage != *"/pods", (*storage).clone()));
    storages.dedup();
    for storage in storages {
        let objects = registry.store.scan(storage, Some(namespace), now, None);
        content
            .extend(objects.map(|(key, object)| (key.clone(), object::is_being_deleted(object))));
    }
    content
}

//! The end of namespaces: what is in them goes first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

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
    if is_empty {
        return finish(registry, namespace);
    }
    report(registry, namespace)
}

/// Says in the conditions of a namespace what still holds it. True if that is news.
fn report(registry: &mut Registry, namespace: &Key) -> bool {
    let conditions = conditions_of(registry, namespace);
    registry.edit_status(namespace, &write_options(), |namespace| {
        let known = &namespace["status"]["conditions"];
        let same = |one: &Value, other: &Value| {
            ["type", "status", "reason", "message"]
                .iter()
                .all(|member| one[*member] == other[*member])
        };
        let is_known = known.as_array().is_some_and(|known| {
            known.len() == conditions.len()
                && known
                    .iter()
                    .zip(&conditions)
                    .all(|(one, other)| same(one, other))
        });
        if !is_known {
            namespace["status"]["conditions"] = Value::Array(conditions);
        }
    })
}

/// The conditions of a namespace that still has objects.
fn conditions_of(registry: &Registry, namespace: &Key) -> Vec<Value> {
    let (contents, holders) = contents_of(registry, namespace);
    let now = registry.now();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": if status { "True" } else { "False" },
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    let mut conditions = vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        condition(
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        condition(
            "NamespaceContentRemaining",
            true,
            "SomeResourcesRemain",
            &format!("Some resources are remaining: {contents}"),
        ),
    ];
    conditions.push(if holders.is_empty() {
        condition(
            "NamespaceFinalizersRemaining",
            false,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        )
    } else {
        condition(
            "NamespaceFinalizersRemaining",
            true,
            "SomeFinalizersRemain",
            &format!("Some content in the namespace has finalizers remaining: {holders}"),
        )
    });
    conditions
}

/// What a namespace still has, and the finalizers that hold it, each as a text. The second is empty
/// if there are no finalizers.
fn contents_of(registry: &Registry, namespace: &Key) -> (String, String) {
    let mut remaining: Vec<(String, usize)> = Vec::new();
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for storage in storages(registry) {
        let now = registry.store.revision();
        let objects = registry
            .store
            .scan(&storage, Some(&namespace.name), now, None);
        let mut count = 0;
        for (_, object) in objects {
            count += 1;
            for name in object::finalizers(&object) {
                *finalizers.entry(name.to_owned()).or_default() += 1;
            }
        }
        if count > 0 {
            let (group, plural) = storage.rsplit_once('/').unwrap_or(("", &storage));
            remaining.push((format!("{plural}.{}", group.trim_matches('/')), count));
        }
    }
    let listed = |all: &mut dyn Iterator<Item = (&String, &usize)>, verb: &str| {
        all.map(|(name, count)| format!("{name} {verb} {count} resource instances"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let contents = listed(
        &mut remaining.iter().map(|(name, count)| (name, count)),
        "has",
    );
    let holders = listed(&mut finalizers.iter(), "in");
    (contents, holders)
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
    let mut body = Value::clone(&stored);
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

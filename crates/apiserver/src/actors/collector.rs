//! The garbage collector: objects go when their owners are gone.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::write_options;
use crate::object;
use crate::registry::{
    DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation, Registry,
};
use crate::storage::{Change, ChangeKind, Key, Object};

/// Looks at every object that changed, or whose owners or dependents changed.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// Changes up to this revision were looked at.
    seen: u64,
    queue: BTreeSet<Key>,
}

/// What an owner reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// An object that stays for now, or of a kind that nobody knows.
    Solid,
    /// Nothing.
    Dangling,
    /// An object that waits for its dependents to go.
    Waiting,
    /// An object in another namespace, or in one at all where the dependent is in none: such a
    /// reference cannot be followed.
    OutOfReach,
}

// === impl Collector ===

impl Collector {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        self.take_in(registry);
        while let Some(key) = self.queue.pop_first() {
            if let Some(object) = registry.store.get(&key)
                && self.look_at(registry, &key, &object)
            {
                return true;
            }
        }
        false
    }

    fn take_in(&mut self, registry: &Registry) {
        if self.seen < registry.store.compacted() {
            // Some changes are forgotten already: look at everything.
            self.queue.extend(registry.store.keys().cloned());
        } else {
            for change in registry.store.all_changes_after(self.seen) {
                self.take_in_change(registry, change);
            }
        }
        self.seen = registry.store.revision();
    }

    fn take_in_change(&mut self, registry: &Registry, change: &Change) {
        let Some(object) = registry.store.object_of(change) else {
            return;
        };
        let uid = object::uid(&object);
        let dependents = || registry.store.dependents(uid).cloned();
        let owners = object::owners(&object)
            .iter()
            .filter_map(|owner| registry.store.by_uid(owner["uid"].as_str()?).cloned());
        match change.kind {
            ChangeKind::Deleted => self.queue.extend(dependents()),
            ChangeKind::Added | ChangeKind::Modified => {
                self.queue.insert(change.key.clone());
                if holds(&object, FOREGROUND_FINALIZER) {
                    self.queue.extend(dependents());
                }
            }
        }
        self.queue.extend(owners);
    }

    /// Makes at most one write for an object. True if it made one.
    fn look_at(&mut self, registry: &mut Registry, key: &Key, object: &Object) -> bool {
        if object::is_being_deleted(object) {
            if holds(object, ORPHAN_FINALIZER) {
                return self.orphan_one(registry, key, object);
            }
            return holds(object, FOREGROUND_FINALIZER) && end_foreground(registry, key, object);
        }
        if object::owners(object).is_empty() {
            return false;
        }
        collect(registry, key, object)
    }

    /// Takes one dependent's reference away, or at last the finalizer.
    fn orphan_one(&mut self, registry: &mut Registry, key: &Key, owner: &Object) -> bool {
        let uid = object::uid(owner).to_owned();
        let next = registry.store.dependents(&uid).next().cloned();
        match next {
            Some(dependent) => {
                self.queue.insert(key.clone());
                registry.edit(&dependent, &write_options(), |object| {
                    keep_owners(object, |owner| owner["uid"] != uid.as_str());
                })
            }
            None => drop_finalizer(registry, key, ORPHAN_FINALIZER),
        }
    }
}

/// Whether an object is being deleted and held by this finalizer.
fn holds(object: &Value, finalizer: &str) -> bool {
    object::is_being_deleted(object) && object::finalizers(object).any(|one| one == finalizer)
}

/// Lets an owner go when no dependent blocks it any more.
fn end_foreground(registry: &mut Registry, key: &Key, owner: &Object) -> bool {
    let uid = object::uid(owner);
    let blocked = registry.store.dependents(uid).any(|dependent| {
        registry.store.get(dependent).is_some_and(|dependent| {
            object::owners(&dependent)
                .iter()
                .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
        })
    });
    !blocked && drop_finalizer(registry, key, FOREGROUND_FINALIZER)
}

fn drop_finalizer(registry: &mut Registry, key: &Key, finalizer: &str) -> bool {
    registry.edit(key, &write_options(), |object| {
        let rest = object::finalizers(object).filter(|one| *one != finalizer);
        let rest: Vec<String> = rest.map(str::to_owned).collect();
        object::set_finalizers(object, &rest);
    })
}

/// Keeps only some of the owner references.
fn keep_owners(object: &mut Value, keep: impl Fn(&Value) -> bool) {
    let rest: Vec<Value> = object::owners(object)
        .iter()
        .filter(|one| keep(one))
        .cloned()
        .collect();
    let metadata = object::metadata_mut(object);
    if rest.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        metadata.insert("ownerReferences".to_owned(), json!(rest));
    }
}

/// Deletes an object that no owner holds, or takes references away that lead nowhere.
fn collect(registry: &mut Registry, key: &Key, object: &Object) -> bool {
    let owners = object::owners(object);
    let found: Vec<Owner> = owners
        .iter()
        .map(|owner| follow(registry, key, owner))
        .collect();
    if key.namespace.is_empty() && found.contains(&Owner::OutOfReach) {
        // It would never be known whether the owner is gone.
        return false;
    }
    if found.contains(&Owner::OutOfReach) {
        registry.report_owner_out_of_reach(key, object);
    }
    if found.contains(&Owner::Solid) {
        let gone: Vec<Value> = owners
            .iter()
            .zip(&found)
            .filter(|(_, owner)| **owner != Owner::Solid)
            .map(|(owner, _)| owner["uid"].clone())
            .collect();
        return !gone.is_empty()
            && registry.edit(key, &write_options(), |object| {
                keep_owners(object, |owner| !gone.contains(&owner["uid"]));
            });
    }
    let has = |finalizer| object::finalizers(object).any(|one| one == finalizer);
    let has_dependents = registry
        .store
        .dependents(object::uid(object))
        .next()
        .is_some();
    let propagation = if found.contains(&Owner::Waiting) && has_dependents {
        Propagation::Foreground
    } else if has(ORPHAN_FINALIZER) {
        Propagation::Orphan
    } else if has(FOREGROUND_FINALIZER) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let options = DeleteOptions {
        propagation: Some(propagation),
        expected_uid: Some(object::uid(object).to_owned()),
        ..super::delete_options()
    };
    registry
        .target_of(key)
        .is_some_and(|target| registry.delete(&target, &options).is_ok())
}

/// What an owner reference leads to.
fn follow(registry: &Registry, dependent: &Key, reference: &Value) -> Owner {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    let Some(resource) = registry.catalog.of_kind(text("apiVersion"), text("kind")) else {
        return Owner::Solid;
    };
    if resource.namespaced && dependent.namespace.is_empty() {
        return Owner::OutOfReach;
    }
    let namespace = if resource.namespaced {
        dependent.namespace.as_str()
    } else {
        ""
    };
    let key = Key::new(&resource.storage, namespace, text("name"));
    let found = registry.store.get(&key);
    match found.filter(|owner| object::uid(owner) == text("uid")) {
        Some(owner) if holds(&owner, FOREGROUND_FINALIZER) => Owner::Waiting,
        Some(_) => Owner::Solid,
        None => match registry.store.by_uid(text("uid")) {
            Some(other) if other.resource == resource.storage => Owner::OutOfReach,
            Some(_) | None => Owner::Dangling,
        },
    }
}

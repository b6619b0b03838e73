//! Which versions of which objects a store shows, without the objects.

use super::{
    Lookup, ObjectKey,
    snapshot::{ObjectChange, Snapshot},
};
use homeostat_core::cache::{Change, Versioned};
use rustc_hash::FxBuildHasher;
use std::{
    collections::BTreeMap,
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The versions of the objects of a store. Other than the store it can be asked from any thread, whatever its
/// objects are.
///
/// Only stores that reconcilers read have it: some ten bytes for each object besides its key.
#[derive(Debug, Default)]
pub(crate) struct Versions(Mutex<BTreeMap<ObjectKey, Shown>>);

#[derive(Debug, Clone, Copy)]
struct Shown {
    /// 0 if the object has none.
    version: u64,
    /// A hash of it, if the object has one.
    uid: Option<u64>,
}

// === impl Versions ===

impl Versions {
    pub(super) fn new<'a, K: Lookup + 'a>(
        objects: impl Iterator<Item = (&'a ObjectKey, &'a Snapshot<K>)>,
    ) -> Self {
        let shown = objects.map(|(key, obj)| (key.clone(), Shown::of(obj)));
        Self(Mutex::new(shown.collect()))
    }

    /// Takes in what happened in the store.
    pub(super) fn take_in<K: Lookup>(&self, changes: &[ObjectChange<K>]) {
        let mut shown = self.lock();
        for change in changes {
            match change {
                Change::Added { key, new } | Change::Modified { key, new, old: _ } => {
                    shown.insert(key.clone(), Shown::of(new));
                }
                Change::Deleted { key, .. } => {
                    shown.remove(key);
                }
            }
        }
    }

    /// The version that is shown under this key, if an object is; 0 if that has no version.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.lock().get(key).map(|shown| shown.version)
    }

    /// Whether the object with this uid is shown under this key; any object, if one of the two uids is not
    /// known.
    pub(crate) fn shows(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        self.lock()
            .get(key)
            .is_some_and(|shown| match (shown.uid, uid) {
                (Some(shown), Some(uid)) => shown == hashed(uid),
                (None, _) | (_, None) => true,
            })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Shown ===

impl Shown {
    fn of<K: Lookup>(obj: &Snapshot<K>) -> Self {
        Self {
            version: obj.version().unwrap_or(0),
            uid: obj.uid().map(|uid| hashed(&uid)),
        }
    }
}

fn hashed(uid: &str) -> u64 {
    FxBuildHasher.hash_one(uid)
}

//! Where the objects of a store stand in its indexes.

use super::{
    ObjectKey,
    snapshot::{ObjectChange, Snapshot},
};
use homeostat_core::cache::Change;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// An index as its store keeps it up to date.
pub(super) trait Indexed<K>: Send + Sync {
    /// Takes in what happened in the store.
    fn take_in(&self, changes: &[ObjectChange<K>]);
}

/// Names the values that an object has.
type Property<K, V> = Box<dyn Fn(&K) -> Vec<V> + Send + Sync>;

/// The keys of the objects with each value of the property.
pub(super) struct Entries<K, V> {
    property: Property<K, V>,
    keys: Mutex<BTreeMap<V, BTreeSet<ObjectKey>>>,
}

// === impl Entries ===

impl<K, V: Ord> Entries<K, V> {
    pub(super) fn new<'a>(
        property: impl Fn(&K) -> Vec<V> + Send + Sync + 'static,
        objects: impl Iterator<Item = (&'a ObjectKey, &'a Snapshot<K>)>,
    ) -> Self
    where
        K: 'a,
    {
        let entries = Self {
            property: Box::new(property),
            keys: Mutex::default(),
        };
        for (key, obj) in objects {
            entries.add(key, obj);
        }
        entries
    }

    pub(super) fn keys_of(&self, value: &V) -> Vec<ObjectKey> {
        let keys = self.lock();
        keys.get(value).into_iter().flatten().cloned().collect()
    }

    fn add(&self, key: &ObjectKey, obj: &Snapshot<K>) {
        let values = self.values_of(obj);
        let mut keys = self.lock();
        for value in values {
            keys.entry(value).or_default().insert(key.clone());
        }
    }

    fn values_of(&self, obj: &Snapshot<K>) -> Vec<V> {
        obj.object()
            .map_or_else(Vec::new, |obj| (self.property)(obj))
    }

    fn remove(&self, key: &ObjectKey, obj: &Snapshot<K>) {
        let values = self.values_of(obj);
        let mut keys = self.lock();
        for value in values {
            if let Some(of_value) = keys.get_mut(&value) {
                of_value.remove(key);
                if of_value.is_empty() {
                    keys.remove(&value);
                }
            }
        }
    }
}

impl<K, V> Entries<K, V> {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<V, BTreeSet<ObjectKey>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send + Sync, V: Ord + Send> Indexed<K> for Entries<K, V> {
    fn take_in(&self, changes: &[ObjectChange<K>]) {
        for change in changes {
            match change {
                Change::Added { key, new } => self.add(key, new),
                Change::Modified { key, old, new } => {
                    self.remove(key, old);
                    self.add(key, new);
                }
                Change::Deleted { key, old, last: _ } => self.remove(key, old),
            }
        }
    }
}

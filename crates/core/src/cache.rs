//! A cache that knows old and new (rules R14 and R16).
//!
//! Whatever a watch delivers goes in, and true changes come out: an object was added, it was
//! modified (with the state before), or it was deleted (with its last state). A relist is staged
//! and takes effect at once when it is complete: what it does not mention was deleted, what has
//! the version already known is no change.
//!
//! Nothing is cloned but handles: `V` is an `Arc` of the object or something as cheap.

use std::{borrow::Borrow, borrow::Cow, collections::BTreeMap};

#[cfg(test)]
mod tests;

/// A value that stands for one version of one object.
pub trait Versioned {
    /// The object's `metadata.uid`.
    fn uid(&self) -> Option<Cow<'_, str>>;
    /// The object's `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<Cow<'_, str>>;
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<K, V> {
    /// The object was not known before.
    Added {
        /// Its key.
        key: K,
        /// Its state.
        new: V,
    },
    /// The object has another version than before.
    Modified {
        /// Its key.
        key: K,
        /// The state before.
        old: V,
        /// The state now.
        new: V,
    },
    /// The object is gone.
    Deleted {
        /// Its key.
        key: K,
        /// The state before.
        old: V,
        /// Its last state: what the server told when it was deleted, or the state before.
        last: V,
    },
}

/// Objects by key, each in its latest known version.
///
/// # Guarantees
///
/// - The changes given out, applied in order to an empty map, always yield this cache.
/// - An object that was deleted and created again while nobody looked (another uid under the same
///   key) is [`Change::Deleted`] and then [`Change::Added`].
/// - Between [`begin`](Cache::begin) and [`commit`](Cache::commit) readers see the state before.
#[derive(Debug, Clone)]
pub struct Cache<K, V> {
    live: BTreeMap<K, Entry<V>>,
    /// Objects of the running list that differ from those in `live`.
    staged: BTreeMap<K, V>,
    /// Number of the running or last list. An entry that the running list has mentioned carries it.
    round: u64,
    listing: bool,
    synced: bool,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    value: V,
    /// The last list that mentioned this object.
    seen: u64,
}

// === impl Cache ===

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self {
            live: BTreeMap::new(),
            staged: BTreeMap::new(),
            round: 0,
            listing: false,
            synced: false,
        }
    }
}

impl<K: Ord + Clone, V: Versioned + Clone> Cache<K, V> {
    /// Takes in a version of an object; during a list it counts as part of the list.
    ///
    /// A version that is known already, or older than the known one, causes nothing.
    pub fn apply(&mut self, key: K, value: V, changes: &mut Vec<Change<K, V>>) {
        if self.listing {
            self.stage(key, value);
            return;
        }
        if self
            .live
            .get(&key)
            .is_some_and(|entry| supersedes(&entry.value, &value))
        {
            return;
        }
        self.replace(key, value, changes);
    }

    /// Takes in that an object was deleted; `last` is its state as the server told it.
    ///
    /// An object that is not known causes nothing: whoever follows the changes has not heard of it.
    pub fn delete(&mut self, key: K, last: V, changes: &mut Vec<Change<K, V>>) {
        if self.listing {
            self.staged.remove(&key);
            if let Some(entry) = self.live.get_mut(&key) {
                entry.seen = 0;
            }
        } else if let Some(Entry {
            value: old,
            seen: _,
        }) = self.live.remove(&key)
        {
            changes.push(Change::Deleted { key, old, last });
        }
    }

    /// Takes in that an object was deleted whose last state is not known: the known one counts.
    pub fn remove(&mut self, key: &K, changes: &mut Vec<Change<K, V>>) {
        if let Some(entry) = self.live.get(key) {
            let last = entry.value.clone();
            self.delete(key.clone(), last, changes);
        } else {
            self.staged.remove(key);
        }
    }

    /// The running list mentions an object without telling its state: the known one stays.
    pub fn keep(&mut self, key: &K) {
        if let Some(entry) = self.live.get_mut(key).filter(|_| self.listing) {
            entry.seen = self.round;
        }
    }

    /// The running list shows an object in a version that `is_it` may know as the one that is here: then it stays as
    /// it is. The same as [`stage`](Cache::stage) of that version, for those who have it not at hand. False if nothing
    /// was taken in.
    pub fn confirm<Q>(&mut self, key: &Q, is_it: impl FnOnce(&V) -> bool) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let entry = self.live.get_mut(key).filter(|_| self.listing);
        let Some(entry) = entry.filter(|entry| is_it(&entry.value)) else {
            return false;
        };
        entry.seen = self.round;
        self.staged.remove(key);
        true
    }

    /// A list begins. One that is under way is given up.
    pub fn begin(&mut self) {
        self.round += 1;
        self.staged.clear();
        self.listing = true;
    }

    /// Takes in an object of the running list.
    pub fn stage(&mut self, key: K, value: V) {
        debug_assert!(self.listing, "an object of a list comes after its begin");
        if let Some(entry) = self.live.get_mut(&key) {
            entry.seen = self.round;
            if same_version(&entry.value, &value) {
                self.staged.remove(&key);
                return;
            }
        }
        self.staged.insert(key, value);
    }

    /// The running list is complete and takes effect.
    ///
    /// Deletions come first. Objects are listed as they are, so an older version than the known one
    /// counts too: a server that was restored from a backup has one.
    pub fn commit(&mut self, changes: &mut Vec<Change<K, V>>) {
        let round = self.round;
        self.live.retain(|key, entry| {
            let keep = entry.seen == round;
            if !keep {
                changes.push(Change::Deleted {
                    key: key.clone(),
                    old: entry.value.clone(),
                    last: entry.value.clone(),
                });
            }
            keep
        });
        for (key, value) in std::mem::take(&mut self.staged) {
            self.replace(key, value, changes);
        }
        self.listing = false;
        self.synced = true;
    }

    /// Whether a list was ever complete.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// The latest known version of an object.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.live.get(key).map(|entry| &entry.value)
    }

    /// All objects in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.live.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// The objects with `first` as their key or one after it, in the order of their keys.
    pub fn iter_from(&self, first: &K) -> impl Iterator<Item = (&K, &V)> {
        let from = self.live.range(first..);
        from.map(|(key, entry)| (key, &entry.value))
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    fn replace(&mut self, key: K, value: V, changes: &mut Vec<Change<K, V>>) {
        let entry = Entry {
            value: value.clone(),
            seen: self.round,
        };
        match self.live.insert(key.clone(), entry) {
            None => changes.push(Change::Added { key, new: value }),
            Some(Entry {
                value: old,
                seen: _,
            }) if is_recreated(&old, &value) => {
                changes.push(Change::Deleted {
                    key: key.clone(),
                    last: old.clone(),
                    old,
                });
                changes.push(Change::Added { key, new: value });
            }
            Some(Entry {
                value: old,
                seen: _,
            }) => changes.push(Change::Modified {
                key,
                old,
                new: value,
            }),
        }
    }
}

/// Whether two values stand for one version of one object. A value without a version is unlike any.
fn same_version<V: Versioned>(a: &V, b: &V) -> bool {
    a.resource_version().is_some()
        && a.resource_version() == b.resource_version()
        && a.uid() == b.uid()
}

/// Whether `known` is the same version as `new` or a later one of the same object.
///
/// Versions are compared as integers, which Kubernetes allows since 1.35 (KEP-5504); where one is
/// no integer, only equality counts.
fn supersedes<V: Versioned>(known: &V, new: &V) -> bool {
    if known.uid() != new.uid() {
        return false;
    }
    let number = |value: &V| value.resource_version()?.parse::<u64>().ok();
    match (number(known), number(new)) {
        (Some(known), Some(new)) => new <= known,
        (None, _) | (_, None) => same_version(known, new),
    }
}

/// Whether `new` is another object than `old`, under the same key.
fn is_recreated<V: Versioned>(old: &V, new: &V) -> bool {
    matches!((old.uid(), new.uid()), (Some(old), Some(new)) if old != new)
}

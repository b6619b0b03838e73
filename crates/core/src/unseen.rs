//! Which keys have to wait because caches have not seen yet what was written for them (rule R21).
//!
//! [`Unseen`] is told what the last run of a key has written, each write once for each cache that
//! will see it ([`expect`](Unseen::expect)), and how far the caches have come
//! ([`reached`](Unseen::reached), [`recheck`](Unseen::recheck)). It says whose wait is over. A wait
//! ends with its time at the latest ([`expire`](Unseen::expire)): a cache may never come that far,
//! and a stale run is better than none.
//!
//! All operations take O(log n) for n writes that are waited for, except for what they return and
//! for [`recheck`](Unseen::recheck).

use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// The number of a cache.
pub type Source = usize;

/// A write that a cache has not seen yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected<O> {
    /// The cache that will see it.
    pub source: Source,
    /// What was written.
    pub object: O,
    /// How it is told that the cache has seen it.
    pub sight: Sight,
}

/// How it is told that a cache has seen a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The cache has reached this version. Versions are compared as numbers, which Kubernetes allows
    /// for the objects of one kind.
    Version(u64),
    /// The object is not in the cache any more: a delete does not always tell its version.
    Gone,
}

/// Keys that wait for caches.
#[derive(Debug, Clone)]
pub struct Unseen<K, O> {
    waits: BTreeMap<K, Wait<O>>,
    /// Who waits for a version of a cache. What is empty stays: there are few caches.
    versions: BTreeMap<Source, BTreeSet<(u64, K)>>,
    /// Who waits for objects to be gone from a cache.
    gone: BTreeMap<Source, BTreeSet<K>>,
    ends: BTreeSet<(Time, K)>,
}

#[derive(Debug, Clone)]
struct Wait<O> {
    until: Time,
    /// Never empty.
    expected: Vec<Expected<O>>,
}

// === impl Unseen ===

impl<K, O> Default for Unseen<K, O> {
    fn default() -> Self {
        Self {
            waits: BTreeMap::new(),
            versions: BTreeMap::new(),
            gone: BTreeMap::new(),
            ends: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone, O> Unseen<K, O> {
    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Lets `key` wait for `expected` until `until` at the longest, in place of what it waited for
    /// before. Nothing expected is no wait.
    pub fn expect(&mut self, key: &K, until: Time, expected: Vec<Expected<O>>) {
        self.forget(key);
        if expected.is_empty() {
            return;
        }
        for Expected { source, sight, .. } in &expected {
            match sight {
                Sight::Version(version) => {
                    let waiting = self.versions.entry(*source).or_default();
                    waiting.insert((*version, key.clone()));
                }
                Sight::Gone => {
                    let waiting = self.gone.entry(*source).or_default();
                    waiting.insert(key.clone());
                }
            }
        }
        self.ends.insert((until, key.clone()));
        self.waits.insert(key.clone(), Wait { until, expected });
    }

    /// Takes in that a cache has come to a version, and returns the keys whose wait is over.
    pub fn reached(&mut self, source: Source, version: u64) -> Vec<K> {
        let mut released = Vec::new();
        while let Some(waiting) = self.versions.get_mut(&source)
            && waiting.first().is_some_and(|(at, _)| *at <= version)
            && let Some((at, key)) = waiting.pop_first()
        {
            let sight = Sight::Version(at);
            let is_seen = |write: &Expected<O>| (write.source, write.sight) == (source, sight);
            if self.strike(&key, is_seen) {
                released.push(key);
            }
        }
        released
    }

    /// Takes in that the objects for which `is_gone` says so are not in a cache any more, and returns
    /// the keys whose wait is over.
    pub fn recheck(&mut self, source: Source, is_gone: impl Fn(&O) -> bool) -> Vec<K> {
        let mut released = Vec::new();
        for key in self.gone.remove(&source).unwrap_or_default() {
            let is_delete =
                |write: &Expected<O>| write.source == source && write.sight == Sight::Gone;
            if self.strike(&key, |write| is_delete(write) && is_gone(&write.object)) {
                released.push(key);
            } else if self.missing(&key).iter().any(is_delete) {
                self.gone.entry(source).or_default().insert(key);
            }
        }
        released
    }

    /// Ends the waits whose time is over, and returns whose they were and what was missing.
    pub fn expire(&mut self, now: Time) -> Vec<(K, Vec<Expected<O>>)> {
        let mut expired = Vec::new();
        while let Some((until, key)) = self.ends.first()
            && *until <= now
        {
            let key = key.clone();
            expired.extend(self.forget(&key).map(|missing| (key, missing)));
        }
        expired
    }

    /// Ends the wait of a key, and returns what it waited for.
    pub fn forget(&mut self, key: &K) -> Option<Vec<Expected<O>>> {
        let Wait { until, expected } = self.waits.remove(key)?;
        self.ends.remove(&(until, key.clone()));
        for write in &expected {
            match write.sight {
                Sight::Version(version) => {
                    if let Some(waiting) = self.versions.get_mut(&write.source) {
                        waiting.remove(&(version, key.clone()));
                    }
                }
                Sight::Gone => {
                    if let Some(waiting) = self.gone.get_mut(&write.source) {
                        waiting.remove(key);
                    }
                }
            }
        }
        Some(expected)
    }

    /// What a key waits for.
    pub fn missing(&self, key: &K) -> &[Expected<O>] {
        self.waits.get(key).map_or(&[], |wait| &wait.expected)
    }

    /// Takes away what `is_seen` of what a key waits for; true if nothing is left, and its wait over.
    fn strike(&mut self, key: &K, is_seen: impl Fn(&Expected<O>) -> bool) -> bool {
        let Some(wait) = self.waits.get_mut(key) else {
            return false;
        };
        wait.expected.retain(|write| !is_seen(write));
        let over = wait.expected.is_empty();
        if over {
            self.forget(key);
        }
        over
    }
}

#[cfg(test)]
mod tests;

//! Objects by key, in every version since the last compaction, under one revision.

mod history;
mod key;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::history::{Change, ChangeKind, Compacted};
use self::history::{Feed, Version};
pub(crate) use self::key::Key;
use crate::object;

/// A stored object. Shared by the map, the history and every answer that shows it.
pub(crate) type Object = Arc<Value>;

/// The map, its history, and indexes by uid and by owner.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    /// The state at this revision and later ones is known; changes up to it are forgotten.
    compacted: u64,
    entries: BTreeMap<Key, Vec<Version>>,
    log: VecDeque<Arc<Change>>,
    feeds: BTreeMap<Arc<str>, Feed>,
    uids: BTreeMap<String, Key>,
    dependents: BTreeMap<String, BTreeSet<Key>>,
    max_history: usize,
    revisions: watch::Sender<u64>,
}

/// Of resources that were never written.
static NO_CHANGES: VecDeque<Arc<Change>> = VecDeque::new();

// === impl Store ===

impl Store {
    pub(crate) fn new(max_history: usize) -> Self {
        Self {
            revision: 1,
            compacted: 0,
            entries: BTreeMap::new(),
            log: VecDeque::new(),
            feeds: BTreeMap::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            max_history,
            revisions: watch::Sender::new(1),
        }
    }

    /// The revision of the last write to anything.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision whose state can still be read.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Tells the revision of every write. Closed when the store is dropped.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revisions.subscribe()
    }

    /// Tells the revision of every write to objects of this resource.
    pub(crate) fn feed(&mut self, resource: &Arc<str>) -> watch::Receiver<u64> {
        self.feeds
            .entry(Arc::clone(resource))
            .or_default()
            .subscribe()
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        // Every object has a uid, and loses it with its removal.
        self.uids.len()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Object> {
        self.entries.get(key)?.last()?.object.as_ref()
    }

    /// The object with this uid.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(&Key, &Object)> {
        let key = self.uids.get(uid)?;
        Some((key, self.get(key)?))
    }

    /// The keys of the objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// The objects of a resource by namespace and name: those of one namespace or of all, as they
    /// were at a revision (which must not be compacted), and behind a key if one is given.
    pub(crate) fn scan<'a>(
        &'a self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        at: u64,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let first = Key::first(resource, namespace);
        let start = match after {
            Some(key) if *key >= first => Bound::Excluded(key.clone()),
            Some(_) | None => Bound::Included(first),
        };
        let resource = Arc::clone(resource);
        let namespace = namespace.map(str::to_owned);
        self.entries
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| {
                key.resource == resource
                    && namespace
                        .as_ref()
                        .is_none_or(|namespace| key.namespace == *namespace)
            })
            .filter_map(move |(key, versions)| {
                let version = versions
                    .iter()
                    .rev()
                    .find(|version| version.revision <= at)?;
                Some((key, version.object.as_ref()?))
            })
    }

    /// Every object there is.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.entries
            .iter()
            .filter_map(|(key, versions)| Some((key, versions.last()?.object.as_ref()?)))
    }

    /// The changes to objects of a resource after a revision, oldest first.
    ///
    /// # Errors
    ///
    /// Some of them are forgotten.
    pub(crate) fn changes_after(
        &self,
        resource: &Arc<str>,
        revision: u64,
    ) -> Result<impl ExactSizeIterator<Item = &Arc<Change>>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted {
                oldest: self.compacted,
            });
        }
        let changes = self
            .feeds
            .get(resource)
            .map_or(&NO_CHANGES, |feed| &feed.changes);
        Ok(history::after(changes, revision))
    }

    /// The changes to anything after a revision, oldest first, as far as they are known.
    pub(crate) fn all_changes_after(
        &self,
        revision: u64,
    ) -> impl ExactSizeIterator<Item = &Arc<Change>> {
        history::after(&self.log, revision)
    }

    /// Stores an object under a new revision, which it then carries.
    pub(crate) fn put(&mut self, key: Key, mut value: Value) -> Object {
        let revision = self.advance();
        object::set_resource_version(&mut value, revision);
        let object = Arc::new(value);
        let previous = self.get(&key).cloned();
        if let Some(previous) = &previous {
            self.forget_indexes(&key, previous);
        }
        self.learn_indexes(&key, &object);
        let kind = if previous.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        self.record(
            key,
            kind,
            Some(Arc::clone(&object)),
            Arc::clone(&object),
            previous,
        );
        object
    }

    /// Removes an object. Answers its last state, which carries the revision of the removal.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Object> {
        let previous = self.get(key).cloned()?;
        let revision = self.advance();
        let mut last = Value::clone(&previous);
        object::set_resource_version(&mut last, revision);
        let last = Arc::new(last);
        self.forget_indexes(key, &previous);
        self.record(
            key.clone(),
            ChangeKind::Deleted,
            None,
            Arc::clone(&last),
            Some(previous),
        );
        Some(last)
    }

    /// Forgets every change up to a revision: older states can then not be read any more.
    pub(crate) fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        while self
            .log
            .front()
            .is_some_and(|change| change.revision <= revision)
        {
            self.forget_oldest();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn advance(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn record(
        &mut self,
        key: Key,
        kind: ChangeKind,
        state: Option<Object>,
        object: Object,
        previous: Option<Object>,
    ) {
        let revision = self.revision;
        self.entries.entry(key.clone()).or_default().push(Version {
            revision,
            object: state,
        });
        let resource = Arc::clone(&key.resource);
        let change = Arc::new(Change {
            revision,
            key,
            kind,
            object,
            previous,
        });
        self.log.push_back(Arc::clone(&change));
        self.feeds.entry(resource).or_default().push(change);
        self.revisions.send_replace(revision);
        while self.log.len() > self.max_history {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(change) = self.log.pop_front() else {
            return;
        };
        self.compacted = change.revision;
        if let Some(feed) = self.feeds.get_mut(&change.key.resource) {
            feed.changes.pop_front();
        }
        let Some(versions) = self.entries.get_mut(&change.key) else {
            return;
        };
        // Only the newest version of those that are not newer than the compaction stays readable.
        let keep = versions.partition_point(|version| version.revision <= change.revision);
        versions.drain(..keep.saturating_sub(1));
        if versions.first().is_some_and(|first| first.object.is_none()) {
            versions.remove(0);
        }
        if versions.is_empty() {
            self.entries.remove(&change.key);
        }
    }

    fn learn_indexes(&mut self, key: &Key, object: &Value) {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            self.uids.insert(uid.to_owned(), key.clone());
        }
        for owner in object::owners(object) {
            if let Some(uid) = owner["uid"].as_str() {
                self.dependents
                    .entry(uid.to_owned())
                    .or_default()
                    .insert(key.clone());
            }
        }
    }

    fn forget_indexes(&mut self, key: &Key, object: &Value) {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            self.uids.remove(uid);
        }
        for owner in object::owners(object) {
            let Some(uid) = owner["uid"].as_str() else {
                continue;
            };
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

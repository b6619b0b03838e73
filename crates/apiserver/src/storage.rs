//! Objects by key, in every version since the last compaction, under one revision.

mod history;
mod key;
mod recent;
mod stored;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::history::{Change, ChangeKind, Compacted};
use self::history::{Feed, Held, Version};
pub(crate) use self::key::Key;
use self::recent::Recent;
pub(crate) use self::stored::{Object, Text};
use crate::object;

/// The map, its history, and indexes by uid and by owner.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    /// The state at this revision and later ones is known; changes up to it are forgotten.
    compacted: u64,
    entries: BTreeMap<Key, Vec<Version>>,
    log: VecDeque<Arc<Change>>,
    feeds: BTreeMap<Arc<str>, Feed>,
    /// By a hash that is no defence against chosen keys: the server makes the uids itself.
    uids: HashMap<Box<str>, Key, FxBuildHasher>,
    dependents: BTreeMap<String, BTreeSet<Key>>,
    recent: RefCell<Recent>,
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
            uids: HashMap::default(),
            dependents: BTreeMap::new(),
            recent: RefCell::default(),
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

    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        let version = self.entries.get(key)?.last()?;
        (!version.removed).then(|| self.read(version))
    }

    /// Where the object with this uid is.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    /// The state after a change; after a removal the last state, with the removal's revision.
    pub(crate) fn object_of(&self, change: &Change) -> Option<Object> {
        Some(self.read(self.version_at(&change.key, change.revision)?))
    }

    /// The state before a change. It is known as long as the change is.
    pub(crate) fn previous_of(&self, change: &Change) -> Option<Object> {
        let version = self.version_at(&change.key, change.revision - 1)?;
        (!version.removed).then(|| self.read(version))
    }

    /// The state before a change, with the revision of the change: what whoever does not see the state
    /// after it sees last.
    pub(crate) fn last_of(&self, change: &Change) -> Option<Object> {
        if change.kind == ChangeKind::Deleted {
            return self.object_of(change);
        }
        let mut last = Value::clone(&*self.previous_of(change)?);
        object::set_resource_version(&mut last, change.revision);
        Some(Object::new(last))
    }

    fn version_at(&self, key: &Key, revision: u64) -> Option<&Version> {
        history::version_at(self.entries.get(key)?, revision)
    }

    fn read(&self, version: &Version) -> Object {
        let Held { text, object } = &version.held;
        let mut object = object.borrow_mut();
        object.upgrade().unwrap_or_else(|| {
            let found = Object::encoded(text.clone());
            *object = found.downgrade();
            self.keep_decoded(found.clone());
            found
        })
    }

    fn keep_decoded(&self, object: Object) {
        self.recent.borrow_mut().push(object);
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
    ) -> impl Iterator<Item = (&'a Key, Object)> + use<'a> {
        self.versions(resource, namespace, at, after)
            .map(|(key, version)| (key, self.read(version)))
    }

    /// How many objects [`scan`](Self::scan) finds.
    pub(crate) fn count(
        &self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        at: u64,
        after: Option<&Key>,
    ) -> usize {
        self.versions(resource, namespace, at, after).count()
    }

    fn versions<'a>(
        &'a self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        at: u64,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Version)> + use<'a> {
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
                let version = history::version_at(versions, at)?;
                (!version.removed).then_some((key, version))
            })
    }

    /// Where every object is.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let there = |versions: &[Version]| versions.last().is_some_and(|last| !last.removed);
        self.entries
            .iter()
            .filter(move |(_, versions)| there(versions))
            .map(|(key, _)| key)
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
        let object = Object::new(value);
        let kind = match self.get(&key) {
            Some(previous) => {
                self.forget_indexes(&key, &previous);
                ChangeKind::Modified
            }
            None => ChangeKind::Added,
        };
        self.learn_indexes(&key, &object);
        self.record(key, kind, &object);
        object
    }

    /// Removes an object. Answers its last state, which carries the revision of the removal.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Object> {
        let previous = self.get(key)?;
        let revision = self.advance();
        self.forget_indexes(key, &previous);
        let mut last = Value::clone(&previous);
        object::set_resource_version(&mut last, revision);
        let last = Object::new(last);
        self.record(key.clone(), ChangeKind::Deleted, &last);
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

    fn record(&mut self, key: Key, kind: ChangeKind, object: &Object) {
        self.keep_decoded(object.clone());
        let revision = self.revision;
        // Most objects are written once, so there is room for one version.
        let versions = self.entries.entry(key.clone());
        let versions = versions.or_insert_with(|| Vec::with_capacity(1));
        versions.push(Version {
            revision,
            removed: kind == ChangeKind::Deleted,
            held: Held::of(object),
        });
        let resource = Arc::clone(&key.resource);
        let change = Arc::new(Change {
            revision,
            key,
            kind,
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
        if versions.first().is_some_and(|first| first.removed) {
            versions.remove(0);
        }
        if versions.is_empty() {
            self.entries.remove(&change.key);
        }
    }

    fn learn_indexes(&mut self, key: &Key, object: &Value) {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            self.uids.insert(uid.into(), key.clone());
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

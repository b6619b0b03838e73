//! What the writer of a store and its readers share.

use super::{
    Lookup,
    entries::{Entries, Indexed},
    key::ObjectKey,
    mailbox::Mailbox,
    reads::{self, Use},
    snapshot::{ObjectChange, Snapshot},
    status::Status,
    versions::Versions,
};
use homeostat_core::cache::{Cache, Change};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// What a writer and its readers share.
pub(super) struct Shared<K: Lookup> {
    pub(super) dyntype: K::DynamicType,
    state: RwLock<State<K>>,
    /// Its progress is that of the objects: they are up to date as of the latest version among them, at least.
    status: Arc<Status>,
    /// The store that this one has become a part of: whoever reads this one, reads that one. It is set under the
    /// lock of the state.
    joined: OnceLock<Arc<Self>>,
}

/// What the lock of a store guards.
pub(super) struct State<K> {
    pub(super) objects: Cache<ObjectKey, Snapshot<K>>,
    pub(super) subscribers: Vec<Weak<Mailbox<K>>>,
    pub(super) indexes: Vec<Weak<dyn Indexed<K>>>,
    /// By the uid of each owner; made when it is first asked for.
    pub(super) owners: Option<Arc<Entries<K, String>>>,
    /// Made when a reconciler first reads the store.
    pub(super) versions: Option<Arc<Versions>>,
    /// Whether the writer is gone.
    pub(super) closed: bool,
}

// === impl State ===

impl<K: Lookup> State<K> {
    /// The latest version among the objects: a list of them is at least that recent.
    pub(super) fn latest(&self) -> Option<u64> {
        let versions = self.objects.iter().map(|(_, obj)| obj.version());
        versions.max().flatten()
    }

    /// Makes an index and keeps it up to date as long as somebody holds it.
    pub(super) fn index<V, I>(
        &mut self,
        property: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Arc<Entries<K, V>>
    where
        K: Send + Sync + 'static,
        V: Ord + Send + 'static,
        I: IntoIterator<Item = V>,
    {
        let values = move |obj: &K| property(obj).into_iter().collect();
        let entries = Arc::new(Entries::new(values, self.objects.iter()));
        let indexed: Arc<dyn Indexed<K>> = entries.clone();
        self.indexes.push(Arc::downgrade(&indexed));
        entries
    }

    /// Tells everybody who follows the store what happened.
    pub(super) fn tell(&mut self, changes: &[ObjectChange<K>]) {
        if changes.is_empty() {
            return;
        }
        if let Some(versions) = &self.versions {
            versions.take_in(changes);
        }
        self.indexes.retain(|index| {
            let index = index.upgrade();
            index.is_some_and(|index| {
                index.take_in(changes);
                true
            })
        });
        self.subscribers.retain(|mailbox| {
            let Some(mailbox) = mailbox.upgrade() else {
                return false;
            };
            mailbox.put(changes.iter().filter_map(|change| {
                let (key, snapshot, gone) = match change {
                    Change::Added { key, new } | Change::Modified { key, new, old: _ } => {
                        (key, new, false)
                    }
                    Change::Deleted { key, last, old: _ } => (key, last, true),
                };
                Some((key.clone(), Arc::clone(snapshot.object()?), gone))
            }));
            true
        });
    }
}

// === impl Shared ===

impl<K: Lookup> Shared<K> {
    pub(super) fn new(dyntype: K::DynamicType, state: State<K>, status: Status) -> Self {
        Self {
            dyntype,
            state: RwLock::new(state),
            status: Arc::new(status),
            joined: OnceLock::new(),
        }
    }

    pub(super) fn status(&self) -> &Arc<Status> {
        match self.joined.get() {
            Some(other) => other.status(),
            None => &self.status,
        }
    }

    /// Whether it has become a part of another one.
    pub(super) fn is_joined(&self) -> bool {
        self.joined.get().is_some()
    }

    /// Makes this one, which has no objects yet, a part of `other`: all who read or follow it see what is in `other`.
    pub(super) fn join(&self, other: &Arc<Self>) {
        let mut state = self.write();
        if self.is_joined() || std::ptr::eq(self, &raw const **other) {
            return;
        }
        let mut target = other.write();
        let added = |(key, obj): (&ObjectKey, &Snapshot<K>)| Change::Added {
            key: key.clone(),
            new: obj.clone(),
        };
        let all: Vec<ObjectChange<K>> = target.objects.iter().map(added).collect();
        for index in state.indexes.drain(..) {
            if let Some(index) = index.upgrade() {
                index.take_in(&all);
            }
            target.indexes.push(index);
        }
        for subscriber in state.subscribers.drain(..) {
            let Some(mailbox) = subscriber.upgrade() else {
                continue;
            };
            let objects = target.objects.iter();
            mailbox
                .put(objects.filter_map(|(key, obj)| {
                    Some((key.clone(), Arc::clone(obj.object()?), false))
                }));
            if target.closed {
                mailbox.close();
            }
            target.subscribers.push(subscriber);
        }
        drop(target);
        // It was looked at under the same lock, so nobody else has set it.
        let _set = self.joined.set(Arc::clone(other));
        drop(state);
        self.status.set_joined();
    }

    /// Tells whoever this task reads for.
    pub(super) fn note(&self, uses: Use) {
        reads::note(self.status(), uses, || {
            let mut state = self.write();
            let State {
                versions, objects, ..
            } = &mut *state;
            let made = versions.get_or_insert_with(|| Arc::new(Versions::new(objects.iter())));
            Arc::clone(made)
        });
    }
}

/// A panic of a reader's predicate leaves the objects whole, so a poisoned lock is as good as any.
impl<K: Lookup> Shared<K> {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match self.joined.get() {
            None => state,
            Some(other) => {
                drop(state);
                other.read()
            }
        }
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        let state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match self.joined.get() {
            None => state,
            Some(other) => {
                drop(state);
                other.write()
            }
        }
    }
}

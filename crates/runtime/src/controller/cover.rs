//! The caches of a controller, and whether they have seen a write (rule R21).

use super::scope::Scope;
use crate::{
    client::{Known, Write},
    progress::{Listener, Progress},
    reflector::{Lookup, ObjectKey, Read, Status, Store, Versions},
};
use homeostat_core::{
    cache::Versioned,
    unseen::{Expected, Sight},
};
use kube::Resource;
use std::{
    hash::Hash,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

/// A cache that reconcilers read, or that wakes them.
pub(super) struct Cover {
    pub(super) scope: Scope,
    /// What it shows; `None` if it cannot be asked. It shows the object that a run was given all the same.
    pub(super) view: Option<Arc<dyn View>>,
    pub(super) progress: Progress,
}

/// What a cache says of an object.
pub(super) trait View: Send + Sync {
    /// The version that it shows under this key, if it shows an object; 0 if that has no version.
    fn version(&self, key: &ObjectKey) -> Option<u64>;

    /// Whether it shows, under this key, the object with this uid; any object, if one of the two uids is
    /// not known.
    fn shows(&self, key: &ObjectKey, uid: Option<&str>) -> bool;
}

/// The caches of one controller. They join when the sources that fill them do.
#[derive(Default)]
pub(super) struct Covers {
    caches: RwLock<Vec<(usize, Cover)>>,
    /// The number of the next source.
    next: AtomicUsize,
    /// Whether the client of the runs tells what they write.
    tracked: AtomicBool,
    pub(super) listener: Arc<Listener>,
}

/// What is waited for, so that it can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    key: ObjectKey,
    resource: Arc<str>,
    /// Of an object that is gone.
    uid: Option<Box<str>>,
    /// For an object that is gone: the version before which a cache may not even have seen that it
    /// was there.
    after: u64,
}

/// A write that a cache has not seen yet.
pub(super) type Unseen = Expected<Arc<Written>>;

/// As in `configmaps default/web at version 12`.
pub(super) fn describe(unseen: &Unseen) -> String {
    let Written { key, resource, .. } = &*unseen.object;
    match unseen.sight {
        Sight::Version(version) => format!("{resource} {key} at version {version}"),
        Sight::Gone => format!("the end of {resource} {key}"),
    }
}

/// What a store holds, as far as it is known what fills it.
pub(super) fn scope_of(store: &Status) -> Scope {
    match store.origin() {
        Some(origin) => Scope::of(&origin),
        None => Scope::unknown(store.group(), store.plural()),
    }
}

// === impl Covers ===

impl Covers {
    /// One cache, which the first source fills.
    pub(super) fn of(cover: Cover) -> Self {
        let covers = Self::default();
        covers.add(covers.number(), cover);
        covers
    }

    /// A number for one more source, or for one more store that is read.
    pub(super) fn number(&self) -> usize {
        self.next.fetch_add(1, Relaxed)
    }

    /// Takes in the cache that source number `source` fills.
    pub(super) fn add(&self, source: usize, cover: Cover) {
        cover.progress.listen(&self.listener);
        self.change(|covers| covers.push((source, cover)));
    }

    /// Takes in what a cache holds, which was not known before.
    pub(super) fn set_scope(&self, source: usize, scope: &Scope) {
        self.change(|covers| {
            let of_source = covers.iter_mut().filter(|(other, _)| *other == source);
            of_source.for_each(|(_, cover)| cover.scope = scope.clone());
        });
    }

    /// Takes in that a cache changes no more.
    pub(super) fn remove(&self, source: usize) {
        self.change(|covers| covers.retain(|(other, _)| *other != source));
    }

    /// The caches that have not seen a write of a run of `run` yet and will. A later write of the same object
    /// stands for those before it.
    pub(super) fn unseen(&self, run: &ObjectKey, writes: &[Write]) -> Vec<Unseen> {
        let mut expected: Vec<Unseen> = Vec::new();
        let covers = self.read();
        for write in writes {
            for (source, cover) in covers.iter() {
                if !cover.scope.is_of_kind(write.group(), write.resource()) {
                    continue;
                }
                let earlier = expected
                    .iter()
                    .position(|other| other.source == *source && other.object.is_of(write));
                let after = match earlier.map(|index| expected[index].sight) {
                    Some(Sight::Version(version)) => version,
                    Some(Sight::Gone) | None => 0,
                };
                let sight = cover.sight(run, write, after);
                let now = sight.map(|sight| Expected {
                    source: *source,
                    object: Arc::new(Written {
                        key: write.key(),
                        resource: Arc::clone(&cover.scope.resource),
                        uid: write.uid().filter(|_| write.is_gone()).map(Box::from),
                        after,
                    }),
                    sight,
                });
                match (earlier, now) {
                    (None, None) => {}
                    (None, Some(now)) => expected.push(now),
                    (Some(index), Some(now)) => expected[index] = now,
                    (Some(index), None) => drop(expected.swap_remove(index)),
                }
            }
        }
        expected
    }

    /// Takes in that a run has used a client that tells what it writes.
    pub(super) fn set_tracked(&self) {
        self.tracked.store(true, Relaxed);
    }

    pub(super) fn are_tracked(&self) -> bool {
        self.tracked.load(Relaxed)
    }

    /// What each cache has come to.
    pub(super) fn reached(&self) -> Vec<(usize, u64)> {
        let covers = self.read();
        let reached = covers.iter();
        reached
            .map(|(source, cover)| (*source, cover.progress.version()))
            .collect()
    }

    /// Whether an object is not in a cache any more.
    pub(super) fn is_gone(&self, source: usize, written: &Written) -> bool {
        let covers = self.read();
        let mut of_source = covers.iter().filter(|(other, _)| *other == source);
        of_source
            .all(|(_, cover)| cover.has_lost(&written.key, written.uid.as_deref(), written.after))
    }

    /// Names the sources that tell of objects of the kind that was written.
    pub(super) fn each_source_of(&self, write: &Write, mut take: impl FnMut(usize)) {
        for (source, cover) in self.read().iter() {
            if cover.scope.is_of_kind(write.group(), write.resource()) {
                take(*source);
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(usize, Cover)>)) {
        let mut caches = self.caches.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut caches);
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<(usize, Cover)>> {
        self.caches.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known for Covers {
    fn reached(&self, group: &str, resource: &str) -> Option<u64> {
        let covers = self.read();
        let of_kind = covers
            .iter()
            .filter(|(_, cover)| cover.scope.is_of_kind(group, resource));
        let reached = of_kind.filter_map(|(_, cover)| cover.reached());
        reached.max()
    }
}

// === impl Cover ===

impl Cover {
    /// A store that somebody else fills, nobody knows with what.
    pub(super) fn of_store<K>(store: &Store<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Hash + Eq + Send + Sync,
    {
        let dyntype = store.dyntype();
        Self {
            scope: Scope::unknown(&K::group(dyntype), &K::plural(dyntype)),
            progress: store.progress(),
            view: Some(Arc::new(store.clone())),
        }
    }

    /// A store that reconcilers were seen to read.
    pub(super) fn of_read(read: &Read) -> Self {
        let Read { status, versions } = read;
        Self {
            scope: scope_of(status),
            view: Some(Arc::clone(versions) as Arc<dyn View>),
            progress: status.progress(),
        }
    }

    /// The same of a store that cannot be asked from other threads.
    pub(super) fn of_local_store<K>(store: &Store<K>) -> Self
    where
        K: Resource + 'static,
        K::DynamicType: Hash + Eq,
    {
        Self {
            progress: store.progress(),
            ..Self::of_stream::<K>(store.dyntype())
        }
    }

    /// Objects that a stream shows. Where it keeps them is not known, so it is never waited for.
    pub(super) fn of_stream<K: Resource>(dyntype: &K::DynamicType) -> Self {
        Self {
            scope: Scope::unknown(&K::group(dyntype), &K::plural(dyntype)),
            progress: Progress::default(),
            view: None,
        }
    }

    /// The version up to which it has seen everything; `None` if it never had a list.
    fn reached(&self) -> Option<u64> {
        let progress = &self.progress;
        progress.is_listed().then(|| progress.version())
    }

    /// What to wait for until the cache has seen a write; `None` if it has, or never will.
    ///
    /// A cache that never had a list is not waited for: its source fails, and may do so for ever.
    fn sight(&self, run: &ObjectKey, write: &Write, after: u64) -> Option<Sight> {
        let reached = self.reached()?;
        if write.is_gone() {
            let is_lost = self.has_lost(&write.key(), write.uid(), after);
            return (!is_lost).then_some(Sight::Gone);
        }
        let version = write.number().filter(|&version| version > reached)?;
        let is_given = || self.view.is_none() && write.key() == *run;
        if self.scope.takes(write) || is_given() {
            return Some(Sight::Version(version));
        }
        // It may belong in here by what it was before, and where nobody knows what does, it is asked.
        let shown = self.view.as_ref()?.version(&write.key())?;
        (shown < version).then_some(Sight::Version(version))
    }

    /// Whether the cache has come to version `after`, and does not show this very object; any under
    /// its key, if the uid is not known.
    fn has_lost(&self, key: &ObjectKey, uid: Option<&str>, after: u64) -> bool {
        let view = self.view.as_ref();
        !view.is_some_and(|view| view.shows(key, uid)) && self.progress.version() >= after
    }
}

// === impl Written ===

impl Written {
    fn is_of(&self, write: &Write) -> bool {
        *self.resource == *write.resource()
            && self.key.name() == write.name()
            && self.key.namespace() == write.namespace().unwrap_or_default()
    }
}

// === impl View ===

impl View for Versions {
    fn version(&self, key: &ObjectKey) -> Option<u64> {
        Self::version(self, key)
    }

    fn shows(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        Self::shows(self, key, uid)
    }
}

impl<K> View for Store<K>
where
    K: Lookup + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Send + Sync,
{
    fn version(&self, key: &ObjectKey) -> Option<u64> {
        let shown = self.snapshot(key)?;
        Some(shown.version().unwrap_or(0))
    }

    fn shows(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        self.snapshot(key).is_some_and(|obj| {
            let shown = obj.uid();
            uid.is_none() || shown.is_none() || shown.as_deref() == uid
        })
    }
}

//! The caches of a controller, and whether they have seen a write (rule R21).

use super::scope::Scope;
use crate::{
    client::{Before, Known, Write},
    progress::{Listener, Progress},
    reflector::{Lookup, ObjectKey, Store},
};
use homeostat_core::unseen::{Expected, Sight};
use kube::Resource;
use std::{
    hash::Hash,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

/// A cache that reconcilers read, or that wakes them.
pub(super) struct Cover {
    pub(super) scope: Scope,
    pub(super) view: Arc<dyn View>,
    pub(super) progress: Progress,
}

/// What a cache says of an object.
pub(super) trait View: Send + Sync {
    /// What it shows under this key.
    fn shown(&self, key: &ObjectKey) -> Option<Shown>;
}

/// A version of an object in a cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) uid: Option<String>,
    pub(super) version: Option<u64>,
}

/// The caches of one controller. They join when the sources that fill them do.
#[derive(Default)]
pub(super) struct Covers {
    covers: RwLock<Vec<(usize, Cover)>>,
    pub(super) listener: Arc<Listener>,
}

/// What is waited for, so that it can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) key: ObjectKey,
    pub(super) uid: Option<String>,
    pub(super) resource: String,
    /// For an object that is gone: the version before which a cache may not even have seen that it
    /// was there.
    after: u64,
}

// === impl Covers ===

impl Covers {
    /// Takes in the cache that source number `source` fills.
    pub(super) fn add(&self, source: usize, cover: Cover) {
        cover.progress.listen(&self.listener);
        let mut covers = self.covers.write().unwrap_or_else(PoisonError::into_inner);
        covers.push((source, cover));
    }

    /// The caches that have not seen a write yet and will. A later write of the same object stands
    /// for those before it.
    pub(super) fn unseen(&self, writes: &[Write]) -> Vec<Expected<Written>> {
        let mut expected: Vec<Expected<Written>> = Vec::new();
        for write in writes {
            let key = write.key();
            for (source, cover) in self.read().iter() {
                if !cover.scope.is_of_kind(&write.group, &write.resource) {
                    continue;
                }
                let mut written = Written {
                    key: key.clone(),
                    uid: write.uid.clone(),
                    resource: write.resource.clone(),
                    after: 0,
                };
                let earlier = expected
                    .iter()
                    .position(|other| other.source == *source && other.object.key == written.key);
                let earlier = earlier.map(|index| expected.swap_remove(index));
                if let Some(Sight::Version(version)) = earlier.as_ref().map(|other| other.sight) {
                    written.after = version;
                }
                let sight = cover.sight(write, &written);
                expected.extend(sight.map(|sight| Expected {
                    source: *source,
                    object: written,
                    sight,
                }));
            }
        }
        expected
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
        of_source.all(|(_, cover)| cover.has_lost(written))
    }

    /// The sources that tell of objects of the kind that was written.
    pub(super) fn sources_of(&self, write: &Write) -> Vec<usize> {
        let covers = self.read();
        let of_kind = covers
            .iter()
            .filter(|(_, cover)| cover.scope.is_of_kind(&write.group, &write.resource));
        of_kind.map(|(source, _)| *source).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<(usize, Cover)>> {
        self.covers.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known for Covers {
    fn before(&self, group: &str, resource: &str, key: &ObjectKey) -> Before {
        let mut before = Before::default();
        let covers = self.read();
        let of_kind = covers
            .iter()
            .filter(|(_, cover)| cover.scope.is_of_kind(group, resource));
        for (_, cover) in of_kind {
            let shown = cover.view.shown(key).and_then(|shown| shown.version);
            before.version = before.version.max(shown);
            let reached = cover.progress.is_listed().then(|| cover.progress.version());
            before.reached = before.reached.max(reached);
        }
        before
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
            view: Arc::new(store.clone()),
        }
    }

    /// What to wait for until the cache has seen a write; `None` if it has, or never will.
    ///
    /// A cache that never had a list is not waited for: its source fails, and may do so for ever.
    fn sight(&self, write: &Write, written: &Written) -> Option<Sight> {
        if !self.progress.is_listed() {
            return None;
        }
        if write.gone {
            return (!self.has_lost(written)).then_some(Sight::Gone);
        }
        let shown = self.view.shown(&written.key);
        if shown.is_none() && !self.scope.takes(write) {
            return None;
        }
        let version = write.number()?;
        let shown = shown.and_then(|shown| shown.version).unwrap_or(0);
        let seen = self.progress.version().max(shown) >= version;
        (!seen).then_some(Sight::Version(version))
    }

    /// Whether the cache has seen that this very object is gone; any under its key, if the uid is not
    /// known.
    fn has_lost(&self, written: &Written) -> bool {
        let shows = self.view.shown(&written.key).is_some_and(|shown| {
            let (shown, lost) = (shown.uid.as_ref(), written.uid.as_ref());
            shown.is_none() || lost.is_none() || shown == lost
        });
        !shows && self.progress.version() >= written.after
    }
}

// === impl View ===

impl<K> View for Store<K>
where
    K: Lookup + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Send + Sync,
{
    fn shown(&self, key: &ObjectKey) -> Option<Shown> {
        self.get_key(key).map(|obj| Shown {
            uid: obj.uid().map(Into::into),
            version: obj
                .resource_version()
                .and_then(|version| version.parse().ok()),
        })
    }
}

//! How far caches have come: the version up to which they have seen what happened to a kind.
//!
//! A watch tells of changes in the order of their versions, so a cache that has come to a version has
//! seen every write up to it, also of objects that it does not hold.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use tokio::sync::Notify;

/// How far one cache has come. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Whether a list was ever complete.
    listed: AtomicBool,
    /// The version that the cache has come to, as far as it is known.
    version: AtomicU64,
    listeners: Mutex<Vec<Weak<Listener>>>,
}

/// Somebody who waits for caches at times.
#[derive(Default)]
pub(crate) struct Listener {
    waits: AtomicBool,
    moved: Notify,
}

// === impl Progress ===

impl Progress {
    /// The cache holds a complete list. Its version is this one or a later one.
    pub(crate) fn listed(&self, version: Option<u64>) {
        self.0.listed.store(true, SeqCst);
        match version {
            Some(version) => self.reached(version),
            None => self.tell(),
        }
    }

    /// The cache has seen what happened up to this version. It can be an older one than before: a
    /// server that was restored from a backup has such.
    pub(crate) fn reached(&self, version: u64) {
        self.0.version.store(version, SeqCst);
        self.tell();
    }

    /// Whether a list was ever complete.
    pub(crate) fn is_listed(&self) -> bool {
        self.0.listed.load(SeqCst)
    }

    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(SeqCst)
    }

    /// Tells `listener` from now on.
    pub(crate) fn listen(&self, listener: &Arc<Listener>) {
        let mut listeners = self.0.listeners();
        listeners.retain(|other| other.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    fn tell(&self) {
        for listener in self.0.listeners().iter().filter_map(Weak::upgrade) {
            listener.tell();
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.version()).finish()
    }
}

// === impl Shared ===

impl Shared {
    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Listener>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Listener ===

impl Listener {
    /// Whether it is to be told. Once this is set, every cache that moves tells; what was reached
    /// before has to be looked at afterwards.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.waits.store(waits, SeqCst);
    }

    /// Completes when a cache has moved since the last time.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }

    fn tell(&self) {
        if self.waits.load(SeqCst) {
            self.moved.notify_one();
        }
    }
}

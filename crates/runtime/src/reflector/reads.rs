//! Who reads which stores (design D6).
//!
//! A controller drives its runs and its sources with a [`Reader`] in a task-local. Every reading method of a store
//! comes by here, so that the controller learns which stores it depends on, and a run whether it has taken an
//! incomplete store for an empty one.

use super::{
    status::{Bell, Status},
    versions::Versions,
};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// Who this task reads for.
    static READER: Arc<Reader>;
}

/// Somebody who reads stores for a controller: a run, or one of its sources.
#[derive(Debug)]
pub(crate) struct Reader {
    registry: Arc<Registry>,
    kind: Kind,
    /// The store that was read last, by its id: most runs read few stores, each again and again.
    last: AtomicU64,
    /// The first store that was read before it was complete.
    incomplete: OnceLock<Arc<Status>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    Source,
}

/// The stores that the runs and sources of a controller have read.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    stores: Mutex<Stores>,
    /// Rings when there is a new store, or something about a store has changed.
    pub(crate) bell: Arc<Bell>,
    /// Whether requests of the controller came by a tracked client.
    tracked: AtomicBool,
}

#[derive(Debug, Default)]
struct Stores {
    /// By their ids.
    known: Vec<u64>,
    /// Those that the controller has not taken in yet.
    new: Vec<Read>,
    /// Those that a source has read too early, so that it may have missed whom an event concerns.
    misread: Vec<u64>,
}

/// A store that was read.
pub(crate) struct Read {
    pub(crate) status: Arc<Status>,
    pub(crate) versions: Arc<Versions>,
}

/// Drives `future` on behalf of `reader`.
pub(crate) fn reading<F: Future>(
    reader: Arc<Reader>,
    future: F,
) -> TaskLocalFuture<Arc<Reader>, F> {
    READER.scope(reader, future)
}

/// Calls `f` on behalf of `reader`.
pub(crate) fn reading_now<T>(reader: Arc<Reader>, f: impl FnOnce() -> T) -> T {
    READER.sync_scope(reader, f)
}

/// Whoever this task reads for reads a store, or waits for it if `uses` is [`Use::Wait`].
pub(super) fn note(status: &Arc<Status>, uses: Use, versions: impl FnOnce() -> Arc<Versions>) {
    let note = |reader: &Arc<Reader>| reader.note(status, uses, versions);
    // Outside of controllers nobody counts.
    READER.try_with(note).unwrap_or_default();
}

/// What is done with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Its objects are looked at.
    Read,
    /// It is asked whether it is complete, or followed.
    Wait,
}

// === impl Reader ===

impl Default for Reader {
    fn default() -> Self {
        Self::of_run(Arc::default())
    }
}

impl Reader {
    pub(crate) fn of_run(registry: Arc<Registry>) -> Self {
        Self::new(registry, Kind::Run)
    }

    pub(crate) fn of_source(registry: Arc<Registry>) -> Self {
        Self::new(registry, Kind::Source)
    }

    fn new(registry: Arc<Registry>, kind: Kind) -> Self {
        Self {
            registry,
            kind,
            last: AtomicU64::new(0),
            incomplete: OnceLock::new(),
        }
    }

    /// The first store that was read before it was complete.
    pub(crate) fn incomplete(&self) -> Option<&Arc<Status>> {
        self.incomplete.get()
    }

    fn note(&self, status: &Arc<Status>, uses: Use, versions: impl FnOnce() -> Arc<Versions>) {
        let is_ready = status.is_ready();
        if self.last.load(Relaxed) != status.id() {
            self.registry.add(status, versions);
            self.last.store(status.id(), Relaxed);
        }
        if is_ready || uses == Use::Wait {
            return;
        }
        match self.kind {
            Kind::Run => {
                self.incomplete.get_or_init(|| Arc::clone(status));
            }
            Kind::Source => self.registry.misread(status),
        }
    }
}

// === impl Registry ===

impl Registry {
    /// Takes in a store that the controller knows of without its being read.
    pub(crate) fn know(&self, status: &Status) {
        self.lock().known.push(status.id());
    }

    /// Forgets a store that will not change any more. If it is read again, it is a new one.
    pub(crate) fn forget(&self, status: &Status) {
        self.lock().known.retain(|id| *id != status.id());
    }

    /// Takes out the stores that were read for the first time.
    pub(crate) fn take_new(&self) -> Vec<Read> {
        std::mem::take(&mut self.lock().new)
    }

    /// Whether a source has read this store too early; it is asked once.
    pub(crate) fn take_misread(&self, status: &Status) -> bool {
        let mut stores = self.lock();
        let before = stores.misread.len();
        stores.misread.retain(|id| *id != status.id());
        stores.misread.len() < before
    }

    pub(crate) fn set_tracked(&self) {
        self.tracked.store(true, Relaxed);
    }

    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked.load(Relaxed)
    }

    fn add(&self, status: &Arc<Status>, versions: impl FnOnce() -> Arc<Versions>) {
        if self.lock().known.contains(&status.id()) {
            return;
        }
        // Not under the lock: it takes that of the store.
        let versions = versions();
        let mut stores = self.lock();
        if stores.known.contains(&status.id()) {
            return;
        }
        stores.known.push(status.id());
        stores.new.push(Read {
            status: Arc::clone(status),
            versions,
        });
        drop(stores);
        status.ring(&self.bell);
        self.bell.ring();
    }

    fn misread(&self, status: &Status) {
        let mut stores = self.lock();
        if !stores.misread.contains(&status.id()) {
            stores.misread.push(status.id());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Read ===

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Read").field(&self.status).finish()
    }
}

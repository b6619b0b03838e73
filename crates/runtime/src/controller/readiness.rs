//! Whether a controller sees everything that it needs to see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tells whether a controller is ready, and what it waits for. Clones see the same.
///
/// A controller is ready when each of its watches has a complete cache and none is failing.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    sources: Arc<Mutex<Vec<SourceStatus>>>,
}

/// The state of one watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// What is watched, as `deployments.apps in all namespaces`.
    pub name: String,
    /// Whether the first list is complete.
    pub synced: bool,
    /// The latest error, until the server accepts a watch again.
    pub last_error: Option<String>,
}

// === impl Readiness ===

impl Readiness {
    /// Whether the controller runs, has complete caches, and no watch of it is failing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let sources = self.lock();
        !sources.is_empty()
            && sources
                .iter()
                .all(|source| source.synced && source.last_error.is_none())
    }

    /// The state of each watch. Before the controller runs there is none.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.lock().clone()
    }

    /// Adds a source. Sources are added in the order of their numbers.
    pub(super) fn join(&self, name: String, syncs: bool) {
        self.lock().push(SourceStatus {
            name,
            synced: !syncs,
            last_error: None,
        });
    }

    /// Changes the state of a source with `change`.
    pub(super) fn update(&self, source: usize, change: impl FnOnce(&mut SourceStatus)) {
        if let Some(status) = self.lock().get_mut(source) {
            change(status);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SourceStatus>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

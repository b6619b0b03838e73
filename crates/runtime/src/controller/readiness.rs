//! Whether a controller sees everything that it needs to see.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Tells whether a controller is ready, and what it waits for. Clones see the same.
///
/// A controller is ready when each of its watches has a complete cache and none is failing, and it is not
/// [stuck](Self::stuck). The stores that its reconciler reads count as well, whoever fills them: `store of secrets in
/// all namespaces`.
///
/// ```
/// use homeostat::{Controller, watcher};
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube::Api;
///
/// fn probe(api: Api<Deployment>) -> impl Fn() -> Result<(), String> {
///     let controller = Controller::new(api, watcher::Config::default());
///     let readiness = controller.readiness();
///     // Here the controller is run.
///     move || {
///         if readiness.is_ready() {
///             return Ok(());
///         }
///         let waits = readiness.sources().into_iter().filter(|source| !source.synced);
///         let names: Vec<_> = waits.map(|source| source.name).collect();
///         Err(format!("waits for {}", names.join(", ")))
///     }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// By their numbers.
    sources: Arc<Mutex<BTreeMap<usize, SourceStatus>>>,
    stuck: Arc<Mutex<Vec<StuckRun>>>,
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
    /// Whether the server does not serve the kind, as of that error: its definition is missing.
    pub not_served: bool,
}

/// A run that holds one of a controller's slots and does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckRun {
    /// The object, as `namespace/name`.
    pub object: String,
    /// How long the run had taken when it was noticed.
    pub running_for: Duration,
    /// What it waited for then: the requests that were under way, as `PATCH /api/v1/... for 61s`.
    pub waits_for: Vec<String>,
    /// Whether that is an answer of the API server, or may be: requests of a client that is not tracked are not known.
    pub asks_server: bool,
}

// === impl StuckRun ===

impl fmt::Display for StuckRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            running_for,
            waits_for,
            asks_server: _,
        } = self;
        let seconds = running_for.as_secs();
        write!(
            f,
            "{object} has run for {seconds}s and waits for {}",
            waits_for.join(", ")
        )
    }
}

// === impl Readiness ===

impl Readiness {
    /// Whether the controller runs, has complete caches, and no watch of it is failing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let sources = self.lock();
        !sources.is_empty()
            && sources
                .values()
                .all(|source| source.synced && source.last_error.is_none())
            && self.lock_stuck().is_empty()
    }

    /// The runs that hold all slots of the controller ([`Config::concurrency`](super::Config::concurrency)), if none
    /// of them has ended for a minute; empty otherwise.
    ///
    /// Nothing else can run then. It is empty again as soon as one of them ends.
    #[must_use]
    pub fn stuck(&self) -> Vec<StuckRun> {
        self.lock_stuck().clone()
    }

    pub(super) fn set_stuck(&self, stuck: Vec<StuckRun>) {
        *self.lock_stuck() = stuck;
    }

    /// The state of each watch. Before the controller runs there is none.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.lock().values().cloned().collect()
    }

    /// Adds a source.
    pub(super) fn join(&self, source: usize, name: String, syncs: bool) {
        let status = SourceStatus {
            name,
            synced: !syncs,
            last_error: None,
            not_served: false,
        };
        self.lock().insert(source, status);
    }

    /// Takes a source away.
    pub(super) fn leave(&self, source: usize) {
        self.lock().remove(&source);
    }

    /// Changes the state of a source with `change`.
    pub(super) fn update(&self, source: usize, change: impl FnOnce(&mut SourceStatus)) {
        if let Some(status) = self.lock().get_mut(&source) {
            change(status);
        }
    }

    fn lock_stuck(&self) -> MutexGuard<'_, Vec<StuckRun>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, SourceStatus>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What works on objects beside the clients: garbage collection, the end of namespaces and
//! definitions, and if wanted something that pretends to be the workload controllers, or that collects rules of roles.
//!
//! Each is a value with `step`, which makes at most one write: a test can run them between any two
//! requests, and [`drive`] runs them whenever something changed.

mod aggregation;
mod collector;
mod definitions;
mod expiry;
mod furnishing;
mod namespaces;
mod workloads;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use self::aggregation::Aggregation;
use self::collector::Collector;
use self::definitions::Definitions;
use self::expiry::Expiry;
use self::furnishing::Furnishing;
pub(crate) use self::workloads::Workloads;
use crate::registry::{DeleteOptions, Registry, WriteOptions};

/// Which actors run by themselves.
#[derive(Debug, Clone)]
pub(crate) struct Enabled(BTreeSet<Actor>);

/// One of the actors, in the order in which they have their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    GarbageCollector,
    Namespaces,
    Definitions,
    Expiry,
    Furnishing,
    Aggregation,
    Workloads,
}

/// The state of all actors.
#[derive(Debug, Default)]
pub(crate) struct Actors {
    collector: Collector,
    definitions: Definitions,
    expiry: Expiry,
    furnishing: Furnishing,
    aggregation: Aggregation,
    workloads: Workloads,
}

/// Who the actors are as writers.
const MANAGER: &str = "kube-controller-manager";

// === impl Actors ===

impl Actors {
    /// Lets an actor make its next write. False if it has nothing to do.
    pub(crate) fn step(&mut self, actor: Actor, registry: &mut Registry) -> bool {
        match actor {
            Actor::GarbageCollector => self.collector.step(registry),
            Actor::Namespaces => namespaces::step(registry),
            Actor::Definitions => self.definitions.step(registry),
            Actor::Expiry => self.expiry.step(registry),
            Actor::Furnishing => self.furnishing.step(registry),
            Actor::Aggregation => self.aggregation.step(registry),
            Actor::Workloads => self.workloads.step(registry),
        }
    }
}

// === impl Enabled ===

impl Default for Enabled {
    fn default() -> Self {
        Self(BTreeSet::from([
            Actor::GarbageCollector,
            Actor::Namespaces,
            Actor::Definitions,
            Actor::Expiry,
        ]))
    }
}

impl Enabled {
    pub(crate) fn has(&self, actor: Actor) -> bool {
        self.0.contains(&actor)
    }

    pub(crate) fn set(&mut self, actor: Actor, enabled: bool) {
        if enabled {
            self.0.insert(actor);
        } else {
            self.0.remove(&actor);
        }
    }
}

/// What the actors share with the server.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) registry: Mutex<Registry>,
    pub(crate) actors: Mutex<Actors>,
    /// Tells that the actors have something to do though nothing was written.
    pub(crate) nudge: Arc<Notify>,
}

// === impl Stage ===

impl Stage {
    /// Does something with the registry while nobody else does.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Registry) -> T) -> T {
        // A panic in the middle of a write is a bug of this crate; other tests may still go on.
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut registry)
    }

    /// Lets an actor make its next write. False if it has nothing to do.
    pub(crate) fn step(&self, actor: Actor) -> bool {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        self.with(|registry| actors.step(actor, registry))
    }

    /// Tells the workloads something, and lets them act on it.
    pub(crate) fn direct<T>(&self, work: impl FnOnce(&mut Workloads, &Registry) -> T) -> T {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.with(|registry| work(&mut actors.workloads, registry));
        self.nudge.notify_one();
        told
    }

    /// For how long the actors have nothing to do if nothing changes. None if for ever.
    fn rest(&self) -> Option<Duration> {
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        let wake = actors.workloads.wake()?;
        let now = self.with(|registry| registry.timestamp());
        let rest = Duration::try_from(wake.duration_since(now)).unwrap_or_default();
        Some(rest.clamp(SHORTEST_REST, LONGEST_REST))
    }
}

/// Bounds of what the actors wait for at a time. A clock that stands still must not keep them busy, and not all clocks
/// go as tokio's does.
const SHORTEST_REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the actors whenever something changed or is due, until the server is gone.
pub(crate) async fn drive(
    stage: Weak<Stage>,
    enabled: Enabled,
    mut revisions: watch::Receiver<u64>,
    nudge: Arc<Notify>,
) {
    let mut rest = None;
    loop {
        tokio::select! {
            changed = revisions.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = nudge.notified() => {}
            () = sleep(rest) => {}
        }
        rest = loop {
            let Some(stage) = stage.upgrade() else { return };
            let actors = enabled.0.iter();
            let worked = actors.fold(false, |worked, actor| stage.step(*actor) | worked);
            if !worked {
                let has_timers = enabled.has(Actor::Workloads);
                break if has_timers { stage.rest() } else { None };
            }
            drop(stage);
            // Clients get their turn between any two writes.
            tokio::task::yield_now().await;
        };
    }
}

/// Waits for so long, or for ever.
async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn write_options() -> WriteOptions {
    WriteOptions {
        manager: MANAGER.to_owned(),
        ..WriteOptions::default()
    }
}

fn delete_options() -> DeleteOptions {
    DeleteOptions::default()
}

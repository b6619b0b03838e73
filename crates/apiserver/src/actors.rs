//! What works on objects beside the clients: garbage collection, the end of namespaces and
//! definitions, and if wanted something that pretends to be the workload controllers.
//!
//! Each is a value with `step`, which makes at most one write: a test can run them between any two
//! requests, and [`drive`] runs them whenever something changed.

mod collector;
mod definitions;
mod expiry;
mod furnishing;
mod namespaces;
mod workloads;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, Weak};

use tokio::sync::watch;

use self::collector::Collector;
use self::definitions::Definitions;
use self::expiry::Expiry;
use self::furnishing::Furnishing;
use self::workloads::Workloads;
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
    Workloads,
}

/// The state of all actors.
#[derive(Debug, Default)]
pub(crate) struct Actors {
    collector: Collector,
    definitions: Definitions,
    expiry: Expiry,
    furnishing: Furnishing,
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
}

/// Runs the actors whenever something changed, until the server is gone.
pub(crate) async fn drive(
    stage: Weak<Stage>,
    enabled: Enabled,
    mut revisions: watch::Receiver<u64>,
) {
    while revisions.changed().await.is_ok() {
        loop {
            let Some(stage) = stage.upgrade() else { return };
            let actors = enabled.0.iter();
            let worked = actors.fold(false, |worked, actor| stage.step(*actor) | worked);
            drop(stage);
            if !worked {
                break;
            }
            // Clients get their turn between any two writes.
            tokio::task::yield_now().await;
        }
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

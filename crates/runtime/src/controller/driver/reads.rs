//! The stores that runs read: they gate the start of runs like the controller's own caches (rule R15).

use super::{Driver, InSpan, Intake, triggers::Told};
use crate::{
    controller::{
        Action, ReconcileReason,
        cover::{Cover, scope_of},
    },
    reflector::{Bell, Condition, Read, Registry, Status, store::WriterDropped},
    task::Spawn,
};
use futures::TryFuture;
use homeostat_core::queue::Priority;
use kube::Resource;
use std::{collections::BTreeMap, fmt::Debug, hash::Hash, sync::Arc};

/// The stores that the runs of a controller have read, and those that its sources follow.
pub(super) struct Reads {
    registry: Arc<Registry>,
    /// By their numbers.
    stores: BTreeMap<usize, Entry>,
    /// Whether one of them is not complete.
    awaited: bool,
}

/// A store that was read.
struct Entry {
    status: Arc<Status>,
    ready: bool,
    /// Whether it is known which watch fills it.
    scoped: bool,
    /// Whether nothing filled it any more when it was read.
    orphaned: bool,
}

// === impl Reads ===

impl Reads {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            stores: BTreeMap::new(),
            awaited: false,
        }
    }

    /// Whether a store is waited for, as of the last look.
    pub(super) fn are_awaited(&self) -> bool {
        self.awaited
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What rings when something about a store has changed.
    pub(super) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.registry.bell)
    }
}

impl<K, Q, I, S, R, P, Ctx, Fut> Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
    Q: std::error::Error + 'static,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    R: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: std::error::Error + 'static,
{
    /// Whether a store that is read is not complete, so that nothing may start.
    pub(super) fn awaits_stores(&mut self) -> bool {
        let bell = &self.reads.registry.bell;
        if bell.has_rung() {
            // What happens from here on rings once more.
            bell.silence();
            self.look_at_stores();
        }
        self.reads.awaited
    }

    fn look_at_stores(&mut self) {
        for read in self.reads.registry.take_new() {
            self.add_store(&read);
        }
        let mut misread = false;
        let numbers: Vec<usize> = self.reads.stores.keys().copied().collect();
        for number in numbers {
            misread |= self.look_at_store(number);
        }
        let mut stores = self.reads.stores.values();
        self.reads.awaited = stores.any(|entry| !entry.ready && !entry.orphaned);
        if misread {
            // A mapper has looked for whom an event concerns, and may have found too few.
            for key in self.store.keys() {
                let told = Told::unasked(ReconcileReason::BulkReconcile, Priority::Low);
                self.trigger(key, told);
            }
        }
    }

    /// Takes in a store that was read for the first time.
    fn add_store(&mut self, read: &Read) {
        let status = &read.status;
        let number = self.writes.covers().number();
        let Condition {
            ready,
            closed,
            joined: _,
            error,
        } = status.condition();
        let entry = Entry {
            status: Arc::clone(status),
            ready: false,
            scoped: status.origin().is_some(),
            orphaned: closed,
        };
        self.reads.stores.insert(number, entry);
        self.readiness
            .join(number, format!("store of {status}"), true);
        if closed {
            // It will not change any more, so whoever looks at this controller has to know.
            let error = match error {
                _ if ready => "its writer was dropped, so it stays as it is".to_owned(),
                error => WriterDropped::of(
                    status,
                    Condition {
                        ready,
                        closed,
                        joined: false,
                        error,
                    },
                )
                .to_string(),
            };
            tracing::warn!(store = %status, error, "reconcilers read a store that nothing fills");
            self.readiness.update(number, |source| {
                source.synced = ready;
                source.last_error = Some(error);
            });
            return;
        }
        self.writes.covers().add(number, Cover::of_read(read));
        if !ready {
            tracing::info!(store = %status, "a store that is read is not complete yet: nothing runs until it is");
        }
    }

    /// Takes in what has changed about a store. True if a source has read it too early, and it is complete now.
    fn look_at_store(&mut self, number: usize) -> bool {
        let Some(entry) = self.reads.stores.get_mut(&number) else {
            return false;
        };
        if entry.orphaned {
            return false;
        }
        let status = Arc::clone(&entry.status);
        let condition = status.condition();
        if !entry.scoped && status.origin().is_some() {
            entry.scoped = true;
            self.writes.covers().set_scope(number, &scope_of(&status));
        }
        let completed = condition.ready && !entry.ready;
        entry.ready = condition.ready;
        if condition.closed || condition.joined {
            // It waits for nothing any more. Somebody who reads it is told then: it may be that nobody does.
            self.reads.stores.remove(&number);
            self.reads.registry.forget(&status);
            self.writes.covers().remove(number);
            self.readiness.leave(number);
            return false;
        }
        self.readiness.update(number, |source| {
            source.name = format!("store of {status}");
            source.synced = condition.ready;
            source.last_error = condition.error.as_deref().map(str::to_owned);
        });
        completed && self.reads.registry.take_misread(&status)
    }
}

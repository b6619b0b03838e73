//! What the driver does when objects move between its replica and others.

use super::{Driver, InSpan, Intake, triggers::Told};
use crate::{
    controller::{Action, ReconcileReason, service::Service},
    reflector::ObjectKey,
    task::Spawn,
};
use futures::TryFuture;
use homeostat_core::{
    cache::Versioned,
    queue::Priority,
    shard::{Share, hash},
    time::Time,
};
use kube::Resource;
use std::{collections::BTreeSet, fmt::Debug, hash::Hash, mem, sync::Arc};

/// Runs of objects that have moved to other replicas.
#[derive(Debug, Default)]
pub(super) struct Moved {
    keys: BTreeSet<ObjectKey>,
    /// When they are cancelled.
    pub(super) until: Option<Time>,
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
    /// Takes in which objects are for this replica, if that has changed.
    pub(super) fn take_up_share(&mut self) {
        let Some(share) = self.service.as_mut().and_then(Service::share) else {
            return;
        };
        let Some(before) = share.take_up() else {
            return;
        };
        let hand_over = share.hand_over();
        for (key, had, has) in self.compare(&before) {
            if has && !had {
                // Whoever had it before may have left something half done.
                let told = Told::unasked(ReconcileReason::BulkReconcile, Priority::Low);
                self.trigger(key, told);
            } else if had && !has && !self.running.contains_key(&key) {
                self.forget(&key);
            }
        }
        let moved = self.running.iter().filter(|(_, active)| {
            let uid = active.obj.meta().uid.as_deref();
            !self.owns(uid)
        });
        self.moved.keys = moved.map(|(key, _)| key.clone()).collect();
        if self.moved.keys.is_empty() {
            self.moved.until = None;
        } else if self.moved.until.is_none() {
            self.moved.until = Some(self.now() + hand_over);
        }
        self.tell_moved();
    }

    /// Which objects were and are for this replica.
    fn compare(&self, before: &Share) -> Vec<(ObjectKey, bool, bool)> {
        let keys = self.store.keys().into_iter();
        keys.filter_map(|key| {
            let snapshot = self.store.snapshot(&key)?;
            let uid = snapshot.uid();
            let had = before.owns(hash(uid.as_deref().unwrap_or_default()));
            let has = self.owns(uid.as_deref());
            (had != has).then_some((key, had, has))
        })
        .collect()
    }

    fn owns(&self, uid: Option<&str>) -> bool {
        self.service
            .as_ref()
            .is_none_or(|service| service.owns(uid))
    }

    /// Whether a key is for another replica. One whose object is not known is not.
    pub(super) fn is_elsewhere(&self, key: &ObjectKey) -> bool {
        let is_alone = self
            .service
            .as_ref()
            .is_none_or(|service| !service.shares());
        if is_alone {
            return false;
        }
        let snapshot = self.store.snapshot(key);
        snapshot.is_some_and(|snapshot| !self.owns(snapshot.uid().as_deref()))
    }

    /// Ends a run before it begins, of an object that has moved to another replica.
    pub(super) fn leave_run(&mut self, key: &ObjectKey) {
        self.histories.abandoned(key);
        let nothing = Action::await_change().outcome(false);
        self.forget(key);
        self.queue.done(self.now(), key, nothing, 0.0);
    }

    /// Takes in that runs have ended.
    pub(super) fn count_moved(&mut self) {
        if self.moved.keys.is_empty() {
            return;
        }
        let running = &self.running;
        self.moved.keys.retain(|key| running.contains_key(key));
        if self.moved.keys.is_empty() {
            self.moved.until = None;
        }
        self.tell_moved();
    }

    fn tell_moved(&mut self) {
        let moved = self.moved.keys.len();
        if let Some(share) = self.service.as_mut().and_then(Service::share) {
            share.tell(moved);
        }
    }

    /// Cancels runs of objects that have moved.
    pub(super) fn cancel_moved(&mut self) {
        self.moved.until = None;
        let moved = mem::take(&mut self.moved.keys);
        let runs = mem::take(&mut self.runs);
        // What is dropped here is cancelled.
        self.runs = runs
            .into_iter()
            .filter(|run| !moved.contains(&run.key))
            .collect();
        for key in &moved {
            tracing::warn!(%key, "a run was cancelled, because its object moves to another replica");
            if let Some(active) = self.running.get(key) {
                active.run.revoke();
            }
            self.depose(key);
        }
        self.tell_moved();
    }
}

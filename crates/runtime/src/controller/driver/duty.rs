//! What the driver does when its replica begins or ceases to lead.

use super::{Driver, InSpan, Intake, triggers::Told};
use crate::{
    client,
    controller::{
        Action, Error, ReconcileReason,
        reason::{Cause, News, Origin},
        service::Service,
    },
    reflector::{ObjectKey, ObjectRef},
    task::Spawn,
    term::Duty,
};
use futures::TryFuture;
use homeostat_core::queue::Priority;
use kube::Resource;
use std::{fmt::Debug, hash::Hash, sync::Arc};

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
    /// Whether runs may start, as far as others decide.
    pub(super) fn may_work(&self) -> bool {
        self.service.as_ref().is_none_or(Service::may_start)
    }

    /// Takes in that the manager wants something else.
    pub(super) fn take_up_duty(&mut self) {
        self.take_up_share();
        let Some(service) = &mut self.service else {
            return;
        };
        let (before, now) = service.hear();
        match now {
            Duty::Standby => {
                self.runs.clear();
                let keys: Vec<_> = self.running.keys().cloned().collect();
                for key in keys {
                    self.depose(&key);
                }
            }
            Duty::Work if before == Duty::Standby => self.take_over(),
            Duty::Work | Duty::Yield => {}
        }
    }

    /// Looks at all objects again: whoever led before may have left something half done.
    fn take_over(&mut self) {
        for key in self.store.keys() {
            let told = Told::unasked(ReconcileReason::BulkReconcile, Priority::Low);
            self.trigger(key, told);
        }
    }

    /// Ends a run that was cancelled because it is for another replica now. Its object runs again if it comes back to this
    /// one.
    pub(super) fn depose(&mut self, key: &ObjectKey) {
        let Some(active) = self.running.remove(key) else {
            return;
        };
        let now = self.now();
        let writes = active.run.take_writes();
        client::note_outboxes(&mut self.outboxes, active.run.take_outboxes());
        self.writes.remember(key, &writes);
        if let Some(until) = self.writes.await_caches(now, key, &writes) {
            self.queue.close_gate(key, until);
        }
        self.count_running(now);
        self.outage.ended(key);
        self.histories.abandoned(key);
        let reason = "it was cancelled by a change of replicas".into();
        let cause = Cause {
            reason: ReconcileReason::Custom { reason },
            origin: Origin::Asked,
            news: News::Changed,
        };
        self.queue.again(now, key, cause);
        for told in active.deferred {
            self.trigger(key.clone(), told);
        }
        let reference = ObjectRef::from_obj_with(&*active.obj, self.dyntype.clone());
        let error = Error::ReconcileCancelled(Box::new(reference.erase()));
        self.results.push_back(Err(error));
    }
}

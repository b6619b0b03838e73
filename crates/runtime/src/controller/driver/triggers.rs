//! From what sources say to triggers of the queue.

use super::{Active, Driver, InSpan, Intake};
use crate::{
    controller::{
        Action, Error, ReconcileReason, RunnerError,
        reason::{Cause, News, Origin},
        source::{EventVersion, Happened, Signal},
    },
    predicates,
    reflector::{Lookup, ObjectKey},
    task::Spawn,
    watcher,
};
use futures::TryFuture;
use homeostat_core::queue::{Class, Priority, Trigger};
use kube::Resource;
use std::{fmt::Debug, hash::Hash, sync::Arc};

/// How many events that come during a run are judged only after it, when it is known what it wrote. What
/// comes after them counts as foreign. More than a run writes in nearly every case, and with usual names less
/// than a megabyte.
const DEFERRED: usize = 1024;

/// A trigger before it is judged.
pub(super) struct Told {
    pub(super) source: usize,
    pub(super) reason: ReconcileReason,
    pub(super) priority: Priority,
    pub(super) event: Option<Happened>,
}

/// The desired state that a run saw, for a key that backs off or runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Baseline {
    state: Option<u64>,
    version: Option<u64>,
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
    pub(super) fn take_in(&mut self, source: usize, signal: Signal<Q>) {
        if signal.is_answer() {
            self.hear_answer(self.now());
        }
        match signal {
            Signal::Trigger {
                key,
                reason,
                priority,
                event,
            } => {
                let told = Told {
                    source,
                    reason,
                    priority,
                    event,
                };
                let key = self.meant(key, &told);
                self.take_in_trigger(key, told);
            }
            Signal::Asked(question) => question.put_to(self),
            Signal::Passed(key) => {
                let now = self.now();
                self.loops.happened(now, &key);
            }
            Signal::TriggerAll => {
                for key in self.store.keys() {
                    let told = Told::unasked(ReconcileReason::BulkReconcile, Priority::Low);
                    self.trigger(key, told);
                }
            }
            Signal::Gone(key) => self.forget(&key),
            Signal::Started => {
                self.unsynced.remove(&source);
            }
            Signal::Synced => {
                self.unsynced.remove(&source);
                self.readiness.update(source, |status| status.synced = true);
            }
            Signal::Recovered => self.readiness.update(source, |status| {
                status.last_error = None;
                status.not_served = false;
            }),
            Signal::Failed(error) => {
                // Whoever cannot be waited for is not waited for: the other kinds go on.
                self.unsynced.remove(&source);
                self.hear_failure(&error);
                let any: &(dyn std::error::Error + 'static) = &error;
                let not_served = any
                    .downcast_ref::<watcher::Error>()
                    .is_some_and(watcher::Error::is_not_served);
                self.readiness.update(source, |status| {
                    status.last_error = Some(error.to_string());
                    status.not_served = not_served;
                });
                self.results.push_back(Err(Error::QueueError(error)));
            }
            Signal::ObjectFailed(error) => self.results.push_back(Err(Error::QueueError(error))),
            Signal::Joined { label, syncs } => self.readiness.join(source, label, syncs),
            Signal::StoreLost(lost) => {
                let error = Error::RunnerError(RunnerError::Readiness(lost));
                self.results.push_back(Err(error));
            }
        }
    }

    /// The key of the object that is meant. An owner reference does not say that its object has no namespace, so
    /// that key may have one too many.
    fn meant(&self, key: ObjectKey, told: &Told) -> ObjectKey {
        let is_related = matches!(told.reason, ReconcileReason::RelatedObjectUpdated { .. });
        if !is_related || self.store.get_key(&key).is_some() {
            return key;
        }
        let in_cluster = key.in_cluster();
        let in_cluster = in_cluster.filter(|key| self.store.get_key(key).is_some());
        in_cluster.unwrap_or(key)
    }

    /// An event that comes while its key runs and writes may show what this run writes. The event can
    /// be faster than the answer to the write, so it is looked at when the run has ended.
    fn take_in_trigger(&mut self, key: ObjectKey, told: Told) {
        if let Some(active) = self.running.get_mut(&key)
            && told.event.is_some()
            && active.run.has_written()
            && active.deferred.len() < DEFERRED
        {
            active.deferred.push(told);
        } else {
            self.trigger(key, told);
        }
    }

    pub(super) fn trigger(&mut self, key: ObjectKey, told: Told) {
        if self.is_elsewhere(&key) {
            return;
        }
        let origin = self.origin_of(&key, &told);
        let is_own = origin == Origin::Own;
        self.histories.triggered(is_own);
        self.histories.meter().added(&told.reason);
        if matches!(origin, Origin::Own | Origin::Foreign) {
            let now = self.now();
            self.loops.happened(now, &key);
        }
        if is_own && self.config.ignore_own_writes && told.is_all() {
            return;
        }
        let class = self.class(&key, &told, origin);
        let Told {
            reason,
            priority,
            event,
            source: _,
        } = told;
        let is_event = event.is_some();
        let news = event.map(|event| event.news).unwrap_or_default();
        let cause = Cause {
            reason,
            origin,
            news,
        };
        if is_event {
            self.events.heard(&key, &cause);
        }
        let trigger = Trigger {
            key,
            cause,
            class,
            priority,
        };
        self.queue.add(self.now(), trigger);
    }

    /// Asks for a run after one that may have read what was before its own write. The event of that write may be
    /// one that nobody wants to hear of. If that run failed, it may be because of what it read.
    pub(super) fn catch_up(&mut self, key: ObjectKey) {
        self.histories.triggered(true);
        let reason = "caches have caught up".into();
        let trigger = Trigger {
            key,
            cause: Cause {
                reason: ReconcileReason::Custom { reason },
                origin: Origin::Own,
                news: News::Changed,
            },
            class: Class::Related,
            priority: Priority::Normal,
        };
        self.queue.add(self.now(), trigger);
    }

    /// Asks for a run as soon as a slot is free, also of a key that is held because it failed.
    pub(super) fn run_soon(&mut self, key: ObjectKey, reason: &str) {
        let reason = reason.to_owned();
        let trigger = Trigger {
            key,
            cause: Cause {
                reason: ReconcileReason::Custom { reason },
                origin: Origin::Asked,
                news: News::Changed,
            },
            class: Class::Desired,
            priority: Priority::Normal,
        };
        self.queue.add(self.now(), trigger);
    }

    fn origin_of(&self, key: &ObjectKey, told: &Told) -> Origin {
        match &told.event {
            Some(event) if self.writes.is_own(told.source, key, event) => Origin::Own,
            // The initial list shows what was there before, and a stream's user may want whatever it has.
            _ if told.priority == Priority::Low || !told.is_event() => Origin::Asked,
            Some(event) if event.desired => Origin::Desired,
            Some(_) => Origin::Foreign,
            None => Origin::Asked,
        }
    }

    /// What a trigger means for a key that is held because it failed (rule R5), or that runs and may be so when
    /// it ends.
    fn class(&mut self, key: &ObjectKey, told: &Told, origin: Origin) -> Class {
        let Some(before) = self.baseline(key) else {
            // It can only be damped, and that is not ended by what its own loop is made of.
            return match origin {
                Origin::Asked | Origin::Desired => Class::Desired,
                Origin::Foreign => Class::Related,
                Origin::Own => Class::Own,
            };
        };
        match told.reason {
            ReconcileReason::ObjectUpdated => self.class_of_change(key, told, origin, before),
            ReconcileReason::RelatedObjectUpdated { .. } if origin == Origin::Own => Class::Own,
            ReconcileReason::RelatedObjectUpdated { .. } => {
                let event = told.event.as_ref();
                let is_own =
                    event.is_some_and(|event| self.writes.ends_with_own(told.source, key, event));
                // There may be more under it, for which a delay that ends can be waited for.
                if is_own {
                    Class::Status
                } else {
                    Class::Related
                }
            }
            // Somebody asks for it.
            ReconcileReason::Unknown
            | ReconcileReason::ReconcilerRequestedRetry
            | ReconcileReason::ErrorPolicyRequestedRetry
            | ReconcileReason::BulkReconcile
            | ReconcileReason::Custom { .. } => Class::Desired,
        }
    }

    /// The same for a change of the key's own object, compared with what its latest run has seen of it.
    fn class_of_change(
        &mut self,
        key: &ObjectKey,
        told: &Told,
        origin: Origin,
        before: Baseline,
    ) -> Class {
        // A single step tells by itself what it changes.
        if let Some(Happened {
            desired,
            version: EventVersion::Step(version),
            news: _,
        }) = told.event
            && origin != Origin::Own
        {
            let is_new = before.version.is_none_or(|before| version > before);
            return match (is_new, desired) {
                (true, true) => Class::Desired,
                (true, false) => Class::Status,
                (false, _) => Class::Own,
            };
        }
        let now = self.store.get_key(key);
        let Some(now) = now.map(|obj| Baseline::of(&*obj)) else {
            return Class::Desired;
        };
        let is_own = now
            .version
            .is_some_and(|version| self.writes.is_own_version(key, version));
        if is_own {
            // What comes after this is compared with what the run itself has made of the object.
            self.set_baseline(key, now);
        }
        if origin == Origin::Own || is_own {
            // Under the own write there may be a change by somebody else, unless each step is told.
            let hides = now.state != before.state && !(origin == Origin::Own && told.is_all());
            if hides { Class::Status } else { Class::Own }
        } else if now.state != before.state || now.state.is_none() {
            Class::Desired
        } else if now.version != before.version || now.version.is_none() {
            Class::Status
        } else {
            Class::Own
        }
    }

    fn baseline(&self, key: &ObjectKey) -> Option<Baseline> {
        let active = self.running.get(key).map(Active::baseline);
        active.or_else(|| self.failing.baseline(key))
    }

    fn set_baseline(&mut self, key: &ObjectKey, baseline: Baseline) {
        if let Some(active) = self.running.get_mut(key) {
            active.baseline = Some(baseline);
        } else {
            self.failing.set_baseline(key, || baseline);
        }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.outage.forget(key);
        self.failing.forget(key);
        self.writes.forget(key);
        self.loops.forget(key);
        self.events.forget(key);
        self.queue.forget(key);
    }
}

// === impl Told ===

impl Told {
    /// A trigger that is about no event.
    pub(super) fn unasked(reason: ReconcileReason, priority: Priority) -> Self {
        Self {
            source: 0,
            reason,
            priority,
            event: None,
        }
    }

    /// Whether a watch tells it.
    fn is_event(&self) -> bool {
        let event = self.event.as_ref();
        event.is_some_and(|event| !matches!(event.version, EventVersion::Shown(_)))
    }

    /// Whether it tells all that has happened, so that what is known of its version is known of all.
    fn is_all(&self) -> bool {
        let event = self.event.as_ref();
        event.is_some_and(|event| match event.version {
            EventVersion::Step(_) | EventVersion::Gone(..) => true,
            EventVersion::Shown(_) | EventVersion::Listed(_) | EventVersion::Unknown => false,
        })
    }
}

// === impl Active ===

impl<K: Resource> Active<K> {
    /// What is wanted of the object, as far as the run has to know. It is seldom asked for.
    pub(super) fn baseline(&self) -> Baseline {
        self.baseline.unwrap_or_else(|| Baseline::of(&*self.obj))
    }
}

// === impl Baseline ===

impl Baseline {
    pub(super) fn of<K: Resource>(obj: &K) -> Self {
        let version = Lookup::resource_version(obj);
        Self {
            state: predicates::desired_state(obj),
            version: version.and_then(|version| version.parse().ok()),
        }
    }
}

//! The start and the end of runs.

use super::{
    Active, Driver, Hooks, InSpan, Intake, Item, RESULTS, Running,
    ends::{ended, failure, why},
    loops, server,
    spans::{outcome as outcome_of, tell_run},
    triggers::{Baseline, Told},
};
use crate::{
    client::{self, Write},
    controller::{
        Action, Error, ReconcileReason, RunnerError,
        history::{Record, Standing},
        reason::{Cause, News, Origin, describe},
        service::Service,
    },
    reflector::{ObjectKey, ObjectRef, Status, store::WriterDropped},
    task::{Completion, Guarded, Spawn, catch},
};
use futures::{TryFuture, TryFutureExt};
use homeostat_core::{
    loops::Answer,
    queue::{self, Causes, Next, Outcome, Priority, Run, State, Timer},
    time::Time,
};
use kube::{Resource, api::DynamicObject};
use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};
use tracing::Instrument;

/// When an object runs again of which a run has said that another one has to follow, such as after its
/// finalizer was added, if no watch tells of that.
///
/// A watch usually tells within milliseconds, and then this is void. It is long enough for a cache to
/// know of the finalizer by then.
const FOLLOW_UP: Duration = Duration::from_secs(1);

/// How many runs may end where they are started before it is looked what else there is to do.
const AT_ONCE: usize = 32;
/// The same for runs of low priority, as those for a first list are. The list is told in batches of so many, and should
/// not wait in the queue.
const AT_ONCE_LOW: usize = 256;

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
    /// Starts all that is due, as far as the limits allow.
    pub(super) fn start_due(&mut self) {
        self.wake = None;
        self.more = false;
        let is_open = self.unsynced.is_empty() && self.store.is_ready() && !self.awaits_stores();
        self.tell_gate(is_open);
        if !is_open {
            return;
        }
        if !self.may_work() {
            return;
        }
        self.take_up_share();
        self.release();
        let other = self.look_after_server(self.now());
        let due = self.start_runs();
        // The last slot may have been taken just now.
        let full = self.wedge.due().filter(|_| self.intake.is_some());
        let wake = due.into_iter().chain(other).chain(full).min();
        self.wake = wake.filter(|&time| time < Time::MAX);
    }

    /// Starts all that may start, and says when there is more.
    fn start_runs(&mut self) -> Option<Time> {
        let (mut at_once, mut limit) = (0, AT_ONCE_LOW);
        // The beginning of a run may be what reads a store first.
        while self.results.len() < RESULTS && !self.awaits_stores() {
            let now = self.now();
            if let Err(time) = self.may_start(now)
                && self.intake.is_some()
            {
                return Some(time);
            }
            if at_once >= limit {
                self.more = true;
                return None;
            }
            match self.queue.next(now) {
                Next::Run(run) => {
                    if run.priority > Priority::Low {
                        limit = AT_ONCE;
                    }
                    at_once += usize::from(self.start_run(now, run));
                }
                Next::WaitUntil(time) => return Some(time),
                Next::Idle => return None,
            }
        }
        None
    }

    /// Lets those keys run again whose caches have seen what they wrote, or will not see it in time.
    fn release(&mut self) {
        if !self.writes.are_awaited() {
            return;
        }
        let now = self.now();
        let (released, caught_up) = self.writes.released();
        for key in released {
            self.queue.open_gate(now, &key);
            self.histories.waited(&key, now, true);
        }
        for key in caught_up {
            self.catch_up(key);
        }
        for key in self.writes.expire(now) {
            self.histories.waited(&key, now, false);
        }
    }

    /// Starts a run, and returns whether it is over.
    fn start_run(&mut self, now: Time, run: Run<ObjectKey, Cause>) -> bool {
        let Run {
            key,
            causes,
            timer,
            failures,
            ..
        } = run;
        let Some(obj) = self.store.get_key(&key) else {
            self.skip_run(&key, &causes);
            return true;
        };
        // What is known of the share after this allows the run or ends it.
        let fence = self.service.as_ref().map(Service::fence);
        if self.is_elsewhere(&key) {
            self.leave_run(&key);
            return true;
        }
        self.failing.set_baseline(&key, || Baseline::of(&*obj));
        let span = self.events.answer(
            &key,
            || ObjectRef::from_obj_with(&*obj, self.dyntype.clone()),
            || describe(&causes, timer),
            failures.saturating_add(1),
        );
        let known = Arc::clone(self.writes.covers());
        let registry = Arc::clone(self.reads.registry());
        let run = client::Run::new(known, self.loops.observes(&key), registry);
        let run = run.named(self.config.identity.clone());
        let run = Arc::new(run.within(fence.clone()));
        self.loops.started(now, &key, &causes, timer);
        let active = Active {
            obj: Arc::clone(&obj),
            baseline: None,
            run: Arc::clone(&run),
            started: now,
            causes,
            timer,
            deferred: Vec::new(),
            span: span.clone(),
        };
        self.writes.begin(&key);
        self.outage.started(now, &key);
        if timer == Some(Timer::Retry) {
            self.histories.meter().retried();
        }
        let Hooks {
            reconciler,
            context,
            ..
        } = &mut self.hooks;
        let context = Arc::clone(context);
        let call = || client::in_run_now(Arc::clone(&run), || reconciler(obj, context));
        match span.in_scope(|| catch(call)) {
            Ok(future) => {
                let future = TryFutureExt::into_future(future).instrument(span);
                let future = client::in_run(run, future);
                let guarded = Guarded::new(future, self.config.reconcile_timeout);
                self.drive(now, key, active, guarded.within(fence))
            }
            Err(panic) => {
                self.end_run(&key, active, Completion::Panicked(panic));
                true
            }
        }
    }

    /// Polls a run once if that may be all, and lets it go on in a task otherwise. Returns whether it is over.
    fn drive(
        &mut self,
        now: Time,
        key: ObjectKey,
        active: Active<K>,
        mut run: Guarded<InSpan<Fut>>,
    ) -> bool {
        if let Some(service) = &mut self.service {
            // Whoever waits for the end of all runs waits for this one.
            service.set_running(self.running.len() + 1);
        }
        match self.at_once.poll(&mut run) {
            None => {
                self.enter(now, &key, active);
                let run = self.spawn.spawn(run);
                self.runs.push(Running { key, run });
                false
            }
            Some(Completion::Deposed) => {
                self.enter(now, &key, active);
                self.depose(&key);
                true
            }
            Some(completion) => {
                self.end_run(&key, active, completion);
                true
            }
        }
    }

    /// Takes in that a run goes on.
    fn enter(&mut self, now: Time, key: &ObjectKey, active: Active<K>) {
        self.running.insert(key.clone(), active);
        self.count_running(now);
        self.histories.started(key, now);
    }

    /// Ends a run for an object that is gone (rule R9). If the key only has a namespace because
    /// an owner reference did not say that its object has none, the right key takes over.
    fn skip_run(&mut self, key: &ObjectKey, causes: &Causes<Cause>) {
        self.histories.abandoned(key);
        let nothing = Action::await_change().outcome(false);
        self.forget(key);
        self.queue.done(self.now(), key, nothing, 0.0);
        let in_cluster = key.in_cluster();
        if let Some(key) = in_cluster.filter(|key| self.store.get_key(key).is_some()) {
            let reason = causes.iter().next().map(|cause| cause.reason.clone());
            let reason = reason.unwrap_or(ReconcileReason::Unknown);
            self.trigger(key, Told::unasked(reason, Priority::Normal));
        }
    }

    /// Ends a run that went on after its start.
    pub(super) fn finish(
        &mut self,
        key: &ObjectKey,
        completion: Completion<Result<Action, Fut::Error>>,
    ) {
        // The key was put there when the run was started.
        let Some(active) = self.running.get_mut(key) else {
            return;
        };
        let writes = active.run.take_writes();
        let deferred = std::mem::take(&mut active.deferred);
        client::note_outboxes(&mut self.outboxes, active.run.take_outboxes());
        self.writes.remember(key, &writes);
        for told in deferred {
            self.trigger(key.clone(), told);
        }
        let now = self.now();
        if let Some(until) = self.writes.await_caches(now, key, &writes) {
            self.queue.close_gate(key, until);
        }
        let Some(active) = self.running.remove(key) else {
            return;
        };
        self.count_running(now);
        self.conclude(now, key, active, writes, completion);
    }

    /// Ends a run of which nobody has heard since its start.
    fn end_run(
        &mut self,
        key: &ObjectKey,
        active: Active<K>,
        completion: Completion<Result<Action, Fut::Error>>,
    ) {
        self.handled += 1;
        let writes = active.run.take_writes();
        client::note_outboxes(&mut self.outboxes, active.run.take_outboxes());
        self.writes.remember(key, &writes);
        let now = self.now();
        if let Some(until) = self.writes.await_caches(now, key, &writes) {
            self.queue.close_gate(key, until);
        }
        self.count_running(now);
        self.conclude(now, key, active, writes, completion);
    }

    /// Takes in how a run ended, which has written this.
    fn conclude(
        &mut self,
        now: Time,
        key: &ObjectKey,
        active: Active<K>,
        mut writes: Vec<Write>,
        completion: Completion<Result<Action, Fut::Error>>,
    ) {
        if let Some(store) = active.run.incomplete().cloned() {
            return self.finish_early(key, active, writes, &store);
        }
        let obj = Arc::clone(&active.obj);
        let reference = ObjectRef::from_obj_with(&*obj, self.dyntype.clone());
        let followed = active.run.wants_another();
        let (outcome, item) = self.judge(&obj, reference, completion, followed);
        let tracked = active.run.requests() > 0;
        if tracked {
            self.writes.covers().set_tracked();
        }
        let (outcome, reported, unanswered) = self.weigh(now, key, &active.run, outcome, &item);
        let run = loops::Ended {
            started: active.started,
            now,
            causes: &active.causes,
            timer: active.timer,
            failed: item.is_err(),
            tracked,
            after: self.least_delay(key, outcome),
            kind: &K::kind(&self.dyntype),
            object: &|| obj.object_ref(&self.dyntype),
        };
        let Answer { report, delay } = self.loops.finished(key, &run, &mut writes);
        if let Some(delay) = delay {
            self.queue.damp(key, now + delay.time, delay.firm);
        }
        let random = self.random.f64();
        self.queue.done(now, key, outcome, random);
        let standing = self.standing(key);
        let error = item.as_ref().err().map(why);
        self.failing
            .note(key, &standing, error.as_deref(), || active.baseline());
        let span = active.span.clone();
        let record = Record {
            error,
            missing: self.writes.missing(key).to_vec(),
            ..Record::of(active, now, writes)
        };
        let next_run = standing.next_run.map(|at| at.since(now));
        tell_run(&span, outcome_of(&item), &record, next_run);
        let took = record.ended.since(record.started);
        let ended = ended(&item, unanswered);
        let failure = failure(ended, outcome);
        self.histories.meter().ended(ended, failure, took);
        self.histories.finished(key, record, standing);
        if let Some(incident) = report {
            self.histories.reported(key, incident);
        }
        if reported {
            self.results.push_back(item);
        }
    }

    /// Takes in how a run fared with the API server. What follows from the run then, whether its end is to be an
    /// item of the stream, and whether the server did not answer it.
    fn weigh(
        &mut self,
        now: Time,
        key: &ObjectKey,
        run: &client::Run,
        outcome: Outcome,
        item: &Item<K, Fut::Error, Q>,
    ) -> (Outcome, bool, bool) {
        let error = match item {
            Err(Error::ReconcilerFailed(error, _)) => {
                Some(error as &(dyn std::error::Error + 'static))
            }
            Ok(_) | Err(_) => None,
        };
        let timed_out = matches!(item, Err(Error::ReconcileTimeout(..)));
        let fared = self.fared(run.last_ending(timed_out), item.is_err(), error);
        let reported = self.hear(now, key, &fared);
        let unanswered = matches!(fared, server::Fared::Unanswered(_));
        (server::at_least(outcome, &fared), reported, unanswered)
    }

    /// Ends a run that has read a store before its first list was complete. Whatever it returned says nothing: it
    /// counts for nothing, and is repeated when the store is complete. If it never will be, that is the run's error.
    fn finish_early(
        &mut self,
        key: &ObjectKey,
        active: Active<K>,
        writes: Vec<Write>,
        store: &Status,
    ) {
        let now = self.now();
        self.count_running(now);
        self.outage.ended(key);
        if !active.run.is_tracked() && !self.reads.registry().is_tracked() && store.tell_once() {
            tracing::warn!(
                %store,
                "a reconcile has read a store before its first list was complete, and nothing kept it from writing: \
                 make the client with homeostat::client::Tracked, or wait for the store"
            );
        }
        let error = store
            .is_lost()
            .then(|| WriterDropped::of(store, store.condition()));
        if error.is_some() {
            let random = self.random.f64();
            self.queue
                .done(now, key, Action::backoff().outcome(true), random);
            let why = error.as_ref().map(ToString::to_string);
            let why = why.unwrap_or_default();
            self.failing.insert(key, &why, active.baseline());
        } else {
            let reason = format!("the store of {store} is complete");
            let reason = ReconcileReason::Custom { reason };
            let origin = Origin::Asked;
            let news = News::Changed;
            let cause = Cause {
                reason,
                origin,
                news,
            };
            self.queue.again(now, key, cause);
        }
        let not_ready = error.is_none().then(|| store.to_string());
        let span = active.span.clone();
        let missing = self.writes.missing(key).to_vec();
        let record = Record {
            error: error.as_ref().map(ToString::to_string),
            not_ready,
            missing,
            ..Record::of(active, now, writes)
        };
        let standing = self.standing(key);
        let next_run = standing.next_run.map(|at| at.since(now));
        let outcome = if error.is_some() {
            "failed"
        } else {
            "too early"
        };
        tell_run(&span, outcome, &record, next_run);
        self.histories.finished(key, record, standing);
        if let Some(error) = error {
            let error = Error::RunnerError(RunnerError::Readiness(error));
            self.results.push_back(Err(error));
        }
    }

    /// The least time after which a key runs again by itself after such an outcome.
    fn least_delay(&self, key: &ObjectKey, outcome: Outcome) -> Option<Duration> {
        if outcome.action == queue::Action::AwaitChange {
            return None;
        }
        let failures = self.queue.entry(key).map_or(0, |entry| entry.failures);
        outcome.least_delay(failures, &self.config.queue)
    }

    /// What the queue knows of a key.
    fn standing(&self, key: &ObjectKey) -> Standing {
        self.queue
            .entry(key)
            .map_or_else(Standing::default, |entry| Standing {
                next_run: entry.next_run,
                failures: entry.failures,
                backing_off: entry.state == State::BackingOff,
                parked: entry.state == State::Parked,
                damped_until: entry.damped_until,
            })
    }

    /// What follows from how a run ended, for the queue and for the reader of the stream.
    fn judge(
        &self,
        obj: &Arc<K>,
        reference: ObjectRef<K>,
        completion: Completion<Result<Action, Fut::Error>>,
        followed: bool,
    ) -> (Outcome, Item<K, Fut::Error, Q>) {
        let backoff = Action::backoff().outcome(true);
        let erase = |reference: ObjectRef<K>| -> Box<ObjectRef<DynamicObject>> {
            Box::new(reference.erase())
        };
        match completion {
            Completion::Returned(Ok(action)) if followed && action.is_await_change() => {
                let outcome = Action::requeue(FOLLOW_UP).outcome(false);
                (outcome, Ok((reference, action)))
            }
            Completion::Returned(Ok(action)) => (action.outcome(false), Ok((reference, action))),
            Completion::Returned(Err(error)) => {
                let Hooks {
                    error_policy,
                    context,
                    ..
                } = &self.hooks;
                let policy = || error_policy(Arc::clone(obj), &error, Arc::clone(context));
                match catch(policy) {
                    Ok(action) => (
                        action.outcome(true),
                        Err(Error::ReconcilerFailed(error, erase(reference))),
                    ),
                    Err(panic) => (
                        backoff,
                        Err(Error::ReconcilerPanicked(panic, erase(reference))),
                    ),
                }
            }
            Completion::Panicked(panic) => (
                backoff,
                Err(Error::ReconcilerPanicked(panic, erase(reference))),
            ),
            Completion::Deposed => (backoff, Err(Error::ReconcileCancelled(erase(reference)))),
            Completion::TimedOut(limit) => (
                backoff,
                Err(Error::ReconcileTimeout(limit, erase(reference))),
            ),
        }
    }
}

// === impl Record ===

impl Record {
    /// Of a run that has ended well.
    fn of<K>(active: Active<K>, now: Time, writes: Vec<Write>) -> Self {
        let Active {
            run,
            started,
            causes,
            timer,
            ..
        } = active;
        Self {
            started,
            ended: now,
            causes,
            timer,
            error: None,
            not_ready: None,
            requests: run.requests(),
            reads: run.reads(),
            more_writes: 0,
            writes,
            missing: Vec::new(),
            wait_ended: None,
        }
    }
}

//! The loop of a controller: takes in what sources say and what runs return, asks the queue what
//! is next, and starts it.
//!
//! Where signals come from and where runs are driven is left open: [`Intake`] and [`Spawn`].

use super::{
    Action, Config, Error, ReconcileReason, RunnerError, readiness::Readiness, reason::describe,
    source::Signal,
};
use crate::{
    predicates,
    reflector::{ObjectKey, ObjectRef, Store},
    task::{Completion, Guarded, Spawn, catch},
};
use futures::{
    FutureExt, Stream, StreamExt, TryFuture, TryFutureExt,
    future::IntoFuture,
    stream::{self, BoxStream, FuturesUnordered, ReadyChunks, SelectAll},
};
use homeostat_core::{
    queue::{Class, Next, Outcome, Priority, Queue, Run, State, Trigger},
    time::Time,
};
use kube::{Resource, api::DynamicObject};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Debug,
    hash::Hash,
    sync::Arc,
};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, info_span, instrument::Instrumented};

/// How many signals are taken in before work is started again, so that neither starves the other.
const BATCH: usize = 256;
/// How many results wait for a slow reader of the stream before no more runs are started.
const RESULTS: usize = 1024;
/// How many events are handled before the reader of the stream gets a result that is there.
const EVENTS_PER_POLL: usize = 64;

/// How a controller is told to stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    /// Start nothing more, and end when the runs have ended.
    Gracefully,
    /// End at once and drop the runs.
    Now,
}

/// What the user hands to `run`.
pub(super) struct Hooks<R, P, Ctx> {
    pub(super) reconciler: R,
    pub(super) error_policy: P,
    pub(super) context: Arc<Ctx>,
}

/// What a controller is driven with.
pub(super) struct Setup<K: Resource + 'static, I>
where
    K::DynamicType: Eq + Hash,
{
    pub(super) store: Store<K>,
    pub(super) dyntype: K::DynamicType,
    pub(super) config: Config,
    pub(super) intake: I,
    /// Sources whose first list is waited for.
    pub(super) unsynced: BTreeSet<usize>,
    pub(super) stops: SelectAll<BoxStream<'static, Stop>>,
    pub(super) readiness: Readiness,
}

/// Signals, each with the number of the source that it comes from. The queue errors are of type
/// `Q`.
pub(super) trait Intake<Q>: Stream<Item = (usize, Signal<Q>)> + Unpin {}

impl<Q, I: Stream<Item = (usize, Signal<Q>)> + Unpin> Intake<Q> for I {}

/// An item of the controller's stream.
pub(super) type Item<K, E, Q> = Result<(ObjectRef<K>, Action), Error<E, Q>>;

/// The future of a reconciler, in its tracing span.
pub(super) type InSpan<Fut> = Instrumented<IntoFuture<Fut>>;

/// A running controller.
pub(super) struct Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    Fut: TryFuture,
    Fut::Error: 'static,
    Q: 'static,
{
    store: Store<K>,
    dyntype: K::DynamicType,
    config: Config,
    hooks: Hooks<R, P, Ctx>,
    readiness: Readiness,
    stops: SelectAll<BoxStream<'static, Stop>>,
    /// What the sources say; `None` when no source is left.
    intake: Option<ReadyChunks<I>>,
    /// Sources whose first list is not complete and that have not failed yet.
    unsynced: BTreeSet<usize>,
    queue: Queue<ObjectKey, ReconcileReason>,
    spawn: S,
    runs: FuturesUnordered<Running<S::Handle>>,
    running: BTreeMap<ObjectKey, Arc<K>>,
    /// For each key that backs off, the desired state that its last run saw.
    failing: BTreeMap<ObjectKey, Option<u64>>,
    results: VecDeque<Item<K, Fut::Error, Q>>,
    /// When the queue wants to be asked again.
    wake: Option<Time>,
    /// When runs are cancelled, once the controller stops.
    deadline: Option<Time>,
    origin: Instant,
    random: fastrand::Rng,
}

/// A run and its key.
struct Running<F> {
    key: ObjectKey,
    run: F,
}

/// Everything that the loop reacts to.
enum Event<E, Q> {
    Signals(Vec<(usize, Signal<Q>)>),
    /// No source is left.
    SourcesEnded,
    /// A run ended.
    Finished(ObjectKey, Completion<Result<Action, E>>),
    /// The queue wants to be asked.
    Woken,
    Stop(Stop),
    /// The time that runs had to end is over.
    Overdue,
}

// === impl Running ===

impl<F: Future + Unpin> Future for Running<F> {
    type Output = (ObjectKey, F::Output);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let output = ready!(Pin::new(&mut self.run).poll(cx));
        Poll::Ready((self.key.clone(), output))
    }
}

// === impl Driver ===

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
    pub(super) fn new(setup: Setup<K, I>, spawn: S, hooks: Hooks<R, P, Ctx>) -> Self {
        let Setup {
            store,
            dyntype,
            config,
            intake,
            unsynced,
            stops,
            readiness,
        } = setup;
        Self {
            store,
            dyntype,
            hooks,
            readiness,
            stops,
            intake: Some(intake.ready_chunks(BATCH)),
            unsynced,
            queue: Queue::new(&config.queue),
            config,
            spawn,
            runs: FuturesUnordered::new(),
            running: BTreeMap::new(),
            failing: BTreeMap::new(),
            results: VecDeque::new(),
            wake: None,
            deadline: None,
            origin: Instant::now(),
            random: fastrand::Rng::new(),
        }
    }

    /// The controller's stream.
    pub(super) fn into_stream(self) -> impl Stream<Item = Item<K, Fut::Error, Q>> {
        stream::unfold(self, |mut driver| async move {
            let item = driver.next_item().await?;
            Some((item, driver))
        })
    }

    /// The next item of the controller's stream; `None` when it has stopped.
    ///
    /// Every call does all the work that is there before it returns a result, so a reader that
    /// comes rarely slows down the start of runs as little as possible.
    async fn next_item(&mut self) -> Option<Item<K, Fut::Error, Q>> {
        for _ in 0..EVENTS_PER_POLL {
            self.start_due();
            if self.is_over() {
                break;
            }
            let Some(event) = self.next_event().now_or_never() else {
                break;
            };
            self.handle(event);
        }
        loop {
            if let Some(item) = self.results.pop_front() {
                return Some(item);
            }
            self.start_due();
            if self.is_over() {
                return None;
            }
            let event = self.next_event().await;
            self.handle(event);
        }
    }

    /// Whether nothing runs and nothing will, once what is due was started.
    fn is_over(&self) -> bool {
        self.runs.is_empty() && self.intake.is_none() && self.wake.is_none()
    }

    async fn next_event(&mut self) -> Event<Fut::Error, Q> {
        let (wake, deadline) = (self.instant(self.wake), self.instant(self.deadline));
        let intake = async {
            match &mut self.intake {
                Some(intake) => Some(intake.next().await),
                None => None,
            }
        };
        tokio::select! {
            biased;
            Some(stop) = self.stops.next() => Event::Stop(stop),
            Some((key, completion)) = self.runs.next() => Event::Finished(key, completion),
            () = sleep_until(wake), if self.wake.is_some() => Event::Woken,
            () = sleep_until(deadline), if self.deadline.is_some() => Event::Overdue,
            Some(signals) = intake => signals.map_or(Event::SourcesEnded, Event::Signals),
            else => Event::SourcesEnded,
        }
    }

    fn handle(&mut self, event: Event<Fut::Error, Q>) {
        match event {
            Event::Signals(signals) => {
                for (source, signal) in signals {
                    self.take_in(source, signal);
                }
            }
            Event::Finished(key, completion) => self.finish(key, completion),
            Event::Woken => self.wake = None,
            Event::SourcesEnded => self.intake = None,
            Event::Stop(Stop::Gracefully) => {
                self.close();
                let timeout = self.config.shutdown_timeout;
                let deadline = timeout.map(|timeout| self.now() + timeout);
                self.deadline = self.deadline.or(deadline);
            }
            Event::Stop(Stop::Now) => {
                self.close();
                self.cancel_runs();
            }
            Event::Overdue => self.cancel_runs(),
        }
    }

    /// Takes in nothing more and starts nothing more.
    fn close(&mut self) {
        self.queue.close();
        self.intake = None;
    }

    /// Drops the runs, and says so for each.
    fn cancel_runs(&mut self) {
        self.deadline = None;
        self.runs.clear();
        for obj in std::mem::take(&mut self.running).into_values() {
            let reference = ObjectRef::from_obj_with(&*obj, self.dyntype.clone());
            let error = Error::ReconcileCancelled(Box::new(reference.erase()));
            self.results.push_back(Err(error));
        }
    }

    fn take_in(&mut self, source: usize, signal: Signal<Q>) {
        match signal {
            Signal::Trigger {
                key,
                reason,
                priority,
            } => self.trigger(key, reason, priority),
            Signal::TriggerAll => {
                for key in self.store.keys() {
                    self.trigger(key, ReconcileReason::BulkReconcile, Priority::Low);
                }
            }
            Signal::Gone(key) => self.forget(&key),
            Signal::Synced => {
                self.unsynced.remove(&source);
                self.readiness.update(source, |status| status.synced = true);
            }
            Signal::Recovered => self
                .readiness
                .update(source, |status| status.last_error = None),
            Signal::Failed(error) => {
                // Whoever cannot be waited for is not waited for: the other kinds go on.
                self.unsynced.remove(&source);
                self.readiness
                    .update(source, |status| status.last_error = Some(error.to_string()));
                self.results.push_back(Err(Error::QueueError(error)));
            }
            Signal::ObjectFailed(error) => self.results.push_back(Err(Error::QueueError(error))),
            Signal::Joined { label, syncs } => self.readiness.join(label, syncs),
            Signal::StoreLost(lost) => {
                let error = Error::RunnerError(RunnerError::Readiness(lost));
                self.results.push_back(Err(error));
            }
        }
    }

    fn trigger(&mut self, key: ObjectKey, cause: ReconcileReason, priority: Priority) {
        let class = self.class(&key);
        let trigger = Trigger {
            key,
            cause,
            class,
            priority,
        };
        self.queue.add(self.now(), trigger);
    }

    /// Whether the desired state of an object is another than in its latest run (rule R5). It only
    /// matters for keys that back off, so only for these it is looked at.
    fn class(&self, key: &ObjectKey) -> Class {
        let before = match self.running.get(key) {
            Some(obj) => predicates::desired_state(&**obj),
            None => match self.failing.get(key) {
                Some(before) => *before,
                None => return Class::Desired,
            },
        };
        let now = self.store.get_key(key);
        match now.and_then(|obj| predicates::desired_state(&*obj)) {
            same if same == before && same.is_some() => Class::Other,
            _ => Class::Desired,
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.failing.remove(key);
        self.queue.forget(key);
    }

    /// Starts all that is due, as far as the limits allow.
    fn start_due(&mut self) {
        self.wake = None;
        if !self.unsynced.is_empty() || !self.store.is_ready() {
            return;
        }
        while self.results.len() < RESULTS {
            match self.queue.next(self.now()) {
                Next::Run(run) => self.start_run(run),
                Next::WaitUntil(time) => {
                    self.wake = (time < Time::MAX).then_some(time);
                    return;
                }
                Next::Idle => return,
            }
        }
    }

    fn start_run(&mut self, run: Run<ObjectKey, ReconcileReason>) {
        let Run {
            key, causes, timer, ..
        } = run;
        let Some(obj) = self.store.get_key(&key) else {
            return self.skip_run(&key);
        };
        if let Some(seen) = self.failing.get_mut(&key) {
            *seen = predicates::desired_state(&*obj);
        }
        let span = info_span!(
            "reconciling object",
            object.ref = %ObjectRef::from_obj_with(&*obj, self.dyntype.clone()),
            object.reason = %describe(&causes, timer),
        );
        self.running.insert(key.clone(), Arc::clone(&obj));
        let Hooks {
            reconciler,
            context,
            ..
        } = &mut self.hooks;
        let context = Arc::clone(context);
        match span.in_scope(|| catch(|| reconciler(obj, context))) {
            Ok(future) => {
                let run = TryFutureExt::into_future(future).instrument(span);
                let run = Guarded::new(run, self.config.reconcile_timeout);
                let run = self.spawn.spawn(run);
                self.runs.push(Running { key, run });
            }
            Err(panic) => self.finish(key, Completion::Panicked(panic)),
        }
    }

    /// Ends a run for an object that is gone (rule R9). If the key only has a namespace because
    /// an owner reference did not say that its object has none, the right key takes over.
    fn skip_run(&mut self, key: &ObjectKey) {
        let nothing = Action::await_change().outcome(false);
        self.forget(key);
        self.queue.done(self.now(), key, nothing, 0.0);
        let in_cluster = key.in_cluster();
        if let Some(key) = in_cluster.filter(|key| self.store.get_key(key).is_some()) {
            self.trigger(key, ReconcileReason::Unknown, Priority::Normal);
        }
    }

    fn finish(&mut self, key: ObjectKey, completion: Completion<Result<Action, Fut::Error>>) {
        // The key was put there when the run was started.
        let Some(obj) = self.running.remove(&key) else {
            return;
        };
        let reference = ObjectRef::from_obj_with(&*obj, self.dyntype.clone());
        let (outcome, item) = self.judge(&obj, reference, completion);
        let (now, random) = (self.now(), self.random.f64());
        self.queue.done(now, &key, outcome, random);
        if self
            .queue
            .entry(&key)
            .is_some_and(|entry| entry.failures > 0 || entry.state == State::BackingOff)
        {
            self.failing.insert(key, predicates::desired_state(&*obj));
        } else {
            self.failing.remove(&key);
        }
        self.results.push_back(item);
    }

    /// What follows from how a run ended, for the queue and for the reader of the stream.
    fn judge(
        &self,
        obj: &Arc<K>,
        reference: ObjectRef<K>,
        completion: Completion<Result<Action, Fut::Error>>,
    ) -> (Outcome, Item<K, Fut::Error, Q>) {
        let backoff = Action::backoff().outcome(true);
        let erase = |reference: ObjectRef<K>| -> Box<ObjectRef<DynamicObject>> {
            Box::new(reference.erase())
        };
        match completion {
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
            Completion::TimedOut(limit) => (
                backoff,
                Err(Error::ReconcileTimeout(limit, erase(reference))),
            ),
        }
    }

    fn now(&self) -> Time {
        Time::ORIGIN + self.origin.elapsed()
    }

    /// A time for tokio's timer.
    fn instant(&self, time: Option<Time>) -> Instant {
        self.origin + time.unwrap_or(Time::ORIGIN).since(Time::ORIGIN)
    }
}

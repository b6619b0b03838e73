//! The loop of a controller: takes in what sources say and what runs return, asks the queue what
//! is next, and starts it.
//!
//! Where signals come from and where runs are driven is left open: [`Intake`] and [`Spawn`].

mod at_once;
mod desk;
mod duty;
mod ends;
mod failing;
mod life;
mod loops;
mod reads;
mod runs;
mod server;
mod share;
mod spans;
mod triggers;
mod writes;

use self::{
    at_once::AtOnce,
    failing::Failing,
    life::Life,
    loops::Loops,
    reads::Reads,
    share::Moved,
    spans::Events,
    triggers::{Baseline, Told},
    writes::Writes,
};
use super::{
    Action, Config, Error,
    cover::Covers,
    history::Histories,
    readiness::Readiness,
    reason::Cause,
    service::{Service, Stop},
    source::Signal,
};
use crate::{
    client,
    events::Recorder,
    reflector::{ObjectKey, ObjectRef, Registry, Store},
    task::{Completion, Spawn},
};
use futures::{
    FutureExt, Stream, StreamExt, TryFuture,
    future::{IntoFuture, join_all},
    stream::{self, BoxStream, FuturesUnordered, ReadyChunks, SelectAll},
};
use homeostat_core::{
    outage::{self, Outage},
    queue::{Causes, Queue, Timer},
    time::Time,
    wedge::Wedge,
};
use kube::Resource;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Debug,
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::yield_now,
    time::{Instant, sleep_until, timeout},
};
use tracing::{Span, instrument::Instrumented};

/// How many signals are taken in before work is started again, so that neither starves the other.
const BATCH: usize = 256;
/// How many results wait for a slow reader of the stream before no more runs are started.
const RESULTS: usize = 1024;
/// How long all slots may be taken by the same runs before somebody is to hear of it.
const WEDGED: Duration = Duration::from_secs(60);
/// How many events are handled before the reader of the stream gets a result that is there.
const EVENTS_PER_POLL: usize = 64;
/// How many results are handed out one after the other before it is looked what has happened meanwhile.
const RESULTS_PER_LOOK: usize = 64;
/// After how long it is looked at the latest.
const LOOK: Duration = Duration::from_micros(100);
/// How many events are handled before the tasks next to this one get their turn. Reconcilers that ask to run again
/// at once, and ever so often, give reason enough never to pause.
const EVENTS_PER_TURN: usize = 64;

/// How long a controller that stops waits for what its runs have left to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// Sources that are waited for: until their first list is complete, or until they are followed.
    pub(super) unsynced: BTreeSet<usize>,
    /// The caches that the sources fill.
    pub(super) covers: Arc<Covers>,
    /// How the sources are told that the server may answer again.
    pub(super) back: Arc<Notify>,
    /// The stores that runs and sources read.
    pub(super) registry: Arc<Registry>,
    pub(super) stops: SelectAll<BoxStream<'static, Stop>>,
    pub(super) readiness: Readiness,
    pub(super) histories: Histories,
    /// Who tells of loops, besides the log.
    pub(super) recorder: Option<Recorder>,
    /// What its manager wants of it.
    pub(super) service: Option<Service>,
}

/// Signals, each with the number of the source that it comes from. The queue errors are of type
/// `Q`.
pub(super) trait Intake<Q>: Stream<Item = (usize, Signal<Q>)> + Unpin {}

impl<Q, I: Stream<Item = (usize, Signal<Q>)> + Unpin> Intake<Q> for I {}

/// An item of the controller's stream.
pub(super) type Item<K, E, Q> = Result<(ObjectRef<K>, Action), Error<E, Q>>;

/// The future of a reconciler, in its tracing span, and with what notes its reads and writes.
pub(super) type InSpan<Fut> = client::InRun<Instrumented<IntoFuture<Fut>>>;

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
    histories: Histories,
    service: Option<Service>,
    stops: SelectAll<BoxStream<'static, Stop>>,
    /// What the sources say; `None` when no source is left.
    intake: Option<ReadyChunks<I>>,
    /// Sources whose first list is not complete and that have not failed yet, or that are not followed yet.
    unsynced: BTreeSet<usize>,
    reads: Reads,
    life: Life,
    queue: Queue<ObjectKey, Cause>,
    writes: Writes,
    loops: Loops,
    events: Events,
    outage: Outage<ObjectKey>,
    back: Arc<Notify>,
    wedge: Wedge,
    spawn: S,
    runs: FuturesUnordered<Running<S::Handle>>,
    running: BTreeMap<ObjectKey, Active<K>>,
    moved: Moved,
    failing: Failing,
    results: VecDeque<Item<K, Fut::Error, Q>>,
    /// Where runs have left what is sent later.
    outboxes: Vec<Arc<dyn client::Outbox>>,
    /// When the queue wants to be asked again.
    wake: Option<Time>,
    /// Whether more could start, and others go first.
    more: bool,
    at_once: AtOnce,
    /// When it was last looked what has happened, and how many results were handed out since.
    looked: (Instant, usize),
    /// Whether it was told to stop.
    closing: bool,
    /// When runs are cancelled, once the controller stops.
    deadline: Option<Time>,
    /// How many events were handled since others had their turn.
    handled: usize,
    /// How many events were waited for since the sources went first.
    unheard: usize,
    origin: Instant,
    random: fastrand::Rng,
}

/// What is known of a run that is under way.
struct Active<K> {
    obj: Arc<K>,
    /// The desired state that is known of the object since the run began, if it is another one than it began with.
    baseline: Option<Baseline>,
    run: Arc<client::Run>,
    started: Time,
    causes: Causes<Cause>,
    timer: Option<Timer>,
    /// What may be events of its own writes.
    deferred: Vec<Told>,
    span: Span,
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
    /// A cache that is waited for has moved on, or something about a store that runs read has changed.
    CacheMoved,
    Stop(Stop),
    /// The time that runs had to end is over.
    Overdue,
    /// Caches are waited for so long that somebody should hear of it.
    WaitIsLong,
    /// The manager wants something else.
    DutyChanged,
    /// The time is over of runs whose objects have moved.
    HandOver,
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
            covers,
            back,
            registry,
            stops,
            readiness,
            histories,
            recorder,
            service,
        } = setup;
        let origin = Instant::now();
        histories.begin(origin);
        let outboxes = recorder.iter().map(Recorder::outbox).collect();
        let concurrency = usize::try_from(config.queue.concurrency).unwrap_or(usize::MAX);
        histories.meter().set_concurrency(concurrency);
        let outages = outage::Config::default().with_concurrency(concurrency);
        let life = Life::new(K::kind(&dyntype).into_owned());
        let driver = Self {
            store,
            dyntype,
            life,
            hooks,
            readiness,
            histories,
            service,
            stops,
            intake: Some(intake.ready_chunks(BATCH)),
            unsynced,
            reads: Reads::new(registry),
            queue: Queue::new(&config.queue),
            writes: Writes::new(covers, config.wait_for_writes),
            loops: Loops::new(config.loops.clone(), recorder),
            events: Events::default(),
            outage: Outage::new(outages),
            back,
            wedge: Wedge::new(concurrency, WEDGED),
            config,
            spawn,
            runs: FuturesUnordered::new(),
            running: BTreeMap::new(),
            moved: Moved::default(),
            failing: Failing::default(),
            results: VecDeque::new(),
            outboxes,
            wake: None,
            more: false,
            at_once: AtOnce::default(),
            looked: (origin, RESULTS_PER_LOOK),
            closing: false,
            deadline: None,
            handled: 0,
            unheard: 0,
            origin,
            random: fastrand::Rng::new(),
        };
        driver.tell_started();
        driver
    }

    /// The controller's stream.
    pub(super) fn into_stream(self) -> impl Stream<Item = Item<K, Fut::Error, Q>> {
        // In a box, because each item moves it out of the stream and back.
        stream::unfold(Box::new(self), |mut driver| async move {
            let Some(item) = driver.next_item().await else {
                driver.tell_stopped();
                return None;
            };
            Some((item, driver))
        })
    }

    /// The next item of the controller's stream; `None` when it has stopped.
    ///
    /// Every call does all the work that is there before it returns a result, so a reader that
    /// comes rarely slows down the start of runs as little as possible.
    async fn next_item(&mut self) -> Option<Item<K, Fut::Error, Q>> {
        let (looked, handed_out) = &mut self.looked;
        if *handed_out < RESULTS_PER_LOOK
            && looked.elapsed() < LOOK
            && let Some(item) = self.results.pop_front()
        {
            *handed_out += 1;
            return Some(item);
        }
        self.take_turns().await;
        let handled = self.handled;
        for _ in 0..EVENTS_PER_POLL {
            self.start_due();
            // With so many results no run starts, and what comes next would only wait in the queue.
            let is_full = self.results.len() >= RESULTS;
            if self.is_over() || is_full || self.handled >= handled + EVENTS_PER_POLL {
                break;
            }
            let Some(event) = self.next_event().now_or_never() else {
                break;
            };
            self.handle(event);
        }
        loop {
            if let Some(item) = self.results.pop_front() {
                self.looked = (Instant::now(), 1);
                return Some(item);
            }
            self.start_due();
            if !self.results.is_empty() {
                continue;
            }
            if self.is_over() {
                self.flush().await;
                return None;
            }
            let event = self.next_event().await;
            self.handle(event);
            self.take_turns().await;
        }
    }

    /// Lets other tasks go on now and then. This may be all that runs on its thread, and have something to do all
    /// the time.
    async fn take_turns(&mut self) {
        if self.handled >= EVENTS_PER_TURN {
            self.handled = 0;
            yield_now().await;
        }
    }

    /// Lets out what runs have left for later. When it takes too long, tasks of its own go on with it.
    async fn flush(&mut self) {
        let outboxes = std::mem::take(&mut self.outboxes);
        let flushed = join_all(outboxes.into_iter().map(<dyn client::Outbox>::flushed));
        drop(timeout(FLUSH_TIMEOUT, flushed).await);
    }

    /// Whether nothing runs and nothing will, once what is due was started.
    fn is_over(&self) -> bool {
        let waits = self.reads.are_awaited() && !self.closing && self.queue.counts().is_busy();
        let rests = self.wake.is_none() && !self.more;
        self.runs.is_empty() && self.intake.is_none() && rests && !waits
    }

    async fn next_event(&mut self) -> Event<Fut::Error, Q> {
        let (counts, oldest) = (self.queue.counts(), self.queue.oldest_ready());
        self.histories.meter().queued(counts, oldest, self.origin);
        // Runs go first, but those that end at once must not hide what sources say. One look at these takes in many
        // signals, so that it is seldom needed.
        self.unheard += 1;
        if self.unheard >= EVENTS_PER_TURN {
            self.unheard = 0;
            if let Some(intake) = &mut self.intake
                && let Some(signals) = intake.next().now_or_never()
            {
                return signals.map_or(Event::SourcesEnded, Event::Signals);
            }
        }
        let (wake, deadline) = (self.instant(self.wake), self.instant(self.deadline));
        let (moved, moved_until) = (self.moved.until.is_some(), self.instant(self.moved.until));
        let (waits, long) = (self.life.next().is_some(), self.instant(self.life.next()));
        let intake = async {
            match &mut self.intake {
                Some(intake) => Some(intake.next().await),
                None => None,
            }
        };
        let covers = Arc::clone(self.writes.covers());
        let bell = self.reads.bell();
        let service = &mut self.service;
        let duty = async {
            match service {
                Some(service) => service.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(stop) = self.stops.next() => Event::Stop(stop),
            () = duty => Event::DutyChanged,
            Some((key, completion)) = self.runs.next() => Event::Finished(key, completion),
            () = sleep_until(wake), if self.wake.is_some() => Event::Woken,
            () = sleep_until(moved_until), if moved => Event::HandOver,
            () = sleep_until(deadline), if self.deadline.is_some() => Event::Overdue,
            Some(signals) = intake => signals.map_or(Event::SourcesEnded, Event::Signals),
            // What the cache told is taken in before, so that it leads to one run with the wait's end.
            () = covers.listener.moved(), if self.writes.are_awaited() => Event::CacheMoved,
            () = bell.heard() => Event::CacheMoved,
            () = sleep_until(long), if waits && !self.closing => Event::WaitIsLong,
            () = std::future::ready(()), if self.more => Event::Woken,
        }
    }

    fn handle(&mut self, event: Event<Fut::Error, Q>) {
        self.handled += 1;
        match event {
            Event::Signals(signals) => {
                for (source, signal) in signals {
                    self.take_in(source, signal);
                }
            }
            Event::Finished(key, Completion::Deposed) => self.depose(&key),
            Event::Finished(key, completion) => self.finish(&key, completion),
            Event::Woken => self.wake = None,
            // What follows from it is done before anything is started.
            Event::CacheMoved => {}
            Event::SourcesEnded => {
                // What somebody asked for runs; timers have nothing to wait for any more.
                self.intake = None;
                let now = self.now();
                self.queue.drain(now);
            }
            Event::WaitIsLong => self.tell_waiting(),
            Event::DutyChanged => self.take_up_duty(),
            Event::HandOver => self.cancel_moved(),
            Event::Stop(Stop::Gracefully) => {
                self.tell_stopping(false);
                self.close();
                let timeout = self.config.shutdown_timeout;
                let deadline = timeout.map(|timeout| self.now() + timeout);
                self.deadline = self.deadline.or(deadline);
            }
            Event::Stop(Stop::Now) => {
                self.tell_stopping(true);
                self.close();
                self.cancel_runs();
                self.outboxes.clear();
            }
            Event::Overdue => self.cancel_runs(),
        }
    }

    /// Takes in nothing more and starts nothing more.
    fn close(&mut self) {
        self.closing = true;
        self.queue.close();
        self.intake = None;
    }

    /// Drops the runs, and says so for each.
    fn cancel_runs(&mut self) {
        self.tell_cancelled();
        self.deadline = None;
        self.runs.clear();
        for (key, active) in std::mem::take(&mut self.running) {
            self.histories.abandoned(&key);
            client::note_outboxes(&mut self.outboxes, active.run.take_outboxes());
            let reference = ObjectRef::from_obj_with(&*active.obj, self.dyntype.clone());
            let error = Error::ReconcileCancelled(Box::new(reference.erase()));
            self.results.push_back(Err(error));
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

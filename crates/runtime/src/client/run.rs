//! The run that a task works for.

use super::{
    heard::{Ending, Heard},
    log::{Begun, Log},
    refused::{Barred, Deposed, Refused},
    request::Target,
    traffic::Traffic,
    write::{Known, Write},
};
use crate::identity::Identity;
use crate::reflector::{Reader, Registry, Status, reading, reading_now};
use crate::term::Fence;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use std::ptr;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed},
};
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// The run that this task works for.
    static CURRENT: Arc<Run>;
    /// Whether a request of this task came by, for tasks that want to know whether their client is
    /// one of ours.
    static NOTED: Arc<AtomicU8>;
}

/// Where a run leaves what is sent later.
pub(crate) trait Outbox: Send + Sync {
    /// Waits until nothing is left in it.
    fn flushed(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// What one run of a reconciler has sent, and whether it has read what was not complete.
#[derive(Default)]
pub(crate) struct Run {
    reader: Arc<Reader>,
    requests: AtomicU32,
    reads: AtomicU32,
    /// Writes that were begun, whatever became of them.
    attempts: AtomicU32,
    /// Whether a write was not sent.
    refused: AtomicBool,
    log: Mutex<Log>,
    heard: Mutex<Heard>,
    known: Option<Arc<dyn Known>>,
    /// Whether its writes are looked at closely.
    observed: bool,
    /// In whose name it writes, if its controller was told.
    identity: Option<Identity>,
    /// Whether another one follows, though no watch may tell of a reason.
    followed: AtomicBool,
    /// What its writes are bound to.
    fence: Option<Fence>,
    /// Whether it may write no more in any case.
    revoked: AtomicBool,
    /// Where its requests are counted.
    traffic: Option<Arc<Traffic>>,
    /// Each once.
    outboxes: Mutex<Vec<Arc<dyn Outbox>>>,
}

/// Adds outboxes to those that are known, each once.
pub(crate) fn note_outboxes(known: &mut Vec<Arc<dyn Outbox>>, more: Vec<Arc<dyn Outbox>>) {
    for outbox in more {
        let is_it = |one: &Arc<dyn Outbox>| ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(&outbox));
        if !known.iter().any(is_it) {
            known.push(outbox);
        }
    }
}

/// A future that is driven as a part of a run.
pub(crate) type InRun<F> = TaskLocalFuture<Arc<Reader>, TaskLocalFuture<Arc<Run>, F>>;

/// Drives `future` as a part of `run`.
pub(crate) fn in_run<F: Future>(run: Arc<Run>, future: F) -> InRun<F> {
    reading(Arc::clone(&run.reader), CURRENT.scope(run, future))
}

/// Calls `f` as a part of `run`.
pub(crate) fn in_run_now<T>(run: Arc<Run>, f: impl FnOnce() -> T) -> T {
    reading_now(Arc::clone(&run.reader), || CURRENT.sync_scope(run, f))
}

/// Fails if the run that the caller works for may not write, since it has read an incomplete store, or this replica
/// leads no more. Whoever writes for a reconciler asks this, so that it holds with clients that are not tracked as
/// well.
pub(crate) fn check_run() -> Result<(), Barred> {
    CURRENT.try_with(|run| run.may_write()).unwrap_or(Ok(()))
}

/// Drives `future` as a part of the run that the caller works for, if it does.
pub(crate) async fn keeping_run<F: Future>(run: Option<Arc<Run>>, future: F) -> F::Output {
    match run {
        Some(run) => in_run(run, future).await,
        None => future.await,
    }
}

/// Drives `future` and notes whether requests of it come by; see [`requests_noted`].
pub(crate) fn noting_requests<F: Future>(future: F) -> TaskLocalFuture<Arc<AtomicU8>, F> {
    NOTED.scope(Arc::default(), future)
}

/// What is known of a client that requests went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Noted {
    /// It is not tracked.
    Nothing,
    /// It is, and nobody says whether it sends requests again by itself.
    Tracked,
    /// It is, and somebody says.
    Settled,
}

/// Takes in what is known of the client that another task has sent requests through for this one.
pub(crate) fn note_requests(noted: Noted) {
    // Without the task-local nobody asks.
    let _unasked = NOTED.try_with(|known| known.fetch_max(noted as u8, Relaxed));
}

/// What is known of the client that requests of this task went through.
pub(crate) fn requests_noted() -> Noted {
    let noted = NOTED.try_with(|noted| noted.load(Relaxed));
    match noted.unwrap_or_default() {
        0 => Noted::Nothing,
        1 => Noted::Tracked,
        _ => Noted::Settled,
    }
}

/// A write of a run that is under way.
pub(super) struct Recording {
    pub(super) run: Arc<Run>,
    pub(super) begun: Box<Begun>,
}

/// In whose name the caller writes: that of the run that it works for, or that of the process.
pub(crate) fn identity() -> Identity {
    let run = Run::current();
    let of_run = run.and_then(|run| run.identity().cloned());
    of_run.unwrap_or_else(Identity::of_process)
}

/// Names the program in a write of this crate that names none.
pub(crate) fn sign_by_default<B>(request: &mut Request<B>) {
    identity().sign_by_default(request);
}

/// A request of one of the runtime's own functions, which knows what it writes whatever client it is given.
pub(crate) struct OwnRequest(Option<Recording>);

// === impl OwnRequest ===

impl OwnRequest {
    /// Takes note of a request that is about to be sent.
    pub(crate) fn begin<B>(request: &Request<B>) -> Self {
        // If the client is tracked, a request before this one has told so in most runs.
        let run = Run::current().filter(|run| run.requests() == 0);
        let target = || Target::of(request);
        Self(run.and_then(|run| Some(Recording::of(run, target()?))))
    }

    /// Records the write, which the server has accepted with this answer, unless the client has done so.
    pub(crate) fn end(self, answer: &str) {
        let Self(recording) = self;
        if let Some(recording) = recording.filter(|recording| recording.run.requests() == 0) {
            recording.end(Bytes::copy_from_slice(answer.as_bytes()));
        }
    }
}

// === impl Recording ===

impl Recording {
    /// Takes note of a request that is about to be sent. Only the writes of runs go on from there.
    ///
    /// # Errors
    ///
    /// It is a write of a run that must not write, because of what it has read or who leads.
    pub(super) fn begin<B>(
        run: Option<&Arc<Run>>,
        request: &Request<B>,
        settled: bool,
    ) -> Result<Option<Self>, Barred> {
        let Some(run) = run.map(Arc::clone) else {
            let noted = if settled {
                Noted::Settled
            } else {
                Noted::Tracked
            };
            // Without the task-local nobody asks.
            let _unasked = NOTED.try_with(|known| known.fetch_max(noted as u8, Relaxed));
            return Ok(None);
        };
        let target = Target::of(request);
        if target.is_some()
            && let Err(barred) = run.may_write()
        {
            run.refused.store(true, Relaxed);
            return Err(barred);
        }
        run.requests.fetch_add(1, Relaxed);
        let recording = target.map(|target| Self::of(Arc::clone(&run), target));
        if recording.is_none() {
            run.reads.fetch_add(1, Relaxed);
        }
        Ok(recording)
    }

    /// One of a request that writes.
    fn of(run: Arc<Run>, target: Target) -> Self {
        run.attempts.fetch_add(1, Relaxed);
        let begun = run.lock().begin(target, run.known.as_deref());
        Self { run, begun }
    }

    /// Records the write, which the server has accepted with this answer.
    pub(super) fn end(self, answer: Bytes) {
        self.run.lock().end(self.begun, answer);
    }
}

// === impl Run ===

impl Run {
    /// A run that may ask `known` for what its writes found, and tells `registry` what it reads.
    pub(crate) fn new(known: Arc<dyn Known>, observed: bool, registry: Arc<Registry>) -> Self {
        Self {
            reader: Arc::new(Reader::of_run(registry)),
            known: Some(known),
            observed,
            traffic: Traffic::current(),
            ..Self::default()
        }
    }

    /// The same in the name of a program.
    pub(crate) fn named(self, identity: Option<Identity>) -> Self {
        Self { identity, ..self }
    }

    /// The same, bound to a term of leadership.
    pub(crate) fn within(self, fence: Option<Fence>) -> Self {
        Self { fence, ..self }
    }

    fn may_write(&self) -> Result<(), Barred> {
        if let Some(store) = self.incomplete() {
            return Err(Barred::Refused(Refused::because_of(store)));
        }
        self.check_term()
    }

    /// Fails if it is bound to a term of leadership that is over.
    pub(super) fn check_term(&self) -> Result<(), Barred> {
        let revoked = self.revoked.load(Relaxed);
        match &self.fence {
            Some(fence) if revoked || !fence.holds() => Err(Barred::Deposed(Deposed::new())),
            Some(_) | None => Ok(()),
        }
    }

    /// Lets it write no more: its object is for another replica.
    pub(crate) fn revoke(&self) {
        self.revoked.store(true, Relaxed);
    }

    pub(super) fn traffic(&self) -> Option<&Arc<Traffic>> {
        self.traffic.as_ref()
    }

    /// In whose name it writes, if its controller was told.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The run that the caller works for.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// The first store that it has read before that was complete.
    pub(crate) fn incomplete(&self) -> Option<&Arc<Status>> {
        self.reader.incomplete()
    }

    /// Whether a tracked client was used.
    pub(crate) fn is_tracked(&self) -> bool {
        self.requests() > 0 || self.refused.load(Relaxed)
    }

    /// How many requests were sent, reads included.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Relaxed)
    }

    /// How many of them were reads.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.load(Relaxed)
    }

    /// Whether something was written, or at least tried to be.
    pub(crate) fn has_written(&self) -> bool {
        self.attempts.load(Relaxed) > 0
    }

    /// Takes out the writes so far, oldest first.
    pub(crate) fn take_writes(&self) -> Vec<Write> {
        self.lock().take()
    }

    /// How its last request ended, when the run is over, because it took too long or otherwise.
    pub(crate) fn last_ending(&self, timed_out: bool) -> Option<Ending> {
        self.heard().last(timed_out)
    }

    /// What it waits for now, for people.
    pub(crate) fn waits(&self) -> Vec<String> {
        self.heard().waits()
    }

    pub(super) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that another run has to follow, even if no watch tells of a reason.
    pub(crate) fn ask_for_another(&self) {
        self.followed.store(true, Relaxed);
    }

    /// Whether another run has to follow.
    pub(crate) fn wants_another(&self) -> bool {
        self.followed.load(Relaxed)
    }

    /// Notes that this run has left something in `outbox`.
    pub(crate) fn leaves_in(&self, outbox: Arc<dyn Outbox>) {
        let mut outboxes = self.outboxes.lock().unwrap_or_else(PoisonError::into_inner);
        note_outboxes(&mut outboxes, vec![outbox]);
    }

    /// Takes out where this run has left something.
    pub(crate) fn take_outboxes(&self) -> Vec<Arc<dyn Outbox>> {
        std::mem::take(&mut *self.outboxes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_observed(&self) -> bool {
        self.observed
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

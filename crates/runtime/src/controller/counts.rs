//! What a controller counts.

use crate::client::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a controller has counted since it was made. Each number only grows.
///
/// Those that have metrics read it when they are asked; it takes some nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events, and requests by streams of the user's, that an object is to be reconciled because of. Those that
    /// come while the object waits for its turn lead to one run.
    pub triggers: u64,
    /// How many of them were events that showed nothing but what a run of the same object had written.
    pub self_triggers: u64,
    /// Runs that have ended, whatever came of them; not those that were cancelled.
    pub runs: u64,
    /// How many of them failed, panicked or took too long.
    pub failures: u64,
    /// How many of them had read a store before its first list was complete, so that they do not count and were
    /// repeated.
    pub early_runs: u64,
    /// How many of them nothing but self-triggers have led to. A reconciler that has converged has none that
    /// writes.
    pub self_triggered_runs: u64,
    /// Requests that runs have sent through a [tracked client](crate::client), reads included.
    pub requests: u64,
    /// Writes of theirs that the server has accepted.
    pub writes: u64,
    /// How many of them have certainly changed nothing ([`Write::changed`](crate::client::Write::changed)). A
    /// reconciler that has converged makes none.
    pub vain_writes: u64,
    /// Waits for the controller's caches to see what a run had written
    /// ([`Config::wait_for_writes`](super::Config::wait_for_writes)) that are over.
    pub waits: u64,
    /// How many of them ended because the time was over: the run after them may have read what was before. More
    /// than a few mean that a watch is down, or that the server is slow.
    pub overdue_waits: u64,
    /// Reconcile loops that were reported; each once.
    pub loops: u64,
    /// How often the API server was found not to answer.
    pub outages: u64,
    /// Failures of runs meanwhile that were no items of the stream, because one a minute stands for all.
    pub unreported_failures: u64,
    /// How often all slots of the controller were taken for a minute by runs that did not end.
    pub wedges: u64,
}

/// The counters behind [`Counts`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    triggers: AtomicU64,
    self_triggers: AtomicU64,
    runs: AtomicU64,
    failures: AtomicU64,
    early_runs: AtomicU64,
    self_triggered_runs: AtomicU64,
    requests: AtomicU64,
    writes: AtomicU64,
    vain_writes: AtomicU64,
    waits: AtomicU64,
    overdue_waits: AtomicU64,
    loops: AtomicU64,
    outages: AtomicU64,
    unreported_failures: AtomicU64,
    wedges: AtomicU64,
}

// === impl Counters ===

impl Counters {
    pub(super) fn triggered(&self, by_itself: bool) {
        self.triggers.fetch_add(1, Relaxed);
        self.self_triggers.fetch_add(by_itself.into(), Relaxed);
    }

    /// A run has read a store before that was complete.
    pub(super) fn came_early(&self) {
        self.early_runs.fetch_add(1, Relaxed);
    }

    /// A run has ended, with this number of requests and these writes.
    pub(super) fn finished(&self, by_itself: bool, failed: bool, requests: u32, writes: &[Write]) {
        self.runs.fetch_add(1, Relaxed);
        self.failures.fetch_add(failed.into(), Relaxed);
        self.self_triggered_runs
            .fetch_add(by_itself.into(), Relaxed);
        self.requests.fetch_add(requests.into(), Relaxed);
        let count = |writes: usize| u64::try_from(writes).unwrap_or(u64::MAX);
        self.writes.fetch_add(count(writes.len()), Relaxed);
        let vain = writes.iter().filter(|write| write.changed() == Some(false));
        self.vain_writes.fetch_add(count(vain.count()), Relaxed);
    }

    pub(super) fn waited(&self, seen: bool) {
        self.waits.fetch_add(1, Relaxed);
        self.overdue_waits.fetch_add((!seen).into(), Relaxed);
    }

    pub(super) fn reported(&self) {
        self.loops.fetch_add(1, Relaxed);
    }

    pub(super) fn lost_server(&self) {
        self.outages.fetch_add(1, Relaxed);
    }

    pub(super) fn unreported(&self) {
        self.unreported_failures.fetch_add(1, Relaxed);
    }

    pub(super) fn wedged(&self) {
        self.wedges.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> Counts {
        let Self {
            triggers,
            self_triggers,
            runs,
            failures,
            early_runs,
            self_triggered_runs,
            requests,
            writes,
            vain_writes,
            waits,
            overdue_waits,
            loops,
            outages,
            unreported_failures,
            wedges,
        } = self;
        Counts {
            triggers: triggers.load(Relaxed),
            self_triggers: self_triggers.load(Relaxed),
            runs: runs.load(Relaxed),
            failures: failures.load(Relaxed),
            early_runs: early_runs.load(Relaxed),
            self_triggered_runs: self_triggered_runs.load(Relaxed),
            requests: requests.load(Relaxed),
            writes: writes.load(Relaxed),
            vain_writes: vain_writes.load(Relaxed),
            waits: waits.load(Relaxed),
            overdue_waits: overdue_waits.load(Relaxed),
            loops: loops.load(Relaxed),
            outages: outages.load(Relaxed),
            unreported_failures: unreported_failures.load(Relaxed),
            wedges: wedges.load(Relaxed),
        }
    }
}

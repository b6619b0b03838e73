//! Until when this replica leads, and what is bound to that.

use homeostat_core::time::Time;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::time::Instant;

/// Until when this replica leads. It can be asked from anywhere, at the cost of looking at the clock.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    origin: Instant,
    /// In nanoseconds since the origin. Nobody leads at the origin, so zero means never.
    until: Arc<AtomicU64>,
    /// Which term it is, counted from 1.
    number: Arc<AtomicU64>,
}

/// What those may do that are bound to a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Others work: what runs is cancelled. Caches are kept up to date in any case.
    Standby,
    /// They work.
    Work,
    /// They start nothing more, and let runs end.
    Yield,
}

/// Lets work go on in the term in which it has begun, and in no other.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    term: Term,
    number: u64,
}

// === impl Term ===

impl Term {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            until: Arc::default(),
            number: Arc::default(),
        }
    }

    /// A fence around work that begins at this moment. If this replica does not lead, nothing passes it until the
    /// next term, which is another one.
    pub(crate) fn fence(&self) -> Fence {
        let number = self.number.load(Ordering::Acquire);
        Fence {
            term: self.clone(),
            number,
        }
    }

    /// Another term begins.
    pub(crate) fn begin(&self) {
        self.number.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether this replica leads at this moment.
    pub(crate) fn holds(&self) -> bool {
        self.now().as_nanos() < self.until.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, until: Option<Time>) {
        let until = until.map_or(0, Time::as_nanos);
        self.until.store(until, Ordering::Release);
    }

    pub(crate) fn now(&self) -> Time {
        Time::ORIGIN + self.origin.elapsed()
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        let since = time.since(Time::ORIGIN);
        // Beyond what the clock can show is never.
        let never = || self.origin + std::time::Duration::from_secs(86400 * 365);
        self.origin.checked_add(since).unwrap_or_else(never)
    }
}

// === impl Fence ===

impl Fence {
    /// Whether this replica still leads, and has not stopped to in between.
    pub(crate) fn holds(&self) -> bool {
        self.term.holds() && self.term.number.load(Ordering::Acquire) == self.number
    }
}

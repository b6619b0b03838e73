//! What a watch that several controllers share has counted.

use crate::watcher::{Event, Observation};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tokio::time::Instant;

/// What a watch has counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    opened: AtomicU64,
    lists: AtomicU64,
    failures: AtomicU64,
    events: AtomicU64,
    undecodable: AtomicU64,
    decoded: AtomicU64,
    bytes: AtomicU64,
    last_event: Mutex<Option<Instant>>,
}

/// The same at one moment.
#[cfg(feature = "metrics")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tallied {
    /// How often a watch was opened.
    pub(crate) opened: u64,
    /// How many lists were complete.
    pub(crate) lists: u64,
    pub(crate) failures: u64,
    /// Changes that were told one by one.
    pub(crate) events: u64,
    /// Objects that could not be decoded.
    pub(crate) undecodable: u64,
    /// How many bytes an object has on the average, as text.
    pub(crate) size: u64,
    pub(crate) last_event: Option<Instant>,
}

// === impl Tally ===

impl Tally {
    pub(super) fn take_in<K>(&self, observation: &Observation<K>) {
        use crate::watcher::Error::Undecodable;
        match observation {
            Observation::Opened => add(&self.opened),
            Observation::Item(Ok(Event::InitDone)) => add(&self.lists),
            Observation::Item(Ok(Event::Apply(_) | Event::Delete(_))) => {
                add(&self.events);
                let mut last = self
                    .last_event
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last = Some(Instant::now());
            }
            Observation::Item(Ok(Event::Init | Event::InitApply(_))) => {}
            Observation::Item(Err(Undecodable(_))) => add(&self.undecodable),
            Observation::Item(Err(_)) => add(&self.failures),
        }
    }

    /// So many objects were decoded, with so many bytes.
    pub(super) fn decoded(&self, objects: u64, bytes: u64) {
        self.decoded.fetch_add(objects, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    #[cfg(feature = "metrics")]
    pub(super) fn read(&self) -> Tallied {
        let last = self
            .last_event
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Tallied {
            opened: self.opened.load(Relaxed),
            lists: self.lists.load(Relaxed),
            failures: self.failures.load(Relaxed),
            events: self.events.load(Relaxed),
            undecodable: self.undecodable.load(Relaxed),
            size: {
                let (bytes, objects) = (self.bytes.load(Relaxed), self.decoded.load(Relaxed));
                bytes.checked_div(objects).unwrap_or_default()
            },
            last_event: *last,
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

//! What is to be looked at again though nothing changes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::fate::Workload;
use crate::storage::Key;

/// When to look at what again.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(Timestamp, Workload, Key)>,
    by_key: BTreeMap<(Workload, Key), Timestamp>,
}

// === impl Timers ===

impl Timers {
    pub(super) fn set(&mut self, workload: Workload, key: Key, time: Option<Timestamp>) {
        self.forget(workload, &key);
        if let Some(time) = time {
            self.by_time.insert((time, workload, key.clone()));
            self.by_key.insert((workload, key), time);
        }
    }

    pub(super) fn forget(&mut self, workload: Workload, key: &Key) {
        let place = (workload, key.clone());
        if let Some(time) = self.by_key.remove(&place) {
            self.by_time.remove(&(time, place.0, place.1));
        }
    }

    /// When the first of those is due that are not held back.
    pub(super) fn first(&self, is_held: impl Fn(Workload) -> bool) -> Option<Timestamp> {
        let mut due = self.by_time.iter();
        due.find(|(_, workload, _)| !is_held(*workload))
            .map(|(time, ..)| *time)
    }

    /// Puts what is due into the queues.
    pub(super) fn take_due(
        &mut self,
        now: Timestamp,
        queues: &mut BTreeMap<Workload, BTreeSet<Key>>,
    ) {
        while let Some((time, ..)) = self.by_time.first()
            && *time <= now
            && let Some((_, workload, key)) = self.by_time.pop_first()
        {
            self.by_key.remove(&(workload, key.clone()));
            queues.entry(workload).or_default().insert(key);
        }
    }
}

//! What runs have written: which keys wait for caches to see it, and which events only show it.

use crate::{
    client::Write,
    controller::{
        cover::{self, Covers, Written, describe},
        source::{EventVersion, Happened},
    },
    reflector::ObjectKey,
};
use hashbrown::HashMap;
use homeostat_core::{time::Time, unseen::Unseen};
use rustc_hash::FxBuildHasher;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// How many own writes are remembered until their events come. Those of the runs that are under way
/// and of the moments after them are some hundreds at most.
const OWN: usize = 4096;

/// The writes of a controller's runs.
pub(super) struct Writes {
    covers: Arc<Covers>,
    unseen: Unseen<ObjectKey, Arc<Written>>,
    /// What was waited for in vain, and may still be seen.
    late: Unseen<ObjectKey, Arc<Written>>,
    /// The keys that have run without seeing that.
    uninformed: BTreeSet<ObjectKey>,
    own: Own,
    /// How long a key waits for caches at most; zero means not at all.
    wait: Duration,
}

/// Whose write led to a version of an object.
#[derive(Default)]
struct Own {
    /// Looked at for every event, and never walked through.
    writers: HashMap<Mark, ObjectKey, FxBuildHasher>,
    /// In the order of writing.
    order: VecDeque<Mark>,
}

/// What tells the event of a write, with the number of the source that it comes from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Mark {
    Version(usize, u64),
    Gone(usize, Box<str>),
}

// === impl Writes ===

impl Writes {
    pub(super) fn new(covers: Arc<Covers>, wait: Duration) -> Self {
        Self {
            covers,
            unseen: Unseen::default(),
            late: Unseen::default(),
            uninformed: BTreeSet::new(),
            own: Own::default(),
            wait,
        }
    }

    /// The caches, for runs to ask what is known of an object.
    pub(super) fn covers(&self) -> &Arc<Covers> {
        &self.covers
    }

    /// Whether it matters that caches move.
    pub(super) fn are_awaited(&self) -> bool {
        !(self.unseen.is_empty() && self.late.is_empty())
    }

    /// Takes in that a run of `key` begins.
    pub(super) fn begin(&mut self, key: &ObjectKey) {
        if !self.late.missing(key).is_empty() {
            self.uninformed.insert(key.clone());
        }
    }

    /// Takes in what a run of `key` has written: from now on its events are known as its own.
    pub(super) fn remember(&mut self, key: &ObjectKey, writes: &[Write]) {
        for write in writes {
            let Self { covers, own, .. } = self;
            covers.each_source_of(write, |source| {
                if let Some(version) = write.number() {
                    own.add(Mark::Version(source, version), key);
                }
                if let Some(uid) = write.uid().filter(|_| write.is_gone()) {
                    own.add(Mark::Gone(source, uid.into()), key);
                }
            });
        }
    }

    /// Lets the next run of `key` wait for the caches that have not seen `writes` yet; until when, if
    /// there are any.
    pub(super) fn await_caches(
        &mut self,
        now: Time,
        key: &ObjectKey,
        writes: &[Write],
    ) -> Option<Time> {
        if self.wait.is_zero() || writes.is_empty() {
            self.unseen.forget(key);
            return None;
        }
        // From here on caches that move tell so. What they have seen until now they are asked for.
        self.covers.listener.set_waiting(true);
        let expected = self.covers.unseen(key, writes);
        let until = (!expected.is_empty()).then(|| now + self.wait);
        self.unseen.expect(key, until.unwrap_or(now), expected);
        self.covers.listener.set_waiting(self.are_awaited());
        until
    }

    /// The keys whose caches have seen everything by now, and those of them that have run meanwhile.
    pub(super) fn released(&mut self) -> (Vec<ObjectKey>, Vec<ObjectKey>) {
        let Self {
            covers,
            unseen,
            late,
            uninformed,
            ..
        } = self;
        let (mut released, mut caught_up) = (Vec::new(), Vec::new());
        for (source, version) in covers.reached() {
            for (unseen, seen) in [(&mut *unseen, &mut released), (&mut *late, &mut caught_up)] {
                seen.extend(unseen.reached(source, version));
                seen.extend(unseen.recheck(source, |written| covers.is_gone(source, written)));
            }
        }
        caught_up.retain(|key| uninformed.remove(key));
        self.covers.listener.set_waiting(self.are_awaited());
        (released, caught_up)
    }

    /// Ends the waits whose time is over, and returns whose they were. What was not seen by then is told to
    /// those who debug.
    pub(super) fn expire(&mut self, now: Time) -> Vec<ObjectKey> {
        let mut expired = Vec::new();
        for (key, missing) in self.unseen.expire(now) {
            let names: Vec<_> = missing.iter().map(describe).collect();
            tracing::debug!(
                object = %key,
                missing = names.join(", "),
                "caches have not seen the last run's writes in time; the next run may read what was before"
            );
            self.late.expect(&key, Time::MAX, missing);
            expired.push(key);
        }
        expired
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.unseen.forget(key);
        self.late.forget(key);
        self.uninformed.remove(key);
    }

    /// What a key waits for.
    pub(super) fn missing(&self, key: &ObjectKey) -> &[cover::Unseen] {
        self.unseen.missing(key)
    }

    /// Whether an event shows what a run of `key` has written itself.
    pub(super) fn is_own(&self, source: usize, key: &ObjectKey, event: &Happened) -> bool {
        let is_of = |mark: &Mark| self.own.writers.get(mark) == Some(key);
        match &event.version {
            EventVersion::Step(version) | EventVersion::Shown(version) => {
                is_of(&Mark::Version(source, *version))
            }
            EventVersion::Gone(uid, version) => {
                is_of(&Mark::Gone(source, uid.clone()))
                    || version.is_some_and(|version| is_of(&Mark::Version(source, version)))
            }
            EventVersion::Listed(_) | EventVersion::Unknown => false,
        }
    }

    /// Whether an event shows the version that a run of `key` has written, and perhaps what others did before.
    pub(super) fn ends_with_own(&self, source: usize, key: &ObjectKey, event: &Happened) -> bool {
        match event.version {
            EventVersion::Listed(version) => {
                self.own.writers.get(&Mark::Version(source, version)) == Some(key)
            }
            EventVersion::Step(_)
            | EventVersion::Shown(_)
            | EventVersion::Gone(..)
            | EventVersion::Unknown => self.is_own(source, key, event),
        }
    }

    /// Whether a version of the controller's own object is what a run of `key` has written.
    pub(super) fn is_own_version(&self, key: &ObjectKey, version: u64) -> bool {
        // The controller's own kind is its first source.
        self.own.writers.get(&Mark::Version(0, version)) == Some(key)
    }
}

// === impl Own ===

impl Own {
    fn add(&mut self, mark: Mark, key: &ObjectKey) {
        if self.writers.insert(mark.clone(), key.clone()).is_none() {
            self.order.push_back(mark);
        }
        if self.order.len() > OWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.writers.remove(&oldest);
        }
    }
}

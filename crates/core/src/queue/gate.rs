//! What keeps a key from running although it has reason to.

use super::Queue;
use super::hashed::Hashed;
use super::slot::{Gate, Stage};
use super::trigger::Class;
use crate::time::Time;
use std::hash::Hash;

impl<K: Hash + Eq + Clone, C: Eq> Queue<K, C> {
    /// Keeps the next run of `key`, which runs now, from starting before `until`, unless
    /// [`open_gate`](Self::open_gate) is called before. Nothing is lost: all that asks for a run
    /// meanwhile leads to one then.
    ///
    /// A call for a key that does not run is a mistake of the caller, and is ignored.
    pub fn close_gate(&mut self, key: &K, until: Time) {
        self.with_running_gate(key, |gate, _| gate.closed = until);
    }

    /// Lets `key` run again whose gate was closed. Other keys do not mind.
    pub fn open_gate(&mut self, now: Time, key: &K) {
        self.advance(now);
        let hash = Hashed::of(key);
        let Some(index) = self.slots.find(hash, key) else {
            return;
        };
        let slot = self.slots.value_mut(index);
        slot.gate.closed = Time::ORIGIN;
        match slot.stage {
            Stage::Waiting(waiting) => self.place_or_remove(hash, index, &waiting),
            Stage::Ready { .. } | Stage::Running(_) => {}
        }
    }

    /// Keeps the next run of `key`, which runs now, from starting before `until`. If it is not
    /// `firm`, a [`Class::Desired`] trigger ends that; one that came during
    /// the run has done so already.
    ///
    /// A call for a key that does not run is a mistake of the caller, and is ignored.
    pub fn damp(&mut self, key: &K, until: Time, firm: bool) {
        if self.is_draining() {
            return;
        }
        self.with_running_gate(key, |gate, desired| {
            if firm || !desired {
                (gate.damped, gate.firm) = (until, firm);
            }
        });
    }

    fn with_running_gate(&mut self, key: &K, change: impl FnOnce(&mut Gate, bool)) {
        let Some(index) = self.slots.find(Hashed::of(key), key) else {
            debug_assert!(false, "a key whose gate is closed has been started");
            return;
        };
        let slot = self.slots.value_mut(index);
        match slot.stage {
            Stage::Running(running) => change(&mut slot.gate, running.class == Class::Desired),
            Stage::Ready { .. } | Stage::Waiting(_) => {
                debug_assert!(false, "a key whose gate is closed has been started");
            }
        }
    }
}

//! How a queue comes to its end.

use super::Queue;
use super::causes::Causes;
use super::hashed::Hashed;
use super::slot::{Stage, Waiting};
use crate::time::Time;
use std::hash::Hash;

impl<K: Hash + Eq + Clone, C: Eq> Queue<K, C> {
    /// Starts no more runs, for good. It is over when nothing [runs](Self::counts) any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes in that no more triggers come. What those until now ask for runs, without waiting for more of them,
    /// and nothing else: the timers of all outcomes, past and future, count for nothing. So the queue comes to
    /// rest, whatever reconcilers ask for.
    pub fn drain(&mut self, now: Time) {
        let now = self.advance(now);
        self.draining = true;
        let slots = self.slots.iter();
        let waiting = slots.filter_map(|(index, key, slot)| match slot.stage {
            Stage::Waiting(waiting) => Some((index, Hashed::of(key), waiting)),
            Stage::Ready { .. } | Stage::Running(_) => None,
        });
        let waiting: Vec<_> = waiting.collect();
        for (index, hash, before) in waiting {
            *self.held(&before) -= usize::from(before.held);
            let slot = self.slots.value_mut(index);
            slot.failures = 0;
            slot.gate.damped = Time::ORIGIN;
            if before.window.is_none() {
                slot.causes = Causes::default();
            }
            let waiting = Waiting {
                window: before.window.map(|window| window.at(now)),
                ..Waiting::IDLE
            };
            self.place_or_remove(hash, index, &waiting);
        }
    }

    /// Whether [`drain`](Self::drain) was called.
    pub(super) const fn is_draining(&self) -> bool {
        self.draining
    }
}

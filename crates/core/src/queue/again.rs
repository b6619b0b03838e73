//! Runs that came too early to count.

use super::Queue;
use super::hashed::Hashed;
use super::slot::{Stage, Waiting};
use super::trigger::{Action, Outcome};
use super::window::Window;
use crate::time::Time;
use std::hash::Hash;

impl<K: Hash + Eq + Clone, C: Eq> Queue<K, C> {
    /// Takes in that the run of `key` has ended and does not count: it was neither a success nor a failure. The
    /// key is to run again because of `cause`, as soon as its gate allows, whatever else asks for it. Its row of
    /// failures stays as it was.
    ///
    /// A call for a key that does not run is a mistake of the caller, and is ignored.
    pub fn again(&mut self, now: Time, key: &K, cause: C) {
        let hash = Hashed::of(key);
        let running = self.slots.find(hash, key).and_then(|index| {
            let slot = self.slots.value(index);
            match slot.stage {
                Stage::Running(running) => Some((index, running)),
                Stage::Ready { .. } | Stage::Waiting(_) => None,
            }
        });
        let Some((index, running)) = running else {
            debug_assert!(false, "a key that is done has been started");
            return;
        };
        if running.forgotten {
            return self.done(now, key, Outcome::success(Action::AwaitChange), 0.0);
        }
        let now = self.advance(now);
        self.running -= 1;
        let slot = self.slots.value_mut(index);
        slot.causes.add(cause);
        slot.priority = slot.priority.max(running.priority);
        let waiting = Waiting {
            window: Some(Window::due(now)),
            ..Waiting::IDLE
        };
        self.place(index, &waiting);
    }
}

//! The queue: which key runs when.
//!
//! A [`Queue`] is told what happens ([`add`](Queue::add), [`done`](Queue::done),
//! [`forget`](Queue::forget)) and says what to do ([`next`](Queue::next)). It has no clock, no
//! tasks and no source of randomness: `now` and `random` are arguments.
//!
//! # Guarantees
//!
//! - A key never runs twice at once. Any number of triggers during a run cause one run after it.
//! - No trigger is lost: after it, its key runs, unless it is [forgotten](Queue::forget) before.
//!   The run carries the causes of all triggers that it answers.
//! - Nothing starves. Keys run in the order in which they become ready; those with
//!   [`Priority::Low`] may be overtaken, but only by what becomes ready within
//!   [`Config::ageing`] after them.
//! - What has to run now comes from [`next`](Queue::next) at once, without a timer.
//! - The outcome of a run replaces every timer that its key had.
//! - A key that failed is held back for a delay which grows with each failure in a row, or until
//!   somebody changes something ([`Action::AwaitChange`]). A trigger ends that early if somebody else is
//!   behind it: at once if it is [`Class::Desired`], and [spaced](Config::early) if it is
//!   [`Class::Related`]. What a key's own runs cause waits for the end. None of this resets the count of
//!   failures, and spaced runs do not raise it. A success ends the row; what went wrong by chance
//!   ([`Action::Soon`]) is held for a moment and leaves the row as it is.
//! - A key whose [gate is closed](Queue::close_gate), or that is [damped](Queue::damp), does not
//!   start, whatever asks for it; what asks meanwhile leads to a run afterwards. Both end with time.
//!
//! # Costs
//!
//! [`add`](Queue::add), [`next`](Queue::next), [`done`](Queue::done) and [`forget`](Queue::forget)
//! take O(log n) for n keys with a timer, and O(1) without timers. What becomes due is paid for by
//! the next call, whichever it is. Memory grows bit by bit: with a million keys no single call takes
//! as much as five milliseconds for it (`cargo xtask bench queue`). A key that neither waits nor runs has no state. The memory that it
//! took is used for the next one, and what a burst of keys took is given back after it.
//!
//! # Example
//!
//! ```
//! use homeostat_core::queue::{Action, Class, Config, Next, Outcome, Priority, Queue, Trigger};
//! use homeostat_core::time::Time;
//! use std::time::Duration;
//!
//! let mut queue = Queue::new(&Config::default());
//! let now = Time::ORIGIN;
//! queue.add(
//!     now,
//!     Trigger { key: "site", cause: "created", class: Class::Desired, priority: Priority::Normal },
//! );
//! let Next::Run(run) = queue.next(now) else { panic!("a new key runs at once") };
//! assert_eq!(run.key, "site");
//!
//! let later = now + Duration::from_millis(20);
//! let outcome = Outcome::success(Action::Requeue(Duration::from_secs(60)));
//! queue.done(later, &"site", outcome, 0.5);
//! assert_eq!(queue.next(later), Next::WaitUntil(later + Duration::from_secs(60)));
//! ```

mod again;
mod causes;
mod config;
mod end;
mod gate;
mod hashed;
mod paged;
mod rate;
mod ready;
mod run;
mod segmented;
mod slot;
mod slots;
mod table;
mod timers;
mod trigger;
mod window;

pub use causes::Causes;
pub use config::{Config, RateLimit};
pub use run::{Counts, Entry, Next, Run, State, Timer};
pub use trigger::{Action, Class, Outcome, Priority, Trigger};

use crate::time::Time;
use hashed::Hashed;
use rate::Rate;
use ready::Ready;
use slot::{Delays, Slot, Stage, Waiting};
use slots::Slots;
use std::hash::Hash;
use timers::Timers;
use window::Debounce;

/// Decides which key runs when; see the [module documentation](self).
///
/// `K` is cloned for each run, so it should be cheap to clone. Moments must not go backwards from
/// call to call; one that does counts as the latest so far.
#[derive(Clone, Debug)]
pub struct Queue<K, C> {
    /// The most keys that may run at once.
    concurrency: usize,
    debounce: Debounce,
    delays: Delays,
    rate: Option<Rate>,

    slots: Slots<K, Slot<C>>,
    ready: Ready,
    timers: Timers,
    running: usize,
    backing_off: usize,
    parked: usize,
    /// The latest moment that a call came with.
    now: Time,
    closed: bool,
    /// Whether timers count for nothing any more.
    draining: bool,
}

// === impl Queue ===

impl<K: Hash + Eq + Clone, C: Eq> Queue<K, C> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let &Config {
            concurrency,
            debounce,
            debounce_max_wait,
            backoff: _,
            early: _,
            rate_limit,
            ageing,
        } = config;
        let max_wait = debounce_max_wait.unwrap_or_else(|| debounce.saturating_mul(10));
        Self {
            concurrency: match usize::try_from(concurrency) {
                Ok(0) | Err(_) => usize::MAX,
                Ok(bound) => bound,
            },
            debounce: Debounce {
                rest: debounce,
                max_wait,
            },
            delays: Delays::new(config),
            rate: rate_limit.map(Rate::new),
            slots: Slots::default(),
            ready: Ready::new(ageing),
            timers: Timers::default(),
            running: 0,
            backing_off: 0,
            parked: 0,
            now: Time::ORIGIN,
            closed: false,
            draining: false,
        }
    }

    /// Takes in a trigger.
    ///
    /// If its key waits already, the triggers merge into one run: at the earliest time, with the
    /// highest priority and all causes. Debounce puts off the start to its rest after the last
    /// trigger, but never past a timer that an outcome asked for.
    pub fn add(&mut self, now: Time, trigger: Trigger<K, C>) {
        let now = self.advance(now);
        let Trigger {
            key,
            cause,
            class,
            priority,
        } = trigger;
        let hash = Hashed::of(&key);
        let Some(index) = self.slots.find(hash, &key) else {
            let window = Some(self.debounce.trigger(None, now));
            let index = self
                .slots
                .insert(hash, key, Slot::triggered(cause, priority));
            self.place(
                index,
                &Waiting {
                    window,
                    ..Waiting::IDLE
                },
            );
            return;
        };

        let slot = self.slots.value_mut(index);
        slot.causes.add(cause);
        slot.priority = slot.priority.max(priority);
        if class == Class::Desired {
            slot.gate.on_desired();
        }
        match &mut slot.stage {
            Stage::Running(running) => {
                running.window = Some(self.debounce.trigger(running.window, now));
                running.class = running.class.max(class);
            }
            Stage::Ready { lane, .. } => {
                if priority > *lane && self.ready.raise(index, now) {
                    *lane = priority;
                }
            }
            Stage::Waiting(waiting) => {
                let window = self.debounce.trigger(waiting.window, now);
                if let Some(waiting) = waiting.with(class, window, slot.early) {
                    self.place(index, &waiting);
                }
            }
        }
    }

    /// Asks for a run of `key` at `at`, as an outcome asks for a requeue: without a cause, and not
    /// debounced.
    ///
    /// A key that runs earlier anyway does not run once more for it, and a key that is held because
    /// it failed stays so. If the key runs now, `at` counts next to what its outcome asks for.
    /// [`Time::MAX`] asks for nothing.
    pub fn schedule_at(&mut self, now: Time, key: K, at: Time) {
        self.advance(now);
        if at == Time::MAX {
            return;
        }
        let hash = Hashed::of(&key);
        let Some(index) = self.slots.find(hash, &key) else {
            let index = self.slots.insert(hash, key, Slot::new());
            self.place(index, &Waiting::IDLE.or_at(at));
            return;
        };
        match &mut self.slots.value_mut(index).stage {
            Stage::Ready { .. } => {}
            Stage::Running(running) => running.requested = running.requested.min(at),
            Stage::Waiting(waiting) => {
                if !waiting.held {
                    let waiting = waiting.or_at(at);
                    self.place(index, &waiting);
                }
            }
        }
    }

    /// Says what to do now. Ask again until it is not [`Next::Run`], and after every other call.
    pub fn next(&mut self, now: Time) -> Next<K, C> {
        let now = self.advance(now);
        if self.closed || self.running >= self.concurrency {
            return Next::Idle;
        }
        let token = self.rate.as_ref().map_or(Time::ORIGIN, Rate::next_start);
        match self.ready.front() {
            Some(index) if token <= now => Next::Run(self.start(index)),
            Some(_) => Next::WaitUntil(token),
            None => match self.timers.first() {
                Some(first) => Next::WaitUntil(first.max(token)),
                None => Next::Idle,
            },
        }
    }

    /// Takes in how the run of `key` ended. It replaces all timers of the key.
    ///
    /// `random` is a number drawn evenly from `[0, 1)`, for the jitter of a backoff. A call for a
    /// key that does not run is a mistake of the caller, and is ignored.
    pub fn done(&mut self, now: Time, key: &K, outcome: Outcome, random: f64) {
        let now = self.advance(now);
        let hash = Hashed::of(key);
        let Some(index) = self.slots.find(hash, key) else {
            debug_assert!(false, "a key that is done has been started");
            return;
        };
        let slot = self.slots.value_mut(index);
        let Stage::Running(running) = slot.stage else {
            debug_assert!(false, "a key that is done has been started");
            return;
        };
        let (running, outcome) = if self.draining {
            running.drained(now)
        } else {
            (running, outcome)
        };

        self.running -= 1;
        let waiting = slot.conclude(now, running, outcome, &self.delays, random);
        *self.held(&waiting) += usize::from(waiting.held);
        self.place_or_remove(hash, index, &waiting);
    }

    /// Takes in that the object behind `key` is gone: it neither waits nor backs off any more, and
    /// its failures are forgotten.
    ///
    /// If it runs, the outcome of that run will count for nothing. Triggers that come after this
    /// call count as ever.
    pub fn forget(&mut self, key: &K) {
        let hash = Hashed::of(key);
        let Some(index) = self.slots.find(hash, key) else {
            return;
        };
        let slot = self.slots.value_mut(index);
        match slot.stage {
            Stage::Running(running) => {
                slot.forget(running);
                return;
            }
            Stage::Ready { lane, .. } => self.ready.remove(index, lane),
            Stage::Waiting(waiting) => {
                *self.held(&waiting) -= usize::from(waiting.held);
                self.timers.cancel(index);
            }
        }
        self.remove(hash, index);
    }

    /// How many keys are in which state, as of the last call that came with a time.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Self {
            running,
            backing_off,
            parked,
            ..
        } = *self;
        let ready = self.ready.len();
        let waiting = self.slots.len() - ready - running - backing_off - parked;
        Counts {
            waiting,
            backing_off,
            parked,
            ready,
            running,
        }
    }

    /// Since when the key that is ready for the longest time has been so.
    ///
    /// A key whose priority was raised may have been ready for longer, by less than
    /// [`Config::ageing`].
    #[must_use]
    pub fn oldest_ready(&self) -> Option<Time> {
        self.ready.oldest()
    }

    /// What is known of `key`; `None` if it neither waits nor runs.
    #[must_use]
    pub fn entry(&self, key: &K) -> Option<Entry<'_, C>> {
        let index = self.slots.find(Hashed::of(key), key)?;
        Some(self.describe(index, self.slots.value(index)))
    }

    /// All keys that wait or run, in no order that means anything. Takes O(n): it is for people to
    /// look at.
    pub fn entries(&self) -> impl Iterator<Item = (&K, Entry<'_, C>)> {
        self.slots
            .iter()
            .map(|(index, key, slot)| (key, self.describe(index, slot)))
    }

    /// Makes ready what is due, and returns the latest moment so far.
    ///
    /// Each call with a time does this first, so that the order of becoming ready is the order of
    /// time, whatever the order of calls.
    fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        while let Some((index, at)) = self.timers.pop_due(self.now) {
            let Stage::Waiting(waiting) = self.slots.value(index).stage else {
                unreachable!("only a waiting slot has a timer");
            };
            if waiting.start() <= at {
                self.make_ready(index, &waiting, at);
            } else if waiting.is_idle() {
                // Only its gate was closed.
                let hash = Hashed::of(self.slots.key(index));
                self.remove(hash, index);
            }
        }
        self.now
    }

    /// The same as [`place`](Self::place), for a slot that may have nothing to wait for.
    fn place_or_remove(&mut self, hash: Hashed, index: u32, waiting: &Waiting) {
        let slot = self.slots.value(index);
        if waiting.is_idle() && slot.gate.opens() <= self.now {
            debug_assert!(
                slot.causes.is_empty() && slot.failures == 0,
                "something is forgotten"
            );
            self.timers.cancel(index);
            self.remove(hash, index);
        } else {
            self.place(index, waiting);
        }
    }

    /// Removes a slot that is in no lane and has no timer.
    fn remove(&mut self, hash: Hashed, index: u32) {
        if let Some(page) = self.slots.remove(hash, index) {
            self.ready.give_back(page);
            self.timers.give_back(page);
        }
    }

    /// Puts a slot that waits where it belongs: among the ready ones, on a timer, or, if it waits
    /// without end, nowhere.
    fn place(&mut self, index: u32, waiting: &Waiting) {
        let start = waiting.start();
        let opens = self.slots.value(index).gate.opens();
        if start.max(opens) <= self.now {
            self.timers.cancel(index);
            self.make_ready(index, waiting, self.now);
            return;
        }
        // A gate that nobody waits at is looked at once more when it opens, to be forgotten.
        let wake = if start == Time::MAX && opens > self.now {
            opens
        } else {
            start.max(opens)
        };
        if wake < Time::MAX {
            self.timers.set(index, wake);
        } else {
            self.timers.cancel(index);
        }
        self.slots.value_mut(index).stage = Stage::Waiting(*waiting);
    }

    /// Makes a slot ready that waited and has no timer any more.
    fn make_ready(&mut self, index: u32, waiting: &Waiting, at: Time) {
        let slot = self.slots.value_mut(index);
        let timer = waiting.elapsed(at);
        if timer.is_some() {
            slot.priority = slot.priority.max(waiting.timer_priority);
        }
        let lane = slot.priority;
        let early = waiting.early && timer.is_none();
        slot.stage = Stage::Ready { lane, timer, early };
        *self.held(waiting) -= usize::from(waiting.held);
        self.ready.push(index, lane, at);
    }

    /// The number of those that are held in the same way as this one, if it is held at all.
    fn held(&mut self, waiting: &Waiting) -> &mut usize {
        if waiting.is_parked() {
            &mut self.parked
        } else {
            &mut self.backing_off
        }
    }

    /// Starts the run of a ready slot.
    fn start(&mut self, index: u32) -> Run<K, C> {
        if let Some(rate) = &mut self.rate {
            rate.start(self.now);
        }
        self.running += 1;
        let key = self.slots.key(index).clone();
        let slot = self.slots.value_mut(index);
        let Stage::Ready { lane, timer, early } = slot.stage else {
            unreachable!("a slot in a lane is ready");
        };
        let (priority, failures) = (slot.priority, slot.failures);
        let causes = slot.start(early);
        let ready_since = self.ready.since(index);
        self.ready.remove(index, lane);
        Run {
            key,
            causes,
            timer,
            priority,
            failures,
            ready_since,
        }
    }

    fn describe<'a>(&self, index: u32, slot: &'a Slot<C>) -> Entry<'a, C> {
        let (state, next_run) = match &slot.stage {
            Stage::Waiting(waiting) => {
                let state = if waiting.is_parked() {
                    State::Parked
                } else if waiting.held {
                    State::BackingOff
                } else {
                    State::Waiting
                };
                let start = waiting.start();
                let start = Some(start).filter(|&start| start < Time::MAX);
                (state, start.map(|start| start.max(slot.gate.opens())))
            }
            Stage::Ready { .. } => (State::Ready, Some(self.ready.since(index))),
            Stage::Running(_) => (State::Running, None),
        };
        Entry {
            state,
            next_run,
            failures: slot.failures,
            causes: &slot.causes,
            gate_closed_until: Some(slot.gate.closed).filter(|&closed| closed > self.now),
            damped_until: Some(slot.gate.damped).filter(|&damped| damped > self.now),
        }
    }
}

#[cfg(test)]
mod tests;

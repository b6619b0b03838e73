//! What comes out of a queue.

use super::causes::Causes;
use super::trigger::Priority;
use crate::time::Time;

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K, C> {
    /// Run this key, then call [`Queue::done`](super::Queue::done).
    Run(Run<K, C>),
    /// Nothing until then, unless another call changes that.
    WaitUntil(Time),
    /// Nothing until another call changes that: no key waits for a time, as many run as may, or
    /// the queue is closed.
    Idle,
}

/// A run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<K, C> {
    /// The key to run.
    pub key: K,
    /// The triggers that the run answers. Empty if only a timer leads to it.
    pub causes: Causes<C>,
    /// The timer that made the key ready, if it was one.
    pub timer: Option<Timer>,
    /// The highest of what leads to the run.
    pub priority: Priority,
    /// Failures in a row before this run.
    pub failures: u32,
    /// When the key became ready; since then it has waited for others.
    pub ready_since: Time,
}

/// A timer that an outcome asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// After a success.
    Requeue,
    /// After a failure: the end of the hold.
    Retry,
}

/// What is known of a key; see [`Queue::entry`](super::Queue::entry).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Entry<'a, C> {
    /// What happens with the key.
    pub state: State,
    /// When the key becomes ready, or since when it is. `None` while it runs, and while it is held
    /// without end and nothing asks for it.
    pub next_run: Option<Time>,
    /// Failures in a row.
    pub failures: u32,
    /// The triggers that the next run will answer.
    pub causes: &'a Causes<C>,
    /// Until when its [gate](super::Queue::close_gate) is closed, unless it is opened before.
    pub gate_closed_until: Option<Time>,
    /// Until when it is [damped](super::Queue::damp).
    pub damped_until: Option<Time>,
}

/// What happens with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for its debounce or for the timer that it asked for.
    Waiting,
    /// It is held back because it failed.
    BackingOff,
    /// It failed, and only somebody else can change that: nothing runs it by itself.
    Parked,
    /// It could run, and waits for others.
    Ready,
    /// It runs.
    Running,
}

/// How many keys are in which [`State`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// In [`State::Waiting`].
    pub waiting: usize,
    /// In [`State::BackingOff`].
    pub backing_off: usize,
    /// In [`State::Parked`].
    pub parked: usize,
    /// In [`State::Ready`].
    pub ready: usize,
    /// In [`State::Running`].
    pub running: usize,
}

// === impl Counts ===

impl Counts {
    /// Whether a key runs, or waits for a run that will come by itself.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let &Self {
            waiting,
            backing_off,
            ready,
            running,
            parked: _,
        } = self;
        waiting + backing_off + ready + running > 0
    }
}

//! What a queue knows of one key.

use super::causes::Causes;
use super::run::Timer;
use super::trigger::{Action, Outcome, Priority};
use super::window::Window;
use crate::backoff::Backoff;
use crate::time::Time;

/// All that is known of a key.
#[derive(Clone, Debug)]
pub(super) struct Slot<C> {
    /// The triggers since the last start.
    pub(super) causes: Causes<C>,
    /// The highest priority among them. Once ready, that of the timer counts, too, if it led there.
    pub(super) priority: Priority,
    /// In a row.
    pub(super) failures: u32,
    /// What it waits for besides.
    pub(super) gate: Gate,
    pub(super) stage: Stage,
}

/// Until when a key does not start, whatever asks for it. [`Time::ORIGIN`] stands for no such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate {
    /// Unless somebody opens it before.
    pub(super) closed: Time,
    pub(super) damped: Time,
    /// Whether a change of the desired state leaves it damped.
    pub(super) firm: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Waiting(Waiting),
    Ready {
        lane: Priority,
        timer: Option<Timer>,
    },
    Running(Running),
}

/// The timer or the window, whichever is earlier, makes the key ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// What the last outcome asked for; [`Time::MAX`] if it asked for nothing.
    pub(super) timer: Time,
    /// Of the run that asked for it.
    pub(super) timer_priority: Priority,
    /// Whether the timer is a hold.
    pub(super) held: bool,
    /// Of the triggers. None under a hold that no trigger may end.
    pub(super) window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) priority: Priority,
    /// Of the triggers since the start.
    pub(super) window: Option<Window>,
    /// Whether one of them may end a hold.
    pub(super) desired: bool,
    /// What was asked for since the start, next to the outcome; [`Time::MAX`] if nothing was.
    pub(super) requested: Time,
    /// Whether the outcome will be about an object that is gone.
    pub(super) forgotten: bool,
}

impl<C> Slot<C> {
    /// The slot of a key that was idle, before it is placed.
    pub(super) fn new() -> Self {
        Self {
            causes: Causes::default(),
            priority: Priority::Low,
            failures: 0,
            gate: Gate::OPEN,
            stage: Stage::Waiting(Waiting::IDLE),
        }
    }

    /// The same after its first trigger.
    pub(super) fn triggered(cause: C, priority: Priority) -> Self {
        Self {
            causes: Causes::new(cause),
            priority,
            ..Self::new()
        }
    }

    /// Begins a run, and returns the causes that led to it.
    pub(super) fn start(&mut self) -> Causes<C> {
        let priority = std::mem::replace(&mut self.priority, Priority::Low);
        let running = Running {
            priority,
            window: None,
            requested: Time::MAX,
            desired: false,
            forgotten: false,
        };
        self.stage = Stage::Running(running);
        std::mem::take(&mut self.causes)
    }

    /// Forgets what is known of an object that is gone, while its run goes on.
    pub(super) fn forget(&mut self, running: Running) {
        let gone = Running {
            window: None,
            requested: Time::MAX,
            desired: false,
            forgotten: true,
            ..running
        };
        *self = Self {
            stage: Stage::Running(gone),
            ..Self::new()
        };
    }

    /// Ends a run: counts its failure, and says what the key waits for.
    pub(super) fn conclude(
        &mut self,
        now: Time,
        running: Running,
        outcome: Outcome,
        backoff: &Backoff,
        random: f64,
    ) -> Waiting {
        let Running {
            priority,
            window,
            requested,
            desired,
            forgotten,
        } = running;
        // A hold comes with the length of the row that goes on.
        let one_more = self.failures.saturating_add(1);
        let (timer, row) = match (outcome.action, outcome.failed) {
            _ if forgotten => (Time::MAX, None),
            (Action::AwaitChange, _) => (Time::MAX, None),
            (Action::Requeue(after), true) => (now + after, Some(one_more)),
            (Action::Requeue(after), false) => (now + after, None),
            (Action::Backoff { at_least }, _) => {
                let delay = backoff.delay(one_more, random);
                let delay = delay.max(at_least.unwrap_or_default());
                (now + delay, Some(one_more))
            }
            (Action::Soon, _) => (now + backoff.soon(random), Some(self.failures)),
        };
        let held = row.is_some();
        self.failures = row.unwrap_or(0);
        let window = window.filter(|_| desired || !held);
        let waiting = Waiting {
            timer,
            timer_priority: priority,
            held,
            window,
        };
        if held {
            waiting
        } else {
            waiting.or_at(requested)
        }
    }
}

impl Waiting {
    /// What an idle key waits for: nothing.
    pub(super) const IDLE: Self = Self {
        timer: Time::MAX,
        timer_priority: Priority::Low,
        held: false,
        window: None,
    };

    /// The same with the timer at `at`, if that is earlier.
    pub(super) fn or_at(self, at: Time) -> Self {
        debug_assert!(!self.held, "a hold is not shortened");
        if at == Time::MAX {
            return self;
        }
        Self {
            timer: self.timer.min(at),
            timer_priority: Priority::Normal,
            ..self
        }
    }

    /// The timer, if its time has come.
    pub(super) fn elapsed(&self, now: Time) -> Option<Timer> {
        let timer = if self.held {
            Timer::Retry
        } else {
            Timer::Requeue
        };
        Some(timer).filter(|_| self.timer <= now)
    }

    /// When the key becomes ready.
    pub(super) fn start(&self) -> Time {
        self.window
            .map_or(self.timer, |window| self.timer.min(window.start))
    }

    /// Whether there is nothing to wait for and nothing to remember.
    pub(super) fn is_idle(&self) -> bool {
        !self.held && self.window.is_none() && self.timer == Time::MAX
    }
}

// === impl Gate ===

impl Gate {
    pub(super) const OPEN: Self = Self {
        closed: Time::ORIGIN,
        damped: Time::ORIGIN,
        firm: false,
    };

    /// From when on a key may start.
    pub(super) fn opens(&self) -> Time {
        self.closed.max(self.damped)
    }

    /// Takes in that somebody has changed what is wanted.
    pub(super) fn on_desired(&mut self) {
        if !self.firm {
            self.damped = Time::ORIGIN;
        }
    }
}

//! What a queue knows of one key.

use super::causes::Causes;
use super::config::Config;
use super::run::Timer;
use super::trigger::{AT_ONCE, Action, Class, INSTANT, Outcome, Priority};
use super::window::Window;
use crate::backoff::Backoff;
use crate::time::Time;
use std::time::Duration;

/// How many moments in a row may be chance.
const MOMENTS: u32 = 20;

/// All that is known of a key.
#[derive(Clone, Debug)]
pub(super) struct Slot<C> {
    /// The triggers since the last start.
    pub(super) causes: Causes<C>,
    /// The highest priority among them. Once ready, that of the timer counts, too, if it led there.
    pub(super) priority: Priority,
    /// In a row.
    pub(super) failures: u32,
    /// Moments in a row.
    pub(super) moments: u32,
    pub(super) early: Early,
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
        /// Whether it was to be held, and nobody asks for it who ends that at once.
        early: bool,
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
    /// Whether the window is one of triggers that end a hold early, and not at once.
    pub(super) early: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) priority: Priority,
    /// Of the triggers since the start.
    pub(super) window: Option<Window>,
    /// The highest of theirs.
    pub(super) class: Class,
    /// Whether it runs before its hold was over.
    pub(super) early: bool,
    /// What was asked for since the start, next to the outcome; [`Time::MAX`] if nothing was.
    pub(super) requested: Time,
    /// Whether the outcome will be about an object that is gone.
    pub(super) forgotten: bool,
}

/// The runs before the end of a hold, since the last success.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    pub(super) runs: u32,
    /// When the next one may be.
    pub(super) from: Time,
}

/// How a queue delays keys that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    pub(super) backoff: Backoff,
    pub(super) early: Backoff,
}

impl Delays {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            backoff: config.backoff,
            early: config.early,
        }
    }
}

impl Early {
    const NONE: Self = Self {
        runs: 0,
        from: Time::ORIGIN,
    };
}

impl Running {
    /// How a run ends whose key is not to wait for anything.
    pub(super) fn drained(self, now: Time) -> (Self, Outcome) {
        let running = Self {
            window: self.window.map(|window| window.at(now)),
            requested: Time::MAX,
            ..self
        };
        (running, Outcome::success(Action::AwaitChange))
    }
}

impl<C> Slot<C> {
    /// The slot of a key that was idle, before it is placed.
    pub(super) fn new() -> Self {
        Self {
            causes: Causes::default(),
            priority: Priority::Low,
            failures: 0,
            moments: 0,
            early: Early::NONE,
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

    /// Begins a run, and returns the causes that led to it. `early` tells that its hold is not over.
    pub(super) fn start(&mut self, early: bool) -> Causes<C> {
        let priority = std::mem::replace(&mut self.priority, Priority::Low);
        let running = Running {
            priority,
            window: None,
            requested: Time::MAX,
            class: Class::Own,
            early,
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
            class: Class::Own,
            early: false,
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
        delays: &Delays,
        random: f64,
    ) -> Waiting {
        let Running {
            priority,
            window,
            class,
            early,
            requested,
            forgotten,
        } = running;
        let hold = if forgotten {
            None
        } else {
            self.count(early, outcome, delays, random)
        };
        let waiting = Waiting {
            timer: Time::MAX,
            timer_priority: priority,
            held: hold.is_some(),
            window,
            early: false,
        };
        let Some(delay) = hold else {
            let after = match outcome.action {
                Action::Requeue(after) if !forgotten => now + after,
                Action::Requeue(_)
                | Action::AwaitChange
                | Action::Backoff { .. }
                | Action::Soon => Time::MAX,
            };
            (self.failures, self.moments, self.early) = (0, 0, Early::NONE);
            let waiting = Waiting {
                timer: after,
                ..waiting
            };
            return waiting.or_at(requested);
        };
        if early {
            self.early.runs = self.early.runs.saturating_add(1);
            self.early.from = now + delays.early.delay(self.early.runs, 0.0);
        }
        let waiting = Waiting {
            timer: now + delay,
            window: None,
            ..waiting
        };
        let triggered = window.and_then(|window| waiting.with(class, window, self.early));
        triggered.unwrap_or(waiting)
    }

    /// Counts a failure, or what is held like one, and says for how long. `None` ends the row without a hold.
    fn count(
        &mut self,
        early: bool,
        outcome: Outcome,
        delays: &Delays,
        random: f64,
    ) -> Option<Duration> {
        let moments = match outcome.action {
            Action::Soon => self.moments.saturating_add(1),
            Action::Requeue(_) | Action::AwaitChange | Action::Backoff { .. } => 0,
        };
        self.moments = moments;
        // The row goes on with the run that the hold ends with, or that somebody ends it for. What comes early
        // besides neither lengthens the row nor makes the next delay shorter.
        let row = if early {
            self.failures.max(1)
        } else {
            self.failures.saturating_add(1)
        };
        let backoff = |at_least: Option<Duration>| {
            let delay = delays.backoff.delay(row, random);
            (row, delay.max(at_least.unwrap_or_default()))
        };
        let (row, delay) = match (outcome.action, outcome.failed) {
            (Action::AwaitChange | Action::Requeue(_), false) => return None,
            (Action::AwaitChange, true) => (0, Duration::MAX),
            (Action::Requeue(after), true) if after <= INSTANT && row > AT_ONCE => {
                (row, after.max(delays.backoff.delay(row - AT_ONCE, random)))
            }
            (Action::Requeue(after), true) => (row, after),
            (Action::Backoff { at_least }, _) => backoff(at_least),
            (Action::Soon, _) if moments > MOMENTS => backoff(None),
            (Action::Soon, _) => (self.failures, delays.backoff.soon(random)),
        };
        self.failures = row;
        Some(delay)
    }
}

impl Waiting {
    /// What an idle key waits for: nothing.
    pub(super) const IDLE: Self = Self {
        timer: Time::MAX,
        timer_priority: Priority::Low,
        held: false,
        window: None,
        early: false,
    };

    /// The same after a trigger of this class, whose window is this; `None` if it has to wait for the end of
    /// the hold.
    pub(super) fn with(self, class: Class, window: Window, early: Early) -> Option<Self> {
        let ends = !self.held || class == Class::Desired || self.window.is_some() && !self.early;
        if ends {
            return Some(Self {
                window: Some(window),
                early: false,
                ..self
            });
        }
        let least = if self.is_parked() {
            Class::Status
        } else {
            Class::Related
        };
        let counts = class >= least || self.window.is_some();
        counts.then_some(Self {
            window: Some(window.not_before(early.from)),
            early: true,
            ..self
        })
    }

    /// Whether nothing but somebody else ends its hold.
    pub(super) fn is_parked(&self) -> bool {
        self.held && self.timer == Time::MAX
    }

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

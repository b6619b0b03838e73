//! When triggers start a run.

use crate::time::Time;
use std::time::Duration;

/// How long a key rests after a trigger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debounce {
    pub(super) rest: Duration,
    pub(super) max_wait: Duration,
}

/// The time from the first trigger that may start a run until that run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// When the run starts, if no further trigger puts it off.
    pub(super) start: Time,
    /// The latest that triggers can put it off to.
    latest: Time,
}

impl Window {
    /// The window of what was put off for long enough.
    pub(super) fn due(now: Time) -> Self {
        Self {
            start: now,
            latest: now,
        }
    }

    /// The same, starting at `time`.
    pub(super) fn at(self, time: Time) -> Self {
        Self {
            start: time,
            ..self
        }
    }

    /// The same, not starting before `time`.
    pub(super) fn not_before(self, time: Time) -> Self {
        Self {
            start: self.start.max(time),
            ..self
        }
    }
}

impl Debounce {
    /// The window after a trigger: `window` with its start put off, or a new one.
    pub(super) fn trigger(self, window: Option<Window>, now: Time) -> Window {
        let latest = window.map_or_else(|| now + self.max_wait, |window| window.latest);
        Window {
            start: latest.min(now + self.rest),
            latest,
        }
    }
}

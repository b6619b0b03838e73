//! When all slots of a controller are taken by runs that do not end.

use crate::time::Time;
use std::time::Duration;

/// Notices that no slot has become free for a while.
///
/// ```
/// use homeostat_core::{time::Time, wedge::Wedge};
/// use std::time::Duration;
///
/// let mut wedge = Wedge::new(2, Duration::from_secs(60));
/// let second = |seconds| Time::ORIGIN + Duration::from_secs(seconds);
/// wedge.set_running(second(0), 1);
/// assert_eq!(wedge.due(), None, "a slot is free");
/// wedge.set_running(second(5), 2);
/// assert_eq!(wedge.due(), Some(second(65)));
/// assert!(wedge.report(second(65)), "it is told once");
/// assert!(!wedge.report(second(99)));
/// assert!(wedge.set_running(second(100), 1), "it was wedged, and is no longer");
/// ```
#[derive(Debug, Clone)]
pub struct Wedge {
    slots: usize,
    patience: Duration,
    /// Since when all slots are taken by the same runs.
    full_since: Option<Time>,
    reported: bool,
}

// === impl Wedge ===

impl Wedge {
    /// For so many slots, where 0 means any number, which can never be taken all.
    #[must_use]
    pub fn new(slots: usize, patience: Duration) -> Self {
        Self {
            slots,
            patience,
            full_since: None,
            reported: false,
        }
    }

    /// Takes in that a run has started or ended, so that this many run now. True if all slots were reported as
    /// taken, and one has become free.
    pub fn set_running(&mut self, now: Time, running: usize) -> bool {
        let full = self.slots > 0 && running >= self.slots;
        self.full_since = full.then_some(now);
        std::mem::take(&mut self.reported)
    }

    /// When it is to be reported, unless a run ends before. `None` if a slot is free, or it was reported.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let since = self.full_since.filter(|_| !self.reported)?;
        Some(since + self.patience)
    }

    /// Whether it is to be reported now.
    pub fn report(&mut self, now: Time) -> bool {
        let due = self.due().is_some_and(|due| due <= now);
        self.reported |= due;
        due
    }
}

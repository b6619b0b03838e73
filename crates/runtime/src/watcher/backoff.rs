//! Delays for [`backoff`](crate::WatchStreamExt::backoff), as users of kube know them.

use crate::utils::{Backoff, ResetTimerBackoff};
use homeostat_core::{backoff, watch};
use std::time::Duration;

/// Delays that grow from failure to failure up to a bound. They never end.
///
/// ```
/// use homeostat::{Backoff, watcher::ExponentialBackoff};
/// use std::time::Duration;
///
/// let delays = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60));
/// let mut delays = ExponentialBackoff::from(delays.jitter(0.0));
/// assert_eq!(delays.next(), Some(Duration::from_secs(1)));
/// assert_eq!(delays.next(), Some(Duration::from_secs(2)));
/// ```
#[derive(Clone, Debug)]
pub struct ExponentialBackoff {
    delays: backoff::Backoff,
    failures: u32,
    random: fastrand::Rng,
}

/// The delays that a [`watcher`](super::watcher()) itself makes: 800 ms, doubling to 30 s, and up to
/// half of that by chance. They start over when none was asked for during two minutes.
#[derive(Clone, Debug)]
pub struct DefaultBackoff(ResetTimerBackoff<ExponentialBackoff>);

// === impl ExponentialBackoff ===

impl From<backoff::Backoff> for ExponentialBackoff {
    fn from(delays: backoff::Backoff) -> Self {
        Self {
            delays,
            failures: 0,
            random: fastrand::Rng::new(),
        }
    }
}

impl Iterator for ExponentialBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        Some(self.delays.delay(self.failures, self.random.f64()))
    }
}

impl Backoff for ExponentialBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

// === impl DefaultBackoff ===

impl Default for DefaultBackoff {
    fn default() -> Self {
        let delays = ExponentialBackoff::from(watch::Config::default().backoff);
        Self(ResetTimerBackoff::new(delays, Duration::from_secs(120)))
    }
}

impl Iterator for DefaultBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for DefaultBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}

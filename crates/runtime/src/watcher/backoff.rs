//! Delays for [`backoff`](crate::WatchStreamExt::backoff), as users of kube know them.

use crate::utils::{Backoff, ResetTimerBackoff};
use backon::BackoffBuilder;
use homeostat_core::{backoff, watch};
use std::time::Duration;

/// Delays that grow from failure to failure up to a bound. They never end: a watch that gives up
/// is of use to nobody, so the number of times that a [`backon::ExponentialBuilder`] sets does not
/// count.
///
/// ```
/// use homeostat::{Backoff, watcher::ExponentialBackoff};
/// use std::time::Duration;
///
/// let delays = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60));
/// let mut delays = ExponentialBackoff::from(delays.jitter(0.0));
/// assert_eq!(delays.next(), Some(Duration::from_secs(1)));
/// assert_eq!(delays.next(), Some(Duration::from_secs(2)));
///
/// // As programs for kube::runtime write it.
/// let mut delays = ExponentialBackoff::from(backon::ExponentialBuilder::default());
/// assert_eq!(delays.nth(999), Some(Duration::from_secs(60)));
/// ```
#[derive(Debug)]
pub struct ExponentialBackoff(Delays);

#[derive(Debug)]
enum Delays {
    Own {
        delays: backoff::Backoff,
        failures: u32,
        random: fastrand::Rng,
    },
    Backon {
        builder: backon::ExponentialBuilder,
        delays: backon::ExponentialBackoff,
    },
}

/// The delays that a [`watcher`](super::watcher()) itself makes: 800 ms, doubling to 30 s, and up to
/// half of that by chance. They start over when none was asked for during two minutes.
#[derive(Debug)]
pub struct DefaultBackoff(ResetTimerBackoff<ExponentialBackoff>);

// === impl ExponentialBackoff ===

impl From<backoff::Backoff> for ExponentialBackoff {
    fn from(delays: backoff::Backoff) -> Self {
        Self(Delays::Own {
            delays,
            failures: 0,
            random: fastrand::Rng::new(),
        })
    }
}

impl From<backon::ExponentialBuilder> for ExponentialBackoff {
    fn from(builder: backon::ExponentialBuilder) -> Self {
        let builder = builder.without_max_times();
        Self(Delays::Backon {
            builder,
            delays: builder.build(),
        })
    }
}

impl Iterator for ExponentialBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        match &mut self.0 {
            Delays::Own {
                delays,
                failures,
                random,
            } => {
                *failures = failures.saturating_add(1);
                Some(delays.delay(*failures, random.f64()))
            }
            Delays::Backon { delays, .. } => delays.next(),
        }
    }
}

impl Backoff for ExponentialBackoff {
    fn reset(&mut self) {
        match &mut self.0 {
            Delays::Own { failures, .. } => *failures = 0,
            Delays::Backon { builder, delays } => *delays = builder.build(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// T08: a builder of backon's gives up after three times by default; a watch does not.
    #[test]
    fn a_builder_of_backon() {
        let builder = backon::ExponentialBuilder::new()
            .with_min_delay(Duration::from_secs(1))
            .with_max_delay(Duration::from_secs(5))
            .with_max_times(2);
        let mut delays = ExponentialBackoff::from(builder);
        let mut seconds = |count| -> Vec<u64> {
            let delays = delays.by_ref().take(count);
            delays.map(|delay| delay.as_secs()).collect()
        };
        assert_eq!(seconds(5), [1, 2, 4, 5, 5]);
        assert_eq!(seconds(1000), [5; 1000]);
        delays.reset();
        assert_eq!(delays.next(), Some(Duration::from_secs(1)));
    }
}

//! A limit on starts per second.

use super::config::RateLimit;
use crate::time::Time;
use std::time::Duration;

/// Starts per second: one per hour.
const SLOWEST: f64 = 1.0 / 3600.0;

/// Starts per second: one per nanosecond.
const FASTEST: f64 = 1e9;

/// A token bucket, kept as one moment: when it will be full again.
///
/// Each start moves that moment on by the time that one token takes to come back. A start is free
/// as long as the moment is at most the worth of `burst - 1` tokens away.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    /// The time that one token takes to come back.
    interval: Duration,
    /// How far away `full` may be when a start is free.
    tolerance: Duration,
    full: Time,
}

impl Rate {
    pub(super) fn new(limit: RateLimit) -> Self {
        let RateLimit { per_second, burst } = limit;
        // What is not a number is not above the least rate either.
        let per_second = if per_second > SLOWEST {
            per_second.min(FASTEST)
        } else {
            SLOWEST
        };
        let interval = Duration::from_secs_f64(1.0 / per_second);
        let tolerance = interval.saturating_mul(burst.saturating_sub(1));
        Self {
            interval,
            tolerance,
            full: Time::ORIGIN,
        }
    }

    /// The first moment at which a start is free; it may be past.
    pub(super) fn next_start(&self) -> Time {
        Time::ORIGIN + self.full.since(Time::ORIGIN + self.tolerance)
    }

    /// Takes a token for a start that happens `now`.
    pub(super) fn start(&mut self, now: Time) {
        debug_assert!(
            self.next_start() <= now,
            "a start has to wait for its token"
        );
        self.full = self.full.max(now) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::{Rate, RateLimit};
    use crate::time::Time;
    use std::time::Duration;

    /// Starts as often as it may for `seconds`, and returns when.
    fn starts(limit: RateLimit, seconds: u64) -> Vec<Duration> {
        let origin = Time::ORIGIN + Duration::from_secs(100);
        let mut rate = Rate::new(limit);
        let mut starts = Vec::new();
        loop {
            let now = rate.next_start().max(origin);
            if now > origin + Duration::from_secs(seconds) {
                return starts;
            }
            rate.start(now);
            starts.push(now.since(origin));
        }
    }

    #[test]
    fn burst_first_then_one_per_interval() {
        let starts = starts(
            RateLimit {
                per_second: 2.0,
                burst: 3,
            },
            2,
        );
        let millis: Vec<_> = starts.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [0, 0, 0, 500, 1000, 1500, 2000]);
    }

    #[test]
    fn limits_out_of_range_are_moved_into_it() {
        for per_second in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(
                starts(
                    RateLimit {
                        per_second,
                        burst: 0
                    },
                    3600 * 2
                )
                .len(),
                3
            );
        }
        let fast = Rate::new(RateLimit {
            per_second: f64::INFINITY,
            burst: u32::MAX,
        });
        assert_eq!(fast.interval, Duration::from_nanos(1));
    }
}

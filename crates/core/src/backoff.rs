//! How long to wait after the n-th failure in a row.

use std::time::Duration;

/// Delays that grow from failure to failure up to a bound, each stretched by a random share.
///
/// The delay after failure `n` is `min(initial * factor^(n-1), max)`, and on top of that up to
/// `jitter` times as much again. The jitter comes after the bound, so that things which failed
/// together drift apart even when all of them wait the longest time.
///
/// A backoff has no state: whoever counts the failures asks for a [delay](Self::delay).
///
/// Settings out of range are moved to the nearest value that makes sense, as said at each method;
/// nothing here panics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    factor: f64,
    jitter: f64,
}

impl Backoff {
    /// Delays that double from `initial` up to `max`, with a jitter of up to 20 %.
    ///
    /// An `initial` above `max` counts as `max`. Zero is taken literally: no delay at all.
    #[must_use]
    pub const fn exponential(initial: Duration, max: Duration) -> Self {
        Self {
            initial,
            max,
            factor: 2.0,
            jitter: 0.2,
        }
    }

    /// What each delay is multiplied by to get the next one; 2 by default.
    ///
    /// Delays never shrink: less than 1, and what is not a number, counts as 1.
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Self {
        // `max` returns the other operand for what is not a number.
        self.factor = factor.max(1.0);
        self
    }

    /// The largest share of a delay that chance adds to it, from 0 to 1; 0.2 by default.
    ///
    /// It only ever lengthens a delay, for a delay is a promise not to come earlier. Values outside
    /// of the range count as its nearer end, and what is not a number counts as 0.
    #[must_use]
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = share(jitter);
        self
    }

    /// The delay after `failures` failures in a row, the last one included (so the first delay is
    /// the one for 1; 0 counts as 1).
    ///
    /// `random` is a number drawn evenly from `[0, 1)`.
    #[must_use]
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let delay = scaled(self.initial, self.factor.powi(exponent)).min(self.max);
        delay.saturating_add(scaled(delay, self.jitter * share(random)))
    }

    /// A moment, for what went wrong by chance and was no failure: an eighth to half of the first
    /// delay, of which a second at most counts.
    ///
    /// It is long enough for the news of a change to arrive, and spread so widely that two who got
    /// in each other's way do not do so again. `random` is a number drawn evenly from `[0, 1)`.
    #[must_use]
    pub fn soon(&self, random: f64) -> Duration {
        let first = self.delay(1, 0.0).min(Duration::from_secs(1));
        scaled(first, 0.125 + 0.375 * share(random))
    }
}

/// From 1 s, doubling, to 5 min, with a jitter of up to 20 %.
///
/// A second is short enough not to be noticed after a hiccup. Five minutes bounds the load of an
/// object that cannot succeed, and how late it is when its obstacle is gone.
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1), Duration::from_secs(300))
    }
}

/// `value` moved into the range from 0 to 1; 0 for what is not a number.
const fn share(value: f64) -> f64 {
    value.max(0.0).min(1.0)
}

/// `duration` times `by`, which is not negative and may be infinite. Saturates.
fn scaled(duration: Duration, by: f64) -> Duration {
    if duration.is_zero() {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(duration.as_secs_f64() * by).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[expect(
    clippy::needless_raw_string_hashes,
    reason = "`expect-test` writes them"
)]
mod tests;

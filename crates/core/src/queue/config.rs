//! What a queue can be told.

use crate::backoff::Backoff;
use std::time::Duration;

/// Settings of a [`Queue`](super::Queue). All of them have defaults that suit a controller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// How many keys may run at once; 0 means any number. Default: 16.
    ///
    /// Enough to hide the round trips of a usual reconcile, and few enough that a thousand objects
    /// that change together do not open a thousand requests.
    pub concurrency: u32,

    /// How long a key rests after its last trigger before it runs. Default: zero, at once.
    ///
    /// Worth its latency where changes come in bursts. It never delays the timer that an outcome
    /// has asked for.
    pub debounce: Duration,

    /// The longest that triggers, by coming again and again, can put a run off. Default (`None`):
    /// ten times [`debounce`](Self::debounce).
    ///
    /// Without it, a key that is triggered more often than `debounce` would never run.
    pub debounce_max_wait: Option<Duration>,

    /// Delays of keys that failed. Default: [`Backoff::default`].
    pub backoff: Backoff,

    /// How soon after each other a key that is held may run early because of what others do to what it has
    /// to do with. Default: at once, then after 1 s, doubling up to 30 s; a success starts over.
    ///
    /// What a key waits for may come at any moment, so the first such run is at once. A thing that changes
    /// all the time must not turn the backoff into a loop, so the next ones are spaced. A jitter is not
    /// looked at.
    pub early: Backoff,

    /// How often runs may start, over all keys. Default: `None`, as often as there is work.
    ///
    /// Off, because the concurrency and the backoff of each key bound the load already. It is for
    /// systems behind the reconciler that count requests.
    pub rate_limit: Option<RateLimit>,

    /// How long [`Priority::Low`](super::Priority::Low) keys let others pass. Default: 10 s.
    ///
    /// A low key that has been ready for this long counts like a normal one that becomes ready
    /// now. So low keys run late under load, but always run.
    pub ageing: Duration,
}

impl Config {
    /// Sets [`concurrency`](Self::concurrency).
    #[must_use]
    pub fn concurrency(mut self, concurrency: u32) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets [`debounce`](Self::debounce).
    #[must_use]
    pub fn debounce(mut self, debounce: Duration) -> Self {
        self.debounce = debounce;
        self
    }

    /// Sets [`debounce_max_wait`](Self::debounce_max_wait).
    #[must_use]
    pub fn debounce_max_wait(mut self, max_wait: Duration) -> Self {
        self.debounce_max_wait = Some(max_wait);
        self
    }

    /// Sets [`backoff`](Self::backoff).
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets [`early`](Self::early).
    #[must_use]
    pub fn early(mut self, early: Backoff) -> Self {
        self.early = early;
        self
    }

    /// Sets [`rate_limit`](Self::rate_limit).
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate_limit = Some(limit);
        self
    }

    /// Sets [`ageing`](Self::ageing).
    #[must_use]
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.ageing = ageing;
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: 16,
            debounce: Duration::ZERO,
            debounce_max_wait: None,
            backoff: Backoff::default(),
            early: Backoff::exponential(Duration::from_secs(1), Duration::from_secs(30)),
            rate_limit: None,
            ageing: Duration::from_secs(10),
        }
    }
}

/// So many starts per second on average, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Starts per second, in the long run.
    ///
    /// Kept between one per hour and a thousand million; what is not a number counts as one per
    /// hour, for a limit that is wrong had better be noticed.
    pub per_second: f64,

    /// How many starts a pause can save up; 0 counts as 1.
    pub burst: u32,
}

//! The delays between attempts, as an iterator that can start over.

use std::time::Duration;
use tokio::time::Instant;

/// A sequence of delays between attempts.
///
/// Each call of `next` is one more failure; `None` means that nothing is tried any more. [`reset`]
/// starts the sequence over, because an attempt succeeded.
///
/// [`reset`]: Backoff::reset
pub trait Backoff: Iterator<Item = Duration> + Send + Sync + Unpin {
    /// Starts the sequence over.
    fn reset(&mut self);
}

impl<B: Backoff + ?Sized> Backoff for Box<B> {
    fn reset(&mut self) {
        (**self).reset();
    }
}

/// A [`Backoff`] that starts over only when no delay was asked for during a whole interval.
///
/// One success between failures is then no reason to start over: a server that fails every other
/// request is still backed off from.
#[derive(Debug, Clone)]
pub struct ResetTimerBackoff<B> {
    backoff: B,
    interval: Duration,
    last: Option<Instant>,
}

// === impl ResetTimerBackoff ===

impl<B: Backoff> ResetTimerBackoff<B> {
    /// Wraps `backoff` so that it starts over after `interval` without a failure.
    pub fn new(backoff: B, interval: Duration) -> Self {
        Self {
            backoff,
            interval,
            last: None,
        }
    }
}

impl<B: Backoff> Iterator for ResetTimerBackoff<B> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) >= self.interval)
        {
            self.backoff.reset();
        }
        self.last = Some(now);
        self.backoff.next()
    }
}

impl<B: Backoff> Backoff for ResetTimerBackoff<B> {
    /// Does nothing: only the passing of time starts this sequence over.
    fn reset(&mut self) {}
}

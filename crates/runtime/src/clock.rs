//! The time of day, by tokio's clock.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The time of day. It never goes back, and goes on while tokio's clock is paused and advanced.
#[derive(Debug, Clone)]
pub(crate) struct WallClock {
    origin: Instant,
    since: Timestamp,
}

// === impl WallClock ===

impl WallClock {
    /// A clock that shows the present time.
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            since: Timestamp::now(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = self.origin.elapsed();
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        let by_tokio = self.since.saturating_add(elapsed).unwrap_or(Timestamp::MAX);
        // Where the machine slept tokio's clock stood still.
        by_tokio.max(Timestamp::now())
    }
}

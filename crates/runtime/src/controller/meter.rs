//! What a controller measures: how often, how long, and how much waits.

use super::ReconcileReason;
use homeostat_core::{queue, time::Time};
use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use tokio::time::Instant;

/// Upper bounds of the durations of runs that are counted together, in milliseconds.
pub(crate) const BOUNDS: [u64; 13] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

/// How long one poll of a controller may take before it counts as blocked.
#[cfg(feature = "server")]
const BLOCKED: Duration = Duration::from_secs(60);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    /// It succeeded, and wants to run again after a time that it named.
    Requeue,
    Error,
    /// It failed because the API server did not answer.
    Unreachable,
    Panic,
    Timeout,
}

/// What a run failed of, which shows in what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is tried again after a delay.
    Transient,
    /// The same, and the server has asked for a delay.
    Throttled,
    /// It is tried again in a moment.
    Conflict,
    /// It waits for a change.
    Permanent,
    /// The server did not answer.
    Unreachable,
    Panic,
    Timeout,
}

/// What a controller measures. It is written by the controller alone.
#[derive(Debug)]
pub(crate) struct Meter {
    origin: Instant,
    failed: [AtomicU64; 7],
    /// How many may run at once; 0 for any number.
    concurrency: AtomicUsize,
    ended: [AtomicU64; 6],
    durations: [AtomicU64; BOUNDS.len() + 1],
    /// In nanoseconds.
    duration: AtomicU64,
    retries: AtomicU64,
    added: [AtomicU64; 4],
    waiting: AtomicUsize,
    backing_off: AtomicUsize,
    parked: AtomicUsize,
    ready: AtomicUsize,
    running: AtomicUsize,
    /// When the key became ready that waits for the longest time, in nanoseconds since the origin; 0 for none.
    oldest: AtomicU64,
    /// Since when the controller is being polled; 0 if it is not.
    polled: AtomicU64,
}

/// How many runs took how long.
#[cfg(feature = "metrics")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Durations {
    pub(crate) sum: Duration,
    /// For each of [`BOUNDS`], and for those that took longer.
    pub(crate) counts: [u64; BOUNDS.len() + 1],
}

// === impl Ended ===

#[cfg(feature = "metrics")]
impl Ended {
    pub(crate) const ALL: [Self; 6] = [
        Self::Success,
        Self::Requeue,
        Self::Error,
        Self::Unreachable,
        Self::Panic,
        Self::Timeout,
    ];

    /// As in the labels of metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::Error => "error",
            Self::Unreachable => "unreachable",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
        }
    }
}

#[cfg(feature = "metrics")]
impl Failure {
    pub(crate) const ALL: [Self; 7] = [
        Self::Transient,
        Self::Throttled,
        Self::Conflict,
        Self::Permanent,
        Self::Unreachable,
        Self::Panic,
        Self::Timeout,
    ];

    /// As in the labels of metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Throttled => "throttled",
            Self::Conflict => "conflict",
            Self::Permanent => "permanent",
            Self::Unreachable => "unreachable",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
        }
    }
}

// === impl Meter ===

impl Default for Meter {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            failed: Default::default(),
            concurrency: AtomicUsize::default(),
            ended: Default::default(),
            durations: Default::default(),
            duration: AtomicU64::default(),
            retries: AtomicU64::default(),
            added: Default::default(),
            waiting: AtomicUsize::default(),
            backing_off: AtomicUsize::default(),
            parked: AtomicUsize::default(),
            ready: AtomicUsize::default(),
            running: AtomicUsize::default(),
            oldest: AtomicU64::default(),
            polled: AtomicU64::default(),
        }
    }
}

/// The reasons for which objects are added to the queue, as in the labels of metrics.
#[cfg(feature = "metrics")]
pub(crate) const REASONS: [&str; 4] = ["object", "related", "requested", "all"];

impl Meter {
    /// A run has ended, and has failed of this if it has.
    pub(super) fn ended(&self, how: Ended, of: Option<Failure>, took: Duration) {
        self.ended[how as usize].fetch_add(1, Relaxed);
        if let Some(of) = of {
            self.failed[of as usize].fetch_add(1, Relaxed);
        }
        let millis = took.as_nanos().div_ceil(1_000_000);
        let place = BOUNDS.iter().position(|&bound| millis <= bound.into());
        self.durations[place.unwrap_or(BOUNDS.len())].fetch_add(1, Relaxed);
        self.duration.fetch_add(nanos(took), Relaxed);
    }

    /// How many may run at once.
    pub(super) fn set_concurrency(&self, most: usize) {
        self.concurrency.store(most, Relaxed);
    }

    /// A run has started because the one before failed and its delay is over.
    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// Something asks for a run.
    pub(super) fn added(&self, reason: &ReconcileReason) {
        let place = match reason {
            ReconcileReason::ObjectUpdated => 0,
            ReconcileReason::RelatedObjectUpdated { .. } => 1,
            ReconcileReason::Unknown
            | ReconcileReason::ReconcilerRequestedRetry
            | ReconcileReason::ErrorPolicyRequestedRetry
            | ReconcileReason::Custom { .. } => 2,
            ReconcileReason::BulkReconcile => 3,
        };
        self.added[place].fetch_add(1, Relaxed);
    }

    /// Takes in how much waits.
    pub(super) fn queued(&self, counts: queue::Counts, oldest: Option<Time>, origin: Instant) {
        self.waiting.store(counts.waiting, Relaxed);
        self.backing_off.store(counts.backing_off, Relaxed);
        self.parked.store(counts.parked, Relaxed);
        self.ready.store(counts.ready, Relaxed);
        self.running.store(counts.running, Relaxed);
        let since = oldest.map(|oldest| origin + oldest.since(Time::ORIGIN));
        let since = since.map_or(0, |since| self.since_origin(since).max(1));
        self.oldest.store(since, Relaxed);
    }

    /// The controller is being polled from now on, or is not any more.
    pub(crate) fn set_polled(&self, polled: bool) {
        let since = if polled {
            self.since_origin(Instant::now()).max(1)
        } else {
            0
        };
        self.polled.store(since, Relaxed);
    }

    fn since_origin(&self, moment: Instant) -> u64 {
        nanos(moment.saturating_duration_since(self.origin))
    }
}

#[cfg(feature = "server")]
impl Meter {
    /// How long a single poll of the controller has taken, if that is too long: something blocks it.
    pub(crate) fn blocked_for(&self) -> Option<Duration> {
        self.since(&self.polled).filter(|took| *took >= BLOCKED)
    }

    pub(crate) fn ready(&self) -> usize {
        self.ready.load(Relaxed)
    }

    fn since(&self, moment: &AtomicU64) -> Option<Duration> {
        let since = Some(moment.load(Relaxed)).filter(|since| *since > 0)?;
        Some(
            self.origin
                .elapsed()
                .saturating_sub(Duration::from_nanos(since)),
        )
    }
}

#[cfg(feature = "server")]
impl Meter {
    /// How long all runs took together.
    pub(crate) fn time_in_runs(&self) -> Duration {
        Duration::from_nanos(self.duration.load(Relaxed))
    }
}

#[cfg(feature = "metrics")]
impl Meter {
    pub(crate) fn runs(&self, how: Ended) -> u64 {
        self.ended[how as usize].load(Relaxed)
    }

    pub(crate) fn durations(&self) -> Durations {
        Durations {
            sum: Duration::from_nanos(self.duration.load(Relaxed)),
            counts: std::array::from_fn(|place| self.durations[place].load(Relaxed)),
        }
    }

    pub(crate) fn failures(&self, of: Failure) -> u64 {
        self.failed[of as usize].load(Relaxed)
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.load(Relaxed)
    }

    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// For one of [`REASONS`], by its place.
    pub(crate) fn adds(&self, reason: usize) -> u64 {
        self.added[reason].load(Relaxed)
    }

    /// How many objects are in which state, by the state's name in the labels of metrics.
    pub(crate) fn depths(&self) -> [(&'static str, usize); 5] {
        [
            ("waiting", self.waiting.load(Relaxed)),
            ("backing_off", self.backing_off.load(Relaxed)),
            ("parked", self.parked.load(Relaxed)),
            ("ready", self.ready.load(Relaxed)),
            ("running", self.running.load(Relaxed)),
        ]
    }

    /// How long the object has been ready that waits for the longest time.
    pub(crate) fn oldest(&self) -> Duration {
        self.since(&self.oldest).unwrap_or_default()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::{BOUNDS, Ended, Meter};
    use std::time::Duration;
    use tokio::time::advance;

    #[test]
    fn a_duration_is_counted_once_and_at_its_bound() {
        let meter = Meter::default();
        for millis in [0, 5, 6, 60_000, 60_001] {
            meter.ended(Ended::Success, None, Duration::from_millis(millis));
        }
        let durations = meter.durations();
        let mut expected = [0; BOUNDS.len() + 1];
        (expected[0], expected[1], expected[12], expected[13]) = (2, 1, 1, 1);
        assert_eq!(durations.counts, expected);
        assert_eq!(durations.sum, Duration::from_millis(120_012));
        assert_eq!(meter.runs(Ended::Success), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_is_blocked_when_one_poll_takes_a_minute() {
        let meter = Meter::default();
        meter.set_polled(true);
        advance(Duration::from_secs(59)).await;
        assert_eq!(meter.blocked_for(), None);
        advance(Duration::from_secs(2)).await;
        let blocked = meter.blocked_for().unwrap();
        assert!(blocked > Duration::from_secs(60), "{blocked:?}");
        meter.set_polled(false);
        assert_eq!(meter.blocked_for(), None);
    }
}

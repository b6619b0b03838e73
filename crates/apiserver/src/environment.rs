//! What the server may not decide by itself: the time, and random names.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The server's time.
pub trait Clock: Send + Sync + 'static {
    /// The present moment. It must not go backwards.
    fn now(&self) -> Timestamp;
}

/// A start of your choice plus the time that passed on tokio's clock: under paused time the server's wall
/// clock stands still and moves when the test advances.
#[derive(Debug, Clone)]
pub struct TokioClock {
    epoch: Timestamp,
    start: tokio::time::Instant,
}

/// The machine's wall clock. Under tokio's paused time it goes with tokio's clock: it stands still until the test
/// advances it, and what it shows is the time of day at which the test began, plus what was advanced.
///
/// Clients of the server that follow the same rule show the same time, to within a few milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A moment by the machine's two clocks.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    instant: tokio::time::Instant,
    time: Timestamp,
}

/// Where paused time begins, for the whole process.
static ANCHOR: OnceLock<Anchor> = OnceLock::new();

/// Random values from one seed: the same requests in the same order get the same names.
#[derive(Debug, Clone)]
pub(crate) struct Entropy {
    state: u64,
}

/// Lower-case letters and digits without those that are easily confused or form words.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The length of the suffix that `generateName` adds.
const SUFFIX_LENGTH: usize = 5;

// === impl TokioClock ===

impl TokioClock {
    /// A clock that shows `epoch` now.
    #[must_use]
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: tokio::time::Instant::now(),
        }
    }
}

impl Default for TokioClock {
    /// Starts at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::starting_at(Timestamp::constant(1_767_225_600, 0))
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed: Duration = self.start.elapsed();
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::ZERO);
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

// === impl SystemClock ===

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // While tokio's clock is that of the machine, the second of these three is between the others.
        let before = machine_instant();
        let by_tokio = tokio::time::Instant::now();
        if before <= by_tokio && by_tokio <= machine_instant() {
            Timestamp::now()
        } else {
            ANCHOR.get_or_init(Anchor::of_machine).at(by_tokio)
        }
    }
}

/// The machine's monotonic clock, whatever tokio makes of it.
fn machine_instant() -> tokio::time::Instant {
    #[expect(
        clippy::disallowed_types,
        reason = "whether tokio's clock is paused can be seen only beside the machine's"
    )]
    tokio::time::Instant::from_std(std::time::Instant::now())
}

// === impl Anchor ===

impl Anchor {
    /// What was measured fastest is the most exact: the thread can be interrupted between two looks.
    fn of_machine() -> Self {
        let measure = || {
            let instant = machine_instant();
            let time = Timestamp::now();
            let took = machine_instant().saturating_duration_since(instant);
            (took, Self { instant, time })
        };
        let first = measure();
        let others = (0..4).map(|_| measure());
        let (_, fastest) = others.fold(
            first,
            |best, next| if next.0 < best.0 { next } else { best },
        );
        fastest
    }

    /// The time of day at `instant`, which can be before the anchor.
    fn at(self, instant: tokio::time::Instant) -> Timestamp {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let ahead = signed(instant.saturating_duration_since(self.instant));
        let behind = signed(self.instant.saturating_duration_since(instant));
        let time = self.time.saturating_add(ahead);
        let time = time.and_then(|time| time.saturating_sub(behind));
        time.unwrap_or(Timestamp::MAX)
    }
}

// === impl Entropy ===

impl Entropy {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// `SplitMix64`: every seed gives a full period, and it needs no crate.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A UUID of version 4.
    pub(crate) fn uid(&mut self) -> Uid {
        let high = (self.next() & !0xf000) | 0x4000;
        let low = (self.next() >> 2) | (1 << 63);
        Uid { high, low }
    }

    /// What `generateName` appends.
    pub(crate) fn suffix(&mut self) -> String {
        let size = SUFFIX_ALPHABET.len() as u64;
        (0..SUFFIX_LENGTH)
            .filter_map(|_| usize::try_from(self.next() % size).ok())
            .map(|index| char::from(SUFFIX_ALPHABET[index]))
            .collect()
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Uid {
    /// Sixteen digits, for names that need to be different and not long.
    pub(crate) fn short(self) -> String {
        format!("{:016x}", self.low)
    }
}

/// Prints as `xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uid {
    high: u64,
    low: u64,
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { high, low } = self;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

/// A time as `metav1.Time` prints it: in UTC, with seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_have_version_4_and_the_rfc_variant() {
        let mut entropy = Entropy::from_seed(7);
        for _ in 0..100 {
            let uid = entropy.uid().to_string();
            assert_eq!(uid.len(), 36);
            assert_eq!(uid.as_bytes()[14], b'4');
            assert!(b"89ab".contains(&uid.as_bytes()[19]), "{uid}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_names() {
        let (mut a, mut b) = (Entropy::from_seed(1), Entropy::from_seed(1));
        assert_eq!(a.suffix(), b.suffix());
        assert_ne!(a.suffix(), Entropy::from_seed(2).suffix());
    }
}

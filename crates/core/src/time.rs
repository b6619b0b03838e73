//! Moments, as the machines of this crate see them.
//!
//! Nothing in this crate reads a clock. A driver picks an origin (the moment that it started, say),
//! and hands in the time that has passed since then. A moment is a plain integer, so that it can be
//! stored, compared and written down in a test.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A moment: nanoseconds since an origin that the driver chose.
///
/// Arithmetic saturates and never panics. [`Time::MAX`], 584 years after the origin, stands for
/// "never": a timer that is set to it does not fire.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The driver's origin.
    pub const ORIGIN: Self = Self(0);

    /// The last moment there is, which stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this moment is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates: whatever lies beyond [`Time::MAX`] is [`Time::MAX`].
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Saturates, as `+` does.
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Written as the time since the origin, like `1.5s`, or as `never`.
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            f.write_str("never")
        } else {
            fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
        }
    }
}

#[cfg(test)]
mod tests;

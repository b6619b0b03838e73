//! Leader election on a lease: who may lead, from when, and until when.
//!
//! Several candidates share one object, the lease. It names its holder and how long the holder may go
//! without renewing it. Each candidate drives a [`Machine`], which decides when to read the lease, when to
//! write it, and what the answers mean. The machine never sees the object itself, a clock or a connection.
//!
//! # Guarantees
//!
//! - At no instant do two candidates lead, as long as their clocks run equally fast. Messages may be delayed,
//!   lost or answered twice, and candidates may be paused at any point. Clocks may show different times:
//!   a candidate measures only how long *it* has known a version of the lease, and never looks at the times
//!   that another machine wrote.
//! - A leader counts its time from the moment *before* it sent the write that the server accepted. Every other
//!   candidate counts from the moment *after* it read that write. So the leader's time is over first.
//! - A leader stops leading [`Config::renew_deadline`] after its last accepted write was sent. What remains until
//!   [`Config::duration`] is time for requests that are on their way, and for clocks that drift.
//! - When a leader is gone, another candidate leads within [`Config::duration`] plus [`Config::retry`], plus the
//!   time that two requests take.
//! - Every write carries the version of the lease that it was decided on, so the server refuses it when
//!   somebody else was faster.
//!
//! # Assumptions
//!
//! Nobody but candidates takes the lease away. If a person deletes it, candidates that have seen it held wait
//! until its time is over; a candidate that starts just then has not seen it, and can lead at once.
//!
//! The rules are those of client-go's `leaderelection`, so that programs in Go and this one respect each other;
//! where client-go trusts more than it needs to (the answer's time instead of the request's), this is stricter.

mod machine;

pub use self::machine::Machine;

use crate::time::Time;
use std::{fmt, time::Duration};

/// How long things take.
///
/// The defaults are client-go's: a lease of 15 s, given up when it could not be renewed for 10 s, and an attempt
/// every 2 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Why durations do not make a [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidConfig {
    /// The lease is not longer than the time in which it must be renewed. A leader would still lead when
    /// another candidate may take the lease.
    DurationTooShort,
    /// The time in which the lease must be renewed does not hold two attempts. A single lost answer would end
    /// leadership.
    DeadlineTooShort,
    /// The time between attempts is zero, or the lease is shorter than a second, which is the unit that it is
    /// written in.
    TooFast,
}

/// What is written in a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty if nobody does.
    pub holder: String,
    /// How long it is valid after it was renewed, if it says so.
    pub duration: Option<Duration>,
    /// How often the holder has changed.
    pub transitions: u32,
}

/// A write of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The version that the lease must still have; `None` means that it must not exist.
    pub version: Option<String>,
    /// What the lease is to say.
    pub record: Record,
    /// Whether the holder is new, so that the time of acquisition is now. The time of renewal always is.
    pub acquired: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
    },
    /// Write the lease.
    Write {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
        /// What to write.
        draft: Draft,
    },
    /// Nothing before this moment.
    Sleep {
        /// When to say [`Input::Awake`].
        until: Time,
    },
    /// Nothing any more.
    End,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The moment has come that the machine slept until, or that [`Machine::leads_until`] names.
    Awake,
    /// A request was answered.
    Answered {
        /// Which one.
        attempt: u64,
        /// What came of it.
        answer: Answer,
    },
    /// The leader should give up the lease for the benefit of others. It goes on renewing it until
    /// [`Input::Idle`]. If it loses the lease before, that is all there was to do.
    Resign,
    /// The program ends. A leader goes on renewing the lease until [`Input::Idle`], then releases it.
    Stop,
    /// Nothing runs any more that needs the lease, so it can be released.
    Idle,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lease was read.
    Found {
        /// Its version.
        version: String,
        /// What it says.
        record: Record,
    },
    /// There is no lease.
    Missing,
    /// The lease was written.
    Written {
        /// Its version now.
        version: String,
    },
    /// The lease was not written, since it has another version or exists already.
    Conflict,
    /// Nobody knows: the server did not answer, or answered with an error. A write may have been carried out,
    /// or may be carried out later.
    Failed,
}

/// What an input led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// This candidate leads, and did not before. It does until [`Machine::leads_until`].
    Leads,
    /// This candidate leads no more. Whatever needs the lease must be stopped at once.
    Lost(Loss),
}

/// Why a leader leads no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It could not renew the lease in time.
    NotRenewed,
    /// Somebody else holds the lease.
    Taken,
    /// It was asked to give it up, and nothing runs any more.
    Released,
}

// === impl Config ===

impl Config {
    /// A lease of `duration`, given up when no renewal was accepted for `renew_deadline`, and an attempt every
    /// `retry`.
    ///
    /// # Errors
    ///
    /// If a leader could still lead when another candidate may take the lease, or if a single lost answer would
    /// end leadership: see [`InvalidConfig`].
    pub fn new(
        duration: Duration,
        renew_deadline: Duration,
        retry: Duration,
    ) -> Result<Self, InvalidConfig> {
        if retry.is_zero() || duration < Duration::from_secs(1) {
            return Err(InvalidConfig::TooFast);
        }
        if duration <= renew_deadline {
            return Err(InvalidConfig::DurationTooShort);
        }
        if renew_deadline < retry.saturating_mul(2) {
            return Err(InvalidConfig::DeadlineTooShort);
        }
        Ok(Self {
            duration,
            renew_deadline,
            retry,
        })
    }

    /// How long the lease is valid without being renewed.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// How long a leader leads without having renewed the lease.
    #[must_use]
    pub const fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How long after an attempt the next one is made.
    #[must_use]
    pub const fn retry(&self) -> Duration {
        self.retry
    }

    /// How long a request may take: half of the time in which the lease must be renewed, so that there is a
    /// second attempt, and a second at least. client-go's clients have the same limit.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

// === impl InvalidConfig ===

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DurationTooShort => "the lease must last longer than the renew deadline",
            Self::DeadlineTooShort => "the renew deadline must hold two retries at least",
            Self::TooFast => {
                "the lease must last a second at least, and the retry must not be zero"
            }
        })
    }
}

impl std::error::Error for InvalidConfig {}

#[cfg(test)]
mod tests;

//! Which events are told to a server, when, and as what (rule R26).
//!
//! An event that is reported again while it is remembered is an occurrence of the same series: the
//! server is told how often, not each time. A [`Journal`] keeps the series and says what to write
//! next:
//!
//! - what is not told yet is never more than one write per series, however often it occurs;
//! - each write costs a token of the object that the event is about. Without one, the count of a
//!   series waits; of events that the server does not know only the latest waits, so that what is
//!   shown in the end is what happened last;
//! - writes that fail are tried again, at most so often, with one growing pause for all of them: a
//!   server that does not answer does not answer about the next event either;
//! - everything is bounded, and what cannot be kept is counted.
//!
//! ```text
//! phase    meaning                              goes on to
//! Resting  all is told                          Ready or Waiting, with the next occurrence
//! Waiting  the object has no token left         Ready, when it gets one
//! Ready    in the line of writes                Sending
//! Sending  a write is under way                 Resting, or Ready or Waiting if there is more to tell
//! ```

mod journal;
#[cfg(test)]
#[expect(
    clippy::needless_raw_string_hashes,
    reason = "`expect-test` writes them"
)]
mod tests;

pub use self::journal::Journal;

use crate::backoff::Backoff;
use crate::time::Time;
use std::time::Duration;

/// The limits of a [`Journal`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How many writes about one object may follow each other at once; 25 by default, as many as
    /// client-go sends. 0 counts as 1.
    pub burst: u32,
    /// How long it takes until one more write about an object is free; 5 min by default: an object
    /// that fails for hours with another text each time is then told of as often as it is retried.
    pub refill: Duration,
    /// How long after its last occurrence a series is over; 30 min by default. That is longer than
    /// any usual delay between two attempts, and half of the time that a server keeps an event.
    pub quiet: Duration,
    /// How many series are remembered, and of how many objects the tokens; 4096 by default, which is
    /// some megabytes with long texts.
    pub memory: usize,
    /// How often a write is tried; 6 by default, which is half a minute of pauses.
    pub attempts: u32,
    /// The pause after each failure in a row; from 1 s, doubling, to 30 s.
    pub backoff: Backoff,
    /// The longest pause that a server can ask for; 5 min by default.
    pub longest_retry_after: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K, S> {
    /// Write this. It is answered by [`Journal::done`].
    Send(Write<K, S>),
    /// Nothing before this moment, unless something is added.
    WaitUntil(Time),
    /// Nothing, until something is added.
    Idle,
}

/// What a server is to be told of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write<K, S> {
    /// The series.
    pub key: K,
    /// What makes the name of the server's event unique: a number that no other event of this
    /// journal has or had.
    pub serial: u64,
    /// Whether the server knows the event.
    pub known: bool,
    /// How often it occurred.
    pub count: u64,
    /// Its first occurrence.
    pub first: S,
    /// Its latest occurrence.
    pub last: S,
}

/// What came of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has it.
    Told,
    /// A new event was refused because there is one of its name.
    Exists,
    /// The event that was to be updated does not exist any more.
    Gone,
    /// The server does not want it, and would not the next time.
    Refused,
    /// It failed, perhaps after it was carried out.
    Failed {
        /// How long the server asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// It was given up in between, by no fault of its own.
    Interrupted,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            burst: 25,
            refill: Duration::from_secs(300),
            quiet: Duration::from_secs(1800),
            memory: 4096,
            attempts: 6,
            backoff: Backoff::exponential(Duration::from_secs(1), Duration::from_secs(30)),
            longest_retry_after: Duration::from_secs(300),
        }
    }
}

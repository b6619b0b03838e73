//! What goes into a queue.

use super::config::Config;
use std::time::Duration;

/// How many times in a row a key that fails may be tried again without a delay to speak of.
pub(super) const AT_ONCE: u32 = 10;

/// What is no delay to speak of.
pub(super) const INSTANT: Duration = Duration::from_millis(100);

/// Something happened that makes a key run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger<K, C> {
    /// What has to run.
    pub key: K,
    /// Why; the run carries it.
    pub cause: C,
    /// Which holds it may end early.
    pub class: Class,
    /// Whether it may be overtaken.
    pub priority: Priority,
}

/// Who has done what, for a key that is held because it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nobody but the key's own runs. Ends no hold.
    Own,
    /// Somebody, perhaps only an own run that is not known as such, has changed something of the key's object that
    /// nobody wants of it: its status. Ends a hold without a timer, as [`Related`](Self::Related) does, and no
    /// other: one that ends by itself can be waited for.
    Status,
    /// Somebody has changed something that the key has to do with. Ends a hold early, but such runs are
    /// [spaced](super::Config::early).
    Related,
    /// Somebody has changed what is wanted of the key, or wants it to run. Ends a hold at once.
    Desired,
}

/// Which of two keys goes first if both are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Initial list and resync. Lets normal keys pass for [`Config::ageing`].
    Low,
    /// All that has changed.
    Normal,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the key runs again if nothing happens.
    pub action: Action,
    /// Whether the run failed.
    pub failed: bool,
}

/// When a key runs again if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// After this time; [`Duration::MAX`] means never.
    ///
    /// After a success, any trigger runs the key earlier, and the row of failures is over. After a
    /// failure it is a hold, and the row goes on. A key that fails on and on and asks for no delay to speak
    /// of gets those of its [backoff](super::Config::backoff) after its tenth failure.
    Requeue(Duration),
    /// Not at all.
    ///
    /// The row of failures is over, even if the run failed: whoever answers a failure by waiting
    /// says that it is no use to try again as things stand. After a failure it is a hold without a timer,
    /// since what the key's own runs do changes nothing about that.
    AwaitChange,
    /// After the delay that the row of failures has come to, and at least after `at_least`.
    ///
    /// It is a hold and the row goes on, whether the run failed or not.
    Backoff {
        /// What a server has asked for, say. No jitter is added to it.
        at_least: Option<Duration>,
    },
    /// After a [moment](crate::backoff::Backoff::soon).
    ///
    /// It is a hold, and neither lengthens the row of failures nor ends it: for what went wrong by
    /// chance, like a write that another one came before. After twenty of them in a row it is no chance
    /// any more, and this is [`Backoff`](Self::Backoff).
    Soon,
}

impl Outcome {
    /// The least time after which a key with so many failures in a row runs again by itself; `None` if it does
    /// not.
    #[must_use]
    pub fn least_delay(self, failures: u32, config: &Config) -> Option<Duration> {
        let Self { action, failed } = self;
        match action {
            Action::Requeue(after) if failed && after <= INSTANT && failures > AT_ONCE => {
                Some(after.max(config.backoff.delay(failures - AT_ONCE, 0.0)))
            }
            Action::Requeue(after) => Some(after).filter(|&after| after < Duration::MAX),
            Action::AwaitChange => None,
            Action::Backoff { at_least } => {
                let delay = config.backoff.delay(failures, 0.0);
                Some(at_least.map_or(delay, |floor| floor.max(delay)))
            }
            Action::Soon => Some(config.backoff.soon(0.0)),
        }
    }

    /// The run did what it had to do.
    #[must_use]
    pub const fn success(action: Action) -> Self {
        Self {
            action,
            failed: false,
        }
    }

    /// The run failed.
    #[must_use]
    pub const fn failure(action: Action) -> Self {
        Self {
            action,
            failed: true,
        }
    }
}

//! What goes into a queue.

use std::time::Duration;

/// Something happened that makes a key run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger<K, C> {
    /// What has to run.
    pub key: K,
    /// Why; the run carries it.
    pub cause: C,
    /// Whether it may end a hold early.
    pub class: Class,
    /// Whether it may be overtaken.
    pub priority: Priority,
}

/// What a trigger says about the desired state of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It is the same as before: own writes, status, children, resync. Does not end a hold.
    Other,
    /// Somebody changed it, so a run that failed before may succeed now. Ends a hold.
    Desired,
}

/// Which of two keys goes first if both are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Initial list and resync. Lets normal keys pass for [`Config::ageing`](super::Config::ageing).
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
    /// failure it is a hold, and the row goes on.
    Requeue(Duration),
    /// Not at all.
    ///
    /// The row of failures is over, even if the run failed: whoever answers a failure by waiting
    /// says that it is no use to try again as things stand.
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
    /// chance, like a write that another one came before.
    Soon,
}

impl Outcome {
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

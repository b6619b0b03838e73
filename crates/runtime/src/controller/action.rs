//! When a key runs next, as a reconciler or an error policy says it.

use homeostat_core::queue;
use std::{
    fmt::{self, Debug},
    time::Duration,
};

/// When an object is reconciled next, unless something happens before.
///
/// ```
/// use homeostat::Action;
/// use std::time::Duration;
///
/// // The outside world matters: look again, even if no watch tells of a change.
/// let action = Action::requeue(Duration::from_secs(300));
/// assert_eq!(action.requeue_after(), Some(Duration::from_secs(300)));
///
/// // Only watches matter.
/// assert!(Action::await_change().is_await_change());
///
/// // Not ready yet, or failed: after this object's next delay, which grows from time to time.
/// assert!(Action::backoff().is_backoff());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Action(Next);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    Requeue(Duration),
    AwaitChange,
    Backoff { at_least: Option<Duration> },
    Soon,
}

/// As kube shows it, for logs and tests that compare texts: `Action { requeue_after: Some(300s) }`.
impl Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut action = f.debug_struct("Action");
        match &self.0 {
            Next::Requeue(duration) => action.field("requeue_after", &Some(duration)),
            Next::AwaitChange => action.field("requeue_after", &None::<Duration>),
            Next::Backoff { at_least: None } => action.field("backoff", &true),
            Next::Backoff {
                at_least: Some(duration),
            } => action.field("backoff", &true).field("at_least", duration),
            Next::Soon => action.field("soon", &true),
        };
        action.finish()
    }
}

impl Action {
    /// Run again after `duration`, or earlier if a watch tells of a change.
    ///
    /// Any duration will do; one of centuries means never. From an error policy it is a delay that
    /// only others shorten ([`Controller`](super::Controller#guarantees)), and one of 100 ms or less is a
    /// [`backoff`](Self::backoff) after ten failures in a row.
    #[must_use]
    pub const fn requeue(duration: Duration) -> Self {
        Self(Next::Requeue(duration))
    }

    /// Run again when a watch tells of a change, and not before. From an error policy: of a change by somebody
    /// else. What the object's own runs have written is none.
    #[must_use]
    pub const fn await_change() -> Self {
        Self(Next::AwaitChange)
    }

    /// Run again after this object's next delay. The delays grow with every `backoff` in a row, as
    /// [`Config::backoff`](super::Config::backoff) says, and start over after any other success.
    ///
    /// Until then only others run it early ([`Controller`](super::Controller#guarantees)).
    #[must_use]
    pub const fn backoff() -> Self {
        Self(Next::Backoff { at_least: None })
    }

    /// Run again in a moment, within half a second: an attempt that came in between those of others,
    /// and may go well now.
    ///
    /// It is no failure: the delays of [`backoff`](Self::backoff) neither grow nor start over. Until
    /// then only others run it early. After twenty in a row it is a [`backoff`](Self::backoff).
    #[must_use]
    pub const fn soon() -> Self {
        Self(Next::Soon)
    }

    /// For [`backoff`](Self::backoff): not earlier than after `duration`, whatever the delay. It is
    /// meant for a server's `Retry-After`. Other actions stay as they are.
    #[must_use]
    pub const fn at_least(self, duration: Duration) -> Self {
        match self.0 {
            Next::Backoff { .. } => Self(Next::Backoff {
                at_least: Some(duration),
            }),
            Next::Requeue(_) | Next::AwaitChange | Next::Soon => self,
        }
    }

    /// The delay of a [`requeue`](Self::requeue).
    #[must_use]
    pub const fn requeue_after(&self) -> Option<Duration> {
        match self.0 {
            Next::Requeue(duration) => Some(duration),
            Next::AwaitChange | Next::Backoff { .. } | Next::Soon => None,
        }
    }

    /// Whether this is [`await_change`](Self::await_change).
    #[must_use]
    pub const fn is_await_change(&self) -> bool {
        matches!(self.0, Next::AwaitChange)
    }

    /// Whether this is [`backoff`](Self::backoff).
    #[must_use]
    pub const fn is_backoff(&self) -> bool {
        matches!(self.0, Next::Backoff { .. })
    }

    /// Whether this is [`soon`](Self::soon).
    #[must_use]
    pub const fn is_soon(&self) -> bool {
        matches!(self.0, Next::Soon)
    }

    /// The same for the queue; `failed` tells that an error policy chose it.
    pub(super) fn outcome(&self, failed: bool) -> queue::Outcome {
        let action = match self.0 {
            Next::Requeue(duration) => queue::Action::Requeue(duration),
            Next::AwaitChange => queue::Action::AwaitChange,
            Next::Backoff { at_least } => queue::Action::Backoff { at_least },
            Next::Soon => queue::Action::Soon,
        };
        queue::Outcome { action, failed }
    }
}

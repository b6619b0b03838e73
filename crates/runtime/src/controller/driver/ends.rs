//! How runs end, as they are counted and told.

use super::Item;
use crate::{
    controller::{
        Error,
        meter::{Ended, Failure},
    },
    readable,
};
use homeostat_core::queue::Outcome;
use kube::Resource;

/// How a run ended, as it is counted.
pub(super) fn ended<K: Resource, E, Q>(item: &Item<K, E, Q>, unanswered: bool) -> Ended {
    match item {
        Ok((_, action)) if action.is_await_change() => Ended::Success,
        Ok(_) => Ended::Requeue,
        Err(Error::ReconcilerPanicked(..)) => Ended::Panic,
        Err(Error::ReconcileTimeout(..)) => Ended::Timeout,
        Err(_) if unanswered => Ended::Unreachable,
        Err(
            Error::ReconcilerFailed(..)
            | Error::ObjectNotFound(_)
            | Error::QueueError(_)
            | Error::RunnerError(_)
            | Error::ReconcileCancelled(_),
        ) => Ended::Error,
    }
}

/// What a run failed of, if it did. What the error policy makes of an error tells its class, whatever its type.
pub(super) fn failure(ended: Ended, outcome: Outcome) -> Option<Failure> {
    use homeostat_core::queue::Action;
    match (ended, outcome.action) {
        (Ended::Success | Ended::Requeue, _) => None,
        (Ended::Panic, _) => Some(Failure::Panic),
        (Ended::Timeout, _) => Some(Failure::Timeout),
        (Ended::Unreachable, _) => Some(Failure::Unreachable),
        (Ended::Error, Action::AwaitChange) => Some(Failure::Permanent),
        (Ended::Error, Action::Soon) => Some(Failure::Conflict),
        (Ended::Error, Action::Backoff { at_least: Some(_) }) => Some(Failure::Throttled),
        (Ended::Error, Action::Backoff { at_least: None } | Action::Requeue(_)) => {
            Some(Failure::Transient)
        }
    }
}

/// Why a run failed, for those who know which object it was for.
pub(super) fn why<E: std::error::Error, Q: std::error::Error>(error: &Error<E, Q>) -> String {
    if let Error::ReconcilerFailed(error, _) = error {
        readable(error).to_string()
    } else {
        error.to_string()
    }
}

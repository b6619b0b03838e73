//! What can go wrong in a controller.

use crate::{
    readable,
    reflector::{ObjectRef, store::WriterDropped},
};
use kube::api::DynamicObject;
use std::{
    fmt::{self, Display},
    time::Duration,
};

/// An error of a controller. It ends neither the controller nor its stream.
///
/// `ReconcilerErr` is the reconciler's error, `QueueErr` that of the watches. The text leaves out what kube
/// writes for debugging; see [`readable`](crate::readable()).
#[derive(Debug, thiserror::Error)]
pub enum Error<ReconcilerErr: 'static, QueueErr: 'static> {
    /// An object to reconcile is not in the store.
    ///
    /// Controllers never say this: an object that is gone when its turn comes is nothing to do.
    ObjectNotFound(Box<ObjectRef<DynamicObject>>),

    /// The reconciler returned an error. The error policy said what comes next.
    ReconcilerFailed(#[source] ReconcilerErr, Box<ObjectRef<DynamicObject>>),

    /// A watch failed. It goes on by itself after a while; other watches are not affected.
    QueueError(#[source] QueueErr),

    /// The store will never be ready, so nothing is reconciled.
    RunnerError(#[source] RunnerError),

    /// The reconciler, or the error policy, panicked. The object is tried again after its backoff;
    /// others are not affected.
    ReconcilerPanicked(String, Box<ObjectRef<DynamicObject>>),

    /// A reconcile took longer than
    /// [`Config::reconcile_timeout`](super::Config::reconcile_timeout). The object is tried again
    /// after its backoff.
    ReconcileTimeout(Duration, Box<ObjectRef<DynamicObject>>),

    /// A reconcile was still running when the controller had to stop: when
    /// [`Config::shutdown_timeout`](super::Config::shutdown_timeout) was over, at a second
    /// signal, or because this replica leads no more. It was dropped at its next `await`. What it has left undone is found by the
    /// first reconcile after the next start.
    ReconcileCancelled(Box<ObjectRef<DynamicObject>>),
}

/// Why nothing can be reconciled.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The writer of the controller's store was dropped before the store was ready.
    #[error("readiness gate failed to become ready: {0}")]
    Readiness(#[source] WriterDropped),
}

// === impl Error ===

impl<ReconcilerErr, QueueErr> Display for Error<ReconcilerErr, QueueErr>
where
    ReconcilerErr: Display,
    QueueErr: Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ObjectNotFound(object) => write!(
                f,
                "tried to reconcile object {object} that was not found in the local store"
            ),
            Self::ReconcilerFailed(error, object) => {
                write!(
                    f,
                    "reconciler for object {object} failed: {}",
                    readable(error)
                )
            }
            Self::QueueError(error) => write!(f, "event queue error: {}", readable(error)),
            Self::RunnerError(error) => write!(f, "runner error: {error}"),
            Self::ReconcilerPanicked(panic, object) => {
                write!(f, "reconciler for object {object} panicked: {panic}")
            }
            Self::ReconcileTimeout(limit, object) => write!(
                f,
                "reconciler for object {object} did not finish within {limit:?}"
            ),
            Self::ReconcileCancelled(object) => write!(
                f,
                "reconciler for object {object} was cancelled, because the controller stops"
            ),
        }
    }
}

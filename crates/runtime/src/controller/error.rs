//! What can go wrong in a controller.

use crate::reflector::{ObjectRef, store::WriterDropped};
use kube::api::DynamicObject;
use std::time::Duration;

/// An error of a controller. It ends neither the controller nor its stream.
///
/// `ReconcilerErr` is the reconciler's error, `QueueErr` that of the watches.
#[derive(Debug, thiserror::Error)]
pub enum Error<ReconcilerErr: 'static, QueueErr: 'static> {
    /// An object to reconcile is not in the store.
    ///
    /// Controllers never say this: an object that is gone when its turn comes is nothing to do.
    #[error("tried to reconcile object {0} that was not found in the local store")]
    ObjectNotFound(Box<ObjectRef<DynamicObject>>),

    /// The reconciler returned an error. The error policy said what comes next.
    #[error("reconciler for object {1} failed: {0}")]
    ReconcilerFailed(#[source] ReconcilerErr, Box<ObjectRef<DynamicObject>>),

    /// A watch failed. It goes on by itself after a while; other watches are not affected.
    #[error("event queue error: {0}")]
    QueueError(#[source] QueueErr),

    /// The store will never be ready, so nothing is reconciled.
    #[error("runner error: {0}")]
    RunnerError(#[source] RunnerError),

    /// The reconciler, or the error policy, panicked. The object is tried again after its backoff;
    /// others are not affected.
    #[error("reconciler for object {1} panicked: {0}")]
    ReconcilerPanicked(String, Box<ObjectRef<DynamicObject>>),

    /// A reconcile took longer than
    /// [`Config::reconcile_timeout`](super::Config::reconcile_timeout). The object is tried again
    /// after its backoff.
    #[error("reconciler for object {1} did not finish within {0:?}")]
    ReconcileTimeout(Duration, Box<ObjectRef<DynamicObject>>),

    /// A reconcile was still running when the controller had to stop: when
    /// [`Config::shutdown_timeout`](super::Config::shutdown_timeout) was over, or at a second
    /// signal. It was dropped at its next `await`. What it has left undone is found by the
    /// first reconcile after the next start.
    #[error("reconciler for object {0} was cancelled, because the controller stops")]
    ReconcileCancelled(Box<ObjectRef<DynamicObject>>),
}

/// Why nothing can be reconciled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The writer of the controller's store was dropped before the store was ready.
    #[error("readiness gate failed to become ready: {0}")]
    Readiness(#[source] WriterDropped),
}

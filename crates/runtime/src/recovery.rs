//! Tells sleeping watches that their server answers again.

use std::sync::Arc;
use tokio::{sync::Notify, task::futures::TaskLocalFuture};

tokio::task_local! {
    /// Who tells the watches of this task.
    static TOLD_BY: Arc<Notify>;
}

/// Drives `future`, whose watches are told by `notify`.
pub(crate) fn told_by<F: Future>(
    notify: Arc<Notify>,
    future: F,
) -> TaskLocalFuture<Arc<Notify>, F> {
    TOLD_BY.scope(notify, future)
}

/// Completes when somebody tells that the server may answer again; never where nobody does.
pub(crate) async fn told() {
    match TOLD_BY.try_with(Arc::clone) {
        Ok(notify) => notify.notified().await,
        Err(_) => std::future::pending().await,
    }
}

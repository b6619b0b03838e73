//! The one place where the server starts tasks.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Starts a task.
pub(crate) fn start(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

/// Starts a task if there is a runtime for it; without one nothing happens.
pub(crate) fn start_if_possible(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(work);
    }
}

/// Does what takes long on a thread of its own, and waits for it without holding up other tasks. `None` if it
/// panics: whoever needs what it finds does the work again.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

//! The one place where the checker starts tasks.

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Task(Option<JoinHandle<()>>);

impl Task {
    /// Starts a task of this thread.
    pub(crate) fn start(work: impl Future<Output = ()> + 'static) -> Self {
        Self(Some(tokio::task::spawn_local(work)))
    }

    /// Lets it go on by itself, until the world ends.
    pub(crate) fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Starts work that nobody waits for, which is short and ends with the world.
pub(crate) fn detached(work: impl Future<Output = ()> + Send + 'static) {
    // Dropping the handle leaves the task alone.
    drop(tokio::spawn(work));
}

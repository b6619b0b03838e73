//! How a task learns that it is to stop.

use tokio::sync::watch;

/// Tells a [`Task`](super::Task) when it is to stop.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<bool>);

// === impl Stopping ===

impl Stopping {
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Completes when the task is to stop.
    pub async fn requested(&self) {
        let mut requested = self.0.clone();
        // Whoever could ask is gone only together with the task.
        let _gone = requested.wait_for(|requested| *requested).await;
    }

    /// Whether the task is to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}

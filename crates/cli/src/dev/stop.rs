//! The signals that end a server.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl+C and SIGTERM. From when this is made they do not end the process by themselves.
#[derive(Debug)]
pub(super) struct Stop {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

// === impl Stop ===

impl Stop {
    pub(super) fn new() -> Result<Self, String> {
        #[cfg(unix)]
        let listen = |kind: SignalKind| {
            signal(kind).map_err(|error| format!("cannot listen to signals: {error}"))
        };
        Ok(Self {
            #[cfg(unix)]
            interrupt: listen(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            // Then only the system can end the process.
            std::future::pending::<()>().await;
        }
    }
}

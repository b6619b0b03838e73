//! The signals by which a process is asked to stop.

use futures::{Stream, StreamExt, stream};
use std::task::{Context, Poll};

/// Waits for SIGINT (Ctrl+C) or SIGTERM. Where a signal cannot be listened to, it never comes, and
/// the log says so.
pub(crate) async fn received() {
    tokio::select! {
        () = interrupt() => {}
        () = terminate() => {}
    }
}

/// All signals that ask the process to stop, from the first poll on. None that comes between two polls is lost.
pub(crate) fn all() -> impl Stream<Item = ()> + Send {
    stream::once(async { Listener::new() })
        .flat_map(|mut listener| stream::poll_fn(move |cx| listener.poll(cx)))
}

/// Listens to the signals.
struct Listener {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
    #[cfg(not(unix))]
    signals: futures::future::BoxFuture<'static, ()>,
}

#[cfg(unix)]
impl Listener {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        let signals = kinds.into_iter().filter_map(|kind| match signal(kind) {
            Ok(signal) => Some(signal),
            Err(error) => {
                tracing::warn!(%error, ?kind, "cannot listen to a signal");
                None
            }
        });
        Self {
            signals: signals.collect(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let mut all = self.signals.iter_mut();
        if all.any(|signal| matches!(signal.poll_recv(cx), Poll::Ready(Some(())))) {
            return Poll::Ready(Some(()));
        }
        Poll::Pending
    }
}

#[cfg(not(unix))]
impl Listener {
    fn new() -> Self {
        Self {
            signals: Box::pin(interrupt()),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        std::task::ready!(self.signals.as_mut().poll(cx));
        self.signals = Box::pin(interrupt());
        Poll::Ready(Some(()))
    }
}

async fn interrupt() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "cannot listen to Ctrl+C");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot listen to SIGTERM");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminate() {
    std::future::pending::<()>().await;
}

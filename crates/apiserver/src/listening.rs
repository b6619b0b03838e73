//! The server on a socket: HTTP/1.1, and HTTP/2 for clients that begin with it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tower::Service as _;

use crate::http::{ResponseBody, Service};
use crate::task;

/// A server that listens.
///
/// It stops when this is dropped: no connection is accepted any more, requests that are being
/// answered are answered, and watches end as if their time were over. [`stop`](Self::stop) waits for
/// that.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Tells when the server is to stop.
#[derive(Debug, Clone)]
struct Stopping(watch::Receiver<bool>);

/// A body that ends when the server stops, unless it is at its end before: a watch.
struct UntilStopped {
    body: ResponseBody,
    stopping: BoxFuture<'static, ()>,
}

/// How long to wait after a connection could not be accepted. The usual reason is that the process
/// has too many open files; trying at once would keep a core busy until one is closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

// === impl Listening ===

impl Listening {
    /// Listens, and answers with the service. Connections get `grace` to finish when it stops.
    pub(crate) async fn start(
        address: SocketAddr,
        service: Service,
        grace: Duration,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopping) = watch::channel(false);
        let task = task::start(accept(listener, service, Stopping(stopping), grace));
        Ok(Self {
            address,
            stop,
            task,
        })
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL, for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig file in YAML whose current context is this server, in the namespace `default`.
    /// There are no credentials in it, because the server asks for none.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        format!(
            "\
apiVersion: v1
kind: Config
clusters:
- name: homeostat
  cluster:
    server: {}
users:
- name: homeostat
  user: {{}}
contexts:
- name: homeostat
  context:
    cluster: homeostat
    user: homeostat
    namespace: default
current-context: homeostat
",
            self.url()
        )
    }

    /// Stops, and waits until every connection is closed. Those that are still busy after
    /// `Config::shutdown_grace` are cut off.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // The task ends by itself, and if it panicked there is nothing left to wait for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn accept(listener: TcpListener, service: Service, stopping: Stopping, grace: Duration) {
    let mut connections = JoinSet::new();
    let mut stopped = pin!(stopping.clone().wait());
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, service.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let finished = timeout(grace, async {
        while connections.join_next().await.is_some() {}
    });
    if finished.await.is_err() {
        tracing::warn!(count = connections.len(), "connections are cut off");
    }
}

async fn connection(stream: TcpStream, service: Service, stopping: Stopping) {
    // Watch events are small and must not wait for the next one. Without it they only come later.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let answered = service.clone().call(request);
        let stopping = stopping.clone().wait().boxed();
        async {
            let response = answered.await?;
            Ok::<_, crate::http::TransportError>(
                response.map(|body| UntilStopped { body, stopping }),
            )
        }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stopping.clone().wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "connection failed");
    }
}

// === impl Stopping ===

impl Stopping {
    async fn wait(mut self) {
        // Without a sender nobody is there who could want the server to go on.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

// === impl UntilStopped ===

impl Body for UntilStopped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        self.stopping.poll_unpin(cx).map(|()| None)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

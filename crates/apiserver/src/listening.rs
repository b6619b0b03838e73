//! The server on a socket: HTTP/1.1 and HTTP/2, with or without TLS.

mod host;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tower::Service as _;

pub(crate) use self::host::Hosts;
use crate::base64;
use crate::http::{ResponseBody, Service};
use crate::task;
use crate::tls::Tls;

/// A server that listens.
///
/// It stops when this is dropped: no connection is accepted any more, requests that are being
/// answered are answered, and watches end as if their time were over. [`stop`](Self::stop) waits for
/// that.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    tls: Option<Tls>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What is spoken on the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Https,
}

/// What all connections share.
#[derive(Debug, Clone)]
struct Connections {
    service: Service,
    hosts: Hosts,
    tls: Option<Tls>,
    stopping: Stopping,
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

/// How long a client may take to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of a client that speaks TLS.
const HANDSHAKE: u8 = 0x16;

/// What a client gets that speaks HTTP where TLS is spoken.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n\
    Client sent an HTTP request to an HTTPS server.\n";

// === impl Listening ===

impl Listening {
    /// Listens, and answers with the service. Connections get `grace` to finish when it stops.
    pub(crate) async fn start(
        address: SocketAddr,
        protocol: Protocol,
        service: Service,
        hosts: Hosts,
        grace: Duration,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let tls = match protocol {
            Protocol::Http => None,
            Protocol::Https => Some(Tls::generate(address)?),
        };
        let (stop, stopping) = watch::channel(false);
        let connections = Connections {
            service,
            hosts,
            tls: tls.clone(),
            stopping: Stopping(stopping),
        };
        let task = task::start(accept(listener, connections, grace));
        Ok(Self {
            address,
            tls,
            stop,
            task,
        })
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL, for clients on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("{scheme}://{address}")
    }

    /// The certificate of the authority that signed the server's, in PEM; none without HTTPS. It is
    /// new for each listener, and its key is forgotten.
    #[must_use]
    pub fn ca_certificate(&self) -> Option<&str> {
        self.tls.as_ref().map(|tls| &*tls.ca_pem)
    }

    /// A kubeconfig file in YAML whose current context is this server, in the namespace `default`.
    /// There are no credentials in it.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_of("{}")
    }

    /// A kubeconfig file as [`kubeconfig`](Self::kubeconfig), with this token in it: it is a secret.
    #[must_use]
    pub fn kubeconfig_with_token(&self, token: &str) -> String {
        self.kubeconfig_of(&format!("{{token: {}}}", json!(token)))
    }

    fn kubeconfig_of(&self, user: &str) -> String {
        let authority = self.ca_certificate().map_or_else(String::new, |pem| {
            let data = base64::encode(pem.as_bytes());
            format!("\n    certificate-authority-data: {data}")
        });
        format!(
            "\
apiVersion: v1
kind: Config
clusters:
- name: homeostat
  cluster:
    server: {}{authority}
users:
- name: homeostat
  user: {user}
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

async fn accept(listener: TcpListener, shared: Connections, grace: Duration) {
    let mut connections = JoinSet::new();
    let mut stopped = pin!(shared.stopping.clone().wait());
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(shared.clone().connect(stream));
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

// === impl Connections ===

impl Connections {
    async fn connect(self, mut stream: TcpStream) {
        // Watch events are small and must not wait for the next one. Without it they only come later.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            // Whoever does not say where it came to is taken to have come to the loopback interface.
            let local = stream.local_addr();
            let local = local.unwrap_or_else(|_| (Ipv4Addr::LOCALHOST, 0).into());
            return self.answer(stream, Some(local)).await;
        };
        let secured = async {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first != [HANDSHAKE] {
                // What nobody reads would cut off the answer.
                let _ = stream.read(&mut [0; 4096]).await?;
                stream.write_all(NOT_TLS).await?;
                stream.shutdown().await?;
                return Err(io::Error::other("the client does not speak TLS"));
            }
            tls.acceptor.accept(stream).await
        };
        let secured = timeout(HANDSHAKE_TIMEOUT, secured);
        let secured = tokio::select! {
            secured = secured => secured.unwrap_or_else(|elapsed| Err(elapsed.into())),
            () = self.stopping.clone().wait() => return,
        };
        match secured {
            // The certificate and the token do what names are looked at for.
            Ok(stream) => self.answer(stream, None).await,
            Err(error) => tracing::debug!(%error, "handshake failed"),
        }
    }

    /// Answers the requests of a connection, at this address if it speaks plain HTTP.
    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        plain: Option<SocketAddr>,
    ) {
        let Self {
            service,
            hosts,
            stopping,
            ..
        } = self;
        let answer = service_fn(|request: Request<Incoming>| {
            let refusal = plain.and_then(|local| hosts.refusal(local, &request));
            let mut service = service.clone();
            let stopping = stopping.clone().wait().boxed();
            async move {
                if let Some(reason) = refusal {
                    let mut response = Response::new(Either::Left(Full::from(reason)));
                    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
                    return Ok(response);
                }
                let response = service.call(request).await?;
                let until_stopped = |body| Either::Right(UntilStopped { body, stopping });
                Ok::<_, crate::http::TransportError>(response.map(until_stopped))
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

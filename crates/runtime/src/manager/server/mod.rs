//! The HTTP server of a manager: probes, metrics and the page.

mod health;
mod host;

use self::health::{Check, Finding, Query};
#[cfg(feature = "metrics")]
use super::metrics::{self, Measured};
use super::{
    Handle, Stopping, Task,
    handle::Shared,
    page::{self, Page},
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, fmt, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{MissedTickBehavior, interval, sleep, timeout},
};
#[cfg(feature = "tls")]
use tokio_rustls::TlsAcceptor;
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;

/// How many connections are served at once; others wait. Probes and scrapers need a handful.
const CONNECTIONS: usize = 64;
/// How long a connection may last, so that those that say nothing make room.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the head of a request may be, in bytes.
const HEAD_LIMIT: usize = 16 << 10;
/// How long to wait after a connection could not be accepted, which most often means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The HTTP server of a [`Manager`](super::Manager), for probes.
///
/// | Path | Answer |
/// |---|---|
/// | `/healthz`, `/livez` | 200 while the process does not have to be started anew, 500 otherwise |
/// | `/readyz` | 200 while it does what it is there for, 500 with what it waits for otherwise |
/// | `/` | a page for people: queues, failing objects and why, what runs, loops |
/// | `/metrics` | with the feature `metrics`: what is measured, for Prometheus and in the text of `OpenMetrics` |
///
/// `?verbose` lists the checks and `?exclude=NAME` leaves one out, as with Kubernetes' own components.
///
/// `/healthz` fails when a controller makes no progress although it could: when a reconciler or a mapper blocks it for a
/// minute, or when all its slots are taken for a minute by runs that wait for anything but the API server. It does not
/// fail because the API server is slow or away, which starting anew would not help.
///
/// ```
/// use homeostat::{Manager, manager::Server};
/// use kube::Client;
///
/// # async fn ping() -> Result<(), std::io::Error> { Ok(()) }
/// fn build(client: Client) -> Manager {
///     // Probes come from outside of the pod.
///     let server = Server::on(([0, 0, 0, 0], 8080).into())
///         .ready_check("database", || async { ping().await });
///     Manager::new(client).serve(server)
/// }
/// ```
///
/// # Guarantees
///
/// - It answers from before the controllers start until after they have stopped.
/// - Connections, requests and checks are bounded in number, size and time.
/// - The page is for the loopback interface, unless there is a [token](Self::token).
/// - On the loopback interface it answers only to names of that interface, so that no web page can read it.
pub struct Server {
    address: SocketAddr,
    hosts: Vec<String>,
    live: Vec<Check>,
    ready: Vec<Check>,
    token: Option<String>,
    #[cfg(feature = "tls")]
    tls: Option<TlsAcceptor>,
    #[cfg(feature = "metrics")]
    registry: prometheus_client::registry::Registry,
}

/// What all connections share.
struct Site {
    shared: Arc<Shared>,
    hosts: Vec<String>,
    live: Arc<[Check]>,
    ready: Arc<[Check]>,
    page: Arc<Page>,
    #[cfg(feature = "tls")]
    tls: Option<TlsAcceptor>,
    #[cfg(feature = "metrics")]
    registries: [prometheus_client::registry::Registry; 2],
}

type Answer = Response<page::Body>;

// === impl Server ===

impl Server {
    /// A server on this address; port 0 is any that is free, which [`Handle::address`] tells.
    #[must_use]
    pub fn on(address: SocketAddr) -> Self {
        Self {
            address,
            hosts: Vec::new(),
            live: Vec::new(),
            ready: Vec::new(),
            token: None,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "metrics")]
            registry: prometheus_client::registry::Registry::default(),
        }
    }

    /// Exposes metrics of your own beside those of the manager. Their names must not begin with `homeostat_`.
    ///
    /// ```
    /// use homeostat::manager::Server;
    /// use prometheus_client::{metrics::counter::Counter, registry::Registry};
    ///
    /// let mut registry = Registry::default();
    /// let sites = Counter::<u64>::default();
    /// registry.register("sites_deployed", "Sites that were deployed", sites.clone());
    /// let server = Server::on(([127, 0, 0, 1], 8080).into()).metrics(registry);
    /// sites.inc();
    /// # drop(server);
    /// ```
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(mut self, registry: prometheus_client::registry::Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Speaks HTTPS alone, with this configuration. One with a resolver of certificates can exchange them while it
    /// runs, and one that verifies clients lets only those in that you name.
    ///
    /// Kubelet does not verify the certificate of a probe with `scheme: HTTPS`.
    ///
    /// ```
    /// use homeostat::manager::{Server, rustls};
    ///
    /// fn secured(
    ///     chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    ///     key: rustls::pki_types::PrivateKeyDer<'static>,
    /// ) -> Result<Server, rustls::Error> {
    ///     let config = rustls::ServerConfig::builder()
    ///         .with_no_client_auth()
    ///         .with_single_cert(chain, key)?;
    ///     Ok(Server::on(([0, 0, 0, 0], 8443).into()).tls(config))
    /// }
    /// ```
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, config: impl Into<Arc<rustls::ServerConfig>>) -> Self {
        self.tls = Some(TlsAcceptor::from(config.into()));
        self
    }

    /// What people have to know for actions on the page, such as to let an object run now. Whoever knows it may also read
    /// the page from other machines.
    ///
    /// Without a token the page is answered on the loopback interface alone, and nothing can be done with it. Take a long
    /// random text from a Secret, and HTTPS if the page is not only reached through `kubectl port-forward`. An empty token is
    /// none.
    ///
    /// ```
    /// use homeostat::manager::Server;
    ///
    /// fn server(token: String) -> Server {
    ///     Server::on(([127, 0, 0, 1], 8080).into()).token(token)
    /// }
    /// ```
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into()).filter(|token| !token.is_empty());
        self
    }

    /// Answers to this name, too, on the loopback interface.
    #[must_use]
    pub fn allow_host(mut self, name: &str) -> Self {
        self.hosts.push(host::plain(name));
        self
    }

    /// One more check for `/healthz`: the process is started anew when it fails. It may take a second.
    #[must_use]
    pub fn health_check<F, E>(
        mut self,
        name: impl Into<String>,
        look: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.live.push(check(name.into(), look));
        self
    }

    /// One more check for `/readyz`. It may take a second.
    #[must_use]
    pub fn ready_check<F, E>(
        mut self,
        name: impl Into<String>,
        look: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.ready.push(check(name.into(), look));
        self
    }

    /// Listens. Nothing is answered yet.
    pub(super) async fn listen(
        self,
        shared: Arc<Shared>,
    ) -> Result<Listening, (SocketAddr, io::Error)> {
        let Self {
            address,
            hosts,
            live,
            ready,
            token,
            #[cfg(feature = "tls")]
            tls,
            #[cfg(feature = "metrics")]
            registry,
        } = self;
        // The user's may have a prefix and labels, which are not for those of the manager.
        #[cfg(feature = "metrics")]
        let registries = [Measured::registry(Arc::clone(&shared)), registry];
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| (address, error))?;
        let local = listener.local_addr().map_err(|error| (address, error))?;
        // There is one server, and this is where it begins.
        let _set = shared.address.set(local);
        tracing::info!(address = %local, "probes are answered");
        let site = Site {
            page: Page::new(Arc::clone(&shared), token),
            shared,
            hosts,
            live: live.into(),
            ready: ready.into(),
            #[cfg(feature = "tls")]
            tls,
            #[cfg(feature = "metrics")]
            registries,
        };
        Ok(Listening {
            listener,
            site: Arc::new(site),
        })
    }
}

impl From<SocketAddr> for Server {
    fn from(address: SocketAddr) -> Self {
        Self::on(address)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

fn check<F, E>(name: String, look: impl Fn() -> F + Send + Sync + 'static) -> Check
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display,
{
    let look = move || {
        let found = look().map(|found| found.map_err(|error| error.to_string()));
        found.boxed()
    };
    Check {
        name,
        look: Box::new(look),
    }
}

/// A server that has its socket.
pub(super) struct Listening {
    listener: TcpListener,
    site: Arc<Site>,
}

// === impl Listening ===

impl Listening {
    pub(super) fn into_task(self) -> Task {
        let mut listening = Some(self);
        Task::server("http", move |stopping| {
            let listening = listening.take();
            async move {
                if let Some(listening) = listening {
                    listening.serve(stopping).await;
                }
                Ok::<_, Infallible>(())
            }
        })
    }

    /// Answers until it is to stop.
    async fn serve(self, stopping: Stopping) {
        let Self { listener, site } = self;
        let mut connections = FuturesUnordered::new();
        let mut stop = pin!(stopping.requested());
        let mut samples = interval(page::STEP);
        samples.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = &mut stop => return,
                Some(()) = connections.next() => {}
                _ = samples.tick() => site.page.sample(),
                accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => connections.push(connection(stream, Arc::clone(&site))),
                    Err(error) => {
                        tracing::debug!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

async fn connection(stream: TcpStream, site: Arc<Site>) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    #[cfg(feature = "tls")]
    if let Some(tls) = &site.tls {
        // Whoever says nothing makes room for others.
        match timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve(stream, local, Arc::clone(&site)).await,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a connection does not speak TLS as it should");
            }
            Err(_) => tracing::debug!("a connection took too long to agree on TLS"),
        }
        return;
    }
    serve(stream, local, site).await;
}

/// Answers the requests of a connection that came to this address.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, local: SocketAddr, site: Arc<Site>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(local, &request).await) }
    });
    let serve = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(CONNECTION_TIMEOUT, serve).await {
        tracing::debug!(%error, "a connection broke");
    }
}

// === impl Site ===

impl Site {
    async fn answer<B>(&self, local: SocketAddr, request: &Request<B>) -> Answer {
        if let Some(why) = host::refusal(local, &self.hosts, request) {
            return text(StatusCode::MISDIRECTED_REQUEST, why);
        }
        if let Some(answer) = self.page.answer(local, request).await {
            return answer;
        }
        let (probe, findings) = match request.uri().path() {
            path @ ("/healthz" | "/livez" | "/readyz" | "/metrics")
                if !matches!(*request.method(), Method::GET | Method::HEAD) =>
            {
                let mut answer = text(
                    StatusCode::METHOD_NOT_ALLOWED,
                    format!("{path} is for GET\n"),
                );
                let allow = header::HeaderValue::from_static("GET, HEAD");
                answer.headers_mut().insert(header::ALLOW, allow);
                return answer;
            }
            path @ ("/healthz" | "/livez") => {
                let own = health::live(&self.shared);
                (path, with_checks(own, &self.live).await)
            }
            path @ "/readyz" => {
                let own = health::ready(&Handle::new(Arc::clone(&self.shared)));
                (path, with_checks(own, &self.ready).await)
            }
            #[cfg(feature = "metrics")]
            "/metrics" => {
                return metrics::answer(&self.registries, request).map(Either::Left);
            }
            _ => return text(
                StatusCode::NOT_FOUND,
                "there is /, /healthz, /livez, /readyz and, if it was built with it, /metrics\n"
                    .into(),
            ),
        };
        let query = Query(request.uri().query().unwrap_or_default());
        let probe = probe.trim_start_matches('/');
        let (well, said) = health::answer(probe, &findings, query);
        if !well {
            tracing::debug!(probe, said, "a probe fails");
        }
        let status = if well {
            StatusCode::OK
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        text(status, said)
    }
}

async fn with_checks(mut findings: Vec<Finding>, checks: &Arc<[Check]>) -> Vec<Finding> {
    findings.extend(health::look(checks).await);
    findings
}

fn text(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache, private"),
    ] {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
    answer
}

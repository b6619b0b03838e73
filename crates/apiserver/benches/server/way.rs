//! How requests reach the server.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Service};
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tower::Service as _;

use crate::single_thread;

/// A new server, and the way to it.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// How many requests are under way at once.
    pub(crate) lanes: usize,
    to: To,
}

enum To {
    Process(Service),
    /// The server stops when the sender is dropped.
    Socket(
        SocketAddr,
        #[expect(dead_code, reason = "its end is what counts")] oneshot::Sender<()>,
    ),
}

/// One request after the other.
pub(crate) enum Lane {
    Process(Service),
    Connection(SendRequest<Full<Bytes>>),
}

pub(crate) type Reply = UnsyncBoxBody<Bytes, String>;

/// Connections that carry requests at the same time.
const CONNECTIONS: usize = 8;

// === impl Way ===

impl Way {
    pub(crate) fn in_process() -> std::pin::Pin<Box<dyn Future<Output = Self>>> {
        Box::pin(async {
            Self {
                name: "in process",
                lanes: 1,
                to: To::Process(ApiServer::builder().build().service()),
            }
        })
    }

    pub(crate) fn over_loopback() -> std::pin::Pin<Box<dyn Future<Output = Self>>> {
        Box::pin(async {
            let (address, wait) = mpsc::channel();
            let (stop, stopped) = oneshot::channel::<()>();
            thread::spawn(move || {
                single_thread().block_on(async {
                    let server = ApiServer::builder().build();
                    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
                    let listening = server.serve(anywhere).await.unwrap();
                    address.send(listening.address()).unwrap();
                    let _ = stopped.await;
                });
            });
            Self {
                name: "loopback",
                lanes: CONNECTIONS,
                to: To::Socket(wait.recv().unwrap(), stop),
            }
        })
    }

    pub(crate) async fn lane(&self) -> Lane {
        match &self.to {
            To::Process(service) => Lane::Process(service.clone()),
            To::Socket(address, _) => {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                Lane::Connection(sender)
            }
        }
    }
}

// === impl Lane ===

impl Lane {
    /// Sends a request and answers when the head of the answer is there.
    pub(crate) async fn open(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Response<Reply> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .unwrap();
        match self {
            Self::Process(service) => {
                let answer = service.call(request).await.unwrap();
                answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
            }
            Self::Connection(sender) => {
                sender.ready().await.unwrap();
                let answer = sender.send_request(request).await.unwrap();
                answer.map(|body| body.map_err(|error| error.to_string()).boxed_unsync())
            }
        }
    }

    /// Sends a request and reads the whole answer, which must be a good one.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Bytes {
        let answer = self.open(method, path, content_type, body).await;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        assert!(status.is_success(), "{method} {path}: {status}: {}", text());
        bytes
    }
}

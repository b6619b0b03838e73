//! Where cases are played: on a server in process, or on one behind a socket.

use std::net::SocketAddr;

use bytes::Bytes;
use homeostat_apiserver::ApiServer;
use http::header::{HOST, HeaderValue};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::ServiceExt;

/// A server and the way to it. Clones lead to the same one.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    InProcess(ApiServer),
    /// HTTP without TLS. Each request has a connection of its own.
    Http(SocketAddr),
}

/// The body of an answer, however it came.
pub(crate) type ReplyBody = UnsyncBoxBody<Bytes, String>;

// === impl Stage ===

impl Stage {
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ReplyBody>, String> {
        match self {
            Self::InProcess(server) => {
                let answered = server.service().oneshot(request).await;
                let response = answered.map_err(|error| error.to_string())?;
                Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
            }
            Self::Http(address) => over_http(*address, request)
                .await
                .map_err(|error| format!("{address}: {error}")),
        }
    }

    /// Makes the server forget its history.
    pub(crate) async fn compact(&self) -> Result<(), String> {
        match self {
            Self::InProcess(server) => server.compact(),
            Self::Http(_) => {
                let request = Request::post("/debug/compact").header("X-Homeostat-Debug", "yes");
                let request = request.body(Full::default());
                let request = request.map_err(|error| error.to_string())?;
                let response = self.send(request).await?;
                if !response.status().is_success() {
                    return Err(format!("POST /debug/compact: {}", response.status()));
                }
            }
        }
        Ok(())
    }
}

async fn over_http(
    address: SocketAddr,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<ReplyBody>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer's body.
    tokio::spawn(connection);
    let host = HeaderValue::from_str(&address.to_string())?;
    request.headers_mut().insert(HOST, host);
    let response = sender.send_request(request).await?;
    Ok(response.map(|body| body.map_err(|error| error.to_string()).boxed_unsync()))
}

//! A client that speaks HTTP and nothing more.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Where to send requests. Each gets a connection of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire(pub(crate) SocketAddr);

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// The events of a watch.
pub(crate) struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Wire {
    async fn send(
        self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let stream = TcpStream::connect(self.0).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("host", self.0.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        sender
            .send_request(request.body(body).unwrap())
            .await
            .unwrap()
    }

    pub(crate) async fn request(
        self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let response = self.send(method, path, headers, body).await;
        Answer {
            status: response.status().as_u16(),
            text: {
                let body = response.into_body().collect().await.unwrap();
                String::from_utf8(body.to_bytes().to_vec()).unwrap()
            },
        }
    }

    pub(crate) async fn get(self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn watch(self, path: &str, accept: &str) -> Events {
        let response = self.send("GET", path, &[("accept", accept)], "").await;
        assert_eq!(response.status(), 200);
        Events {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl Events {
    /// The next event; none when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.buffer.extend_from_slice(frame.data_ref().unwrap());
        }
    }
}

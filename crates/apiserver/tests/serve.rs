//! The server on a socket.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod wire;

use std::net::SocketAddr;

use bytes::Bytes;
use futures::future::join_all;
use homeostat_apiserver::{ApiServer, Config, Listening, Verb};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::Wire;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn serve() -> (ApiServer, Listening, Wire) {
    let server = ApiServer::builder().build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    (server, listening, wire)
}

async fn create(wire: Wire, name: &str, data: &str) {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{data}"}}}}"#);
    let answer = wire.request("POST", MAPS, &JSON, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

fn name(event: &Value) -> &str {
    event["object"]["metadata"]["name"].as_str().unwrap()
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let (_server, listening, _wire) = serve().await;
    let mut stream = TcpStream::connect(listening.address()).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for _ in 0..3 {
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_harms_nobody() {
    let (_server, listening, wire) = serve().await;
    let mut stream = TcpStream::connect(listening.address()).await.unwrap();
    stream
        .write_all(b"\x16\x03\x01 no HTTP\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 Bad Request\r\n"));
    assert_eq!(wire.get("/healthz").await.text, "ok");
}

#[tokio::test]
async fn http_2_without_tls() {
    let (_server, listening, _wire) = serve().await;
    let stream = TcpStream::connect(listening.address()).await.unwrap();
    let executor = TokioExecutor::new();
    let (mut sender, connection) = http2::handshake(executor, TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = |method: &str, path: &str, body: &str| {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", listening.address()))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .unwrap()
    };
    let watch = sender
        .send_request(request("GET", WATCH, ""))
        .await
        .unwrap();
    let body = r#"{"metadata":{"name":"a"}}"#;
    let created = sender
        .send_request(request("POST", MAPS, body))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    // Both are on one connection.
    let frame = watch.into_body().frame().await.unwrap().unwrap();
    let event: Value = serde_json::from_slice(frame.data_ref().unwrap()).unwrap();
    assert_eq!((&event["type"], name(&event)), (&Value::from("ADDED"), "a"));
}

#[tokio::test]
async fn many_watches_get_every_event_in_order() {
    const WATCHES: usize = 200;
    let (_server, _listening, wire) = serve().await;
    let opened = join_all((0..WATCHES).map(|_| wire.watch(WATCH, "application/json"))).await;
    for index in 0..10 {
        create(wire, &format!("m{index}"), "").await;
    }
    let followed = opened.into_iter().map(async |mut events| {
        for index in 0..10 {
            let event = events.next().await.unwrap();
            assert_eq!(name(&event), format!("m{index}"));
        }
    });
    join_all(followed).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_nobody_and_misses_nothing_in_between() {
    const WRITES: usize = 200;
    // A watch may lag behind by far less than is written while nobody reads.
    let mut config = Config::default();
    config.max_watch_lag = 20;
    let server = ApiServer::builder().config(config).build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    let mut slow = wire.watch(WATCH, "application/json").await;
    let mut quick = wire.watch(WATCH, "application/json").await;
    // More than the buffers of both ends hold.
    let data = "x".repeat(100_000);
    for index in 0..WRITES {
        create(wire, &format!("m{index}"), &data).await;
        assert_eq!(name(&quick.next().await.unwrap()), format!("m{index}"));
    }
    let mut count = 0;
    while let Some(event) = slow.next().await {
        assert_eq!(name(&event), format!("m{count}"));
        count += 1;
    }
    // It got what was under way, and then the end: it must list again.
    assert!(0 < count && count < WRITES, "{count}");
}

#[tokio::test]
async fn stopping_ends_watches_and_refuses_connections() {
    let (server, listening, wire) = serve().await;
    let address = listening.address();
    let mut events = wire.watch(WATCH, "application/json").await;
    create(wire, "a", "").await;
    listening.stop().await;
    assert_eq!(name(&events.next().await.unwrap()), "a");
    assert_eq!(events.next().await, None);
    assert!(TcpStream::connect(address).await.is_err());
    // The server itself goes on, in process and on another socket.
    let again = server.serve(anywhere()).await.unwrap();
    let found = Wire(again.address()).get(&format!("{MAPS}/a")).await;
    assert_eq!(found.json()["metadata"]["name"], "a");
}

#[tokio::test]
async fn a_dropped_listener_stops() {
    let (_server, listening, wire) = serve().await;
    let mut events = wire.watch(WATCH, "application/json").await;
    drop(listening);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn requests_are_logged_with_who_made_them() {
    let (server, _listening, wire) = serve().await;
    let agent = [("user-agent", "wire/1")];
    wire.request("GET", MAPS, &agent, "").await;
    let log = server.requests().all();
    let listed = log
        .iter()
        .find(|request| request.verb == Verb::List)
        .unwrap();
    assert_eq!(listed.user_agent, "wire/1");
    assert_eq!(listed.status, Some(200));
}

#[tokio::test]
async fn a_kubeconfig_names_the_server_and_no_secret() {
    let (_server, listening, _wire) = serve().await;
    let config: Value = serde_saphyr::from_str(&listening.kubeconfig()).unwrap();
    let cluster = &config["clusters"][0];
    assert_eq!(cluster["cluster"]["server"], listening.url());
    let context = &config["contexts"][0];
    assert_eq!(context["name"], config["current-context"]);
    assert_eq!(context["context"]["cluster"], cluster["name"]);
    assert_eq!(context["context"]["user"], config["users"][0]["name"]);
    assert_eq!(config["users"][0]["user"], serde_json::json!({}));
}

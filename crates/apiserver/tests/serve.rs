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
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::Service as _;
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

const LISTS: &str = "/apis/ahead.example.com/v1/namespaces/default/lists";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(pattern: &str) -> Value {
    let entry = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "pattern": pattern },
        "port": { "type": "integer", "default": 80 },
    } });
    let entries = json!({
        "type": "array", "items": entry,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    let size = json!({
        "type": "integer",
        "x-kubernetes-validations": [{ "rule": "self >= oldSelf", "message": "may only grow" }],
    });
    let spec = json!({ "type": "object", "properties": { "entries": entries, "size": size } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "lists.ahead.example.com" },
        "spec": {
            "group": "ahead.example.com", "scope": "Namespaced",
            "names": { "plural": "lists", "kind": "Listing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

/// An object that is large enough to be looked at before its write.
fn listing(name: &str, size: u64, last: &Value) -> Value {
    let mut entries: Vec<Value> = (0..600)
        .map(|index| json!({ "name": format!("entry-{index}") }))
        .collect();
    entries.push(last.clone());
    json!({
        "apiVersion": "ahead.example.com/v1", "kind": "Listing", "metadata": { "name": name },
        "spec": { "entries": entries, "size": size, "unknown": "dropped" },
    })
}

/// The same answer, whoever is asked and when.
fn comparable(status: u16, text: &str) -> (u16, Value) {
    let mut answer: Value = serde_json::from_str(text).unwrap();
    if let Some(metadata) = answer.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
        metadata.remove("managedFields");
    }
    (status, answer)
}

/// A request: its method, path, content type and body, and the status of its answer.
type Step = (&'static str, String, &'static str, String, u16);

/// Writes of large objects that fit, and of some that do not, each for another reason.
fn large_writes() -> Vec<Step> {
    let good = json!({ "name": "last" });
    let post =
        |path: &str, body: String, status| ("POST", path.to_owned(), JSON[0].1, body, status);
    let patch = |path: &str, body: &Value, status| {
        let merge = "application/merge-patch+json";
        ("PATCH", path.to_owned(), merge, body.to_string(), status)
    };
    let create = |last: &Value, status| post(LISTS, listing("b", 5, last).to_string(), status);
    let one = format!("{LISTS}/a");
    let first = listing("a", 5, &good).to_string();
    let definition_path = format!("{DEFINITIONS}/lists.ahead.example.com");
    let strict = format!("{LISTS}?fieldValidation=Strict");
    let twice = listing("t", 1, &good).to_string();
    let twice = twice.replacen("\"size\"", "\"size\":7,\"size\"", 1);
    vec![
        post(DEFINITIONS, definition("^[a-z0-9-]+$").to_string(), 201),
        post(LISTS, first.clone(), 201),
        post(LISTS, first, 409),
        create(&json!({ "name": "No" }), 422),
        create(&json!({ "port": 1 }), 422),
        create(&json!({ "name": "entry-7" }), 422),
        create(&json!({ "name": "x", "port": "y" }), 422),
        post(&strict, listing("b", 5, &good).to_string(), 400),
        post(&strict, twice.clone(), 400),
        post(LISTS, twice[..twice.len() - 1].to_owned(), 400),
        patch(&one, &listing("a", 4, &good), 422),
        patch(&one, &listing("a", 6, &json!({ "name": "NO" })), 422),
        patch(&one, &listing("a", 6, &json!({ "name": "other" })), 200),
        patch(&definition_path, &definition("^entry-[0-9]+$"), 200),
        create(&good, 422),
        // What does not fit any more may stay as it is.
        patch(
            &one,
            &json!({ "metadata": { "labels": { "a": "b" } } }),
            200,
        ),
        patch(&one, &listing("a", 6, &good), 422),
    ]
}

/// What is found out about a large object before its write changes no answer. In process nothing is done before.
#[tokio::test]
async fn large_objects_get_the_same_answers_in_process_and_over_a_socket() {
    let (_server, _listening, wire) = serve().await;
    let mut service = ApiServer::builder().build().service();
    for (method, path, content_type, body, status) in large_writes() {
        let headers = [("content-type", content_type)];
        let answer = wire.request(method, &path, &headers, &body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        let request = Request::builder().method(method).uri(&path);
        let request = request.header("content-type", content_type);
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let (parts, inside) = service.call(request).await.unwrap().into_parts();
        let inside = inside.collect().await.unwrap().to_bytes();
        let inside = String::from_utf8(inside.to_vec()).unwrap();
        assert_eq!(
            comparable(answer.status, &answer.text),
            comparable(parts.status.as_u16(), &inside),
            "{method} {path}"
        );
    }
    let list: Value = serde_json::from_str(&wire.get(LISTS).await.text).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let spec = &list["items"][0]["spec"];
    assert_eq!(spec["entries"][0], json!({ "name": "entry-0", "port": 80 }));
    assert_eq!(spec.get("unknown"), None);
}

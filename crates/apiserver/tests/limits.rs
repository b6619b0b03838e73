//! What is bounded, and what is answered beyond the bound.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod wire;

use std::net::SocketAddr;

use homeostat_apiserver::{ApiServer, Config, Listening, TokioClock};
use serde_json::{Value, json};
use wire::Wire;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn serve(config: Config) -> (ApiServer, Listening, Wire) {
    let server = ApiServer::builder().config(config).debug(true).build();
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = server.serve(address).await.unwrap();
    let wire = Wire(listening.address());
    (server, listening, wire)
}

async fn send(wire: Wire, method: &str, path: &str, body: &str) -> (u16, Value) {
    let kind = match method {
        "PATCH" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let answer = wire
        .request(method, path, &[("content-type", kind)], body)
        .await;
    (answer.status, answer.json())
}

fn map(name: &str, length: usize) -> String {
    let data = "x".repeat(length);
    json!({ "metadata": { "name": name }, "data": { "k": data } }).to_string()
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let mut config = Config::default();
    config.max_request_bytes = 10_000;
    let (server, _listening, wire) = serve(config).await;
    let room = 10_000 - map("a", 0).len();
    assert_eq!(send(wire, "POST", MAPS, &map("a", room)).await.0, 201);
    let (status, body) = send(wire, "POST", MAPS, &map("b", room + 1)).await;
    assert_eq!(status, 413);
    let expected = json!({
        "apiVersion": "v1", "code": 413, "kind": "Status", "metadata": {}, "status": "Failure",
        "reason": "RequestEntityTooLarge", "message": "Request entity too large: limit is 10000",
    });
    assert_eq!(body, expected);
    assert_eq!(server.requests().writes(), 1);
}

#[tokio::test]
async fn a_body_that_nests_too_deep_is_400() {
    let (_server, _listening, wire) = serve(Config::default()).await;
    // Far deeper than a stack, where each level would take a frame of it.
    for depth in [200, 100_000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{nested}}}"#);
        let (status, body) = send(wire, "POST", MAPS, &body).await;
        assert_eq!(
            (status, &body["reason"]),
            (400, &json!("BadRequest")),
            "{body}"
        );
        let (status, body) =
            send(wire, "PATCH", &format!("{MAPS}/a?fieldManager=m"), &nested).await;
        assert_eq!(
            (status, &body["reason"]),
            (400, &json!("BadRequest")),
            "{body}"
        );
    }
}

#[tokio::test]
async fn more_objects_than_fit_are_refused_as_by_a_full_etcd() {
    let mut config = Config::default();
    let (server, _listening, wire) = serve(Config::default()).await;
    let (_, list) = send(wire, "GET", "/api/v1/namespaces", "").await;
    // What is there from the start counts.
    config.max_objects = list["items"].as_array().unwrap().len() + 2;
    drop(server);
    let (server, _listening, wire) = serve(config).await;
    for name in ["a", "b"] {
        assert_eq!(send(wire, "POST", MAPS, &map(name, 1)).await.0, 201);
    }
    let full = json!({
        "apiVersion": "v1", "code": 500, "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "etcdserver: mvcc: database space exceeded",
    });
    assert_eq!(
        send(wire, "POST", MAPS, &map("c", 1)).await,
        (500, full.clone())
    );
    let apply = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}"#;
    let applied = send(wire, "PATCH", &format!("{MAPS}/c?fieldManager=m"), apply).await;
    assert_eq!(applied, (500, full));
    // What is there can still be changed and deleted, and that makes room.
    let (status, _) = send(wire, "PUT", &format!("{MAPS}/a"), &map("a", 2)).await;
    assert_eq!(status, 200);
    let (status, _) = send(wire, "DELETE", &format!("{MAPS}/a"), "").await;
    assert_eq!(status, 200);
    assert_eq!(send(wire, "POST", MAPS, &map("c", 1)).await.0, 201);
    assert_eq!(server.requests().writes(), 5);
}

#[tokio::test]
async fn history_is_forgotten_by_its_bound_and_on_demand() {
    let mut config = Config::default();
    config.max_history = 5;
    let (_server, _listening, wire) = serve(config).await;
    let first = wire.get(MAPS).await.json();
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    for index in 0..6 {
        send(wire, "POST", MAPS, &map(&format!("m{index}"), 1)).await;
    }
    let exact = format!("{MAPS}?resourceVersionMatch=Exact&resourceVersion={version}");
    assert_eq!(send(wire, "GET", &exact, "").await.0, 410);

    let last = wire.get(MAPS).await.json();
    let version = last["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{MAPS}?watch=1&resourceVersion={version}");
    send(wire, "POST", MAPS, &map("late", 1)).await;
    let mut events = wire.watch(&watch, "application/json").await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let answer = wire.request("POST", "/debug/compact", &[], "").await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    let debug = [("x-homeostat-debug", "yes")];
    let answer = wire.request("POST", "/debug/compact", &debug, "").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut events = wire.watch(&watch, "application/json").await;
    let event = events.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
}

#[tokio::test]
async fn debugging_is_there_only_where_it_was_asked_for() {
    let (_server, _listening, wire) = serve(Config::default()).await;
    for (method, path, status) in [
        ("GET", "/debug/compact", 405),
        ("POST", "/debug/nonsense", 404),
        ("POST", "/debug/advance?ms=5", 409),
    ] {
        let debug = [("x-homeostat-debug", "yes")];
        let answer = wire.request(method, path, &debug, "").await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
    }
    let server = ApiServer::builder().build();
    let listening = server
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let answer = Wire(listening.address())
        .request("POST", "/debug/compact", &[], "")
        .await;
    assert_eq!(answer.status, 404);
}

/// In process, because sockets wait for real time.
#[tokio::test(start_paused = true)]
async fn time_is_advanced_where_it_is_virtual() {
    use futures::FutureExt;
    use http_body_util::{BodyExt, Full};
    use tower::ServiceExt;

    let server = ApiServer::builder()
        .debug(true)
        .clock(TokioClock::default())
        .advance_with(|by| tokio::time::advance(by).boxed())
        .build();
    let post = async |path: &str| {
        let request = http::Request::post(path).body(Full::<bytes::Bytes>::default());
        let answer = server.service().oneshot(request.unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&text).into_owned())
    };
    let (status, text) = post("/debug/advance?ms=90061000").await;
    assert_eq!(
        (status, text.as_str()),
        (200, "it is 2026-01-02T01:01:01Z now\n")
    );
    for path in [
        "/debug/advance",
        "/debug/advance?ms=-1",
        "/debug/advance?ms=x",
    ] {
        assert_eq!(post(path).await.0, 400, "{path}");
    }
}

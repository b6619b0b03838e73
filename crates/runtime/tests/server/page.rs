//! The page for people, and what it asks for.

use super::{Answer, Running, maps, run, server};
use homeostat::{
    Action, Controller, Manager,
    manager::{Server, Unit},
    watcher,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::yield_now,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A controller that fails for one object, which it tries again after an hour.
fn controller(api: &ApiServer, tries: &Arc<AtomicUsize>) -> Unit {
    let tries = Arc::clone(tries);
    let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
        let fails = map.name_any() == "map-1";
        if fails {
            tries.fetch_add(1, SeqCst);
        }
        async move {
            if fails {
                return Err(std::io::Error::other("the disk is full"));
            }
            Ok(Action::await_change())
        }
    };
    let policy = |_: Arc<ConfigMap>, _: &std::io::Error, _: Arc<()>| Action::requeue(HOUR);
    let all = Api::<ConfigMap>::all(api.client());
    let controller = Controller::new(all, watcher::Config::default());
    Unit::new(controller.run(reconcile, policy, Arc::new(())))
}

/// A manager in which one of three objects has failed.
async fn failing(server: Server) -> (Running, Arc<AtomicUsize>) {
    let api = ApiServer::builder().build();
    maps(&api, 3).await;
    let tries = Arc::default();
    let manager = Manager::new(api.client()).add(controller(&api, &tries));
    let running = run(manager.serve(server)).await;
    loop {
        let state = running.get("/api/state").await.json();
        if unit(&state)["overview"]["failing"] == 1 {
            return (running, tries);
        }
        yield_now().await;
    }
}

/// What is said of the controller.
fn unit(state: &Value) -> &Value {
    let units = state["units"].as_array().unwrap();
    let unit = units.iter().find(|unit| unit["name"] == "configmap");
    unit.unwrap_or_else(|| panic!("{state}"))
}

impl Answer {
    fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Running {
    async fn post(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let answer = self
            .ask(&format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{token}content-length: 0\r\nconnection: close\r\n\r\n"
            ))
            .await;
        (answer.status, answer.text())
    }
}

#[tokio::test]
async fn it_says_why_an_object_is_stuck() {
    let (running, _) = failing(server()).await;
    let state = running.get("/api/state").await.json();
    assert_eq!(state["ready"], true, "{state}");
    assert_eq!(state["actions"], false);
    let unit = unit(&state);
    assert_eq!(unit["phase"], "running");
    let overview = &unit["overview"];
    assert_eq!(overview["kind"], "ConfigMap");
    assert_eq!(overview["objects"], 3);
    assert_eq!(overview["queue"]["backing_off"], 1);
    let failed = &overview["failed"][0];
    assert_eq!(failed["object"]["namespace"], "default");
    assert_eq!(failed["object"]["name"], "map-1");
    assert_eq!(failed["error"], "the disk is full");
    assert_eq!(failed["failures"], 1);
    assert_eq!(failed["state"], "backs off");
    let run_in = failed["run_in_s"].as_f64().unwrap();
    assert!((3500.0..=3600.0).contains(&run_in), "{run_in}");

    let found = running
        .get("/api/find?controller=configmap&text=ault%2Fmap-")
        .await
        .json();
    let objects = found["objects"].as_array().unwrap();
    let found: Vec<_> = objects.iter().map(|one| &one["object"]["name"]).collect();
    assert_eq!(found, ["map-0", "map-1", "map-2"]);
    assert_eq!(objects[0]["state"], "at rest");

    let told = running
        .get("/api/explain?controller=configmap&namespace=default&name=map-1")
        .await
        .json();
    assert_eq!(told["error"], "the disk is full");
    let explanation = told["explanation"].as_str().unwrap();
    assert!(explanation.contains("failed: the disk is full"), "{told}");

    for path in [
        "/api/explain?controller=configmap&namespace=default&name=map-9",
        "/api/explain?controller=configmap&name=map-1",
        "/api/explain?controller=nobody&namespace=default&name=map-1",
        "/api/find?text=map",
    ] {
        assert_eq!(running.get(path).await.status, 404, "{path}");
    }
    let posted = running.post("/api/state", None).await;
    assert_eq!(posted.0, 405);
}

#[tokio::test]
async fn an_object_runs_at_once_for_those_who_know_the_token() {
    let again = "/api/requeue?controller=configmap&namespace=default&name=map-1";
    let (running, tries) = failing(server()).await;
    let (status, said) = running.post(again, Some("anything")).await;
    assert_eq!(status, 403);
    assert!(said.contains("Server::token"), "{said}");
    assert_eq!(tries.load(SeqCst), 1);

    let (running, tries) = failing(server().token("open sesame")).await;
    for (token, expected) in [(None, 401), (Some("open"), 401), (Some("open sesamf"), 401)] {
        assert_eq!(running.post(again, token).await.0, expected, "{token:?}");
    }
    assert_eq!(tries.load(SeqCst), 1);
    assert_eq!(running.get(again).await.status, 405, "a link does nothing");
    let nowhere = "/api/requeue?controller=configmap&namespace=default&name=map-9";
    assert_eq!(running.post(nowhere, Some("open sesame")).await.0, 404);
    let (status, said) = running.post(again, Some("open sesame")).await;
    assert_eq!((status, &*said), (200, "{\"requeued\":true}"));
    while tries.load(SeqCst) < 2 {
        yield_now().await;
    }
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let (running, _) = failing(server()).await;
    let page = running.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert!(page.body.len() < 40_000, "{}", page.body.len());
    let policy = &page.headers["content-security-policy"];
    let nonce = policy.split("'nonce-").nth(1).unwrap();
    let nonce = nonce.split('\'').next().unwrap();
    assert_eq!(nonce.len(), 32);
    let text = page.text();
    assert!(text.contains(&format!("<script nonce=\"{nonce}\">")));
    assert!(text.contains(&format!("<style nonce=\"{nonce}\">")));
    assert!(!text.contains("NONCE"));
    let links = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!links.contains("http:") && !links.contains("https:") && !links.contains("innerHTML"));
    let other = running.get("/").await;
    assert_ne!(&other.headers["content-security-policy"], policy);
}

/// Asks for what is new, and goes on listening. The status of the answer.
async fn listen(running: &Running) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let head = "GET /api/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status).into_owned())
}

#[tokio::test]
async fn it_is_told_what_is_new() {
    let (running, _) = failing(server()).await;
    let (mut stream, status) = listen(&running).await;
    assert_eq!(status, "HTTP/1.1 200");
    let mut all = String::new();
    let mut some = [0; 4096];
    while all.matches("data: ").count() < 2 {
        let read = stream.read(&mut some).await.unwrap();
        assert!(read > 0, "{all}");
        all += &String::from_utf8_lossy(&some[..read]);
    }
    assert!(all.contains("content-type: text/event-stream"), "{all}");
    assert!(all.contains("the disk is full"), "{all}");
}

/// Probes need connections, too.
#[tokio::test]
async fn not_too_many_are_told_at_once() {
    let (running, _) = failing(server()).await;
    let mut listening = Vec::new();
    for _ in 0..16 {
        let (stream, status) = listen(&running).await;
        assert_eq!(status, "HTTP/1.1 200");
        listening.push(stream);
    }
    assert_eq!(listen(&running).await.1, "HTTP/1.1 503");
    assert_eq!(running.get("/readyz").await.status, 200);
    listening.pop();
    while listen(&running).await.1 != "HTTP/1.1 200" {
        yield_now().await;
    }
}

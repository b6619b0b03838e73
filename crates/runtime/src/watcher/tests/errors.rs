//! What errors say, and what nobody says.

use super::server::{Answer, Piece, Server, end, object, page, status};
use crate::watcher::{Config, Error, Event, Result, watcher};
use expect_test::expect;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use std::{
    error::Error as _,
    fmt::Write as _,
    io,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tracing_subscriber::fmt::MakeWriter;

/// The first error of a watch of websites, in a namespace or in all.
async fn first_error(namespace: Option<&str>, script: Vec<Answer>) -> Error {
    let server = Server::new(script);
    let kind = GroupVersionKind::gvk("example.com", "v1", "Website");
    let resource = ApiResource::from_gvk_with_plural(&kind, "websites");
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(server.client(), namespace, &resource),
        None => Api::all_with(server.client(), &resource),
    };
    let mut stream = pin!(watcher(api, Config::default()));
    loop {
        if let Some(Err(error)) = stream.next().await {
            return error;
        }
    }
}

/// What the first errors of these watches say.
async fn texts(scripts: Vec<(Option<&str>, Vec<Answer>)>) -> String {
    let mut texts = String::new();
    for (namespace, script) in scripts {
        let error = first_error(namespace, script).await;
        let source = error.source().unwrap();
        assert!(source.is::<kube::Error>() || source.is::<Box<kube::core::Status>>());
        writeln!(texts, "{error}").unwrap();
    }
    texts
}

fn refused(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Json(code, status(code, reason, message))
}

const FORBIDDEN: &str = "websites.example.com is forbidden: User \"me\" cannot list resource";

// R10, T05: each error says what was asked for, of which kind, where, and what to do.
#[tokio::test(start_paused = true)]
async fn texts_of_the_list() {
    // T05: each names kind, scope and phase.
    let overloaded = "Too many requests, please try again later.";
    let missing = "the server could not find the requested resource";
    let texts = texts(vec![
        (None, vec![Answer::Unreachable]),
        (Some("x"), vec![Answer::Never]),
        (
            None,
            vec![Answer::Text(404, None, "404 page not found\n"); 2],
        ),
        (Some("x"), vec![refused(404, "NotFound", missing); 2]),
        (None, vec![refused(401, "Unauthorized", "Unauthorized")]),
        (None, vec![Answer::Text(429, Some("3"), overloaded)]),
        (
            None,
            vec![Answer::Text(502, None, "<html>Bad Gateway</html>")],
        ),
        (None, vec![refused(500, "", "oops")]),
        (None, vec![refused(403, "Forbidden", FORBIDDEN); 2]),
        (None, vec![refused(400, "BadRequest", "bad selector"); 2]),
        (
            None,
            vec![refused(422, "Invalid", ""), Answer::Json(200, json!({}))],
        ),
    ])
    .await;
    expect![[r#"
        list websites.example.com in all namespaces: connection refused; check the connection to the API server; it is tried again
        list websites.example.com in namespace x: nothing came within 30s; check the connection to the API server; it is tried again
        list websites.example.com in all namespaces: the server does not serve websites.example.com/v1; is its CustomResourceDefinition installed, with this version? it is tried again
        list websites.example.com in namespace x: the server does not serve websites.example.com/v1; is its CustomResourceDefinition installed, with this version? it is tried again
        list websites.example.com in all namespaces: Unauthorized; check the client's credentials; it is tried again
        list websites.example.com in all namespaces: the server answered 429 and said no more; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: the server answered 502 and said no more; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: oops; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: websites.example.com is forbidden: User "me" cannot list resource; allow the verbs list and watch by a role; it is tried again
        list websites.example.com in all namespaces: bad selector; check the selectors of the watcher's Config; it is tried again
        list websites.example.com in all namespaces: the list has no resourceVersion; check the connection to the API server; it is tried again
    "#]].assert_eq(&texts);
}

#[tokio::test(start_paused = true)]
async fn texts_of_the_watch() {
    let listed = || Answer::Stream(vec![end(1), Piece::Pause(Duration::from_secs(9))]);
    let event = |event: Value| Piece::Text(format!("{event}\n"));
    let oops = json!({ "type": "ERROR", "object": status(500, "InternalError", "oops") });
    let nobody = json!({ "type": "ADDED", "object": {} });
    let stream = |piece| vec![Answer::Stream(vec![end(1), piece])];
    let texts = texts(vec![
        (None, vec![listed(), refused(403, "Forbidden", FORBIDDEN)]),
        (
            None,
            vec![listed(), refused(405, "MethodNotAllowed", "not allowed")],
        ),
        (None, vec![listed(), refused(404, "NotFound", "not found")]),
        (Some("x"), vec![listed(), Answer::Unreachable]),
        (
            Some("x"),
            stream(Piece::Break(io::ErrorKind::ConnectionReset)),
        ),
        (Some("x"), stream(Piece::Hang)),
        (Some("x"), stream(event(oops))),
        (Some("x"), stream(event(nobody))),
    ])
    .await;
    expect![[r#"
        start to watch websites.example.com in all namespaces: websites.example.com is forbidden: User "me" cannot list resource; allow the verbs list and watch by a role; it is tried again
        start to watch websites.example.com in all namespaces: not allowed; this kind cannot be watched; it is listed from time to time
        start to watch websites.example.com in all namespaces: the server does not serve websites.example.com/v1 to those who watch it; is its CustomResourceDefinition still installed? If it can be listed, what serves it does not support the verb watch: until it does, it is listed from time to time
        start to watch websites.example.com in namespace x: connection refused; check the connection to the API server; it is tried again
        watch websites.example.com in namespace x: connection reset; check the connection to the API server; it is tried again
        watch websites.example.com in namespace x: nothing came within 295s; check the connection to the API server; it is tried again
        watch websites.example.com in namespace x: oops; if this lasts, check the health of the API server; it is tried again
        watch websites.example.com in namespace x: an object has no resourceVersion; check the connection to the API server; it is tried again
    "#]].assert_eq(&texts);
}

// R10: programs find the same in the details of the status.
#[tokio::test(start_paused = true)]
async fn details() {
    let refused = Answer::Text(429, Some("3"), "Too many requests, please try again later.");
    let Error::InitialListFailed(kube::Error::Api(status)) = first_error(None, vec![refused]).await
    else {
        panic!("this is an error of the list");
    };
    let details = status.details.unwrap();
    assert_eq!((status.code, details.retry_after_seconds), (429, 3));
    assert_eq!(
        (&*details.kind, &*details.group),
        ("websites", "example.com")
    );
}

// The server may ask for more than the first delay, with a header or in the status.
#[tokio::test(start_paused = true)]
async fn retry_after() {
    let mut overloaded = status(503, "ServiceUnavailable", "busy");
    overloaded["details"] = json!({ "retryAfterSeconds": 5 });
    let server = Server::new([
        Answer::Text(429, Some("3"), "Too many requests, please try again later."),
        Answer::Json(503, overloaded),
    ]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, Duration::from_secs(20)).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> list configmaps in all namespaces: the server answered 429 and said no more; if this lasts, check the health of the API server; it is tried again
        3.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        3.0s    -> list configmaps in all namespaces: busy; if this lasts, check the health of the API server; it is tried again
        8.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
    "]].assert_eq(&log);
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

// R13: a secret is delivered, and in no log and no error, however broken the answer is.
#[tokio::test(start_paused = true)]
async fn secrets_stay_secret() {
    const VALUE: &str = "aHVudGVyMg==";
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    // While there is only one subscriber, another test's thread, which has none, may decide for all
    // that an event is of no interest. With two, each is asked.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::info!("logging works");

    let secret = |name, version, data: Value| {
        let mut secret = object(name, version);
        secret["kind"] = json!("Secret");
        secret["data"] = data;
        secret
    };
    let items = [
        secret("a", 1, json!({ "password": VALUE })),
        secret("b", 2, json!(VALUE)),
        secret("c", 3, json!({ "password": [VALUE] })),
    ];
    let broken = Box::leak(format!("{{\"items\":[\"{VALUE}\"").into_boxed_str());
    let script = vec![
        Answer::Text(502, None, broken),
        Answer::Json(200, json!({ "type": VALUE })),
        Answer::Stream(vec![Piece::Text(format!(
            "{{\"type\":\"{VALUE}\",\"object\":{{}}}}\n"
        ))]),
        Answer::Text(200, None, broken),
        Answer::Json(
            200,
            json!({ "metadata": { "resourceVersion": "1" }, "items": VALUE }),
        ),
        page(10, "", &items),
        Answer::Stream(vec![Piece::Text(format!("{VALUE}\n"))]),
    ];
    let server = Server::new(script);
    let stream = watcher(server.all::<Secret>(), Config::default());
    let items: Vec<Result<Event<Secret>>> = stream.take(13).collect().await;

    let delivered = items
        .iter()
        .flatten()
        .filter(|event| matches!(event, Event::InitApply(_)));
    assert_eq!(delivered.count(), 1);
    let errors: Vec<_> = items
        .iter()
        .filter_map(|item| item.as_ref().err())
        .collect();
    assert_eq!(errors.len(), 8, "{errors:?}");
    for error in errors {
        let (mut text, mut source) = (format!("{error} {error:?}"), error.source());
        while let Some(error) = source {
            write!(text, " {error} {error:?}").unwrap();
            source = error.source();
        }
        assert!(!text.contains(VALUE), "{text}");
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        log.contains("logging works") && log.contains("a watch was interrupted"),
        "{log}"
    );
    assert!(!log.contains(VALUE), "{log}");
}

// Something between the server and here answers in its stead, with 200 and a Status over several lines.
#[tokio::test(start_paused = true)]
async fn a_status_in_a_success_keeps_its_message() {
    let pretty = |message: &str| {
        let status = status(503, "ServiceUnavailable", message);
        serde_json::to_string_pretty(&status).unwrap()
    };
    let cut = |text: String, at: usize| text[..at].to_owned();
    let stream = |text: String| vec![Answer::Stream(vec![Piece::Text(text)])];
    let on_watch = |text: String| vec![Answer::Stream(vec![end(1), Piece::Text(text)])];
    let list = |body| {
        vec![
            refused(403, "Forbidden", FORBIDDEN),
            Answer::Json(200, body),
        ]
    };
    let long = "x".repeat(100_000);
    let texts = texts(vec![
        (None, stream(pretty("the gateway sleeps"))),
        (None, stream(pretty("the gateway sleeps") + "\n")),
        (
            None,
            stream(status(503, "", "in one line").to_string() + "\n"),
        ),
        (None, on_watch(pretty("the gateway sleeps") + "\n\n")),
        (None, list(status(503, "", "instead of a list"))),
        (None, list(status(200, "", "a success is no list"))),
        (None, stream(cut(pretty("the gateway sleeps"), 60) + "\n")),
        (None, stream("<html>\n<body>\n".into())),
        (None, stream(format!("{{\n\"a\": \"{long}\"\n\n\n"))),
    ])
    .await;
    expect![[r"
        list websites.example.com in all namespaces: the gateway sleeps; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: the gateway sleeps; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: in one line; if this lasts, check the health of the API server; it is tried again
        watch websites.example.com in all namespaces: the gateway sleeps; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: instead of a list; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: a success is no list; if this lasts, check the health of the API server; it is tried again
        list websites.example.com in all namespaces: an event cannot be read: EOF while parsing a value at line 4 column 19; check the connection to the API server; it is tried again
        list websites.example.com in all namespaces: an event cannot be read: expected value at line 1 column 1; check the connection to the API server; it is tried again
        list websites.example.com in all namespaces: an event cannot be read: EOF while parsing an object at line 2 column 100007; check the connection to the API server; it is tried again
    "]].assert_eq(&texts);
}

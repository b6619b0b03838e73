//! What is asked for, and what the stream yields when all goes well.

use super::server::{
    Answer, Piece, Server, added, bookmark, deleted, end, error, modified, object, page, pause,
    refusal,
};
use crate::watcher::{Config, Event, watch_object, watcher};
use expect_test::expect;
use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    client::Body,
    core::{Expression, ObjectMeta, PartialObjectMeta, Selector},
};
use serde::Deserialize;
use std::{borrow::Cow, sync::mpsc, time::Duration};

const MINUTE: Duration = Duration::from_secs(60);

// T15: a watch that is taken up again does not ask for the list a second time.
#[tokio::test(start_paused = true)]
async fn streamed_list() {
    let server = Server::new([
        Answer::Stream(vec![
            added("a", 1),
            modified(&object("a", 5)),
            added("b", 2),
            added("c", 3),
            deleted(&object("b", 6)),
            deleted(&object("c", 7)),
            added("c", 8),
            end(9),
            added("d", 10),
            pause(30),
            deleted(&object("a", 11)),
            bookmark(20),
            pause(260),
        ]),
        Answer::Stream(vec![added("e", 21), Piece::Hang]),
    ]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, 5 * MINUTE).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitApply(x/a)
        0.0s    -> InitApply(x/b)
        0.0s    -> InitApply(x/c)
        0.0s    -> InitApply(x/c)
        0.0s    -> InitDone
        0.0s    -> Delete(x/b)
        0.0s    -> Apply(x/d)
        30.0s   -> Delete(x/a)
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=20
        290.0s  -> Apply(x/e)
    "]].assert_eq(&log);
}

// T17: no page is left out.
#[tokio::test(start_paused = true)]
async fn list_in_pages() {
    let server = Server::new([
        page(10, "t1", &[object("a", 1), object("b", 2)]),
        page(10, "t2", &[object("c", 3), object("d", 4)]),
        page(10, "", &[object("e", 5)]),
        Answer::Stream(vec![added("f", 11), error(410, "Expired")]),
        page(20, "", &[object("a", 1)]),
    ]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default().page_size(2));
    let log = server.run(stream, MINUTE).await;
    expect![[r"
        0.0s    configmaps?limit=2
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitApply(x/b)
        0.0s    configmaps?limit=2&continue=t1
        0.0s    -> InitApply(x/c)
        0.0s    -> InitApply(x/d)
        0.0s    configmaps?limit=2&continue=t2
        0.0s    -> InitApply(x/e)
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        0.0s    -> Apply(x/f)
        0.0s    configmaps?limit=2
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=20
        30.0s   -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        31.0s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=20
    "]].assert_eq(&log);
}

#[tokio::test(start_paused = true)]
async fn settings() {
    let selector = Selector::from(Expression::In("tier".into(), ["a".to_owned()].into()));
    let everything = Config::default()
        .fields("metadata.name=a")
        .labels_from(&selector)
        .timeout(100)
        .any_semantic()
        .disable_bookmarks();
    let server = Server::new([page(10, "", &[])]);
    let stream = watcher(server.all::<ConfigMap>(), everything.clone());
    let log = server.run(stream, MINUTE).await;
    expect![[r"
        0.0s    configmaps?fieldSelector=metadata.name%3Da&labelSelector=tier+in+%28a%29&resourceVersion=0&resourceVersionMatch=NotOlderThan
        0.0s    -> Init
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=100&fieldSelector=metadata.name%3Da&labelSelector=tier+in+%28a%29&resourceVersion=10
        30.0s   -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        31.0s   configmaps?watch=true&timeoutSeconds=100&fieldSelector=metadata.name%3Da&labelSelector=tier+in+%28a%29&resourceVersion=10
    "]].assert_eq(&log);

    let streaming = Config {
        bookmarks: true,
        ..everything.streaming_lists().labels("app")
    };
    let server = Server::new([refusal(400, "BadRequest")]);
    let stream = watcher(server.all::<ConfigMap>(), streaming);
    let log = server.run(stream, MINUTE).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=100&fieldSelector=metadata.name%3Da&labelSelector=app&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0
        0.0s    configmaps?fieldSelector=metadata.name%3Da&labelSelector=app&resourceVersion=0&resourceVersionMatch=NotOlderThan
    "]].assert_eq(&log);
}

/// The path and the headers of the first two requests of a watch; the first one is refused.
async fn first_requests<K>(api: impl FnOnce(Client) -> Api<K>) -> Vec<String>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let (sender, requests) = mpsc::channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let header = |name: &str| {
            let value = request.headers().get(name);
            value
                .map_or("none", |value| value.to_str().unwrap())
                .to_owned()
        };
        let path = request.uri().path();
        let (accept, encoding) = (header("accept"), header("accept-encoding"));
        sender
            .send(format!("{path} accept {accept} encoding {encoding}"))
            .unwrap();
        let (code, body) = (422, Body::from(b"{}".to_vec()));
        async move {
            Ok::<_, std::io::Error>(http::Response::builder().status(code).body(body).unwrap())
        }
    });
    let client = Client::new(service, "default");
    let stream = watcher(api(client), Config::default());
    futures::pin_mut!(stream);
    assert!(stream.next().await.unwrap().is_err());
    requests.try_iter().collect()
}

// T29: a watch is not to be compressed. Metadata is asked for where only that is wanted.
#[tokio::test(start_paused = true)]
async fn headers() {
    assert_eq!(
        first_requests(|client| Api::<ConfigMap>::namespaced(client, "x")).await,
        [
            "/api/v1/namespaces/x/configmaps accept none encoding identity",
            "/api/v1/namespaces/x/configmaps accept none encoding none",
        ]
    );
    assert_eq!(
        first_requests(Api::<PartialObjectMeta<Node>>::all).await,
        [
            "/api/v1/nodes accept application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1 \
             encoding identity",
            "/api/v1/nodes accept application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1 \
             encoding none",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_dynamic_kind_know_their_types() {
    let mut listed = object("a", 1);
    listed
        .as_object_mut()
        .unwrap()
        .retain(|key, _| key == "metadata");
    let server = Server::new([
        refusal(422, "Invalid"),
        page(10, "", &[listed]),
        Answer::Stream(vec![added("b", 11), Piece::Hang]),
    ]);
    let resource = ApiResource::erase::<ConfigMap>(&());
    let api = Api::<DynamicObject>::all_with(server.client(), &resource);
    let stream = watcher(api, Config::default()).map_ok(|event| match event {
        Event::InitApply(ref object) | Event::Apply(ref object) => {
            let types = object.types.clone().unwrap_or_default();
            format!("{} {} {}", types.api_version, types.kind, object.name_any())
        }
        Event::Delete(_) | Event::Init | Event::InitDone => event.to_string(),
    });
    let log = server.follow(stream, MINUTE).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    configmaps?limit=500
        0.0s    -> Init
        0.0s    -> v1 ConfigMap a
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        0.0s    -> v1 ConfigMap b
    "]].assert_eq(&log);
}

/// Programs test against servers with a script: whoever asks for pages gets a list as the first request.
#[tokio::test(start_paused = true)]
async fn a_page_size_asks_for_pages() {
    let of_parts = |page_size| Config {
        page_size,
        ..Config::default()
    };
    let sized = |size| Config::default().page_size(size);
    let cases = [
        (Config::default(), None),
        (of_parts(Some(500)), None),
        (sized(2).streaming_lists(), None),
        (Config::default().streaming_lists().page_size(2), None),
        (sized(2), Some("configmaps?limit=2")),
        (sized(500), Some("configmaps?limit=500")),
        (sized(0), Some("configmaps?")),
        (of_parts(Some(50)), Some("configmaps?limit=50")),
        (of_parts(None), Some("configmaps?")),
        (
            sized(2).any_semantic(),
            Some("configmaps?resourceVersion=0&resourceVersionMatch=NotOlderThan"),
        ),
    ];
    for (config, first) in cases {
        let server = Server::new([Answer::Stream(vec![Piece::Hang])]);
        let stream = watcher(server.all::<ConfigMap>(), config.clone());
        let log = server.run(stream, Duration::from_secs(1)).await;
        let line = log.lines().next().unwrap();
        let asked = line.split_whitespace().last().unwrap();
        match first {
            Some(first) => assert_eq!(asked, first, "{config:?}"),
            None => assert!(
                asked.contains("&sendInitialEvents=true"),
                "{config:?}: {asked}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_metadata() {
    let server = Server::new([Answer::Stream(vec![added("a", 1), end(2), Piece::Hang])]);
    #[expect(deprecated, reason = "it still has to work")]
    let stream = crate::watcher::metadata_watcher(server.all::<Pod>(), Config::default());
    let log = server.run(stream, MINUTE).await;
    expect![[r"
        0.0s    pods?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
    "]].assert_eq(&log);
}

#[tokio::test(start_paused = true)]
async fn one_object() {
    let bad = super::server::bad_object("a", 12);
    let server = Server::new([
        Answer::Stream(vec![
            end(9),
            added("a", 10),
            deleted(&object("a", 11)),
            modified(&bad),
            deleted(&bad),
            error(410, "Expired"),
        ]),
        Answer::Stream(vec![modified(&bad), end(13), error(410, "Expired")]),
        Answer::Stream(vec![added("a", 14), end(15), Piece::Hang]),
    ]);
    let stream = watch_object(server.all::<ConfigMap>(), "a");
    let stream =
        stream.map_ok(|object| object.map_or("None".to_owned(), |object| object.name_any()));
    let log = server.follow(stream, MINUTE).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&fieldSelector=metadata.name%3Da&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> None
        0.0s    -> a
        0.0s    -> None
        0.0s    -> watch configmaps in all namespaces: ConfigMap x/a does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.0s    -> None
        0.0s    configmaps?watch=true&timeoutSeconds=290&fieldSelector=metadata.name%3Da&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> list configmaps in all namespaces: ConfigMap x/a does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.9s    configmaps?watch=true&timeoutSeconds=290&fieldSelector=metadata.name%3Da&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.9s    -> a
    "]].assert_eq(&log);
}

/// An object that must not be cloned.
#[derive(Debug, Deserialize)]
struct Precious {
    metadata: ObjectMeta,
}

impl Clone for Precious {
    fn clone(&self) -> Self {
        panic!("an object was cloned");
    }
}

impl Resource for Precious {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Precious".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "precious".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

// T31: each object is decoded once and moved out.
#[tokio::test(start_paused = true)]
async fn objects_are_not_cloned() {
    let server = Server::new([
        Answer::Stream(vec![
            added("a", 1),
            added("b", 1),
            deleted(&object("a", 2)),
            end(3),
            modified(&object("b", 4)),
            deleted(&object("b", 5)),
            error(410, "Expired"),
        ]),
        refusal(422, "Invalid"),
        page(20, "", &[object("a", 11), object("b", 12)]),
    ]);
    let stream = watcher(server.all::<Precious>(), Config::default());
    let log = server.run(stream, Duration::from_secs(1)).await;
    assert_eq!(log.matches("-> ").count(), 11, "{log}");
}

// The end of a chunk is not the end of a line.
#[tokio::test(start_paused = true)]
async fn events_in_many_chunks() {
    let text: String = [added("a", 1), end(2), added("b", 3)]
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Pause(_) | Piece::Break(_) | Piece::Hang => String::new(),
        })
        .collect();
    let chunks = text.trim_end().as_bytes().chunks(7);
    let pieces = chunks.map(|chunk| Piece::Text(String::from_utf8_lossy(chunk).into_owned()));
    let server = Server::new([Answer::Stream(pieces.collect())]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, Duration::from_millis(100)).await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
        0.0s    -> Apply(x/b)
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=3
    "]].assert_eq(&log);
}

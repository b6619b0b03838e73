//! Faults, and how the stream gets over them.

use super::server::{
    Answer, Piece, Server, added, bad_object, bookmark, deleted, end, error, modified, object,
    page, pause, refusal,
};
use crate::{
    WatchStreamExt,
    watcher::{Config, watcher},
};
use expect_test::expect;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use std::{io, sync::Arc, time::Duration};

const MINUTE: Duration = Duration::from_secs(60);

/// Runs a watch of config maps against a script for so many seconds.
async fn run(seconds: u64, config: Config, script: Vec<Answer>) -> String {
    let server = Server::new(script);
    let stream = watcher(server.all::<ConfigMap>(), config);
    server.run(stream, Duration::from_secs(seconds)).await
}

// T13: 410 instead of a watch, and T21: 410 in the stream. Neither is an item.
#[tokio::test(start_paused = true)]
async fn expired_version() {
    let log = run(
        400,
        Config::default(),
        vec![
            Answer::Stream(vec![added("a", 1), end(2), pause(290)]),
            refusal(410, "Expired"),
            Answer::Stream(vec![
                added("b", 3),
                end(4),
                added("c", 5),
                pause(5),
                error(410, "Gone"),
            ]),
            Answer::Stream(vec![added("c", 5), end(6), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=2
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        290.0s  -> Init
        290.0s  -> InitApply(x/b)
        290.0s  -> InitDone
        290.0s  -> Apply(x/c)
        295.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        295.0s  -> Init
        295.0s  -> InitApply(x/c)
        295.0s  -> InitDone
    "]].assert_eq(&log);
}

// T13: the version of a server that was restored from a backup is ahead of it.
#[tokio::test(start_paused = true)]
async fn version_of_the_future() {
    let mut status =
        super::server::status(504, "Timeout", "Too large resource version: 9, current: 5");
    status["details"] = serde_json::json!({
        "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        "retryAfterSeconds": 1,
    });
    let log = run(
        400,
        Config::default(),
        vec![
            Answer::Stream(vec![end(9), pause(290)]),
            Answer::Json(504, status),
            Answer::Stream(vec![end(5), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitDone
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=9
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        290.0s  -> Init
        290.0s  -> InitDone
    "]].assert_eq(&log);
}

// T16: what a list mentioned that broke off is void.
#[tokio::test(start_paused = true)]
async fn streamed_list_breaks_off() {
    let log = run(
        10,
        Config::default(),
        vec![
            Answer::Stream(vec![added("a", 1), added("b", 2)]),
            Answer::Stream(vec![added("a", 1), end(3), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitApply(x/b)
        0.8s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.8s    -> Init
        0.8s    -> InitApply(x/a)
        0.8s    -> InitDone
    "]].assert_eq(&log);
}

#[tokio::test(start_paused = true)]
async fn server_does_not_know_streamed_lists() {
    let log = run(
        20,
        Config::default(),
        vec![
            Answer::Stream(vec![added("a", 1), pause(5), added("b", 2), Piece::Hang]),
            page(3, "", &[object("a", 1), object("b", 2)]),
            Answer::Stream(vec![bookmark(4), error(410, "Expired")]),
            page(5, "", &[]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        5.0s    -> InitApply(x/b)
        15.0s   configmaps?limit=500
        15.0s   -> Init
        15.0s   -> InitApply(x/a)
        15.0s   -> InitApply(x/b)
        15.0s   -> InitDone
        15.0s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=3
        15.0s   configmaps?limit=500
        15.0s   -> Init
        15.0s   -> InitDone
        15.0s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=5
    "]].assert_eq(&log);
}

// T23: the pages take longer than the server remembers, and so does what follows.
#[tokio::test(start_paused = true)]
async fn list_expires() {
    let config = Config::default().disable_bookmarks().page_size(1);
    let log = run(
        20,
        config,
        vec![
            page(10, "t1", &[object("a", 1)]),
            refusal(410, "Expired"),
            page(20, "", &[object("a", 1), object("b", 2)]),
            Answer::Stream(vec![error(410, "Expired")]),
            page(30, "", &[object("b", 2)]),
            Answer::Stream(vec![added("c", 31), error(410, "Expired")]),
            page(40, "t2", &[object("b", 2)]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?limit=1
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    configmaps?limit=1&continue=t1
        0.0s    configmaps?
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitApply(x/b)
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&resourceVersion=20
        1.2s    configmaps?
        1.2s    -> Init
        1.2s    -> InitApply(x/b)
        1.2s    -> InitDone
        1.2s    configmaps?watch=true&timeoutSeconds=290&resourceVersion=30
        1.2s    -> Apply(x/c)
        1.2s    configmaps?limit=1
        1.2s    -> Init
        1.2s    -> InitApply(x/b)
        1.2s    configmaps?limit=1&continue=t2
    "]]
    .assert_eq(&log);
}

// T06: listing is allowed and watching is not. The list is there, and so is the reason.
#[tokio::test(start_paused = true)]
async fn watch_is_forbidden() {
    let forbidden = || refusal(403, "Forbidden");
    let log = run(
        5,
        Config::default(),
        vec![
            forbidden(),
            page(10, "", &[object("a", 1)]),
            forbidden(),
            forbidden(),
            forbidden(),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    configmaps?limit=500
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        0.0s    -> start to watch configmaps in all namespaces: the message; allow the verbs list and watch by a role; it is tried again
        0.9s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        0.9s    -> start to watch configmaps in all namespaces: the message; allow the verbs list and watch by a role; it is tried again
        3.3s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        3.3s    -> start to watch configmaps in all namespaces: the message; allow the verbs list and watch by a role; it is tried again
    "]].assert_eq(&log);
}

// T12, 59: the definition is missing at first, comes, goes, and comes again.
#[tokio::test(start_paused = true)]
async fn kind_is_not_served() {
    let missing = || Answer::Text(404, None, "404 page not found\n");
    let log = run(
        100,
        Config::default(),
        vec![
            // Each time as a stream, and in pages.
            missing(),
            missing(),
            missing(),
            missing(),
            Answer::Stream(vec![
                added("a", 1),
                end(2),
                pause(40),
                deleted(&object("a", 3)),
            ]),
            missing(),
            refusal(410, "Expired"),
            Answer::Stream(vec![end(4), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    configmaps?limit=500
        0.0s    -> list configmaps in all namespaces: the server does not serve configmaps/v1; is its CustomResourceDefinition installed, with this version? it is tried again
        1.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        1.0s    configmaps?limit=500
        1.0s    -> list configmaps in all namespaces: the server does not serve configmaps/v1; is its CustomResourceDefinition installed, with this version? it is tried again
        3.3s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        3.3s    -> Init
        3.3s    -> InitApply(x/a)
        3.3s    -> InitDone
        43.3s   -> Delete(x/a)
        43.3s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=3
        43.3s   -> start to watch configmaps in all namespaces: the server does not serve configmaps/v1 to those who watch it; is its CustomResourceDefinition still installed? If it can be listed, what serves it does not support the verb watch: until it does, it is listed from time to time
        44.5s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=3
        44.5s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        44.5s   -> Init
        44.5s   -> InitDone
    "]].assert_eq(&log);
}

// T07: a server that closes each watch at once is asked less and less often.
#[tokio::test(start_paused = true)]
async fn watches_close_at_once() {
    let mut script = vec![Answer::Stream(vec![added("a", 1), end(2)])];
    script.resize(200, Answer::Stream(Vec::new()));
    let server = Server::new(script);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, 10 * MINUTE).await;
    let requests = log
        .lines()
        .filter(|line| line.contains("watch=true"))
        .count();
    assert!(
        (18..=30).contains(&requests),
        "{requests} requests in 10 minutes:\n{log}"
    );
    assert!(
        !log.contains("-> watch"),
        "a watch that closes is no error:\n{log}"
    );
}

// T08: a thousand errors are a thousand items, and the next one is a success.
#[tokio::test(start_paused = true)]
async fn thousand_errors() {
    let mut script = vec![Answer::Unreachable; 1000];
    script.push(Answer::Stream(vec![end(2), Piece::Hang]));
    let server = Server::new(script);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, 1000 * MINUTE).await;
    assert_eq!(log.matches("connection refused").count(), 1000);
    assert_eq!(log.matches("-> InitDone").count(), 1);
}

// T19, 61: silence is noticed in a list, at the start of a watch, in the middle of a page, and in a
// watch, whose connection is dropped and whose successor tells of the delete in between.
#[tokio::test(start_paused = true)]
async fn silence() {
    let half = Piece::Text(r#"{"metadata":"#.to_owned());
    let config = Config::default().disable_bookmarks().timeout(60);
    let log = run(
        400,
        config,
        vec![
            Answer::Never,
            Answer::Stream(vec![half, Piece::Hang]),
            page(10, "", &[object("a", 1)]),
            Answer::Never,
            Answer::Stream(vec![pause(50), added("b", 11), Piece::Hang]),
            Answer::Stream(vec![deleted(&object("a", 12)), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?limit=500
        70.0s   -> list configmaps in all namespaces: nothing came within 70s; check the connection to the API server; it is tried again
        71.0s   configmaps?limit=500
        141.0s  -> list configmaps in all namespaces: nothing came within 70s; check the connection to the API server; it is tried again
        142.7s  configmaps?limit=500
        142.7s  -> Init
        142.7s  -> InitApply(x/a)
        142.7s  -> InitDone
        142.7s  configmaps?watch=true&timeoutSeconds=60&resourceVersion=10
        172.7s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        176.8s  configmaps?watch=true&timeoutSeconds=60&resourceVersion=10
        226.8s  -> Apply(x/b)
        291.8s  -> watch configmaps in all namespaces: nothing came within 65s; check the connection to the API server; it is tried again
        292.7s  configmaps?watch=true&timeoutSeconds=60&resourceVersion=11
        292.7s  -> Delete(x/a)
        357.7s  -> watch configmaps in all namespaces: nothing came within 65s; check the connection to the API server; it is tried again
        358.5s  configmaps?watch=true&timeoutSeconds=60&resourceVersion=12
        388.5s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        390.6s  configmaps?watch=true&timeoutSeconds=60&resourceVersion=12
    "]].assert_eq(&log);
}

// 61: a connection that is cut is taken up where it was cut, also in the middle of an event.
#[tokio::test(start_paused = true)]
async fn connection_is_cut() {
    let half = Piece::Text(r#"{"type":"ADDED","object":{"me"#.to_owned());
    let log = run(
        100,
        Config::default(),
        vec![
            Answer::Stream(vec![
                end(2),
                pause(20),
                added("a", 3),
                half,
                Piece::Break(io::ErrorKind::UnexpectedEof),
            ]),
            Answer::Stream(vec![
                added("b", 4),
                Piece::Break(io::ErrorKind::ConnectionReset),
            ]),
            Answer::Stream(vec![added("c", 5), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> InitDone
        20.0s   -> Apply(x/a)
        20.0s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=3
        20.0s   -> Apply(x/b)
        20.0s   -> watch configmaps in all namespaces: connection reset; check the connection to the API server; it is tried again
        20.9s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=4
        20.9s   -> Apply(x/c)
    "]].assert_eq(&log);
}

// T25: one object of 500 cannot be decoded.
#[tokio::test(start_paused = true)]
async fn undecodable_object_in_a_list() {
    let mut items: Vec<_> = (0..500).map(|n| object(&format!("o{n}"), n)).collect();
    items[250] = bad_object("bad", 250);
    let server = Server::new([refusal(422, "Invalid"), page(600, "", &items)]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    let log = server.run(stream, MINUTE).await;
    assert_eq!(log.matches("-> InitApply").count(), 499);
    let rest: String = log
        .split_inclusive('\n')
        .filter(|line| !line.contains("-> InitApply"))
        .collect();
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    configmaps?limit=500
        0.0s    -> Init
        0.0s    -> list configmaps in all namespaces: ConfigMap x/bad does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=600
        30.0s   -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        30.9s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=600
    "]].assert_eq(&rest);
}

// T25: the version goes past an event that cannot be decoded, and its delete is told as such.
#[tokio::test(start_paused = true)]
async fn undecodable_object_in_a_watch() {
    let log = run(
        500,
        Config::default(),
        vec![
            Answer::Stream(vec![
                modified(&bad_object("held", 1)),
                deleted(&bad_object("held", 2)),
                end(3),
                modified(&bad_object("bad", 4)),
                added("a", 5),
                deleted(&bad_object("bad", 6)),
                pause(290),
            ]),
            Answer::Never,
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> list configmaps in all namespaces: ConfigMap x/held does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.0s    -> InitDone
        0.0s    -> watch configmaps in all namespaces: ConfigMap x/held does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.0s    -> watch configmaps in all namespaces: ConfigMap x/bad does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        0.0s    -> Apply(x/a)
        0.0s    -> watch configmaps in all namespaces: ConfigMap x/bad does not fit its type at data.password: invalid type: integer, expected a string; correct the object or the type, all other objects are delivered
        290.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
        320.0s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        321.0s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
        351.0s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        352.9s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
        382.9s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        387.6s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
        417.6s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        426.4s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
        456.4s  -> start to watch configmaps in all namespaces: nothing came within 30s; check the connection to the API server; it is tried again
        474.7s  configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=6
    "]].assert_eq(&log);
}

// An answer that makes no sense is an error, and the watch goes on from where it was.
#[tokio::test(start_paused = true)]
async fn nonsense() {
    let log = run(
        20,
        Config::default(),
        vec![
            Answer::Stream(vec![Piece::Text("<html>\n".to_owned())]),
            refusal(422, "Invalid"),
            Answer::Text(200, None, "<html>"),
            page(10, "", &[]),
            Answer::Stream(vec![
                added("a", 11),
                Piece::Text("{\"type\":\"HELLO\",\"object\":{}}\n".to_owned()),
            ]),
            Answer::Stream(vec![error(500, "InternalError")]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    -> Init
        0.0s    -> list configmaps in all namespaces: an event cannot be read: expected value at line 1 column 1; check the connection to the API server; it is tried again
        1.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        1.0s    configmaps?limit=500
        1.0s    -> list configmaps in all namespaces: the list cannot be read: expected value at line 1 column 1; check the connection to the API server; it is tried again
        3.3s    configmaps?limit=500
        3.3s    -> Init
        3.3s    -> InitDone
        3.3s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=10
        3.3s    -> Apply(x/a)
        3.3s    -> watch configmaps in all namespaces: an event has a type that is not known; check the connection to the API server; it is tried again
        6.7s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=11
        6.7s    -> watch configmaps in all namespaces: the message; if this lasts, check the health of the API server; it is tried again
        16.0s   configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=11
    "]].assert_eq(&log);
}

/// Pairs of a request's time and an item's time in a log.
fn times(log: &str, mark: &str) -> Vec<f64> {
    let lines = log.lines().filter(|line| line.contains(mark));
    lines
        .map(|line| line.split_once('s').unwrap().0.parse().unwrap())
        .collect()
}

// The stream's own pauses and those of a backoff around it run at the same time.
#[tokio::test(start_paused = true)]
async fn delays_do_not_add_up() {
    let server = Server::new(vec![Answer::Unreachable; 6]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default()).default_backoff();
    let log = server.run(stream, 2 * MINUTE).await;
    let requests = times(&log, "watch=true");
    for (n, pair) in requests.windows(2).enumerate() {
        let least = 0.8 * f64::from(1_u32 << n);
        let delay = pair[1] - pair[0];
        assert!(
            (least - 0.1..=least * 1.5 + 0.1).contains(&delay),
            "delay {n}: {delay}\n{log}"
        );
    }
    assert_eq!(requests.len(), 7);
}

// T03: seven watches lose their connections at once. Each is back within one delay, as if it were
// alone, also when a backoff is around each of them.
#[tokio::test(start_paused = true)]
async fn seven_watches_break_at_once() {
    let script = || {
        [
            Answer::Stream(vec![
                end(2),
                pause(100),
                Piece::Break(io::ErrorKind::ConnectionReset),
            ]),
            Answer::Late(
                Duration::from_millis(200),
                vec![added("back", 3), Piece::Hang],
            ),
        ]
    };
    let servers: Vec<_> = (0..7).map(|_| Arc::new(Server::new(script()))).collect();
    let streams = servers.iter().map(|server| {
        watcher(server.all::<ConfigMap>(), Config::default())
            .default_backoff()
            .map(|item| item.map(|event| event.to_string()))
            .boxed()
    });
    let log = servers[0]
        .follow(stream::select_all(streams), 3 * MINUTE)
        .await;
    let back = times(&log, "-> Apply(x/back)");
    assert_eq!(back.len(), 7, "{log}");
    assert!(
        back.iter().all(|time| (101.0..101.5).contains(time)),
        "{log}"
    );
    assert_eq!(log.matches("connection reset").count(), 7, "{log}");
}

// 57: nothing is left of a stream that is dropped.
#[tokio::test(start_paused = true)]
async fn dropped_stream_leaves_nothing() {
    let server = Server::new([Answer::Stream(vec![end(2), Piece::Hang]), Answer::Never]);
    let stream = watcher(server.all::<ConfigMap>(), Config::default());
    server.run(stream, MINUTE).await;
    let lines = server.lines();
    tokio::time::sleep(100 * MINUTE).await;
    assert_eq!(server.lines(), lines);
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

// A server that lists and does not watch: what is there is known, again and again, and the error names the watch.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_watched_is_listed() {
    let missing = || Answer::Text(404, None, "404 page not found\n");
    let log = run(
        7,
        Config::default(),
        vec![
            missing(),
            page(2, "", &[object("a", 1)]),
            missing(),
            page(4, "", &[object("b", 3)]),
            missing(),
            page(4, "", &[object("b", 3)]),
            Answer::Stream(vec![added("c", 5), Piece::Hang]),
        ],
    )
    .await;
    expect![[r"
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
        0.0s    configmaps?limit=500
        0.0s    -> Init
        0.0s    -> InitApply(x/a)
        0.0s    -> InitDone
        0.0s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=2
        0.0s    -> start to watch configmaps in all namespaces: the server does not serve configmaps/v1 to those who watch it; is its CustomResourceDefinition still installed? If it can be listed, what serves it does not support the verb watch: until it does, it is listed from time to time
        0.9s    configmaps?limit=500
        0.9s    -> Init
        0.9s    -> InitApply(x/b)
        0.9s    -> InitDone
        0.9s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=4
        0.9s    -> start to watch configmaps in all namespaces: the server does not serve configmaps/v1 to those who watch it; is its CustomResourceDefinition still installed? If it can be listed, what serves it does not support the verb watch: until it does, it is listed from time to time
        2.9s    configmaps?limit=500
        2.9s    -> Init
        2.9s    -> InitApply(x/b)
        2.9s    -> InitDone
        2.9s    configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=4
        2.9s    -> Apply(x/c)
    "]].assert_eq(&log);
}

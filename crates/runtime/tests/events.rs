//! Events against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::StreamExt;
use homeostat::{
    Action, Controller,
    events::{Event, EventType, Recorder, Reporter},
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, ObjectReference},
    events::v1::Event as Stored,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    client::Body,
};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

const MINUTE: Duration = Duration::from_secs(60);

fn reporter() -> Reporter {
    Reporter {
        controller: "example.com/tester".into(),
        instance: Some("tester-0".into()),
    }
}

fn event(note: &str) -> Event {
    Event {
        type_: EventType::Normal,
        reason: "Tested".into(),
        note: Some(note.into()),
        action: "Testing".into(),
        secondary: None,
    }
}

/// An object in the default namespace, which nobody needs to know of.
fn object(name: &str) -> ObjectReference {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            uid: Some(format!("uid-of-{name}")),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    map.object_ref(&())
}

/// The events in a namespace, in the order of their times, each as its note and count.
async fn events_in(server: &ApiServer, namespace: &str) -> Vec<(String, i32)> {
    let api: Api<Stored> = Api::namespaced(server.client(), namespace);
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    // Under paused time many have the same one.
    events.sort_by_key(|event| {
        let version = event
            .resource_version()
            .map(|it| it.parse::<u64>().unwrap());
        (event.event_time.clone(), version)
    });
    let count = |event: &Stored| event.series.as_ref().map_or(1, |series| series.count);
    events
        .iter()
        .map(|event| (event.note.clone().unwrap(), count(event)))
        .collect()
}

fn expected(events: &[(&str, i32)]) -> Vec<(String, i32)> {
    events
        .iter()
        .map(|(note, count)| ((*note).into(), *count))
        .collect()
}

fn about_events() -> Rule {
    Rule::any()
        .resource("events")
        .verb(Verb::Create)
        .verb(Verb::Patch)
}

#[tokio::test(start_paused = true)]
async fn an_event_as_the_server_has_it() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let event = Event {
        type_: EventType::Warning,
        secondary: Some(object("b")),
        ..event("no luck")
    };
    recorder.queue(&event, &object("a"));
    recorder.flush().await;
    let api: Api<Stored> = Api::default_namespaced(server.client());
    let stored = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert!(stored.name_any().starts_with("a."));
    assert_eq!(stored.regarding, Some(object("a")));
    assert_eq!(stored.related, Some(object("b")));
    assert_eq!(stored.type_.as_deref(), Some("Warning"));
    assert_eq!(stored.reason.as_deref(), Some("Tested"));
    assert_eq!(stored.action.as_deref(), Some("Testing"));
    assert_eq!(stored.note.as_deref(), Some("no luck"));
    assert_eq!(
        stored.reporting_controller.as_deref(),
        Some("example.com/tester")
    );
    assert_eq!(stored.reporting_instance.as_deref(), Some("tester-0"));
    assert_eq!(stored.series, None);
}

#[test]
fn reporters() {
    let owned = Reporter::from(String::from("c"));
    assert_eq!((owned.controller.as_str(), owned.instance), ("c", None));
    let borrowed = Reporter::from("c");
    assert_eq!(borrowed.controller, "c");
    // There is a host name wherever tests run, and it has no line break.
    assert!(
        borrowed
            .instance
            .is_none_or(|host| !host.is_empty() && host.trim() == host)
    );
}

/// The same event again is counted, from whichever clone it comes; the time of the last one moves on.
#[tokio::test(start_paused = true)]
async fn occurrences_are_counted() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let clone = recorder.clone();
    for recorder in [&recorder, &clone, &recorder] {
        recorder.queue(&event("x"), &object("a"));
        recorder.flush().await;
        sleep(5 * MINUTE).await;
    }
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 3)]));
    let api: Api<Stored> = Api::default_namespaced(server.client());
    let stored = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0);
    let (first, last) = (
        stored.event_time.unwrap(),
        stored.series.unwrap().last_observed_time,
    );
    // Tokio's clock has moved on by ten minutes; the wall's, in between, by the time of this test.
    let seconds = last.0.duration_since(first.0).as_secs();
    assert!((300..=600).contains(&seconds), "{seconds}");
    assert_eq!(
        server
            .requests()
            .count(|request| request.verb == Verb::Patch),
        2
    );
}

/// What is published while a request is under way is told with the next one, not with one each.
#[tokio::test(start_paused = true)]
async fn a_storm_of_one_event_is_few_requests() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let delay = server
        .faults()
        .inject(about_events(), Fault::Delay(Duration::from_secs(1)));
    for _ in 0..100 {
        recorder.queue(&event("x"), &object("a"));
        sleep(Duration::from_millis(50)).await;
    }
    recorder.flush().await;
    drop(delay);
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 100)]));
    assert!(
        server.requests().writes() <= 7,
        "{}",
        server.requests().writes()
    );
}

/// Many threads publish, and each waits for what it has published.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clones_in_many_threads() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let tasks = (0..8).map(|number| {
        let recorder = recorder.clone();
        tokio::spawn(async move {
            let note = number.to_string();
            for _ in 0..20 {
                recorder.queue(&event(&note), &object(&note));
                recorder.flush().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let mut events = events_in(&server, "default").await;
    events.sort();
    let expected: Vec<_> = (0..8).map(|number| (number.to_string(), 20)).collect();
    assert_eq!(events, expected);
}

/// T65 and kubernetes/kubernetes#6289: the event was deleted, or is older than events get.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_made_anew() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let api: Api<Stored> = Api::default_namespaced(server.client());
    for _ in 0..2 {
        recorder.queue(&event("x"), &object("a"));
        recorder.flush().await;
    }
    let first = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0)
        .name_any();
    api.delete(&first, &DeleteParams::default()).await.unwrap();
    for count in [1, 2] {
        recorder.queue(&event("x"), &object("a"));
        recorder.flush().await;
        assert_eq!(
            events_in(&server, "default").await,
            expected(&[("x", count)])
        );
    }
    let second = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .remove(0)
        .name_any();
    assert_ne!(first, second);
    assert_eq!(recorder.dropped(), 0);
}

/// T66: another note is shown, and the first one still is.
#[tokio::test(start_paused = true)]
async fn another_note_is_another_event() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    for note in ["1 of 3 ready", "2 of 3 ready", "1 of 3 ready"] {
        recorder.queue(&event(note), &object("a"));
        recorder.flush().await;
        sleep(Duration::from_secs(1)).await;
    }
    let events = events_in(&server, "default").await;
    assert_eq!(
        events,
        expected(&[("1 of 3 ready", 2), ("2 of 3 ready", 1)])
    );
}

/// T67: queueing takes no time, whatever the server does, and the event is told when it can be.
#[tokio::test(start_paused = true)]
async fn queueing_neither_waits_nor_fails() {
    let server = ApiServer::builder().build();
    let faults = [
        Fault::Hang,
        Fault::Refuse,
        Fault::InternalError,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::TooManyRequests { retry_after: 1 },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let recorder = Recorder::new(server.client(), reporter());
        let note = format!("{number}");
        let guard = server.faults().inject(about_events(), fault);
        let begin = Instant::now();
        for _ in 0..3 {
            recorder.queue(&event(&note), &object("a"));
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        sleep(Duration::from_secs(20)).await;
        drop(guard);
        recorder.flush().await;
        assert_eq!(events_in(&server, "default").await.pop(), Some((note, 3)));
        assert_eq!(recorder.dropped(), 0);
    }
}

/// A server that never answers is given up, for this event; later ones are told.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_counted() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let guard = server.faults().inject(about_events(), Fault::Hang);
    recorder.queue(&event("x"), &object("a"));
    recorder.queue(&event("x"), &object("a"));
    let begin = Instant::now();
    recorder.flush().await;
    // Six requests of half a minute, and five pauses between them that grow to half a minute.
    let took = begin.elapsed();
    assert!((3 * MINUTE..5 * MINUTE).contains(&took), "{took:?}");
    assert_eq!(recorder.dropped(), 2);
    drop(guard);
    recorder.queue(&event("y"), &object("a"));
    recorder.flush().await;
    assert_eq!(events_in(&server, "default").await, expected(&[("y", 1)]));
}

/// A request that was carried out, and whose answer was lost, is not carried out twice.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_event() {
    let server = ApiServer::builder().build();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let inner = server.service();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let lost = count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let answer = inner.clone().oneshot(request);
        async move {
            let answer = answer.await;
            if lost {
                return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
            answer.map_err(tower::BoxError::from)
        }
    });
    let recorder = Recorder::new(Client::new(service, "default"), reporter());
    for _ in 0..3 {
        recorder.queue(&event("x"), &object("a"));
        recorder.flush().await;
    }
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 3)]));
    assert_eq!(requests.load(Ordering::Relaxed), 6);
}

/// About one object there are 25 requests, then one in five minutes. Others are not held up.
#[tokio::test(start_paused = true)]
async fn the_rate_of_each_object_is_bounded() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    for number in 0..40 {
        recorder.queue(&event(&format!("{number}")), &object("a"));
    }
    recorder.queue(&event("other"), &object("b"));
    recorder.flush().await;
    let notes = async || {
        let events = events_in(&server, "default").await;
        events.into_iter().map(|(note, _)| note).collect::<Vec<_>>()
    };
    let first: Vec<String> = (0..25).map(|number| number.to_string()).collect();
    let mut expected = [first, vec!["other".into()]].concat();
    assert_eq!(notes().await, expected);
    assert_eq!(recorder.dropped(), 14);

    // The latest is told when the object gets a token, after all that was told in the beginning.
    sleep(6 * MINUTE).await;
    expected.push("39".into());
    assert_eq!(notes().await, expected);

    // A loop that goes on for an hour.
    let before = server.requests().writes();
    for number in 0..3600 {
        recorder.queue(&event(&format!("loop {number}")), &object("a"));
        sleep(Duration::from_secs(1)).await;
    }
    let writes = server.requests().writes() - before;
    assert!((11..=13).contains(&writes), "{writes}");
}

#[tokio::test(start_paused = true)]
async fn events_about_the_cluster_are_in_the_default_namespace() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some("shop".into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    recorder.queue(&event("x"), &namespace.object_ref(&()));
    recorder.flush().await;
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 1)]));
}

/// Section E 55: what was published before the recorder is dropped is sent.
#[tokio::test(start_paused = true)]
async fn a_recorder_that_is_dropped_has_its_events_sent() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    for note in ["x", "y"] {
        recorder.queue(&event(note), &object("a"));
    }
    drop(recorder);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        events_in(&server, "default").await,
        expected(&[("x", 1), ("y", 1)])
    );
}

/// A runtime ends with its tasks, in the middle of a request. Another one can go on: here it finds that
/// the client has ended as well, so the events are given up.
#[test]
fn the_end_of_a_runtime_is_survived() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let recorder = first.block_on(async {
        let server = ApiServer::builder().build();
        let guard = server.faults().inject(about_events(), Fault::Hang);
        let recorder = Recorder::new(server.client(), reporter());
        recorder.queue(&event("x"), &object("a"));
        sleep(Duration::from_secs(1)).await;
        drop(guard);
        recorder
    });
    drop(first);
    assert_eq!(recorder.dropped(), 0);
    runtime().block_on(async {
        recorder.queue(&event("x"), &object("a"));
        recorder.flush().await;
    });
    assert_eq!(recorder.dropped(), 2);
}

/// What the log says.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(Into::into).collect()
    }
}

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

fn log_warnings(log: &Log) -> tracing::subscriber::DefaultGuard {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false);
    tracing::subscriber::set_default(subscriber.finish())
}

/// One line for each kind of failure, and nothing of what the server sent.
#[tokio::test(start_paused = true)]
async fn failures_are_logged_once() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let log = Log::default();
    let _guard = log_warnings(&log);
    for (fault, times) in [
        (Fault::Forbidden, 3),
        (Fault::InternalError, 2),
        (Fault::Refuse, 2),
    ] {
        let guard = server.faults().inject(about_events(), fault);
        for number in 0..times {
            recorder.queue(&event(&format!("{number}")), &object("a"));
            recorder.flush().await;
        }
        drop(guard);
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for (line, text) in lines
        .iter()
        .zip(["code=403", "code=500", "does not answer"])
    {
        assert!(line.contains(text) && !line.contains("injected"), "{line}");
    }
    assert_eq!(recorder.dropped(), 7);

    // Twice: that some are dropped is said once as well.
    for number in 0..60 {
        recorder.queue(&event(&format!("more {number}")), &object("b"));
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[3].contains("ConfigMap default/b"), "{}", lines[3]);
}

/// Section D 43: in a namespace that is being deleted there is nothing to say and nobody to warn.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted_is_no_failure() {
    let server = ApiServer::builder().namespace_deletion(false).build();
    let namespaces: Api<Namespace> = Api::all(server.client());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("shop".into());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    let recorder = Recorder::new(server.client(), reporter());
    let log = Log::default();
    let _guard = log_warnings(&log);
    let inside = ObjectReference {
        namespace: Some("shop".into()),
        ..object("a")
    };
    recorder.queue(&event("x"), &inside);
    recorder.flush().await;
    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(recorder.dropped(), 1);
}

/// What `publish` promises: the event is there when it returns, also when others wait for the server.
#[tokio::test(start_paused = true)]
async fn published_is_there() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    for count in 1..=40 {
        recorder.publish(&event("x"), &object("a")).await.unwrap();
        assert_eq!(
            events_in(&server, "default").await,
            expected(&[("x", count)])
        );
    }
    // Nothing is published by twos: each is a request.
    assert_eq!(server.requests().writes(), 40);

    // What is queued in between is counted too, by whoever comes next.
    recorder.queue(&event("x"), &object("a"));
    recorder.publish(&event("x"), &object("a")).await.unwrap();
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 42)]));
    recorder.flush().await;
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 42)]));
}

#[tokio::test(start_paused = true)]
async fn publishing_at_the_same_time() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let _delay = server
        .faults()
        .inject(about_events(), Fault::Delay(Duration::from_secs(1)));
    let (x, a) = (event("x"), object("a"));
    let both = futures::future::join_all((0..3).map(|_| recorder.publish(&x, &a)));
    assert!(both.await.iter().all(Result::is_ok));
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 3)]));
}

/// An event that could not be published is told to its publisher, once, and by nobody else later.
#[tokio::test(start_paused = true)]
async fn what_is_not_published_is_an_error() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let code = |result: Result<(), kube::Error>| match result {
        Ok(()) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    };
    for (fault, expected) in [
        (Fault::Forbidden, 403),
        (Fault::InternalError, 500),
        (Fault::Refuse, 0),
        (Fault::Hang, 0),
    ] {
        let _guard = server.faults().inject(about_events(), fault.clone());
        let published = recorder.publish(&event("x"), &object("a")).await;
        assert_eq!(code(published), expected, "{fault:?}");
    }
    sleep(10 * MINUTE).await;
    assert_eq!(events_in(&server, "default").await, []);
    recorder.publish(&event("x"), &object("a")).await.unwrap();
    {
        let _guard = server.faults().inject(about_events(), Fault::Forbidden);
        let published = recorder.publish(&event("x"), &object("a")).await;
        assert_eq!(code(published), 403);
    }
    recorder.publish(&event("x"), &object("a")).await.unwrap();
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 2)]));
    assert_eq!(recorder.dropped(), 0);
    // The namespace of the object is no name.
    let mut nowhere = object("a");
    nowhere.namespace = Some("not a name".into());
    assert!(recorder.publish(&event("x"), &nowhere).await.is_err());

    let api: Api<Stored> = Api::default_namespaced(server.client());
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    recorder.publish(&event("x"), &object("a")).await.unwrap();
    assert_eq!(events_in(&server, "default").await, expected(&[("x", 1)]));
}

/// What a reconciler has queued is sent before the controller's stream ends.
#[tokio::test(start_paused = true)]
async fn a_controller_that_stops_sends_what_is_queued() {
    let server = ApiServer::builder().build();
    let recorder = Recorder::new(server.client(), reporter());
    let delay = Fault::Delay(Duration::from_secs(3));
    let _slow = server.faults().inject(about_events(), delay);
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("a".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let controller = Controller::new(maps, watcher::Config::default())
        .graceful_shutdown_on(sleep(Duration::from_secs(1)));
    let reconcile = async |map: Arc<ConfigMap>, recorder: Arc<Recorder>| {
        recorder.queue(&event("x"), &map.object_ref(&()));
        recorder.queue(&event("y"), &map.object_ref(&()));
        Ok::<_, kube::Error>(Action::await_change())
    };
    let begin = Instant::now();
    let run = controller.run(
        reconcile,
        homeostat::error_policy::backoff,
        Arc::new(recorder),
    );
    assert_eq!(run.count().await, 1);
    let took = begin.elapsed();
    let bounds = Duration::from_secs(6)..Duration::from_secs(7);
    assert!(bounds.contains(&took), "{took:?}");
    let mut notes = events_in(&server, "default").await;
    notes.sort();
    assert_eq!(notes, expected(&[("x", 1), ("y", 1)]));
}

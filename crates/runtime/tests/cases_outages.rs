//! Outages of the API server: how soon all is well afterwards, and what it costs meanwhile. Under paused time, against
//! a server that does what real ones do in an outage.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use futures::{StreamExt, future, stream};
use homeostat::{
    Action, Config, Controller,
    client::Settings,
    controller::{Counts, Handle},
    error_policy,
    watcher::{self, watcher},
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    client::{Body, ClientBuilder},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// What a server does that is not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// 503.
    Unavailable,
    /// 429, and asks for so many seconds.
    Throttled(u64),
    /// No connection.
    Refused,
    /// It takes the request and says nothing.
    Silent,
    /// Half an answer, and then silence or a broken connection.
    Half,
}

/// A server of config maps that nobody changes. Clones are the same one.
#[derive(Clone)]
struct Server(Arc<State>);

struct State {
    objects: usize,
    trouble: watch::Sender<Option<Trouble>>,
    /// What begins when the list has been sent.
    next: Mutex<Option<Trouble>>,
    /// Requests that are under way, and the most that ever were.
    open: AtomicUsize,
    most: AtomicUsize,
    requests: AtomicUsize,
    /// Watches that are open.
    watches: AtomicUsize,
    /// When the server was asked for an object.
    asked: Mutex<Vec<Instant>>,
}

type AnyBody = UnsyncBoxBody<Bytes, io::Error>;

/// Counts up, and down when it is dropped.
struct Counted(Arc<State>, fn(&State) -> &AtomicUsize);

// === impl Server ===

impl Server {
    fn new(objects: usize) -> Self {
        // Makes the delays the same in each run.
        fastrand::seed(7);
        Self(Arc::new(State {
            objects,
            trouble: watch::Sender::new(None),
            next: Mutex::new(None),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            asked: Mutex::default(),
        }))
    }

    fn client(&self, settings: &Settings) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request.uri().clone()).await }
        });
        ClientBuilder::new(service, "default")
            .with_layer(settings)
            .build()
    }

    /// Lets trouble begin when the list has been sent, before anything is reconciled.
    fn set_after_list(&self, trouble: Trouble) {
        *self.0.next.lock().unwrap() = Some(trouble);
    }

    fn set(&self, trouble: Option<Trouble>) {
        self.0.trouble.send_replace(trouble);
    }

    async fn answer(&self, uri: http::Uri) -> io::Result<Response<AnyBody>> {
        let state = &self.0;
        let open = Counted::new(state, |state| &state.open);
        state.most.fetch_max(state.open.load(SeqCst), SeqCst);
        let nth = state.requests.fetch_add(1, SeqCst);
        let query = uri.query().unwrap_or_default();
        let is_watch = query.contains("watch=true");
        let name = uri.path().rsplit('/').next().unwrap_or_default();
        if !is_watch {
            state.asked.lock().unwrap().push(Instant::now());
        }
        let trouble = *state.trouble.borrow();
        // As long as a request takes.
        sleep(Duration::from_millis(5)).await;
        match trouble {
            None if is_watch => Ok(self.watch(query.contains("sendInitialEvents=true"))),
            None => Ok(json_response(200, &object(name))),
            Some(Trouble::Unavailable) => Ok(json_response(503, &status(503))),
            Some(Trouble::Throttled(seconds)) => {
                let mut response = json_response(429, &status(429));
                let headers = response.headers_mut();
                headers.insert("retry-after", seconds.into());
                Ok(response)
            }
            Some(Trouble::Refused) => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Trouble::Silent) => {
                future::pending::<()>().await;
                drop(open);
                Err(io::ErrorKind::Other.into())
            }
            Some(Trouble::Half) => Ok(half(
                &object(name),
                nth.is_multiple_of(2) && !is_watch,
                open,
            )),
        }
    }

    /// A watch, which breaks when trouble begins.
    fn watch(&self, initial: bool) -> Response<AnyBody> {
        let mut lines = Vec::new();
        if initial {
            let names = (0..self.0.objects).map(|number| format!("a{number}"));
            lines.extend(names.map(|name| json!({ "type": "ADDED", "object": object(&name) })));
            lines.push(json!({ "type": "BOOKMARK", "object": {
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": { "resourceVersion": "1", "annotations": { "k8s.io/initial-events-end": "true" } },
            } }));
        }
        if let Some(trouble) = self.0.next.lock().unwrap().take() {
            self.set(Some(trouble));
        }
        let lines = lines.iter().map(ToString::to_string);
        let text = lines.collect::<Vec<_>>().join("\n") + "\n";
        let counted = Counted::new(&self.0, |state| &state.watches);
        let mut trouble = self.0.trouble.subscribe();
        let end = async move {
            // It ends when the server is dropped, too.
            let _ = trouble.wait_for(Option::is_some).await;
            drop(counted);
            Err(io::ErrorKind::ConnectionReset.into())
        };
        let first = Ok(Frame::data(Bytes::from(text)));
        let body = stream::once(future::ready(first)).chain(stream::once(end));
        Response::new(StreamBody::new(body).boxed_unsync())
    }
}

impl Counted {
    fn new(state: &Arc<State>, count: fn(&State) -> &AtomicUsize) -> Self {
        count(state).fetch_add(1, SeqCst);
        Self(Arc::clone(state), count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, SeqCst);
    }
}

fn object(name: &str) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1" },
    })
}

fn status(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "", "message": "" })
}

fn json_response(code: u16, body: &Value) -> Response<AnyBody> {
    let body = http_body_util::Full::from(body.to_string());
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(body.map_err(|never| match never {}).boxed_unsync())
        .unwrap()
}

/// The first half of an answer.
fn half(body: &Value, silent: bool, open: Counted) -> Response<AnyBody> {
    let text = body.to_string();
    let first = Ok(Frame::data(Bytes::from(text[..text.len() / 2].to_owned())));
    let rest = async move {
        if silent {
            future::pending::<()>().await;
        }
        drop(open);
        Err(io::ErrorKind::ConnectionReset.into())
    };
    let body = stream::once(future::ready(first)).chain(stream::once(rest));
    Response::new(StreamBody::new(body).boxed_unsync())
}

/// A controller that reads each of its objects anew.
struct Running {
    /// When each object was first read.
    fine: Arc<Mutex<BTreeMap<String, Instant>>>,
    errors: Arc<AtomicUsize>,
    handle: Handle<ConfigMap>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start(client: &Client, config: Config) -> Self {
        let maps: Api<ConfigMap> = Api::all(client.clone());
        let controller = Controller::new(maps, watcher::Config::default()).with_config(config);
        let (handle, fine) = (controller.handle(), Arc::<Mutex<BTreeMap<_, _>>>::default());
        let errors = Arc::<AtomicUsize>::default();
        let reconcile = {
            let (client, fine) = (client.clone(), Arc::clone(&fine));
            move |map: Arc<ConfigMap>, _: Arc<()>| {
                let (client, fine) = (client.clone(), Arc::clone(&fine));
                async move {
                    let maps: Api<ConfigMap> = Api::default_namespaced(client);
                    maps.get(&map.name_any()).await?;
                    let mut fine = fine.lock().unwrap();
                    fine.entry(map.name_any()).or_insert_with(Instant::now);
                    Ok::<_, kube::Error>(Action::await_change())
                }
            }
        };
        let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
        let counted = Arc::clone(&errors);
        let task = tokio::spawn(run.for_each(move |item| {
            counted.fetch_add(item.is_err().into(), SeqCst);
            future::ready(())
        }));
        Self {
            fine,
            errors,
            handle,
            task,
        }
    }

    fn counts(&self) -> Counts {
        self.handle.counts()
    }

    /// Waits until so many objects are fine; how long that took.
    async fn until_fine(&self, objects: usize) -> Duration {
        let start = Instant::now();
        while self.fine.lock().unwrap().len() < objects {
            let waited = start.elapsed();
            assert!(
                waited < Duration::from_secs(600),
                "{} are fine",
                self.fine.lock().unwrap().len()
            );
            sleep(Duration::from_millis(50)).await;
        }
        start.elapsed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An outage of so many seconds from the first reconcile on.
async fn outage(trouble: Trouble, seconds: u32, objects: usize) {
    let server = Server::new(objects);
    let client = server.client(&Settings::default());
    server.set_after_list(trouble);
    let running = Running::start(&client, Config::default());
    sleep(Duration::from_secs(seconds.into())).await;
    assert_eq!(running.fine.lock().unwrap().len(), 0);
    server.set(None);
    let recovered = running.until_fine(objects).await;
    let says = format!("{trouble:?}, {seconds} s, {objects} objects: {recovered:?}");
    assert!(recovered < Duration::from_secs(30), "{says}");
    // Sixteen runs at once, and the watch.
    let most = server.0.most.load(SeqCst);
    assert!(most <= 17, "{says}, {most} requests at once");
    let requests = server.0.requests.load(SeqCst) - objects;
    let seconds = seconds as usize;
    assert!(
        requests < seconds * 2 + 50,
        "{says}, {requests} requests in vain"
    );
    let errors = running.errors.load(SeqCst);
    // The first ones, one run a minute, and those of the watch.
    let told = if trouble == Trouble::Half {
        seconds / 5
    } else {
        seconds / 15
    };
    assert!(errors <= 32 + told, "{says}, {errors} errors");
    let counts = running.counts();
    // The head of half an answer looks like a server that is well again, until the rest does not come.
    let seems = if trouble == Trouble::Half { seconds } else { 3 };
    assert!(
        (1..=seems as u64).contains(&counts.outages),
        "{says}, {counts:?}"
    );
    // The watch is there again, too.
    let watched = async {
        while server.0.watches.load(SeqCst) == 0 {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let left = Duration::from_secs(30).saturating_sub(recovered);
    assert!(timeout(left, watched).await.is_ok(), "{says}, and no watch");
}

/// Outages of half a minute, two minutes and ten, with few objects and with many.
async fn outages(trouble: Trouble) {
    for seconds in [30, 120, 600] {
        outage(trouble, seconds, 1).await;
        outage(trouble, seconds, 5000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_503() {
    outages(Trouble::Unavailable).await;
}

#[tokio::test(start_paused = true)]
async fn after_429_with_retry_after() {
    outages(Trouble::Throttled(7)).await;
}

#[tokio::test(start_paused = true)]
async fn after_refused_connections() {
    outages(Trouble::Refused).await;
}

#[tokio::test(start_paused = true)]
async fn after_silence() {
    outages(Trouble::Silent).await;
}

#[tokio::test(start_paused = true)]
async fn after_half_answers() {
    outages(Trouble::Half).await;
}

/// A controller that starts while the server is away has no object to try. Its watches have pauses of up to 45 s, and
/// an attempt may take half a minute.
#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_in_an_outage() {
    for trouble in [Trouble::Unavailable, Trouble::Refused, Trouble::Silent] {
        for seconds in [30, 120, 600] {
            let server = Server::new(20);
            server.set(Some(trouble));
            let client = server.client(&Settings::default());
            let running = Running::start(&client, Config::default());
            sleep(Duration::from_secs(seconds)).await;
            server.set(None);
            let recovered = running.until_fine(20).await;
            let longest = if trouble == Trouble::Silent { 77 } else { 47 };
            assert!(
                recovered < Duration::from_secs(longest),
                "{trouble:?}, {seconds} s: {recovered:?}"
            );
        }
    }
}

/// Whatever the error policy says, nothing is tried before the time that the server asked for.
#[tokio::test(start_paused = true)]
async fn retry_after_is_a_floor() {
    let server = Server::new(1);
    server.set_after_list(Trouble::Throttled(20));
    let running = Running::start(&server.client(&Settings::default()), Config::default());
    sleep(Duration::from_secs(5)).await;
    server.set(None);
    running.until_fine(1).await;
    let asked = server.0.asked.lock().unwrap().clone();
    let waits: Vec<_> = asked
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(waits, [20]);
}

/// All slots are taken by requests that are never answered, because the client was told to wait for any time.
#[tokio::test(start_paused = true)]
async fn a_wedge_is_told() {
    let server = Server::new(5);
    let client = server.client(&Settings::default().silence(None));
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let controller = Controller::new(maps, watcher::Config::default())
        .with_config(Config::default().concurrency(2));
    let (readiness, handle) = (controller.readiness(), controller.handle());
    let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        async move {
            maps.get(&map.name_any()).await?;
            Ok::<_, kube::Error>(Action::await_change())
        }
    };
    let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
    server.set_after_list(Trouble::Silent);
    let task = tokio::spawn(run.for_each(|_| future::ready(())));
    sleep(Duration::from_secs(59)).await;
    assert_eq!((readiness.stuck(), handle.counts().wedges), (vec![], 0));
    sleep(Duration::from_secs(2)).await;
    let stuck: Vec<_> = readiness.stuck().iter().map(ToString::to_string).collect();
    assert_eq!(
        stuck,
        ["a0", "a1"].map(|name| format!(
            "default/{name} has run for 60s and waits for \
             GET /api/v1/namespaces/default/configmaps/{name} for 60s"
        ))
    );
    assert!(!readiness.is_ready());
    sleep(Duration::from_secs(600)).await;
    assert_eq!(handle.counts().wedges, 1, "it is told once");
    task.abort();
}

/// Counts the warnings that say this.
#[derive(Clone)]
struct Warnings(&'static str, Arc<AtomicUsize>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Says(&'static str, bool);
        impl tracing::field::Visit for Says {
            fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.1 |= format!("{value:?}").contains(self.0);
            }
        }
        let mut says = Says(self.0, false);
        event.record(&mut says);
        self.1.fetch_add(says.1.into(), SeqCst);
    }
}

/// A controller warns once of a client of which it does not know how it sends requests again, however many watches it
/// has, and says nothing of one that it knows.
#[tokio::test(start_paused = true)]
async fn a_client_of_unknown_settings_is_told_once() {
    use homeostat::client::Tracked;
    use tracing_subscriber::layer::SubscriberExt;

    let server = Server::new(1);
    let settled = server.client(&Settings::default());
    let plain = tower::service_fn({
        let server = server.clone();
        move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request.uri().clone()).await }
        }
    });
    let untracked = Client::new(plain, "default");
    let wrapped = Tracked::wrap(untracked.clone());
    for (client, times) in [(settled, 0), (wrapped, 1), (untracked, 1)] {
        let warnings = Warnings("requests again by itself", Arc::default());
        let subscriber = tracing_subscriber::registry().with(warnings.clone());
        let _default = tracing::subscriber::set_default(subscriber);
        let maps: Api<ConfigMap> = Api::all(client);
        let controller = Controller::new(maps.clone(), watcher::Config::default())
            .watches(maps.clone(), watcher::Config::default(), |_: ConfigMap| {
                None
            })
            .watches(maps, watcher::Config::default(), |_: ConfigMap| None);
        let reconcile =
            |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, kube::Error>(Action::await_change()) };
        let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
        let run = run.for_each(|_| future::ready(()));
        assert!(timeout(Duration::from_secs(60), run).await.is_err());
        assert_eq!(warnings.1.load(SeqCst), times);
    }
}

/// A stream that goes through no store misses deletions in a gap, so a controller warns of it, once.
#[tokio::test(start_paused = true)]
async fn a_stream_without_a_store_is_told_once() {
    use homeostat::{WatchStreamExt, reflector};
    use tracing_subscriber::layer::SubscriberExt;

    let server = Server::new(1);
    for reflected in [false, true] {
        let warnings = Warnings("does not go through a store", Arc::default());
        let subscriber = tracing_subscriber::registry().with(warnings.clone());
        let _default = tracing::subscriber::set_default(subscriber);
        let maps: Api<ConfigMap> = Api::all(server.client(&Settings::default()));
        let watch = watcher(maps.clone(), watcher::Config::default()).default_backoff();
        let (_store, writer) = reflector::store();
        let objects = if reflected {
            watch.reflect(writer).touched_objects().boxed()
        } else {
            watch.touched_objects().boxed()
        };
        let controller = Controller::new(maps, watcher::Config::default()).owns_stream(objects);
        let reconcile =
            |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, kube::Error>(Action::await_change()) };
        let run = controller.run(reconcile, error_policy::backoff, Arc::new(()));
        let run = run.for_each(|_| future::ready(()));
        assert!(timeout(Duration::from_secs(60), run).await.is_err());
        assert_eq!(warnings.1.load(SeqCst), usize::from(!reflected));
    }
}

//! The HTTP server of a manager: probes and metrics, over a real socket.

#![cfg(feature = "metrics")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "an error here fails the test, which is all it can do"
)]

mod page;

use flate2::read::GzDecoder;
use futures::stream;
use homeostat::{
    Action, Config, Controller, Manager,
    client::Tracked,
    error_policy,
    leadership::LeaderElection,
    manager::{Error, METRICS, Phase, Server, Unit},
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{JoinHandle, yield_now},
};

/// A manager with a server, and what was asked of it.
struct Running {
    handle: homeostat::manager::Handle,
    address: SocketAddr,
    task: JoinHandle<Result<(), Error>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

fn server() -> Server {
    Server::on(([127, 0, 0, 1], 0).into())
}

async fn run(manager: Manager) -> Running {
    let handle = manager.handle();
    let task = tokio::spawn(manager.stop_on(stream::pending()).run());
    let address = loop {
        match handle.address() {
            Some(address) => break address,
            None => yield_now().await,
        }
    };
    Running {
        handle,
        address,
        task,
    }
}

impl Running {
    async fn ask(&self, head: &str) -> Answer {
        ask(self.address, head).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        ))
        .await
    }

    /// Asks until the answer has this status.
    async fn until(&self, path: &str, status: u16) -> Answer {
        loop {
            let answer = self.get(path).await;
            if answer.status == status {
                return answer;
            }
            yield_now().await;
        }
    }
}

async fn ask(address: SocketAddr, head: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    Answer {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: all[end + 4..].to_vec(),
    }
}

async fn maps(server: &ApiServer, count: usize) {
    let api = Api::<ConfigMap>::default_namespaced(server.client());
    for number in 0..count {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("map-{number}")),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        api.create(&PostParams::default(), &map).await.unwrap();
    }
}

fn controller(server: &ApiServer) -> Unit {
    controller_of(&server.client())
}

fn controller_of(client: &Client) -> Unit {
    let all = watcher::Config::default;
    let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), all())
        .owns(Api::<Secret>::all(client.clone()), all());
    let reconcile =
        |_: Arc<ConfigMap>, _: Arc<()>| async { Ok::<_, std::io::Error>(Action::await_change()) };
    Unit::new(controller.run(reconcile, error_policy::backoff, Arc::new(())))
}

#[tokio::test]
async fn readiness_says_what_it_waits_for() {
    let api = ApiServer::builder().build();
    let fault = api.faults().inject(
        Rule::any().resource("configmaps").verb(Verb::Watch),
        Fault::Hang,
    );
    let listing = api.faults().inject(
        Rule::any().resource("configmaps").verb(Verb::List),
        Fault::Hang,
    );
    let wanted = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&wanted);
    let server = server().ready_check("database", move || {
        let there = seen.load(Ordering::Relaxed);
        async move { if there { Ok(()) } else { Err("not migrated") } }
    });
    let manager = Manager::new(api.client())
        .add(controller(&api))
        .serve(server);
    let running = run(manager).await;
    let answer = running.until("/readyz", 500).await;
    let said = answer.text();
    assert!(
        said.contains("[-]database failed: not migrated\n"),
        "{said}"
    );
    assert!(said.ends_with("readyz check failed\n"), "{said}");
    loop {
        let said = running.get("/readyz").await.text();
        if said.contains("[-]configmap failed: configmaps in all namespaces: the first list") {
            break;
        }
        yield_now().await;
    }
    let answer = running.get("/healthz").await;
    assert_eq!(
        (answer.status, &*answer.text()),
        (200, "ok"),
        "a server that is slow is no reason"
    );
    wanted.store(true, Ordering::Relaxed);
    drop((fault, listing));
    api.faults().drop_watches();
    running.handle.stop();
}

#[tokio::test]
async fn probes_are_answered_while_it_runs() {
    let api = ApiServer::builder().build();
    maps(&api, 3).await;
    let manager = Manager::new(api.client())
        .add(controller(&api))
        .serve(server().health_check("disk", || async { Ok::<_, String>(()) }));
    let running = run(manager).await;
    let answer = running.until("/readyz", 200).await;
    assert_eq!(answer.text(), "ok");
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    let said = running.get("/readyz?verbose").await.text();
    for line in ["[+]ping ok\n", "[+]configmap ok\n", "readyz check passed\n"] {
        assert!(said.contains(line), "{said}");
    }
    let said = running.get("/healthz?verbose").await.text();
    for line in [
        "[+]ping ok\n",
        "[+]configmap ok\n",
        "[+]disk ok\n",
        "healthz check passed\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(running.get("/livez").await.status, 200);
    assert_eq!(running.get("/nothing").await.status, 404);
    let posted = running
        .ask("POST /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(
        (posted.status, &*posted.headers["allow"]),
        (405, "GET, HEAD")
    );
    let foreign = running
        .ask("GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(foreign.status, 421);
    let long = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "a".repeat(64 << 10)
    );
    assert_eq!(running.ask(&long).await.status, 431);
    let status = running.handle.status();
    let named: BTreeSet<_> = status.units.iter().map(|unit| &*unit.name).collect();
    assert_eq!(named, BTreeSet::from(["configmap", "http"]));
    assert!(
        status.units.iter().all(|unit| unit.phase == Phase::Running),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_port_that_is_taken_ends_it_at_once() {
    let api = ApiServer::builder().build();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let manager = Manager::new(api.client()).serve(taken.local_addr().unwrap());
    let error = manager.run().await.unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
}

/// The names and values of the series of a scrape.
fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    series.collect()
}

/// Series of a manager with a controller of three config maps, and what they are when all is done.
const EXPECTED: &[(&str, f64)] = &[
    ("shop_sites_deployed_total", 1.0),
    (
        "homeostat_cache_objects{watch=\"configmaps in all namespaces\"}",
        3.0,
    ),
    (
        "homeostat_watch_starts_total{watch=\"secrets in all namespaces\"}",
        1.0,
    ),
    (
        "homeostat_api_requests_total{verb=\"watch\",resource=\"configmaps\",code=\"200\"}",
        1.0,
    ),
    (
        "homeostat_api_request_duration_seconds_count{verb=\"watch\"}",
        2.0,
    ),
    (
        "homeostat_reconcile_errors_total{controller=\"configmap\",class=\"transient\"}",
        0.0,
    ),
    (
        "homeostat_max_concurrent_reconciles{controller=\"configmap\"}",
        16.0,
    ),
    ("homeostat_controller_ready{controller=\"configmap\"}", 1.0),
    (
        "homeostat_queue_depth{controller=\"configmap\",state=\"ready\"}",
        0.0,
    ),
    (
        "homeostat_reconcile_duration_seconds_count{controller=\"configmap\"}",
        3.0,
    ),
    (
        "homeostat_reconcile_duration_seconds_bucket{controller=\"configmap\",le=\"+Inf\"}",
        3.0,
    ),
];

// T39.
#[tokio::test]
async fn metrics_are_what_they_are_said_to_be() {
    let api = ApiServer::builder().build();
    maps(&api, 3).await;
    let mut registry = Registry::with_prefix("shop");
    let sites = Counter::<u64>::default();
    registry.register("sites_deployed", "Sites that were deployed", sites.clone());
    sites.inc();
    let client = Tracked::wrap(api.client());
    let manager = Manager::new(client.clone())
        .add(controller_of(&client))
        .leader_election(LeaderElection::new(client, "default", "operator"))
        .serve(server().metrics(registry));
    let running = run(manager).await;
    let scraped = loop {
        let scraped = running.get("/metrics").await;
        let done = "homeostat_reconciles_total{controller=\"configmap\",result=\"success\"}";
        if series(&scraped.text()).get(done) == Some(&3.0) {
            break scraped;
        }
        yield_now().await;
    };
    assert_eq!(
        scraped.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = scraped.text();
    let all = series(&text);
    for (name, value) in EXPECTED {
        assert_eq!(all.get(*name), Some(value), "{name} in\n{text}");
    }
    // Three config maps of some hundred bytes.
    let size = all["homeostat_cache_objects_size_bytes{watch=\"configmaps in all namespaces\"}"];
    assert!((300.0..3000.0).contains(&size), "{size}");
    assert!(
        all.keys().any(|name| name.starts_with("homeostat_leader")),
        "{text}"
    );
    assert!(all.len() < 200, "{}", all.len());
    lint(&text);

    let head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: \
                application/openmetrics-text; version=1.0.0\r\naccept-encoding: gzip;q=0.5\r\n\r\n";
    let open = running.ask(head).await;
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert_eq!(open.headers["content-encoding"], "gzip");
    let mut text = String::new();
    GzDecoder::new(&*open.body)
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
}

/// What `promtool check metrics` asks for: a help text, `_total` for counters and for nothing else, base units.
fn lint(text: &str) {
    let mut helped = BTreeSet::new();
    let mut types = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), help) => {
                assert!(help.is_some_and(|help| !help.is_empty()), "{line}");
                helped.insert(name.to_owned());
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                types.insert(name.to_owned(), kind.to_owned());
            }
            _ => {}
        }
    }
    let known: BTreeSet<_> = METRICS.iter().map(|name| (*name).to_owned()).collect();
    for (name, kind) in &types {
        assert!(helped.contains(name), "{name} has no help text");
        assert_eq!(
            name.ends_with("_total"),
            kind == "counter",
            "{name} is a {kind}"
        );
        for wrong in ["_ms", "_milliseconds", "_minutes", "_kb", "_percent"] {
            assert!(!name.contains(wrong), "{name}");
        }
        if name.starts_with("homeostat_") {
            assert!(known.contains(name), "{name} is not listed");
        }
    }
    // What is there only at times is not in every scrape.
    for name in known {
        let seldom = name == "homeostat_watch_last_event_age_seconds";
        assert!(types.contains_key(&name) || seldom, "{name} is not exposed");
    }
}

#[tokio::test]
async fn a_scrape_is_fast_and_small() {
    let api = ApiServer::builder().build();
    let mut manager = Manager::new(api.client()).serve(server());
    for number in 0..10 {
        manager = manager.add(controller(&api).named(format!("controller-{number}")));
    }
    let running = run(manager).await;
    running.until("/readyz", 200).await;
    let scraped = running.get("/metrics").await;
    let all = series(&scraped.text());
    assert!(all.len() < 1000, "{}", all.len());
    tokio::time::timeout(Duration::from_secs(5), running.get("/metrics"))
        .await
        .unwrap();
}

/// The same without tokio, for tests under paused time: it stands still as long as a thread blocks.
async fn probe(address: SocketAddr, path: &'static str) -> (u16, String) {
    let ask = move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// What `/healthz` says after three minutes with two slots, which runs of three objects hold.
async fn health_of<Fut>(
    api: &ApiServer,
    reconcile: impl Fn(Api<ConfigMap>, String) -> Fut + Send + 'static,
) -> (u16, String)
where
    Fut: Future<Output = Result<(), kube::Error>> + Send + 'static,
{
    let client = Tracked::wrap(api.client());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let all = Api::<ConfigMap>::all(client.clone());
    let controller = Controller::new(all, watcher::Config::default())
        .with_config(Config::default().concurrency(2));
    let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
        let run = reconcile(maps.clone(), map.name_any());
        async move { run.await.map(|()| Action::await_change()) }
    };
    let controller = controller.run(reconcile, error_policy::backoff, Arc::new(()));
    let running = run(Manager::new(client).add(controller).serve(server())).await;
    tokio::time::sleep(Duration::from_secs(180)).await;
    probe(running.address, "/healthz").await
}

#[tokio::test(start_paused = true)]
async fn health_fails_when_nothing_goes_on_and_not_because_the_server_is_slow() {
    let api = ApiServer::builder().build();
    maps(&api, 3).await;
    let (status, text) = health_of(&api, |_, _| std::future::pending()).await;
    assert_eq!(status, 500, "{text}");
    assert!(
        text.contains("[-]configmap failed: no slot becomes free"),
        "{text}"
    );

    for fault in [
        Fault::Hang,
        Fault::Delay(Duration::from_secs(14)),
        Fault::Unavailable,
        Fault::Refuse,
    ] {
        let rule = Rule::any().verb(Verb::Get).resource("configmaps");
        let slow = api.faults().inject(rule, fault.clone());
        let ask =
            |maps: Api<ConfigMap>, name: String| async move { maps.get(&name).await.map(drop) };
        let (status, text) = health_of(&api, ask).await;
        assert_eq!((status, &*text), (200, "ok"), "{fault:?}");
        assert!(slow.hits() > 0);
    }
    // Not even if it is away altogether.
    let _away = api.faults().inject(Rule::any(), Fault::Hang);
    let (status, text) = health_of(&api, |_, _| async { Ok(()) }).await;
    assert_eq!((status, &*text), (200, "ok"));
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn it_speaks_https_if_it_is_told_to() {
    use homeostat::manager::rustls::{
        ClientConfig, RootCertStore, ServerConfig, pki_types::ServerName,
    };
    use tokio_rustls::TlsConnector;

    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = signed.cert.der().clone();
    let key = signed.signing_key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let api = ApiServer::builder().build();
    let manager = Manager::new(api.client()).serve(server().tls(config));
    let running = run(manager).await;

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(running.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"),
        "{answer}"
    );

    // Whoever does not speak it gets no answer, and nobody else is held up.
    let mut plain = TcpStream::connect(running.address).await.unwrap();
    plain.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    // An alert, or nothing but the end.
    let _broken = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

// E56: an election that hangs from the start holds up neither probes nor the end.
#[tokio::test(start_paused = true)]
async fn probes_are_answered_while_the_election_hangs() {
    let api = ApiServer::builder().build();
    maps(&api, 1).await;
    let hang = api
        .faults()
        .inject(Rule::any().resource("leases"), Fault::Hang);
    let manager = Manager::new(api.client())
        .add(controller(&api))
        .leader_election(LeaderElection::new(api.client(), "default", "operator"))
        .serve(server());
    let mut running = run(manager).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(hang.hits() > 1);
    assert_eq!(probe(running.address, "/healthz").await, (200, "ok".into()));
    let (status, text) = probe(running.address, "/readyz").await;
    assert_eq!(status, 200, "its caches are warm: {text}");
    running.handle.stop();
    let ended = tokio::time::timeout(Duration::from_secs(10), &mut running.task).await;
    ended.unwrap().unwrap().unwrap();
}

//! Two managers in random worlds: requests that are slow, lost, or answered in vain, whole processes that are paused,
//! networks that are cut, and clocks that show different times.
//!
//! Each replica has a tokio runtime of its own with paused time, and all of them take turns in one thread. A replica that
//! gets no turn is one whose process is stopped: nothing in it goes on, and when it gets a turn again its clock has gone
//! on. `HOMEOSTAT_SEEDS=10000` plays more worlds than are played by default, `HOMEOSTAT_SEED=7` plays one.

use futures::stream;
use homeostat::{
    Action, Controller, Manager, client::Tracked, error_policy, leadership::LeaderElection,
    manager::Handle, watcher,
};
use homeostat_apiserver::{ApiServer, ResponseBody, Service};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::{advance, sleep},
};
use tower::{BoxError, ServiceExt};

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// How long a turn is.
pub(super) const TURN: Duration = Duration::from_millis(200);
/// How many turns are full of trouble, and how many calm ones follow.
const TROUBLE: u32 = 60 * 5;
const CALM: u32 = 30 * 5;
/// Within how many turns something is reconciled then: a request that was sent into silence takes 30 s, and so does the
/// delay after it.
const WORKS_WITHIN: u32 = 90 * 5;
/// A lease and a retry, counted from when a candidate can read the lease: a request that was sent before has up to 5 s, and the
/// next one comes after a retry. The rest is for turns, of which each request takes a few.
const FOUND_WITHIN: Duration = Duration::from_secs(15 + 2 + 5 + 2 + 2);
const OBJECTS: [&str; 2] = ["a", "b"];
const REPLICAS: [&str; 2] = ["one", "two"];

pub(super) fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    match (number("HOMEOSTAT_SEED"), number("HOMEOSTAT_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(25),
    }
}

/// What all replicas have done.
#[derive(Default)]
struct Record {
    /// How many steps there were.
    steps: u64,
    /// The latest step of each replica.
    latest: BTreeMap<&'static str, u64>,
    /// Who has made the latest step of all.
    works: Option<&'static str>,
    handovers: usize,
    doubled: Vec<String>,
}

/// One run of a reconciler.
struct Step {
    record: Arc<Mutex<Record>>,
    who: &'static str,
    began: u64,
}

impl Step {
    fn begin(record: &Arc<Mutex<Record>>, who: &'static str) -> Self {
        let began = record.lock().unwrap().steps + 1;
        let step = Self {
            record: Arc::clone(record),
            who,
            began,
        };
        step.go_on();
        step
    }

    /// The run goes on at this moment. Nobody else may have gone on since it began.
    fn go_on(&self) {
        let mut record = self.record.lock().unwrap();
        record.steps += 1;
        let now = record.steps;
        for (other, latest) in record.latest.clone() {
            if other != self.who && latest > self.began {
                let what = format!("{} goes on after {other}, which it began before", self.who);
                record.doubled.push(what);
            }
        }
        record.latest.insert(self.who, now);
        if record.works.is_some_and(|works| works != self.who) {
            record.handovers += 1;
        }
        record.works = Some(self.who);
    }
}

/// What is wrong with a replica's network.
#[derive(Debug, Clone, Copy)]
pub(super) enum Network {
    Fine,
    /// Nothing comes through, and nothing is said of that.
    Silent,
    Refused,
    /// Requests arrive, and answers do not.
    LostAnswers,
    Slow(Duration),
}

pub(super) type Link = Arc<Mutex<Network>>;

pub(super) async fn through(
    link: Link,
    server: Service,
    request: http::Request<Body>,
) -> Result<http::Response<ResponseBody>, BoxError> {
    let network = *link.lock().unwrap();
    let refused = || io::Error::from(io::ErrorKind::ConnectionReset);
    match network {
        Network::Silent => {
            sleep(30 * SECOND).await;
            return Err(refused().into());
        }
        Network::Refused => return Err(refused().into()),
        Network::Slow(delay) => sleep(delay).await,
        Network::Fine | Network::LostAnswers => {}
    }
    let answer = server.oneshot(request).await?;
    if let Network::Slow(delay) = network {
        sleep(delay).await;
    }
    if matches!(network, Network::LostAnswers) {
        return Err(refused().into());
    }
    Ok(answer)
}

struct Replica {
    runtime: Runtime,
    handle: Handle,
    link: Link,
    /// For how many turns it is stopped, and how long it has been.
    stopped: u32,
    missed: Duration,
}

impl Replica {
    fn start(
        server: &ApiServer,
        who: &'static str,
        offset: Duration,
        record: &Arc<Mutex<Record>>,
    ) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.unwrap();
        let link: Link = Arc::new(Mutex::new(Network::Fine));
        let handle = runtime.block_on(async {
            // Its clock shows another time than that of the others.
            advance(offset).await;
            let client = || {
                let (link, server) = (Arc::clone(&link), server.service());
                let service = tower::service_fn(move |request| {
                    through(Arc::clone(&link), server.clone(), request)
                });
                Tracked::wrap(Client::new(service, "default"))
            };
            let election = LeaderElection::new(client(), "default", "operator").identity(who);
            let manager = manager(client(), who, record).leader_election(election);
            let handle = manager.handle();
            drop(tokio::spawn(manager.run()));
            handle
        });
        Self {
            runtime,
            handle,
            link,
            stopped: 0,
            missed: Duration::ZERO,
        }
    }

    /// Lets a turn's time pass.
    fn turn(&mut self) {
        if self.stopped > 0 {
            self.stopped -= 1;
            self.missed += TURN;
            return;
        }
        let passed = TURN + std::mem::take(&mut self.missed);
        self.runtime.block_on(async {
            // All that is due comes at once, and sees how late it is.
            advance(passed).await;
            for _ in 0..40 {
                yield_now().await;
            }
        });
    }

    fn leads(&self) -> bool {
        self.runtime.block_on(async {
            self.handle
                .leadership()
                .is_some_and(|leadership| leadership.is_leader())
        })
    }
}

/// A manager whose runs take a while, write, and are asked for again.
fn manager(client: Client, who: &'static str, record: &Arc<Mutex<Record>>) -> Manager {
    let maps = Controller::new(
        Api::<ConfigMap>::all(client.clone()),
        watcher::Config::default(),
    );
    let (writing, record) = (client.clone(), Arc::clone(record));
    let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
        let (maps, record) = (
            Api::<ConfigMap>::default_namespaced(writing.clone()),
            Arc::clone(&record),
        );
        async move {
            let step = Step::begin(&record, who);
            for _ in 0..4 {
                sleep(SECOND).await;
                step.go_on();
            }
            let patch =
                Patch::Merge(json!({ "data": { "by": who, "step": step.began.to_string() } }));
            maps.patch(&map.name_any(), &PatchParams::default(), &patch)
                .await?;
            step.go_on();
            Ok::<_, kube::Error>(Action::requeue(2 * SECOND))
        }
    };
    Manager::new(client)
        .add(maps.run(reconcile, error_policy::backoff, Arc::new(())))
        .stop_on(stream::pending())
}

/// What goes wrong next.
fn meddle(replica: &mut Replica, random: &mut fastrand::Rng) {
    let network = match random.u32(0..120) {
        0 => Network::Silent,
        1 => Network::Refused,
        2 => Network::LostAnswers,
        3 => Network::Slow(Duration::from_millis(random.u64(100..8_000))),
        4..=5 => Network::Fine,
        8 => {
            // Up to half a minute, which is twice the lease.
            replica.stopped = random.u32(1..150);
            return;
        }
        9 if random.bool() => {
            let handle = replica.handle.clone();
            replica.runtime.block_on(async { handle.step_down() });
            return;
        }
        _ => return,
    };
    *replica.link.lock().unwrap() = network;
}

/// Plays a world, and says how often leadership has changed hands.
fn play(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    fastrand::seed(seed);
    let server = ApiServer::builder().build();
    let record = Arc::<Mutex<Record>>::default();
    let outside = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    outside.block_on(async {
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
        for name in OBJECTS {
            let metadata = ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap {
                metadata,
                ..ConfigMap::default()
            };
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
    });
    let mut replicas = REPLICAS.map(|who| {
        let offset = Duration::from_secs(random.u64(0..7200));
        Replica::start(&server, who, offset, &record)
    });
    for _ in 0..TROUBLE {
        for replica in &mut replicas {
            meddle(replica, &mut random);
            replica.turn();
        }
        assert_sound(seed, &record);
    }
    // All is well from here on.
    for replica in &mut replicas {
        replica.stopped = 0;
        *replica.link.lock().unwrap() = Network::Fine;
    }
    let mut waited = Duration::ZERO;
    for _ in 0..CALM {
        for replica in &mut replicas {
            replica.turn();
        }
        assert_sound(seed, &record);
        if replicas.iter().any(Replica::leads) {
            break;
        }
        waited += TURN;
    }
    assert!(
        waited <= FOUND_WITHIN,
        "seed {seed}: nobody leads after {waited:?}"
    );
    // It works, too, when what has failed before is tried again.
    let before = record.lock().unwrap().steps;
    for _ in 0..WORKS_WITHIN {
        for replica in &mut replicas {
            replica.turn();
        }
        assert_sound(seed, &record);
        if record.lock().unwrap().steps > before + 10 {
            break;
        }
    }
    let record = record.lock().unwrap();
    assert!(
        record.steps > before + 10,
        "seed {seed}: nothing runs any more"
    );
    record.handovers
}

fn assert_sound(seed: u64, record: &Mutex<Record>) {
    let doubled = &record.lock().unwrap().doubled;
    assert!(doubled.is_empty(), "seed {seed}: {doubled:?}");
}

#[test]
fn two_managers_never_run_at_once_and_a_leader_is_found_again() {
    let seeds = seeds();
    let count = seeds.clone().count();
    let handovers: usize = seeds.map(play).sum();
    println!("{count} worlds, {handovers} hand-overs");
    // Without hand-overs there was nothing to be seen. One world may well have none.
    assert!(
        count < 25 || handovers > 0,
        "no hand-over in {count} worlds"
    );
}

//! Managers that share the objects of their controllers: in one runtime, and in random worlds like those of two managers that
//! elect a leader.

use super::managers::{Link, Network, SECOND, TURN, seeds, through};
use futures::stream;
use homeostat::{
    Action, Controller, Manager, client::Tracked, error_policy, manager::Handle, reflector::Store,
    sharding::Sharding, watcher,
};
use homeostat_apiserver::{ApiServer, Config, Verb};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, yield_now},
    time::{advance, sleep},
};

/// How many objects there are.
const OBJECTS: usize = 12;
/// How many turns are full of trouble.
const TROUBLE: u32 = 60 * 5;
/// Within how many turns each object has an owner that works: requests that were sent into silence, the leases of those who are
/// gone, an attempt to join, and the end of the runs that go on.
const SETTLED_WITHIN: u32 = (15 + 5 + 4 + 4 + 10) * 5;
/// Within how many turns each is reconciled then: a watch that is silent is given up after a while.
const WORKS_WITHIN: u32 = 90 * 5;

/// What all replicas have done, by object.
#[derive(Default)]
struct Record {
    steps: u64,
    objects: BTreeMap<String, Steps>,
    doubled: Vec<String>,
    handovers: usize,
}

#[derive(Default)]
struct Steps {
    count: u64,
    /// The latest step of each replica.
    latest: BTreeMap<String, u64>,
    by: Option<String>,
}

/// One run of a reconciler.
struct Step {
    record: Arc<Mutex<Record>>,
    who: String,
    object: String,
    began: u64,
}

impl Step {
    fn begin(record: &Arc<Mutex<Record>>, who: &str, object: String) -> Self {
        let began = record.lock().unwrap().steps + 1;
        let step = Self {
            record: Arc::clone(record),
            who: who.to_owned(),
            object,
            began,
        };
        step.go_on();
        step
    }

    /// The run goes on at this moment. Nobody else may have gone on with the object since it began.
    fn go_on(&self) {
        let mut record = self.record.lock().unwrap();
        let record = &mut *record;
        record.steps += 1;
        let now = record.steps;
        let steps = record.objects.entry(self.object.clone()).or_default();
        steps.count += 1;
        for (other, latest) in &steps.latest {
            if *other != self.who && *latest > self.began {
                let Self { who, object, .. } = self;
                record.doubled.push(format!(
                    "{who} goes on with {object} after {other}, which it began before"
                ));
            }
        }
        steps.latest.insert(self.who.clone(), now);
        if steps.by.as_ref().is_some_and(|by| *by != self.who) {
            record.handovers += 1;
        }
        steps.by = Some(self.who.clone());
    }
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

async fn create_objects(server: &ApiServer) -> Vec<String> {
    let mut uids = Vec::new();
    for index in 0..OBJECTS {
        uids.push(create_object(server, index).await);
    }
    uids
}

/// Creates an object, and gives its uid.
async fn create_object(server: &ApiServer, index: usize) -> String {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("map-{index}")),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let map = maps(server.client())
        .create(&PostParams::default(), &map)
        .await;
    map.unwrap().uid().unwrap()
}

/// A manager whose runs take a while, write, and are asked for again.
fn manager(
    client: Client,
    leases: Client,
    who: &str,
    takes: u32,
    record: &Arc<Mutex<Record>>,
) -> (Manager, Store<ConfigMap>) {
    let all = watcher::Config::default;
    let (writing, record) = (client.clone(), Arc::clone(record));
    let name = who.to_owned();
    let reconcile = move |map: Arc<ConfigMap>, _: Arc<()>| {
        let (maps, record, who) = (maps(writing.clone()), Arc::clone(&record), name.clone());
        async move {
            let step = Step::begin(&record, &who, map.name_any());
            for _ in 0..takes {
                sleep(SECOND).await;
                step.go_on();
            }
            if takes > 0 {
                let patch = json!({ "data": { "by": who, "step": step.began.to_string() } });
                maps.patch(
                    &map.name_any(),
                    &PatchParams::default(),
                    &Patch::Merge(patch),
                )
                .await?;
            }
            step.go_on();
            Ok::<_, kube::Error>(Action::requeue(5 * SECOND))
        }
    };
    let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), all())
        .owns(Api::<Secret>::all(client.clone()), all());
    let store = controller.store();
    let controller = controller.run(reconcile, error_policy::backoff, Arc::new(()));
    let manager = Manager::new(client)
        .add(controller)
        .sharded(Sharding::new(leases, "default", "operator").identity(who))
        .stop_on(stream::pending());
    (manager, store)
}

/// A manager in the runtime of the test.
struct Member {
    handle: Handle,
    store: Store<ConfigMap>,
    task: JoinHandle<Result<(), homeostat::manager::Error>>,
}

impl Member {
    fn start(server: &ApiServer, who: &str, takes: u32, record: &Arc<Mutex<Record>>) -> Self {
        let client = || Tracked::wrap(server.client());
        let (manager, store) = manager(client(), client(), who, takes, record);
        Self {
            handle: manager.handle(),
            store,
            task: tokio::spawn(manager.run()),
        }
    }

    fn owns(&self, uid: &str) -> bool {
        owns(&self.handle, uid)
    }
}

fn owns(handle: &Handle, uid: &str) -> bool {
    handle
        .membership()
        .is_some_and(|member| member.runs() && member.owns(uid))
}

/// How many members own each object, and work.
fn owners(members: &[Member], uids: &[String]) -> Vec<usize> {
    let count = |uid: &String| members.iter().filter(|member| member.owns(uid)).count();
    uids.iter().map(count).collect()
}

fn assert_sound(record: &Mutex<Record>) {
    let doubled = &record.lock().unwrap().doubled;
    assert!(doubled.is_empty(), "{doubled:?}");
}

#[tokio::test(start_paused = true)]
async fn objects_are_divided_and_only_those_move_that_have_to() {
    let server = ApiServer::builder().build();
    let uids = create_objects(&server).await;
    let record = Arc::<Mutex<Record>>::default();
    let mut members = vec![Member::start(&server, "one", 1, &record)];
    sleep(5 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    members.push(Member::start(&server, "two", 1, &record));
    sleep(10 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    let before: Vec<bool> = uids.iter().map(|uid| members[0].owns(uid)).collect();
    assert!(before.contains(&true) && before.contains(&false));
    members.push(Member::start(&server, "three", 1, &record));
    sleep(10 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    for (uid, by_first) in uids.iter().zip(&before) {
        let moved_to_an_old_one =
            members[0].owns(uid) && !by_first || members[1].owns(uid) && *by_first;
        assert!(!moved_to_an_old_one, "{uid} moved between those who stayed");
    }
    let status = members[0].handle.status();
    let sharding = status.sharding.unwrap();
    assert_eq!(sharding.members, ["one", "three", "two"]);
    assert!(status.ready && sharding.runs && sharding.awaits.is_empty());

    // One is told to stop: the others have its objects within two attempts.
    let first = members.remove(0);
    first.handle.stop();
    first.task.await.unwrap().unwrap();
    sleep(5 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    // One crashes: the other has its objects after its lease.
    let second = members.remove(0);
    second.task.abort();
    sleep(10 * SECOND).await;
    assert_ne!(owners(&members, &uids), [1; OBJECTS], "it may live");
    sleep(10 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    assert_sound(&record);
    sleep(60 * SECOND).await;
    let leases: Api<Lease> = Api::namespaced(server.client(), "default");
    let leases = leases.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        leases.items.len(),
        1,
        "those who are gone are cleaned up after"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_cancelled_when_its_object_moves() {
    let server = ApiServer::builder().build();
    let uids = create_objects(&server).await;
    let record = Arc::<Mutex<Record>>::default();
    let first = Member::start(&server, "one", 3600, &record);
    sleep(5 * SECOND).await;
    let second = Member::start(&server, "two", 1, &record);
    sleep(8 * SECOND).await;
    let members = [first, second];
    assert!(
        members[1]
            .handle
            .membership()
            .is_some_and(|member| !member.runs())
    );
    assert_eq!(members[1].handle.status().sharding.unwrap().awaits, ["one"]);
    sleep(20 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    let ended = maps(server.client())
        .list(&ListParams::default())
        .await
        .unwrap();
    let by_second = ended
        .iter()
        .filter(|map| map.data.as_ref().is_some_and(|data| data["by"] == "two"));
    let owned = uids.iter().filter(|uid| members[1].owns(uid)).count();
    assert_eq!(by_second.count(), owned);
    assert_sound(&record);
}

#[tokio::test(start_paused = true)]
async fn children_concern_the_member_that_has_the_owner() {
    let server = ApiServer::builder().build();
    let uids = create_objects(&server).await;
    let record = Arc::<Mutex<Record>>::default();
    let members = ["one", "two"].map(|who| Member::start(&server, who, 0, &record));
    sleep(12 * SECOND).await;
    assert_eq!(owners(&members, &uids), [1; OBJECTS]);
    let map = maps(server.client()).get("map-0").await.unwrap();
    let before = record.lock().unwrap().objects["map-0"].count;
    let owner = map.controller_owner_ref(&()).unwrap();
    let child = Secret {
        metadata: ObjectMeta {
            name: Some("child".into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::default_namespaced(server.client());
    secrets
        .create(&PostParams::default(), &child)
        .await
        .unwrap();
    sleep(Duration::from_millis(100)).await;
    let record = record.lock().unwrap();
    let steps = &record.objects["map-0"];
    assert!(steps.count > before, "the child's event leads to a run");
    assert_eq!(steps.latest.len(), 1, "and only where the owner is");
    assert!(record.doubled.is_empty());
}

// The server selects what a member asks for, where it can.
#[tokio::test(start_paused = true)]
async fn a_server_that_selects_sends_each_member_its_share() {
    for selects in [true, false] {
        let mut config = Config::default();
        config.sharded_list_and_watch = selects;
        let server = ApiServer::builder().config(config).build();
        let mut uids = Vec::new();
        for number in 0..60 {
            uids.push(create_object(&server, number).await);
        }
        let record = Arc::<Mutex<Record>>::default();
        let mut members: Vec<Member> = ["one", "two", "three"]
            .map(|who| Member::start(&server, who, 0, &record))
            .into();
        sleep(20 * SECOND).await;
        let owned = |member: &Member| uids.iter().filter(|uid| member.owns(uid)).count();
        let held = |members: &[Member]| -> Vec<usize> {
            let stores = members.iter().map(|member| &member.store);
            stores.map(Store::len).collect()
        };
        let shares: Vec<usize> = members.iter().map(owned).collect();
        assert_eq!(shares.iter().sum::<usize>(), 60);
        let expected = if selects { shares } else { vec![60; 3] };
        assert_eq!(held(&members), expected);
        let runs = |record: &Mutex<Record>| record.lock().unwrap().objects.len();
        assert_eq!(runs(&record), 60);
        // What comes is sent where it belongs.
        create_object(&server, 60).await;
        sleep(Duration::from_millis(100)).await;
        let all = if selects { 61 } else { 3 * 61 };
        assert_eq!(held(&members).iter().sum::<usize>(), all);
        assert_eq!(runs(&record), 61);

        // The shares of those who stay grow, and they list anew for that only where it is of use.
        let lists = || {
            let all = server.requests().all();
            let of_maps =
                |verb: Verb, resource: &str| verb == Verb::List && resource == "configmaps";
            let lists = all.iter().filter(|one| of_maps(one.verb, &one.resource));
            lists.count()
        };
        let before = lists();
        let gone = members.remove(0);
        gone.handle.stop();
        gone.task.await.unwrap().unwrap();
        sleep(20 * SECOND).await;
        assert_eq!(lists() - before, if selects { 2 } else { 0 });
        let all = if selects { 61 } else { 2 * 61 };
        assert_eq!(held(&members).iter().sum::<usize>(), all);
        let counts = |record: &Mutex<Record>| -> Vec<u64> {
            let record = record.lock().unwrap();
            record.objects.values().map(|steps| steps.count).collect()
        };
        let before = counts(&record);
        sleep(10 * SECOND).await;
        let after = counts(&record);
        let mut both = before.iter().zip(&after);
        assert!(both.all(|(before, after)| before < after), "all go on");
        assert_sound(&record);
    }
}

/// A manager in a process of its own.
struct Replica {
    runtime: Runtime,
    handle: Handle,
    link: Link,
    /// For how many turns it is stopped, and how long it has been.
    stopped: u32,
    missed: Duration,
}

impl Replica {
    fn start(server: &ApiServer, who: &str, offset: Duration, record: &Arc<Mutex<Record>>) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
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
            let (manager, _) = manager(client(), client(), who, 3, record);
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

    fn owns(&self, uid: &str) -> bool {
        self.runtime.block_on(async { owns(&self.handle, uid) })
    }
}

/// What goes wrong next. Whether the process is killed.
fn meddle(replica: &mut Replica, random: &mut fastrand::Rng) -> bool {
    let network = match random.u32(0..160) {
        0 => Network::Silent,
        1 => Network::Refused,
        2 => Network::LostAnswers,
        3 => Network::Slow(Duration::from_millis(random.u64(100..8_000))),
        4..=6 => Network::Fine,
        8 => {
            // Up to half a minute, which is twice the lease.
            replica.stopped = random.u32(1..150);
            return false;
        }
        9 => return random.bool(),
        _ => return false,
    };
    *replica.link.lock().unwrap() = network;
    false
}

/// Plays a world, and says how often objects have moved.
#[expect(
    clippy::too_many_lines,
    reason = "one world from its beginning to its end"
)]
fn play(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    fastrand::seed(seed);
    let mut config = Config::default();
    // Half of the servers select.
    config.sharded_list_and_watch = seed.is_multiple_of(2);
    let server = ApiServer::builder().config(config).build();
    let record = Arc::<Mutex<Record>>::default();
    let outside = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let uids = outside.block_on(create_objects(&server));
    let mut lives = 0;
    let mut start = |random: &mut fastrand::Rng| {
        lives += 1;
        let offset = Duration::from_secs(random.u64(0..7200));
        Replica::start(&server, &format!("replica-{lives}"), offset, &record)
    };
    let mut replicas: Vec<Replica> = (0..3).map(|_| start(&mut random)).collect();
    let sound = || {
        let doubled = &record.lock().unwrap().doubled;
        assert!(doubled.is_empty(), "seed {seed}: {doubled:?}");
    };
    for _ in 0..TROUBLE {
        for replica in &mut replicas {
            if meddle(replica, &mut random) {
                // Another process takes its place.
                *replica = start(&mut random);
            }
            replica.turn();
        }
        sound();
    }
    // All is well from here on.
    for replica in &mut replicas {
        replica.stopped = 0;
        *replica.link.lock().unwrap() = Network::Fine;
    }
    let owned_once = |replicas: &[Replica]| {
        uids.iter()
            .all(|uid| replicas.iter().filter(|replica| replica.owns(uid)).count() == 1)
    };
    let mut turns = 0;
    while !owned_once(&replicas) {
        assert!(
            turns < SETTLED_WITHIN,
            "seed {seed}: not all objects have an owner"
        );
        for replica in &mut replicas {
            replica.turn();
        }
        sound();
        turns += 1;
    }
    // It works, too, when what has failed before is tried again.
    let counts = || -> Vec<u64> {
        let record = record.lock().unwrap();
        record.objects.values().map(|steps| steps.count).collect()
    };
    let before = counts();
    let all_go_on = || {
        counts()
            .iter()
            .zip(&before)
            .all(|(now, before)| now > before)
    };
    for _ in 0..WORKS_WITHIN {
        if all_go_on() {
            break;
        }
        for replica in &mut replicas {
            replica.turn();
        }
        sound();
    }
    assert!(all_go_on(), "seed {seed}: some objects do not run any more");
    record.lock().unwrap().handovers
}

#[test]
fn no_object_is_run_by_two_managers_and_each_by_one() {
    let seeds = seeds();
    let count = seeds.clone().count();
    // A world of these takes longer than one with two managers.
    let seeds = if count == 25 { 0..10 } else { seeds };
    let count = seeds.clone().count();
    let handovers: usize = seeds.map(play).sum();
    println!("{count} worlds, {handovers} objects moved");
    assert!(
        count < 10 || handovers > 0,
        "nothing moved in {count} worlds"
    );
}

//! The whole operator on the embedded server, under paused time.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use database::{
    Context, Database, RECONCILED,
    status::{BACKED_UP, READY, RESIZED, SCALED},
};
use futures::StreamExt;
use homeostat::{
    client::Tracked,
    clock::{self, Started},
    conditions,
    wait::{await_condition_within, conditions::is_deleted},
};
use homeostat_apiserver::{ApiServer, Fate, PodRule, TokioClock};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Pod, Secret},
        storage::v1::StorageClass,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt::Debug, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::sleep};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A cluster, with the operator in it.
struct World {
    server: ApiServer,
    client: Client,
    operator: JoinHandle<()>,
    _time: Started,
}

impl Drop for World {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

impl World {
    async fn new() -> Self {
        let start = "2026-01-01T06:00:00Z".parse().unwrap();
        let time = clock::start_at(start);
        let server = ApiServer::builder()
            .workloads(true)
            .clock(TokioClock::starting_at(start))
            .build();
        let client = server.client();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = Database::crd();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let established = conditions::is_crd_established();
        await_condition_within(definitions, &definition.name_any(), established, MINUTE)
            .await
            .unwrap();
        let classes: Api<StorageClass> = Api::all(client.clone());
        let class: StorageClass = serde_json::from_value(json!({
            "metadata": { "name": "standard" },
            "provisioner": "example.com/volumes",
            "allowVolumeExpansion": true,
        }))
        .unwrap();
        classes
            .create(&PostParams::default(), &class)
            .await
            .unwrap();
        let operator = Self::start(&server);
        Self {
            server,
            client,
            operator,
            _time: time,
        }
    }

    fn start(server: &ApiServer) -> JoinHandle<()> {
        let client = Tracked::wrap(server.client());
        let runs = database::controller(Arc::new(Context::new(client)));
        tokio::spawn(runs.for_each(|_| std::future::ready(())))
    }

    /// The operator crashes, and is down for a while.
    async fn restart(&mut self, pause: Duration) {
        self.operator.abort();
        sleep(pause).await;
        self.operator = Self::start(&self.server);
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, spec: Value) -> Database {
        let mut db: Database = serde_saphyr::from_str(database::SAMPLE).unwrap();
        let mut whole = json!(db.spec);
        whole["storageClass"] = json!("standard");
        for (name, value) in spec.as_object().unwrap() {
            whole[name] = value.clone();
        }
        db.spec = serde_json::from_value(whole).unwrap();
        self.api()
            .create(&PostParams::default(), &db)
            .await
            .unwrap()
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let databases: Api<Database> = self.api();
        databases
            .patch("orders", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    async fn delete(&self) {
        let databases: Api<Database> = self.api();
        databases
            .delete("orders", &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Waits until a condition has this reason.
    async fn until(&self, type_: &str, reason: &str) -> Database {
        let wanted = |db: Option<&Database>| db.is_some_and(|db| told(db, type_) == reason);
        let found = await_condition_within(self.api::<Database>(), "orders", wanted, HOUR).await;
        match found {
            Ok(db) => db.unwrap(),
            Err(error) => panic!(
                "{type_} is never {reason}: {error}; {:?}",
                self.database().await.status
            ),
        }
    }

    /// Waits until all is as wanted, in the present generation.
    async fn settled(&self) -> Database {
        let wanted = |db: Option<&Database>| {
            db.is_some_and(|db| {
                let observed = db
                    .status
                    .as_ref()
                    .and_then(|status| status.observed_generation);
                observed == db.metadata.generation
                    && [
                        (READY, "Available"),
                        (SCALED, "AsWanted"),
                        (RESIZED, "AsWanted"),
                        (BACKED_UP, "Succeeded"),
                    ]
                    .iter()
                    .all(|(type_, reason)| told(db, type_) == *reason)
            })
        };
        let found = await_condition_within(self.api::<Database>(), "orders", wanted, HOUR).await;
        match found {
            Ok(db) => db.unwrap(),
            Err(error) => panic!("{error}: {:?}", self.database().await.status),
        }
    }

    async fn database(&self) -> Database {
        self.api().get("orders").await.unwrap()
    }

    async fn gone(&self, db: &Database) {
        let deleted = is_deleted(db.metadata.uid.as_deref().unwrap());
        await_condition_within(self.api::<Database>(), "orders", deleted, HOUR)
            .await
            .unwrap();
    }

    async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let objects = self.api::<K>().list(&ListParams::default()).await.unwrap();
        objects.iter().map(ResourceExt::name_any).collect()
    }

    async fn sizes(&self) -> Vec<String> {
        let claims: Api<PersistentVolumeClaim> = self.api();
        let claims = claims.list(&ListParams::default()).await.unwrap();
        claims
            .iter()
            .map(|claim| {
                let capacity = claim.status.as_ref().unwrap().capacity.as_ref().unwrap();
                capacity["storage"].0.clone()
            })
            .collect()
    }

    async fn password(&self) -> Vec<u8> {
        let secret: Secret = self.api().get("orders-login").await.unwrap();
        secret.data.unwrap()["password"].0.clone()
    }
}

/// The reason of a condition; empty if there is none.
fn told(db: &Database, type_: &str) -> String {
    let conditions = db
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let found = conditions::get(conditions.unwrap_or_default(), type_);
    found
        .map(|condition| condition.reason.clone())
        .unwrap_or_default()
}

const CLAIMS: [&str; 3] = ["data-orders-0", "data-orders-1", "data-orders-2"];

#[tokio::test(start_paused = true)]
async fn a_database_comes_up_and_rests() {
    let mut world = World::new().await;
    world.create(json!({})).await;
    let db = world.settled().await;
    assert_eq!(world.names::<PersistentVolumeClaim>().await, CLAIMS[..2]);
    assert_eq!(world.sizes().await, ["10Gi", "10Gi"]);
    assert_eq!(world.names::<Job>().await, ["orders-backup-29453760"]);
    let status = db.status.as_ref().unwrap();
    assert_eq!(status.ready_replicas, Some(2));
    assert_eq!(
        status.last_backup.as_ref().unwrap().0.to_string(),
        "2026-01-01T00:00:00Z"
    );
    let password = world.password().await;
    assert_eq!(password.len(), 32);

    let writes = world.server.requests().writes();
    world.restart(10 * MINUTE).await;
    sleep(HOUR).await;
    assert_eq!(world.server.requests().writes(), writes);
    assert_eq!(world.password().await, password);
}

#[tokio::test(start_paused = true)]
async fn names_and_sizes_that_nobody_can_make_are_refused() {
    let world = World::new().await;
    let mut db: Database = serde_saphyr::from_str(database::SAMPLE).unwrap();
    for (name, storage, expected) in [
        ("x".repeat(41), "1Gi", "at most 40 letters"),
        ("1st".to_owned(), "1Gi", "begins with a letter"),
        ("my.db".to_owned(), "1Gi", "letters, digits and dashes"),
        ("db".to_owned(), "1.5Gi", "spec.storage"),
        ("db".to_owned(), "lots", "spec.storage"),
    ] {
        db.metadata.name = Some(name);
        db.spec.storage.0 = storage.to_owned();
        let refused = world
            .api::<Database>()
            .create(&PostParams::default(), &db)
            .await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

/// The volume grows first, and its file system when a pod runs with it.
#[tokio::test(start_paused = true)]
async fn a_volume_grows_step_by_step() {
    let world = World::new().await;
    world.create(json!({})).await;
    world.settled().await;
    // No pod comes up any more.
    let no_node = world
        .server
        .workloads()
        .inject(PodRule::any().name_start("orders-1"), Fate::Unschedulable);
    let pods: Api<Pod> = world.api();
    pods.delete("orders-1", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    world.until(READY, "Progressing").await;
    world.change(json!({ "storage": "20Gi" })).await;
    let db = world.until(RESIZED, "AwaitingPod").await;
    assert_eq!(world.sizes().await, ["20Gi", "10Gi"]);
    assert_eq!(db.status.unwrap().storage.unwrap().0, "10Gi");
    drop(no_node);
    let db = world.settled().await;
    assert_eq!(world.sizes().await, ["20Gi", "20Gi"]);
    assert_eq!(db.status.unwrap().storage.unwrap().0, "20Gi");
}

/// What cannot be done is told, and everything else is done.
#[tokio::test(start_paused = true)]
async fn a_smaller_size_is_refused_and_waits_for_a_change() {
    let world = World::new().await;
    world.create(json!({})).await;
    world.settled().await;
    world
        .change(json!({ "storage": "5Gi", "replicas": 3 }))
        .await;
    let db = world.until(RESIZED, "ShrinkRefused").await;
    let conditions = db.status.unwrap().conditions;
    let message = &conditions::get(&conditions, RESIZED).unwrap().message;
    assert_eq!(
        message,
        "Volumes have 10Gi and cannot shrink to 5Gi: set spec.storage to 10Gi or more"
    );
    world.until(READY, "Available").await;
    sleep(MINUTE).await;
    assert_eq!(world.sizes().await, ["10Gi", "10Gi", "10Gi"]);
    let writes = world.server.requests().writes();
    sleep(12 * HOUR).await;
    assert_eq!(world.server.requests().writes(), writes, "it rests");
    world.change(json!({ "storage": "10Gi" })).await;
    world.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_volume_goes_only_after_a_backup_that_succeeded() {
    let mut world = World::new().await;
    world.create(json!({ "replicas": 3 })).await;
    world.settled().await;
    let broken = world.server.workloads().inject(
        PodRule::any().name_start("orders-backup-before"),
        Fate::Fail,
    );
    world.change(json!({ "replicas": 2 })).await;
    world.until(SCALED, "BackupFailed").await;
    // Long enough for another try.
    world.restart(MINUTE).await;
    sleep(15 * MINUTE).await;
    world.until(SCALED, "BackupFailed").await;
    assert_eq!(world.names::<PersistentVolumeClaim>().await, CLAIMS);
    let set: StatefulSet = world.api().get("orders").await.unwrap();
    assert_eq!(
        set.spec.unwrap().replicas,
        Some(3),
        "the member stays as well"
    );

    drop(broken);
    world.settled().await;
    assert_eq!(world.names::<PersistentVolumeClaim>().await, CLAIMS[..2]);
    assert_eq!(
        world.names::<Job>().await,
        ["orders-backup-29453760"],
        "its Job is removed"
    );
}

/// A backup of an earlier volume of the same member does not count.
#[tokio::test(start_paused = true)]
async fn each_volume_has_a_backup_of_its_own() {
    let mut world = World::new().await;
    world.create(json!({ "replicas": 2 })).await;
    world.settled().await;
    // It crashed after it had deleted the volume, and was down while there was another one.
    world.operator.abort();
    let db = world.database().await;
    let claims: Api<PersistentVolumeClaim> = world.api();
    let claim = claims.get("data-orders-1").await.unwrap();
    let mut old = database::backup::job(&db, database::backup::Purpose::Removal(1, &claim));
    old.metadata.annotations =
        Some([("demo.homeostat.dev/backup-for".into(), "another".into())].into());
    old.metadata.owner_references = Some(vec![db.controller_owner_ref(&()).unwrap()]);
    let jobs: Api<Job> = world.api();
    let old = jobs.create(&PostParams::default(), &old).await.unwrap();
    world.change(json!({ "replicas": 1 })).await;
    sleep(MINUTE).await;
    world.restart(Duration::ZERO).await;
    world.settled().await;
    assert_eq!(world.names::<PersistentVolumeClaim>().await, CLAIMS[..1]);
    let log = world.server.requests();
    let created = log.count(|request| {
        request.verb == homeostat_apiserver::Verb::Create && request.resource == "jobs"
    });
    assert!(
        created >= 3,
        "the scheduled one, the old one, and one for this volume"
    );
    drop(old);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_wanted_again_stays() {
    let world = World::new().await;
    world.create(json!({ "replicas": 3 })).await;
    world.settled().await;
    let claims: Api<PersistentVolumeClaim> = world.api();
    let before = claims.get("data-orders-2").await.unwrap();
    let slow = Fate::RunFor(10 * MINUTE);
    let slow = world
        .server
        .workloads()
        .inject(PodRule::any().name_start("orders-backup-before"), slow);
    world.change(json!({ "replicas": 2 })).await;
    world.until(SCALED, "BackingUp").await;
    world.change(json!({ "replicas": 3 })).await;
    world.settled().await;
    sleep(HOUR).await;
    assert_eq!(
        claims.get("data-orders-2").await.unwrap().uid(),
        before.uid()
    );
    assert_eq!(world.names::<Job>().await, ["orders-backup-29453760"]);
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn backups_follow_the_clock_and_the_last_are_kept() {
    let mut world = World::new().await;
    world
        .create(json!({ "backup": { "everyHours": 1, "keep": 3 } }))
        .await;
    world.settled().await;
    let hours = |hours: &[i64]| -> Vec<String> {
        let names = hours
            .iter()
            .map(|hour| format!("orders-backup-{}", 29_453_760 + hour * 60));
        names.collect()
    };
    // It is six o'clock. From half past seven on the operator is down for an hour.
    sleep(90 * MINUTE).await;
    world.restart(55 * MINUTE).await;
    sleep(MINUTE).await;
    assert_eq!(world.names::<Job>().await, hours(&[6, 7, 8]));
    sleep(3 * HOUR).await;
    assert_eq!(world.names::<Job>().await, hours(&[9, 10, 11]));
    // The next ones fail: those that succeeded stay.
    let rule = PodRule::any().name_start("orders-backup");
    let broken = world.server.workloads().inject(rule, Fate::Fail);
    sleep(2 * HOUR).await;
    assert_eq!(told(&world.database().await, BACKED_UP), "Failed");
    assert_eq!(world.names::<Job>().await, hours(&[9, 10, 11, 12, 13]));
    drop(broken);
    sleep(2 * HOUR).await;
    assert_eq!(told(&world.database().await, BACKED_UP), "Succeeded");
    assert_eq!(world.names::<Job>().await, hours(&[11, 12, 13, 14, 15]));
}

#[tokio::test(start_paused = true)]
async fn a_database_goes_after_its_last_backup() {
    let world = World::new().await;
    let db = world.create(json!({})).await;
    world.settled().await;
    let broken = world.server.workloads().inject(
        PodRule::any().name_start("orders-backup-before"),
        Fate::Fail,
    );
    world.delete().await;
    sleep(HOUR).await;
    assert_eq!(
        told(&world.database().await, RECONCILED),
        "FinalBackupFailed"
    );
    assert_eq!(world.names::<PersistentVolumeClaim>().await, CLAIMS[..2]);
    drop(broken);
    world.gone(&db).await;
    sleep(MINUTE).await;
    assert!(world.names::<PersistentVolumeClaim>().await.is_empty());
    assert!(world.names::<Secret>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_last_backup_can_be_declined() {
    let world = World::new().await;
    let db = world.create(json!({})).await;
    world.settled().await;
    let broken = world.server.workloads().inject(
        PodRule::any().name_start("orders-backup-before"),
        Fate::Fail,
    );
    world.delete().await;
    sleep(HOUR).await;
    world
        .change(json!({ "backup": { "onDeletion": false } }))
        .await;
    world.gone(&db).await;
    drop(broken);
}

#[tokio::test(start_paused = true)]
async fn a_new_version_is_rolled_out() {
    let world = World::new().await;
    world.create(json!({})).await;
    world.settled().await;
    world.change(json!({ "version": "18" })).await;
    world.settled().await;
    let pods = world
        .api::<Pod>()
        .list(&ListParams::default().labels("app.kubernetes.io/name=database"))
        .await
        .unwrap();
    let images: Vec<_> = pods
        .iter()
        .map(|pod| {
            pod.spec.as_ref().unwrap().containers[0]
                .image
                .clone()
                .unwrap()
        })
        .collect();
    assert_eq!(images, ["postgres:18", "postgres:18"]);
}

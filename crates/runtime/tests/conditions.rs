//! Conditions by hand, and the one that a controller keeps.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{StreamExt, stream};
use homeostat::{
    Action, Backoff, Classify, Config, Controller, Predicate,
    conditions::{self, NewCondition, Status},
    controller::{Error as ControllerError, StatusConditions},
    error_policy, predicates,
    reflector::{self, ObjectRef},
    status, watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Request, Rule, Verb};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::Status as ApiStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tracing_subscriber::fmt::MakeWriter;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

// === By hand ===

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// T51: the time changes with the status alone, and what is there already is no change.
#[test]
fn setting_a_condition() {
    let mut list: Vec<Condition> = Vec::new();
    let ready = |holds: bool| NewCondition::new("Ready", holds, "Because");
    for (new, now, changed, since) in [
        (ready(true), at(1), true, at(1)),
        (ready(true), at(2), false, at(1)),
        (ready(true).message("so"), at(3), true, at(1)),
        (
            ready(true).message("so").observed_generation(Some(2)),
            at(4),
            true,
            at(1),
        ),
        (ready(false), at(5), true, at(5)),
        (
            NewCondition::new("Ready", Status::Unknown, "Because"),
            at(6),
            true,
            at(6),
        ),
    ] {
        assert_eq!(
            conditions::set(&mut list, new.clone(), now),
            changed,
            "{new:?}"
        );
        let set = conditions::get(&list, "Ready").unwrap();
        assert_eq!(set.last_transition_time, since.into(), "{new:?}");
    }
    assert!(conditions::set(
        &mut list,
        NewCondition::new("Available", true, "Up"),
        at(7)
    ));
    assert!(conditions::is_true(&list, "Available"));
    assert!(!conditions::is_true(&list, "Ready"));
    assert!(!conditions::is_true(&list, "Absent"));
    assert_eq!(conditions::get(&list, "Absent"), None);
    let types: Vec<&str> = list.iter().map(|condition| &*condition.type_).collect();
    assert_eq!(types, ["Available", "Ready"]);
}

/// What is in memory is what comes back from the server: whole seconds, and texts that it takes.
#[test]
fn conditions_fit_the_api() {
    let mut list = Vec::new();
    let long = "ä".repeat(40_000);
    let new = NewCondition::new("a type", true, "no reason!").message(&long);
    let now = Timestamp::from_millisecond(1_500).unwrap();
    assert!(conditions::set(&mut list, new.clone(), now));
    assert_eq!((&*list[0].type_, &*list[0].reason), ("a_type", "no_reason"));
    assert_eq!(list[0].message.chars().count(), 32_768);
    assert_eq!(list[0].last_transition_time, at(1).into());

    let text = serde_json::to_string(&list).unwrap();
    let back: Vec<Condition> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, list);
    assert!(!conditions::set(&mut list, new, at(9)));
}

// === Kept by a controller ===

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    #[error("missing spec field: {0}")]
    #[classify(permanent, reason = "InvalidSpec")]
    MissingField(String),
    #[error("external service: {0}")]
    #[classify(transient)]
    External(String),
    #[error("the inventory does not answer: {0}")]
    #[classify(transient, reason = "InventoryDown")]
    Inventory(String),
    #[error("somebody else was faster")]
    #[classify(conflict)]
    Lost,
}

type Ended = Result<Action, Error>;

/// What a reconciler does, given the object and how many runs it had before.
type Reconcile = fn(&Site, usize) -> Ended;

/// What the reconciler of a test knows.
struct Context {
    sites: Api<Site>,
    start: Instant,
    /// When runs of each object started.
    runs: Mutex<BTreeMap<String, Vec<Duration>>>,
    reconcile: Reconcile,
}

/// The items of a controller's stream.
type Items = Arc<Mutex<Vec<String>>>;

struct World {
    server: ApiServer,
    sites: Api<Site>,
    context: Arc<Context>,
    items: Items,
    controller: Option<JoinHandle<()>>,
}

/// The seed of all operators: a field that has to be there.
fn seed(site: &Site, _: usize) -> Ended {
    match site.spec.host.as_deref() {
        None => Err(Error::MissingField("host".into())),
        Some("down") => Err(Error::External("no answer".into())),
        Some(_) => Ok(Action::await_change()),
    }
}

async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Ended {
    let nth = context.note(&site);
    (context.reconcile)(&site, nth)
}

/// The definition of sites, after `edit`.
async fn define(client: &Client, edit: impl FnOnce(&mut Value)) {
    let mut definition = serde_json::to_value(Site::crd()).unwrap();
    edit(&mut definition["spec"]["versions"][0]);
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
}

impl Context {
    /// Notes a run. Answers how many there were before.
    fn note(&self, site: &Site) -> usize {
        let mut runs = self.runs.lock().unwrap();
        let runs = runs.entry(site.name_any()).or_default();
        runs.push(self.start.elapsed());
        runs.len() - 1
    }
}

impl World {
    async fn new(reconcile: Reconcile) -> Self {
        Self::with(reconcile, |_| ()).await
    }

    async fn with(reconcile: Reconcile, edit: impl FnOnce(&mut Value)) -> Self {
        fastrand::seed(7);
        let server = ApiServer::builder().build();
        let client = server.client();
        define(&client, edit).await;
        let sites: Api<Site> = Api::default_namespaced(client);
        let context = Context {
            sites: sites.clone(),
            start: Instant::now(),
            runs: Mutex::default(),
            reconcile,
        };
        Self {
            server,
            sites,
            context: Arc::new(context),
            items: Items::default(),
            controller: None,
        }
    }

    fn config() -> Config {
        Config::default().backoff(Backoff::default().jitter(0.0))
    }

    /// A controller for all sites.
    fn controller(&self) -> Controller<Site> {
        let sites: Api<Site> = Api::default_namespaced(self.server.client());
        Controller::new(sites, watcher::Config::default()).with_config(Self::config())
    }

    /// Runs the controller with the reconciler of this test until the world ends.
    fn run(&mut self, controller: StatusConditions<Site>) {
        let context = Arc::clone(&self.context);
        let stream = controller.run(reconcile, error_policy::classified, context);
        self.drive(stream);
    }

    fn drive<S>(&mut self, stream: S)
    where
        S: futures::Stream<
                Item = Result<(ObjectRef<Site>, Action), ControllerError<Error, watcher::Error>>,
            > + Send
            + 'static,
    {
        let items = Arc::clone(&self.items);
        let take = move |item: S::Item| {
            let told = match item {
                Ok((_, action)) => format!("{action:?}"),
                Err(ControllerError::ReconcilerPanicked(panic, _)) => format!("panic: {panic}"),
                Err(ControllerError::ReconcileTimeout(limit, _)) => format!("late: {limit:?}"),
                Err(ControllerError::ReconcilerFailed(error, _)) => format!("error: {error}"),
                Err(error) => format!("{error}"),
            };
            items.lock().unwrap().push(told);
            std::future::ready(())
        };
        self.controller = Some(tokio::spawn(stream.for_each(take)));
    }

    async fn create(&self, name: &str, host: Option<&str>) -> Site {
        let spec = SiteSpec {
            host: host.map(Into::into),
        };
        let site = Site::new(name, spec);
        self.sites
            .create(&PostParams::default(), &site)
            .await
            .unwrap()
    }

    async fn change(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        self.sites.patch(name, &params, &patch).await.unwrap();
    }

    fn runs_at(&self, name: &str) -> Vec<Duration> {
        let runs = self.context.runs.lock().unwrap();
        runs.get(name).cloned().unwrap_or_default()
    }

    /// When runs of an object started, in whole seconds.
    fn runs(&self, name: &str) -> Vec<u64> {
        self.runs_at(name).iter().map(Duration::as_secs).collect()
    }

    fn items(&self) -> Vec<String> {
        self.items.lock().unwrap().clone()
    }

    /// How many requests to write a status there were, and how many changed one.
    fn status_writes(&self) -> (usize, usize) {
        let is_write = |request: &Request| {
            request.subresource == "status" && matches!(request.verb, Verb::Patch | Verb::Update)
        };
        let requests = self.server.requests();
        let changed = |request: &Request| is_write(request) && request.changed;
        (requests.count(is_write), requests.count(changed))
    }

    /// The conditions of a site as `Ready=True/Reconciled@1`.
    async fn conditions(&self, name: &str) -> Vec<String> {
        let site = self.sites.get(name).await.unwrap();
        let conditions = site.status.unwrap_or_default().conditions.into_iter();
        let told = |condition: Condition| {
            let Condition {
                type_,
                status,
                reason,
                observed_generation,
                ..
            } = condition;
            let generation =
                observed_generation.map_or("-".to_owned(), |number| number.to_string());
            format!("{type_}={status}/{reason}@{generation}")
        };
        conditions.map(told).collect()
    }

    async fn ready(&self, name: &str) -> Condition {
        let status = self
            .sites
            .get(name)
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        conditions::get(&status.conditions, "Ready")
            .cloned()
            .unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(controller) = &self.controller {
            controller.abort();
        }
    }
}

/// T51, E3, B21: a permanent error is shown once and not tried again until the spec changes; then the
/// object heals. At rest there is neither a run nor a write.
#[tokio::test(start_paused = true)]
async fn a_missing_field_is_shown_once_and_heals() {
    let mut world = World::new(seed).await;
    let controller = world.controller().filter(predicates::generation);
    world.run(controller.status_conditions("Ready"));
    world.create("a", None).await;
    sleep(24 * HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=False/InvalidSpec@1"]);
    let broken = world.ready("a").await;
    assert_eq!(broken.message, "missing spec field: host");
    assert_eq!((world.runs("a").len(), world.status_writes()), (1, (1, 1)));

    world.change("a", json!({ "spec": { "host": "h" } })).await;
    sleep(24 * HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@2"]);
    let healed = world.ready("a").await;
    let day = healed.last_transition_time.0.as_second() - broken.last_transition_time.0.as_second();
    assert!((86_399..=86_401).contains(&day), "{day} s");
    assert_eq!((world.runs("a").len(), world.status_writes()), (2, (2, 2)));

    // The status is the same for another spec, so the time stays.
    world
        .change("a", json!({ "spec": { "host": "other" } }))
        .await;
    sleep(HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@3"]);
    assert_eq!(
        world.ready("a").await.last_transition_time,
        healed.last_transition_time
    );
    assert_eq!((world.runs("a").len(), world.status_writes()), (3, (3, 3)));
}

/// B21, B25: the write of the condition wakes no object that waits for a change, without a filter too; one that is well it
/// wakes once at most.
#[tokio::test(start_paused = true)]
async fn its_own_write_is_no_loop() {
    for (host, runs) in [(None, 1), (Some("h"), 2)] {
        let mut world = World::new(seed).await;
        let controller = world.controller().status_conditions("Ready");
        world.run(controller);
        world.create("a", host).await;
        sleep(24 * HOUR).await;
        assert!(world.runs("a").len() <= runs, "{:?}", world.runs("a"));
        assert_eq!(world.status_writes(), (1, 1));
    }
}

/// H1, H2, B22: an error that tells the time or counts is the same error, pass after pass.
#[tokio::test(start_paused = true)]
async fn numbers_in_errors_are_no_news() {
    fn counting(_: &Site, nth: usize) -> Ended {
        Err(Error::MissingField(format!("host, for the {nth}th time")))
    }
    let mut world = World::new(counting).await;
    let controller = world.controller().status_conditions("Ready");
    world.run(controller);
    world.create("a", None).await;
    sleep(24 * HOUR).await;
    assert_eq!((world.runs("a").len(), world.status_writes()), (1, (1, 1)));
    let message = world.ready("a").await.message;
    assert_eq!(message, "missing spec field: host, for the 0th time");

    // Of another generation it is news.
    world.change("a", json!({ "spec": { "host": "h" } })).await;
    sleep(HOUR).await;
    assert_eq!(world.status_writes(), (2, 2));
    let message = world.ready("a").await.message;
    assert_eq!(message, "missing spec field: host, for the 1th time");
}

/// B21: passes that all succeed write once.
#[tokio::test(start_paused = true)]
async fn success_after_success_is_no_news() {
    let steady = |_: &Site, _| Ok(Action::requeue(10 * SECOND));
    let mut world = World::new(steady).await;
    let controller = world.controller().status_conditions("Ready");
    world.run(controller);
    world.create("a", None).await;
    sleep(HOUR).await;
    assert!(
        world.runs("a").len() > 350,
        "it runs: {}",
        world.runs("a").len()
    );
    assert_eq!(world.status_writes(), (1, 1));
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@1"]);
}

/// An error that passes is one write, however often and in whatever words it comes; and so is that it
/// has passed.
#[tokio::test(start_paused = true)]
async fn backing_off_is_one_write() {
    fn flaky(site: &Site, nth: usize) -> Ended {
        match site.spec.host.as_deref() {
            None => Err(Error::External(format!("{} is wrong", "x".repeat(nth)))),
            Some(_) => Ok(Action::await_change()),
        }
    }
    let mut world = World::new(flaky).await;
    let controller = world.controller().status_conditions("Ready");
    world.run(controller);
    world.create("a", None).await;
    sleep(HOUR).await;
    // Its own write does not shorten the delays.
    assert_eq!(world.runs("a")[..5], [0, 1, 3, 7, 15]);
    assert_eq!(world.status_writes(), (1, 1));
    assert_eq!(world.conditions("a").await, ["Ready=Unknown/BackingOff@1"]);
    // What came first.
    let message = world.ready("a").await.message;
    assert_eq!(message, "external service:  is wrong");

    world.change("a", json!({ "spec": { "host": "h" } })).await;
    sleep(HOUR).await;
    assert_eq!(world.status_writes(), (2, 2));
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@2"]);
}

/// A reason and a message tell what is waited for. Whatever comes in between, each reason is written once until all
/// is well or the object is another one.
#[tokio::test(start_paused = true)]
async fn reasons_of_errors_that_pass() {
    fn down(site: &Site, nth: usize) -> Ended {
        match (site.spec.host.as_deref(), nth % 3) {
            (Some("up"), _) => Ok(Action::await_change()),
            (_, 0) => Err(Error::Inventory(format!(
                "{} are away",
                ["few", "all"][nth % 2]
            ))),
            (_, 1) => Err(Error::External("slow".into())),
            (_, _) => Err(api_error("InternalError", "no quorum")),
        }
    }
    let mut world = World::new(down).await;
    let controller = world.controller().status_conditions("Ready");
    world.run(controller);
    world.create("a", None).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        world.conditions("a").await,
        ["Ready=Unknown/InventoryDown@1"]
    );
    let message = world.ready("a").await.message;
    assert_eq!(message, "the inventory does not answer: few are away");
    sleep(24 * HOUR).await;
    assert!(world.runs("a").len() > 200, "{}", world.runs("a").len());
    assert_eq!(world.status_writes(), (3, 3));
    assert_eq!(
        world.conditions("a").await,
        ["Ready=Unknown/InternalError@1"]
    );
    let message = world.ready("a").await.message;
    assert_eq!(message, "Kubernetes API error: no quorum");

    world.change("a", json!({ "spec": { "host": "up" } })).await;
    sleep(HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@2"]);
    assert_eq!(world.status_writes(), (4, 4));
}

fn api_error(reason: &str, message: &str) -> Error {
    let status = ApiStatus::failure(message, reason).with_code(500);
    kube::Error::Api(status.boxed()).into()
}

/// Three host names in turn, whoever runs the object: it is told of one.
#[tokio::test(start_paused = true)]
async fn words_that_change_are_written_once() {
    fn turning(_: &Site, nth: usize) -> Ended {
        let host = ["red", "green", "blue"][nth % 3];
        Err(Error::MissingField(format!("a host like {host}")))
    }
    for filtered in [false, true] {
        let mut world = World::new(turning).await;
        let controller = world.controller();
        let controller = if filtered {
            controller.filter(predicates::generation.combine(predicates::labels))
        } else {
            controller
        };
        world.run(controller.status_conditions("Ready"));
        world.create("a", None).await;
        for nth in 0..200 {
            sleep(Duration::from_millis(100)).await;
            world
                .change(
                    "a",
                    json!({ "metadata": { "labels": { "nth": nth.to_string() } } }),
                )
                .await;
        }
        sleep(24 * HOUR).await;
        assert!(world.runs("a").len() >= 200, "{}", world.runs("a").len());
        assert!(world.runs("a").len() < 420, "{}", world.runs("a").len());
        assert_eq!(world.status_writes(), (1, 1));
    }
}

/// An object that is well and not in turn is told about less often, and in the end as it is.
#[tokio::test(start_paused = true)]
async fn good_and_bad_in_turn() {
    fn turning(_: &Site, nth: usize) -> Ended {
        match nth {
            ..1000 if nth.is_multiple_of(2) => Err(Error::MissingField("host".into())),
            _ => Ok(Action::await_change()),
        }
    }
    let mut world = World::new(turning).await;
    let controller = world.controller().status_conditions("Ready");
    world.run(controller);
    world.create("a", None).await;
    for nth in 0..1001 {
        sleep(Duration::from_millis(100)).await;
        world
            .change(
                "a",
                json!({ "metadata": { "labels": { "nth": nth.to_string() } } }),
            )
            .await;
    }
    sleep(HOUR).await;
    let (writes, _) = world.status_writes();
    assert!((4..30).contains(&writes), "{writes}");
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@1"]);
}

/// G69: a conflict says nothing about an object.
#[tokio::test(start_paused = true)]
async fn conflicts_are_not_shown() {
    fn unlucky(_: &Site, nth: usize) -> Ended {
        if nth < 3 {
            Err(Error::Lost)
        } else {
            Ok(Action::await_change())
        }
    }
    let mut world = World::new(unlucky).await;
    let controller = world.controller().filter(predicates::generation);
    world.run(controller.status_conditions("Ready"));
    world.create("a", None).await;
    sleep(HOUR).await;
    assert_eq!(world.runs("a").len(), 4);
    assert!(world.runs("a").iter().all(|&second| second < 2));
    assert_eq!(world.status_writes(), (1, 1));
}

/// G69, H24: what the run itself writes does not run an object early that waits after a conflict.
#[tokio::test(start_paused = true)]
async fn conflicts_do_not_spin() {
    async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Ended {
        let nth = context.note(&site);
        if nth == 20 {
            return Ok(Action::await_change());
        }
        let patch = Patch::Merge(json!({ "status": { "url": format!("https://{nth}") } }));
        let params = PatchParams::default();
        context.sites.patch_status("a", &params, &patch).await?;
        Err(Error::Lost)
    }
    let mut world = World::new(seed).await;
    let controller = world.controller();
    let context = Arc::clone(&world.context);
    world.drive(controller.run(reconcile, error_policy::classified, context));
    world.create("a", None).await;
    sleep(10 * SECOND).await;
    let pauses: Vec<Duration> = world
        .runs_at("a")
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]))
        .collect();
    assert_eq!(pauses.len(), 20, "{pauses:?}");
    for pause in &pauses {
        assert!((125..=501).contains(&pause.as_millis()), "{pauses:?}");
    }
}

/// A panic and a run that takes too long are shown, and stay what they are for the reader of the
/// stream.
#[tokio::test(start_paused = true)]
async fn panics_and_late_runs() {
    async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Ended {
        let nth = context.note(&site);
        if nth == 0 {
            match &*site.name_any() {
                "late" => sleep(HOUR).await,
                _ => panic!("no such site"),
            }
        }
        Ok(Action::await_change())
    }
    let mut world = World::new(seed).await;
    let config = World::config().reconcile_timeout(5 * SECOND);
    let controller = world.controller().filter(predicates::generation);
    let controller = controller.with_config(config).status_conditions("Ready");
    let context = Arc::clone(&world.context);
    world.drive(controller.run(reconcile, error_policy::classified, context));
    for name in ["panic", "late"] {
        world.create(name, None).await;
    }
    sleep(Duration::from_millis(5_500)).await;
    assert_eq!(
        world.conditions("late").await,
        ["Ready=Unknown/BackingOff@1"]
    );
    sleep(HOUR).await;
    for name in ["panic", "late"] {
        assert_eq!(world.conditions(name).await, ["Ready=True/Reconciled@1"]);
    }
    assert_eq!(
        (world.runs("panic"), world.runs("late")),
        (vec![0, 1], vec![0, 6])
    );
    assert_eq!(world.status_writes(), (4, 4));
    let items = world.items();
    for told in ["panic: no such site", "late: 5s"] {
        assert_eq!(
            items.iter().filter(|item| **item == told).count(),
            1,
            "{items:?}"
        );
    }
}

/// Nobody waits for an object that goes to be ready; that its cleanup fails is shown.
#[tokio::test(start_paused = true)]
async fn objects_that_are_deleted() {
    fn cleanup(site: &Site, nth: usize) -> Ended {
        match (site.meta_deleted(), nth) {
            (true, ..3) => Err(Error::External("still there".into())),
            _ => Ok(Action::await_change()),
        }
    }
    let mut world = World::new(cleanup).await;
    let controller = world.controller().filter(predicates::generation);
    world.run(controller.status_conditions("Ready"));
    world.create("a", None).await;
    world
        .change(
            "a",
            json!({ "metadata": { "finalizers": ["example.com/x"] } }),
        )
        .await;
    sleep(HOUR).await;
    let before = world.status_writes();
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@1"]);

    world
        .sites
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    sleep(HOUR).await;
    assert!(
        world.runs("a").len() > 3,
        "the cleanup succeeded in the end"
    );
    assert_eq!(world.conditions("a").await, ["Ready=Unknown/BackingOff@2"]);
    assert_eq!(world.status_writes(), (before.0 + 1, before.1 + 1));
}

trait Deleted {
    fn meta_deleted(&self) -> bool;
}

impl Deleted for Site {
    fn meta_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// F6: conditions that the reconciler writes in the very run, and says anew each time, live next to
/// the one of the runtime.
#[tokio::test(start_paused = true)]
async fn next_to_conditions_of_the_reconciler() {
    async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Ended {
        context.note(&site);
        let mut desired = SiteStatus {
            url: Some("https://h".into()),
            conditions: Vec::new(),
        };
        let serving = NewCondition::new("Serving", true, "Probed");
        conditions::set(&mut desired.conditions, serving, Timestamp::now());
        status::patch(&context.sites, &site, &desired).await?;
        Ok(Action::await_change())
    }
    let mut world = World::new(seed).await;
    let controller = world.controller().status_conditions("Ready");
    let context = Arc::clone(&world.context);
    world.drive(controller.run(reconcile, error_policy::classified, context));
    world.create("a", None).await;
    sleep(24 * HOUR).await;
    let both = ["Ready=True/Reconciled@1", "Serving=True/Probed@-"];
    assert_eq!(world.conditions("a").await, both);
    let (_, changed) = world.status_writes();
    assert_eq!(changed, 2);
    assert!(world.runs("a").len() <= 3, "{:?}", world.runs("a"));
}

// === What the server does to it ===

/// A condition that is not answered keeps no other object waiting for longer than it is given.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer() {
    let mut world = World::new(seed).await;
    for name in ["a", "b", "c"] {
        world.create(name, Some("h")).await;
    }
    let rule = Rule::any().subresource("status").name("a");
    let fault = world.server.faults().inject(rule, Fault::Hang);
    let config = World::config().concurrency(1);
    let controller = world.controller().filter(predicates::generation);
    world.run(controller.with_config(config).status_conditions("Ready"));
    sleep(Duration::from_millis(10_500)).await;
    for name in ["b", "c"] {
        assert_eq!(world.conditions(name).await, ["Ready=True/Reconciled@1"]);
    }
    assert!(world.runs("b")[0] <= 10, "{:?}", world.runs("b"));
    assert_eq!(world.conditions("a").await, [""; 0]);
    drop(fault);
    sleep(HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@1"]);
    assert_eq!(world.runs("a").len(), 2);
}

/// What could not be written is written later, even if the reconciler has nothing more to do: a
/// permanent error would otherwise not be seen.
#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_made_up_for() {
    for (fault, hits) in [
        (Fault::InternalError, 2),
        (Fault::TooManyRequests { retry_after: 1 }, 2),
        (Fault::Refuse, 2),
        // These are tried again at once, with what the server has.
        (Fault::Conflict, 5),
    ] {
        for host in [None, Some("h")] {
            let mut world = World::new(seed).await;
            let rule = Rule::any().subresource("status").times(hits);
            let guard = world.server.faults().inject(rule, fault.clone());
            let controller = world.controller().filter(predicates::generation);
            world.run(controller.status_conditions("Ready"));
            world.create("a", host).await;
            sleep(HOUR).await;
            let expected = match host {
                None => "Ready=False/InvalidSpec@1",
                Some(_) => "Ready=True/Reconciled@1",
            };
            assert_eq!(world.conditions("a").await, [expected], "{fault:?}");
            assert_eq!(guard.hits(), hits);
            let runs = if fault == Fault::Conflict {
                vec![0]
            } else {
                vec![0, 1, 3]
            };
            assert_eq!(world.runs("a"), runs, "{fault:?}");
        }
    }
}

/// Collects what is logged in this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
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

impl Log {
    fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines that speak of conditions.
    fn warnings(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().filter(|line| line.contains("condition"));
        lines.map(str::to_owned).collect()
    }
}

/// A kind that cannot have the condition is warned of once and left alone; its objects are reconciled.
#[tokio::test(start_paused = true)]
async fn kinds_without_conditions() {
    fn no_subresource(version: &mut Value) {
        version["subresources"] = json!({});
    }
    fn no_conditions(version: &mut Value) {
        let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status");
        let status = status.unwrap().as_object_mut().unwrap();
        status["properties"]
            .as_object_mut()
            .unwrap()
            .remove("conditions");
        status.remove("required");
    }
    for (why, edit) in [
        (
            "it has no status subresource",
            no_subresource as fn(&mut Value),
        ),
        ("its status has no conditions", no_conditions),
    ] {
        let (log, _guard) = Log::listen();
        let mut world = World::with(seed, edit).await;
        let controller = world.controller().filter(predicates::generation);
        world.run(controller.status_conditions("Ready"));
        for name in ["a", "b"] {
            world.create(name, None).await;
            sleep(HOUR).await;
        }
        let warnings = log.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for word in [why, "Site", "Ready"] {
            assert!(warnings[0].contains(word), "{warnings:?}");
        }
        assert_eq!((world.runs("a").len(), world.runs("b").len()), (1, 1));
        assert_eq!(world.status_writes().0, 1);
    }
}

/// The same object, by a type that knows nothing of its conditions, or not all of it.
mod partial {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
    #[kube(status = "Status")]
    pub(crate) struct SiteSpec {}

    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Status {
        url: Option<String>,
    }

    pub(crate) mod narrow {
        use super::{CustomResource, Deserialize, JsonSchema, Serialize};

        #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
        #[kube(status = "Status")]
        pub(crate) struct SiteSpec {}

        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        pub(crate) struct Status {
            #[serde(default)]
            conditions: Vec<Narrow>,
        }

        /// As in many a program: without the generation, and without the message.
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        pub(crate) struct Narrow {
            #[serde(rename = "type")]
            type_: String,
            status: String,
            reason: String,
        }
    }
}

/// What the Rust type drops of a condition looks as if it were never there.
#[tokio::test(start_paused = true)]
async fn rust_types_without_conditions() {
    async fn run<K>(writes: usize, warnings: usize)
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone
            + std::fmt::Debug
            + Serialize
            + serde::de::DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        async fn reconcile<K: ResourceExt>(site: Arc<K>, _: Arc<()>) -> Ended {
            match site.labels().get("host") {
                None => Err(Error::MissingField("host".into())),
                Some(_) => Ok(Action::await_change()),
            }
        }
        let (log, _guard) = Log::listen();
        let world = World::new(seed).await;
        let sites: Api<K> = Api::default_namespaced(world.server.client());
        let stream = Controller::new(sites, watcher::Config::default())
            .with_config(World::config())
            .status_conditions("Ready")
            .run(reconcile, error_policy::classified, Arc::new(()))
            .for_each(|_| std::future::ready(()));
        let controller = tokio::spawn(stream);
        for name in ["a", "b"] {
            world.create(name, None).await;
            sleep(HOUR).await;
        }
        world
            .change("a", json!({ "metadata": { "labels": { "host": "h" } } }))
            .await;
        sleep(HOUR).await;
        controller.abort();
        assert_eq!(world.status_writes().0, writes);
        assert_eq!(log.warnings().len(), warnings, "{:?}", log.warnings());
        assert!(log.warnings().iter().all(|line| line.contains("Rust type")));
    }
    run::<partial::Site>(0, 1).await;
    run::<partial::narrow::Site>(3, 0).await;
    run::<Site>(3, 0).await;
}

/// Has something of its own by the name of conditions.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Odd",
    namespaced,
    status = "OddStatus"
)]
struct OddSpec {}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct OddStatus {
    conditions: BTreeMap<String, bool>,
}

/// What is no list of conditions is not overwritten with one.
#[tokio::test(start_paused = true)]
async fn conditions_of_another_form() {
    async fn reconcile(_: Arc<Odd>, _: Arc<()>) -> Ended {
        Ok(Action::await_change())
    }
    let (log, _guard) = Log::listen();
    let server = ApiServer::builder().build();
    let client = server.client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PostParams::default();
    definitions.create(&params, &Odd::crd()).await.unwrap();
    let odds: Api<Odd> = Api::default_namespaced(client);
    odds.create(&params, &Odd::new("a", OddSpec {}))
        .await
        .unwrap();
    let own = json!({ "status": { "conditions": { "fine": true } } });
    let params = PatchParams::default();
    odds.patch_status("a", &params, &Patch::Merge(own))
        .await
        .unwrap();

    let stream = Controller::new(odds.clone(), watcher::Config::default())
        .status_conditions("Ready")
        .run(reconcile, error_policy::classified, Arc::new(()))
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(stream);
    sleep(HOUR).await;
    controller.abort();
    let status = odds.get("a").await.unwrap().status.unwrap();
    assert_eq!(status.conditions, [("fine".to_owned(), true)].into());
    let warnings = log.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("something else"), "{warnings:?}");
}

/// A permission that is missing is told once and costs no run; once it is granted, the next run
/// writes.
#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing() {
    let (log, _guard) = Log::listen();
    let mut world = World::new(seed).await;
    let rule = Rule::any().subresource("status");
    let fault = world.server.faults().inject(rule, Fault::Forbidden);
    let controller = world.controller().filter(predicates::generation);
    world.run(controller.status_conditions("Ready"));
    for name in ["a", "b"] {
        world.create(name, Some("h")).await;
    }
    sleep(HOUR).await;
    assert_eq!(
        (world.runs("a").len(), world.runs("b").len(), fault.hits()),
        (1, 1, 2)
    );
    let warnings = log.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("403 Forbidden"), "{warnings:?}");
    drop(fault);
    world
        .change("a", json!({ "spec": { "host": "other" } }))
        .await;
    sleep(HOUR).await;
    assert_eq!(world.conditions("a").await, ["Ready=True/Reconciled@2"]);
}

/// A controller that gets its objects from a stream has to be told of a client.
#[tokio::test(start_paused = true)]
async fn a_controller_of_a_stream() {
    let (log, _guard) = Log::listen();
    for told in [false, true] {
        let mut world = World::new(seed).await;
        let site = world.create("a", None).await;
        let (reader, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Init);
        writer.apply_watcher_event(&watcher::Event::InitApply(site.clone()));
        writer.apply_watcher_event(&watcher::Event::InitDone);
        let objects = stream::iter([Ok(site)]).chain(stream::pending());
        let controller = Controller::for_stream(objects, reader).status_conditions("Ready");
        let controller = if told {
            controller.client(world.server.client())
        } else {
            controller
        };
        world.run(controller);
        sleep(HOUR).await;
        assert_eq!(world.runs("a").len(), 1);
        let conditions = world.conditions("a").await;
        assert_eq!(conditions.len(), usize::from(told), "{conditions:?}");
        assert_eq!(log.warnings().len(), 1, "{:?}", log.warnings());
    }
}

//! What the user of the checker writes.

use crate::{
    check,
    log::Entry,
    plan::Plan,
    report::Report,
    setup::{Setup, Step},
    state::State,
    told::Told,
};
use futures::{FutureExt, Stream, StreamExt};
use kube::{Client, CustomResourceExt};
use serde::Serialize;
use serde_json::Value;
use std::{
    fmt::{self, Debug, Display},
    num::NonZero,
    path::PathBuf,
    sync::Arc,
    thread,
};

/// An operator, and what its users do.
///
/// `X` is the world outside of the cluster, if the operator has one: buckets, records, tenants. Each run
/// has its own.
///
/// ```
/// use homeostat::{Action, Controller, error_policy, watcher};
/// use homeostat_testing::Scenario;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client, ResourceExt, api::{Patch, PatchParams}};
/// use serde_json::json;
/// use std::sync::Arc;
///
/// async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> kube::Result<Action> {
///     let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &map.namespace().unwrap_or_default());
///     let greeting = Patch::Apply(json!({
///         "apiVersion": "v1", "kind": "ConfigMap", "data": { "greeting": "hello" },
///     }));
///     maps.patch(&map.name_any(), &PatchParams::apply("greeter").force(), &greeting).await?;
///     Ok(Action::await_change())
/// }
///
/// Scenario::new()
///     .controller(|client| {
///         Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
///             .run(reconcile, error_policy::backoff, Arc::new(client))
///     })
///     .given("{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }")
///     .check()
///     .assert_sound();
/// ```
#[must_use = "a scenario does nothing until it is checked"]
pub struct Scenario<X = ()> {
    setup: Setup<X>,
    /// What was written down wrongly, told when it is checked.
    mistake: Option<String>,
}

/// The most plans that are run unless the scenario says otherwise: more than an operator with a handful
/// of children has.
const BUDGET: usize = 2_000;

impl Scenario<()> {
    /// An operator that looks after nothing but objects of the cluster.
    pub fn new() -> Self {
        Self::with_external(|| ())
    }
}

impl Default for Scenario<()> {
    fn default() -> Self {
        Self::new()
    }
}

impl<X: Send + Sync + 'static> Scenario<X> {
    /// An operator that looks after something outside of the cluster too. It is made anew for each run,
    /// and survives the operator's crashes.
    pub fn with_external(make: impl Fn() -> X + Send + Sync + 'static) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            setup: Setup {
                definitions: Vec::new(),
                existing: Vec::new(),
                given: Vec::new(),
                start: None,
                external: Box::new(make),
                ledger: None,
                steps: Vec::new(),
                invariants: Vec::new(),
                transitions: Vec::new(),
                ignored: Vec::new(),
                expendable: Vec::new(),
                workloads: false,
                deletion: true,
                seed: 1,
                budget: BUDGET,
                threads,
                only: Vec::new(),
                without: Vec::new(),
                autoscaled: Vec::new(),
                frugal: false,
                until: None,
                seeds: 0,
                replay: None,
                save: None,
            },
            mistake: None,
        }
    }

    /// What is to be compared of the world outside: what is there, as JSON. uids in it are recognized.
    pub fn ledger(mut self, look: impl Fn(&X) -> Value + Send + Sync + 'static) -> Self {
        self.setup.ledger = Some(Arc::new(look));
        self
    }

    /// The custom resource is defined.
    pub fn crd<K: CustomResourceExt>(self) -> Self {
        self.definition(&K::crd())
    }

    /// The same for a definition of your own making.
    pub fn definition(mut self, definition: &impl Serialize) -> Self {
        match serde_json::to_value(definition) {
            Ok(mut value) => {
                value["apiVersion"] = "apiextensions.k8s.io/v1".into();
                value["kind"] = "CustomResourceDefinition".into();
                self.setup.definitions.push(value);
            }
            Err(error) => self.mistaken(format!("a definition that is no JSON: {error}")),
        }
        self
    }

    /// The operator: what starts its controllers, given the client of this process. Whatever the stream
    /// yields is one run of a reconcile or one error of a watch.
    ///
    /// The operator works as long as the stream is polled; when it is dropped, it has crashed.
    pub fn controller<S, T, E>(self, start: impl Fn(Client) -> S + Send + Sync + 'static) -> Self
    where
        S: Stream<Item = Result<T, E>> + 'static,
        T: Debug,
        E: Display,
    {
        self.controller_with(move |client, _| start(client))
    }

    /// The same with the world outside.
    pub fn controller_with<S, T, E>(
        mut self,
        start: impl Fn(Client, Arc<X>) -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Result<T, E>> + 'static,
        T: Debug,
        E: Display,
    {
        self.setup.start = Some(Box::new(move |client, external| {
            start(client, external)
                .map(|item| match item {
                    Ok(done) => Ok(format!("{done:?}")),
                    Err(error) => Err(error.to_string()),
                })
                .boxed_local()
        }));
        self
    }

    /// Objects that are there before the operator starts, as YAML.
    pub fn existing(mut self, yaml: &str) -> Self {
        let objects = self.read(yaml);
        self.setup.existing.extend(objects);
        self
    }

    /// What the user wants: the objects that the operator looks after, as YAML. Objects that name no
    /// namespace are in `check`.
    ///
    /// The checker also deletes them, at every moment, and gives them again.
    pub fn given(mut self, yaml: &str) -> Self {
        let objects = self.read(yaml);
        self.setup.given.extend(objects);
        self
    }

    /// What the user does next, when the operator has come to rest. Steps go in order.
    pub fn step<F, E>(self, name: &str, deed: impl Fn(Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + 'static,
        E: Display,
    {
        self.step_with(name, move |client, _| deed(client))
    }

    /// The same with the world outside.
    pub fn step_with<F, E>(
        mut self,
        name: &str,
        deed: impl Fn(Client, Arc<X>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + 'static,
        E: Display,
    {
        self.setup.steps.push(Step {
            name: name.to_owned(),
            deed: Box::new(move |client, external| {
                let deed = deed(client, external);
                async move { deed.await.map_err(|error| error.to_string()) }.boxed_local()
            }),
        });
        self
    }

    /// A property that holds after every write of anybody.
    ///
    /// # Errors
    ///
    /// The property returns why it does not hold.
    pub fn invariant(
        mut self,
        name: &str,
        holds: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let invariant = (name.to_owned(), Arc::new(holds) as _);
        self.setup.invariants.push(invariant);
        self
    }

    /// A property of every change: `holds` gets the state before a write of anybody and the state after it. It says what
    /// an [`invariant`](Self::invariant) cannot, because that sees one state only: a password stays the same, and a volume
    /// goes only after its backup.
    ///
    /// What the cluster does by itself between two requests can be one change.
    ///
    /// ```
    /// # use homeostat_testing::Scenario;
    /// let scenario = Scenario::new().transition("the password stays", |before, after| {
    ///     let password = |state: &homeostat_testing::State| {
    ///         state.get("secrets", "check", "login").map(|secret| secret["data"]["password"].clone())
    ///     };
    ///     match (password(before), password(after)) {
    ///         (Some(old), Some(new)) if old != new => Err("it is another one".to_owned()),
    ///         _ => Ok(()),
    ///     }
    /// });
    /// # drop(scenario);
    /// ```
    ///
    /// # Errors
    ///
    /// The property returns why it does not hold.
    pub fn transition(
        mut self,
        name: &str,
        holds: impl Fn(&State, &State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let transition = (name.to_owned(), Arc::new(holds) as _);
        self.setup.transitions.push(transition);
        self
    }

    /// This place in objects is not compared, nor what is below it: `status.attempts`.
    pub fn ignore(mut self, path: &str) -> Self {
        self.setup.ignored.push(path.to_owned());
        self
    }

    /// Objects of this resource need not come back when somebody deletes them: `jobs.batch`.
    pub fn expendable(mut self, resource: &str) -> Self {
        self.setup.expendable.push(resource.to_owned());
        self
    }

    /// Deployments become available and pods run, as if a cluster were there. Off by default.
    pub fn workloads(mut self, enabled: bool) -> Self {
        self.setup.workloads = enabled;
        self
    }

    /// Whether what is given is also deleted. On by default.
    pub fn deletion(mut self, enabled: bool) -> Self {
        self.setup.deletion = enabled;
        self
    }

    /// Where everything random comes from. 1 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        self
    }

    /// The most plans to run. The simplest are run first. 2,000 by default.
    pub fn budget(mut self, plans: usize) -> Self {
        self.setup.budget = plans;
        self
    }

    /// Runs only the plans of this check, by its name in reports, such as `CRASH`; called again, of either. It is for
    /// the time in which you mend something.
    pub fn only(mut self, detector: &str) -> Self {
        self.setup.only.push(detector.to_owned());
        self
    }

    /// Leaves out a kind of plan, by the [name](Plan::kind) of it, or an oracle, by the
    /// [name](crate::Fault::name) of what it finds. It tells what a check is good for: without it something is not
    /// found any more.
    pub fn without(mut self, check: &str) -> Self {
        self.setup.without.push(check.to_owned());
        self
    }

    /// An autoscaler has the replicas of the operator's objects of this resource: `deployments.apps`. The operator has
    /// to leave them alone.
    pub fn autoscaled(mut self, resource: &str) -> Self {
        self.setup.autoscaled.push(resource.to_owned());
        self
    }

    /// Whether writes that change nothing are a fault when there is nothing to do, as if an operator applies everything
    /// in each run. Off by default: a report then notes them.
    pub fn frugal(mut self, frugal: bool) -> Self {
        self.setup.frugal = frugal;
        self
    }

    /// Tries this many seeds with some plans each, drawn by the seed, in place of one seed with all plans. It shows that
    /// a verdict is no matter of luck. 0, which is the default, is one seed with all plans. `HOMEOSTAT_SEEDS` does the
    /// same without a change of the test.
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.setup.seeds = seeds;
        self
    }

    /// How many plans run at once. As many as the machine has cores by default.
    pub fn threads(mut self, threads: usize) -> Self {
        self.setup.threads = threads;
        self
    }

    /// Runs only this plan, and prints the whole log of it: what a report prints behind `HOMEOSTAT_REPLAY=`,
    /// which does the same without a change of the test.
    pub fn replay(mut self, text: &str) -> Self {
        self.setup.replay = Some(text.to_owned());
        self
    }

    /// The folder into which the report goes as text and as JSON, with the whole log of the reference and of each fault.
    pub fn save_to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.setup.save = Some(folder.into());
        self
    }

    /// Runs the reference and all plans.
    ///
    /// The environment can say it otherwise than the test: `HOMEOSTAT_REPLAY`, `HOMEOSTAT_SEED`, `HOMEOSTAT_SEEDS`,
    /// `HOMEOSTAT_BUDGET`, and `HOMEOSTAT_SAVE`, the folder into which the report goes with the whole log of each
    /// fault. `homeostat check` sets them.
    #[must_use]
    pub fn check(mut self) -> Report {
        let told = Told::by_environment();
        let folder = told.apply(&mut self.setup);
        if let Err(error) = folder {
            self.mistaken(error);
        }
        if let Some(mistake) = self.mistake() {
            let mut report = Report::new(self.setup.seed);
            report.error = Some(mistake);
            return report;
        }
        check::check(&Arc::new(self.setup))
    }

    /// Whether this check finds something, by its name in reports such as `CRASH`: for tests that build a mistake into an
    /// operator and see that the scenario shows it. It runs the plans of this check alone, up to the budget or to its first
    /// finding, looks at no variable of the environment, and saves nothing.
    ///
    /// # Errors
    ///
    /// It finds nothing, or only something else. The report says what was run.
    pub fn catches(self, detector: &str) -> Result<(), Box<Report>> {
        let mut scenario = self.only(detector);
        scenario.setup.until = Some(detector.to_owned());
        let report = match scenario.mistake() {
            Some(mistake) => {
                let mut report = Report::new(scenario.setup.seed);
                report.error = Some(mistake);
                report
            }
            None => check::check(&Arc::new(scenario.setup)),
        };
        let mut findings = report.findings().iter();
        if findings.any(|finding| finding.detector() == detector) {
            Ok(())
        } else {
            Err(Box::new(report))
        }
    }

    /// Runs the scenario once under a plan, and answers everything that happened. Two calls with one seed
    /// answer the same.
    ///
    /// # Errors
    ///
    /// The scenario cannot be run.
    pub fn log(self, seed: u64, plan: &Plan) -> Result<Vec<Entry>, String> {
        match self.mistake() {
            Some(mistake) => Err(mistake),
            None => check::log(&Arc::new(self.setup), seed, plan),
        }
    }

    fn mistake(&self) -> Option<String> {
        if self.setup.start.is_none() {
            return Some("the scenario has no controller".to_owned());
        }
        if self.setup.given.is_empty() {
            return Some("nothing is given to the operator".to_owned());
        }
        self.mistake.clone()
    }

    fn mistaken(&mut self, text: String) {
        self.mistake.get_or_insert(text);
    }

    fn read(&mut self, yaml: &str) -> Vec<Value> {
        match serde_saphyr::from_multiple::<Value>(yaml) {
            Ok(documents) => documents
                .into_iter()
                .filter(|value| !value.is_null())
                .collect(),
            Err(error) => {
                self.mistaken(format!("this is not YAML: {error}"));
                Vec::new()
            }
        }
    }
}

impl<X> fmt::Debug for Scenario<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("given", &self.setup.given.len())
            .field("steps", &self.setup.steps.len())
            .field("seed", &self.setup.seed)
            .finish_non_exhaustive()
    }
}

//! A whole operator, written with what this crate has for children, status, finalizers and errors, does
//! not have the loops and fights that operators are known for. The rows of the catalogue of bugs stand
//! at the tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{StreamExt, stream::BoxStream};
use homeostat::{
    Action, Classify, Controller, children, conditions, error_policy, predicates, status, watcher,
};
use homeostat_apiserver::{ApiServer, Request, Verb};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
#[kube(status = "SiteStatus")]
struct SiteSpec {
    hosts: BTreeMap<String, String>,
    #[serde(default)]
    disk: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("{0}")]
    KubeApi(#[from] kube::Error),
    #[error("{0}")]
    Child(#[from] children::Error),
}

type Outcome = Result<Action, Error>;

/// What a reconciler needs, and how often it ran.
struct Context {
    client: Client,
    /// Who applies.
    manager: String,
    runs: AtomicUsize,
}

impl Context {
    fn new(server: &ApiServer, manager: &str) -> Arc<Self> {
        Arc::new(Self {
            client: server.client(),
            manager: manager.to_owned(),
            runs: AtomicUsize::new(0),
        })
    }

    fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    fn set(&self, site: &Site) -> children::Set {
        children::Set::new(&self.client, site, &self.manager)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }
}

/// A controller that runs until this is dropped.
struct Running(JoinHandle<()>);

impl Running {
    fn start<T: Send + 'static>(items: impl futures::Stream<Item = T> + Send + 'static) -> Self {
        Self(tokio::spawn(items.for_each(|_| ready(()))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn is_write(request: &Request) -> bool {
    use Verb::{Create, Delete, DeleteCollection, Patch, Update};
    [Create, Update, Patch, Delete, DeleteCollection].contains(&request.verb)
}

/// The requests since the last look that asked to write something.
fn writes(server: &ApiServer) -> Vec<Request> {
    let requests = server.requests().take().into_iter();
    requests.filter(is_write).collect()
}

async fn world() -> ApiServer {
    fastrand::seed(7);
    let server = ApiServer::builder().workloads(true).build();
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let params = PostParams::default();
    definitions.create(&params, &Site::crd()).await.unwrap();
    let _setup = server.requests().take();
    server
}

async fn create(server: &ApiServer, name: &str) -> Site {
    let sites: Api<Site> = Api::default_namespaced(server.client());
    let site: Site = from(json!({
        "apiVersion": "example.com/v1", "kind": "Site",
        "metadata": {
            "name": name,
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" },
        },
        "spec": { "hosts": { "a.example.com": "1", "b.example.com": "2" } },
    }));
    sites.create(&PostParams::default(), &site).await.unwrap()
}

fn deployment(site: &Site) -> Deployment {
    let labels = json!({ "site": site.name_any() });
    let env = site.spec.hosts.iter();
    let env: Value = env
        .map(|(host, value)| json!({ "name": host, "value": value }))
        .collect();
    from(json!({
        "metadata": { "name": children::name(&site.name_any(), "web"), "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": { "hosts": children::fingerprint(&site.spec.hosts) },
                },
                "spec": { "containers": [{
                    "name": "c", "image": "i", "env": env,
                    "ports": [{ "containerPort": 80 }],
                    "resources": { "requests": { "cpu": "1000m", "memory": "1024Mi" } },
                }] },
            },
        },
    }))
}

fn service(site: &Site) -> Service {
    from(json!({
        "metadata": { "name": children::name(&site.name_any(), "web") },
        "spec": { "selector": { "site": site.name_any() }, "ports": [{ "port": 80 }] },
    }))
}

/// A password is made once, and read from where it is kept after that.
async fn login(site: &Site, ctx: &Context) -> Result<Secret, Error> {
    let name = children::name(&site.name_any(), "login");
    let live = ctx.api::<Secret>().get_opt(&name).await?;
    let known = live.and_then(|live| live.data?.remove("password"));
    let password = known.map(|known| String::from_utf8(known.0).unwrap());
    let password = password.unwrap_or_else(|| format!("geheim {}", ctx.runs()));
    Ok(from(json!({
        "metadata": { "name": name }, "stringData": { "password": password },
    })))
}

/// Everything that an operator does.
async fn reconcile(site: Arc<Site>, ctx: Arc<Context>) -> Outcome {
    let run = ctx.runs.fetch_add(1, SeqCst);
    let children = ctx.set(&site);
    children.apply(deployment(&site)).await?;
    children.apply(service(&site)).await?;
    let login = login(&site, &ctx).await?;
    children.apply(login).await?;
    children.prune::<ConfigMap>().await?;

    // The hosts come in another order each time, and all conditions are said anew, at this time.
    let mut hosts: Vec<String> = site.spec.hosts.keys().cloned().collect();
    let turns = run % hosts.len().max(1);
    hosts.rotate_left(turns);
    let now = k8s_openapi::jiff::Timestamp::from_second(i64::try_from(run).unwrap()).unwrap();
    let mut desired = SiteStatus {
        hosts,
        conditions: Vec::new(),
    };
    let serving = conditions::NewCondition::new("Serving", true, "Probed");
    conditions::set(&mut desired.conditions, serving, now);
    let writer = status::Writer::new().set("/hosts");
    writer.patch(&ctx.api(), &*site, &desired).await?;
    Ok(Action::requeue(MINUTE))
}

async fn clean_up(_: Arc<Site>, ctx: Arc<Context>) -> Outcome {
    ctx.runs.fetch_add(1, SeqCst);
    Ok(Action::await_change())
}

fn operator(ctx: &Arc<Context>) -> Running {
    let all = watcher::Config::default;
    let items = Controller::new(ctx.api::<Site>(), all())
        .owns(ctx.api::<Deployment>(), all())
        .owns(ctx.api::<Service>(), all())
        .owns(ctx.api::<Secret>(), all())
        .status_conditions("Ready")
        .finalizer("example.com/site")
        .run(
            reconcile,
            clean_up,
            error_policy::classified,
            Arc::clone(ctx),
        );
    Running::start(items)
}

/// Identity and version of all that a site has.
async fn versions(server: &ApiServer, name: &str) -> Vec<(String, String)> {
    async fn version<K>(server: &ApiServer, name: String) -> (String, String)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::default_namespaced(server.client());
        let object = api.get(&name).await.unwrap();
        (object.uid().unwrap(), object.resource_version().unwrap())
    }
    vec![
        version::<Site>(server, name.to_owned()).await,
        version::<Deployment>(server, format!("{name}-web")).await,
        version::<Service>(server, format!("{name}-web")).await,
        version::<Secret>(server, format!("{name}-login")).await,
    ]
}

/// H1-H5, H7-H13, H15, H17, H19-H22, H26, H27, A1, A2, A4, B21-B23, B25, B26: five sites, their
/// children and their status are written once. After that the operator looks once a minute, for an hour and
/// after a restart, and writes nothing: though times go on, lists come in another order, the server fills
/// in and allocates, and every write of its own wakes it.
#[tokio::test(start_paused = true)]
async fn an_operator_at_rest() {
    let server = world().await;
    let ctx = Context::new(&server, "sites");
    let running = operator(&ctx);
    let names: Vec<String> = (0..5).map(|number| format!("site-{number}")).collect();
    for name in &names {
        create(&server, name).await;
    }
    sleep(5 * MINUTE).await;
    let mut before = Vec::new();
    for name in &names {
        before.push(versions(&server, name).await);
    }
    assert!(writes(&server).len() > 5 * 6, "it did write");

    let rest = async |ctx: &Context, time: Duration| {
        let runs = ctx.runs();
        sleep(time).await;
        assert_eq!(writes(&server), []);
        ctx.runs() - runs
    };
    let runs = rest(&ctx, HOUR).await;
    let timers = 5 * 59..=5 * 61;
    assert!(timers.contains(&runs), "by the timers alone: {runs}");

    drop(running);
    let again = Context::new(&server, "sites");
    let _running = operator(&again);
    assert!(rest(&again, HOUR / 2).await >= 5 * 29);
    for (name, before) in names.iter().zip(before) {
        assert_eq!(versions(&server, name).await, before, "{name}");
    }
    // What kubectl notes on the site is not carried on to the pods.
    let web = again.api::<Deployment>().get("site-0-web").await.unwrap();
    assert!(
        web.annotations()
            .keys()
            .all(|key| !key.contains("last-applied"))
    );

    // And what is amiss is put right: once.
    again
        .api::<Service>()
        .delete("site-0-web", &DeleteParams::default())
        .await
        .unwrap();
    let _theirs = server.requests().take();
    sleep(10 * MINUTE).await;
    let writes = writes(&server);
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!(
        (&*writes[0].resource, writes[0].changed),
        ("services", true)
    );
}

/// H7, B21, B22: fifteen controllers that write the status of the same objects, without a filter, come
/// to rest.
#[tokio::test(start_paused = true)]
async fn fifteen_controllers_of_one_kind() {
    let server = world().await;
    let ctx = Context::new(&server, "sites");
    let count = |_: Arc<Site>, ctx: Arc<Context>| {
        ctx.runs.fetch_add(1, SeqCst);
        ready(Ok::<_, Error>(Action::await_change()))
    };
    let running: Vec<Running> = (0..15)
        .map(|number| {
            let controller = Controller::new(ctx.api::<Site>(), watcher::Config::default())
                .status_conditions(format!("Ready{number}"));
            Running::start(controller.run(count, error_policy::classified, Arc::clone(&ctx)))
        })
        .collect();
    for name in ["a", "b", "c"] {
        create(&server, name).await;
    }
    sleep(MINUTE).await;
    let changed = writes(&server).iter().filter(|write| write.changed).count();
    assert_eq!(
        changed,
        3 + 3 * 15,
        "each object, and each of its conditions, once"
    );
    let runs = ctx.runs();
    sleep(24 * HOUR).await;
    assert_eq!((ctx.runs() - runs, writes(&server)), (0, vec![]));
    let site = ctx.api::<Site>().get("a").await.unwrap();
    assert_eq!(site.status.unwrap().conditions.len(), 15);
    assert_eq!(running.len(), 15);
}

/// H18: what cannot be changed is one failed write and a condition, not one write after the other.
#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_be_changed() {
    async fn reconcile(site: Arc<Site>, ctx: Arc<Context>) -> Outcome {
        ctx.runs.fetch_add(1, SeqCst);
        let labels = json!({ "site": site.name_any() });
        let database: StatefulSet = from(json!({
            "metadata": { "name": site.name_any() },
            "spec": {
                "serviceName": "db",
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] },
                },
                "volumeClaimTemplates": [{
                    "metadata": { "name": "data" },
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": { "requests": {
                            "storage": site.spec.disk.as_deref().unwrap_or("1Gi"),
                        } },
                    },
                }],
            },
        }));
        ctx.set(&site).apply(database).await?;
        Ok(Action::await_change())
    }
    let server = world().await;
    let ctx = Context::new(&server, "sites");
    let controller = Controller::new(ctx.api::<Site>(), watcher::Config::default())
        .owns(ctx.api::<StatefulSet>(), watcher::Config::default())
        .filter(predicates::generation)
        .status_conditions("Ready");
    let _running =
        Running::start(controller.run(reconcile, error_policy::classified, Arc::clone(&ctx)));
    create(&server, "a").await;
    sleep(HOUR).await;
    let _setup = server.requests().take();

    let bigger = Patch::Merge(json!({ "spec": { "disk": "2Gi" } }));
    let params = PatchParams::default();
    ctx.api::<Site>()
        .patch("a", &params, &bigger)
        .await
        .unwrap();
    let _theirs = server.requests().take();
    sleep(24 * HOUR).await;
    let wrote = writes(&server);
    let wrote: Vec<_> = wrote
        .iter()
        .map(|write| (&*write.resource, &*write.subresource, write.status))
        .collect();
    let expected = [
        ("statefulsets", "", Some(422)),
        ("sites", "status", Some(200)),
    ];
    assert_eq!(wrote, expected);
    let site = ctx.api::<Site>().get("a").await.unwrap();
    let conditions = site.status.unwrap().conditions;
    assert_eq!(
        (&*conditions[0].status, &*conditions[0].reason),
        ("False", "Invalid")
    );
}

/// A3: a conflict with another field manager is not tried again and again, and goes away with it.
#[tokio::test(start_paused = true)]
async fn a_conflict_over_a_field() {
    let server = world().await;
    let ctx = Context::new(&server, "sites");
    let _running = operator(&ctx);
    create(&server, "a").await;
    sleep(MINUTE).await;
    let web = ctx.api::<Deployment>();
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a-web" },
        "spec": { "template": { "metadata": { "annotations": { "hosts": "none" } } } },
    });
    let edit = PatchParams::apply("kubectl-edit").force();
    web.patch("a-web", &edit, &Patch::Apply(&theirs))
        .await
        .unwrap();
    let _theirs = server.requests().take();
    sleep(24 * HOUR).await;
    let refused = writes(&server);
    let attempts = refused
        .iter()
        .filter(|write| write.status == Some(409))
        .count();
    assert!(
        (10..=320).contains(&attempts),
        "five minutes apart at the end: {attempts}"
    );
    assert_eq!(
        refused.len(),
        attempts + 1,
        "and one condition that says so"
    );

    let nothing = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a-web" },
    });
    web.patch("a-web", &edit, &Patch::Apply(&nothing))
        .await
        .unwrap();
    sleep(10 * MINUTE).await;
    let site = ctx.api::<Site>().get("a").await.unwrap();
    let conditions = site.status.unwrap().conditions;
    assert_eq!(
        conditions::get(&conditions, "Ready").unwrap().reason,
        "Reconciled"
    );
}

/// A5, B27: two operators for the same objects and the same children. They own fields together and
/// leave no notes in annotations, so nothing grows and nothing goes back and forth.
#[tokio::test(start_paused = true)]
async fn two_operators_of_the_same_children() {
    let server = world().await;
    let contexts = ["one", "two"].map(|manager| Context::new(&server, manager));
    let _running = contexts.each_ref().map(|ctx| {
        let reconcile = |site: Arc<Site>, ctx: Arc<Context>| async move {
            ctx.runs.fetch_add(1, SeqCst);
            let children = ctx.set(&site);
            // Managers own a quantity together only if they write it as the server does.
            let mut deployment = deployment(&site);
            let pods = deployment
                .spec
                .as_mut()
                .unwrap()
                .template
                .spec
                .as_mut()
                .unwrap();
            pods.containers[0].resources = None;
            children.apply(deployment).await?;
            children.apply(service(&site)).await?;
            Ok::<_, Error>(Action::requeue(MINUTE))
        };
        let all = watcher::Config::default;
        let items = Controller::new(ctx.api::<Site>(), all())
            .owns(ctx.api::<Deployment>(), all())
            .owns(ctx.api::<Service>(), all())
            .status_conditions(format!("Ready-{}", ctx.manager))
            .finalizer(format!("example.com/{}", ctx.manager))
            .run(
                reconcile,
                clean_up,
                error_policy::classified,
                Arc::clone(ctx),
            );
        Running::start(items)
    });
    let site = create(&server, "a").await;
    sleep(10 * MINUTE).await;
    let _setup = server.requests().take();
    let before = contexts.each_ref().map(|ctx| ctx.runs());
    sleep(HOUR).await;
    assert_eq!(writes(&server), []);
    let runs = contexts.each_ref().map(|ctx| ctx.runs());
    assert!(
        runs.iter()
            .zip(before)
            .all(|(runs, before)| runs - before >= 58)
    );
    let sites = contexts[0].api::<Site>();
    let live = sites.get("a").await.unwrap();
    assert_eq!(live.annotations(), site.annotations());
    assert_eq!(live.finalizers().len(), 2);

    sites.delete("a", &DeleteParams::default()).await.unwrap();
    sleep(MINUTE).await;
    assert!(sites.get_opt("a").await.unwrap().is_none());
    let left = contexts[0].api::<Deployment>().get_opt("a-web").await;
    assert!(left.unwrap().is_none());
}

/// G71: a requeue is not lost to the write of the status in the same run, whoever writes it.
#[tokio::test(start_paused = true)]
async fn a_requeue_next_to_a_write() {
    async fn reconcile(site: Arc<Site>, ctx: Arc<Context>) -> Outcome {
        let run = ctx.runs.fetch_add(1, SeqCst);
        let desired = SiteStatus {
            hosts: vec![format!("run {run}")],
            ..SiteStatus::default()
        };
        if run < 5 {
            status::patch(&ctx.api(), &*site, &desired).await?;
        }
        Ok(Action::requeue(10 * MINUTE))
    }
    let server = world().await;
    for kept in [false, true] {
        let ctx = Context::new(&server, "sites");
        let controller = Controller::new(ctx.api::<Site>(), watcher::Config::default())
            .filter(predicates::generation);
        let items: BoxStream<'static, ()> = if kept {
            controller
                .status_conditions("Ready")
                .run(reconcile, error_policy::classified, Arc::clone(&ctx))
                .map(drop)
                .boxed()
        } else {
            let items = controller.run(reconcile, error_policy::classified, Arc::clone(&ctx));
            items.map(drop).boxed()
        };
        let _running = Running::start(items);
        if !kept {
            create(&server, "a").await;
        }
        sleep(HOUR + MINUTE).await;
        assert_eq!(
            ctx.runs(),
            7,
            "at once, and every ten minutes; kept: {kept}"
        );
    }
}

/// H24: the statement of an object that is read anew because it was changed in between is one write,
/// not a run after the other.
#[tokio::test(start_paused = true)]
async fn a_status_that_others_write_at_the_same_time() {
    async fn reconcile(site: Arc<Site>, ctx: Arc<Context>) -> Outcome {
        ctx.runs.fetch_add(1, SeqCst);
        let desired = SiteStatus {
            hosts: vec!["h".into()],
            ..SiteStatus::default()
        };
        // Somebody else is faster, in the first run.
        if site.labels().is_empty() {
            let label = Patch::Merge(json!({ "metadata": { "labels": { "theirs": "x" } } }));
            let (sites, params) = (ctx.api::<Site>(), PatchParams::default());
            sites.patch("a", &params, &label).await?;
        }
        status::patch(&ctx.api(), &*site, &desired).await?;
        Ok(Action::await_change())
    }
    let server = world().await;
    let ctx = Context::new(&server, "sites");
    let controller = Controller::new(ctx.api::<Site>(), watcher::Config::default());
    let _running =
        Running::start(controller.run(reconcile, error_policy::classified, Arc::clone(&ctx)));
    create(&server, "a").await;
    let _setup = server.requests().take();
    sleep(HOUR).await;
    let writes = writes(&server);
    let status = writes.iter().filter(|write| write.subresource == "status");
    let codes: Vec<_> = status.map(|write| write.status.unwrap()).collect();
    assert_eq!(codes, [409, 200]);
    assert!(ctx.runs() <= 3, "{}", ctx.runs());
}

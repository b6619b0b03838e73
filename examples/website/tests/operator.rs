//! The whole operator on the embedded server, under paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use homeostat::{
    Backoff,
    client::Tracked,
    controller::{self, Handle},
    reflector::ObjectRef,
    wait::{await_condition_within, conditions::is_deleted},
};
use homeostat_apiserver::{ApiServer, Fault, Request, Rule, Verb};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt::Debug, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};
use website::{
    Config, Context, Error, FINALIZER, RECONCILED, Website,
    dns::{Dns, InMemoryDns},
    status::READY,
};

const MINUTE: Duration = Duration::from_secs(60);

/// A cluster, a DNS, and what the operator did.
struct World {
    server: ApiServer,
    client: Client,
    dns: Arc<InMemoryDns>,
    runs: Arc<watch::Sender<Vec<Run>>>,
}

/// One reconcile that ended.
#[derive(Debug, Clone)]
struct Run {
    at: Instant,
    site: String,
    error: Option<String>,
}

/// An operator that works until it is dropped, which is a crash.
struct Operator {
    task: JoinHandle<()>,
    handle: Handle<Website>,
    force: mpsc::UnboundedSender<ObjectRef<Website>>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    async fn new() -> Self {
        Self::on(ApiServer::builder().workloads(true).build()).await
    }

    async fn on(server: ApiServer) -> Self {
        let client = server.client();
        let world = Self {
            server,
            client,
            dns: Arc::default(),
            runs: Arc::new(watch::Sender::new(Vec::new())),
        };
        let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
        let definition = website::crd();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let established = homeostat::conditions::is_crd_established();
        await_condition_within(definitions, &definition.name_any(), established, MINUTE)
            .await
            .unwrap();
        world
    }

    fn operator(&self) -> Operator {
        // Without chance, so that delays can be compared.
        let backoff = Backoff::exponential(Duration::from_millis(200), Duration::from_secs(5));
        let config = Config {
            controller: homeostat::Config::default().backoff(backoff.jitter(0.0)),
            ..Config::default()
        };
        let dns: Arc<dyn Dns> = Arc::clone(&self.dns) as _;
        let client = Tracked::wrap(self.server.client());
        let ctx = Arc::new(Context::new(client, dns, config));
        let (force, forced) = mpsc::unbounded_channel();
        let forced = stream::unfold(forced, |mut forced| async move {
            Some((forced.recv().await?, forced))
        });
        let runs = Arc::clone(&self.runs);
        let watches = website::watches(&ctx).reconcile_on(forced);
        let handle = watches.handle();
        let task = tokio::spawn(website::controller(watches, ctx).for_each(move |item| {
            runs.send_modify(|runs| runs.push(Run::new(&item)));
            std::future::ready(())
        }));
        Operator {
            task,
            handle,
            force,
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, name: &str) -> Website {
        let site = json!({
            "apiVersion": "demo.homeostat.dev/v1", "kind": "Website",
            "metadata": { "name": name },
            "spec": { "host": format!("{name}.example.com"), "html": "<h1>Hello" },
        });
        let site: Website = serde_json::from_value(site).unwrap();
        self.api()
            .create(&PostParams::default(), &site)
            .await
            .unwrap()
    }

    async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let params = PatchParams::default();
        self.api()
            .patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap()
    }

    async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits for an object to be as `wanted`.
    async fn until<K>(&self, name: &str, wanted: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Send + DeserializeOwned + 'static,
    {
        let wanted = |obj: Option<&K>| obj.is_some_and(&wanted);
        let found = await_condition_within(self.api(), name, wanted, MINUTE).await;
        found.unwrap().unwrap()
    }

    /// Waits for a site to be ready in its present generation.
    async fn converged(&self, name: &str) -> Website {
        self.until(name, |site: &Website| {
            condition(site) == "True Serving"
                && site.status.as_ref().unwrap().observed_generation == site.metadata.generation
        })
        .await
    }

    async fn gone<K>(&self, obj: &K)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Send + DeserializeOwned + 'static,
    {
        let deleted = is_deleted(obj.meta().uid.as_deref().unwrap());
        await_condition_within(self.api::<K>(), &obj.name_any(), deleted, MINUTE)
            .await
            .unwrap();
    }

    /// Somebody deletes a child; waits until there is another one.
    fn loses<'a, K>(&'a self, name: &'a str) -> BoxFuture<'a, ()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Send + Sync + DeserializeOwned + 'static,
    {
        let replaced = async move {
            let before: K = self.api().get(name).await.unwrap();
            self.delete::<K>(name).await;
            self.until(name, |child: &K| child.uid() != before.uid())
                .await;
        };
        replaced.boxed()
    }

    fn runs_of(&self, site: &str) -> Vec<Run> {
        let runs = self.runs.borrow();
        runs.iter()
            .filter(|run| run.site == site)
            .cloned()
            .collect()
    }

    /// Runs a site, and waits until that is done.
    async fn force(&self, operator: &Operator, site: &str) {
        let before = self.runs_of(site).len();
        operator
            .force
            .send(ObjectRef::new(site).within("default"))
            .unwrap();
        let mut runs = self.runs.subscribe();
        let of_site = |runs: &Vec<Run>| runs.iter().filter(|run| run.site == site).count();
        runs.wait_for(|runs| of_site(runs) > before).await.unwrap();
    }

    /// What a site came to, without what differs from run to run.
    async fn outcome(&self, name: &str) -> Value {
        let site: Website = self.api().get(name).await.unwrap();
        let deployment: Deployment = self.api().get(name).await.unwrap();
        let service: Service = self.api().get(name).await.unwrap();
        let page: ConfigMap = self.api().get(name).await.unwrap();
        json!({
            "ready": condition(&site),
            "finalizers": site.finalizers(),
            "deployment": deployment.spec,
            "service": service.spec.as_ref().unwrap().ports,
            "page": page.data,
            "owned": [
                is_owned_by(&deployment, &site),
                is_owned_by(&service, &site),
                is_owned_by(&page, &site),
            ],
            "registered": self.dns.owner_of(&site.spec.host) == site.uid(),
        })
    }
}

impl Run {
    fn new(item: &website::Run) -> Self {
        let (site, error) = match item {
            Ok((site, _)) => (site.name.clone(), None),
            Err(controller::Error::ReconcilerFailed(error, site)) => {
                (site.name.clone(), Some(Error::to_string(error)))
            }
            Err(error) => (String::new(), Some(error.to_string())),
        };
        let at = Instant::now();
        Self { at, site, error }
    }
}

/// Status and reason of the Ready condition.
fn condition(site: &Website) -> String {
    condition_of(site, READY)
}

/// Those of the condition that the controller keeps.
fn reconciled(site: &Website) -> String {
    condition_of(site, RECONCILED)
}

fn condition_of(site: &Website, type_: &str) -> String {
    let condition = site
        .status
        .as_ref()
        .and_then(|status| status.condition(type_));
    condition
        .map(|condition| format!("{} {}", condition.status, condition.reason))
        .unwrap_or_default()
}

fn is_owned_by(child: &impl Resource, site: &Website) -> bool {
    let owners = child.owner_references();
    owners.len() == 1 && Some(&owners[0].uid) == site.metadata.uid.as_ref()
}

fn is_write(request: &Request) -> bool {
    use Verb::{Create, Delete, DeleteCollection, Patch, Update};
    [Create, Update, Patch, Delete, DeleteCollection].contains(&request.verb)
}

fn status_writes(requests: &[Request], site: &str) -> usize {
    let of_site = |request: &&Request| request.subresource == "status" && request.name == site;
    requests
        .iter()
        .filter(of_site)
        .filter(|request| is_write(request))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_site_converges() {
    let world = World::new().await;
    let _operator = world.operator();
    world.create("blog").await;
    let site = world.converged("blog").await;
    let status = site.status.as_ref().unwrap();
    assert_eq!(status.url.as_deref(), Some("http://blog.example.com/"));
    assert_eq!(status.ready_replicas, Some(1));
    let outcome = world.outcome("blog").await;
    let site = world
        .until("blog", |site: &Website| {
            reconciled(site) == "True Reconciled"
        })
        .await;
    assert_eq!(condition(&site), "True Serving");
    assert_eq!(outcome["finalizers"], json!([FINALIZER]));
    assert_eq!(outcome["owned"], json!([true, true, true]));
    assert_eq!(outcome["registered"], json!(true));
    assert_eq!(outcome["deployment"]["replicas"], json!(1));
    assert!(
        outcome["page"]["index.html"]
            .as_str()
            .unwrap()
            .contains("<h1>Hello")
    );
    assert!(world.runs_of("blog").iter().all(|run| run.error.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_converged_site_costs_no_writes() {
    let world = World::new().await;
    let operator = world.operator();
    world.create("blog").await;
    world.converged("blog").await;
    world.force(&operator, "blog").await;
    let (runs, records) = (world.runs_of("blog").len(), world.dns.writes());
    let _before = world.server.requests().take();
    for _ in 0..100 {
        // A time that is written by mistake shows only when it moves.
        sleep(Duration::from_millis(1_100)).await;
        world.force(&operator, "blog").await;
    }
    let requests = world.server.requests().take();
    let writes: Vec<_> = requests
        .iter()
        .filter(|request| is_write(request))
        .collect();
    assert_eq!(writes, Vec::<&Request>::new());
    assert_eq!(world.dns.writes(), records);
    // It did run, and it did look at the three children each time.
    assert!(world.runs_of("blog").len() >= runs + 100);
    let reads = requests
        .iter()
        .filter(|request| request.verb == Verb::Get)
        .count();
    assert!(reads >= 300, "{reads}");
    let counts = operator.handle.counts();
    assert_eq!((counts.loops, counts.overdue_waits), (0, 0));
    // And it does write when there is something to write.
    world.delete::<Service>("blog").await;
    world.until("blog", |_: &Service| true).await;
    assert!(world.server.requests().take().iter().any(|request| {
        request.verb == Verb::Patch && request.resource == "services" && request.changed
    }));
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_backed_off_from_per_site_and_recovered_from() {
    let world = World::new().await;
    let _operator = world.operator();
    for name in ["blog", "shop"] {
        world.create(name).await;
        world.converged(name).await;
    }
    for _ in 0..2 {
        // The second time shows that a success starts the delays over. What the controller tells of it comes first.
        sleep(Duration::from_secs(5)).await;
        let before = world.runs_of("blog").len();
        let _requests = world.server.requests().take();
        world.dns.start_outage("blog.example.com");
        let replicas = |site: &Website| json!({"spec": {"replicas": site.spec.replicas + 1}});
        let site: Website = world.api().get("blog").await.unwrap();
        world.patch::<Website>("blog", replicas(&site)).await;
        world.patch::<Website>("shop", replicas(&site)).await;
        world.converged("shop").await;
        world
            .until("blog", |site: &Website| {
                reconciled(site) == "Unknown DnsUnavailable"
            })
            .await;
        // What needs no DNS was done.
        world
            .until("blog", |deployment: &Deployment| {
                deployment.spec.as_ref().unwrap().replicas == Some(site.spec.replicas + 1)
            })
            .await;
        sleep(Duration::from_secs(12)).await;
        let failed = world.runs_of("blog").split_off(before);
        let why = Some("the DNS provider of blog.example.com does not answer".to_owned());
        assert!(failed.iter().all(|run| run.error == why), "{failed:?}");
        let delays: Vec<_> = failed
            .windows(2)
            .map(|runs| (runs[1].at - runs[0].at).as_millis())
            // The roll-out of the child lets the site look early, besides its delays.
            .filter(|delay| *delay > 0)
            .collect();
        // Such a look can fall together with the end of the first delay, of 200 ms.
        assert!(
            delays.ends_with(&[400, 800, 1600, 3200, 5000]),
            "{delays:?}"
        );
        assert!(delays.len() <= 6, "{delays:?}");
        let requests = world.server.requests().take();
        assert_eq!(
            status_writes(&requests, "blog"),
            1,
            "an outage is told once"
        );

        world.dns.end_outage();
        world.converged("blog").await;
        let next = world.runs_of("blog")[before + failed.len()].clone();
        assert_eq!(next.error, None);
        assert_eq!((next.at - failed.last().unwrap().at).as_millis(), 5000);
    }
    assert!(world.runs_of("shop").iter().all(|run| run.error.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_is_told_once_and_waits_for_the_spec() {
    let world = World::new().await;
    let _operator = world.operator();
    world.create("blog").await;
    let before = world.converged("blog").await;
    let _requests = world.server.requests().take();
    let host = |host: &str| json!({"spec": {"host": host}});
    world
        .patch::<Website>("blog", host("blog.example.org"))
        .await;
    let site = world
        .until("blog", |site: &Website| {
            reconciled(site) == "False InvalidSpec"
        })
        .await;
    let status = site.status.as_ref().unwrap();
    let told = status.condition(RECONCILED).unwrap();
    assert_eq!(
        told.message,
        r#"spec.host "blog.example.org" is not in the domain example.com"#
    );
    assert_eq!(told.observed_generation, site.metadata.generation);
    // The pods do not care: they serve what they served.
    assert_eq!(condition(&site), "True Serving");
    assert_eq!(
        status.url,
        before.status.unwrap().url,
        "the old host is still there"
    );

    let runs = world.runs_of("blog").len();
    sleep(60 * MINUTE).await;
    assert_eq!(world.runs_of("blog").len(), runs);
    let requests = world.server.requests().take();
    assert_eq!(status_writes(&requests, "blog"), 1);

    world
        .patch::<Website>("blog", host("new.example.com"))
        .await;
    let site = world.converged("blog").await;
    assert_eq!(world.dns.owner_of("new.example.com"), site.uid());
    assert_eq!(
        world.dns.owner_of("blog.example.com"),
        None,
        "the former host is given up"
    );
}

/// A token is made once, and stays whatever happens: a change by somebody, a restart, a hundred runs.
#[tokio::test(start_paused = true)]
async fn the_token_is_made_once() {
    let world = World::new().await;
    let operator = world.operator();
    let site = world.create("blog").await;
    world.converged("blog").await;
    let token = |secret: &Secret| secret.data.as_ref().unwrap()["token"].0.clone();
    let made: Secret = world.api().get("blog-preview").await.unwrap();
    assert_eq!(token(&made).len(), 32);
    assert!(is_owned_by(&made, &site));
    for _ in 0..10 {
        world.force(&operator, "blog").await;
    }
    drop(operator);
    let operator = world.operator();
    world.force(&operator, "blog").await;
    let kept: Secret = world.api().get("blog-preview").await.unwrap();
    assert_eq!(kept.resource_version(), made.resource_version());
    let theirs = json!({"stringData": {"token": "set by hand", "more": "x"}});
    let changed: Secret = world.patch("blog-preview", theirs).await;
    world.force(&operator, "blog").await;
    let kept: Secret = world.api().get("blog-preview").await.unwrap();
    assert_eq!(kept.resource_version(), changed.resource_version());
    // One that is gone is made anew, with another content.
    world.loses::<Secret>("blog-preview").await;
    let anew: Secret = world.api().get("blog-preview").await.unwrap();
    assert_ne!(token(&anew), token(&made));
}

/// Whatever somebody does to a child is put right.
#[tokio::test(start_paused = true)]
async fn children_that_are_deleted_or_changed_are_put_right() {
    let world = World::new().await;
    let _operator = world.operator();
    let site = world.create("blog").await;
    world.converged("blog").await;
    let wanted = world.outcome("blog").await;

    world.loses::<ConfigMap>("blog").await;
    world.loses::<Deployment>("blog").await;
    world.loses::<Service>("blog").await;
    world.converged("blog").await;
    assert_eq!(world.outcome("blog").await, wanted);

    world
        .patch::<ConfigMap>(
            "blog",
            json!({"data": {"index.html": "defaced", "theirs": "x"}}),
        )
        .await;
    let page = world
        .until("blog", |page: &ConfigMap| {
            page.data.as_ref().unwrap()["index.html"].contains("Hello")
        })
        .await;
    assert_eq!(
        page.data.unwrap()["theirs"],
        "x",
        "what is not ours is left alone"
    );

    // Without our label, our watch does not show it any more; without its owner it is nobody's.
    let labels = json!({"metadata": {"labels": null, "ownerReferences": null}});
    world.patch::<Service>("blog", labels).await;
    world
        .until("blog", |service: &Service| is_owned_by(service, &site))
        .await;
}

/// So is what somebody writes into the status, though nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_else_writes_is_put_right() {
    let world = World::new().await;
    let _operator = world.operator();
    world.create("blog").await;
    let site = world.converged("blog").await;
    let url = site.status.as_ref().unwrap().url.as_deref();
    let theirs = json!({"status": {"url": "http://elsewhere.example.com/"}});
    let sites: Api<Website> = world.api();
    sites
        .patch_status("blog", &PatchParams::default(), &Patch::Merge(theirs))
        .await
        .unwrap();
    sleep(Duration::from_secs(1)).await;
    let now = sites.get("blog").await.unwrap().status.unwrap();
    assert_eq!(now.url.as_deref(), url);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_somebody_else_is_left_alone() {
    // The garbage collector would take the service: its owner does not exist.
    let server = ApiServer::builder()
        .workloads(true)
        .garbage_collection(false);
    let world = World::on(server.build()).await;
    let theirs: Service = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "blog",
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Namespace", "name": "default", "controller": true,
                "uid": "00000000-0000-4000-8000-000000000000",
            }],
        },
        "spec": { "ports": [{ "port": 8080 }] },
    }))
    .unwrap();
    world
        .api()
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    let _operator = world.operator();
    world.create("blog").await;
    let site = world
        .until("blog", |site: &Website| {
            reconciled(site) == "Unknown ChildTaken"
        })
        .await;
    let message = &site
        .status
        .as_ref()
        .unwrap()
        .condition(RECONCILED)
        .unwrap()
        .message;
    assert_eq!(message, "Service default/blog belongs to Namespace/default");
    let service: Service = world.api().get("blog").await.unwrap();
    assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 8080);

    world.delete::<Service>("blog").await;
    world.converged("blog").await;
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_the_clean_up() {
    let world = World::new().await;
    let _operator = world.operator();
    world.create("blog").await;
    let site = world.converged("blog").await;
    let service: Service = world.api().get("blog").await.unwrap();

    world.dns.start_outage("example.com");
    world.delete::<Website>("blog").await;
    sleep(10 * MINUTE).await;
    let waiting: Website = world.api().get("blog").await.unwrap();
    assert_eq!(reconciled(&waiting), "Unknown DnsUnavailable");
    assert_eq!(world.dns.owner_of("blog.example.com"), site.uid());

    world.dns.end_outage();
    world.gone(&site).await;
    assert_eq!(world.dns.owner_of("blog.example.com"), None);
    world.gone(&service).await;

    // Another site of the same name is another site.
    let again = world.create("blog").await;
    world.converged("blog").await;
    assert_eq!(world.dns.owner_of("blog.example.com"), again.uid());
    assert_eq!(
        world.outcome("blog").await["owned"],
        json!([true, true, true])
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_loses_nothing() {
    let world = World::new().await;
    let operator = world.operator();
    for name in ["blog", "shop", "wiki"] {
        world.create(name).await;
        world.converged(name).await;
    }
    drop(operator);
    let shop: Website = world.api().get("shop").await.unwrap();
    let wiki: Website = world.api().get("wiki").await.unwrap();
    world.delete::<Service>("blog").await;
    world
        .patch::<Website>("blog", json!({"spec": {"replicas": 3}}))
        .await;
    world.delete::<Website>("shop").await;
    world.create("new").await;
    sleep(10 * MINUTE).await;
    assert!(
        world
            .api::<Service>()
            .get_opt("blog")
            .await
            .unwrap()
            .is_none()
    );

    let _operator = world.operator();
    world.converged("blog").await;
    world.converged("new").await;
    world.gone(&shop).await;
    assert_eq!(
        world.outcome("blog").await["deployment"]["replicas"],
        json!(3)
    );
    assert_eq!(world.dns.owner_of("shop.example.com"), None);
    // What did not change was not written.
    let unchanged: Website = world.api().get("wiki").await.unwrap();
    assert_eq!(unchanged.resource_version(), wiki.resource_version());
}

/// The operator writes by patches alone. It crashes before the first, the second, ... of them, and
/// another one goes on; then the same between two records of the DNS.
#[tokio::test(start_paused = true)]
async fn a_crash_before_any_write_changes_nothing_in_the_end() {
    let reference = World::new().await;
    let _operator = reference.operator();
    reference.create("blog").await;
    reference.converged("blog").await;
    let wanted = reference.outcome("blog").await;
    let patches = reference
        .server
        .requests()
        .count(|request| request.verb == Verb::Patch);
    assert!(
        patches >= 5,
        "a finalizer, three children and a status: {patches}"
    );

    for before in 0..u32::try_from(patches).unwrap() {
        let world = World::new().await;
        let fault = world
            .server
            .faults()
            .inject(Rule::any().verb(Verb::Patch).after(before), Fault::Hang);
        let crashed = world.operator();
        world.create("blog").await;
        sleep(MINUTE).await;
        assert!(fault.hits() > 0, "it got as far as patch {before}");
        drop((fault, crashed));

        let _operator = world.operator();
        let site = world.converged("blog").await;
        assert_eq!(world.outcome("blog").await, wanted, "after patch {before}");
        assert_eq!(world.dns.writes(), 1, "after patch {before}");
        world.delete::<Website>("blog").await;
        world.gone(&site).await;
        assert_eq!(world.dns.owner_of("blog.example.com"), None);
    }
}

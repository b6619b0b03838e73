//! The server, the operator, and those who watch them.

use super::{
    journal::{FIRST_DELAY, Journal, Runs},
    narrator::{Narrator, Who},
    replica::Replica,
    witness::{self, Seen},
};
use crate::{failure::text, file::write_kubeconfig};
use homeostat::{
    Backoff,
    client::Tracked,
    reflector::ObjectRef,
    wait::{Condition, await_condition_within, conditions},
};
use homeostat_apiserver::{ApiServer, Listening, Request, Verb};
use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Namespace};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt::Debug, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use website::{Config, Context, Website, dns::InMemoryDns, status::READY};

/// How long anything may take that the story waits for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the requests of the operator are known by.
const OPERATOR: &str = "website-operator";

/// Everything that the story plays on.
pub(super) struct Stage {
    pub(super) ctx: Arc<Context>,
    pub(super) dns: Arc<InMemoryDns>,
    pub(super) narrator: Narrator,
    /// The site to begin with.
    pub(super) site: Website,
    server: ApiServer,
    listening: Listening,
    client: Client,
    /// Of the operator. The first one leads at the beginning.
    replicas: [Replica; 2],
    journal: watch::Receiver<Journal>,
    /// What the witness has told of.
    seen: watch::Receiver<Seen>,
    /// The operator and the witness, which end with the stage.
    _tasks: JoinSet<()>,
}

// === impl Stage ===

impl Stage {
    /// Starts a server with the definition of Websites in it, and the operator.
    pub(super) async fn build(site: Website, narrator: Narrator) -> Result<Self, String> {
        let server = ApiServer::builder().workloads(true).build();
        let listening = server
            .serve((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .map_err(|error| format!("cannot listen on the loopback interface: {error}"))?;
        narrator.line(&format!(
            "An embedded API server listens on http://{}. Each site backs off by itself: {FIRST_DELAY:?} after its \
             first failure, then twice as long each time.",
            listening.address()
        ));
        let client = server.client();
        Api::all(client.clone())
            .create(&PostParams::default(), &website::crd())
            .await
            .map_err(|error| {
                format!(
                    "cannot install the definition of Websites: {}",
                    text(&error)
                )
            })?;
        make_namespace(&client, &site.namespace().unwrap_or_default()).await?;

        let dns = Arc::<InMemoryDns>::default();
        let delays = Backoff::exponential(FIRST_DELAY, Duration::from_secs(10)).jitter(0.0);
        let (_, domain) = site.spec.host.split_once('.').unwrap_or_default();
        let config = Config {
            domain: domain.into(),
            controller: homeostat::Config::default().backoff(delays),
            ..Config::default()
        };
        let ctx = Arc::new(Context::new(operator_client(&server), dns.clone(), config));
        let (writer, journal) = watch::channel(Journal::default());
        let writer = Arc::new(writer);
        let mut tasks = JoinSet::new();
        let mut replica = |name| {
            // Each has a connection of its own for the lease.
            let leases = server.client();
            Replica::start(name, &ctx, leases, &writer, &narrator, &mut tasks)
        };
        let first = replica("one")?;
        until("a first leader", || first.leads()).await?;
        let replicas = [first, replica("two")?];
        let (told, seen) = watch::channel(Seen::default());
        tasks.spawn(witness::watch(client.clone(), narrator.clone(), told));
        Ok(Self {
            ctx,
            dns,
            narrator,
            site,
            server,
            listening,
            client,
            replicas,
            journal,
            seen,
            _tasks: tasks,
        })
    }

    pub(super) fn say(&self, what: impl std::fmt::Display) {
        self.narrator.tell(Who::You, what);
    }

    /// Creates a site, or changes it to this, as `kubectl apply --server-side` does.
    pub(super) async fn apply(&self, site: &Website) -> Result<(), String> {
        let mut patch = json!(site);
        patch["apiVersion"] = json!(Website::api_version(&()));
        patch["kind"] = json!(Website::kind(&()));
        let params = PatchParams::apply("kubectl").force();
        self.sites()
            .patch(&site.name_any(), &params, &Patch::Apply(patch))
            .await
            .map_err(|error| {
                let name = site.name_any();
                format!("the server refuses Website {name}: {}", text(&error))
            })?;
        Ok(())
    }

    /// Changes the spec of a site.
    pub(super) async fn change(&self, name: &str, spec: Value) -> Result<(), String> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.sites()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .map_err(|error| {
                format!(
                    "the server refuses a change of Website {name}: {}",
                    text(&error)
                )
            })?;
        Ok(())
    }

    pub(super) fn sites(&self) -> Api<Website> {
        self.api()
    }

    /// The objects of a kind in the namespace of the site.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = self.site.namespace().unwrap_or_default();
        Api::namespaced(self.client.clone(), &namespace)
    }

    /// Waits until an object is as `condition` says. `what` completes "... did not happen".
    pub(super) async fn until<K>(
        &self,
        name: &str,
        what: &str,
        condition: impl Condition<K>,
    ) -> Result<Option<K>, String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        await_condition_within(self.api::<K>(), name, condition, PATIENCE)
            .await
            .map_err(|error| format!("{what} did not happen within {PATIENCE:?}: {error}"))
    }

    /// Waits until the pods of a site serve what its present spec says.
    pub(super) async fn until_serving(&self, name: &str) -> Result<(), String> {
        self.until_condition(name, READY, "Serving").await
    }

    /// Waits until a condition of a site has this reason, for its present spec.
    pub(super) async fn until_condition(
        &self,
        name: &str,
        type_: &'static str,
        reason: &'static str,
    ) -> Result<(), String> {
        let condition = move |site: Option<&Website>| {
            site.is_some_and(|site| {
                let condition = site.status.as_ref().and_then(|it| it.condition(type_));
                condition.is_some_and(|it| {
                    it.reason == reason && it.observed_generation == site.metadata.generation
                })
            })
        };
        let what = format!("the condition {type_} of {name} with reason {reason}");
        self.until::<Website>(name, &what, condition).await?;
        Ok(())
    }

    /// Waits until an object of this uid is gone.
    pub(super) async fn until_gone<K>(&self, name: &str, uid: &str) -> Result<(), String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        let what = format!("the deletion of {} {name}", K::kind(&()));
        self.until::<K>(name, &what, conditions::is_deleted(uid))
            .await?;
        Ok(())
    }

    /// Waits until all that has happened so far is told, so that no line comes under a later heading.
    pub(super) async fn until_told(&self) -> Result<(), String> {
        const PAUSE: Duration = Duration::from_millis(20);
        let told = async {
            loop {
                let there = witness::look(&self.client).await;
                let there = there.map_err(|error| text(&error))?;
                let before = self.journal.borrow().clone();
                if *self.seen.borrow() == there && self.is_quiet(&before).await {
                    return Ok(());
                }
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, told)
            .await
            .unwrap_or_else(|_| Err("what has happened was not told in time".to_owned()))
    }

    /// Whether nothing runs for a moment.
    async fn is_quiet(&self, before: &Journal) -> bool {
        const QUIET: Duration = Duration::from_millis(100);
        let seen = self.seen.borrow().clone();
        sleep(QUIET).await;
        *self.journal.borrow() == *before && *self.seen.borrow() == seen
    }

    /// How many runs of a site have ended.
    pub(super) fn runs(&self, name: &str) -> Runs {
        self.journal.borrow().of(name)
    }

    /// Waits until the runs of a site are as `enough` says.
    pub(super) async fn until_runs(
        &self,
        name: &str,
        what: &str,
        enough: impl Fn(Runs) -> bool,
    ) -> Result<(), String> {
        let mut journal = self.journal.clone();
        let reached = journal.wait_for(|journal| enough(journal.of(name)));
        match timeout(PATIENCE, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(format!("{what} did not happen: the operator has stopped")),
            Err(_) => Err(format!(
                "{what} did not happen within {PATIENCE:?}; {name} was reconciled like this: {:?}",
                self.runs(name)
            )),
        }
    }

    /// Reconciles a site although there is no reason to.
    pub(super) fn force(&self, name: &str) -> Result<(), String> {
        let namespace = self.site.namespace().unwrap_or_default();
        let site = ObjectRef::new(name).within(&namespace);
        let mut leaders = self.replicas.iter().filter(|replica| replica.leads());
        if leaders.any(|leader| leader.force(site.clone())) {
            Ok(())
        } else {
            Err("the operator has stopped".into())
        }
    }

    /// Kills the replica that leads, and waits until the other one does. How long that took.
    pub(super) async fn hand_over(&self) -> Result<Duration, String> {
        let [old, new] = &self.replicas;
        until("a second replica with complete caches", || new.is_ready()).await?;
        let killed = Instant::now();
        old.kill();
        until("a hand-over to the second replica", || new.leads()).await?;
        Ok(killed.elapsed())
    }

    /// The requests that the operator has made.
    pub(super) fn operator_requests(&self) -> Vec<Request> {
        let mut requests = self.server.requests().all();
        requests.retain(|request| request.user_agent.starts_with(OPERATOR));
        requests
    }

    /// How many requests of the operator asked to write something.
    pub(super) fn writes(&self) -> usize {
        self.operator_requests()
            .iter()
            .filter(|it| is_write(it))
            .count()
    }

    /// Leaves everything up until Ctrl+C, and tells how to reach it.
    pub(super) async fn keep(&self) -> Result<(), String> {
        let address = self.listening.address();
        let namespace = self.site.namespace().unwrap_or_default();
        let file = std::env::temp_dir().join(format!(
            "homeostat-demo-{}-{}.yaml",
            address.port(),
            std::process::id()
        ));
        write_kubeconfig(&file, &self.listening.kubeconfig())?;
        // Always told, with --json too: who keeps a server up wants to reach it.
        eprintln!(
            "\nThe server and the operator stay up until Ctrl+C. Try:\n\
             \n  export KUBECONFIG={}\
             \n  kubectl get websites -n {namespace}\
             \n  kubectl get deployments,services,configmaps -n {namespace}\
             \n  kubectl delete deployment --all -n {namespace}\n",
            file.display()
        );
        let stopped = tokio::signal::ctrl_c().await;
        // It was for this server alone.
        drop(std::fs::remove_file(&file));
        stopped.map_err(|error| format!("cannot listen to Ctrl+C: {error}"))
    }
}

/// Waits until something is so. `what` completes "... did not happen".
async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    const PAUSE: Duration = Duration::from_millis(10);
    let so = async {
        while !is_so() {
            sleep(PAUSE).await;
        }
    };
    let so = timeout(PATIENCE, so).await;
    so.map_err(|_| format!("{what} did not happen within {PATIENCE:?}"))
}

/// Whether a request asks to change something, whatever comes of it.
fn is_write(request: &Request) -> bool {
    !matches!(
        request.verb,
        Verb::Get | Verb::List | Verb::Watch | Verb::Other
    )
}

/// Makes a namespace, if it is not there.
async fn make_namespace(client: &Client, name: &str) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(format!(
            "cannot make the namespace {name}: {}",
            text(&error)
        )),
    }
}

/// A client whose requests are known as the operator's.
fn operator_client(server: &ApiServer) -> Client {
    let named = tower::ServiceBuilder::new()
        .layer(Tracked)
        .map_request(|mut request: http::Request<kube::client::Body>| {
            let headers = request.headers_mut();
            headers.insert(USER_AGENT, HeaderValue::from_static(OPERATOR));
            request
        })
        .service(server.service());
    Client::new(named, "default")
}

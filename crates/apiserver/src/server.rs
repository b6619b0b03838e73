use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};

use crate::access::{Access, AllowAll, Authorizer, Caller, Entrance, Keys, Needs, User};
use crate::actors::{Actor, Actors, Enabled, Stage, drive};
use crate::config::Config;
use crate::environment::{Clock, SystemClock};
use crate::faults::Faults;
use crate::http::Service;
use crate::journal::{self, ChangeView, ObjectView, StoredChange, StoredObject};
use crate::listening::{Hosts, Listening, Protocol};
use crate::registry::Registry;
use crate::requests::Requests;
use crate::state::{Advance, Core, Debug};
use crate::task;
use crate::workloads::Workloads;

/// An embedded Kubernetes API server.
///
/// # Guarantees
///
/// - In process, everything that is random or depends on time comes from the seed and the clock:
///   the same requests in the same order get the same answers.
/// - The server works under tokio's paused time. It opens no socket unless [`serve`](Self::serve) is
///   called.
///
/// # Assumptions
///
/// Garbage collection and the other controllers run as a task: build the server inside of a tokio
/// runtime, or switch them off and step them yourself.
///
/// Clones are handles to one server. It lives as long as a handle, a client or a watch does.
#[derive(Clone)]
pub struct ApiServer {
    core: Arc<Core>,
    protocol: Protocol,
    hosts: Hosts,
}

/// Settings of an [`ApiServer`] that is to be built.
#[must_use]
pub struct ApiServerBuilder {
    clock: Option<Box<dyn Clock>>,
    seed: u64,
    config: Config,
    enabled: Enabled,
    debug: bool,
    advance: Option<Advance>,
    protocol: Protocol,
    hosts: Vec<String>,
    tokens: BTreeMap<String, Arc<User>>,
    authorizer: Box<dyn Authorizer>,
    rbac: bool,
    notes_requests: bool,
}

// === impl ApiServer ===

impl ApiServer {
    /// Starts to describe a server.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder {
            clock: None,
            seed: 0,
            config: Config::default(),
            enabled: Enabled::default(),
            debug: false,
            advance: None,
            protocol: Protocol::Http,
            hosts: Vec::new(),
            tokens: BTreeMap::new(),
            authorizer: Box::new(AllowAll),
            rbac: false,
            notes_requests: true,
        }
    }

    /// A client that talks to the server in process. Its default namespace is `default`.
    ///
    /// It must be called in a tokio runtime: `kube`'s client has a task of its own.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_in("default")
    }

    /// A client whose default namespace is this one.
    #[must_use]
    pub fn client_in(&self, namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), namespace.to_owned())
    }

    /// The API as a tower service, for clients of another kind or with layers of their own.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::new(Arc::clone(&self.core), Entrance::Process(None))
    }

    /// The same for requests that are this user's, unless they bring a token.
    ///
    /// ```
    /// # async fn example() -> Result<(), kube::Error> {
    /// use homeostat_apiserver::{ApiServer, User};
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::Api;
    ///
    /// let server = ApiServer::builder().rbac(true).build();
    /// // Nobody has given any rights to this account.
    /// let client = server.client_as(User::service_account("default", "operator"));
    /// let secrets: Api<Secret> = Api::default_namespaced(client);
    /// let Err(kube::Error::Api(status)) = secrets.get("password").await else {
    ///     panic!("it may not");
    /// };
    /// assert!(status.message.starts_with(
    ///     r#"secrets "password" is forbidden: User "system:serviceaccount:default:operator" cannot get"#
    /// ));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn service_as(&self, user: User) -> Service {
        Service::new(
            Arc::clone(&self.core),
            Entrance::Process(Some(Arc::new(user))),
        )
    }

    /// A client in process whose requests are this user's: see [`service_as`](Self::service_as). The default namespace
    /// of a service account is its own, as in a pod; that of others is `default`.
    #[must_use]
    pub fn client_as(&self, user: User) -> kube::Client {
        let namespace = user.account().map_or("default", |(namespace, _)| namespace);
        let namespace = namespace.to_owned();
        kube::Client::new(self.service_as(user), namespace)
    }

    /// A token of a service account that is there, good for an hour of the server's time: what the subresource `token`
    /// answers. `None` if the account is not there.
    ///
    /// With [`rbac(true)`](ApiServerBuilder::rbac) requests with it are the account's, until it expires or the account
    /// is deleted. Otherwise nobody checks it.
    #[must_use]
    pub fn service_account_token(&self, namespace: &str, name: &str) -> Option<String> {
        let caller = Caller {
            entrance: &Entrance::Process(None),
            authorization: None,
            agent: "",
            open: false,
        };
        let requester = self.core.access.identify(caller, |_| None).ok()?;
        self.core
            .stage
            .with(|registry| registry.token_of(namespace, name, &requester))
    }

    /// Listens on an address and speaks HTTP/1.1 and HTTP/2, with TLS if the server was built with
    /// [`https`](ApiServerBuilder::https). Without tokens whoever can connect can do everything: use a
    /// loopback address.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<Listening> {
        let service = Service::new(Arc::clone(&self.core), Entrance::Socket);
        let grace = self.core.config.shutdown_grace;
        Listening::start(address, self.protocol, service, self.hosts.clone(), grace).await
    }

    /// The faults that are injected in front of the server.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.core.faults.clone()
    }

    /// The requests that came in.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.core.requests.clone()
    }

    /// The server's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.core.stage.with(|registry| registry.timestamp())
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.core.stage.with(|registry| registry.store.revision())
    }

    /// Everything that is stored, in the order of resources, namespaces and names.
    #[must_use]
    pub fn objects(&self) -> Vec<StoredObject> {
        self.core.stage.with(|registry| journal::objects(registry))
    }

    /// Shows everything that is stored, as [`objects`](Self::objects) answers it, without a copy of anything.
    ///
    /// The server waits meanwhile: `look` must not ask it for anything.
    pub fn visit_objects(&self, look: impl FnMut(ObjectView<'_>)) {
        self.core
            .stage
            .with(|registry| journal::visit_objects(registry, look));
    }

    /// Every write after a revision, oldest first, with the object before and after it. What was
    /// [compacted](Self::compact) is not in it.
    ///
    /// ```
    /// # async fn example() -> Result<(), kube::Error> {
    /// # use homeostat_apiserver::ApiServer;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::{Api, api::{ObjectMeta, PostParams}};
    /// let server = ApiServer::builder().build();
    /// let revision = server.revision();
    /// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    /// let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
    /// let map = ConfigMap { metadata, ..ConfigMap::default() };
    /// maps.create(&PostParams::default(), &map).await?;
    /// let changes = server.changes_after(revision);
    /// assert_eq!(changes[0].name, "a");
    /// assert_eq!(changes[0].before, None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn changes_after(&self, revision: u64) -> Vec<StoredChange> {
        self.core
            .stage
            .with(|registry| journal::changes_after(registry, revision))
    }

    /// Shows every write after a revision, as [`changes_after`](Self::changes_after) answers it, without a copy of
    /// anything.
    ///
    /// The server waits meanwhile: `look` must not ask it for anything.
    pub fn visit_changes(&self, revision: u64, look: impl FnMut(ChangeView<'_>)) {
        self.core
            .stage
            .with(|registry| journal::visit_changes(registry, revision, look));
    }

    /// Forgets the history: watches, continue tokens and exact lists of older revisions are expired.
    pub fn compact(&self) {
        self.core.compact();
    }

    /// Lets the garbage collector make its next write. False if it has nothing to do.
    ///
    /// For servers that were built without garbage collection; with it, this may overtake the task.
    #[must_use]
    pub fn step_garbage_collection(&self) -> bool {
        self.core.stage.step(Actor::GarbageCollector)
    }

    /// Lets the namespace controller make its next write. False if it has nothing to do.
    #[must_use]
    pub fn step_namespaces(&self) -> bool {
        self.core.stage.step(Actor::Namespaces)
    }

    /// Lets the workloads make their next write. False if they have nothing to do.
    #[must_use]
    pub fn step_workloads(&self) -> bool {
        self.core.stage.step(Actor::Workloads)
    }

    /// What a test can do to the workloads: hold them back, and let pods fail.
    #[must_use]
    pub fn workloads(&self) -> Workloads {
        Workloads::of(&self.core.stage)
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

// === impl ApiServerBuilder ===

impl ApiServerBuilder {
    /// The server's wall clock. By default it is [`SystemClock`](crate::SystemClock): the machine's, and under tokio's
    /// paused time what goes with tokio's clock. With [`TokioClock`](crate::TokioClock) it starts where you want, so
    /// that every run of a test has the same dates.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Where uids, generated names and addresses come from. 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The limits of the server.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Whether the garbage collector runs by itself. On by default.
    pub fn garbage_collection(mut self, enabled: bool) -> Self {
        self.enabled.set(Actor::GarbageCollector, enabled);
        self
    }

    /// Whether namespaces that are deleted are emptied and removed. On by default.
    pub fn namespace_deletion(mut self, enabled: bool) -> Self {
        self.enabled.set(Actor::Namespaces, enabled);
        self
    }

    /// Whether every namespace gets the `ServiceAccount` `default` and the `ConfigMap`
    /// `kube-root-ca.crt`, which is empty here, as from a cluster's controllers. Off by default.
    pub fn namespace_defaults(mut self, enabled: bool) -> Self {
        self.enabled.set(Actor::Furnishing, enabled);
        self
    }

    /// Whether the workloads fare as if a cluster were there, as far as objects and statuses show: Deployments roll
    /// out by way of `ReplicaSet`s, Pods are put on a node, run and end, and `PodDisruptionBudget`s are kept. Off by
    /// default.
    ///
    /// There is one node, `node-1`. Nodes that you create become ready, unless you say in their status that they are not.
    ///
    /// A pod is ready at once unless a test says otherwise, by [`ApiServer::workloads`] or by annotations of the pod,
    /// or of what makes it:
    ///
    /// | annotation | value |
    /// |---|---|
    /// | `homeostat.dev/pod` | `never-ready`, `image-pull-error`, `crash-loop`, `unschedulable`, `fail` or `complete`: a [`Fate`](crate::Fate) |
    /// | `homeostat.dev/ready-after` | how long it takes to become ready: `30s` |
    /// | `homeostat.dev/run-for` | how long it runs before it completes or fails: `1m 30s` |
    /// | `homeostat.dev/end-after` | how long it takes to end when it is deleted |
    ///
    /// What they leave out: no probe is run, no resource request or node capacity limits where a pod goes, nothing
    /// writes Events, quotas are not counted, `ReplicationController`s make no pods, no `ReplicaFailure` condition is
    /// set, and of a Job `podFailurePolicy`, `successPolicy` and `backoffLimitPerIndex` have no effect.
    pub fn workloads(mut self, enabled: bool) -> Self {
        self.enabled.set(Actor::Workloads, enabled);
        self
    }

    /// Whether [`ApiServer::serve`] speaks HTTPS. Each listener then has a certificate authority of its
    /// own, see [`Listening::ca_certificate`]. Off by default.
    pub fn https(mut self, enabled: bool) -> Self {
        self.protocol = if enabled {
            Protocol::Https
        } else {
            Protocol::Http
        };
        self
    }

    /// Lets a server that [listens](ApiServer::serve) on the loopback interface with plain HTTP answer to this name
    /// too.
    ///
    /// By default it answers to `localhost`, names that end with `.localhost`, and the addresses of the loopback
    /// interface, and with 421 to any other `Host`: a web page can make a name of its own point to the loopback
    /// interface, and would read what is answered.
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Lets requests with this bearer token be the user's.
    ///
    /// With the first token, a request without one that is known gets 401, but for health and
    /// version. Requests in process need none: they are the administrator's, unless they bring one.
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.insert(token.into(), Arc::new(user));
        self
    }

    /// Decides who may do what. By default everybody may do everything.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizer = Box::new(authorizer);
        self
    }

    /// Whether `Role`s, `ClusterRole`s and their bindings decide who may do what, as in a cluster. Off by default.
    ///
    /// - Users are those of [`token`](Self::token), and service accounts by tokens that
    ///   [`service_account_token`](ApiServer::service_account_token) and the subresource `token` give. A request on a
    ///   socket without a token that is known gets 401, but for health and version. Requests in process are the
    ///   administrator's, unless they bring a token or come by [`client_as`](ApiServer::client_as).
    /// - Members of `system:masters` may do everything. They may act as others, by the headers of `kubectl --as`.
    /// - The roles `cluster-admin`, `admin`, `edit`, `view`, and those for discovery and for `kubectl auth can-i` are
    ///   there from the start, and roles that collect others by labels get their rules.
    /// - Whoever writes roles and bindings can give only what they have, or what they may `escalate` or `bind`.
    /// - With an [`authorizer`](Self::authorizer), too, both have to allow a request.
    ///
    /// Service accounts' tokens are signed with a random key: they differ from run to run.
    pub fn rbac(mut self, enabled: bool) -> Self {
        self.rbac = enabled;
        self.enabled.set(Actor::Aggregation, enabled);
        self
    }

    /// Whether the server notes what requests need, where the environment variable `HOMEOSTAT_REQUESTS` names a folder
    /// for that: verb, resource, namespace, user and user agent, as a line of JSON each. `homeostat rbac` sets it, and
    /// writes roles from what it finds. On by default; switch it off where an operator is made to misbehave.
    pub fn notes_requests(mut self, enabled: bool) -> Self {
        self.notes_requests = enabled;
        self
    }

    /// Whether `POST /debug/compact` does what [`ApiServer::compact`] does, and
    /// `POST /debug/advance?ms=N` what was said by [`advance_with`](Self::advance_with). Off by default.
    ///
    /// On a socket such a request needs a header that a form on a web page cannot send: `X-Homeostat-Debug` with any
    /// value. `Content-Type: application/json` or a bearer token will do, too.
    pub fn debug(mut self, enabled: bool) -> Self {
        self.debug = enabled;
        self
    }

    /// How `POST /debug/advance` moves time forward: `tokio::time::advance`, where tokio's time is
    /// paused. By default time goes by itself, and the request is refused.
    pub fn advance_with(
        mut self,
        advance: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.advance = Some(Box::new(advance));
        self
    }

    /// Builds the server and starts its controllers, if there is a tokio runtime.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let Self {
            clock,
            seed,
            config,
            enabled,
            debug,
            advance,
            protocol,
            hosts,
            tokens,
            authorizer,
            rbac,
            notes_requests,
        } = self;
        let clock = clock.unwrap_or_else(|| Box::new(SystemClock));
        let mut registry = Registry::new(config.clone(), clock, seed);
        if rbac {
            registry.make_default_roles();
        }
        let revisions = registry.store.revisions();
        let nudge = Arc::new(Notify::new());
        let stage = Arc::new(Stage {
            registry: Mutex::new(registry),
            actors: Mutex::new(Actors::default()),
            nudge: Arc::clone(&nudge),
        });
        if enabled.has(Actor::Workloads) {
            // There is a node that is ready from the start.
            while stage.step(Actor::Workloads) {}
        }
        if rbac {
            // The default roles have their rules from the start.
            while stage.step(Actor::Aggregation) {}
        }
        let keys = rbac.then(Keys::generate);
        let needs = notes_requests.then(Needs::of_process).flatten();
        let actors = drive(Arc::downgrade(&stage), enabled, revisions, nudge);
        task::start_if_possible(actors);
        let drops = watch::Sender::new(0);
        let core = Core {
            stage,
            faults: Faults::new(drops.clone()),
            requests: Requests::new(config.max_logged_requests),
            config,
            drops,
            debug: debug.then_some(Debug { advance }),
            access: Arc::new(Access::new(tokens, authorizer, keys, needs)),
        };
        ApiServer {
            core: Arc::new(core),
            protocol,
            hosts: Hosts::new(hosts),
        }
    }
}

impl fmt::Debug for ApiServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            clock: _,
            seed,
            config,
            enabled,
            debug,
            advance: _,
            protocol,
            hosts,
            tokens: _,
            authorizer: _,
            rbac,
            notes_requests,
        } = self;
        f.debug_struct("ApiServerBuilder")
            .field("seed", seed)
            .field("config", config)
            .field("enabled", enabled)
            .field("debug", debug)
            .field("protocol", protocol)
            .field("hosts", hosts)
            .field("rbac", rbac)
            .field("notes_requests", notes_requests)
            .finish_non_exhaustive()
    }
}

//! Several controllers as one program: shared watches, leader election, an orderly start and an orderly end.

mod handle;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "server")]
mod page;
mod run;
#[cfg(feature = "server")]
mod server;
mod status;
mod steps;
mod stopping;
mod unit;
mod worker;

#[cfg(feature = "metrics")]
pub use self::metrics::NAMES as METRICS;
#[cfg(feature = "server")]
pub use self::server::Server;
#[cfg(feature = "tls")]
pub use self::server::rustls;
pub use self::{
    handle::Handle,
    status::{Phase, Status, UnitStatus},
    steps::{STEPS, Step, What},
    stopping::Stopping,
    unit::{Task, Unit},
};

use self::{
    handle::{Command, Shared},
    run::Running,
};
use crate::{leadership::LeaderElection, reflector::Store, sharding::Sharding, signal, watcher};
use futures::{Stream, StreamExt, stream::BoxStream};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::{
    fmt::{self, Debug},
    hash::Hash,
    sync::Arc,
    time::Duration,
};
use tokio::sync::mpsc;

/// How long runs and tasks may go on after the manager was told to stop. A pod is killed 30 s after SIGTERM by
/// default; the rest is for giving the lease up.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);

/// Runs controllers and background tasks as one program.
///
/// ```no_run
/// use homeostat::{
///     Action, Controller, Manager, client::Tracked, error_policy, leadership::LeaderElection, manager::Task,
///     reflector::{ObjectRef, Store}, watcher,
/// };
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
/// use kube::{Api, Client};
/// use std::sync::Arc;
///
/// struct Context {
///     client: Client,
///     secrets: Store<Secret>,
/// }
///
/// # #[derive(Debug, thiserror::Error)]
/// # enum Error {}
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, Error> {
///     // Both controllers read Secrets from the same store.
///     Ok(Action::await_change())
/// }
/// # async fn roll_out(_: Arc<Deployment>, _: Arc<Context>) -> Result<Action, Error> {
/// #     Ok(Action::await_change())
/// # }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Tracked::try_default().await?;
/// let manager = Manager::new(client.clone());
/// let ctx = Arc::new(Context { client: client.clone(), secrets: manager.store::<Secret>() });
/// let all = watcher::Config::default;
///
/// let maps = Controller::new(Api::<ConfigMap>::all(client.clone()), all())
///     .owns(Api::<Deployment>::all(client.clone()), all())
///     .run(reconcile, error_policy::backoff, Arc::clone(&ctx));
/// let deployments = Controller::new(Api::<Deployment>::all(client), all())
///     .run(roll_out, error_policy::backoff, ctx);
///
/// manager
///     .add(maps)
///     .add(deployments)
///     .task(Task::new("report", |stopping| async move {
///         stopping.requested().await;
///         Ok::<_, std::io::Error>(())
///     }))
///     .leader_election(LeaderElection::try_default("my-operator").await?)
///     .run()
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// A controller is added as the stream that [`Controller::run`](crate::Controller::run) returns, and all that
/// controllers can do they can do here: [`status_conditions`](crate::Controller::status_conditions),
/// [`finalizer`](crate::Controller::finalizer), watches that are added while they run. The manager polls the stream,
/// and the log tells of its errors; use an adapter such as `inspect` before you add it to look at the items yourself.
///
/// # Guarantees
///
/// - **Equal watches are one watch.** What controllers list and watch, their own kinds and with `owns` and `watches`,
///   is asked for once if kind, scope, selectors and Rust type are equal, and kept once. A controller that comes late
///   gets what is there and then each change. A slow one stalls nobody. [`labels`](watcher::Config::labels),
///   [`fields`](watcher::Config::fields), whether lists may be [stale](watcher::Config::any_semantic) and whether
///   [`managedFields` are kept](crate::Config::managed_fields) tell watches apart; page sizes and timeouts do not: those of the first
///   one count.
/// - **Nothing is reconciled before the caches are complete**: those of the controller, and every
///   [`store`](Self::store) of the manager.
/// - **A controller whose definition is missing waits for it** ([`Phase::WaitsForDefinition`]) and starts when it
///   appears. The others do not wait.
/// - **The failure of one stays its own.** A controller or task that panics or ends is told in [`Status`] and in the
///   log, and the others go on.
/// - **With [`leader_election`](Self::leader_election) at most one replica reconciles.** The others keep their caches
///   warm. When leadership is lost, runs are cancelled at their next `await`, before another replica may start, and
///   what they would still write through a [tracked client](crate::client) is refused
///   ([`client::Deposed`](crate::client::Deposed)).
/// - **With [`sharded`](Self::sharded) each object is reconciled by one of several replicas**, which divide them among each
///   other. When replicas come and go, only the objects move that have to: see [`sharding`](crate::sharding).
/// - **The end is orderly**: see [`run`](Self::run) and [`STEPS`].
///
/// # Assumptions
///
/// All controllers of a manager talk to the same cluster, with clients that may read the same. For another cluster make
/// another manager.
///
/// # Caveats
///
/// A watch that only wakes controllers (`owns`, `watches`) keeps no objects. Mappers and filters run in the task of
/// the watch that they belong to, so one that takes long delays the others of that watch. Mappers of `owns` and
/// `watches` may see objects without `managedFields`.
#[must_use = "nothing happens before `run`"]
pub struct Manager {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    units: Vec<Unit>,
    election: Option<LeaderElection>,
    sharding: Option<Sharding>,
    shutdown_timeout: Duration,
    stops: Option<BoxStream<'static, ()>>,
    #[cfg(feature = "server")]
    server: Option<Server>,
}

/// Why a manager did not end as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was told to stop a second time, so it dropped everything.
    #[error("stopped at once, because of a second request to stop: what ran was dropped")]
    Aborted,
    /// The address of its server cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why it cannot be used.
        source: std::io::Error,
    },
    /// Runs or tasks did not end in time, and were cancelled.
    #[error("{} did not end within {timeout:?} and were cancelled", .units.join(", "))]
    Overdue {
        /// The names of the controllers and tasks.
        units: Vec<String>,
        /// How long they had.
        timeout: Duration,
    },
}

// === impl Manager ===

impl Manager {
    /// A manager without controllers. `client` is the one that its [stores](Self::store) are filled with.
    ///
    /// Make the client with [`Tracked`](crate::client::Tracked), as for a single controller.
    pub fn new(client: Client) -> Self {
        let (sender, commands) = mpsc::unbounded_channel();
        Self {
            shared: Arc::new(Shared::new(client, sender)),
            commands,
            units: Vec::new(),
            election: None,
            sharding: None,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            stops: None,
            #[cfg(feature = "server")]
            server: None,
        }
    }

    /// Adds a controller, as the stream that its `run` returns, or as a [`Unit`] if you want to name it or have it
    /// work on every replica.
    ///
    /// Its name is its kind, as `website`, and a number if there is such a one already.
    #[expect(
        clippy::should_implement_trait,
        reason = "it adds to the manager, and nobody takes a manager for a number"
    )]
    pub fn add(mut self, controller: impl Into<Unit>) -> Self {
        self.units.push(controller.into());
        self
    }

    /// Adds a background task or a server.
    pub fn task(mut self, task: Task) -> Self {
        self.units.push(task.into());
        self
    }

    /// Lets only one of several replicas work. The others stand by: their caches are kept up to date, and they are
    /// ready.
    ///
    /// Use a client of its own for the election, so that a busy client cannot cost the lease:
    /// [`LeaderElection::try_default`] makes one.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.election = Some(election);
        self
    }

    /// Lets several replicas work, and divides the objects of the controllers among them: see [`sharding`](crate::sharding).
    ///
    /// A controller that works [on every replica](Unit::on_every_replica) reconciles all objects on each. Tasks are not
    /// divided: with [`leader_election`](Self::leader_election) as well they run on one replica, and the controllers on all.
    ///
    /// Use a client of its own for the leases, so that a busy client cannot cost the share:
    /// [`Sharding::try_default`] makes one.
    pub fn sharded(mut self, sharding: Sharding) -> Self {
        self.sharding = Some(sharding);
        self
    }

    /// Answers probes, and scrapes with the feature `metrics`, on this address: see [`Server`].
    #[cfg(feature = "server")]
    pub fn serve(mut self, server: impl Into<Server>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// How long runs and tasks may go on after the manager was told to stop; 25 s by default.
    ///
    /// Keep it a few seconds below the pod's `terminationGracePeriodSeconds`, which is 30 by default: the lease is
    /// given up after it.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Stops when `requests` yields, and at once when it yields again, in place of SIGINT and SIGTERM.
    pub fn stop_on(mut self, requests: impl Stream<Item = ()> + Send + 'static) -> Self {
        self.stops = Some(requests.boxed());
        self
    }

    /// The store of all objects of a kind. There is one, whoever asks for it, and if a controller is of this kind or
    /// watches it too, there is still one watch. No controller of this manager starts a run before it is complete.
    ///
    /// It must be called in a tokio runtime, and before the controllers are added that are to wait for it.
    #[must_use]
    pub fn store<K>(&self) -> Store<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.handle().store()
    }

    /// The same for the objects that `api` and `wc` select, and for types known at run time.
    #[must_use]
    pub fn store_of<K>(
        &self,
        api: Api<K>,
        wc: watcher::Config,
        dyntype: &K::DynamicType,
    ) -> Store<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        self.handle().store_of(api, wc, dyntype)
    }

    /// Tells of the manager, and changes it, while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Runs until the process gets SIGTERM or SIGINT (Ctrl+C), or a [`Handle`] says so.
    ///
    /// Then no run starts any more. Those that are under way have [25 s](Self::shutdown_timeout), and are then
    /// cancelled. After that the lease is given up, and at last servers stop. A manager that has nothing under way is
    /// at its end at once, whether its caches are complete or not. A second signal aborts: everything is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] after a second signal, and [`Error::Overdue`] if something had to be cancelled.
    /// [`Error::Listen`] at once if it cannot answer probes.
    pub async fn run(self) -> Result<(), Error> {
        let Self {
            shared,
            commands,
            units,
            election,
            sharding,
            shutdown_timeout,
            stops,
            #[cfg(feature = "server")]
            server,
        } = self;
        #[cfg(feature = "server")]
        let units = match server {
            None => units,
            Some(server) => {
                let listening = server.listen(Arc::clone(&shared)).await;
                let listening =
                    listening.map_err(|(address, source)| Error::Listen { address, source })?;
                std::iter::once(listening.into_task().into())
                    .chain(units)
                    .collect()
            }
        };
        let stops = stops.unwrap_or_else(|| signal::all().boxed());
        let groups = (election, sharding);
        let running = Running::new(shared, commands, groups, shutdown_timeout, stops);
        running.run(units).await
    }
}

impl Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("units", &self.units)
            .field("election", &self.election)
            .field("sharding", &self.sharding)
            .field("shutdown_timeout", &self.shutdown_timeout)
            .finish_non_exhaustive()
    }
}

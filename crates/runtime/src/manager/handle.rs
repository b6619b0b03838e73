//! What can be asked of a manager, and told it, while it runs.

use super::{
    Status, Task, Unit, UnitStatus,
    status::{self, Phase},
    unit::Role,
};
use crate::{
    controller::{About, Watches},
    leadership::Leadership,
    reflector::Store,
    sharding::Membership,
    term::Duty,
    watcher,
};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Tells of a manager, and changes it, while it runs. Clones are of the same manager.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

/// What a manager and its handles share.
pub(super) struct Shared {
    pub(super) watches: Watches,
    pub(super) client: Client,
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) leadership: OnceLock<Leadership>,
    /// What this replica has to do with others that work as well.
    pub(super) membership: OnceLock<Membership>,
    /// What those that are bound to leadership may do.
    pub(super) duty: watch::Sender<Duty>,
    /// How many runs and tasks there are that are bound to leadership.
    pub(super) busy: watch::Sender<usize>,
    pub(super) stopping: watch::Sender<bool>,
    #[cfg(feature = "server")]
    pub(super) address: OnceLock<std::net::SocketAddr>,
    units: Mutex<BTreeMap<u64, Known>>,
}

/// What is known of a controller or task.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) about: Arc<OnceLock<About>>,
    pub(super) is_controller: bool,
    /// Whether it works, as a task says it.
    pub(super) works: bool,
    /// How it ended.
    pub(super) ended: Option<Result<(), String>>,
}

pub(super) enum Command {
    Add(Box<Unit>),
    Remove(String, oneshot::Sender<()>),
    Stop,
    StepDown,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(client: Client, commands: mpsc::UnboundedSender<Command>) -> Self {
        Self {
            watches: Watches::new(),
            client,
            commands,
            leadership: OnceLock::new(),
            membership: OnceLock::new(),
            duty: watch::Sender::new(Duty::Standby),
            busy: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
            #[cfg(feature = "server")]
            address: OnceLock::new(),
            units: Mutex::default(),
        }
    }

    pub(super) fn units(&self) -> MutexGuard<'_, BTreeMap<u64, Known>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that no other has. A controller that does not say how it is called goes by its kind.
    pub(super) fn name(&self, wanted: &str) -> String {
        let units = self.units();
        let is_free = |name: &str| units.values().all(|known| known.name != name);
        if is_free(wanted) {
            return wanted.to_owned();
        }
        let mut numbered = (2_u64..).map(|number| format!("{wanted}-{number}"));
        let free = numbered.find(|name| is_free(name));
        free.unwrap_or_else(|| wanted.to_owned())
    }

    fn status(&self) -> Status {
        let leads = *self.duty.borrow() == Duty::Work;
        let membership = self.membership.get();
        let runs = membership.map_or(leads, Membership::runs);
        let status = |one: &Known| one.status(if one.is_controller { runs } else { leads });
        let units: Vec<UnitStatus> = self.units().values().map(status).collect();
        let stopping = *self.stopping.borrow();
        let reasons = |unit: &UnitStatus| {
            let name = unit.name.clone();
            let reasons = unit.reasons().into_iter();
            reasons.map(move |why| format!("{name}: {why}"))
        };
        let mut waits_for: Vec<String> = units.iter().flat_map(reasons).collect();
        if units.is_empty() && !stopping {
            waits_for.push("the start".into());
        }
        if stopping {
            waits_for.push("it stops".into());
        }
        Status {
            ready: waits_for.is_empty(),
            waits_for,
            units,
            leadership: self.leadership.get().map(Leadership::status),
            sharding: membership.map(Membership::status),
            watches: self.watches.labels(),
            stopping,
        }
    }
}

// === impl Known ===

impl Known {
    fn status(&self, leads: bool) -> UnitStatus {
        let may_work = leads || self.role != Role::Leader;
        let about = self.about.get();
        let (phase, waits_for) = match (&self.ended, about) {
            (Some(Ok(())), _) => (Phase::Ended, Vec::new()),
            (Some(Err(why)), _) => (Phase::Failed(why.clone()), Vec::new()),
            (None, Some(about)) => status::of_controller(about, may_work),
            (None, None) if self.is_controller => (Phase::Starting, Vec::new()),
            (None, None) if self.works => (Phase::Running, Vec::new()),
            (None, None) if may_work => (Phase::Starting, Vec::new()),
            (None, None) => (Phase::Standby, Vec::new()),
        };
        UnitStatus {
            name: self.name.clone(),
            phase,
            waits_for,
            counts: about.map(About::counts),
        }
    }
}

// === impl UnitStatus ===

impl UnitStatus {
    /// Why the manager is not ready because of this one.
    pub(super) fn reasons(&self) -> Vec<String> {
        let Self {
            phase, waits_for, ..
        } = self;
        match phase {
            Phase::Failed(_) | Phase::Starting => vec![phase.to_string()],
            Phase::Ended => Vec::new(),
            Phase::Syncing if waits_for.is_empty() => vec![phase.to_string()],
            Phase::WaitsForDefinition | Phase::Syncing | Phase::Standby | Phase::Running => {
                waits_for.clone()
            }
        }
    }
}

// === impl Handle ===

impl Handle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// How the manager is, and all that it runs.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// Whether this replica leads, and how to change that; `None` without leader election, and before the manager
    /// runs. To step down, use [`step_down`](Self::step_down), which lets runs end first.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.0.leadership.get().cloned()
    }

    /// What this replica has to do with its group; `None` without [sharding](super::Manager::sharded), and before the
    /// manager runs.
    #[must_use]
    pub fn membership(&self) -> Option<Membership> {
        self.0.membership.get().cloned()
    }

    /// Where the manager's [server](super::Server) listens, once it does.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.0.address.get().copied()
    }

    /// Adds a controller; see [`Manager::add`](super::Manager::add).
    ///
    /// Once the manager stops nothing is added any more.
    pub fn add(&self, controller: impl Into<Unit>) {
        self.command(Command::Add(Box::new(controller.into())));
    }

    /// Adds a background task or a server.
    pub fn task(&self, task: Task) {
        self.add(task);
    }

    /// Stops a controller or task, and waits until it has ended: its runs end, or are cancelled after the manager's
    /// [time for that](super::Manager::shutdown_timeout). The others go on. False if there is none of this name.
    ///
    /// Watches that nobody else follows end with it.
    pub async fn remove(&self, name: &str) -> bool {
        let (reply, removed) = oneshot::channel();
        self.command(Command::Remove(name.to_owned(), reply));
        removed.await.is_ok()
    }

    /// Stops the manager, as SIGTERM does. The second time it aborts.
    pub fn stop(&self) {
        self.command(Command::Stop);
    }

    /// Gives leadership up for the benefit of another replica: no run starts any more, those that are under way end or
    /// are cancelled after the manager's [time for that](super::Manager::shutdown_timeout), and then the lease is
    /// released. This replica tries to lead again when others have had one lease's duration to take it.
    pub fn step_down(&self) {
        self.command(Command::StepDown);
    }

    /// See [`Manager::store`](super::Manager::store).
    #[must_use]
    pub fn store<K>(&self) -> Store<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.0.client.clone());
        self.store_of(api, watcher::Config::default(), &())
    }

    /// See [`Manager::store_of`](super::Manager::store_of).
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
        self.0.watches.store(api, wc, dyntype)
    }

    fn command(&self, command: Command) {
        // A manager that has ended takes no commands.
        drop(self.0.commands.send(command));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.status()).finish()
    }
}

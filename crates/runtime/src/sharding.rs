//! Sharding: several replicas of a program divide the objects of its controllers among each other.
//!
//! ```no_run
//! # use homeostat::{Action, Controller, Manager, client::Tracked, error_policy, watcher};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kube::Api;
//! # use std::sync::Arc;
//! use homeostat::sharding::Sharding;
//!
//! # async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, std::io::Error> {
//! #     Ok(Action::await_change())
//! # }
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Tracked::try_default().await?;
//! let maps = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
//!     .run(reconcile, error_policy::backoff, Arc::new(()));
//! Manager::new(client)
//!     .add(maps)
//!     .sharded(Sharding::try_default("my-operator").await?)
//!     .run()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! Each replica is a member of a group, and holds a `coordination.k8s.io/v1` Lease of its own in it. An object belongs to
//! the member that has the greatest score for the hash of its uid. [`homeostat_core::shard`] says how that is
//! computed, how objects are handed over, and why no object is reconciled by two members.
//!
//! # Guarantees
//!
//! - At no instant do two members reconcile the same object, whatever their clocks show, as long as the clocks run equally
//!   fast. A member that cannot renew its lease stops its runs before another one may take over, as a
//!   [leader](crate::leadership) does, and what they would still write through a [tracked client](crate::client) is
//!   refused.
//! - When a member joins, only objects that it gets move. Their runs elsewhere end first, or are cancelled after
//!   [a while](Sharding::hand_over). When a member leaves, only its objects move, at once if it was stopped and after its
//!   lease's duration if it crashed.
//! - Each object that a member gets is reconciled there once, because whoever had it may have left something half done.
//! - Objects that are related to one, such as its children, concern the member that has the object itself. An event of a child
//!   leads to a run there and nowhere else.
//!
//! # Assumptions
//!
//! - The program's service account may `get`, `list`, `create`, `update` and `delete` leases in the namespace.
//! - All replicas have the same [number of slots](Sharding::slots). One with another number does not join, and says so in its
//!   [status](Status::obstacle).
//! - Nobody deletes the lease of a member that lives.
//!
//! # Caveats
//!
//! - What counts is the object, not its name. If an object is deleted and another one with its name is made, that one may belong
//!   to another member, which can reconcile it while the run of the old one comes to its end. A
//!   [finalizer](crate::Controller::finalizer) keeps the name until the old object's last run.
//! - Background [tasks](crate::manager::Task) are not divided: use [leader election](crate::Manager::leader_election) for
//!   these as well, or let them run on every replica.
//! - A member asks the server to list and watch only what belongs to it, with `shardSelector` (KEP-5866, alpha in Kubernetes 1.36),
//!   and lists anew when its share changes. Its [store](crate::Controller::store) then holds only these objects. A server that
//!   does not select shows all objects, and those of others are left alone. With more than about 2,048 slots the server is not
//!   asked, because the request would be too long.
//! - Objects related to those of a controller, and [stores](crate::Manager::store) of the manager, are watched whole on each
//!   member: the server cannot select by owner.
//! - What keeps its thread busy cannot be cancelled. A reconciler that never comes to an `await` keeps what it runs from moving.

mod ledger;
mod record;
mod registrar;

pub use self::registrar::Registrar;
pub use homeostat_core::{
    lease::{Config, InvalidConfig},
    shard::{InvalidSlots, Loss, Slots},
};

pub(crate) use self::ledger::{Account, Open, Shares};

use self::ledger::Ledger;
use crate::{
    leadership::unique_identity,
    term::{Duty, Term},
};
use homeostat_core::shard::Share;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// How long runs of objects that move go on.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Takes part in a group of replicas that share the objects. The [module](self) shows it at work.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before a manager runs with it"]
pub struct Sharding {
    leases: Api<Lease>,
    group: String,
    identity: String,
    config: Config,
    slots: Slots,
    hand_over: Duration,
}

/// What this replica has to do with its group, and ways to end that. Clones are of the same replica.
#[derive(Clone)]
pub struct Membership {
    term: Term,
    status: watch::Receiver<Status>,
    duty: watch::Receiver<Duty>,
    share: watch::Receiver<Arc<Share>>,
    ledger: Ledger,
    hand_over: Duration,
    commands: mpsc::UnboundedSender<Command>,
    identity: Arc<str>,
}

/// What is known of the group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whether this replica reconciles its share.
    pub runs: bool,
    /// The members that are counted, this one included, by name.
    pub members: Vec<String>,
    /// The members that have not yet said that they have stopped what this one is to take over.
    pub awaits: Vec<String>,
    /// How often this replica has joined.
    pub epoch: u32,
    /// How often its share has changed.
    pub view: u64,
    /// Why it runs nothing any more, if it ever did.
    pub loss: Option<Loss>,
    /// Why it does not join, if the requests succeed.
    pub obstacle: Option<String>,
    /// Why the latest request failed, until one succeeds.
    pub last_error: Option<String>,
    /// Whether it has left the group.
    pub ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Stop,
    Idle,
}

// === impl Sharding ===

impl Sharding {
    /// Takes part in the group `group` with leases in `namespace`, with the durations of leader election: a lease of 15 s,
    /// given up when it could not be renewed for 10 s, and an attempt every 2 s.
    ///
    /// The group's name is a part of the leases' names and the value of their label `homeostat.dev/shards`, so it must be a
    /// valid one of at most 63 letters, digits, `-` and `.`. Use a `client` of its own: one that waits for the answers to a
    /// thousand other requests cannot renew the lease in time.
    pub fn new(client: Client, namespace: &str, group: impl Into<String>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            group: group.into(),
            identity: unique_identity(),
            config: Config::default(),
            slots: Slots::default(),
            hand_over: HAND_OVER,
        }
    }

    /// The same with a client that this makes for itself from the environment's configuration, in the pod's namespace.
    ///
    /// # Errors
    ///
    /// There is no configuration, or none that works.
    pub async fn try_default(group: impl Into<String>) -> kube::Result<Self> {
        let config = kube::Config::infer()
            .await
            .map_err(kube::Error::InferConfig)?;
        let namespace = config.default_namespace.clone();
        let client = crate::client::Tracked::client(config)?;
        Ok(Self::new(client, &namespace, group))
    }

    /// Names this member, in place of the program's and the host's names with a random part.
    ///
    /// The name must be of this life of the process alone: two that share it would reconcile the same objects.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Other durations. Members with other ones get on with each other. With hundreds of members choose longer ones:
    /// [`homeostat_core::shard`] says what they cost.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Into how many parts the objects are divided, 1,024 by default. More parts divide more evenly: with `n` members and `s`
    /// slots, the standard deviation of a member's share is about `sqrt(n / s)` of it.
    pub fn slots(mut self, slots: Slots) -> Self {
        self.slots = slots;
        self
    }

    /// How long runs of objects that move to another member may go on, 10 s by default. They are cancelled then, at their next
    /// `await`. The other member waits for that.
    pub fn hand_over(mut self, time: Duration) -> Self {
        self.hand_over = time;
        self
    }

    /// Joins the group. Whoever owns the [`Registrar`] must run it, in a task of its own.
    pub(crate) fn start(self) -> (Membership, Registrar) {
        let Self {
            leases,
            group,
            identity,
            config,
            slots,
            hand_over,
        } = self;
        let term = Term::new();
        let (status, seen) = watch::channel(Status::default());
        let (duty, heard) = watch::channel(Duty::Standby);
        let (share, shown) = watch::channel(Arc::new(Share::new(slots, 0, &identity, [])));
        let (commands, received) = mpsc::unbounded_channel();
        let ledger = Ledger::default();
        let membership = Membership {
            term: term.clone(),
            status: seen,
            duty: heard,
            share: shown,
            ledger: ledger.clone(),
            hand_over,
            commands,
            identity: identity.as_str().into(),
        };
        let lease = format!("{group}-{:016x}", fastrand::u64(..));
        let records = record::Records::new(leases, group, lease.clone());
        let machine = registrar::machine(&term, config, slots, identity, lease);
        let tells = registrar::Tells {
            status,
            duty,
            share,
        };
        let registrar = Registrar::new(machine, records, term, ledger, tells, received);
        (membership, registrar)
    }
}

// === impl Membership ===

impl Membership {
    /// Whether this replica reconciles its share at this moment.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.term.holds()
    }

    /// The name of this member.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What is known of the group.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.status.borrow().clone();
        status.runs = self.runs();
        status
    }

    /// Whether the object with this uid belongs to this member, among the members that it counts. It reconciles it only
    /// while it [runs](Self::runs).
    #[must_use]
    pub fn owns(&self, uid: &str) -> bool {
        self.share.borrow().owns(homeostat_core::shard::hash(uid))
    }

    /// Leaves the group. The lease is renewed until [`idle`](Self::idle) is called.
    pub(crate) fn stop(&self) {
        self.command(Command::Stop);
    }

    /// Says that nothing runs any more.
    pub(crate) fn idle(&self) {
        self.command(Command::Idle);
    }

    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    pub(crate) fn duty(&self) -> watch::Receiver<Duty> {
        self.duty.clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// How many runs there are.
    pub(crate) fn running(&self) -> watch::Sender<usize> {
        self.ledger.running().clone()
    }

    /// What a controller has to know of its share.
    pub(crate) fn account(&self) -> Account {
        Account::new(
            self.ledger.clone(),
            self.share.clone(),
            self.duty.clone(),
            self.hand_over,
        )
    }

    fn command(&self, command: Command) {
        // A registrar that has ended takes no commands.
        let _over = self.commands.send(command);
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("identity", &self.identity)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

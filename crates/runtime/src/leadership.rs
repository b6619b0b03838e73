//! Leader election: of several replicas of a program, one works and the others stand by.
//!
//! ```no_run
//! use homeostat::leadership::LeaderElection;
//!
//! # async fn work() {}
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // A client of its own, so that a busy client cannot cost the lease.
//! let client = kube::Client::try_default().await?;
//! let (leadership, elector) = LeaderElection::new(client, "default", "my-operator").start();
//! let elections = tokio::spawn(elector.run());
//!
//! leadership.acquired().await;
//! tokio::select! {
//!     () = work() => {}
//!     // Dropping the work stops it at once.
//!     () = leadership.lost() => {}
//! }
//! leadership.stop();
//! elections.await?;
//! # Ok(())
//! # }
//! ```
//!
//! The lease is a `coordination.k8s.io/v1` Lease, written as client-go's `leaderelection` writes it. Replicas in Go
//! and in Rust respect each other.
//!
//! # Guarantees
//!
//! - At no instant do two replicas lead, whatever their clocks show, as long as the clocks run equally fast. A
//!   leader stops leading before another replica may start: see [`homeostat_core::lease`] for the rules.
//! - [`Leadership::is_leader`] looks at the clock. A process that was stopped and goes on after its time is over sees at
//!   once that it leads no more.
//! - When a leader is gone, another replica leads within the lease's duration plus a retry, 17 s by default. A leader
//!   that stops releases the lease, and another replica leads within a retry.
//! - The requests are one each 2 s by default. They are never more than one at a time, and each ends within half the
//!   renew deadline.
//!
//! # Assumptions
//!
//! The program's service account may `get`, `create` and `update` leases in the namespace.

mod elector;
mod lease;

pub use self::elector::Elector;
pub use homeostat_core::lease::{Config, InvalidConfig, Loss};

pub(crate) use self::lease::unique_identity;

use crate::term::Term;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use std::{fmt, sync::Arc};
use tokio::sync::{mpsc, watch};

/// Takes part in the election of a leader. The [module](self) shows it at work.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before `start`"]
pub struct LeaderElection {
    leases: Api<Lease>,
    name: String,
    identity: String,
    config: Config,
}

/// Whether this replica leads, and ways to change that. Clones are of the same replica.
#[derive(Clone)]
pub struct Leadership {
    term: Term,
    status: watch::Receiver<Status>,
    commands: mpsc::UnboundedSender<Command>,
    identity: Arc<str>,
}

/// What is known of the election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whether this replica leads.
    pub leads: bool,
    /// Who holds the lease, as far as this replica knows.
    pub holder: Option<String>,
    /// How often this replica has become the leader.
    pub terms: u64,
    /// Why this replica leads no more, if it ever did.
    pub loss: Option<Loss>,
    /// Why the latest request failed, until one succeeds.
    pub last_error: Option<String>,
    /// Whether the election is over for this replica.
    pub ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Resign,
    Stop,
    Idle,
}

// === impl LeaderElection ===

impl LeaderElection {
    /// Takes part with the lease `name` in `namespace`, with the durations of client-go: a lease of 15 s, given up
    /// when it could not be renewed for 10 s, and an attempt every 2 s.
    ///
    /// Use a `client` of its own: one that waits for the answers to a thousand other requests cannot renew the lease
    /// in time. Its identity is made of the [program's name](crate::Identity), the host's name and of chance, so that no
    /// two lives of a program share it.
    pub fn new(client: Client, namespace: &str, name: impl Into<String>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.into(),
            identity: unique_identity(),
            config: Config::default(),
        }
    }

    /// The same with a client that this makes for itself from the environment's configuration, in the pod's namespace.
    ///
    /// # Errors
    ///
    /// There is no configuration, or none that works.
    pub async fn try_default(name: impl Into<String>) -> kube::Result<Self> {
        let config = kube::Config::infer()
            .await
            .map_err(kube::Error::InferConfig)?;
        let namespace = config.default_namespace.clone();
        let client = crate::client::Tracked::client(config)?;
        Ok(Self::new(client, &namespace, name))
    }

    /// Names this replica, in place of the program's and the host's names with a random part.
    ///
    /// The name must be of this replica and this life of the process alone: two that share it would both lead.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Other durations. All replicas should have the same.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Starts to take part. Whoever owns the [`Elector`] must run it, in a task of its own.
    ///
    /// It must be called in a tokio runtime.
    pub fn start(self) -> (Leadership, Elector) {
        let Self {
            leases,
            name,
            identity,
            config,
        } = self;
        let term = Term::new();
        let (status, seen) = watch::channel(Status::default());
        let (commands, received) = mpsc::unbounded_channel();
        let leadership = Leadership {
            term: term.clone(),
            status: seen,
            commands,
            identity: identity.as_str().into(),
        };
        let lease = lease::Record::new(leases, name);
        let elector = Elector::new(lease, identity, config, term, status, received);
        (leadership, elector)
    }
}

// === impl Leadership ===

impl Leadership {
    /// Whether this replica leads at this moment.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.term.holds()
    }

    /// The name of this replica in the lease.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What is known of the election.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.status.borrow().clone();
        status.leads = self.is_leader();
        status
    }

    /// Waits until this replica leads. It waits for ever if the election is over.
    pub async fn acquired(&self) {
        let mut status = self.status.clone();
        if status.wait_for(|status| status.leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this replica does not lead. What needs the lease must end at once then.
    pub async fn lost(&self) {
        let mut status = self.status.clone();
        let terms = status.borrow().terms;
        // A replica that leads again has led no more in between. When the elector is gone, nobody renews the lease.
        let _over = status
            .wait_for(|status| !status.leads || status.terms != terms)
            .await;
    }

    /// Gives the lease up for the benefit of others: they have one duration of it to take it, then this replica tries
    /// again. The lease is renewed until [`idle`](Self::idle) is called.
    pub fn resign(&self) {
        self.command(Command::Resign);
    }

    /// Ends the election for this replica. If it leads, the lease is renewed until [`idle`](Self::idle) is called, and
    /// then released.
    pub fn stop(&self) {
        self.command(Command::Stop);
    }

    /// Says that nothing runs any more that needs the lease, after [`resign`](Self::resign) or [`stop`](Self::stop).
    pub fn idle(&self) {
        self.command(Command::Idle);
    }

    /// Until when this replica leads.
    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    /// What is known of the election, as it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    fn command(&self, command: Command) {
        // An election that is over takes no commands, which is what they are for.
        let _over = self.commands.send(command);
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("identity", &self.identity)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

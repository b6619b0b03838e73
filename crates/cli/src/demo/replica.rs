//! The operator's replicas, of which one works.

use super::{
    journal::{FIRST_DELAY, Journal},
    narrator::{Narrator, Who},
};
use futures::{StreamExt, channel::mpsc, stream};
use homeostat::{
    Classify, ErrorClass, Manager,
    controller::Error as ControllerError,
    leadership::{self, LeaderElection},
    manager::{Handle, Unit},
    readable,
    reflector::ObjectRef,
};
use kube::Client;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use website::{Context, Website};

/// The times of the lease. They are shorter than by default, because somebody is watching.
const LEASE: Duration = Duration::from_secs(3);
const RENEW: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);

/// One replica of the operator.
pub(super) struct Replica {
    pub(super) handle: Handle,
    force: mpsc::UnboundedSender<ObjectRef<Website>>,
    task: AbortHandle,
}

/// Notes each run that ends, and tells of those that fail.
struct Follower {
    journal: Arc<watch::Sender<Journal>>,
    narrator: Narrator,
    attempts: BTreeMap<String, (Instant, String)>,
}

// === impl Replica ===

impl Replica {
    /// Starts one, among `tasks`. It talks to the server by the clients in `ctx` and `leases`.
    pub(super) fn start(
        name: &str,
        ctx: &Arc<Context>,
        leases: Client,
        journal: &Arc<watch::Sender<Journal>>,
        narrator: &Narrator,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self, String> {
        let (force, forced) = mpsc::unbounded();
        let watches = website::watches(ctx).reconcile_on(forced);
        let mut follower = Follower {
            journal: Arc::clone(journal),
            narrator: narrator.clone(),
            attempts: BTreeMap::new(),
        };
        let runs = website::controller(watches, Arc::clone(ctx));
        let runs = runs.inspect(move |run| follower.take_in(run));
        let times = leadership::Config::new(LEASE, RENEW, RETRY);
        let times = times.map_err(|error| format!("the times of the lease: {error}"))?;
        let election = LeaderElection::new(leases, "default", website::NAME);
        let manager = Manager::new(ctx.client.clone())
            .add(Unit::new(runs).named(website::NAME))
            .leader_election(election.identity(name).config(times))
            .stop_on(stream::pending());
        let handle = manager.handle();
        // It ends with the story.
        let task = tasks.spawn(async move { drop(manager.run().await) });
        Ok(Self {
            handle,
            force,
            task,
        })
    }

    pub(super) fn leads(&self) -> bool {
        let status = self.handle.status();
        status.leadership.is_some_and(|leadership| leadership.leads)
    }

    /// Whether its caches are complete.
    pub(super) fn is_ready(&self) -> bool {
        self.handle.status().ready
    }

    /// Ends it without a word, as a power failure does.
    pub(super) fn kill(&self) {
        self.task.abort();
    }

    /// Reconciles a site although there is no reason to. False if it is gone.
    pub(super) fn force(&self, site: ObjectRef<Website>) -> bool {
        self.force.unbounded_send(site).is_ok()
    }
}

// === impl Follower ===

impl Follower {
    fn take_in(&mut self, run: &website::Run) {
        let (name, failed) = match run {
            Ok((site, _)) => {
                self.attempts.remove(&site.name);
                (&site.name, false)
            }
            Err(ControllerError::ReconcilerFailed(error, site)) => {
                let said = readable(error).to_string();
                let permanent = matches!(error.classify(), ErrorClass::Permanent { .. });
                let now = (Instant::now(), said.clone());
                let before = self.attempts.insert(site.name.clone(), now);
                let again = before.filter(|(_, before)| *before == said);
                let told = match (permanent, again) {
                    (true, None) => Some("; this waited for a change".to_owned()),
                    // It was no attempt: something else has made it look.
                    (true, Some(_)) => None,
                    (false, None) => Some(String::new()),
                    // A child that changes lets it look early, besides its delays.
                    (false, Some((since, _))) if since.elapsed() < FIRST_DELAY / 2 => None,
                    (false, Some((since, _))) => {
                        let pause = since.elapsed().as_secs_f64();
                        Some(format!(" (again, after {pause:.1} s)"))
                    }
                };
                if let Some(told) = told {
                    let what = format!("could not reconcile {}: {said}{told}", site.name);
                    self.narrator.tell(Who::Operator, what);
                }
                (&site.name, true)
            }
            Err(error) => return self.narrator.tell(Who::Operator, error),
        };
        self.journal
            .send_modify(|journal| journal.note(name.clone(), failed));
    }
}

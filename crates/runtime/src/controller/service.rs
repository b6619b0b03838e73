//! What a manager wants of a controller.

use super::{
    counts::Counts, desk::Asker, history::Histories, meter::Meter, readiness::Readiness,
    shared::Watches,
};
use crate::{
    sharding::{Account, Open},
    term::{Duty, Fence, Term},
};
use futures::{FutureExt, Stream, StreamExt, stream};
use std::sync::{Arc, OnceLock};
#[cfg(feature = "metrics")]
use std::time::Duration;
use tokio::{sync::watch, task::futures::TaskLocalFuture};

tokio::task_local! {
    /// Who runs the controllers that this task starts.
    static SURROUNDINGS: Surroundings;
}

/// Drives `future`. A controller that it starts belongs to a manager.
pub(crate) fn managed<F: Future>(
    surroundings: Surroundings,
    future: F,
) -> TaskLocalFuture<Surroundings, F> {
    SURROUNDINGS.scope(surroundings, future)
}

/// How a controller is told to stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    /// Start nothing more, and end when the runs have ended.
    Gracefully,
    /// End at once and drop the runs.
    Now,
}

/// How far a controller is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Run,
    /// It takes nothing more in, and lets runs end.
    Drain,
    /// It cancels what runs.
    End,
}

/// The surroundings of a controller that a manager runs.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) watches: Watches,
    pub(crate) stage: watch::Receiver<Stage>,
    /// For those who work only while this replica leads.
    pub(crate) leading: Option<Leading>,
    /// What the manager learns of the controller that was started.
    pub(crate) about: Arc<OnceLock<About>>,
}

/// A controller, to those who look at it from outside.
pub(crate) struct About {
    pub(crate) kind: String,
    pub(crate) readiness: Readiness,
    pub(super) histories: Histories,
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "people ask over HTTP")
    )]
    pub(crate) asker: Asker,
}

/// What binds a controller to the leadership of its replica.
#[derive(Clone)]
pub(crate) struct Leading {
    pub(crate) term: Term,
    pub(crate) duty: watch::Receiver<Duty>,
    /// How many runs there are in all controllers that are bound to it.
    pub(crate) running: watch::Sender<usize>,
    /// What it has to know of its share, if there are other replicas that work.
    pub(crate) account: Option<Account>,
}

/// What a manager wants of one controller, and what it is told.
pub(super) struct Service {
    leading: Leading,
    /// What was last heard.
    heard: Duty,
    /// How many runs the manager knows of.
    told: usize,
    share: Option<Open>,
}

// === impl About ===

impl About {
    pub(crate) fn counts(&self) -> Counts {
        self.histories.counts()
    }

    pub(crate) fn meter(&self) -> &Meter {
        self.histories.meter()
    }

    /// How long the run has been going on that runs for the longest time.
    #[cfg(feature = "metrics")]
    pub(crate) fn longest_running(&self) -> Duration {
        self.histories.longest_running()
    }

    /// Why the controller makes no progress although it could, if that is so. A server that is slow or away is no
    /// such reason.
    #[cfg(feature = "server")]
    pub(crate) fn wedged(&self) -> Option<String> {
        if let Some(blocked) = self.meter().blocked_for() {
            return Some(format!(
                "a reconciler, a policy or an adapter has blocked it for {}s",
                blocked.as_secs()
            ));
        }
        let stuck = self.readiness.stuck();
        let asks = stuck.iter().any(|run| run.asks_server);
        if stuck.is_empty() || asks || self.meter().ready() == 0 {
            return None;
        }
        let runs: Vec<_> = stuck.iter().map(ToString::to_string).collect();
        Some(format!("no slot becomes free: {}", runs.join("; ")))
    }
}

// === impl Surroundings ===

impl Surroundings {
    /// Those of the caller's task, for the first controller that it starts. Others are on their own.
    pub(super) fn enter(about: impl FnOnce() -> About) -> Option<Self> {
        let surroundings = SURROUNDINGS.try_with(Self::clone).ok()?;
        surroundings.about.set(about()).ok()?;
        Some(surroundings)
    }

    /// When the manager wants the controller to stop.
    pub(super) fn stops(&self) -> impl Stream<Item = Stop> + Send + 'static {
        let after = |stage: Stage, stop: Stop| {
            let mut now = self.stage.clone();
            async move {
                if now.wait_for(|now| *now >= stage).await.is_err() {
                    // The manager is gone, and its controllers end with it.
                    std::future::pending::<()>().await;
                }
                stop
            }
            .boxed()
        };
        let drain = after(Stage::Drain, Stop::Gracefully);
        let end = after(Stage::End, Stop::Now);
        stream::once(drain).chain(stream::once(end))
    }
}

// === impl Service ===

impl Service {
    pub(super) fn new(leading: Leading) -> Self {
        Self {
            share: leading.account.clone().map(Account::open),
            leading,
            heard: Duty::Standby,
            told: 0,
        }
    }

    /// Whether runs may start at this moment.
    pub(super) fn may_start(&self) -> bool {
        *self.leading.duty.borrow() == Duty::Work && self.leading.term.holds()
    }

    /// A fence around a run that starts now. Of a run that starts too late it stops the first step.
    pub(super) fn fence(&self) -> Fence {
        self.leading.term.fence()
    }

    /// Completes when something else is wanted than what was last [heard](Self::hear), or the share is another one.
    pub(super) async fn changed(&mut self) {
        let heard = self.heard;
        let duty = &mut self.leading.duty;
        let changed = async {
            if duty.wait_for(|duty| *duty != heard).await.is_err() {
                // The manager is gone, and this ends with it.
                std::future::pending::<()>().await;
            }
        };
        match &mut self.share {
            None => changed.await,
            Some(share) => tokio::select! {
                () = share.changed() => {}
                () = changed => {}
            },
        }
    }

    /// What is known of the replica's share, if there are others that work.
    pub(super) fn share(&mut self) -> Option<&mut Open> {
        self.share.as_mut()
    }

    /// Whether there may be other replicas that work.
    pub(super) fn shares(&self) -> bool {
        self.share.is_some()
    }

    /// Whether the object with this uid is for this replica.
    pub(super) fn owns(&self, uid: Option<&str>) -> bool {
        let share = self.share.as_ref();
        share.is_none_or(|share| share.owns(uid.unwrap_or_default()))
    }

    /// What was wanted before, and what is wanted now.
    pub(super) fn hear(&mut self) -> (Duty, Duty) {
        let now = *self.leading.duty.borrow_and_update();
        (std::mem::replace(&mut self.heard, now), now)
    }

    /// Takes in how many runs of this controller there are.
    pub(super) fn set_running(&mut self, running: usize) {
        let told = std::mem::replace(&mut self.told, running);
        if told != running {
            let all = &self.leading.running;
            all.send_modify(|all| *all = *all - told + running);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.set_running(0);
    }
}

//! What a test can do to the workloads.

use std::sync::{Arc, Weak};

use crate::actors::Stage;
use crate::fate::{Fate, PodRule, Workload};

/// The actors that pretend that a cluster runs the workloads; see
/// [`ApiServerBuilder::workloads`](crate::ApiServerBuilder::workloads).
///
/// ```
/// # use homeostat_apiserver::{ApiServer, Fate, PodRule, Workload};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let server = ApiServer::builder().workloads(true).build();
/// // The next release cannot be pulled.
/// let broken = server.workloads().inject(PodRule::any().image("app:2"), Fate::ImagePullError);
/// // No job is looked after until this is dropped.
/// let held = server.workloads().hold(Workload::Jobs);
/// # drop((broken, held));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Workloads {
    stage: Arc<Stage>,
}

/// Holds one of the workloads back; it goes on when this is dropped.
#[derive(Debug)]
#[must_use = "it goes on when its guard is dropped"]
pub struct Held {
    stage: Weak<Stage>,
    workload: Workload,
}

/// Keeps a fate in force. When this is dropped, the pods fare as others do: one that could not be pulled starts, and one
/// that was never ready becomes ready.
#[derive(Debug)]
#[must_use = "the fate ends when its guard is dropped"]
pub struct FateGuard {
    stage: Weak<Stage>,
    id: u64,
}

// === impl Workloads ===

impl Workloads {
    pub(crate) fn of(stage: &Arc<Stage>) -> Self {
        Self {
            stage: Arc::clone(stage),
        }
    }

    /// Holds one of them back: it writes nothing, as if its controller were down, and catches up when the guard is
    /// dropped. Others go on.
    pub fn hold(&self, workload: Workload) -> Held {
        self.stage.direct(|workloads, _| workloads.hold(workload));
        Held {
            stage: Arc::downgrade(&self.stage),
            workload,
        }
    }

    /// Lets a fate be that of all pods that fit a rule, those that are there included, until the guard is dropped. Of
    /// several that contradict each other the last one holds, and what a rule says goes before annotations.
    ///
    /// A pod that has ended stays as it is.
    pub fn inject(&self, rule: PodRule, fate: Fate) -> FateGuard {
        let id = self
            .stage
            .direct(|workloads, registry| workloads.add_rule(registry, rule, fate));
        FateGuard {
            stage: Arc::downgrade(&self.stage),
            id,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(stage) = self.stage.upgrade() {
            stage.direct(|workloads, _| workloads.release(self.workload));
        }
    }
}

impl Drop for FateGuard {
    fn drop(&mut self) {
        if let Some(stage) = self.stage.upgrade() {
            stage.direct(|workloads, registry| workloads.remove_rule(registry, self.id));
        }
    }
}

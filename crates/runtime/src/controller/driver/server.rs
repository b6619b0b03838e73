//! What the driver does when the API server does not answer, when it answers again, and when no slot becomes free.

use super::{Driver, InSpan, Intake};
use crate::{
    client::{Ending, How},
    controller::{Action, readiness::StuckRun, unreachable},
    reflector::ObjectKey,
    task::Spawn,
};
use futures::TryFuture;
use homeostat_core::{
    outage::{Next, Over, Start, Verdict},
    queue,
    time::Time,
};
use kube::Resource;
use std::{error::Error as StdError, fmt::Debug, hash::Hash, sync::Arc};
use tokio::time::Instant;

/// How a run fared with the API server.
pub(super) enum Fared {
    /// The server answered at this time, or the run did not ask it.
    Well(Option<Time>),
    /// The run failed because the server did not answer; and when the server wants to be asked again.
    Unanswered(Option<std::time::Duration>),
}

impl<K, Q, I, S, R, P, Ctx, Fut> Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
    Q: StdError + 'static,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    R: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: StdError + 'static,
{
    /// Does what does not wait for anything of the controller's own: tries keys early, and tells of slots that are
    /// taken for long. Returns when there is more.
    pub(super) fn look_after_server(&mut self, now: Time) -> Option<Time> {
        if self.wedge.report(now) {
            self.tell_wedge(now);
        }
        let wait = loop {
            match self.outage.next(now) {
                Next::Run(key) if self.running.contains_key(&key) => {}
                Next::Run(key) => self.run_soon(key, "the API server may answer again"),
                Next::WaitUntil(time) => break Some(time),
                Next::Idle => break None,
            }
        };
        if self.outage.take_begun() {
            self.tell_outage();
        }
        // Once the controller stops, nothing of this matters to anybody.
        let wait = wait.into_iter().chain(self.wedge.due()).min();
        wait.filter(|_| self.intake.is_some())
    }

    /// Whether a run may start now; if not, when to ask again.
    pub(super) fn may_start(&self, now: Time) -> Result<(), Time> {
        match self.outage.start(now) {
            Start::Now => Ok(()),
            Start::At(time) => Err(time),
        }
    }

    /// Takes in that a run has started or ended.
    pub(super) fn count_running(&mut self, now: Time) {
        if let Some(service) = &mut self.service {
            service.set_running(self.running.len());
        }
        self.count_moved();
        if self.wedge.set_running(now, self.running.len()) {
            self.readiness.set_stuck(Vec::new());
            tracing::info!("a slot of the controller is free again");
        }
    }

    /// Takes in how a run of `key` fared. Whether its failure is to be an item of the stream.
    pub(super) fn hear(&mut self, now: Time, key: &ObjectKey, fared: &Fared) -> bool {
        match fared {
            Fared::Well(answered) => {
                if let Some(at) = answered {
                    self.hear_answer(*at);
                }
                self.outage.ended(key);
                true
            }
            Fared::Unanswered(retry_after) => {
                let Verdict { report, .. } = self.outage.failed(now, key, *retry_after);
                if !report {
                    self.histories.unreported();
                }
                report
            }
        }
    }

    /// The API server has answered something.
    pub(super) fn hear_answer(&mut self, at: Time) {
        let Some(Over { since, waiting }) = self.outage.answered(at) else {
            return;
        };
        tracing::info!(
            after = ?at.since(since),
            waiting,
            "the API server answers again; what failed because it did not is tried now"
        );
        self.back.notify_waiters();
    }

    /// A source has failed.
    pub(super) fn hear_failure(&mut self, error: &Q) {
        if unreachable::is_cause_of(error) == Some(true) {
            self.outage.source_failed(self.now());
        }
    }

    fn tell_outage(&mut self) {
        self.histories.lost_server();
        tracing::warn!(
            "the API server does not answer; until it does, the controller tries once a second, and the error of one \
             run a minute stands for all"
        );
    }

    fn tell_wedge(&mut self, now: Time) {
        let covers = self.writes.covers();
        let tracked = covers.are_tracked() || self.reads.registry().is_tracked();
        let stuck: Vec<_> = self
            .running
            .iter()
            .map(|(key, active)| {
                let mut waits = active.run.waits();
                let asks_server = !waits.is_empty() || !tracked;
                if waits.is_empty() {
                    waits.push("something other than a request of a tracked client".into());
                }
                StuckRun {
                    object: key.to_string(),
                    running_for: now.since(active.started),
                    waits_for: waits,
                    asks_server,
                }
            })
            .collect();
        let runs: Vec<_> = stuck.iter().map(ToString::to_string).collect();
        tracing::warn!(
            runs = runs.join("; "),
            ready = self.queue.counts().ready,
            "all slots of the controller have been taken for a minute by runs that do not end; \
             Config::reconcile_timeout bounds them"
        );
        self.histories.wedged();
        self.readiness.set_stuck(stuck);
    }

    /// How a run fared, from what its client has heard and from its error.
    pub(super) fn fared(
        &self,
        last: Option<Ending>,
        failed: bool,
        error: Option<&(dyn StdError + 'static)>,
    ) -> Fared {
        let blamed = error.and_then(unreachable::is_cause_of);
        match last {
            // A client that is not tracked.
            None if blamed == Some(true) => {
                Fared::Unanswered(error.and_then(unreachable::retry_after))
            }
            // The answer was one, and no more than the half of it.
            Some(_) if error.is_some_and(unreachable::is_half) => Fared::Unanswered(None),
            Some(Ending {
                how: How::Unavailable(retry_after),
                ..
            }) if failed && blamed != Some(false) => Fared::Unanswered(retry_after),
            Some(Ending {
                how: How::Answered,
                at,
            }) => Fared::Well(Some(self.time_of(at))),
            // It went well all the same, or failed for another reason.
            Some(_) | None => Fared::Well(None),
        }
    }

    fn time_of(&self, at: Instant) -> Time {
        Time::ORIGIN + at.saturating_duration_since(self.origin)
    }
}

/// A failure waits at least for as long as the server has asked for.
pub(super) fn at_least(outcome: queue::Outcome, fared: &Fared) -> queue::Outcome {
    let (Fared::Unanswered(Some(asked)), queue::Action::Backoff { at_least }) =
        (fared, outcome.action)
    else {
        return outcome;
    };
    let at_least = Some(at_least.unwrap_or_default().max(*asked));
    queue::Outcome {
        action: queue::Action::Backoff { at_least },
        ..outcome
    }
}

//! What the log tells of a controller's life, for a person on call.

use super::{Driver, InSpan, Intake};
use crate::{
    controller::{Action, SourceStatus},
    task::Spawn,
};
use futures::TryFuture;
use homeostat_core::time::Time;
use kube::Resource;
use std::{fmt::Debug, hash::Hash, time::Duration};
use tracing::{info, warn};

/// How long nothing starts before the log says why. Lists of large clusters take some seconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long it is silent at most until it says so again.
const SILENCE: Duration = Duration::from_secs(600);

/// What was told of a controller.
pub(super) struct Life {
    /// The kind that it reconciles.
    controller: String,
    /// Whether the caches were complete at some time.
    synced: bool,
    /// Since when nothing starts because they are not, when that is told next, and how long after.
    gated: Option<(Time, Time, Duration)>,
}

// === impl Life ===

impl Life {
    pub(super) fn new(controller: String) -> Self {
        Self {
            controller,
            synced: false,
            gated: None,
        }
    }

    /// When there is something to tell, if nothing starts until then.
    pub(super) fn next(&self) -> Option<Time> {
        self.gated.map(|(_, next, _)| next)
    }

    /// Runs wait for caches.
    pub(super) fn gated(&mut self, now: Time) {
        if self.gated.is_none() {
            self.gated = Some((now, now + PATIENCE, PATIENCE));
        }
    }

    /// Nothing is waited for.
    fn opened(&mut self) -> Option<Time> {
        self.gated.take().map(|(since, _, _)| since)
    }
}

impl<K, Q, I, S, R, P, Ctx, Fut> Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
    Q: std::error::Error + 'static,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    R: FnMut(std::sync::Arc<K>, std::sync::Arc<Ctx>) -> Fut,
    P: Fn(std::sync::Arc<K>, &Fut::Error, std::sync::Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: std::error::Error + 'static,
{
    pub(super) fn tell_started(&self) {
        let sources = self.readiness.sources();
        let names: Vec<_> = sources.iter().map(|source| &*source.name).collect();
        info!(
            controller = self.life.controller,
            sources = names.join("; "),
            "controller started"
        );
    }

    /// Whether caches are complete, as far as they are waited for. The log tells when they are, and when that takes
    /// long.
    pub(super) fn tell_gate(&mut self, is_open: bool) {
        let now = self.now();
        if !is_open {
            return self.life.gated(now);
        }
        let since = self.life.opened();
        if self.life.synced && since.is_none() {
            return;
        }
        let waited = now.since(since.unwrap_or(now));
        let controller = &self.life.controller;
        let objects = self.store.len();
        info!(
            controller,
            objects,
            ?waited,
            "caches are complete: reconciles start"
        );
        let missing = waiting_for(&self.readiness.sources());
        if !missing.is_empty() {
            warn!(
                controller,
                sources = missing,
                "not waited for, because they fail"
            );
        }
        self.life.synced = true;
    }

    /// Tells what runs have been waiting for all the time.
    pub(super) fn tell_waiting(&mut self) {
        let now = self.now();
        let Some((since, next, pause)) = &mut self.life.gated else {
            return;
        };
        *pause = pause.saturating_mul(2).min(SILENCE);
        *next = now + *pause;
        let waited = now.since(*since);
        let sources = waiting_for(&self.readiness.sources());
        let controller = &self.life.controller;
        warn!(
            controller,
            ?waited,
            sources,
            "no reconcile starts, because caches are not complete"
        );
    }

    pub(super) fn tell_stopping(&self, at_once: bool) {
        let (controller, running) = (&self.life.controller, self.running.len());
        if at_once {
            info!(
                controller,
                running, "controller stops at once, and drops what runs"
            );
        } else {
            let timeout = self.config.shutdown_timeout.map(tracing::field::debug);
            info!(
                controller,
                running, timeout, "controller stops: no reconcile starts any more"
            );
        }
    }

    pub(super) fn tell_cancelled(&self) {
        let (controller, cancelled) = (&self.life.controller, self.running.len());
        if cancelled > 0 {
            warn!(
                controller,
                cancelled, "reconciles were cancelled, because the controller stops"
            );
        }
    }

    pub(super) fn tell_stopped(&self) {
        info!(controller = self.life.controller, "controller stopped");
    }
}

/// What is not complete, and why as far as it is known.
fn waiting_for(sources: &[SourceStatus]) -> String {
    let missing = sources.iter().filter(|source| !source.synced);
    let missing = missing.map(|source| match &source.last_error {
        Some(error) => format!("{} ({error})", source.name),
        None => source.name.clone(),
    });
    missing.collect::<Vec<_>>().join("; ")
}

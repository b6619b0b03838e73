//! Answers what is asked of a controller from outside.

use super::{Driver, InSpan, Intake};
use crate::{
    controller::{
        Action,
        desk::{Desk, KeyStatus, Overview},
        history::Explanation,
        reason::describe,
    },
    reflector::ObjectKey,
    task::Spawn,
};
use futures::TryFuture;
use kube::Resource;
use std::{cmp::Reverse, fmt::Debug, hash::Hash, sync::Arc};

/// How many failing keys are looked at to find those that have failed most often.
const LOOKED_AT: usize = 10_000;

impl<K, Q, I, S, R, P, Ctx, Fut> Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
    Q: std::error::Error + 'static,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    R: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: std::error::Error + 'static,
{
    fn key_status(&self, key: &ObjectKey) -> KeyStatus {
        let now = self.now();
        let entry = self.queue.entry(key);
        let active = self.running.get(key);
        let next_run = entry.as_ref().and_then(|entry| entry.next_run);
        let reason = match (active, &entry) {
            (Some(active), _) => describe(&active.causes, active.timer),
            (None, Some(entry)) => describe(entry.causes, None),
            (None, None) => String::new(),
        };
        KeyStatus {
            key: key.clone(),
            state: entry.as_ref().map(|entry| entry.state),
            run_in: next_run.map(|at| at.since(now)),
            running_for: active.map(|active| now.since(active.started)),
            failures: entry.as_ref().map_or(0, |entry| entry.failures),
            error: self.failing.error(key),
            reason,
        }
    }

    /// The key of an object that is there.
    fn known_key(&self, namespace: Option<&str>, name: &str) -> Option<ObjectKey> {
        let key = ObjectKey::new(namespace, name);
        self.store.get_key(&key).map(|_| key)
    }
}

impl<K, Q, I, S, R, P, Ctx, Fut> Desk for Driver<K, Q, I, S, R, P, Ctx, Fut>
where
    K: Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone,
    Q: std::error::Error + 'static,
    I: Intake<Q>,
    S: Spawn<InSpan<Fut>>,
    R: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: std::error::Error + 'static,
{
    fn overview(&self, limit: usize) -> Overview {
        let failures = |key: &ObjectKey| self.queue.entry(key).map_or(0, |entry| entry.failures);
        let mut failed: Vec<_> = self.failing.keys().take(LOOKED_AT).collect();
        failed.sort_by_key(|key| Reverse(failures(key)));
        failed.truncate(limit);
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by_key(|(_, active)| active.started);
        running.truncate(limit);
        Overview {
            objects: self.store.len(),
            counts: self.queue.counts(),
            failing: self.failing.keys().len(),
            failed: failed.into_iter().map(|key| self.key_status(key)).collect(),
            running: running
                .into_iter()
                .map(|(key, _)| self.key_status(key))
                .collect(),
            incidents: self.histories.incidents(limit),
        }
    }

    fn find(&self, text: &str, limit: usize) -> Vec<KeyStatus> {
        let mut found: Vec<_> = self
            .store
            .keys()
            .into_iter()
            .filter(|key| key.to_string().contains(text))
            .collect();
        found.sort_unstable();
        found.truncate(limit);
        found.iter().map(|key| self.key_status(key)).collect()
    }

    fn look_up(&self, namespace: Option<&str>, name: &str) -> Option<(KeyStatus, Explanation)> {
        let key = self.known_key(namespace, name)?;
        Some((self.key_status(&key), self.histories.explain(&key)))
    }

    fn run_now(&mut self, namespace: Option<&str>, name: &str) -> bool {
        let Some(key) = self.known_key(namespace, name) else {
            return false;
        };
        self.run_soon(key, "asked for by a person");
        true
    }
}

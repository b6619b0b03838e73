//! What is known of keys that wait after a failure.

use super::triggers::Baseline;
use crate::{
    controller::history::{Standing, cut},
    reflector::ObjectKey,
};
use std::{collections::BTreeMap, sync::Arc};

/// The keys that wait after a failure.
#[derive(Default)]
pub(super) struct Failing(BTreeMap<ObjectKey, Failure>);

struct Failure {
    /// The desired state that the last run saw.
    baseline: Baseline,
    error: Arc<str>,
}

// === impl Failing ===

impl Failing {
    /// Takes in how a key is after a run: with which error it failed, if it did, and what it was last wanted to be.
    pub(super) fn note(
        &mut self,
        key: &ObjectKey,
        standing: &Standing,
        error: Option<&str>,
        baseline: impl FnOnce() -> Baseline,
    ) {
        if standing.failures > 0 || standing.backing_off || standing.parked {
            self.insert(key, error.unwrap_or_default(), baseline());
        } else {
            self.forget(key);
        }
    }

    pub(super) fn insert(&mut self, key: &ObjectKey, error: &str, baseline: Baseline) {
        let error = cut(error);
        match self.0.get_mut(key) {
            // The same error over and over is the usual one.
            Some(failure) if *failure.error == *error => failure.baseline = baseline,
            _ => {
                let error = Arc::from(error);
                self.0.insert(key.clone(), Failure { baseline, error });
            }
        }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    pub(super) fn baseline(&self, key: &ObjectKey) -> Option<Baseline> {
        self.0.get(key).map(|failure| failure.baseline)
    }

    /// Takes in what a key is wanted to be, if it is failing.
    pub(super) fn set_baseline(&mut self, key: &ObjectKey, baseline: impl FnOnce() -> Baseline) {
        if let Some(failure) = self.0.get_mut(key) {
            failure.baseline = baseline();
        }
    }

    pub(super) fn error(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.0.get(key).map(|failure| Arc::clone(&failure.error))
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &ObjectKey> {
        self.0.keys()
    }
}

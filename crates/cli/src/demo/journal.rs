//! What the operator has done.

use std::{collections::BTreeMap, time::Duration};

/// The delay after a site's first failure; each one after it is twice as long. Shorter than the
/// default of a second, because somebody is watching.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(200);

/// How many runs of each site ended, and how many of them failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal(BTreeMap<String, Runs>);

/// How many runs of a site ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) all: usize,
    pub(super) failed: usize,
}

// === impl Journal ===

impl Journal {
    pub(super) fn note(&mut self, name: String, failed: bool) {
        let runs = self.0.entry(name).or_default();
        runs.all += 1;
        runs.failed += usize::from(failed);
    }

    pub(super) fn of(&self, name: &str) -> Runs {
        self.0.get(name).copied().unwrap_or_default()
    }
}

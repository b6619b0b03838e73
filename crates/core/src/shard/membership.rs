//! What a member knows in one epoch.

use super::{Config, Life};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What is known in one epoch.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// When it began.
    pub(super) joined: Time,
    /// Just before the last accepted write was sent.
    pub(super) written: Option<Time>,
    /// Just before the last list was asked for that came after a write.
    pub(super) listed: Option<Time>,
    /// Whose word is waited for, once the first list is there.
    pub(super) waits: Option<BTreeSet<Life>>,
    /// Whether this member runs keys.
    pub(super) ready: bool,
    /// Members that are counted, for which not everything has been stopped, and since which view.
    pub(super) pending: BTreeMap<Life, u64>,
    /// Members for which everything has been stopped.
    pub(super) knows: BTreeSet<Life>,
    /// What was last written: whether this one is ready, and whom it knows.
    pub(super) told: Option<(bool, Vec<Life>)>,
}

// === impl Membership ===

impl Membership {
    pub(super) fn new(now: Time) -> Self {
        Self {
            joined: now,
            written: None,
            listed: None,
            waits: None,
            ready: false,
            pending: BTreeMap::new(),
            knows: BTreeSet::new(),
            told: None,
        }
    }

    /// When it is over. The first write may be carried out without an answer, and others may take this epoch for over
    /// when it is not renewed.
    pub(super) fn until(&self, config: &Config) -> Time {
        let written = self.written.unwrap_or(self.joined);
        let latest = self.listed.map_or(written, |listed| listed.min(written));
        latest + config.renew_deadline()
    }
}

//! Events are forgotten after a while. A real server's storage does that by itself, at the time; here
//! it happens with the next write of anything, so that no clock has to be watched.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::delete_options;
use crate::object;
use crate::registry::Registry;
use crate::storage::{ChangeKind, Key};

const EVENTS: &str = "/events";

/// Remembers until when each event is kept.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    seen: u64,
    /// With the version that is kept so long: a change starts anew.
    kept: BTreeSet<(Timestamp, Key, String)>,
}

// === impl Expiry ===

impl Expiry {
    /// Removes the next event whose time is over, if there is one.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        self.take_in(registry);
        while let Some((until, ..)) = self.kept.first() {
            if *until > registry.timestamp() {
                break;
            }
            let Some((_, key, version)) = self.kept.pop_first() else {
                break;
            };
            let event = registry.store.get(&key);
            let is_that = event.is_some_and(|event| object::resource_version(&event) == version);
            if is_that
                && let Some(target) = registry.target_of(&key)
                && registry.delete(&target, &delete_options()).is_ok()
            {
                return true;
            }
        }
        false
    }

    fn take_in(&mut self, registry: &Registry) {
        let is_event = |key: &Key| &*key.resource == EVENTS;
        let mut found: Vec<Key> = Vec::new();
        if self.seen < registry.store.compacted() {
            // Some changes are forgotten already: look at everything.
            found.extend(registry.store.keys().filter(|key| is_event(key)).cloned());
        } else {
            let changes = registry.store.all_changes_after(self.seen);
            let written = changes.filter(|change| change.kind != ChangeKind::Deleted);
            let keys = written.map(|change| &change.key);
            found.extend(keys.filter(|key| is_event(key)).cloned());
        }
        self.seen = registry.store.revision();
        if found.is_empty() {
            return;
        }
        let until = end(registry);
        for key in found {
            if let Some(event) = registry.store.get(&key) {
                let version = object::resource_version(&event).to_owned();
                self.kept.insert((until, key, version));
            }
        }
    }
}

/// Until when an event is kept that is written now.
fn end(registry: &Registry) -> Timestamp {
    let lifetime = SignedDuration::try_from(registry.config.event_lifetime);
    let lifetime = lifetime.unwrap_or(SignedDuration::MAX);
    let end = registry.timestamp().checked_add(lifetime);
    end.unwrap_or(Timestamp::MAX)
}

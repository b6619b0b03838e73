//! What the server was asked to write, and by whom.

use homeostat_apiserver::Request;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// The operators, who are users of these names, and so are told apart in the log.
pub(crate) const OPERATORS: [&str; 4] = ["one", "two", "three", "four"];

/// A request to write something.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) user: String,
    resource: String,
    pub(crate) name: String,
    accepted: bool,
}

/// Those of the operators, in the order in which the server has answered them.
pub(crate) struct Log(Vec<Entry>);

// === impl Entry ===

impl Entry {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            at: request.at,
            user: request.user.clone(),
            resource: request.resource.clone(),
            name: request.name.clone(),
            accepted: request.status.is_some_and(|status| status < 300),
        }
    }

    fn is_of_the_lease(&self) -> bool {
        self.resource == "leases"
    }
}

// === impl Log ===

impl Log {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.retain(|entry| OPERATORS.contains(&&*entry.user));
        Self(entries)
    }

    /// How often an operator has asked to write something after the next leader had. Whether the server has accepted it
    /// makes no difference.
    pub(crate) fn doubled(&self) -> usize {
        let (mut holder, mut works) = (None, None);
        let mut doubled = 0;
        for entry in &self.0 {
            let user = entry.user.as_str();
            if entry.is_of_the_lease() {
                if entry.accepted {
                    holder = Some(user);
                }
            } else if holder == Some(user) {
                works = holder;
            } else if works != Some(user) {
                doubled += 1;
            }
        }
        doubled
    }

    /// From a moment at which `old` was leading until somebody else has written something; nothing if nobody has, or if
    /// `old` had written nothing before.
    pub(crate) fn handover(&self, old: &str, since: Timestamp) -> Option<Duration> {
        let mut writes = self.0.iter().filter(|entry| !entry.is_of_the_lease());
        writes
            .by_ref()
            .find(|entry| entry.user == old && entry.at <= since)?;
        let first = writes.find(|entry| entry.user != old && entry.at > since)?;
        Some(first.at.duration_since(since).unsigned_abs())
    }

    /// What they have asked to write of sites and their pages, which have the sites' names.
    pub(crate) fn of_sites(&self) -> impl Iterator<Item = &Entry> {
        let resources = ["websites", "configmaps"];
        let entries = self.0.iter();
        entries.filter(move |entry| resources.contains(&&*entry.resource))
    }

    /// How much each operator has written.
    pub(crate) fn writes(&self) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for entry in self.0.iter().filter(|entry| !entry.is_of_the_lease()) {
            *writes.entry(entry.user.clone()).or_default() += 1;
        }
        writes
    }
}

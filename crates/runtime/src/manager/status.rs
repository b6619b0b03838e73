//! What can be said of a manager and of what it runs.

use crate::{
    controller::{About, Counts, Readiness, SourceStatus},
    leadership, sharding,
};
use std::fmt;

/// How a manager is. See [`Handle::status`](super::Handle::status).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// Whether it does all that it is there for: every controller has complete caches and watches that work, nothing has
    /// failed, and it is not stopping. A replica that stands by is ready, too.
    pub ready: bool,
    /// What it waits for, for people: empty if it is ready.
    pub waits_for: Vec<String>,
    /// Its controllers and tasks.
    pub units: Vec<UnitStatus>,
    /// Its part in the election of a leader, if it takes part in one.
    pub leadership: Option<leadership::Status>,
    /// Its part in a group of replicas that share the objects, if it belongs to one.
    pub sharding: Option<sharding::Status>,
    /// What is watched, each watch once.
    pub watches: Vec<String>,
    /// Whether it stops or has stopped.
    pub stopping: bool,
}

/// How a controller or a task is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// What it waits for, for people.
    pub waits_for: Vec<String>,
    /// What a controller has counted.
    pub counts: Option<Counts>,
}

/// How far a controller or a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It has not begun.
    Starting,
    /// The server does not serve the controller's own kind. It starts when the definition is there.
    WaitsForDefinition,
    /// Caches are not complete.
    Syncing,
    /// Another replica leads.
    Standby,
    /// It works.
    Running,
    /// It has ended, and should not have, or has failed.
    Failed(String),
    /// It has ended.
    Ended,
}

// === impl Phase ===

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::WaitsForDefinition => f.write_str("waits for its definition"),
            Self::Syncing => f.write_str("syncing"),
            Self::Standby => f.write_str("stands by"),
            Self::Running => f.write_str("running"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

/// How far a controller is, and what it waits for.
pub(super) fn of_controller(about: &About, may_work: bool) -> (Phase, Vec<String>) {
    let sources = about.readiness.sources();
    let waits_for = missing(&about.readiness, &sources);
    // The first source is that of the controller's own kind.
    let phase = if sources.first().is_some_and(|own| own.not_served) {
        Phase::WaitsForDefinition
    } else if sources.is_empty() || sources.iter().any(|source| !source.synced) {
        Phase::Syncing
    } else if may_work {
        Phase::Running
    } else {
        Phase::Standby
    };
    (phase, waits_for)
}

fn missing(readiness: &Readiness, sources: &[SourceStatus]) -> Vec<String> {
    let missing = sources.iter().filter_map(|source| {
        let SourceStatus {
            name,
            synced,
            last_error,
            ..
        } = source;
        match last_error {
            Some(error) => Some(format!("{name}: {error}")),
            None if !synced => Some(format!("{name}: the first list")),
            None => None,
        }
    });
    let stuck = readiness.stuck();
    missing
        .chain(stuck.iter().map(ToString::to_string))
        .collect()
}

//! What happened in a world, as a list that can be searched and printed.

use crate::object::ObjectId;
use serde::{Serialize, Serializer};
use std::{fmt, time::Duration};

/// Who made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The operator that is checked.
    Operator,
    /// Whoever writes the objects that the operator looks after.
    User,
    /// The cluster: the garbage collector, the namespace controller, the workloads actor.
    Cluster,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It was created.
    Created,
    /// It was changed; also when it only got a deletion timestamp.
    Updated,
    /// It was removed.
    Deleted,
}

/// A write that was stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The revision that it made.
    pub revision: u64,
    /// The object.
    pub object: ObjectId,
    /// The same without what is random in its name: `generateName` and a star.
    pub stem: ObjectId,
    /// The object's uid.
    pub uid: String,
    /// What happened to it.
    pub effect: Effect,
    /// The version before; empty if it was created.
    pub before: String,
    /// Where it changed.
    pub paths: Vec<String>,
}

/// A request, when its answer was ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The number of the operator's request, watches left out. Those of the first part begin with 10,001, of the
    /// second with 20,001.
    pub number: Option<u32>,
    /// Who made it.
    pub actor: Actor,
    /// The reconcile that made it, if one did: its number.
    pub run: Option<u32>,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `other`.
    pub verb: &'static str,
    /// What it was about. The name is empty for a collection.
    pub object: ObjectId,
    /// The subresource; empty if none.
    pub subresource: String,
    /// The query.
    pub query: String,
    /// In whose name it wrote; empty if it did not say.
    pub manager: String,
    /// The HTTP status that the client saw; none if the connection failed.
    pub status: Option<u16>,
    /// What the checker did to it.
    pub injected: Option<String>,
    /// What was stored because of it. A request without effect has none.
    pub changes: Vec<Change>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "event", content = "data")]
pub enum Event {
    /// The operator's process began.
    Started {
        /// Which process, counted from 1.
        process: u32,
    },
    /// The operator's process ended.
    Stopped {
        /// Which process, counted from 1.
        process: u32,
    },
    /// A reconcile began.
    Run {
        /// Its number, counted from 1.
        run: u32,
        /// The object, as the span `reconciling object` names it.
        object: String,
        /// Why, as the span says it.
        reason: String,
    },
    /// The controller told how a run went, or that a watch failed.
    Outcome(Result<String, String>),
    /// A request.
    Request(Request),
    /// A watch told the operator something.
    Delivery {
        /// The kind of event: `ADDED`, `BOOKMARK`.
        kind: String,
        /// The object.
        object: ObjectId,
        /// Its version.
        version: String,
    },
    /// The cluster wrote something by itself.
    Cluster(Change),
    /// A part of the scenario began.
    Phase(String),
    /// What the checker did.
    Deed(String),
    /// The operator's own log said something.
    Said(String),
    /// Something panicked.
    Panic(String),
    /// A property of the user's did not hold.
    Violation(String),
}

/// One thing that happened, with the virtual time since the world began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// When, since the world began. In JSON these are seconds.
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

fn seconds<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(at.as_secs_f64())
}

/// Prints entries one a line.
#[derive(Debug)]
pub struct Timeline<'a>(pub &'a [Entry]);

// === impl Entry ===

impl Entry {
    /// The request, if it is one.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        match &self.event {
            Event::Request(request) => Some(request),
            Event::Started { .. }
            | Event::Stopped { .. }
            | Event::Run { .. }
            | Event::Outcome(_)
            | Event::Delivery { .. }
            | Event::Cluster(_)
            | Event::Phase(_)
            | Event::Deed(_)
            | Event::Said(_)
            | Event::Panic(_)
            | Event::Violation(_) => None,
        }
    }

    /// What was stored, and by whom.
    pub fn changes(&self) -> impl Iterator<Item = (Actor, &Change)> {
        let (actor, changes) = match &self.event {
            Event::Request(request) => (request.actor, request.changes.as_slice()),
            Event::Cluster(change) => (Actor::Cluster, std::slice::from_ref(change)),
            Event::Started { .. }
            | Event::Stopped { .. }
            | Event::Run { .. }
            | Event::Outcome(_)
            | Event::Delivery { .. }
            | Event::Phase(_)
            | Event::Deed(_)
            | Event::Said(_)
            | Event::Panic(_)
            | Event::Violation(_) => (Actor::Cluster, &[][..]),
        };
        changes.iter().map(move |change| (actor, change))
    }

    /// Whether the operator stored something with it.
    #[must_use]
    pub fn is_operators_write(&self) -> bool {
        self.changes().any(|(actor, _)| actor == Actor::Operator)
    }
}

// === impl Display ===

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::User => "user",
            Self::Cluster => "cluster",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revision,
            object,
            effect,
            before,
            paths,
            ..
        } = self;
        match effect {
            Effect::Created => write!(f, "created {object} v{revision}"),
            Effect::Deleted => write!(f, "removed {object} v{revision}"),
            Effect::Updated => {
                write!(f, "changed {object} v{before} to v{revision}: ")?;
                if paths.is_empty() {
                    return f.write_str("managers only");
                }
                // A page tells the kind of change; the whole list is in the entry.
                let shown = paths.len().min(4);
                f.write_str(&paths[..shown].join(", "))?;
                if shown < paths.len() {
                    write!(f, " and {} more", paths.len() - shown)?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            actor,
            run,
            verb,
            object,
            subresource,
            query,
            manager,
            status,
            injected,
            changes,
        } = self;
        write!(f, "{actor}")?;
        if let Some(run) = run {
            write!(f, " run {run}")?;
        }
        if let Some(number) = number {
            write!(f, " #{number}")?;
        }
        write!(f, ": {verb} {object}")?;
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        if !manager.is_empty() {
            write!(f, " as {manager}")?;
        } else if !query.is_empty() && changes.is_empty() {
            write!(f, "?{query}")?;
        }
        match status {
            Some(status) => write!(f, " -> {status}")?,
            None => f.write_str(" -> no answer")?,
        }
        if let Some(injected) = injected {
            write!(f, " [{injected}]")?;
        }
        for change in changes {
            write!(f, "; {change}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, event } = self;
        let (seconds, millis) = (at.as_secs(), at.subsec_millis());
        write!(f, "{seconds:>7}.{millis:03}  ")?;
        match event {
            Event::Started { process } => write!(f, "the operator starts (process {process})"),
            Event::Stopped { process } => write!(f, "the operator ends (process {process})"),
            Event::Run {
                run,
                object,
                reason,
            } => write!(f, "run {run} of {object}: {reason}"),
            Event::Outcome(Ok(text)) => write!(f, "outcome: {text}"),
            Event::Outcome(Err(text)) => write!(f, "error: {text}"),
            Event::Request(request) => write!(f, "{request}"),
            Event::Delivery {
                kind,
                object,
                version,
            } => write!(f, "watch tells {kind} {object} v{version}"),
            Event::Cluster(change) => write!(f, "cluster: {change}"),
            Event::Phase(name) => write!(f, "--- {name}"),
            Event::Deed(text) => write!(f, "*** {text}"),
            Event::Said(text) => write!(f, "log: {text}"),
            Event::Panic(text) => write!(f, "PANIC {text}"),
            Event::Violation(text) => write!(f, "VIOLATED {text}"),
        }
    }
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

//! Finding reconcile loops, and saying what causes them (rule R22).
//!
//! A reconciler has converged when a run that nobody else caused writes nothing. A [`Detector`] is
//! told of each run that ended: what caused it and what it wrote. It works in three steps, so that
//! it costs next to nothing while all is well, and accuses nobody without proof:
//!
//! 1. **It counts.** A key becomes suspicious when many runs in a row were caused by its own writes
//!    and wrote again, or when it writes the same object again and again, whoever caused the runs,
//!    or when its writes change nothing. No bodies are looked at.
//! 2. **It looks.** The next few runs of the key are [observed](Detector::observes): the driver keeps
//!    for each of their writes what was sent, and the object before and after it (a [`Sight`]). Only
//!    paths, hashes and shortened values are kept of these.
//! 3. **It judges.** If the sights show the same fault in each run, it [reports](Answer::report) an
//!    [`Incident`], once. From then on the runs of the key are [delayed](Answer::delay), twice as long
//!    each time up to a bound. If they show none, it looks again when twice as many runs are counted.
//!
//! ```
//! use homeostat_core::loops::{Cause, Config, Detector, Form, Object, Run, Sight, Write};
//! use homeostat_core::time::Time;
//! use serde_json::json;
//! use std::time::Duration;
//!
//! let mut detector = Detector::new(Config::default());
//! let mut reports = Vec::new();
//! let status = |second: u64| json!({ "status": { "lastUpdated": format!("12:00:{second:02}") } });
//! for second in 0..40 {
//!     let sight = detector.observes(&"a").then(|| Sight {
//!         form: Form::Merge,
//!         sent: status(second),
//!         before: Some(status(second.saturating_sub(1))),
//!         after: Some(status(second)),
//!     });
//!     let object = Object::new("Site", Some("default"), "a");
//!     let run = Run {
//!         object: object.clone(),
//!         started: Time::ORIGIN + Duration::from_secs(second),
//!         causes: vec![Cause::Own],
//!         failed: false,
//!         after: None,
//!         writes: vec![Write {
//!             object,
//!             manager: Some("site-operator".into()),
//!             changed: Some(true),
//!             sight: sight.map(Box::new),
//!         }],
//!     };
//!     let now = run.started;
//!     reports.extend(detector.finished(now, &"a", &run).report);
//! }
//! assert_eq!(reports.len(), 1);
//! assert_eq!(reports[0].findings[0].changes[0].path.to_string(), ".status.lastUpdated");
//! ```
//!
//! # What it stays silent about
//!
//! - Changes by others, however many, each answered by a write: no run writes without such a cause,
//!   and none puts back what somebody else has changed.
//! - Runs by timers. A status that changes at each poll is what polling is for. To run again at once
//!   ([`Config::instant`]) is no poll.
//! - Runs that fail and those that try again, as long as a delay is between them: it slows them down.
//! - What others ask for with a value that the reconciler takes away when it is done, if the run has something to
//!   show for it: anything new that it wrote.
//! - Progress that ends: fewer steps than [`Config::runs`], or numbers that only grow or only shrink
//!   and are done in fewer than [`Config::progress`].
//!
//! Where nobody tells what runs write, there is [`Blind`], which only looks when runs and events are.
//!
//! # Caveats
//!
//! A handshake, in which others set the same value over and over and the reconciler takes it away each time and
//! writes nothing else, looks like a fight once it happens more than [`Config::again`] times without a pause: what
//! it did was outside of Kubernetes. And a fight by taking away is not seen while each of these runs writes
//! something new as well.

mod blind;
mod detector;
mod difference;
mod evidence;
mod incident;
mod managed;
mod path;
#[cfg(test)]
mod tests;
mod trace;
mod vain;

pub use self::blind::Blind;
pub use self::detector::Detector;
pub use self::incident::{Change, Finding, Incident, Turn, Verdict};
pub use self::managed::Manager;
pub use self::path::{Path, Segment};

use crate::backoff::Backoff;
use crate::time::Time;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What counts as a loop, and how it is slowed down.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// After how many runs in a row that only the key's own writes have caused, and that all wrote,
    /// it is looked at; 20 by default. Reconcilers that go step by step, a write and a run for each,
    /// have fewer steps, and a loop gets there within a second.
    pub runs: u32,
    /// After how many runs that changed the same object, whatever caused them, it is looked at; 10
    /// by default. Here only somebody who undoes the change each time is reported, so that looking
    /// too early costs a few requests and no false alarm.
    pub again: u32,
    /// After how many runs in a row that wrote the same object and changed nothing it is reported;
    /// 50 by default. The roll-out of a usual Deployment makes some dozens of events, and a
    /// reconciler that applies the same at each of them is wasteful, but at rest in the end.
    pub unchanged: u32,
    /// After how many runs numbers that only grow, or only shrink, are no progress any more; 200 by
    /// default. A roll-out replica by replica takes as many steps as there are replicas.
    pub progress: u32,
    /// How many runs are observed for a judgement; 4 by default, and at least 3. A value that was
    /// another one in three runs in a row is no accident, and the first sight only says how it was.
    pub sights: u32,
    /// The longest pause between two runs of a loop; 1 min by default. A loop's own events arrive at
    /// once, and whoever fights back does so within moments: an autoscaler looks every 15 s.
    pub pause: Duration,
    /// The longest delay that is none; 100 ms by default. A reconciler that asks to run again at once is the
    /// cause of that run, as one that wakes itself by a write is.
    pub instant: Duration,
    /// How long runs are delayed in a loop that was reported: from 1 s, doubling, to 1 min. A jitter
    /// is not looked at.
    pub damping: Backoff,
    /// How many keys are observed at once; 64 by default. If all objects of a kind loop, the first
    /// ones tell why, and the others come later.
    pub observed: usize,
    /// How many keys are counted; 16,384 by default, which is some megabytes. More than that are
    /// never all in a loop; those that come too late are counted when others have come to rest.
    pub keys: usize,
}

/// A run that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The object that it was for.
    pub object: Object,
    /// When it began.
    pub started: Time,
    /// All that has caused it. None at all is what a program asked for, like [`Cause::First`].
    pub causes: Vec<Cause>,
    /// Whether it returned an error, panicked or timed out.
    pub failed: bool,
    /// The least time after which it runs again by itself; `None` if it does not.
    pub after: Option<Duration>,
    /// What it wrote, in this order. Of a request that failed nothing is known, so it is no write.
    pub writes: Vec<Write>,
}

/// What causes a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The object was there when the controller began, or all objects are to be looked at.
    First,
    /// Somebody else has changed the object's desired state.
    Desired,
    /// The reconciler wanted to run again after a time.
    Timer,
    /// The run before has failed, or met a conflict.
    Retry,
    /// An event that shows what a run of this key wrote, to whichever object.
    Own,
    /// Any other event: somebody else changed this object, or the status of the key's own one. `None`
    /// if it is not known which object it was.
    Foreign(Option<Object>),
}

/// A write that a server has answered with success.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What was written.
    pub object: Object,
    /// The field manager that the server knows the writer as.
    pub manager: Option<Arc<str>>,
    /// Whether the object has another version than before; `None` if that is not known, which counts
    /// as a change.
    pub changed: Option<bool>,
    /// What the write looked like, if the run was [observed](Detector::observes).
    pub sight: Option<Box<Sight>>,
}

/// What a write looked like.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// What `sent` is.
    pub form: Form,
    /// The body of the request; `null` for a deletion.
    pub sent: Value,
    /// The object before the write, with its `managedFields`; `None` if there was none. Where a
    /// subresource is written, what a read of this subresource gives.
    pub before: Option<Value>,
    /// The object that the server answered with, with its `managedFields`; `None` if it is gone.
    pub after: Option<Value>,
}

/// What the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole object, as in a create or a replace.
    Whole,
    /// What is to be merged or applied: a merge patch, a strategic merge patch, an apply. What it
    /// does not name stays, or is removed by the server.
    Merge,
    /// Anything else, which is not looked into: a JSON patch, options of a deletion.
    Other,
}

/// An object that is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// Its kind, like `Deployment`. Of a `Secret` no values are kept or shown.
    pub kind: Arc<str>,
    /// Its namespace, if its kind has any.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
}

/// What follows from a run that ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// A loop that was found in this moment.
    pub report: Option<Arc<Incident>>,
    /// How long the key is not to be run, because it is in a loop.
    pub delay: Option<Delay>,
}

/// How long a key is not to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Counted from the end of the run.
    pub time: Duration,
    /// Whether even a change of the object's desired state by somebody else does not end it: in a
    /// fight, such changes are what the loop is made of.
    pub firm: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            runs: 20,
            again: 10,
            unchanged: 50,
            progress: 200,
            sights: 4,
            pause: Duration::from_secs(60),
            instant: Duration::from_millis(100),
            damping: Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)),
            observed: 64,
            keys: 16_384,
        }
    }
}

impl Config {
    fn sights(&self) -> u32 {
        self.sights.max(3)
    }
}

// === impl Run ===

impl Run {
    /// Whether it failed, and a delay keeps its key from running again.
    fn is_held(&self, config: &Config) -> bool {
        self.failed && self.after.is_some_and(|after| after > config.instant)
    }

    fn is_write(&self) -> bool {
        !self.writes.is_empty()
    }

    fn changes_something(&self) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|write| write.changed != Some(false))
    }
}

// === impl Cause ===

/// What happened, for a report: `its own write`, `a change of Deployment default/web`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "a look at all objects",
            Self::Desired => "a change of its desired state",
            Self::Timer => "a timer",
            Self::Retry => "a failure",
            Self::Own => "its own write",
            Self::Foreign(None) => "an event",
            Self::Foreign(Some(object)) => return write!(f, "a change of {object}"),
        })
    }
}

// === impl Object ===

impl Object {
    /// An object of this kind.
    #[must_use]
    pub fn new(kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }

    /// Whether its values must not be shown to anybody.
    fn is_secret(&self) -> bool {
        &*self.kind == "Secret"
    }
}

/// As in `Deployment default/web`.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{name}"),
            None => write!(f, "{kind} {name}"),
        }
    }
}

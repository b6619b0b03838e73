//! What one run of a scenario has left.

use crate::{
    address::Address,
    log::{Actor, Change, Effect, Entry, Event},
    object::ObjectId,
    plan::Plan,
    recorder::is_passing,
    state::State,
};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The user gives the objects.
    Given,
    /// The user makes this step.
    Step(usize),
    /// The user deletes what was given.
    Deleted,
    /// The user gives the same again.
    Again,
    /// The checker does something when all is done.
    Probe,
}

/// How a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing was written any more.
    Calm,
    /// Something was still written after hours.
    Restless,
    /// The operator made more requests than any needs, and was stopped.
    Overrun,
}

/// The end of a part.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) part: Part,
    pub(crate) name: String,
    /// Its entries in the log.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) state: State,
    pub(crate) rest: Rest,
    /// What failed while nothing changed any more.
    pub(crate) failing: Vec<String>,
    /// The version of the last write.
    pub(crate) revision: u64,
}

/// What one run has left.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) ends: Vec<End>,
    /// What was given, as it is after the last step.
    pub(crate) finals: Vec<Value>,
    /// What was outside of the cluster before the operator started.
    pub(crate) external: Option<Value>,
    /// Whether the plan could be carried out.
    pub(crate) fired: bool,
    /// What is wrong beyond what can be read off the log.
    pub(crate) remarks: Vec<String>,
}

/// How often objects were created and removed.
pub(crate) type Counts = BTreeMap<(ObjectId, Effect), usize>;

impl Trace {
    /// The end of a part.
    pub(crate) fn end(&self, part: Part) -> Option<&End> {
        self.ends.iter().find(|end| end.part == part)
    }

    /// The end of the user's last step.
    pub(crate) fn last_step(&self) -> Option<&End> {
        let steps = self.ends.iter();
        let mut steps = steps.filter(|end| matches!(end.part, Part::Given | Part::Step(_)));
        steps.next_back()
    }

    pub(crate) fn entries_of(&self, end: &End) -> &[Entry] {
        self.entries.get(end.from..end.to).unwrap_or_default()
    }

    /// What the operator has stored in a part.
    pub(crate) fn operators_writes(&self, end: &End) -> impl Iterator<Item = &Entry> {
        self.entries_of(end)
            .iter()
            .filter(|entry| entry.is_operators_write())
    }

    /// The operator's writes in a part that succeeded without an effect, with how many of each there were.
    pub(crate) fn vain_writes(&self, end: &End) -> BTreeMap<String, usize> {
        let requests = self.entries_of(end).iter().filter_map(Entry::request);
        let in_vain = requests.filter(|request| {
            let succeeded = request.status.is_some_and(|status| status < 300);
            request.actor == Actor::Operator
                && Address::is_write(request.verb)
                && succeeded
                && request.injected.is_none()
                && request.changes.is_empty()
                && !request.query.contains("dryRun")
                && !is_passing(&request.object)
                // A review asks a question.
                && !request.object.resource.ends_with(".authorization.k8s.io")
                && !request.object.resource.ends_with(".authentication.k8s.io")
        });
        let mut counts = BTreeMap::new();
        for request in in_vain {
            let (verb, object) = (request.verb, &request.object);
            let sub = request.subresource.as_str();
            let slash = if sub.is_empty() { "" } else { "/" };
            *counts
                .entry(format!("{verb} {object}{slash}{sub}"))
                .or_default() += 1;
        }
        counts
    }

    /// The longest time between two writes in a part, from its beginning on.
    pub(crate) fn longest_gap(&self, end: &End) -> Duration {
        let entries = self.entries_of(end);
        let begin = entries.first().map_or(Duration::ZERO, |entry| entry.at);
        let writes = entries
            .iter()
            .filter(|entry| entry.changes().next().is_some());
        let mut last = begin;
        let mut longest = Duration::ZERO;
        for write in writes {
            longest = longest.max(write.at.saturating_sub(last));
            last = write.at;
        }
        longest
    }

    /// How often objects were created and removed in a part.
    pub(crate) fn counts(&self, end: &End) -> Counts {
        let changes = self.entries_of(end).iter().flat_map(Entry::changes);
        let mut counts = Counts::new();
        for (_, Change { stem, effect, .. }) in changes {
            if *effect != Effect::Updated && !is_passing(stem) {
                *counts.entry((stem.clone(), *effect)).or_default() += 1;
            }
        }
        counts
    }

    /// The objects that the operator has created and that are there at an end.
    pub(crate) fn children(&self, end: &End) -> Vec<(ObjectId, ObjectId)> {
        let before = self.entries.get(..end.to).unwrap_or_default();
        let mut children: BTreeMap<ObjectId, ObjectId> = BTreeMap::new();
        for (actor, change) in before.iter().flat_map(Entry::changes) {
            match change.effect {
                Effect::Created if actor == Actor::Operator && !is_passing(&change.object) => {
                    children.insert(change.object.clone(), change.stem.clone());
                }
                Effect::Deleted => {
                    children.remove(&change.object);
                }
                Effect::Created | Effect::Updated => {}
            }
        }
        children.into_iter().collect()
    }

    pub(crate) fn panics(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| {
            let Event::Panic(text) = &entry.event else {
                return None;
            };
            Some(text.as_str())
        })
    }

    pub(crate) fn violations(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| {
            let Event::Violation(text) = &entry.event else {
                return None;
            };
            Some(text.as_str())
        })
    }

    /// How many reconciles ran.
    pub(crate) fn runs(&self) -> usize {
        let is_run = |entry: &&Entry| matches!(entry.event, Event::Run { .. });
        self.entries.iter().filter(is_run).count()
    }
}

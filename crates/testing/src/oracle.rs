//! What is wrong with a run, compared with the reference.

use crate::{
    log::{Effect, Entry},
    plan::{Injection, Plan},
    state::{State, Varying},
    trace::{End, Part, Rest, Trace},
    wire::NAMESPACE,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which property does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Fault {
    /// The operator panicked.
    Panic,
    /// A property of the user's did not hold.
    Invariant,
    /// The operator never comes to rest.
    NeverRests,
    /// Something still fails when nothing changes any more.
    StillFails,
    /// The operator did nothing at all, so that nothing was shown.
    Vacuous,
    /// Equal runs end differently.
    Unstable,
    /// The operator wrote although there was nothing to do.
    WritesAtRest,
    /// The end is another one than the reference's.
    OtherEnd,
    /// An object was created or removed more or less often than in the reference.
    OtherCounts,
    /// What another manager has set was removed.
    RemovesForeign,
    /// Something is left outside of the cluster when all that was given is deleted.
    Leak,
    /// The operator made writes that changed nothing, although there was nothing to do.
    WritesInVain,
}

impl Fault {
    /// The name of this oracle, which [`Scenario::without`](crate::Scenario::without) takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Invariant => "invariant",
            Self::NeverRests => "never-rests",
            Self::StillFails => "still-fails",
            Self::Vacuous => "vacuous",
            Self::Unstable => "unstable",
            Self::WritesAtRest => "writes-at-rest",
            Self::OtherEnd => "other-end",
            Self::OtherCounts => "other-counts",
            Self::RemovesForeign => "removes-foreign",
            Self::Leak => "leak",
            Self::WritesInVain => "writes-in-vain",
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Which property does not hold.
    pub fault: Fault,
    /// What was seen.
    pub text: String,
}

/// How many problems of one kind are told of one run.
const SHOWN: usize = 8;

impl Problem {
    fn new(fault: Fault, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { fault, text }
    }
}

/// What is wrong with a run in which nothing was done to the operator.
pub(crate) fn judge_reference(trace: &Trace) -> Vec<Problem> {
    let mut problems = in_any_run(trace);
    let wrote = trace.entries.iter().any(Entry::is_operators_write);
    let left = trace
        .end(Part::Deleted)
        .and_then(|end| end.state.external());
    if let (Some(before), Some(left)) = (&trace.external, left)
        && before != left
        && problems.is_empty()
    {
        let text =
            format!("when all is deleted, {left} is left outside of the cluster, not {before}");
        problems.push(Problem::new(Fault::Leak, text));
    }
    let text = match (trace.runs(), wrote) {
        (0, false) => "no reconcile ran and nothing was written: nothing was checked",
        (_, false) => "the operator has written nothing: nothing was checked",
        (_, true) => return problems,
    };
    problems.push(Problem::new(Fault::Vacuous, text));
    problems
}

/// What is wrong with a run of a plan.
pub(crate) fn judge(reference: &Trace, varying: &Varying, trace: &Trace) -> Vec<Problem> {
    let mut problems = in_any_run(trace);
    let stopped = trace.ends.iter().any(|end| end.rest != Rest::Calm);
    if stopped {
        return problems;
    }
    let judge = Judge { reference, varying };
    match &trace.plan {
        // What a scaler has set is looked at in the run itself.
        Plan::Nothing | Plan::Edit(_) | Plan::Scaled(_) => {}
        Plan::Idle | Plan::Noise | Plan::Relist | Plan::Reversed | Plan::Restart(..) => {
            if let Some(end) = trace.end(Part::Probe) {
                problems.extend(rest(trace, end));
                problems.extend(in_vain(trace, end));
                problems.extend(judge.same_end(reference.last_step(), end));
            }
        }
        Plan::Lose(_) | Plan::Late | Plan::Direct => {
            if let Some(end) = trace.end(Part::Probe) {
                problems.extend(judge.same_end(reference.last_step(), end));
            }
        }
        Plan::Stale(_) => {
            if let Some(end) = trace.end(Part::Probe) {
                problems.extend(judge.same_end(reference.end(Part::Again), end));
                problems.extend(no_counts(trace, end));
            }
        }
        Plan::Missed(_) | Plan::Replaced | Plan::Foreign => {
            if let Some(end) = trace.ends.last() {
                problems.extend(judge.same_end(reference.end(end.part), end));
            }
        }
        Plan::Request(..) | Plan::Lag(_) | Plan::LateCollector => {
            for end in &trace.ends {
                problems.extend(judge.same_end(reference.end(end.part), end));
                problems.extend(judge.same_counts(trace, end));
            }
        }
        Plan::Batched(_) => {
            // What is made for a state that passes need not be made.
            for end in &trace.ends {
                problems.extend(judge.same_end(reference.end(end.part), end));
            }
        }
        Plan::Delete(_) | Plan::DeleteWhileDown(_) => {
            if let Some(end) = trace.ends.last() {
                problems.extend(judge.same_end(reference.end(Part::Deleted), end));
            }
        }
        Plan::DeleteNamespace(_) => {
            if let Some(end) = trace.ends.last() {
                problems.extend(judge.nothing_left(end));
            }
        }
    }
    problems
}

/// What must hold whatever was done.
fn in_any_run(trace: &Trace) -> Vec<Problem> {
    let mut problems = Vec::new();
    let panics = trace.panics().take(1);
    problems.extend(panics.map(|text| Problem::new(Fault::Panic, text)));
    let violations = trace.violations().take(SHOWN);
    problems.extend(violations.map(|text| Problem::new(Fault::Invariant, text)));
    for end in &trace.ends {
        match end.rest {
            Rest::Calm => {}
            Rest::Restless | Rest::Overrun => problems.push(restless(trace, end)),
        }
        let failing = end.failing.iter().take(SHOWN);
        problems.extend(failing.map(|text| {
            let text = format!("at the end of {:?} this still fails: {text}", end.name);
            Problem::new(Fault::StillFails, text)
        }));
    }
    let remarks = trace.remarks.iter();
    problems.extend(remarks.map(|text| Problem::new(Fault::RemovesForeign, text)));
    problems
}

/// What an operator does that never comes to rest: what it writes most.
fn restless(trace: &Trace, end: &End) -> Problem {
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for request in trace.entries_of(end).iter().filter_map(Entry::request) {
        let what = format!("{} {}", request.verb, request.object);
        *requests.entry(what).or_default() += 1;
        for change in &request.changes {
            let paths = change.paths.iter().take(4).map(String::as_str);
            let paths: Vec<&str> = paths.collect();
            let what = match change.effect {
                Effect::Created => format!("create {}", change.stem),
                Effect::Deleted => format!("delete {}", change.stem),
                Effect::Updated => format!("{} at {}", change.stem, paths.join(", ")),
            };
            *writes.entry(what).or_default() += 1;
        }
    }
    let list = if writes.values().any(|count| *count > 2) {
        writes
    } else {
        requests
    };
    let mut list: Vec<(String, usize)> = list.into_iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let list = list.into_iter().take(3);
    let list: Vec<String> = list
        .map(|(what, count)| format!("{count} times {what}"))
        .collect();
    let text = format!(
        "in {:?} the operator never comes to rest: {}",
        end.name,
        list.join("; ")
    );
    Problem::new(Fault::NeverRests, text)
}

struct Judge<'a> {
    reference: &'a Trace,
    varying: &'a Varying,
}

impl Judge<'_> {
    fn same_end(&self, expected: Option<&End>, end: &End) -> Vec<Problem> {
        let Some(expected) = expected else {
            return Vec::new();
        };
        let differences = expected.state.differences(&end.state, self.varying);
        let shown = differences.into_iter().take(SHOWN);
        shown
            .map(|difference| Problem::new(Fault::OtherEnd, difference.to_string()))
            .collect()
    }

    fn same_counts(&self, trace: &Trace, end: &End) -> Vec<Problem> {
        let Some(expected) = self.reference.end(end.part) else {
            return Vec::new();
        };
        let (expected, found) = (self.reference.counts(expected), trace.counts(end));
        let mut keys: Vec<_> = expected.keys().chain(found.keys()).collect();
        keys.sort();
        keys.dedup();
        let mut problems = Vec::new();
        for key in keys {
            let count = |counts: &crate::trace::Counts| counts.get(key).copied().unwrap_or(0);
            let (expected, found) = (count(&expected), count(&found));
            if expected != found {
                let (object, effect) = key;
                let what = if *effect == Effect::Created {
                    "created"
                } else {
                    "removed"
                };
                let text = format!("{object} was {what} {found} times, expected {expected}");
                problems.push(Problem::new(Fault::OtherCounts, text));
            }
        }
        problems
    }

    /// Nothing is left in the namespace, and outside what the deletion of all leaves.
    fn nothing_left(&self, end: &End) -> Vec<Problem> {
        let is_in = |namespace: &str, name: &str, resource: &str| {
            namespace == NAMESPACE || (resource == "namespaces" && name == NAMESPACE)
        };
        let left = end.state.objects();
        let left = left.filter(|(id, _)| is_in(&id.namespace, &id.name, &id.resource));
        let left = left.map(|(id, _)| {
            let text = format!("{id} is left over, and the namespace cannot go");
            Problem::new(Fault::OtherEnd, text)
        });
        let mut problems: Vec<Problem> = left.take(SHOWN).collect();
        if let Some(deleted) = self.reference.end(Part::Deleted) {
            let external = |state: &State| state.external().cloned();
            let (expected, found) = (external(&deleted.state), external(&end.state));
            if problems.is_empty() && expected != found {
                let text =
                    format!("outside of the cluster there is {found:?}, expected {expected:?}");
                problems.push(Problem::new(Fault::OtherEnd, text));
            }
        }
        problems
    }
}

/// At rest nothing is written.
fn rest(trace: &Trace, end: &End) -> Vec<Problem> {
    let written = trace.operators_writes(end).filter_map(Entry::request);
    let shown = written.flat_map(|request| &request.changes).take(SHOWN);
    shown
        .map(|change| {
            let text = format!("there was nothing to do, and the operator has {change}");
            Problem::new(Fault::WritesAtRest, text)
        })
        .collect()
}

/// At rest there are no writes without effect either.
fn in_vain(trace: &Trace, end: &End) -> Vec<Problem> {
    let vain = trace.vain_writes(end).into_iter().take(SHOWN);
    vain.map(|(what, count)| {
        let text = format!("there was nothing to do, and {what} changed nothing ({count} times)");
        Problem::new(Fault::WritesInVain, text)
    })
    .collect()
}

/// Nothing was created or removed.
fn no_counts(trace: &Trace, end: &End) -> Vec<Problem> {
    let counts = trace.counts(end).into_iter();
    counts
        .map(|((object, effect), count)| {
            let what = if effect == Effect::Created {
                "created"
            } else {
                "removed"
            };
            let text = format!("{object} was {what} {count} times, expected 0");
            Problem::new(Fault::OtherCounts, text)
        })
        .collect()
}

/// The name of what has found a problem, as the literature has it.
pub(crate) fn detector(plan: &Plan, fault: Fault) -> &'static str {
    match (plan, fault) {
        (_, Fault::Panic) => "PANIC",
        (_, Fault::Invariant) => "INVARIANT",
        (_, Fault::Vacuous) => "VACUOUS",
        (_, Fault::Unstable) => "UNSTABLE",
        (_, Fault::Leak) => "LEAK",
        (_, Fault::WritesInVain) => "NOP",
        (Plan::Nothing, Fault::NeverRests) => "LOOP",
        (Plan::Nothing | Plan::Lose(_), _) => "STUCK",
        (Plan::Idle | Plan::Relist, _) => "IDEM",
        (Plan::Restart(..), _) => "RESTART",
        (Plan::Reversed, _) => "ORDER",
        (Plan::Noise | Plan::Foreign | Plan::Edit(_) | Plan::Scaled(_), _) => "FIGHT",
        (Plan::Request(_, injection), _) if injection.is_crash() => "CRASH",
        (Plan::Request(_, Injection::LateTimeout | Injection::AnswerLost), _) => "FAULT(applied)",
        (Plan::Request(..), _) => "FAULT",
        (Plan::DeleteNamespace(_) | Plan::LateCollector, _) => "GC",
        (Plan::Delete(_), _) => "DELETE",
        (
            Plan::DeleteWhileDown(_)
            | Plan::Late
            | Plan::Missed(_)
            | Plan::Replaced
            | Plan::Batched(_),
            _,
        ) => "UNOBS",
        (Plan::Direct, _) => "PATH",
        (Plan::Lag(_) | Plan::Stale(_), _) => "STALE",
    }
}

/// The likely kind of bug, in a sentence.
pub(crate) fn advice(plan: &Plan, fault: Fault) -> &'static str {
    match (detector(plan, fault), fault) {
        ("PANIC", _) => "The reconciler panics on a state that it does not expect.",
        ("INVARIANT", _) => "The order of writes breaks the property for a while, or for good.",
        ("VACUOUS", _) => "The controller watches something else than what is given.",
        ("LEAK", _) => {
            "What is outside of the cluster is not removed with the object. That takes a finalizer."
        }
        ("NOP", _) => {
            "The operator writes without looking whether that changes anything. Compare first, as \
             `children` and `status` do."
        }
        ("LOOP", _) => {
            "Each run writes something that wakes the next one: a time, a random value, or a \
             comparison with what the server has filled in."
        }
        ("CRASH", _) => {
            "A later step relies on a write before it having led to the ones after it. Decide each \
             step by the present state."
        }
        ("IDEM", _) => {
            "What is written depends on the time, on chance, on the order of a hash map, or is \
             compared with what the server has filled in."
        }
        ("RESTART", _) => {
            "Something is made anew because a cache is not complete yet. Wait for the cache, or ask \
             the server."
        }
        ("ORDER", _) => "What is written depends on the order of a list. Sort it.",
        ("FIGHT", _) => {
            "The operator writes whole objects or lists. Write your own fields alone, with \
             server-side apply."
        }
        ("FAULT(applied)", _) => {
            "A request that failed may have been carried out. Choose names that follow from the \
             object, and take what is there already for done."
        }
        ("FAULT", Fault::OtherEnd | Fault::OtherCounts) => {
            "An error was taken for an answer, or for the end of the work. Return it, so that the \
             object is tried again."
        }
        ("FAULT", _) => "After an error nothing tries again, or what tries again always fails.",
        ("GC", _) => "The operator works against the deletion of what it works on.",
        ("DELETE", _) => {
            "The clean-up relies on more than the object: on steps that were not made yet, or on \
             things that are gone already."
        }
        ("UNOBS", _) => {
            "The operator acts on events that it must see, in place of the present state."
        }
        ("PATH", _) => "The end depends on the way to it: something is kept from a state before.",
        ("STALE", _) => {
            "A decision relies on a cache that is old. Delete and change with a precondition of uid \
             and version, and look things up by uid."
        }
        ("STUCK", Fault::OtherEnd) => {
            "Nothing tells the controller of this object: it owns or watches another kind, or a \
             filter drops the event."
        }
        _ => "The operator waits for something that does not come.",
    }
}

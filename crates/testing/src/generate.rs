//! Which plans there are for an operator, read off the reference run, and which of them cannot matter.

use crate::{
    address::Address,
    log::{Actor, Effect, Entry, Request},
    object::ObjectId,
    oracle::{Fault, detector},
    plan::{Injection, Plan, Trouble},
    setup::Setup,
    trace::{Part, Trace},
};
use std::collections::{BTreeMap, BTreeSet};

/// The plans to run, and how many were left out for which reason.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    pub(crate) kept: Vec<Plan>,
    pub(crate) dropped: BTreeMap<&'static str, usize>,
}

/// A request of the reference run that a plan can be about.
struct Candidate<'a> {
    number: u32,
    request: &'a Request,
    /// Whether the user can still delete what was given at this moment.
    before_deletion: bool,
    /// Whether nothing was written since the operator's write before.
    follows_own_write: bool,
    /// Whether a run before had the same requests with the same answers, and changed the same places.
    is_repeated: bool,
}

const OF_WATCHES: &str = "requests of watches, which the restarts cover";
const REPEATED: &str = "requests of a run that did the same as one before, without effect";
const AGAIN: &str =
    "requests for what is given again, of a run that did the same as one for the first time";
const OTHER_VALUES: &str = "faults of a run that did the same as one before, with other values";
const SAME_CRASH: &str = "crashes that leave the same behind as another one";
const SAME_FAULT: &str = "faults that nobody could tell from another one";
const UNWANTED: &str = "plans of checks that were not asked for";
const BUDGET: &str = "plans beyond the budget";

impl Plans {
    /// All plans for a scenario, the simplest first.
    pub(crate) fn of<X>(setup: &Setup<X>, reference: &Trace) -> Self {
        let mut plans = Self::default();
        plans.add_whole_runs(setup, reference);
        plans.add_children(setup, reference);
        let candidates = plans.candidates(reference);
        plans.add_crashes(&candidates, setup.ledger.is_some());
        if setup.deletion {
            plans.add_deletions(&candidates);
            plans.add_stale(reference);
        }
        plans.add_faults(&candidates);
        plans.keep_only(&setup.only);
        plans.leave_out(&setup.without);
        if plans.kept.len() > setup.budget {
            let beyond = plans.kept.len() - setup.budget;
            plans.dropped.insert(BUDGET, beyond);
            plans.kept.truncate(setup.budget);
        }
        plans
    }

    fn keep_only(&mut self, detectors: &[String]) {
        if detectors.is_empty() {
            return;
        }
        let all = self.kept.len();
        self.kept.retain(|plan| {
            let names = [Fault::OtherEnd, Fault::WritesInVain].map(|fault| detector(plan, fault));
            // Writes in vain are looked for where nothing is to be done.
            let names = &names[..if plan.is_at_rest() { 2 } else { 1 }];
            detectors
                .iter()
                .any(|wanted| names.contains(&wanted.as_str()))
        });
        self.drop_for(UNWANTED, all - self.kept.len());
    }

    fn leave_out(&mut self, kinds: &[String]) {
        let all = self.kept.len();
        let is_kept = |plan: &Plan| !kinds.iter().any(|kind| kind == plan.kind());
        self.kept.retain(is_kept);
        self.drop_for(UNWANTED, all - self.kept.len());
    }

    fn drop_for(&mut self, reason: &'static str, count: usize) {
        if count > 0 {
            *self.dropped.entry(reason).or_default() += count;
        }
    }

    fn add_whole_runs<X>(&mut self, setup: &Setup<X>, reference: &Trace) {
        self.kept
            .extend([Plan::Idle, Plan::Noise, Plan::Relist, Plan::Reversed]);
        if !setup.steps.is_empty() {
            self.kept.extend([Plan::Late, Plan::Direct]);
            self.kept.extend((0..setup.steps.len()).map(Plan::Missed));
        }
        if setup.deletion {
            self.kept.extend([Plan::Replaced, Plan::Foreign]);
        }
        self.kept.push(Plan::LateCollector);
        for resource in watched(reference) {
            let troubles = Trouble::all().map(|trouble| Plan::Restart(resource.clone(), trouble));
            self.kept.extend(troubles);
            self.kept.push(Plan::Lag(resource.clone()));
            self.kept.push(Plan::Batched(resource));
        }
    }

    fn add_children<X>(&mut self, setup: &Setup<X>, reference: &Trace) {
        let Some(end) = reference.last_step() else {
            return;
        };
        for (_, stem) in reference.children(end) {
            if !setup.expendable.contains(&stem.resource) {
                self.kept.push(Plan::Lose(stem.to_string()));
            }
            self.kept.push(Plan::Edit(stem.to_string()));
            if setup.autoscaled.contains(&stem.resource) {
                self.kept.push(Plan::Scaled(stem.to_string()));
            }
        }
    }

    /// The requests that plans are about. Those of watches are covered by restarts, and of runs that
    /// asked the same, heard the same and changed nothing, one is enough.
    fn candidates<'a>(&mut self, reference: &'a Trace) -> Vec<Candidate<'a>> {
        let Repeated {
            idle,
            again,
            effective,
        } = repeated_runs(reference);
        let deletion = reference
            .end(Part::Deleted)
            .map_or(usize::MAX, |end| end.from);
        let mut follows_own_write = false;
        let mut candidates = Vec::new();
        for (index, entry) in reference.entries.iter().enumerate() {
            if let Some((number, request)) = numbered(entry) {
                let of_watch = request.run.is_none() && request.verb == "list";
                if of_watch {
                    self.drop_for(OF_WATCHES, 1);
                } else if request.run.is_some_and(|run| idle.contains(&run)) {
                    self.drop_for(REPEATED, 1);
                } else if request.run.is_some_and(|run| again.contains(&run)) {
                    self.drop_for(AGAIN, 1);
                } else {
                    candidates.push(Candidate {
                        number,
                        request,
                        before_deletion: index < deletion,
                        follows_own_write,
                        is_repeated: request.run.is_some_and(|run| effective.contains(&run)),
                    });
                }
            }
            for (actor, _) in entry.changes() {
                follows_own_write = actor == Actor::Operator;
            }
        }
        candidates
    }

    fn add_crashes(&mut self, candidates: &[Candidate<'_>], has_ledger: bool) {
        for candidate in candidates
            .iter()
            .filter(|it| !it.request.changes.is_empty())
        {
            let mut add = |injection| self.kept.push(Plan::Request(candidate.number, injection));
            add(Injection::CrashAfter);
            // Without a world outside, what a crash leaves behind is what the server has.
            if has_ledger || !candidate.follows_own_write {
                add(Injection::CrashBefore);
            } else {
                self.drop_for(SAME_CRASH, 1);
            }
            if has_ledger {
                self.kept
                    .push(Plan::Request(candidate.number, Injection::CrashSeen));
            } else {
                self.drop_for(SAME_CRASH, 1);
            }
        }
    }

    fn add_deletions(&mut self, candidates: &[Candidate<'_>]) {
        let first = candidates.iter().find(|it| it.request.run.is_some());
        let first = first.map(|candidate| candidate.number);
        let in_time = candidates.iter().filter(|it| it.before_deletion);
        for candidate in in_time {
            let number = candidate.number;
            if candidate.request.changes.is_empty() && Some(number) != first {
                continue;
            }
            self.kept.extend([
                Plan::Delete(number),
                Plan::DeleteWhileDown(number),
                Plan::DeleteNamespace(number),
            ]);
        }
    }

    /// Old caches: as they were after each change of what users write, and at the end of each part.
    fn add_stale(&mut self, reference: &Trace) {
        let Some(last) = reference.end(Part::Again) else {
            return;
        };
        let users: BTreeSet<&ObjectId> = reference
            .entries
            .iter()
            .flat_map(Entry::changes)
            .filter(|(actor, change)| *actor == Actor::User && change.effect == Effect::Created)
            .map(|(_, change)| &change.object)
            .collect();
        let begin = reference.end(Part::Given).map_or(0, |end| end.from);
        let entries = reference.entries.get(begin..).unwrap_or_default();
        let changes = entries.iter().flat_map(Entry::changes);
        let of_users = changes
            .filter(|(_, change)| users.contains(&change.object))
            .map(|(_, change)| change.revision);
        let ends = reference.ends.iter().map(|end| end.revision);
        let revisions: BTreeSet<u64> = of_users.chain(ends).collect();
        let revisions = revisions.into_iter().filter(|it| *it < last.revision);
        self.kept.extend(revisions.map(Plan::Stale));
    }

    fn add_faults(&mut self, candidates: &[Candidate<'_>]) {
        use Injection::{
            AnswerLost, Busy, BusyStatus, Conflict, LateTimeout, Refused, ServerError,
        };
        let mut busy: BTreeSet<(&str, &str)> = BTreeSet::new();
        for Candidate {
            number,
            request,
            is_repeated,
            ..
        } in candidates
        {
            // What it does after an error does not depend on values. What a lost answer leaves behind may.
            if *is_repeated && request.changes.is_empty() {
                let faults = if Address::is_write(request.verb) {
                    4
                } else {
                    3
                };
                self.drop_for(OTHER_VALUES, faults);
                continue;
            }
            let mut add = |injection| self.kept.push(Plan::Request(*number, injection));
            add(ServerError);
            add(Refused);
            add(Busy);
            if Address::is_write(request.verb) {
                add(Conflict);
                if request.changes.is_empty() {
                    self.drop_for(SAME_FAULT, 2);
                } else {
                    self.kept.push(Plan::Request(*number, LateTimeout));
                    self.kept.push(Plan::Request(*number, AnswerLost));
                }
            }
            // What a client makes of the two forms depends on the kind of request alone.
            if busy.insert((request.verb, &request.object.resource)) {
                self.kept.push(Plan::Request(*number, BusyStatus));
            } else {
                self.drop_for(SAME_FAULT, 1);
            }
        }
    }
}

/// The resources that the operator keeps in caches.
fn watched(reference: &Trace) -> BTreeSet<String> {
    let requests = reference.entries.iter().filter_map(Entry::request);
    requests
        .filter(|request| request.actor == Actor::Operator && request.run.is_none())
        .filter(|request| ["list", "watch"].contains(&request.verb))
        .map(|request| request.object.resource.clone())
        .collect()
}

fn numbered(entry: &Entry) -> Option<(u32, &Request)> {
    let request = entry.request()?;
    Some((request.number?, request))
}

/// Runs that had the same requests with the same answers as a run before, and changed the same places.
#[derive(Default)]
struct Repeated {
    /// Those that changed nothing.
    idle: BTreeSet<u32>,
    /// Those for what is given again.
    again: BTreeSet<u32>,
    /// The others.
    effective: BTreeSet<u32>,
}

fn repeated_runs(reference: &Trace) -> Repeated {
    type Step<'a> = (
        &'static str,
        &'a ObjectId,
        &'a str,
        &'a str,
        Option<u16>,
        Vec<(&'a ObjectId, Effect, &'a [String])>,
    );
    let mut runs: BTreeMap<u32, (Vec<Step<'_>>, bool, bool)> = BTreeMap::new();
    let second_life = reference
        .end(Part::Again)
        .map_or(usize::MAX, |end| end.from);
    for (index, entry) in reference.entries.iter().enumerate() {
        let Some(request) = entry.request() else {
            continue;
        };
        let Some(run) = request.run else { continue };
        let (signature, has_effect, is_again) = runs.entry(run).or_default();
        let changes = request.changes.iter();
        let changes = changes.map(|change| (&change.stem, change.effect, &change.paths[..]));
        signature.push((
            request.verb,
            &request.object,
            &request.subresource,
            &request.query,
            request.status,
            changes.collect(),
        ));
        *has_effect |= !request.changes.is_empty();
        *is_again |= index >= second_life;
    }
    let mut seen = BTreeSet::new();
    let mut repeated = Repeated::default();
    for (run, (signature, has_effect, is_again)) in runs {
        let is_new = seen.insert(signature);
        let kind = match (has_effect, is_again) {
            _ if is_new => continue,
            (false, _) => &mut repeated.idle,
            (true, true) => &mut repeated.again,
            (true, false) => &mut repeated.effective,
        };
        kind.insert(run);
    }
    repeated
}

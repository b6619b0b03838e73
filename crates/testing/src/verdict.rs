//! Plays plans and judges them: several in one world where that is possible, and each alone that is wrong there.

use crate::{
    oracle::judge,
    plan::Plan,
    reference::Reference,
    report::Finding,
    series::{Group, Series},
    setup::Setup,
    trace::{Part, Trace},
    world::{play, play_series},
};
use std::sync::Arc;

/// The result of a plan.
pub(crate) struct Verdict {
    pub(crate) finding: Option<Finding>,
    pub(crate) fired: bool,
    pub(crate) repaired: bool,
    pub(crate) notes: Vec<String>,
}

/// The results of a group of plans, by their places among all of them.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) verdicts: Vec<(usize, Verdict)>,
    /// How many runs that took.
    pub(crate) plays: usize,
}

/// After so many series that ended early, the rest of a group is played one by one.
const PATIENCE: usize = 3;

/// Plays the plans of a group. What is wrong in a series does not count: it is played alone, so that a report never
/// tells of more than one plan needs. `told` hears of each verdict.
pub(crate) fn judge_group<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    plans: &[Plan],
    group: &Group,
    told: impl Fn(&Verdict),
) -> Judged {
    let mut judged = Judged::default();
    let mut left = group.clone();
    let mut early = 0;
    while let Some(first) = left.first() {
        let mut alone = first;
        if left.len() > 1 && early < PATIENCE {
            let series = Series::of(&left, plans, &reference.trace);
            let (done, wrong) = judge_series(setup, reference, &series);
            judged.plays += 1;
            left.remove(done.iter().map(|(index, _)| *index));
            for (_, verdict) in &done {
                told(verdict);
            }
            let is_stuck = done.is_empty();
            judged.verdicts.extend(done);
            if left.is_empty() {
                break;
            }
            early += 1;
            match wrong {
                Some(index) => alone = index,
                None if is_stuck => {}
                None => continue,
            }
        }
        let verdict = judge_alone(setup, reference, &plans[alone]);
        judged.plays += 1;
        told(&verdict);
        judged.verdicts.push((alone, verdict));
        left.remove([alone]);
    }
    judged
}

/// Plays a series as far as nothing is wrong. Answers which plan is the first that may be, too.
fn judge_series<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    series: &Series,
) -> (Vec<(usize, Verdict)>, Option<usize>) {
    let (mut done, mut wrong) = (Vec::new(), None);
    let mut indices = series.indices.iter();
    let seed = reference.trace.seed;
    let end = play_series(setup, seed, &series.legs, &reference.hints, |leg, trace| {
        if leg.plan.is_none() {
            return is_as_expected(reference, &trace);
        }
        let Some(index) = indices.next() else {
            return false;
        };
        let verdict = judge_trace(setup, reference, &trace);
        if !trace.fired || verdict.finding.is_some() {
            wrong = Some(*index);
            return false;
        }
        let goes_on = !matches!(trace.plan, Plan::Edit(_)) || verdict.repaired;
        done.push((*index, verdict));
        goes_on
    });
    // What cannot be played in a series is played alone, and tells there what it is.
    drop(end);
    (done, wrong)
}

/// Whether a part in which nothing was done to the operator has ended as in the reference.
fn is_as_expected(reference: &Reference, trace: &Trace) -> bool {
    trace.ends.iter().all(|end| {
        let expected = reference.trace.end(end.part);
        let differences =
            expected.map(|expected| expected.state.differences(&end.state, &reference.varying));
        differences.is_some_and(|differences| differences.is_empty())
    })
}

/// Plays a plan in a world of its own.
pub(crate) fn judge_alone<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    plan: &Plan,
) -> Verdict {
    match play(setup, reference.trace.seed, plan, &reference.hints) {
        Ok(trace) => judge_trace(setup, reference, &trace),
        Err(error) => Verdict {
            finding: None,
            fired: true,
            repaired: false,
            notes: vec![format!("{plan}: {error}")],
        },
    }
}

fn judge_trace<X>(setup: &Setup<X>, reference: &Reference, trace: &Trace) -> Verdict {
    let lasts = matches!(
        trace.plan,
        Plan::Late | Plan::Direct | Plan::Lag(_) | Plan::Batched(_) | Plan::LateCollector
    );
    let mut verdict = Verdict {
        finding: None,
        fired: trace.fired || lasts,
        repaired: false,
        notes: Vec::new(),
    };
    let problems = setup.wanted(judge(&reference.trace, &reference.varying, trace));
    if problems.is_empty() {
        let (repaired, note) = repair(reference, trace);
        verdict.repaired = repaired;
        verdict.notes.extend(note);
        verdict.notes.extend(in_vain(trace));
    } else {
        verdict.finding = Some(Finding::new(Some(&reference.trace), trace, problems));
    }
    verdict
}

/// Whether the operator put right what the plan has damaged; if it has not, what that was.
fn repair(reference: &Reference, trace: &Trace) -> (bool, Option<String>) {
    let (Some(expected), Some(found)) = (reference.trace.last_step(), trace.end(Part::Probe))
    else {
        return (false, None);
    };
    if matches!(trace.plan, Plan::Lose(_)) {
        return (true, None);
    }
    let Plan::Edit(object) = &trace.plan else {
        return (false, None);
    };
    let left = expected.state.differences(&found.state, &reference.varying);
    match left.first() {
        None => (trace.fired, None),
        Some(left) => (
            false,
            Some(format!("an edit of {object} is not undone: {left}")),
        ),
    }
}

/// What an operator writes at rest without an effect, if that is no fault.
fn in_vain(trace: &Trace) -> Option<String> {
    let end = trace
        .end(Part::Probe)
        .filter(|_| trace.plan == Plan::Idle)?;
    let vain: Vec<String> = trace.vain_writes(end).into_keys().collect();
    (!vain.is_empty()).then(|| {
        format!(
            "with nothing to do, these writes are made and change nothing: {}",
            vain.join(", ")
        )
    })
}

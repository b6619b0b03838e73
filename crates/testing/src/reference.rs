//! The run in which nothing is done to the operator, and what it differs in by chance.

use crate::{
    oracle::{Fault, Problem, judge_reference},
    plan::Plan,
    report::{Finding, Report},
    setup::Setup,
    state::Varying,
    trace::Trace,
    world::{Hints, play},
};
use std::sync::Arc;

/// How many runs with other seeds show what differs by chance.
const REFERENCES: u64 = 3;

/// What the plans are compared with.
pub(crate) struct Reference {
    pub(crate) trace: Trace,
    pub(crate) varying: Varying,
    pub(crate) hints: Arc<Hints>,
}

// === impl Setup ===

impl<X> Setup<X> {
    /// The problems that are to be told.
    pub(crate) fn wanted(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        problems.retain(|problem| {
            let is_free = problem.fault == Fault::WritesInVain && !self.frugal;
            !is_free && !self.without.iter().any(|name| name == problem.fault.name())
        });
        problems
    }
}

// === impl Reference ===

impl Reference {
    /// The reference of a seed; none if there is something wrong with it already.
    pub(crate) fn of<X: Send + Sync + 'static>(
        setup: &Arc<Setup<X>>,
        seed: u64,
        report: &mut Report,
    ) -> Result<Option<Self>, String> {
        let none = Arc::new(Hints::default());
        let seeds: Vec<u64> = (0..REFERENCES)
            .map(|n| seed.wrapping_add(n * 7_919))
            .collect();
        let mut traces = seeds
            .iter()
            .map(|seed| play(setup, *seed, &Plan::Nothing, &none));
        let trace = traces.next().ok_or("there is no reference")??;
        report.played();
        report.reconciles = trace.runs();
        let writes = trace
            .entries
            .iter()
            .filter(|entry| entry.is_operators_write());
        report.writes = writes.count();
        let problems = setup.wanted(judge_reference(&trace));
        if !problems.is_empty() {
            report.found(Finding::new(None, &trace, problems));
            return Ok(None);
        }
        let mut varying = Varying::new(setup.ignored.clone());
        for other in traces {
            let other = other?;
            report.played();
            let problems = setup.wanted(learn(&mut varying, &trace, &other));
            if !problems.is_empty() {
                report.found(Finding::new(None, &other, problems));
                return Ok(None);
            }
        }
        let end = trace.last_step().ok_or("the reference has no end")?;
        let hints = Hints {
            finals: trace.finals.clone(),
            children: trace.children(end),
            ends: trace
                .ends
                .iter()
                .map(|end| (end.part, (end.state.clone(), trace.longest_gap(end))))
                .collect(),
            varying: varying.clone(),
        };
        Ok(Some(Self {
            trace,
            varying,
            hints: Arc::new(hints),
        }))
    }
}

/// Learns from another reference what differs by chance. What may not differ is a problem.
fn learn(varying: &mut Varying, trace: &Trace, other: &Trace) -> Vec<Problem> {
    let mut problems = judge_reference(other);
    for end in &other.ends {
        let Some(expected) = trace.end(end.part) else {
            continue;
        };
        for difference in varying.learn(&expected.state, &end.state) {
            let text = format!("with another seed, {difference}");
            problems.push(Problem {
                fault: Fault::Unstable,
                text,
            });
        }
    }
    problems
}

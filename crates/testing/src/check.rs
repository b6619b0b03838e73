//! Runs the reference and all plans, and judges them.

use crate::{
    generate::Plans,
    log::{Entry, Timeline},
    oracle::{Fault, Problem, judge, judge_reference},
    plan::Plan,
    report::{Finding, Report},
    setup::Setup,
    state::Varying,
    trace::{Part, Trace},
    world::{Hints, play},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// How many runs with other seeds show what differs by chance.
const REFERENCES: u64 = 3;

/// What the plans are compared with.
struct Reference {
    trace: Trace,
    varying: Varying,
    hints: Arc<Hints>,
}

/// The result of a plan.
struct Verdict {
    index: usize,
    finding: Option<Finding>,
    fired: bool,
    repaired: bool,
    note: Option<String>,
}

/// Checks a scenario.
pub(crate) fn check<X: Send + Sync + 'static>(setup: &Arc<Setup<X>>) -> Report {
    let (seed, plan) = match setup.replay.as_deref().map(parse_replay).transpose() {
        Ok(replay) => replay.map_or((setup.seed, None), |(seed, plan)| (seed, Some(plan))),
        Err(error) => {
            let mut report = Report::new(setup.seed);
            report.error = Some(error);
            return report;
        }
    };
    let mut report = Report::new(seed);
    match Reference::of(setup, seed, &mut report) {
        Ok(Some(reference)) => match plan {
            Some(plan) => replay(setup, &reference, &plan, &mut report),
            None => run_plans(setup, &reference, &mut report),
        },
        Ok(None) => {}
        Err(error) => report.error = Some(error),
    }
    report
}

/// `7:crash-after=12` as a seed and a plan.
fn parse_replay(text: &str) -> Result<(u64, Plan), String> {
    let (seed, plan) = text.split_once(':').unwrap_or((text, "nothing"));
    let seed = seed.parse().map_err(|_| format!("{seed:?} is no seed"))?;
    Ok((seed, plan.parse().map_err(|error| format!("{error}"))?))
}

impl Reference {
    /// The reference of a seed; none if there is something wrong with it already.
    fn of<X: Send + Sync + 'static>(
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
        report.run += 1;
        report.reconciles = trace.runs();
        let writes = trace
            .entries
            .iter()
            .filter(|entry| entry.is_operators_write());
        report.writes = writes.count();
        let problems = judge_reference(&trace);
        if !problems.is_empty() {
            report.findings.push(Finding::new(None, &trace, problems));
            return Ok(None);
        }
        let mut varying = Varying::new(setup.ignored.clone());
        for other in traces {
            let other = other?;
            report.run += 1;
            let problems = learn(&mut varying, &trace, &other);
            if !problems.is_empty() {
                report.findings.push(Finding::new(None, &other, problems));
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

fn run_plans<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    report: &mut Report,
) {
    let plans = Plans::of(setup, &reference.trace);
    report.planned = plans.kept.len();
    report.dropped.clone_from(&plans.dropped);
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Verdict>> = Mutex::default();
    let name = thread::current().name().unwrap_or_default().to_owned();
    thread::scope(|scope| {
        for _ in 0..setup.threads.max(1) {
            let work = || {
                while let Some(plan) = plans.kept.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let index = plans.kept.iter().position(|other| other == plan);
                    let verdict = verdict(setup, reference, plan, index.unwrap_or_default());
                    let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                    verdicts.push(verdict);
                }
            };
            // Builds without optimization have deep stacks.
            let builder = thread::Builder::new()
                .name(name.clone())
                .stack_size(16 << 20);
            if builder.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
    });
    let mut verdicts = verdicts
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|verdict| verdict.index);
    collect(verdicts, report);
}

fn verdict<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    plan: &Plan,
    index: usize,
) -> Verdict {
    let mut verdict = Verdict {
        index,
        finding: None,
        fired: true,
        repaired: false,
        note: None,
    };
    let trace = match play(setup, reference.trace.seed, plan, &reference.hints) {
        Ok(trace) => trace,
        Err(error) => {
            verdict.note = Some(format!("{plan}: {error}"));
            return verdict;
        }
    };
    verdict.fired = trace.fired
        || matches!(
            plan,
            Plan::Late | Plan::Direct | Plan::Lag(_) | Plan::LateCollector
        );
    let problems = judge(&reference.trace, &reference.varying, &trace);
    if problems.is_empty() {
        (verdict.repaired, verdict.note) = repair(reference, &trace);
    } else {
        verdict.finding = Some(Finding::new(Some(&reference.trace), &trace, problems));
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

fn collect(verdicts: Vec<Verdict>, report: &mut Report) {
    let mut known: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    for verdict in verdicts {
        report.run += 1;
        report.repairs += usize::from(verdict.repaired);
        report.inapplicable += usize::from(!verdict.fired);
        report.notes.extend(verdict.note);
        let Some(finding) = verdict.finding else {
            continue;
        };
        if let Some(index) = known.get(&finding.key()) {
            report.findings[*index].again += 1;
        } else {
            known.insert(finding.key(), report.findings.len());
            report.findings.push(finding);
        }
    }
}

fn replay<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    plan: &Plan,
    report: &mut Report,
) {
    let trace = match play(setup, reference.trace.seed, plan, &reference.hints) {
        Ok(trace) => trace,
        Err(error) => {
            report.error = Some(error);
            return;
        }
    };
    report.run += 1;
    report.replayed = Some(Timeline(&trace.entries).to_string());
    let problems = if *plan == Plan::Nothing {
        judge_reference(&trace)
    } else {
        judge(&reference.trace, &reference.varying, &trace)
    };
    if !problems.is_empty() {
        report
            .findings
            .push(Finding::new(Some(&reference.trace), &trace, problems));
    }
}

/// The log of one run of a plan, and nothing more.
pub(crate) fn log<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    seed: u64,
    plan: &Plan,
) -> Result<Vec<Entry>, String> {
    Ok(play(setup, seed, plan, &Arc::default())?.entries)
}

//! Runs the reference and all plans, and judges them.

use crate::{
    generate::Plans,
    log::{Entry, Timeline},
    oracle::{Fault, Problem, judge, judge_reference},
    plan::Plan,
    report::{Finding, Report, test_name},
    save::{progress, save},
    setup::Setup,
    state::Varying,
    trace::{Part, Trace},
    world::{Hints, play},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// How many runs with other seeds show what differs by chance.
const REFERENCES: u64 = 3;

/// How many plans are tried with each of many seeds.
const PLANS_OF_SEED: usize = 4;

/// What the plans are compared with.
struct Reference {
    trace: Trace,
    varying: Varying,
    hints: Arc<Hints>,
}

/// The result of a plan.
struct Verdict {
    finding: Option<Finding>,
    fired: bool,
    repaired: bool,
    notes: Vec<String>,
}

/// Checks a scenario, and saves the report if that is wanted.
pub(crate) fn check<X: Send + Sync + 'static>(setup: &Arc<Setup<X>>) -> Report {
    let begin = now();
    let mut report = if setup.seeds > 0 && setup.replay.is_none() {
        try_seeds(setup)
    } else {
        check_one(setup)
    };
    report.took = begin.elapsed();
    report.threads = setup.threads;
    if let Some(folder) = &setup.save
        && let Err(error) = save(&report, &test_name(), folder)
    {
        report.error = Some(format!("the report cannot be saved: {error}"));
    }
    report
}

#[expect(
    clippy::disallowed_types,
    reason = "how long a check takes is told to people only"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Tries many seeds, with the reference and some plans each.
fn try_seeds<X: Send + Sync + 'static>(setup: &Arc<Setup<X>>) -> Report {
    let seeds: Vec<u64> = (0..setup.seeds)
        .map(|n| setup.seed.wrapping_add(n))
        .collect();
    let reports = each(setup, &seeds, |seed| {
        let mut report = Report::new(*seed);
        match Reference::of(setup, *seed, &mut report) {
            Ok(Some(reference)) => {
                let mut plans = Plans::of(setup, &reference.trace).kept;
                fastrand::Rng::with_seed(*seed).shuffle(&mut plans);
                plans.truncate(PLANS_OF_SEED);
                let verdicts = plans.iter().map(|plan| verdict(setup, &reference, plan));
                collect(verdicts.collect(), &mut report);
            }
            Ok(None) => {}
            Err(error) => report.error = Some(error),
        }
        report
    });
    let mut all = Report::new(setup.seed);
    all.seeds = setup.seeds;
    for report in reports {
        all.take_in(report);
    }
    all
}

/// Does the same with each item, by as many threads as the scenario wants. The results are in the order of the items.
fn each<X: Send + Sync + 'static, I: Sync, T: Send>(
    setup: &Arc<Setup<X>>,
    items: &[I],
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::default();
    let name = thread::current().name().unwrap_or_default().to_owned();
    thread::scope(|scope| {
        for _ in 0..setup.threads.clamp(1, items.len().max(1)) {
            let work = || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = work(item);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((index, result));
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
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn check_one<X: Send + Sync + 'static>(setup: &Arc<Setup<X>>) -> Report {
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

impl<X> Setup<X> {
    /// The problems that are to be told.
    fn wanted(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        problems.retain(|problem| {
            let is_free = problem.fault == Fault::WritesInVain && !self.frugal;
            !is_free && !self.without.iter().any(|name| name == problem.fault.name())
        });
        problems
    }
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
        report.played(1);
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
            report.played(1);
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

fn run_plans<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    report: &mut Report,
) {
    let plans = Plans::of(setup, &reference.trace);
    report.planned = plans.kept.len();
    report.dropped.clone_from(&plans.dropped);
    let (test, all) = (test_name(), plans.kept.len());
    let (done, faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let verdicts = each(setup, &plans.kept, |plan| {
        let verdict = verdict(setup, reference, plan);
        let found = usize::from(verdict.finding.is_some());
        let faults = faults.fetch_add(found, Ordering::Relaxed) + found;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(folder) = &setup.save {
            progress(&test, folder, done, all, faults);
        }
        verdict
    });
    collect(verdicts, report);
}

fn verdict<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    reference: &Reference,
    plan: &Plan,
) -> Verdict {
    let mut verdict = Verdict {
        finding: None,
        fired: true,
        repaired: false,
        notes: Vec::new(),
    };
    let trace = match play(setup, reference.trace.seed, plan, &reference.hints) {
        Ok(trace) => trace,
        Err(error) => {
            verdict.notes.push(format!("{plan}: {error}"));
            return verdict;
        }
    };
    verdict.fired = trace.fired
        || matches!(
            plan,
            Plan::Late | Plan::Direct | Plan::Lag(_) | Plan::Batched(_) | Plan::LateCollector
        );
    let problems = setup.wanted(judge(&reference.trace, &reference.varying, &trace));
    if problems.is_empty() {
        let (repaired, note) = repair(reference, &trace);
        verdict.repaired = repaired;
        verdict.notes.extend(note);
        verdict.notes.extend(in_vain(&trace));
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

fn collect(verdicts: Vec<Verdict>, report: &mut Report) {
    for verdict in verdicts {
        report.played(1);
        report.repairs += usize::from(verdict.repaired);
        report.inapplicable += usize::from(!verdict.fired);
        report.notes.extend(verdict.notes);
        if let Some(finding) = verdict.finding {
            report.found(finding);
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
    report.played(1);
    report.replayed = Some(Timeline(&trace.entries).to_string());
    let problems = if *plan == Plan::Nothing {
        judge_reference(&trace)
    } else {
        judge(&reference.trace, &reference.varying, &trace)
    };
    let problems = setup.wanted(problems);
    if !problems.is_empty() {
        report.found(Finding::new(Some(&reference.trace), &trace, problems));
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

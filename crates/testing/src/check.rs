//! Runs the reference and all plans, and judges them.

use crate::{
    generate::Plans,
    log::{Entry, Timeline},
    oracle::{judge, judge_reference},
    plan::Plan,
    reference::Reference,
    report::{Finding, Report, test_name},
    save::{progress, save},
    series::groups,
    setup::Setup,
    verdict::{Judged, Verdict, judge_alone, judge_group},
    world::play,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// How many plans are tried with each of many seeds.
const PLANS_OF_SEED: usize = 4;

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
                for plan in &plans {
                    collect(judge_alone(setup, &reference, plan), &mut report);
                    report.plays += 1;
                }
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
    let enough = AtomicBool::new(false);
    let groups = groups(&plans.kept, &reference.trace);
    let judged = each(setup, &groups, |group| {
        if enough.load(Ordering::Relaxed) {
            return Judged::default();
        }
        judge_group(setup, reference, &plans.kept, group, |verdict| {
            let found = usize::from(verdict.finding.is_some());
            let detector = verdict.finding.as_ref().map(Finding::detector);
            if detector.is_some() && detector == setup.until.as_deref() {
                enough.store(true, Ordering::Relaxed);
            }
            let faults = faults.fetch_add(found, Ordering::Relaxed) + found;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(folder) = &setup.save {
                progress(&test, folder, done, all, faults);
            }
        })
    });
    let mut verdicts = Vec::new();
    for Judged {
        verdicts: some,
        plays,
    } in judged
    {
        verdicts.extend(some);
        report.plays += plays;
    }
    // The simplest first, whoever was ready first.
    verdicts.sort_by_key(|(index, _)| *index);
    for (_, verdict) in verdicts {
        collect(verdict, report);
    }
}

fn collect(verdict: Verdict, report: &mut Report) {
    report.run += 1;
    report.repairs += usize::from(verdict.repaired);
    report.inapplicable += usize::from(!verdict.fired);
    report.notes.extend(verdict.notes);
    if let Some(finding) = verdict.finding {
        report.found(finding);
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
    report.played();
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

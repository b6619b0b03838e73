//! Bugs of real operators, each as a small reconciler that the checker must catch, and its correct twin on
//! which it must stay silent. The numbers are those of the literature that they were collected from.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "a value written at the call is read most easily"
)]

mod crashes;
mod fields;
mod kit;
mod loops;
mod mutations;
mod unseen;

use homeostat_testing::{Plan, log::Timeline};
use kit::{Case, Side};
use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// What the checker said of one case.
struct Verdict {
    is_caught: bool,
    is_false_alarm: bool,
    text: String,
}

fn cases() -> Vec<Case> {
    let all = [crashes::CASES, unseen::CASES, loops::CASES, fields::CASES];
    all.concat()
}

fn judge(case: Case) -> Verdict {
    // Any plan can make it panic; deletions do.
    let only = if case.detector == "PANIC" {
        "DELETE"
    } else {
        case.detector
    };
    let faulty = case.scenario(Side::Faulty).only(only).check();
    let detectors = faulty
        .findings()
        .iter()
        .map(homeostat_testing::Finding::detector);
    let detectors: BTreeSet<&str> = detectors.collect();
    let is_caught = detectors.contains(case.detector);
    let twin = case.scenario(Side::Twin).check();
    let mut lines = vec![format!(
        "{:<55} {:<15} {detectors:?} in {} plans; twin: {} plans",
        case.name,
        case.detector,
        faulty.plans(),
        twin.plans(),
    )];
    if !is_caught {
        lines.push(format!("NOT CAUGHT by {}:\n{faulty}", case.detector));
    }
    if !twin.is_sound() {
        lines.push(format!("FALSE ALARM:\n{twin}"));
    }
    // With `EVIDENCE=1`, what finds it: the table of mutations.rs is made from that.
    if std::env::var("EVIDENCE").is_ok() {
        for (detector, kind, faults) in faulty.evidence() {
            lines.push(format!(
                "EVIDENCE\t{}\t{detector}\t{kind}\t{faults:?}",
                case.name
            ));
        }
    }
    let text = lines.join("\n");
    Verdict {
        is_caught,
        is_false_alarm: !twin.is_sound(),
        text,
    }
}

#[test]
fn each_mistake_is_caught_and_no_twin_is_accused() {
    let only = std::env::var("CASE").unwrap_or_default();
    let cases: Vec<Case> = cases()
        .into_iter()
        .filter(|it| it.name.contains(&only))
        .collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = judge(*case);
                    println!("{}", verdict.text);
                    verdicts.lock().unwrap().push(verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap();
    let all = verdicts.len();
    let caught = verdicts.iter().filter(|verdict| verdict.is_caught).count();
    let alarms = verdicts
        .iter()
        .filter(|verdict| verdict.is_false_alarm)
        .count();
    println!("caught {caught} of {all}, false alarms {alarms} of {all}");
    assert_eq!((caught, alarms), (all, 0), "the report above says which");
}

/// Twins with other seeds, and with plans that each seed draws: every fifth with one seed, or all with as many as
/// `CATALOGUE_SEEDS` says.
#[test]
fn no_seed_accuses_a_twin() {
    let asked = std::env::var("CATALOGUE_SEEDS").ok();
    let step = if asked.is_some() { 1 } else { 5 };
    let seeds: u64 = asked.map_or(1, |text| text.parse().unwrap());
    for case in cases().into_iter().step_by(step) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let scenario = case.scenario(Side::Twin).seed(2).seeds(seeds);
        let report = scenario.threads(threads).check();
        assert!(report.is_sound(), "{}:\n{report}", case.name);
    }
}

#[test]
fn equal_seeds_give_equal_logs() {
    let plans = [
        "nothing",
        "crash-after=10004",
        "lag=configmaps",
        "idle",
        "foreign",
        "error=10003",
    ];
    for name in ["C1 ", "C13 ", "S21 ", "U1 ", "F2 "] {
        let case = cases()
            .into_iter()
            .find(|case| case.name.starts_with(name))
            .unwrap();
        for plan in plans {
            let plan: Plan = plan.parse().unwrap();
            let log = |seed| case.scenario(Side::Faulty).log(seed, &plan).unwrap();
            let (first, second, other) = (log(7), log(7), log(8));
            let texts = [&first, &second].map(|log| Timeline(log).to_string());
            assert_eq!(texts[0], texts[1], "{name}: {plan}");
            assert!(
                first == second,
                "{name}: {plan}: the logs differ in what is not printed"
            );
            assert!(
                first != other,
                "{name}: {plan}: the seed makes no difference"
            );
        }
    }
}

#[test]
fn a_replay_shows_the_same_and_the_whole_log() {
    let case = cases()
        .into_iter()
        .find(|case| case.name.starts_with("C4 "))
        .unwrap();
    let report = case.scenario(Side::Faulty).check();
    let finding = report
        .findings()
        .iter()
        .find(|it| it.detector() == "CRASH")
        .unwrap();
    let again = case
        .scenario(Side::Faulty)
        .replay(&finding.replay())
        .check();
    assert_eq!(again.findings()[0].problems(), finding.problems());
    let text = again.to_string();
    assert!(text.contains("create configmaps check/"), "{text}");
    assert!(
        text.contains("watch tells ADDED things.example.com check/a"),
        "{text}"
    );
    assert!(
        report
            .to_string()
            .contains(&format!("HOMEOSTAT_REPLAY='{}'", finding.replay()))
    );

    let json = report.to_json();
    assert_eq!(json["sound"], false);
    assert_eq!(json["findings"][0]["replay"], report.findings()[0].replay());

    let wrong = case.scenario(Side::Twin).replay("7:nonsense").check();
    assert!(!wrong.is_sound());
    assert!(wrong.to_string().contains("nonsense"));
}

#[test]
fn a_budget_bounds_the_plans_and_the_report_says_what_was_left_out() {
    let case = cases()
        .into_iter()
        .find(|case| case.name.starts_with("C4 "))
        .unwrap();
    let all = case.scenario(Side::Twin).check();
    let few = case.scenario(Side::Twin).budget(5).check();
    // Three references, and five plans.
    assert_eq!(few.plans(), 8);
    assert_eq!(all.plans() + all.dropped(), few.plans() + few.dropped());
    assert!(few.to_string().contains("beyond the budget"));
}

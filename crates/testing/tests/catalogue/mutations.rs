//! What each check is good for: without it, the mistake named for it is not found.

use crate::{cases, kit::Side};
use std::collections::BTreeSet;

/// A check by its name, and the case that it finds. If other checks find it as well, these.
struct Mutation {
    check: &'static str,
    case: &'static str,
    also: &'static [&'static str],
}

const fn alone(check: &'static str, case: &'static str) -> Mutation {
    Mutation {
        check,
        case,
        also: &[],
    }
}

const fn with(check: &'static str, case: &'static str, also: &'static [&'static str]) -> Mutation {
    Mutation { check, case, also }
}

const MUTATIONS: &[Mutation] = &[
    alone("idle", "H2 "),
    with("noise", "H27 ", &["idle", "restart", "reversed"]),
    with("restart", "H27 ", &["idle", "noise", "reversed"]),
    with("reversed", "H27 ", &["idle", "noise", "restart"]),
    alone("crash", "C1 "),
    alone("fault", "C16 "),
    alone("fault-applied", "C14 name"),
    alone("delete", "D6 "),
    alone("delete-while-down", "C13 "),
    alone("delete-namespace", "D7 "),
    alone("late", "U12 "),
    alone("late-collector", "G1 "),
    alone("missed", "U1 "),
    with("replaced", "U7 ", &["delete-while-down"]),
    alone("direct", "E6 "),
    with("lag", "S21 ", &["stale"]),
    alone("batched", "U3 "),
    alone("scaled", "F3 "),
    alone("stale", "S1 "),
    alone("lose", "U11 "),
    alone("foreign", "D2 "),
    alone("panic", "E5 "),
    alone("invariant", "I1 "),
    alone("never-rests", "H7 "),
    alone("still-fails", "A3 "),
    alone("unstable", "N1 "),
    alone("vacuous", "V1 "),
    alone("writes-at-rest", "H2 "),
    alone("other-end", "C1 "),
    alone("other-counts", "S1 "),
    alone("removes-foreign", "D2 "),
    alone("leak", "U5 "),
    alone("writes-in-vain", "H27 "),
];

/// Whether a case is found when some checks are left out.
fn is_found(case: &str, without: &[&str]) -> bool {
    let case = cases()
        .into_iter()
        .find(|it| it.name.starts_with(case))
        .unwrap();
    // Any plan can make it panic; deletions do.
    let only = if case.detector == "PANIC" {
        "DELETE"
    } else {
        case.detector
    };
    let mut scenario = case.scenario(Side::Faulty).only(only);
    for check in without {
        scenario = scenario.without(check);
    }
    let report = scenario.check();
    let detectors = report.findings().iter();
    let detectors: BTreeSet<&str> = detectors
        .map(homeostat_testing::Finding::detector)
        .collect();
    detectors.contains(case.detector)
}

#[test]
fn without_a_check_the_mistake_named_for_it_is_not_found() {
    // Not here: `relist`, which finds by chance what `idle` finds too.
    let mut wrong = Vec::new();
    for Mutation { check, case, also } in MUTATIONS {
        if !also.is_empty() && !is_found(case, &[*check]) {
            wrong.push(format!("{check}: {case}: it alone is enough"));
        }
        let all: Vec<&str> = also.iter().chain([check]).copied().collect();
        if is_found(case, &all) {
            wrong.push(format!("{check}: {case}: it is found without {all:?}"));
        }
        if !is_found(case, also) {
            wrong.push(format!("{check}: {case}: it is not found by {check}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

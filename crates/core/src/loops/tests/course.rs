//! How an incident goes on and ends, and what is kept meanwhile.

use super::{World, deployment, site};
use crate::loops::{Cause, Config, Delay, Detector, Form, Object, Run, Write};
use crate::time::Time;
use serde_json::json;
use std::time::Duration;

/// A run that writes a new time into the status.
fn stamp(world: &mut World, causes: &[Cause]) -> Option<Delay> {
    let state = |at: Time| json!({ "status": { "at": format!("{at:?}") } });
    let (before, after) = (
        state(world.now),
        state(world.now + Duration::from_millis(25)),
    );
    world.write(
        site(),
        Form::Merge,
        after.clone(),
        Some(&before),
        Some(&after),
    );
    world.run(causes).delay
}

/// A run that puts back the number of replicas.
fn put_back(world: &mut World, causes: &[Cause]) -> Option<Delay> {
    let [ours, theirs] = [1, 2].map(|n| json!({ "spec": { "replicas": n } }));
    world.write(
        deployment(),
        Form::Merge,
        ours.clone(),
        Some(&theirs),
        Some(&ours),
    );
    world.run(causes).delay
}

fn looping() -> World {
    let mut world = World::new(Config::default());
    while world.reports.is_empty() {
        stamp(&mut world, &[Cause::Own]);
    }
    world
}

fn seconds(delay: Option<Delay>) -> Option<u64> {
    delay.map(|delay| delay.time.as_secs())
}

#[test]
fn delays_double_up_to_a_bound() {
    let mut world = World::new(Config::default());
    let mut delays = Vec::new();
    for _ in 0..32 {
        let delay = stamp(&mut world, &[Cause::Own]);
        delays.extend(seconds(delay));
        world.rest(delay.map_or(Duration::ZERO, |delay| delay.time));
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(world.reports.len(), 1, "once per incident");
    assert!(
        world
            .delays
            .iter()
            .filter_map(|answer| answer.delay)
            .all(|delay| !delay.firm)
    );
}

#[test]
fn somebody_elses_change_ends_it() {
    let mut world = looping();
    assert!(world.detector.incident(world.now, &"blog").is_some());
    assert_eq!(stamp(&mut world, &[Cause::Own, Cause::Desired]), None);
    assert!(world.detector.incident(world.now, &"blog").is_none());
    // It loops again, and that is another incident.
    for _ in 0..40 {
        stamp(&mut world, &[Cause::Own]);
    }
    assert_eq!(world.reports.len(), 2);
}

#[test]
fn what_goes_on_for_a_moment_only_does_not_end_it() {
    let mut world = looping();
    // A run without a write, one that failed, and one that an event of a child caused.
    assert_eq!(world.run(&[Cause::Own]).delay, None);
    assert_eq!(world.end(&[Cause::Own], true).delay, None);
    assert_eq!(seconds(stamp(&mut world, &[Cause::Foreign(None)])), Some(2));
    assert_eq!(seconds(stamp(&mut world, &[Cause::Timer])), Some(4));
    assert_eq!(world.detector.incidents(world.now).count(), 1);
}

#[test]
fn rest_ends_it() {
    let mut world = looping();
    // The key is delayed by a second, and then a minute may pass.
    world.rest(Duration::from_millis(60_900));
    assert_eq!(world.detector.incidents(world.now).count(), 1);
    world.rest(Duration::from_millis(200));
    assert_eq!(world.detector.incidents(world.now).count(), 0);
    assert_eq!(stamp(&mut world, &[Cause::Own]), None);
    assert!(!world.detector.observes(&"blog"));
}

#[test]
fn changes_of_the_desired_state_are_what_a_fight_is_made_of() {
    let mut world = World::new(Config::default());
    let mut delays = Vec::new();
    for _ in 0..20 {
        delays.extend(put_back(&mut world, &[Cause::Foreign(Some(deployment()))]));
        world.run(&[Cause::Own]);
    }
    delays.extend(put_back(&mut world, &[Cause::Desired]));
    assert!(delays.iter().all(|delay| delay.firm));
    let seconds: Vec<u64> = delays.iter().map(|delay| delay.time.as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
}

/// A slow fight, as with an autoscaler that looks every 15 s.
#[test]
fn a_slow_fight() {
    let mut world = World::new(Config::default());
    for _ in 0..14 {
        put_back(&mut world, &[Cause::Foreign(Some(deployment()))]);
        world.rest(Duration::from_secs(15));
    }
    assert_eq!(world.reports.len(), 1);
}

/// Who is not at fault is looked at less and less often.
#[test]
fn looking_costs_little() {
    let mut world = World::new(Config::default());
    let mut observed = 0;
    for n in 0..10_000_u64 {
        observed += u32::from(world.detector.observes(&"blog"));
        let state = |n: u64| json!({ "status": { "seen": n } });
        world.write(
            site(),
            Form::Merge,
            state(n + 1),
            Some(&state(n)),
            Some(&state(n + 1)),
        );
        world.run(&[Cause::Desired]);
    }
    assert_eq!(world.report(), "");
    assert_eq!(
        observed, 40,
        "four at 10 runs, and whenever they have doubled"
    );
}

fn run(at: Time, writes: Vec<Write>) -> Run {
    Run {
        object: site(),
        started: at,
        causes: vec![Cause::Own],
        failed: false,
        after: None,
        writes,
    }
}

fn blind(name: &str) -> Write {
    Write {
        object: Object::new("Site", None, name),
        manager: None,
        changed: None,
        sight: None,
    }
}

#[test]
fn a_key_that_is_gone_is_forgotten() {
    let mut world = looping();
    world.detector.forget(&"blog");
    assert_eq!(world.detector.incidents(world.now).count(), 0);
    assert!(!world.detector.observes(&"blog"));
    assert_eq!(stamp(&mut world, &[Cause::Own]), None);
}

#[test]
fn few_are_observed_at_once_and_the_others_come_later() {
    let config = Config {
        observed: 2,
        ..Config::default()
    };
    let mut detector = Detector::new(config);
    let mut now = Time::ORIGIN;
    let mut go = |detector: &mut Detector<u32>, key: u32, times: u32| {
        for _ in 0..times {
            now += Duration::from_millis(1);
            detector.finished(now, &key, &run(now, vec![blind("a")]));
        }
        now
    };
    for key in 0..4 {
        go(&mut detector, key, 20);
    }
    let observed = |detector: &Detector<u32>| {
        (0..4)
            .filter(|key| detector.observes(key))
            .collect::<Vec<_>>()
    };
    assert_eq!(observed(&detector), [0, 1]);
    // One is done with, so there is a place.
    go(&mut detector, 0, 6);
    go(&mut detector, 3, 1);
    assert_eq!(observed(&detector), [1, 3]);
    // These rest, so their places are free.
    now += Duration::from_secs(61);
    for _ in 0..20 {
        now += Duration::from_millis(1);
        detector.finished(now, &2, &run(now, vec![blind("a")]));
    }
    assert_eq!(observed(&detector), [2]);
}

#[test]
fn the_keys_that_are_counted_are_bounded() {
    let config = Config {
        keys: 10,
        ..Config::default()
    };
    let mut detector = Detector::new(config);
    for key in 0..5000 {
        let now = Time::ORIGIN + Duration::from_secs(key);
        detector.finished(now, &key, &run(now, vec![blind("a")]));
        assert!(detector.counted() <= 10);
    }
    // Those that came to rest make room.
    let now = Time::ORIGIN + Duration::from_secs(6000);
    detector.finished(now, &7, &run(now, vec![blind("a")]));
    assert_eq!(detector.counted(), 1);
}

#[test]
fn a_run_that_writes_a_thousand_objects() {
    let mut world = World::new(Config::default());
    for n in 0..40_u64 {
        for child in 0..1000 {
            let child = Object::new("ConfigMap", Some("default"), &format!("{child}"));
            let state = |n: u64| json!({ "data": { "at": format!("2026-01-01T00:00:{n:02}Z") } });
            world.write(
                child,
                Form::Merge,
                state(n + 1),
                Some(&state(n)),
                Some(&state(n + 1)),
            );
        }
        world.run(&[Cause::Own]);
    }
    let [report] = &*world.reports else {
        panic!("{}", world.report());
    };
    assert!(report.findings.len() <= 8);
}

#[test]
fn settings_of_zero_do_no_harm() {
    let config = Config {
        runs: 0,
        again: 0,
        unchanged: 0,
        progress: 0,
        sights: 0,
        pause: Duration::ZERO,
        observed: 0,
        keys: 0,
        ..Config::default()
    };
    for keys in [0, 1] {
        for observed in [0, 1] {
            let mut world = World::new(Config {
                observed,
                keys,
                ..config.clone()
            });
            for _ in 0..10 {
                stamp(&mut world, &[Cause::Own]);
            }
            assert!(world.reports.len() <= 10);
        }
    }
}

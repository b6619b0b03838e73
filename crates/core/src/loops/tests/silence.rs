//! What must not be reported, however often it happens. Each case is a well-behaved reconciler.

use super::{World, deployment, site};
use crate::loops::{Cause, Config, Form, Object};
use serde_json::{Value, json};
use std::time::Duration;

/// How often each thing happens.
const MANY: u64 = 10_000;

/// Runs `step` for each number, and expects no report and no delay.
#[track_caller]
fn check(step: impl Fn(&mut World, u64)) {
    let mut world = World::new(Config::default());
    for n in 1..=MANY {
        step(&mut world, n);
    }
    assert_eq!(world.report(), "");
    assert!(world.delays.iter().all(|answer| answer.delay.is_none()));
}

fn pod() -> Cause {
    Cause::Foreign(Some(Object::new("Pod", Some("default"), "blog-0")))
}

/// Each run writes `n` into the status.
fn write_status(world: &mut World, n: u64) {
    let status =
        |n: u64| json!({ "metadata": { "generation": n }, "status": { "seen": n.to_string() } });
    world.write(
        site(),
        Form::Merge,
        status(n),
        Some(&status(n - 1)),
        Some(&status(n)),
    );
}

#[test]
fn changes_of_the_desired_state_that_the_status_follows() {
    check(|world, n| {
        write_status(world, n);
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
    });
    // They come so fast that the own event always meets the next.
    check(|world, n| {
        write_status(world, n);
        world.run(&[Cause::Own, Cause::Desired]);
    });
}

#[test]
fn changes_of_other_objects_that_the_status_follows() {
    check(|world, n| {
        write_status(world, n);
        world.run(&[pod()]);
        world.run(&[Cause::Own]);
    });
    check(|world, n| {
        write_status(world, n);
        world.run(&[Cause::Own, pod()]);
    });
}

#[test]
fn timers() {
    check(|world, n| {
        write_status(world, n);
        world.run(&[Cause::Timer]);
        world.run(&[Cause::Own]);
    });
    check(|world, n| {
        write_status(world, n);
        world.run(&[Cause::Own, Cause::Timer]);
    });
}

/// The error, with its time, is in the status.
#[test]
fn failures_and_what_follows_them() {
    check(|world, n| {
        write_status(world, n);
        world.end(&[Cause::Retry], true);
    });
    // Every second attempt gets through.
    check(|world, n| {
        write_status(world, n);
        let cause = if n.is_multiple_of(2) {
            Cause::Retry
        } else {
            pod()
        };
        world.end(&[cause], !n.is_multiple_of(2));
    });
}

/// A delay that can be called one is what a failure and a poll are excused for.
#[test]
fn what_waits_before_it_tries_again() {
    let longer = Config::default().instant + Duration::from_millis(1);
    for (cause, failed) in [(Cause::Retry, true), (Cause::Timer, false)] {
        check(|world, n| {
            write_status(world, n);
            world.end_until(std::slice::from_ref(&cause), failed, Some(longer));
        });
    }
}

/// Fifteen writes, each in a run of its own that the one before has caused.
#[test]
fn steps_that_end() {
    check(|world, n| {
        write_status(world, n);
        match n % 15 {
            0 => {
                world.run(&[Cause::Own]);
                world.run(&[Cause::Own]);
            }
            1 => {
                world.run(&[Cause::Desired]);
            }
            _ => {
                world.run(&[Cause::Own]);
            }
        }
    });
}

/// A hundred replicas are rolled out one by one: the child's status answers each step.
#[test]
fn a_long_roll_out() {
    check(|world, n| {
        let state = |n: u64| json!({ "spec": { "partition": 100 - n % 100 } });
        if !n.is_multiple_of(100) {
            world.write(
                deployment(),
                Form::Merge,
                state(n),
                Some(&state(n - 1)),
                Some(&state(n)),
            );
        }
        world.run(&[Cause::Own, Cause::Foreign(Some(deployment()))]);
    });
}

/// A kubelet or another controller writes its own part of the status, and the reconciler only looks.
#[test]
fn two_writers_of_different_fields() {
    check(|world, n| {
        let state = |ours: u64, theirs: u64| json!({ "status": { "ours": ours.to_string(), "theirs": theirs.to_string() } });
        world.write(
            site(),
            Form::Merge,
            state(n, n),
            Some(&state(n - 1, n)),
            Some(&state(n, n)),
        );
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
        world.run(&[Cause::Foreign(Some(site()))]);
    });
}

/// The reconciler says `Working` for each new generation, and somebody else says `Done`.
#[test]
fn a_phase_that_two_take_turns_with() {
    check(|world, n| {
        let state =
            |phase: &str| json!({ "metadata": { "generation": n }, "status": { "phase": phase } });
        let sent = json!({ "status": { "phase": "Working" } });
        world.write(
            site(),
            Form::Merge,
            sent,
            Some(&state("Done")),
            Some(&state("Working")),
        );
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
        world.run(&[Cause::Foreign(Some(site()))]);
    });
}

/// Somebody asks for something in an annotation, and it is removed when it is done.
#[test]
fn requests_that_are_taken_away() {
    check(|world, n| {
        let asked = json!({ "metadata": { "annotations": { "backup-at": n.to_string() } } });
        let sent = json!({ "metadata": { "annotations": { "backup-at": null } } });
        world.write(
            site(),
            Form::Merge,
            sent,
            Some(&asked),
            Some(&json!({ "metadata": {} })),
        );
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
    });
}

/// The same request over and over, each time with something to show for it: a restarted Deployment, a time in the
/// status, a deleted pod, a new Job.
#[test]
fn requests_that_say_the_same() {
    let take_away = |world: &mut World| {
        let asked = json!({ "metadata": { "generation": 1, "annotations": { "do": "it" } } });
        world.write(
            site(),
            Form::Merge,
            json!({ "metadata": { "annotations": { "do": null } } }),
            Some(&asked),
            Some(&json!({ "metadata": { "generation": 1 } })),
        );
    };
    let run = |world: &mut World| {
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
    };
    check(|world, n| {
        let state = |n: u64| json!({ "spec": { "annotations": { "restarted": n } } });
        world.write(
            deployment(),
            Form::Merge,
            state(n),
            Some(&state(n - 1)),
            Some(&state(n)),
        );
        take_away(world);
        run(world);
    });
    check(|world, n| {
        take_away(world);
        let state = |n: u64| json!({ "metadata": { "generation": 1 }, "status": { "last": n.to_string() } });
        let (before, after) = (state(n - 1), state(n));
        world.write(
            site(),
            Form::Merge,
            after.clone(),
            Some(&before),
            Some(&after),
        );
        run(world);
    });
    check(|world, n| {
        // The pod is made anew under its name, or under another one.
        for name in ["blog-0".to_owned(), format!("blog-{n:05}")] {
            let pod = Object::new("Pod", Some("default"), &name);
            world.write(pod, Form::Other, Value::Null, Some(&json!({})), None);
        }
        take_away(world);
        run(world);
    });
    check(|world, n| {
        let job = Object::new("Job", Some("default"), &format!("blog-{n}"));
        world.write(job, Form::Whole, json!({}), None, Some(&json!({})));
        take_away(world);
        run(world);
    });
}

/// The child is applied in each run, without looking at it. That is wasteful, and no loop.
#[test]
fn the_same_is_applied_again() {
    let apply = |world: &mut World| {
        let child = json!({ "spec": { "replicas": 1 } });
        world.write(
            deployment(),
            Form::Merge,
            child.clone(),
            Some(&child),
            Some(&child),
        );
    };
    check(|world, _| {
        apply(world);
        world.run(&[Cause::Desired]);
        apply(world);
        world.run(&[Cause::Own]);
    });
    // Forty events of a roll-out, and then it rests.
    check(|world, n| {
        apply(world);
        world.run(&[pod()]);
        if n.is_multiple_of(40) {
            world.rest(Duration::from_secs(90));
        }
    });
}

/// Somebody now and then changes the child by hand, and it is put back.
#[test]
fn corrections_now_and_then() {
    check(|world, _| {
        let [ours, theirs] = [1, 2].map(|n| json!({ "spec": { "replicas": n } }));
        world.write(
            deployment(),
            Form::Merge,
            ours.clone(),
            Some(&theirs),
            Some(&ours),
        );
        world.run(&[Cause::Foreign(Some(deployment()))]);
        world.run(&[Cause::Own]);
        world.rest(Duration::from_secs(90));
    });
}

//! The rules one by one.

use super::{check, transcript};
use crate::queue::{Action, Class, Config, Next, Outcome, Priority, Queue, Trigger};
use crate::time::Time;
use expect_test::expect;
use std::time::Duration;

// === Order and merging ===

/// Due now comes at once, and in order; an idle key leaves nothing.
#[test]
fn first_in_first_out() {
    check(
        "
        0s next
        0s add a created
        0s add b created
        0s add c created
        0s next
        0s next
        0s next
        0s next
        1s done b success await
        1s show b
        1s counts
        ",
        expect![[r#"
            0s next: idle
            0s next: run a ["created"] ready since 0ns
            0s next: run b ["created"] ready since 0ns
            0s next: run c ["created"] ready since 0ns
            0s next: idle
            1s show b: idle
            1s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 2 }
        "#]],
    );
}

#[test]
fn waiting_triggers_merge() {
    check(
        "
        concurrency 1
        0s add z first
        0s next
        1s add a one low
        2s add b one
        3s add a two
        3s add a one
        3s add a three low
        4s done z success await
        4s next
        5s done b success await
        5s next
        ",
        expect![[r#"
            0s next: run z ["first"] ready since 0ns
            4s next: run b ["one"] ready since 2s
            5s next: run a ["one", "two", "three"] ready since 1s
        "#]],
    );
}

/// T52: no two runs of a key at once, and one run for all triggers during a run.
#[test]
fn triggers_during_a_run_cause_one_run_after_it() {
    check(
        "
        0s add a one
        0s next
        1s add a two
        1s next
        2s add a three
        2s show a
        3s done a success await
        3s next
        3s next
        4s done a success await
        4s next
        4s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: idle
            2s show a: Running, next run None, failures 0, ["two", "three"]
            3s next: run a ["two", "three"] ready since 3s
            3s next: idle
            4s next: idle
            4s show a: idle
        "#]],
    );
}

#[test]
fn causes_are_bounded() {
    let many = (0..20)
        .map(|number| format!("0s add a cause{number}\n"))
        .collect::<Vec<_>>()
        .concat();
    check(
        &format!("{many} 0s next"),
        expect![[r#"
        0s next: run a ["cause0", "cause1", "cause2", "cause3", "cause4", "cause5", "cause6", "cause7", "cause8", "cause9", "cause10", "cause11", "cause12", "cause13", "cause14", "cause15"] ready since 0ns and 4 more causes
    "#]],
    );
}

// === Priorities ===

/// T54, A4: under a steady stream of normal keys, low ones run when they have aged.
#[test]
fn low_keys_age() {
    check(
        "
        concurrency 1
        ageing 3s
        0s add x warm-up
        0s next
        0s add a list low
        0s add b list low
        1s add c change
        2s add d change
        2s done x success await
        2s next
        3s add e change
        3s done c success await
        3s next
        3s done d success await
        3s next
        3s add f change
        4s done e success await
        4s next
        4s done f success await
        4s next
        4s add g change
        5s done a success await
        5s next
        ",
        expect![[r#"
            0s next: run x ["warm-up"] ready since 0ns
            2s next: run c ["change"] ready since 1s
            3s next: run d ["change"] ready since 2s
            3s next: run e ["change"] ready since 3s
            4s next: run f ["change"] ready since 3s
            4s next: run a ["list"] ready since 0ns, Low
            5s next: run b ["list"] ready since 0ns, Low
        "#]],
    );
}

#[test]
fn a_change_raises_a_low_key_to_the_end_of_the_normal_ones() {
    check(
        "
        concurrency 1
        0s add x warm-up
        0s next
        0s add a list low
        0s add b list low
        0s add c change
        1s add b change
        1s add d change
        2s done x success await
        2s next
        2s done c success await
        2s next
        2s done b success await
        2s next
        2s done d success await
        2s next
        ",
        expect![[r#"
            0s next: run x ["warm-up"] ready since 0ns
            2s next: run c ["change"] ready since 0ns
            2s next: run b ["list", "change"] ready since 0ns
            2s next: run d ["change"] ready since 1s
            2s next: run a ["list"] ready since 0ns, Low
        "#]],
    );
}

/// One that has aged keeps its place, which is the better one.
#[test]
fn a_change_does_not_set_an_aged_key_back() {
    check(
        "
        concurrency 1
        ageing 1s
        0s add x warm-up
        0s next
        0s add a list low
        2s add b change
        2s add a change
        3s done x success await
        3s next
        ",
        expect![[r#"
            0s next: run x ["warm-up"] ready since 0ns
            3s next: run a ["list", "change"] ready since 0ns
        "#]],
    );
}

/// A5: the timers of a low run are low; a change makes the key normal again.
#[test]
fn retries_keep_the_priority() {
    check(
        "
        0s add a list low
        0s next
        0s done a failure backoff
        1s next
        1s done a success requeue 5s
        6s next
        6s done a success requeue 5s
        7s add a change
        7s next
        7s done a success requeue 5s
        8s add a resync low
        8s next
        ",
        expect![[r#"
            0s next: run a ["list"] ready since 0ns, Low
            1s next: run a [] ready since 1s, Retry, Low, failures 1
            6s next: run a [] ready since 6s, Requeue, Low
            7s next: run a ["change"] ready since 7s
            8s next: run a ["resync"] ready since 8s, Low
        "#]],
    );
}

// === Timers ===

#[test]
fn a_requeue_runs_at_its_time_or_earlier() {
    check(
        "
        0s add a one
        0s next
        1s done a success requeue 10s
        1s next
        1s show a
        5s add a two
        5s next
        6s done a success requeue 10s
        16s next
        16s done a success requeue 0s
        16s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: wait until 11s
            1s show a: Waiting, next run Some(11s), failures 0, []
            5s next: run a ["two"] ready since 5s
            16s next: run a [] ready since 16s, Requeue
            16s next: run a [] ready since 16s, Requeue
        "#]],
    );
}

/// The outcome of a run replaces the timer that an earlier one asked for.
#[test]
fn an_outcome_replaces_all_timers() {
    check(
        "
        0s add a one
        0s next
        0s done a success requeue 10s
        1s add a two
        1s next
        2s done a success await
        2s next
        2s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: run a ["two"] ready since 1s
            2s next: idle
            2s show a: idle
        "#]],
    );
}

/// T58: no panic, and no timer that a driver would have to wait for.
#[test]
fn a_requeue_after_forever_is_no_timer() {
    check(
        "
        1s add a one
        1s next
        1s done a success requeue forever
        1s show a
        1s next
        2s add a two
        2s next
        2s done a failure backoff forever
        2s show a
        2s counts
        2s next
        3s add a child
        3s next
        4s add a spec desired
        4s next
        ",
        expect![[r#"
            1s next: run a ["one"] ready since 1s
            1s show a: idle
            1s next: idle
            2s next: run a ["two"] ready since 2s
            2s show a: Parked, next run None, failures 1, []
            2s counts: Counts { waiting: 0, backing_off: 0, parked: 1, ready: 0, running: 0 }
            2s next: idle
            3s next: idle
            4s next: run a ["child", "spec"] ready since 4s, failures 1
        "#]],
    );
}

/// A17: what becomes due queues up in the order of time, together with what comes in.
#[test]
fn timers_and_events_share_one_order() {
    check(
        "
        concurrency 1
        0s add a one
        0s next
        0s done a success requeue 5s
        0s add b one
        0s next
        0s done b success requeue 4s
        0s add x warm-up
        0s next
        3s add c event
        6s add d event
        7s done x success await
        7s next
        7s done c success await
        7s next
        7s done b success await
        7s next
        7s done a success await
        7s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            0s next: run x ["warm-up"] ready since 0ns
            7s next: run c ["event"] ready since 3s
            7s next: run b [] ready since 4s, Requeue
            7s next: run a [] ready since 5s, Requeue
            7s next: run d ["event"] ready since 6s
        "#]],
    );
}

/// A run at a time that somebody asks for: no debounce, the earliest time counts, and an earlier
/// run serves it, too. After forever is never.
#[test]
fn schedules_are_requeues_from_outside() {
    check(
        "
        debounce 1s
        0s schedule a 5s
        0s schedule a 9s
        0s schedule a 3s
        0s schedule b forever
        0s show a
        0s show b
        3s next
        3s schedule a 6s
        3s add a one low
        4s schedule a 2s
        5s done a success requeue 10s
        5s next
        5s done a success requeue 10s
        6s show a
        6s schedule a 1s
        7s next
        7s schedule a 1s
        7s done a failure backoff 3s
        8s schedule a 0s
        8s show a
        ",
        expect![[r#"
            0s show a: Waiting, next run Some(3s), failures 0, []
            0s show b: idle
            3s next: run a [] ready since 3s, Requeue
            5s next: run a ["one"] ready since 5s, Low
            6s show a: Waiting, next run Some(15s), failures 0, []
            7s next: run a [] ready since 7s, Requeue
            8s show a: BackingOff, next run Some(10s), failures 1, []
        "#]],
    );
}

// === Backoff ===

/// T01, A14: the delays of a key grow up to the bound, and go on, while others are not touched. A
/// success starts over.
#[test]
fn failures_in_a_row_delay_longer_and_longer() {
    let mut steps = vec![String::from("0s add a one\n")];
    let mut at = 0;
    for delay in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        steps.push(format!(
            "{at}s next\n {at}s done a failure backoff\n {at}s next\n"
        ));
        at += delay;
    }
    steps.push(format!(
        "
        {at}s next
        {at}s add b other
        {at}s next
        {at}s done b failure backoff
        {at}s show b
        {at}s done a success await
        {at}s add a again
        {at}s next
        {at}s done a failure backoff
        {at}s show a
        "
    ));
    check(
        &steps.concat(),
        expect![[r#"
        0s next: run a ["one"] ready since 0ns
        0s next: wait until 1s
        1s next: run a [] ready since 1s, Retry, failures 1
        1s next: wait until 3s
        3s next: run a [] ready since 3s, Retry, failures 2
        3s next: wait until 7s
        7s next: run a [] ready since 7s, Retry, failures 3
        7s next: wait until 15s
        15s next: run a [] ready since 15s, Retry, failures 4
        15s next: wait until 31s
        31s next: run a [] ready since 31s, Retry, failures 5
        31s next: wait until 63s
        63s next: run a [] ready since 63s, Retry, failures 6
        63s next: wait until 127s
        127s next: run a [] ready since 127s, Retry, failures 7
        127s next: wait until 255s
        255s next: run a [] ready since 255s, Retry, failures 8
        255s next: wait until 511s
        511s next: run a [] ready since 511s, Retry, failures 9
        511s next: wait until 811s
        811s next: run a [] ready since 811s, Retry, failures 10
        811s next: wait until 1111s
        1111s next: run a [] ready since 1111s, Retry, failures 11
        1111s next: run b ["other"] ready since 1111s
        1111s show b: BackingOff, next run Some(1112s), failures 1, []
        1111s next: run a ["again"] ready since 1111s
        1111s show a: BackingOff, next run Some(1112s), failures 1, []
    "#]],
    );
}

/// T01, A3, A15, A16: a success and a permanent error end a row of failures, and nothing else does.
#[test]
fn what_ends_a_row_of_failures() {
    let outcomes = [
        "success requeue 1s",
        "success await",
        "success backoff",
        "failure requeue 1s",
        "failure await",
        "failure backoff",
    ];
    let said = outcomes.map(|outcome| {
        let said = transcript(&format!(
            "
            0s add a one
            0s next
            0s done a failure backoff
            1s next
            1s done a {outcome}
            1s show a
            5s add a spec desired
            5s next
            "
        ));
        format!("{outcome}\n{said}")
    });
    expect![[r#"
        success requeue 1s
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: Waiting, next run Some(2s), failures 0, []
        5s next: run a ["spec"] ready since 2s, Requeue
        success await
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: idle
        5s next: run a ["spec"] ready since 5s
        success backoff
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: BackingOff, next run Some(3s), failures 2, []
        5s next: run a ["spec"] ready since 3s, Retry, failures 2
        failure requeue 1s
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: BackingOff, next run Some(2s), failures 2, []
        5s next: run a ["spec"] ready since 2s, Retry, failures 2
        failure await
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: Parked, next run None, failures 0, []
        5s next: run a ["spec"] ready since 5s
        failure backoff
        0s next: run a ["one"] ready since 0ns
        1s next: run a [] ready since 1s, Retry, failures 1
        1s show a: BackingOff, next run Some(3s), failures 2, []
        5s next: run a ["spec"] ready since 3s, Retry, failures 2
    "#]]
    .assert_eq(&said.concat());
}

/// T09, A19: jitter takes effect. A floor that a server asked for is kept without it.
#[test]
fn jitter_and_a_floor() {
    check(
        "
        jitter 0.2
        0s add a one
        0s next
        0s done a failure backoff random 0.5
        0s show a
        2s next
        2s done a failure backoff 30s random 0.5
        2s show a
        32s next
        32s done a failure backoff 1s random 0.5
        32s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s show a: BackingOff, next run Some(1.1s), failures 1, []
            2s next: run a [] ready since 1.1s, Retry, failures 1
            2s show a: BackingOff, next run Some(32s), failures 2, []
            32s next: run a [] ready since 32s, Retry, failures 2
            32s show a: BackingOff, next run Some(36.4s), failures 3, []
        "#]],
    );
}

/// T11, A1, A2: events during a hold neither end it nor count as failures, and other keys do not
/// notice; the run after it knows their causes.
#[test]
fn other_triggers_wait_for_the_end_of_a_hold() {
    let flood = (0..20)
        .map(|n| format!("{}ms add a status\n", 1000 + n))
        .collect::<Vec<_>>()
        .concat();
    check(
        &format!(
            "
            0s add a one
            0s next
            0s done a failure backoff 10s
            {flood}
            2s add a child
            2s next
            2s show a
            3s add b one
            3s next
            10s next
            10s done a failure backoff
            10s show a
            "
        ),
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            2s next: wait until 10s
            2s show a: BackingOff, next run Some(10s), failures 1, ["status", "child"]
            3s next: run b ["one"] ready since 3s
            10s next: run a ["status", "child"] ready since 10s, Retry, failures 1
            10s show a: BackingOff, next run Some(12s), failures 2, []
        "#]],
    );
}

/// T11, A9: a change of the desired state ends the hold, and a failure then goes on in the row.
#[test]
fn a_desired_trigger_ends_a_hold() {
    check(
        "
        0s add a one
        0s next
        0s done a failure backoff
        1s next
        1s done a failure backoff 60s
        2s add a child
        3s add a spec desired
        3s next
        3s done a failure backoff
        3s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: run a [] ready since 1s, Retry, failures 1
            3s next: run a ["child", "spec"] ready since 3s, failures 2
            3s show a: BackingOff, next run Some(7s), failures 3, []
        "#]],
    );
}

/// The same for triggers that came during the run.
#[test]
fn triggers_during_a_run_that_fails() {
    check(
        "
        0s add a one
        0s next
        1s add a child
        2s done a failure backoff
        2s next
        3s next
        4s add a child
        4s add a spec desired
        5s done a failure backoff
        5s next
        5s done a failure requeue 7s
        6s add a child
        6s next
        12s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            2s next: wait until 3s
            3s next: run a ["child"] ready since 3s, Retry, failures 1
            5s next: run a ["child", "spec"] ready since 5s, failures 2
            6s next: wait until 12s
            12s next: run a ["child"] ready since 12s, Retry, failures 3
        "#]],
    );
}

/// G69: what went wrong by chance is held for a moment, which neither counts in a row of failures
/// nor ends it; as under any hold, only a change of the desired state runs the key early.
#[test]
fn a_moment_is_no_failure() {
    check(
        "
        0s add a created
        0s next
        0s done a failure soon random 1.0
        0s show a
        0.1s add a child
        0.1s next
        0.5s next
        0.5s done a failure soon
        0.5s add a spec desired
        0.5s next
        1s done a failure backoff
        2s next
        2s done a failure soon
        2s counts
        2.2s next
        3s done a failure backoff
        3s show a
        5s next
        5s done a success soon
        5.2s next
        6s done a success await
        6s show a
        ",
        expect![[r#"
            0s next: run a ["created"] ready since 0ns
            0s show a: BackingOff, next run Some(500ms), failures 0, []
            0.1s next: wait until 500ms
            0.5s next: run a ["child"] ready since 500ms, Retry
            0.5s next: run a ["spec"] ready since 500ms
            2s next: run a [] ready since 2s, Retry, failures 1
            2s counts: Counts { waiting: 0, backing_off: 1, parked: 0, ready: 0, running: 0 }
            2.2s next: run a [] ready since 2.125s, Retry, failures 1
            3s show a: BackingOff, next run Some(5s), failures 2, []
            5s next: run a [] ready since 5s, Retry, failures 2
            5.2s next: run a [] ready since 5.125s, Retry, failures 2
            6s show a: idle
        "#]],
    );
}

/// After twenty of them in a row it is no chance any more.
#[test]
fn moments_in_a_row_are_a_failure() {
    let mut steps = vec![String::from("0s add a one\n")];
    let mut at = 0.0;
    for nth in 1..=23 {
        steps.push(format!("{at}s next\n {at}s done a failure soon\n"));
        at += match nth {
            ..=20 => 0.125,
            21 => 1.0,
            _ => 2.0,
        };
    }
    steps.push(format!("{at}s show a\n {at}s forget a\n"));
    let said = transcript(&steps.concat());
    let last = said.lines().skip(19).collect::<Vec<_>>().join("\n");
    expect![[r"
        2.375s next: run a [] ready since 2.375s, Retry
        2.5s next: run a [] ready since 2.5s, Retry
        3.5s next: run a [] ready since 3.5s, Retry, failures 1
        5.5s next: run a [] ready since 5.5s, Retry, failures 2
        7.5s show a: BackingOff, next run Some(9.5s), failures 3, []"]]
    .assert_eq(&last);
}

/// An error policy that always says "at once" is no hot loop.
#[test]
fn failing_at_once_is_slowed_down() {
    let mut steps = vec![String::from("0s add a one\n")];
    steps.extend((0..10).map(|_| "0s next\n 0s done a failure requeue 0s\n".to_owned()));
    let mut at = 0;
    for delay in [0, 1, 2, 4, 8, 16, 32, 64] {
        at += delay;
        steps.push(format!(
            "{at}s next\n {at}s done a failure requeue 50ms\n {at}s show a\n"
        ));
    }
    check(
        &steps.concat(),
        expect![[r#"
        0s next: run a ["one"] ready since 0ns
        0s next: run a [] ready since 0ns, Retry, failures 1
        0s next: run a [] ready since 0ns, Retry, failures 2
        0s next: run a [] ready since 0ns, Retry, failures 3
        0s next: run a [] ready since 0ns, Retry, failures 4
        0s next: run a [] ready since 0ns, Retry, failures 5
        0s next: run a [] ready since 0ns, Retry, failures 6
        0s next: run a [] ready since 0ns, Retry, failures 7
        0s next: run a [] ready since 0ns, Retry, failures 8
        0s next: run a [] ready since 0ns, Retry, failures 9
        0s next: run a [] ready since 0ns, Retry, failures 10
        0s show a: BackingOff, next run Some(1s), failures 11, []
        1s next: run a [] ready since 1s, Retry, failures 11
        1s show a: BackingOff, next run Some(3s), failures 12, []
        3s next: run a [] ready since 3s, Retry, failures 12
        3s show a: BackingOff, next run Some(7s), failures 13, []
        7s next: run a [] ready since 7s, Retry, failures 13
        7s show a: BackingOff, next run Some(15s), failures 14, []
        15s next: run a [] ready since 15s, Retry, failures 14
        15s show a: BackingOff, next run Some(31s), failures 15, []
        31s next: run a [] ready since 31s, Retry, failures 15
        31s show a: BackingOff, next run Some(63s), failures 16, []
        63s next: run a [] ready since 63s, Retry, failures 16
        63s show a: BackingOff, next run Some(127s), failures 17, []
        127s next: run a [] ready since 127s, Retry, failures 17
        127s show a: BackingOff, next run Some(255s), failures 18, []
    "#]],
    );
}

// === What others do ===

/// R5: what a key has to do with changes all the time, whatever the policy says. The runs are spaced, and
/// neither raise the count of failures nor bring the next attempt forward.
#[test]
fn a_flapping_relation_is_no_hot_loop() {
    let outcomes = [
        "failure backoff",
        "failure requeue 300s",
        "failure await",
        "success backoff",
    ];
    let said = outcomes.map(|outcome| {
        let mut steps = vec![format!("0s add a one\n 0s next\n 0s done a {outcome}\n")];
        let mut runs = Vec::new();
        // Two changes each second.
        for half in 1..1200 {
            let at = f64::from(half) / 2.0;
            steps.push(format!("{at}s add a child related\n {at}s next\n"));
            let said = transcript(&steps.concat());
            if said
                .lines()
                .last()
                .is_some_and(|line| line.contains("run a"))
            {
                steps.push(format!("{at}s done a {outcome}\n"));
                runs.push(at);
            }
            if runs.len() > 12 {
                break;
            }
        }
        format!("{outcome}: {runs:?}\n")
    });
    expect![[r"
        failure backoff: [0.5, 1.5, 2.0, 4.0, 4.5, 8.5, 9.0, 17.0, 17.5, 33.5, 34.0, 64.0, 94.0]
        failure requeue 300s: [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5, 121.5, 151.5, 181.5, 211.5, 241.5]
        failure await: [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5, 121.5, 151.5, 181.5, 211.5, 241.5]
        success backoff: [0.5, 1.5, 2.0, 4.0, 4.5, 8.5, 9.0, 17.0, 17.5, 33.5, 34.0, 64.0, 94.0]
    "]].assert_eq(&said.concat());
}

/// A success starts the spacing over, and nothing else does.
#[test]
fn what_ends_the_spacing() {
    let outcomes = [
        "success await",
        "success requeue 1s",
        "success backoff",
        "failure await",
        "failure soon",
        "failure requeue 100s",
    ];
    let said = outcomes.map(|outcome| {
        let said = transcript(&format!(
            "
            0s add a one
            0s next
            0s done a failure requeue 100s
            0s add a child related
            0s next
            0s done a failure requeue 100s
            0s add a spec desired
            0s next
            0s done a {outcome}
            0s add a child related
            0s next
            0s show a
            "
        ));
        format!("{outcome}\n{said}")
    });
    expect![[r#"
        success await
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: run a ["child"] ready since 0ns
        0s show a: Running, next run None, failures 0, []
        success requeue 1s
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: run a ["child"] ready since 0ns
        0s show a: Running, next run None, failures 0, []
        success backoff
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: wait until 1s
        0s show a: BackingOff, next run Some(1s), failures 2, ["child"]
        failure await
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: wait until 1s
        0s show a: Parked, next run Some(1s), failures 0, ["child"]
        failure soon
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: wait until 125ms
        0s show a: BackingOff, next run Some(125ms), failures 1, ["child"]
        failure requeue 100s
        0s next: run a ["one"] ready since 0ns
        0s next: run a ["child"] ready since 0ns, failures 1
        0s next: run a ["spec"] ready since 0ns, failures 1
        0s next: wait until 1s
        0s show a: BackingOff, next run Some(1s), failures 2, ["child"]
    "#]]
    .assert_eq(&said.concat());
}

/// R4a: own writes end no hold, a foreign status only one without a timer, and all others both.
#[test]
fn who_ends_which_hold() {
    let mut said = Vec::new();
    for outcome in ["backoff", "await"] {
        for class in ["", "status", "related", "desired"] {
            for during in [true, false] {
                let add = format!("1s add a it {class}\n");
                let done = format!("1s done a failure {outcome}\n");
                let steps = if during { add + &done } else { done + &add };
                let said_now = transcript(&format!("1s add a one\n 1s next\n {steps} 1s next\n"));
                let last = said_now.lines().last().unwrap_or_default();
                said.push(format!("{outcome}, {class:?}, during {during}: {last}\n"));
            }
        }
    }
    expect![[r#"
        backoff, "", during true: 1s next: wait until 2s
        backoff, "", during false: 1s next: wait until 2s
        backoff, "status", during true: 1s next: wait until 2s
        backoff, "status", during false: 1s next: wait until 2s
        backoff, "related", during true: 1s next: run a ["it"] ready since 1s, failures 1
        backoff, "related", during false: 1s next: run a ["it"] ready since 1s, failures 1
        backoff, "desired", during true: 1s next: run a ["it"] ready since 1s, failures 1
        backoff, "desired", during false: 1s next: run a ["it"] ready since 1s, failures 1
        await, "", during true: 1s next: idle
        await, "", during false: 1s next: idle
        await, "status", during true: 1s next: run a ["it"] ready since 1s
        await, "status", during false: 1s next: run a ["it"] ready since 1s
        await, "related", during true: 1s next: run a ["it"] ready since 1s
        await, "related", during false: 1s next: run a ["it"] ready since 1s
        await, "desired", during true: 1s next: run a ["it"] ready since 1s
        await, "desired", during false: 1s next: run a ["it"] ready since 1s
    "#]]
    .assert_eq(&said.concat());
}

/// A change of the desired state does not wait for the spacing of others, and a failure then lengthens the row.
#[test]
fn a_desired_trigger_overtakes_a_spaced_one() {
    check(
        "
        0s add a one
        0s next
        0s done a failure backoff 100s
        1s add a child related
        1s next
        1s done a failure backoff 100s
        1s add a child related
        1s show a
        1s next
        1.5s add a spec desired
        1.5s next
        1.5s done a failure backoff 100s
        1.5s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: run a ["child"] ready since 1s, failures 1
            1s show a: BackingOff, next run Some(2s), failures 1, ["child"]
            1s next: wait until 2s
            1.5s next: run a ["child", "spec"] ready since 1.5s, failures 1
            1.5s show a: BackingOff, next run Some(101.5s), failures 2, []
        "#]],
    );
}

// === Debounce ===

/// T55: trailing, with a bound.
#[test]
fn debounce_is_trailing_with_a_longest_wait() {
    check(
        "
        debounce 2s
        max-wait 5s
        0s add a one
        0s next
        1s add a two
        1s next
        3s next
        3s done a success await
        10s add a one
        11s add a one
        12s add a one
        13s add a one
        14s add a two
        14s next
        15s next
        ",
        expect![[r#"
            0s next: wait until 2s
            1s next: wait until 3s
            3s next: run a ["one", "two"] ready since 3s
            14s next: wait until 15s
            15s next: run a ["one", "two"] ready since 15s
        "#]],
    );
}

#[test]
fn debounce_waits_ten_times_at_most_by_default() {
    let triggers = (0..50)
        .map(|n| format!("{}ms add a one\n", n * 500))
        .collect::<Vec<_>>()
        .concat();
    check(
        &format!("debounce 1s\n {triggers} 24.5s show a"),
        expect![[r#"
        24.5s show a: Ready, next run Some(10s), failures 0, ["one"]
    "#]],
    );
}

/// A requeue and the end of a hold come at their time, whatever the debounce says.
#[test]
fn debounce_does_not_delay_timers() {
    check(
        "
        debounce 10s
        0s add a one
        10s next
        10s done a success requeue 3s
        12s add a two
        12s next
        13s next
        13s done a failure backoff
        13s add a spec desired
        13s next
        14s next
        ",
        expect![[r#"
            10s next: run a ["one"] ready since 10s
            12s next: wait until 13s
            13s next: run a ["two"] ready since 13s, Requeue
            13s next: wait until 14s
            14s next: run a ["spec"] ready since 14s, Retry, failures 1
        "#]],
    );
}

/// A trigger during the run counts from when it came.
#[test]
fn debounce_goes_on_during_a_run() {
    check(
        "
        debounce 4s
        0s add a one
        4s next
        5s add a two
        7s done a success await
        7s next
        9s next
        9s add a three
        20s done a success await
        20s next
        20s add a child
        21s add a spec desired
        22s done a failure backoff 100s
        22s next
        23s add a child
        23s show a
        27s next
        ",
        expect![[r#"
            4s next: run a ["one"] ready since 4s
            7s next: wait until 9s
            9s next: run a ["two"] ready since 9s
            20s next: run a ["three"] ready since 20s
            22s next: wait until 25s
            23s show a: BackingOff, next run Some(27s), failures 1, ["child", "spec"]
            27s next: run a ["child", "spec"] ready since 27s, failures 1
        "#]],
    );
}

// === Concurrency and rate ===

#[test]
fn concurrency_is_bounded() {
    check(
        "
        concurrency 2
        0s add a one
        0s add b one
        0s add c one
        0s next
        0s next
        0s next
        0s counts
        1s done a success requeue 1s
        1s next
        1s next
        2s done b success await
        2s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            0s next: idle
            0s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 1, running: 2 }
            1s next: run c ["one"] ready since 0ns
            1s next: idle
            2s next: run a [] ready since 2s, Requeue
        "#]],
    );
}

#[test]
fn concurrency_of_zero_is_unbounded() {
    let adds = ('a'..='z')
        .map(|key| format!("0s add {key} one\n"))
        .collect::<Vec<_>>()
        .concat();
    let nexts = "0s next\n".repeat(26);
    check(
        &format!("concurrency 0\n {adds} {nexts} 0s counts"),
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            0s next: run c ["one"] ready since 0ns
            0s next: run d ["one"] ready since 0ns
            0s next: run e ["one"] ready since 0ns
            0s next: run f ["one"] ready since 0ns
            0s next: run g ["one"] ready since 0ns
            0s next: run h ["one"] ready since 0ns
            0s next: run i ["one"] ready since 0ns
            0s next: run j ["one"] ready since 0ns
            0s next: run k ["one"] ready since 0ns
            0s next: run l ["one"] ready since 0ns
            0s next: run m ["one"] ready since 0ns
            0s next: run n ["one"] ready since 0ns
            0s next: run o ["one"] ready since 0ns
            0s next: run p ["one"] ready since 0ns
            0s next: run q ["one"] ready since 0ns
            0s next: run r ["one"] ready since 0ns
            0s next: run s ["one"] ready since 0ns
            0s next: run t ["one"] ready since 0ns
            0s next: run u ["one"] ready since 0ns
            0s next: run v ["one"] ready since 0ns
            0s next: run w ["one"] ready since 0ns
            0s next: run x ["one"] ready since 0ns
            0s next: run y ["one"] ready since 0ns
            0s next: run z ["one"] ready since 0ns
            0s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 26 }
        "#]],
    );
}

#[test]
fn starts_wait_for_the_rate_limit() {
    check(
        "
        rate 2 burst 2
        10s add a one
        10s add b one
        10s add c one
        10s add d one
        10s next
        10s next
        10s next
        10.5s next
        10.5s next
        10.5s done a success requeue 100ms
        10.5s forget d
        10.5s next
        11s next
        ",
        expect![[r#"
            10s next: run a ["one"] ready since 10s
            10s next: run b ["one"] ready since 10s
            10s next: wait until 10.5s
            10.5s next: run c ["one"] ready since 10s
            10.5s next: wait until 11s
            10.5s next: wait until 11s
            11s next: run a [] ready since 10.6s, Requeue
        "#]],
    );
}

// === Forgetting and closing ===

/// T32: nothing is left of an object that is gone.
#[test]
fn forgetting_leaves_nothing() {
    check(
        "
        concurrency 1
        0s add x warm-up
        0s next
        0s done x failure backoff
        0s show x
        0s forget x
        0s show x
        0s add a ready
        0s add y runs
        0s next
        0s forget y
        0s forget a
        0s counts
        0s done a failure backoff
        0s counts
        ",
        expect![[r#"
            0s next: run x ["warm-up"] ready since 0ns
            0s show x: BackingOff, next run Some(1s), failures 1, []
            0s show x: idle
            0s next: run a ["ready"] ready since 0ns
            0s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 1 }
            0s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 0 }
        "#]],
    );
}

/// An object that comes back while the run for its predecessor goes on starts afresh.
#[test]
fn forgetting_during_a_run() {
    check(
        "
        0s add a one
        0s next
        0s done a failure backoff
        1s next
        2s add a child
        2s forget a
        2s show a
        3s add a created
        3s show a
        4s done a failure backoff 60s
        4s next
        4s done a failure backoff
        4s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: run a [] ready since 1s, Retry, failures 1
            2s show a: Running, next run None, failures 0, []
            3s show a: Running, next run None, failures 0, ["created"]
            4s next: run a ["created"] ready since 4s
            4s show a: BackingOff, next run Some(5s), failures 1, []
        "#]],
    );
}

/// A8: a closed queue starts nothing more, and tells when all is over.
#[test]
fn closing() {
    check(
        "
        0s add a one
        0s add b one
        0s next
        0s close
        0s next
        1s add c one
        1s counts
        1s done a success requeue 0s
        1s next
        1s counts
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: idle
            1s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 2, running: 1 }
            1s next: idle
            1s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 3, running: 0 }
        "#]],
    );
}

// === What no script says ===

/// A moment before the latest one counts as the latest, so that keys stay in order.
#[test]
fn time_does_not_go_backwards() {
    let second = |number| Time::ORIGIN + Duration::from_secs(number);
    let mut queue = Queue::new(&Config::default());
    let trigger = |key| Trigger {
        key,
        cause: (),
        class: Class::Own,
        priority: Priority::Normal,
    };
    queue.add(second(10), trigger('a'));
    queue.add(second(5), trigger('b'));
    for key in ['a', 'b'] {
        let Next::Run(run) = queue.next(second(1)) else {
            panic!("{key} is ready")
        };
        assert_eq!((run.key, run.ready_since), (key, second(10)));
    }
    let requeue = Outcome::success(Action::Requeue(Duration::from_secs(2)));
    queue.done(second(3), &'a', requeue, 0.0);
    assert_eq!(queue.next(second(4)), Next::WaitUntil(second(12)));
}

/// No timer counts any more, and each trigger still leads to a run.
#[test]
fn draining() {
    check(
        "
        concurrency 1
        debounce 5s
        0s add a held
        5s next
        5s done a failure backoff 100s
        5s add b requeues
        10s next
        10s done b success requeue 100s
        10s add c parks
        15s next
        15s done c failure await
        15s add a own
        15s add c child related
        15s add d debounced
        15s add e waits
        20s next
        20s counts
        20s drain
        20s counts
        20s done c failure requeue 0s
        20s next
        20s done d success requeue 0s
        20s next
        20s add e again
        20s done e failure backoff
        20s next
        20s done e success backoff
        20s next
        20s counts
        ",
        expect![[r#"
            5s next: run a ["held"] ready since 5s
            10s next: run b ["requeues"] ready since 10s
            15s next: run c ["parks"] ready since 15s
            20s next: run c ["child"] ready since 20s
            20s counts: Counts { waiting: 1, backing_off: 1, parked: 0, ready: 2, running: 1 }
            20s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 2, running: 1 }
            20s next: run d ["debounced"] ready since 20s
            20s next: run e ["waits"] ready since 20s
            20s next: run e ["again"] ready since 20s
            20s next: idle
            20s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 0 }
        "#]],
    );
}

/// Nothing piles up however often a key is triggered, rescheduled and forgotten.
#[test]
fn a_busy_key_takes_the_place_of_one() {
    let config = Config::default().debounce(Duration::from_secs(1));
    let mut queue = Queue::new(&config);
    let trigger = |cause| Trigger {
        key: 'a',
        cause,
        class: Class::Own,
        priority: Priority::Low,
    };
    for round in 0..10_000 {
        let now = Time::from_nanos(round);
        queue.add(now, trigger(round));
        queue.schedule_at(now, 'a', Time::MAX);
        queue.schedule_at(now, 'b', now + Duration::from_secs(5));
        queue.forget(&'b');
    }
    let entry = queue.entry(&'a').expect("it waits");
    assert_eq!(
        (entry.causes.iter().count(), entry.causes.omitted()),
        (16, 9_984)
    );
    assert_eq!(queue.entries().count(), 1);
}

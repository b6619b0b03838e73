//! Keys that do not run although they have reason to.

use super::check;
use expect_test::expect;

/// Row 37: what one key waits for is nothing to the others.
#[test]
fn a_closed_gate_holds_one_key() {
    check(
        "
        0s add a one
        0s add b one
        0s next
        0s next
        0s gate a 5s
        0s add a two
        0s done a success await
        0s done b success await
        0s show a
        1s add b two
        1s next
        2s next
        2s open a
        2s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            0s show a: Waiting, next run Some(5s), failures 0, ["two"], gate closed until 5s
            1s next: run b ["two"] ready since 1s
            2s next: wait until 5s
            2s next: run a ["two"] ready since 2s
        "#]],
    );
}

/// Nobody opens it: it opens by itself.
#[test]
fn a_gate_is_closed_for_a_time() {
    check(
        "
        0s add a one
        0s next
        0s gate a 5s
        0s done a success await
        0s show a
        1s add a two
        1s next
        1s show a
        5s next
        6s done a success await
        6s show a
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s show a: Waiting, next run None, failures 0, [], gate closed until 5s
            1s next: wait until 5s
            1s show a: Waiting, next run Some(5s), failures 0, ["two"], gate closed until 5s
            5s next: run a ["two"] ready since 5s
            6s show a: idle
        "#]],
    );
}

/// A gate that nobody has come to leaves nothing behind.
#[test]
fn a_gate_is_forgotten() {
    check(
        "
        0s add a one
        0s add b one
        0s next
        0s next
        0s gate a 5s
        0s gate b 5s
        0s done a success await
        0s done b success await
        1s open b
        1s show b
        1s next
        5s next
        5s show a
        5s counts
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            1s show b: idle
            1s next: wait until 5s
            5s next: idle
            5s show a: idle
            5s counts: Counts { waiting: 0, backing_off: 0, parked: 0, ready: 0, running: 0 }
        "#]],
    );
}

/// Whatever asks: a requeue, a retry, a change of the desired state.
#[test]
fn a_gate_is_closed_to_all() {
    check(
        "
        0s add a one
        0s add b one
        0s next
        0s next
        0s gate a 5s
        0s gate b 5s
        0s done a success requeue 1s
        0s done b failure backoff
        1s next
        2s add b spec desired
        2s next
        5s next
        5s next
        5s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            0s next: run b ["one"] ready since 0ns
            1s next: wait until 5s
            2s next: wait until 5s
            5s next: run a [] ready since 5s, Requeue
            5s next: run b ["spec"] ready since 5s, Retry, failures 1
            5s next: idle
        "#]],
    );
}

/// An object that is gone has nothing to wait for, and neither has its successor.
#[test]
fn a_gate_goes_with_its_object() {
    check(
        "
        0s add a one
        0s next
        0s gate a 5s
        0s done a success await
        1s forget a
        1s add a again
        1s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: run a ["again"] ready since 1s
        "#]],
    );
}

#[test]
fn damping_ends_with_a_change_of_the_desired_state() {
    check(
        "
        0s add a one
        0s next
        0s damp a 8s
        0s done a success await
        1s add a own
        1s next
        1s show a
        2s add a spec desired
        2s next
        3s add a spec desired
        3s damp a 8s
        3s done a success await
        3s next
        4s damp a 8s
        4s done a success requeue 1s
        5s next
        12s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: wait until 8s
            1s show a: Waiting, next run Some(8s), failures 0, ["own"], damped until 8s
            2s next: run a ["own", "spec"] ready since 2s
            3s next: run a ["spec"] ready since 3s
            5s next: wait until 12s
            12s next: run a [] ready since 12s, Requeue
        "#]],
    );
}

/// In a fight, changes of the desired state are what the loop is made of.
#[test]
fn firm_damping_does_not_end_early() {
    check(
        "
        0s add a one
        0s next
        0s add a spec desired
        0s damp a 8s firm
        0s done a success await
        1s add a spec desired
        1s next
        8s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: wait until 8s
            8s next: run a ["spec"] ready since 8s
        "#]],
    );
}

/// Both have to be open.
#[test]
fn opening_the_gate_leaves_a_key_damped() {
    check(
        "
        0s add a one
        0s next
        0s gate a 5s
        0s damp a 3s
        0s done a success await
        0s add a two
        1s open a
        1s next
        3s next
        ",
        expect![[r#"
            0s next: run a ["one"] ready since 0ns
            1s next: wait until 3s
            3s next: run a ["two"] ready since 3s
        "#]],
    );
}

use super::Backoff;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::time::Duration;

/// Writes down the delays after the given failures, without and with the most jitter.
#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many calls"
)]
fn check(backoff: Backoff, failures: &[u32], expected: Expect) {
    let table = failures
        .iter()
        .map(|&n| {
            format!(
                "{n}: {:?} .. {:?}\n",
                backoff.delay(n, 0.0),
                backoff.delay(n, 1.0)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    expected.assert_eq(&table);
}

/// T01 (growth), A14 (no number of failures ends it) and A19 (the configured jitter takes effect).
#[test]
fn doubles_from_a_second_to_five_minutes() {
    check(
        Backoff::default(),
        &[0, 1, 2, 3, 8, 9, 10, 11, 1000, u32::MAX],
        expect![[r#"
            0: 1s .. 1.2s
            1: 1s .. 1.2s
            2: 2s .. 2.4s
            3: 4s .. 4.8s
            8: 128s .. 153.6s
            9: 256s .. 307.2s
            10: 300s .. 360s
            11: 300s .. 360s
            1000: 300s .. 360s
            4294967295: 300s .. 360s
        "#]],
    );
}

/// G69: what is no failure is tried again within a second, however long the delays are.
#[test]
fn soon_is_a_part_of_the_first_delay() {
    let table = [
        Backoff::default(),
        Backoff::exponential(Duration::from_millis(80), Duration::from_secs(2)),
        Backoff::exponential(Duration::from_secs(600), Duration::from_secs(3600)),
        Backoff::exponential(Duration::ZERO, Duration::from_secs(1)),
        Backoff::default().jitter(1.0),
    ]
    .map(|backoff| format!("{:?} .. {:?}\n", backoff.soon(0.0), backoff.soon(1.0)));
    expect![[r#"
        125ms .. 500ms
        10ms .. 40ms
        125ms .. 500ms
        0ns .. 0ns
        125ms .. 500ms
    "#]]
    .assert_eq(&table.concat());
}

#[test]
fn factor_and_jitter_are_settings() {
    let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(2));
    check(
        backoff.factor(3.0).jitter(0.5),
        &[1, 2, 3, 4, 5],
        expect![[r#"
        1: 100ms .. 150ms
        2: 300ms .. 450ms
        3: 900ms .. 1.35s
        4: 2s .. 3s
        5: 2s .. 3s
    "#]],
    );
    check(
        backoff.factor(1.0).jitter(0.0),
        &[1, 2, u32::MAX],
        expect![[r#"
            1: 100ms .. 100ms
            2: 100ms .. 100ms
            4294967295: 100ms .. 100ms
        "#]],
    );
}

#[test]
fn settings_out_of_range_are_moved_into_it() {
    let backoff = Backoff::exponential(Duration::from_secs(10), Duration::from_secs(60));
    assert_eq!(backoff.factor(0.5), backoff.factor(1.0));
    assert_eq!(backoff.factor(f64::NAN), backoff.factor(1.0));
    assert_eq!(backoff.jitter(-1.0), backoff.jitter(0.0));
    assert_eq!(backoff.jitter(f64::NAN), backoff.jitter(0.0));
    assert_eq!(backoff.jitter(f64::INFINITY), backoff.jitter(1.0));
    check(
        backoff.factor(f64::INFINITY),
        &[1, 2, 3],
        expect![[r#"
        1: 10s .. 12s
        2: 60s .. 72s
        3: 60s .. 72s
    "#]],
    );

    let upside_down = Backoff::exponential(Duration::from_secs(60), Duration::from_secs(10));
    check(
        upside_down,
        &[1, 2],
        expect![[r#"
        1: 10s .. 12s
        2: 10s .. 12s
    "#]],
    );
}

/// T58: the longest durations there are.
#[test]
fn extremes_saturate() {
    let never = Backoff::exponential(Duration::ZERO, Duration::ZERO);
    check(
        never,
        &[1, u32::MAX],
        expect![[r#"
        1: 0ns .. 0ns
        4294967295: 0ns .. 0ns
    "#]],
    );
    check(
        never.factor(f64::INFINITY),
        &[1, u32::MAX],
        expect![[r#"
        1: 0ns .. 0ns
        4294967295: 0ns .. 0ns
    "#]],
    );
    check(
        Backoff::exponential(Duration::ZERO, Duration::MAX),
        &[1, u32::MAX],
        expect![[r#"
            1: 0ns .. 0ns
            4294967295: 0ns .. 0ns
        "#]],
    );
    check(
        Backoff::exponential(Duration::MAX, Duration::MAX),
        &[1, u32::MAX],
        expect![[r#"
            1: 18446744073709551615.999999999s .. 18446744073709551615.999999999s
            4294967295: 18446744073709551615.999999999s .. 18446744073709551615.999999999s
        "#]],
    );
}

#[test]
fn randomness_out_of_range_is_moved_into_it() {
    let backoff = Backoff::default();
    assert_eq!(backoff.delay(3, -1.0), backoff.delay(3, 0.0));
    assert_eq!(backoff.delay(3, f64::NAN), backoff.delay(3, 0.0));
    assert_eq!(backoff.delay(3, 7.0), backoff.delay(3, 1.0));
}

proptest! {
    /// T09: delays without jitter never shrink, and jitter only ever adds, up to its share.
    #[test]
    fn jitter_lengthens_by_its_share_at_most(
        initial in 1_u64..100_000,
        max in 1_u64..1_000_000,
        factor in 1.0..10.0,
        jitter in 0.0..1.0,
        failures in 1_u32..2000,
        random in 0.0..1.0,
    ) {
        let backoff = Backoff::exponential(Duration::from_millis(initial), Duration::from_millis(max))
            .factor(factor)
            .jitter(jitter);
        let plain = backoff.delay(failures, 0.0);
        prop_assert!(plain <= backoff.delay(failures + 1, 0.0));
        prop_assert!(plain <= Duration::from_millis(max));

        let delay = backoff.delay(failures, random);
        prop_assert!(delay >= plain);
        prop_assert!(delay <= plain + plain.mul_f64(jitter) + Duration::from_nanos(1));
        prop_assert!(jitter * random < 0.001 || delay > plain);
    }
}

use super::Time;
use std::time::Duration;

/// T58: no duration, however long, overflows.
#[test]
fn addition_saturates() {
    let start = Time::from_nanos(5);
    assert_eq!(start + Duration::from_nanos(2), Time::from_nanos(7));
    assert_eq!(start + Duration::MAX, Time::MAX);
    assert_eq!(start + Duration::from_nanos(u64::MAX - 5), Time::MAX);
    assert_eq!(Time::MAX + Duration::from_nanos(1), Time::MAX);

    let mut moment = start;
    moment += Duration::MAX;
    assert_eq!(moment, Time::MAX);
}

#[test]
fn distance_is_never_negative() {
    let (early, late) = (Time::from_nanos(3), Time::from_nanos(10));
    assert_eq!(late.since(early), Duration::from_nanos(7));
    assert_eq!(early.since(late), Duration::ZERO);
}

#[test]
fn debug_reads_like_a_duration() {
    assert_eq!(format!("{:?}", Time::from_nanos(1_500_000_000)), "1.5s");
    assert_eq!(format!("{:?}", Time::MAX), "never");
}

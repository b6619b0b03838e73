//! The scheduler, under paused time.

use futures::{FutureExt, StreamExt, channel::mpsc, stream};
use homeostat::scheduler::{ScheduleRequest, debounced_scheduler, scheduler};
use std::{pin::pin, time::Duration};
use tokio::time::{Instant, advance, sleep};

const SECOND: Duration = Duration::from_secs(1);

fn request(message: &'static str, run_at: Instant) -> ScheduleRequest<&'static str> {
    ScheduleRequest { message, run_at }
}

#[tokio::test(start_paused = true)]
async fn messages_come_at_their_times() {
    let start = Instant::now();
    let requests = [
        request("late", start + 10 * SECOND),
        request("now", start),
        request("soon", start + SECOND),
        request("never", start + Duration::from_secs(100 * 365 * 24 * 3600)),
    ];
    let delivered = scheduler(stream::iter(requests)).take(3);
    let delivered: Vec<_> = delivered
        .map(|message| (message, start.elapsed().as_secs()))
        .collect()
        .await;
    assert_eq!(delivered, [("now", 0), ("soon", 1), ("late", 10)]);
}

#[tokio::test(start_paused = true)]
async fn equal_messages_merge_to_the_earliest() {
    let start = Instant::now();
    let requests = [
        request("a", start + 10 * SECOND),
        request("a", start + 5 * SECOND),
        request("a", start + 20 * SECOND),
    ];
    let delivered: Vec<_> = scheduler(stream::iter(requests)).collect().await;
    assert_eq!((delivered, start.elapsed()), (vec!["a"], 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_delivered_message_may_come_again() {
    let (requests, stream) = mpsc::unbounded();
    let mut scheduler = scheduler(stream);
    for _ in 0..3 {
        requests
            .unbounded_send(request("a", Instant::now()))
            .expect("open");
        assert_eq!(scheduler.next().now_or_never(), Some(Some("a")));
        assert_eq!(scheduler.next().now_or_never(), None);
    }
    drop(requests);
    assert_eq!(scheduler.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn debounce_waits_for_quiet_but_not_for_ever() {
    let (requests, stream) = mpsc::unbounded();
    let start = Instant::now();
    tokio::spawn(async move {
        for _ in 0..30 {
            requests
                .unbounded_send(request("a", Instant::now()))
                .expect("open");
            sleep(SECOND).await;
        }
    });
    let delivered = debounced_scheduler(stream, 2 * SECOND);
    let delivered: Vec<_> = delivered.map(|_| start.elapsed().as_secs()).collect().await;
    // Events from 0 s to 29 s: after 20 s at the latest, and 2 s after the last one.
    assert_eq!(delivered, [20, 31]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_stays_in_order() {
    let start = Instant::now();
    let requests = [
        request("a", start),
        request("b", start),
        request("c", start + SECOND),
    ];
    let mut scheduler = pin!(scheduler(stream::iter(requests)));
    assert_eq!(scheduler.as_mut().hold().next().now_or_never(), None);
    let mut without_a = scheduler.as_mut().hold_unless(|message| *message != "a");
    assert_eq!(without_a.next().now_or_never(), Some(Some("b")));
    assert_eq!(without_a.next().now_or_never(), None);
    advance(SECOND).await;
    assert_eq!(without_a.next().await, Some("c"));
    assert_eq!(without_a.next().await, None, "a may not be taken");
    assert_eq!(scheduler.next().await, Some("a"));
    assert_eq!(scheduler.next().await, None);
}

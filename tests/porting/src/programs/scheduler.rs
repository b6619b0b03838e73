//! A program that sends reminders at their time, and each only once.

use super::runtime::scheduler::{ScheduleRequest, Scheduler, debounced_scheduler, scheduler};
use crate::{
    cluster::{an_hour, during},
    journal::Journal,
};
use futures::{FutureExt, Stream, StreamExt, channel::mpsc};
use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
    pin::{Pin, pin},
    time::Duration,
};
use tokio::time::{Instant, advance, sleep, timeout};

type Request = ScheduleRequest<&'static str>;

fn request(message: &'static str, run_at: Instant) -> Request {
    ScheduleRequest { message, run_at }
}

/// Sends what is due, with the second of its sending.
async fn send(due: impl Stream<Item = &'static str>, start: Instant, output: &Journal) {
    let mut due = pin!(due);
    while let Some(message) = due.next().await {
        output.say(format!("{} {message}", start.elapsed().as_secs()));
    }
}

#[tokio::test(start_paused = true)]
async fn reminders_come_at_their_time() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let output = Journal::default();
    let (ask, requests) = mpsc::unbounded();
    for (message, seconds) in [
        ("tea", 30),
        ("eggs", 4),
        ("tea", 20),
        ("tea", 60),
        ("now", 0),
    ] {
        ask.unbounded_send(request(message, at(seconds)))
            .expect("it is held");
    }
    during(send(scheduler(requests), start, &output), async {
        sleep(Duration::from_secs(40)).await;
        ask.unbounded_send(request("tea", at(45)))
            .expect("it is held");
        an_hour().await;
    })
    .await;
    assert_eq!(output.lines(), ["0 now", "4 eggs", "20 tea", "45 tea"]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_one_reminder() {
    let start = Instant::now();
    let output = Journal::default();
    let (ask, requests) = mpsc::unbounded();
    let due = debounced_scheduler(requests, Duration::from_secs(5));
    during(send(due, start, &output), async {
        for pause in [1, 1, 1, 60, 2] {
            ask.unbounded_send(request("mail", Instant::now()))
                .expect("it is held");
            sleep(Duration::from_secs(pause)).await;
        }
        an_hour().await;
    })
    .await;
    // Asked for at 0, 1, 2 and 3 s, and at 63 s.
    assert_eq!(output.lines(), ["8 mail", "68 mail"]);
}

/// One reminder for each name; what it says is no part of that.
#[derive(Clone, Debug)]
struct Reminder(&'static str, u32);

impl PartialEq for Reminder {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Reminder {}

impl Hash for Reminder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Of equal reminders the one comes that asked for the time at which it comes.
#[tokio::test(start_paused = true)]
async fn the_earliest_reminder_comes() {
    let start = Instant::now();
    let (ask, requests) = mpsc::unbounded();
    for (name, text, seconds) in [
        ("tea", 1, 30),
        ("tea", 2, 20),
        ("tea", 3, 60),
        ("eggs", 1, 4),
        ("eggs", 2, 5),
    ] {
        let (message, run_at) = (Reminder(name, text), start + Duration::from_secs(seconds));
        ask.unbounded_send(ScheduleRequest { message, run_at })
            .expect("it is held");
    }
    let due = scheduler(requests).take(2);
    let due: Vec<_> = due.map(|Reminder(name, text)| (name, text)).collect().await;
    assert_eq!(due, [("eggs", 1), ("tea", 2)]);
}

/// With a debounce the last one of a burst comes, counted from when it was asked for, whenever somebody looks.
#[tokio::test(start_paused = true)]
async fn the_last_reminder_of_a_burst_comes() {
    let (ask, requests) = mpsc::unbounded();
    let mut due = debounced_scheduler(requests, Duration::from_secs(3));
    let ask = |text| {
        let (message, run_at) = (Reminder("mail", text), Instant::now());
        ask.unbounded_send(ScheduleRequest { message, run_at })
            .expect("it is held");
    };
    ask(1);
    assert!(due.next().now_or_never().is_none());
    advance(Duration::from_secs(1)).await;
    ask(2);
    // Nobody has looked when the first one was due, and the second one was asked for before.
    advance(Duration::from_millis(2500)).await;
    assert!(due.next().now_or_never().is_none());
    advance(Duration::from_secs(3)).await;
    let text = due
        .next()
        .now_or_never()
        .flatten()
        .map(|reminder| reminder.1);
    assert_eq!(text, Some(2));
}

/// Whoever is busy is not reminded.
#[tokio::test(start_paused = true)]
async fn the_busy_are_left_alone() {
    let start = Instant::now();
    let output = Journal::default();
    let (ask, requests) = mpsc::unbounded();
    for name in ["ann", "bob", "cid"] {
        ask.unbounded_send(request(name, start))
            .expect("it is held");
    }
    let mut reminders: Pin<&mut Scheduler<_, _>> = pin!(scheduler(requests));
    let a_while = Duration::from_secs(10);
    assert!(
        timeout(a_while, reminders.as_mut().hold().next())
            .await
            .is_err()
    );

    let busy = BTreeSet::from(["bob"]);
    let free = reminders.as_mut().hold_unless(|name| !busy.contains(name));
    let two = free.take(2).collect::<BTreeSet<_>>().await;
    assert_eq!(two, BTreeSet::from(["ann", "cid"]));
    let mut free = reminders.as_mut().hold_unless(|name| !busy.contains(name));
    assert!(timeout(a_while, free.next()).await.is_err());
    during(send(reminders, start, &output), output.until_count(1)).await;
    assert_eq!(output.lines(), ["20 bob"]);
}

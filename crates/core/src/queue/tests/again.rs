//! Runs that came too early to count.

use crate::queue::{
    Action, Class, Config, Entry, Next, Outcome, Priority, Queue, State, Timer, Trigger,
};
use crate::time::Time;
use std::time::Duration;

fn at(seconds: u64) -> Time {
    Time::ORIGIN + Duration::from_secs(seconds)
}

fn queue() -> Queue<char, &'static str> {
    let even = crate::backoff::Backoff::default().jitter(0.0);
    Queue::new(&Config::default().backoff(even))
}

fn add(queue: &mut Queue<char, &'static str>, now: Time, cause: &'static str) {
    let trigger = Trigger {
        key: 'a',
        cause,
        class: Class::Related,
        priority: Priority::Normal,
    };
    queue.add(now, trigger);
}

/// The causes of the run that starts now, and how many failures came before it.
#[track_caller]
fn start(queue: &mut Queue<char, &'static str>, now: Time) -> (Vec<&'static str>, u32) {
    match queue.next(now) {
        Next::Run(run) => {
            assert_ne!(run.timer, Some(Timer::Requeue), "nobody asked for a timer");
            (run.causes.iter().copied().collect(), run.failures)
        }
        other @ (Next::WaitUntil(_) | Next::Idle) => panic!("{other:?}"),
    }
}

#[test]
fn an_early_run_is_repeated_at_once_and_the_row_of_failures_stays() {
    let mut queue = queue();
    add(&mut queue, at(0), "created");
    assert_eq!(start(&mut queue, at(0)), (vec!["created"], 0));
    queue.done(
        at(0),
        &'a',
        Outcome::failure(Action::Backoff { at_least: None }),
        0.0,
    );
    assert_eq!(start(&mut queue, at(1)), (vec![], 1));
    add(&mut queue, at(1), "changed");
    queue.again(at(2), &'a', "complete");
    let entry: Entry<'_, _> = queue.entry(&'a').unwrap();
    assert_eq!((entry.state, entry.failures), (State::Ready, 1));
    assert_eq!(start(&mut queue, at(2)), (vec!["changed", "complete"], 1));
    queue.done(
        at(2),
        &'a',
        Outcome::failure(Action::Backoff { at_least: None }),
        0.0,
    );
    assert_eq!(
        queue.next(at(2)),
        Next::WaitUntil(at(4)),
        "the second delay"
    );
}

#[test]
fn a_success_after_it_leaves_nothing() {
    let mut queue = queue();
    add(&mut queue, at(0), "created");
    start(&mut queue, at(0));
    queue.again(at(0), &'a', "complete");
    start(&mut queue, at(0));
    queue.done(at(0), &'a', Outcome::success(Action::AwaitChange), 0.0);
    assert!(queue.entry(&'a').is_none());
    assert!(!queue.counts().is_busy());
}

#[test]
fn an_object_that_is_gone_is_not_repeated() {
    let mut queue = queue();
    add(&mut queue, at(0), "created");
    start(&mut queue, at(0));
    queue.forget(&'a');
    queue.again(at(0), &'a', "complete");
    assert!(queue.entry(&'a').is_none());
}

#[test]
fn its_gate_is_waited_for() {
    let mut queue = queue();
    add(&mut queue, at(0), "created");
    start(&mut queue, at(0));
    queue.close_gate(&'a', at(5));
    queue.again(at(0), &'a', "complete");
    assert_eq!(queue.next(at(0)), Next::WaitUntil(at(5)));
    queue.open_gate(at(1), &'a');
    assert_eq!(start(&mut queue, at(1)), (vec!["complete"], 0));
}

//! Loops that only their rhythm tells of.

use super::site;
use crate::loops::{Answer, Blind, Cause, Config, Run, Verdict};
use crate::time::Time;
use std::time::Duration;

/// A key, and those that do something to it.
struct World {
    blind: Blind<&'static str>,
    now: Time,
    reports: usize,
    delayed: usize,
    runs: usize,
}

const KEY: &str = "blog";

impl World {
    fn new() -> Self {
        Self {
            blind: Blind::new(Config::default()),
            now: Time::ORIGIN,
            reports: 0,
            delayed: 0,
            runs: 0,
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Somebody does something.
    fn event(&mut self) {
        self.blind.happened(self.now, &KEY);
    }

    /// A run of 10 ms, in which it writes or not; then its delay passes, and in it others do something so often.
    fn run(&mut self, causes: &[Cause], writes: bool, after: Option<u64>, others: u32) {
        let wanted = causes.contains(&Cause::Desired);
        self.blind.started(self.now, &KEY, wanted);
        let started = self.now;
        self.pass(5);
        if writes {
            self.event();
        }
        self.pass(5);
        let run = Run {
            object: site(),
            started,
            causes: causes.to_vec(),
            failed: false,
            after: after.map(Duration::from_millis),
            writes: Vec::new(),
        };
        let answer = self.blind.finished(self.now, &KEY, &run);
        self.runs += 1;
        self.take(&answer, others);
    }

    fn take(&mut self, answer: &Answer, others: u32) {
        if let Some(incident) = &answer.report {
            assert_eq!(*incident.verdict(), Verdict::Untracked);
            self.reports += 1;
        }
        let delay = answer.delay.map_or(Duration::ZERO, |delay| delay.time);
        self.delayed += usize::from(!delay.is_zero());
        for _ in 0..others {
            self.now += delay / others;
            self.event();
        }
        self.now += if others == 0 { delay } else { Duration::ZERO };
    }
}

/// What the key does to itself stops when it is made to wait, every time.
#[test]
fn it_changes_with_its_runs_and_only_then() {
    let causes = [
        (Cause::Foreign(None), None),
        (Cause::Foreign(Some(site())), None),
        (Cause::Own, None),
        // It wants to run again at once, and writes each time.
        (Cause::Timer, Some(0)),
        (Cause::Retry, Some(0)),
    ];
    for (cause, after) in causes {
        let mut world = World::new();
        for _ in 0..30 {
            world.run(std::slice::from_ref(&cause), true, after, 0);
        }
        assert_eq!((world.reports, world.delayed), (1, 10), "{cause:?}");
        // Somebody wants something, and it starts over.
        world.run(&[cause.clone(), Cause::Desired], true, after, 0);
        for _ in 0..19 {
            world.run(std::slice::from_ref(&cause), true, after, 0);
        }
        assert_eq!(world.delayed, 10, "{cause:?}");
    }
}

/// Runs that something else has spaced need no delay to show it.
#[test]
fn spaced_runs() {
    let mut world = World::new();
    for number in 1..=25 {
        world.run(&[Cause::Foreign(None)], true, None, 0);
        world.pass(30_000);
        assert_eq!(world.reports, usize::from(number > 20), "{number}");
    }
}

/// Others go on while the key waits. It takes a delay now and then to see that.
#[test]
fn a_storm_by_others() {
    for causes in [
        &[Cause::Foreign(None)][..],
        &[Cause::Foreign(None), Cause::Timer],
    ] {
        let mut world = World::new();
        for _ in 0..10_000 {
            world.run(causes, true, Some(0), 10);
        }
        assert_eq!(world.reports, 0);
        assert!(world.delayed < 12, "{}", world.delayed);
    }
}

/// Whoever polls at once and changes nothing, or polls after a time, is not slowed down.
#[test]
fn polls() {
    let (timer, both) = ([Cause::Timer], [Cause::Timer, Cause::Foreign(None)]);
    for (causes, after, writes) in [
        (&timer[..], 0, false),
        (&timer, 200, true),
        (&both, 200, true),
    ] {
        let mut world = World::new();
        for _ in 0..10_000 {
            world.run(causes, writes, Some(after), 0);
            world.pass(after);
        }
        assert_eq!((world.reports, world.delayed), (0, 0));
    }
}

/// Events that others space out do not come with the runs.
#[test]
fn a_change_now_and_then() {
    let mut world = World::new();
    for _ in 0..10_000 {
        world.pass(1_000);
        world.event();
        world.run(&[Cause::Foreign(None)], false, None, 0);
    }
    assert_eq!((world.reports, world.delayed), (0, 0));
}

/// Fewer steps than it takes to look, with what others want in between.
#[test]
fn steps_that_end() {
    let mut world = World::new();
    for number in 0..10_000 {
        let cause = match number % 15 {
            0 => Cause::Desired,
            _ => Cause::Foreign(None),
        };
        world.run(&[cause], true, None, 0);
    }
    assert_eq!((world.reports, world.delayed), (0, 0));
}

fn run(blind: &mut Blind<u32>, now: Time, key: u32, cause: Cause) -> Answer {
    let wanted = cause == Cause::First;
    let run = Run {
        object: site(),
        started: now,
        causes: vec![cause],
        failed: false,
        after: None,
        writes: Vec::new(),
    };
    blind.started(now, &key, wanted);
    blind.happened(now, &key);
    blind.finished(now, &key, &run)
}

/// Nothing piles up.
#[test]
fn keys_at_rest_are_dropped() {
    let mut blind = Blind::new(Config::default());
    let mut now = Time::ORIGIN;
    for key in 0..10_000 {
        now += Duration::from_secs(1);
        run(&mut blind, now, key, Cause::Foreign(None));
    }
    assert!((1..=1024).contains(&blind.counted()), "{}", blind.counted());
}

/// All that is there when a program starts runs at once.
#[test]
fn objects_that_are_listed_cost_nothing() {
    let mut blind = Blind::new(Config::default());
    for key in 0..100_000 {
        run(&mut blind, Time::ORIGIN, key, Cause::First);
    }
    assert_eq!(blind.counted(), 0);
}

/// Whoever comes when all places are taken is looked at once there are some again.
#[test]
fn a_loop_is_found_after_there_were_too_many_keys() {
    let config = Config::default();
    let mut blind = Blind::new(config.clone());
    let places = u32::try_from(config.keys).unwrap();
    let mut now = Time::ORIGIN;
    for key in 0..2 * places {
        run(&mut blind, now, key, Cause::Foreign(None));
    }
    assert_eq!(blind.counted(), config.keys);
    now += config.pause * 2;
    let mut reports = 0;
    for _ in 0..40 {
        let answer = run(&mut blind, now, 2 * places, Cause::Foreign(None));
        reports += usize::from(answer.report.is_some());
        now += answer.delay.map_or(Duration::from_millis(10), |it| it.time);
    }
    assert_eq!(reports, 1);
}

use super::{Config, Next, Outage, Start};
use crate::queue::{self, Action, Class, Outcome, Priority, Queue, Trigger};
use crate::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

fn second(seconds: f64) -> Time {
    Time::ORIGIN + Duration::from_secs_f64(seconds)
}

fn outage() -> Outage<u32> {
    Outage::new(Config::default())
}

#[test]
fn three_failures_in_a_row_make_an_outage_and_fewer_after_a_while() {
    let mut outage = outage();
    assert!(!outage.failed(second(0.0), &1, None).begun);
    assert!(!outage.failed(second(0.0), &2, None).begun);
    assert_eq!(outage.answered(second(0.1)), None);
    assert!(!outage.failed(second(0.2), &1, None).begun);
    assert!(!outage.failed(second(0.3), &2, None).begun);
    assert_eq!(outage.start(second(0.3)), Start::Now);
    let last = outage.failed(second(0.4), &3, None);
    assert!(last.begun && last.report);
    assert_eq!(outage.start(second(0.4)), Start::At(second(1.4)));
    assert!(!outage.failed(second(0.5), &4, None).report);
    assert!(outage.failed(second(61.0), &5, None).report, "one a minute");

    let mut outage = self::outage();
    outage.failed(second(0.0), &1, None);
    assert_eq!(outage.next(second(0.0)), Next::WaitUntil(second(10.0)));
    assert_eq!(outage.next(second(10.0)), Next::Run(1));
    assert!(outage.is_out());
}

#[test]
fn news_that_are_older_than_the_last_failure_are_none() {
    let mut outage = outage();
    for key in 0..3 {
        outage.failed(second(5.0), &key, None);
    }
    assert_eq!(outage.answered(second(4.9)), None);
    let over = outage.answered(second(5.0)).unwrap();
    assert_eq!((over.since, over.waiting), (second(5.0), 3));
}

#[test]
fn keys_come_back_one_by_one_and_then_faster() {
    let mut outage = outage();
    for key in 0..9 {
        let asked = (key == 0).then_some(Duration::from_secs(30));
        outage.failed(second(0.0), &key, asked);
    }
    outage.answered(second(1.0)).unwrap();
    let mut at_once = Vec::new();
    let mut running = Vec::new();
    for _ in 0..3 {
        while let Next::Run(key) = outage.next(second(1.0)) {
            assert_eq!(outage.start(second(1.0)), Start::Now);
            outage.started(second(1.0), &key);
            running.push(key);
        }
        at_once.push(running.len());
        for key in running.drain(..) {
            outage.ended(&key);
        }
    }
    assert_eq!(at_once, [1, 2, 4]);
    // The server has asked the first one to wait.
    assert_eq!(outage.next(second(29.0)), Next::Run(8));
    outage.started(second(29.0), &8);
    outage.ended(&8);
    assert_eq!(outage.next(second(29.9)), Next::WaitUntil(second(30.0)));
    assert_eq!(outage.next(second(30.0)), Next::Run(0));
}

#[test]
fn a_key_comes_back_once() {
    let mut outage = outage();
    for key in 0..3 {
        outage.failed(second(0.0), &key, None);
    }
    outage.answered(second(1.0)).unwrap();
    assert_eq!(outage.next(second(1.0)), Next::Run(0));
    outage.started(second(1.0), &0);
    outage.failed(second(1.0), &0, None);
    assert_eq!(outage.answered(second(1.0)), None);
    let mut back = Vec::new();
    for tick in 0..100 {
        let now = second(1.0 + f64::from(tick) * 0.5);
        while let Next::Run(key) = outage.next(now) {
            outage.started(now, &key);
            outage.ended(&key);
            back.push(key);
        }
    }
    assert_eq!(back, [1, 2], "the first one has its own delays");
    assert_eq!(outage.waiting(), 1);
    outage.forget(&0);
    assert_eq!(outage.waiting(), 0);
}

#[test]
fn a_run_that_takes_long_does_not_keep_the_others_waiting() {
    let mut outage = outage();
    for key in 0..40 {
        outage.failed(second(0.0), &key, None);
    }
    outage.answered(second(0.0)).unwrap();
    let mut running = 0;
    for tick in 0..60 {
        let now = second(f64::from(tick) / 10.0);
        while let Next::Run(key) = outage.next(now) {
            outage.started(now, &key);
            running += 1;
        }
    }
    assert_eq!(running, 16);
}

// === A controller in small, with as many objects as a large one ===

/// How a server fails.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// At once, and may ask to be left alone.
    Refusing(Option<Duration>),
    /// After a timeout.
    Silent(Duration),
}

struct World {
    kind: Kind,
    down: std::ops::Range<f64>,
    keys: u32,
    now: Time,
    queue: Queue<u32, ()>,
    outage: Outage<u32>,
    /// When each run ends.
    running: BTreeMap<(Time, u32), bool>,
    fine: u32,
    attempts: u32,
    reports: u32,
    /// The most runs that were started within a tenth of a second after the end.
    burst: u32,
}

impl World {
    fn new(kind: Kind, seconds: f64, keys: u32) -> Self {
        let mut queue = Queue::new(&queue::Config::default());
        for key in 0..keys {
            let trigger = Trigger {
                key,
                cause: (),
                class: Class::Desired,
                priority: Priority::Low,
            };
            queue.add(Time::ORIGIN, trigger);
        }
        Self {
            kind,
            down: 0.0..seconds,
            keys,
            now: Time::ORIGIN,
            queue,
            outage: outage(),
            running: BTreeMap::new(),
            fine: 0,
            attempts: 0,
            reports: 0,
            burst: 0,
        }
    }

    fn is_down(&self) -> bool {
        self.now < second(self.down.end)
    }

    /// Plays until all keys have run well; how long after the end that is.
    fn play(&mut self) -> f64 {
        while self.fine < self.keys {
            let next = self.step();
            let ending = self.running.keys().next().map(|(at, _)| *at);
            let next = next.into_iter().chain(ending).min();
            let next = next.expect("somebody waits for something");
            assert!(next < second(self.down.end + 600.0), "{:?}", self.outage);
            self.now = self.now.max(next);
            self.end_runs();
        }
        self.now.since(second(self.down.end)).as_secs_f64()
    }

    fn step(&mut self) -> Option<Time> {
        let other = loop {
            match self.outage.next(self.now) {
                Next::Run(key) => {
                    let trigger = Trigger {
                        key,
                        cause: (),
                        class: Class::Desired,
                        priority: Priority::Normal,
                    };
                    self.queue.add(self.now, trigger);
                }
                Next::WaitUntil(time) => break Some(time),
                Next::Idle => break None,
            }
        };
        let own = loop {
            if let Start::At(time) = self.outage.start(self.now) {
                break Some(time);
            }
            match self.queue.next(self.now) {
                queue::Next::Run(run) => self.start(run.key),
                queue::Next::WaitUntil(time) => break Some(time),
                queue::Next::Idle => break None,
            }
        };
        own.into_iter().chain(other).min()
    }

    fn start(&mut self, key: u32) {
        self.attempts += 1;
        self.outage.started(self.now, &key);
        let (takes, well) = match self.kind {
            _ if !self.is_down() => (Duration::from_millis(20), true),
            Kind::Refusing(_) => (Duration::from_millis(1), false),
            Kind::Silent(timeout) => (timeout, false),
        };
        if well && self.now < second(self.down.end + 0.1) {
            self.burst += 1;
        }
        self.running.insert((self.now + takes, key), well);
    }

    fn end_runs(&mut self) {
        while let Some((&(at, key), &well)) = self.running.first_key_value() {
            if at > self.now {
                break;
            }
            self.running.pop_first();
            let outcome = if well {
                self.fine += 1;
                self.outage.answered(self.now);
                self.outage.ended(&key);
                Outcome::success(Action::AwaitChange)
            } else {
                let at_least = match self.kind {
                    Kind::Refusing(retry_after) => retry_after,
                    Kind::Silent(_) => None,
                };
                let verdict = self.outage.failed(self.now, &key, at_least);
                self.reports += u32::from(verdict.report);
                Outcome::failure(Action::Backoff { at_least })
            };
            self.queue.done(self.now, &key, outcome, 0.5);
        }
    }
}

/// Whatever the server's trouble, and however long it lasts, all is well within half a minute after it, and nobody was
/// flooded: neither the server, nor who reads the errors.
#[test]
fn all_is_well_soon_after_any_outage() {
    let asking = Some(Duration::from_secs(5));
    for kind in [
        Kind::Refusing(None),
        Kind::Refusing(asking),
        Kind::Silent(Duration::from_secs(15)),
    ] {
        for (seconds, keys) in [30.0, 120.0, 600.0, 3600.0]
            .into_iter()
            .flat_map(|seconds| [1, 2, 20, 5000].map(|keys| (seconds, keys)))
            // The longest one with the most keys takes longest to play, and shows nothing else.
            .filter(|&(seconds, keys)| seconds < 1000.0 || keys < 1000)
        {
            {
                let mut world = World::new(kind, seconds, keys);
                let recovered = world.play();
                let world_says = format!("{kind:?}, {seconds} s, {keys} keys: {recovered} s");
                assert!(recovered < 30.0, "{world_says}");
                let wasted = f64::from(world.attempts - keys);
                assert!(
                    wasted < seconds * 1.1 + 32.0,
                    "{world_says}, {wasted} in vain"
                );
                let reports = f64::from(world.reports);
                assert!(
                    reports < seconds / 60.0 + 20.0,
                    "{world_says}, {reports} reports"
                );
                assert!(
                    world.burst <= 16 * 5,
                    "{world_says}, {} at once",
                    world.burst
                );
            }
        }
    }
}

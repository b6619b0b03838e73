//! Scripts, and all short worlds against a server that counts what it is told.

use super::{Config, Journal, Next, Outcome, Write};
use crate::backoff::Backoff;
use crate::time::Time;
use expect_test::{Expect, expect};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Two writes at once and one in 100 s, for 3 series, each tried twice.
fn config() -> Config {
    Config {
        burst: 2,
        refill: Duration::from_secs(100),
        quiet: Duration::from_secs(1000),
        memory: 3,
        attempts: 2,
        backoff: Backoff::exponential(Duration::from_secs(1), Duration::from_secs(8)).jitter(0.0),
        longest_retry_after: Duration::from_secs(50),
    }
}

struct Script {
    journal: Journal<&'static str, &'static str, u64>,
    now: Time,
    sent: Vec<&'static str>,
}

impl Script {
    fn next(&mut self) -> String {
        match self.journal.next(self.now) {
            Next::Send(write) => self.sent(write),
            Next::WaitUntil(time) => format!("wait until {time:?}"),
            Next::Idle => "idle".into(),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is taken apart")]
    fn sent(&mut self, write: Write<&'static str, u64>) -> String {
        let Write {
            key,
            serial,
            known,
            count,
            first,
            last,
        } = write;
        self.sent.push(key);
        let verb = if known { "update" } else { "create" };
        format!("{verb} {key}.{serial} x{count} {first}..{last}")
    }

    fn claim(&mut self, key: &'static str, object: &'static str) -> String {
        let second = self.now.since(Time::ORIGIN).as_secs();
        match self.journal.claim(self.now, &key, &object, second) {
            Some(write) => self.sent(write),
            None => "busy".into(),
        }
    }

    fn done(&mut self, outcome: Outcome) {
        let key = self
            .sent
            .pop()
            .expect("an outcome follows a `next` that sends");
        self.journal.done(self.now, &key, outcome, 0.0);
    }
}

/// One line a step: `30` lets so many seconds pass, `a/o` adds event `a` about object `o`, and an
/// outcome is that of the write before. What is to be done next is looked at by `next`. `!a/o` claims
/// event `a`.
#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "what `expect!` makes is a value"
)]
fn check(script: &'static str, expected: Expect) {
    let mut world = Script {
        journal: Journal::new(config()),
        now: Time::ORIGIN,
        sent: Vec::new(),
    };
    let mut seen = String::new();
    for line in script.split_whitespace() {
        let failed = |retry_after| Outcome::Failed { retry_after };
        match line {
            "next" => {
                let next = world.next();
                writeln!(seen, "{:?} {next}", world.now).unwrap();
            }
            "told" => world.done(Outcome::Told),
            "exists" => world.done(Outcome::Exists),
            "gone" => world.done(Outcome::Gone),
            "refused" => world.done(Outcome::Refused),
            "failed" => world.done(failed(None)),
            "failed:20s" => world.done(failed(Some(Duration::from_secs(20)))),
            "failed:1h" => world.done(failed(Some(Duration::from_secs(3600)))),
            "interrupted" => world.done(Outcome::Interrupted),
            "settled" => writeln!(seen, "settled: {}", world.journal.is_settled()).unwrap(),
            "dropped" => writeln!(seen, "dropped: {}", world.journal.dropped()).unwrap(),
            "renew" => {
                let key = world.sent.pop().expect("it was sent");
                let write = world.journal.renew(&key).expect("it is under way");
                let write = world.sent(write);
                writeln!(seen, "{:?} {write}", world.now).unwrap();
            }
            "withdraw" => {
                let key = world.sent.pop().expect("it was sent");
                world.journal.withdraw(world.now, &key);
            }
            _ => match line.split_once('/') {
                Some((key, object)) if key.starts_with('!') => {
                    let write = world.claim(&key[1..], object);
                    writeln!(seen, "{:?} {write}", world.now).unwrap();
                }
                Some((key, object)) => {
                    let second = world.now.since(Time::ORIGIN).as_secs();
                    world.journal.add(world.now, key, object, second);
                }
                None => world.now += Duration::from_secs(line.parse().unwrap()),
            },
        }
    }
    expected.assert_eq(&seen);
}

#[test]
fn occurrences_of_one_event_are_one_series() {
    check(
        "next a/o next told next 5 a/o next told next settled",
        expect![[r#"
            0ns idle
            0ns create a.0 x1 0..0
            0ns idle
            5s update a.0 x2 0..5
            5s idle
            settled: true
        "#]],
    );
}

/// Those who wait for the answer wait for nothing else: neither for their turn, nor for a pause, nor for
/// a token.
#[test]
fn a_claim_is_sent_at_once() {
    check(
        "b/o next failed next !a/o told !a/o told !a/o told !a/o told settled",
        expect![[r#"
            0ns create b.0 x1 0..0
            0ns wait until 1s
            0ns create a.1 x1 0..0
            0ns update a.1 x2 0..0
            0ns update a.1 x3 0..0
            0ns update a.1 x4 0..0
            settled: false
        "#]],
    );
}

#[test]
fn a_claim_tells_what_waits_of_its_series() {
    check(
        "a/o 1 a/o 1 !a/o settled !a/o told settled next
         a/o next !a/o a/o told next dropped",
        expect![[r#"
            2s create a.0 x3 0..2
            settled: false
            2s busy
            settled: true
            2s idle
            2s update a.0 x4 0..2
            2s busy
            2s wait until 100s
            dropped: 0
        "#]],
    );
}

/// A claim that failed was none; what was there before is still to be told.
#[test]
fn a_claim_is_withdrawn() {
    check(
        "!a/o withdraw settled next !a/o told !a/o withdraw settled next
         a/o !a/o withdraw next dropped",
        expect![[r#"
            0ns create a.0 x1 0..0
            settled: true
            0ns idle
            0ns create a.1 x1 0..0
            0ns update a.1 x2 0..0
            settled: true
            0ns idle
            0ns update a.1 x3 0..0
            0ns wait until 100s
            dropped: 0
        "#]],
    );
}

/// The event has been deleted, or its name is taken.
#[test]
fn a_claim_becomes_a_new_event() {
    check(
        "!a/o told 5 !a/o renew told 5 !a/o withdraw next
         !b/p renew told !b/p told next dropped",
        expect![[r#"
            0ns create a.0 x1 0..0
            5s update a.0 x2 0..5
            5s create a.1 x1 5..5
            10s update a.1 x2 5..10
            10s idle
            10s create b.2 x1 10..10
            10s create b.3 x1 10..10
            10s update b.3 x2 10..10
            10s idle
            dropped: 0
        "#]],
    );
}

/// There is no room to remember it; it is told nevertheless.
#[test]
fn a_claim_without_room() {
    check(
        "a/o b/p c/q !d/r told dropped settled next told",
        expect![[r#"
            0ns create d.3 x1 0..0
            dropped: 0
            settled: false
            0ns create a.0 x1 0..0
        "#]],
    );
}

#[test]
fn what_occurs_before_it_is_told_is_told_once() {
    check(
        "a/o 1 a/o 1 a/o next 1 a/o a/o told next told next",
        expect![[r#"
            2s create a.0 x3 0..2
            3s update a.0 x5 0..3
            3s idle
        "#]],
    );
}

#[test]
fn events_are_told_in_their_order() {
    check(
        "b/o a/p c/q next told next told next told next",
        expect![[r#"
            0ns create b.0 x1 0..0
            0ns create a.1 x1 0..0
            0ns create c.2 x1 0..0
            0ns idle
        "#]],
    );
}

/// A series that waits for a token keeps counting, and is told when it gets one.
#[test]
fn a_series_waits_for_a_token_of_its_object() {
    check(
        "a/o next told a/o next told 1 a/o settled next 1 a/o b/p next told next 98 next told next
         50 a/o next 50 next told next dropped",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns update a.0 x2 0..0
            settled: true
            1s wait until 100s
            2s create b.1 x1 2..2
            2s wait until 100s
            100s update a.0 x4 0..2
            100s idle
            150s wait until 200s
            200s update a.0 x5 0..150
            200s idle
            dropped: 0
        "#]],
    );
}

/// Of the new events that have to wait the latest is told in the end: it says what holds now.
#[test]
fn of_new_events_only_the_latest_waits() {
    check(
        "a/o next told a/o next told b/o b/o c/o next dropped 100 next told next",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns update a.0 x2 0..0
            0ns wait until 100s
            dropped: 2
            100s create c.2 x1 0..0
            100s idle
        "#]],
    );
}

#[test]
fn tokens_come_back() {
    check(
        "a/o next told b/o next told 200 a/o next told c/o next told a/o next",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns create b.1 x1 0..0
            200s update a.0 x2 0..200
            200s create c.2 x1 200..200
            200s wait until 300s
        "#]],
    );
}

/// T65: an event that the server has forgotten is followed by a new one, which counts anew.
#[test]
fn a_series_whose_event_is_gone_begins_anew() {
    check(
        "a/o next told 5 a/o a/o next gone next told 100 a/o next told",
        expect![[r#"
            0ns create a.0 x1 0..0
            5s update a.0 x3 0..5
            5s create a.1 x2 5..5
            105s update a.1 x3 5..105
        "#]],
    );
}

#[test]
fn a_series_is_over_when_it_was_quiet_for_long() {
    check(
        "a/o next told 1000 a/o next told 1001 a/o next",
        expect![[r#"
            0ns create a.0 x1 0..0
            1000s update a.0 x2 0..1000
            2001s create a.1 x1 2001..2001
        "#]],
    );
}

#[test]
fn a_name_that_is_taken_is_replaced() {
    check(
        "a/o next exists next told next a/p",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns create a.1 x1 0..0
            0ns idle
        "#]],
    );
}

/// An attempt without an answer may have been carried out: then the name is taken by ourselves.
#[test]
fn a_name_that_may_be_ours_is_ours() {
    check(
        "a/o next failed a/o 1 next exists next",
        expect![[r#"
            0ns create a.0 x1 0..0
            1s create a.0 x2 0..0
            1s update a.0 x2 0..0
        "#]],
    );
}

#[test]
fn failures_pause_everything_and_end() {
    check(
        "a/o b/p next failed next 1 next failed next 2 next failed next 4 next failed settled
         dropped next",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns wait until 1s
            1s create b.1 x1 0..0
            1s wait until 3s
            3s create a.0 x1 0..0
            3s wait until 7s
            7s create b.1 x1 0..0
            settled: true
            dropped: 2
            7s idle
        "#]],
    );
}

#[test]
fn a_success_ends_the_pauses() {
    check(
        "a/o b/p next failed 1 next told next failed next",
        expect![[r#"
            0ns create a.0 x1 0..0
            1s create b.1 x1 0..0
            1s create a.0 x1 0..0
            1s idle
        "#]],
    );
}

#[test]
fn a_server_can_ask_for_a_pause_within_reason() {
    check(
        "a/o next failed:20s next a/o b/p c/q next 20 next failed:1h next",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns wait until 20s
            0ns wait until 20s
            20s create a.0 x2 0..0
            20s wait until 70s
        "#]],
    );
}

#[test]
fn what_is_refused_is_not_tried_again() {
    check(
        "a/o next refused next dropped a/o next told",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns idle
            dropped: 1
            0ns create a.1 x1 0..0
        "#]],
    );
}

/// The count of an event that the server knows is not lost with a write: the next one includes it.
#[test]
fn an_update_that_is_refused_is_made_up_for() {
    check(
        "a/o next told a/o next refused next 100 a/o next told dropped",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns update a.0 x2 0..0
            0ns idle
            100s update a.0 x3 0..100
            dropped: 0
        "#]],
    );
}

#[test]
fn a_write_that_was_interrupted_comes_first() {
    check(
        "a/o b/p next interrupted settled next exists next",
        expect![[r#"
            0ns create a.0 x1 0..0
            settled: false
            0ns create a.0 x1 0..0
            0ns create b.1 x1 0..0
        "#]],
    );
}

/// Memory for three series: one that rests makes room, and if none does, what comes is dropped.
#[test]
fn memory_is_bounded() {
    check(
        "a/o next told b/p c/q d/r e/s dropped next told f/t next told next told next told next
         a/o next",
        expect![[r#"
            0ns create a.0 x1 0..0
            dropped: 1
            0ns create b.1 x1 0..0
            0ns create c.2 x1 0..0
            0ns create d.3 x1 0..0
            0ns create f.4 x1 0..0
            0ns idle
            0ns create a.5 x1 0..0
        "#]],
    );
}

/// Memory for three objects: the one that has most of its tokens is forgotten, and begins with all
/// of them.
#[test]
fn memory_of_objects_is_bounded() {
    check(
        "a/o next told b/p next told c/q next told d/r next told e/o next told f/o next told next",
        expect![[r#"
            0ns create a.0 x1 0..0
            0ns create b.1 x1 0..0
            0ns create c.2 x1 0..0
            0ns create d.3 x1 0..0
            0ns create e.4 x1 0..0
            0ns create f.5 x1 0..0
            0ns idle
        "#]],
    );
}

/// What a server knows: by event, how often it was told that it occurred.
#[derive(Clone, Default)]
struct Server {
    events: BTreeMap<u64, u64>,
    forgotten: u64,
}

impl Server {
    fn write(&mut self, write: &Write<u8, ()>) -> Outcome {
        match (write.known, self.events.contains_key(&write.serial)) {
            (true, false) => return Outcome::Gone,
            (false, true) => return Outcome::Exists,
            (true, true) | (false, false) => self.events.insert(write.serial, write.count),
        };
        Outcome::Told
    }

    fn forget(&mut self, serial: u64) {
        self.forgotten += self.events.remove(&serial).unwrap_or_default();
    }

    fn knows(&self) -> u64 {
        self.events.values().sum::<u64>() + self.forgotten
    }
}

/// What is wrong with a server.
#[derive(Clone, Copy)]
enum Flaw {
    /// It forgets the event that is to be written.
    Forgets,
    /// It carries out a write and does not answer.
    IsSilent,
}

#[derive(Clone)]
struct World {
    journal: Journal<u8, u8, ()>,
    server: Server,
    now: Time,
    added: u64,
}

const STEPS: u8 = 7;

impl World {
    fn step(&mut self, step: u8, flaw: Flaw) {
        match step {
            0..=2 => {
                self.journal.add(self.now, step, step / 2, ());
                self.added += 1;
            }
            3 => self.now += Duration::from_secs(100),
            4 => self.now += Duration::from_secs(1001),
            5 => self.send(None),
            _ => self.send(Some(flaw)),
        }
    }

    fn send(&mut self, flaw: Option<Flaw>) {
        let Next::Send(write) = self.journal.next(self.now) else {
            return;
        };
        let outcome = match flaw {
            None => self.server.write(&write),
            Some(Flaw::Forgets) => {
                self.server.forget(write.serial);
                self.server.write(&write)
            }
            Some(Flaw::IsSilent) => {
                self.server.write(&write);
                Outcome::Failed { retry_after: None }
            }
        };
        self.journal.done(self.now, &write.key, outcome, 0.0);
    }

    /// Lets the server answer well until nothing is left to tell.
    fn finish(&mut self) {
        loop {
            match self.journal.next(self.now) {
                Next::Send(write) => {
                    let outcome = self.server.write(&write);
                    self.journal.done(self.now, &write.key, outcome, 0.0);
                }
                Next::WaitUntil(time) => {
                    assert!(time > self.now, "waiting for the past");
                    self.now = time;
                }
                Next::Idle => break,
            }
        }
    }
}

/// In every sequence of six steps, with a server that forgets or with one that does what it does
/// not confirm: in the end each occurrence is known to the server or counted as dropped. None is
/// told twice, and none is lost without being counted.
#[test]
fn every_occurrence_is_told_once_or_counted() {
    for flaw in [Flaw::Forgets, Flaw::IsSilent] {
        let start = World {
            journal: Journal::new(Config {
                attempts: 8,
                memory: 2,
                ..config()
            }),
            server: Server::default(),
            now: Time::ORIGIN,
            added: 0,
        };
        let mut worlds = vec![(start, 0)];
        let (mut dropped, mut unmet) = (0, 0);
        while let Some((world, depth)) = worlds.pop() {
            let mut end = world.clone();
            end.finish();
            assert!(end.journal.is_settled());
            assert_eq!(end.server.knows() + end.journal.dropped(), end.added);
            dropped += end.journal.dropped();
            unmet += end.server.forgotten;
            if depth < 6 {
                worlds.extend((0..STEPS).map(|step| {
                    let mut world = world.clone();
                    world.step(step, flaw);
                    (world, depth + 1)
                }));
            }
        }
        assert!(dropped > 0, "the worlds are large enough for the limits");
        assert_eq!(unmet > 0, matches!(flaw, Flaw::Forgets));
    }
}

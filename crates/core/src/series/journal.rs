//! The series, the tokens of the objects, and the line of writes.

use super::{Config, Next, Outcome, Write};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Remembers which events were told. `K` is what makes occurrences the same event, `O` what the
/// event is about, and `S` what is told of a single occurrence, such as when it was.
///
/// All operations are O(log n) in the number of series.
#[derive(Clone, Debug)]
pub struct Journal<K, O, S> {
    config: Config,
    series: BTreeMap<K, Series<O, S>>,
    /// The series in phase `Resting`, by their last occurrence.
    resting: BTreeSet<(Time, K)>,
    /// The series in phase `Ready`, in their order.
    ready: VecDeque<K>,
    /// How many series are in phase `Sending`.
    sending: usize,
    budgets: BTreeMap<O, Budget<K>>,
    /// The objects that have series in phase `Waiting`, by when they get a token.
    refills: BTreeSet<(Time, O)>,
    /// All objects by when they have all of their tokens again.
    fulls: BTreeSet<(Time, O)>,
    /// Nothing is sent before this.
    pause: Time,
    /// Failures in a row.
    failures: u32,
    /// How many occurrences nobody will be told of.
    dropped: u64,
    next_serial: u64,
}

#[derive(Clone, Debug)]
struct Series<O, S> {
    object: O,
    first: S,
    last: S,
    last_at: Time,
    count: u64,
    /// The part of `count` that the server knows; 0 means that it does not know the event.
    told: u64,
    serial: u64,
    phase: Phase,
    attempts: u32,
    /// The count in the first write that may have been carried out, though nobody said so.
    unsure: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resting,
    Waiting,
    Ready,
    Sending {
        /// The count that is being told.
        count: u64,
    },
}

/// The tokens of an object, kept as the moment when it has all of them again: each write moves that
/// moment on by the time that a token takes to come back.
#[derive(Clone, Debug)]
struct Budget<K> {
    full: Time,
    waiting: VecDeque<K>,
    /// The one of those waiting that the server does not know.
    unknown: Option<K>,
}

// === impl Journal ===

impl<K: Ord + Clone, O: Ord + Clone, S: Clone> Journal<K, O, S> {
    /// An empty one.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            series: BTreeMap::new(),
            resting: BTreeSet::new(),
            ready: VecDeque::new(),
            sending: 0,
            budgets: BTreeMap::new(),
            refills: BTreeSet::new(),
            fulls: BTreeSet::new(),
            pause: Time::ORIGIN,
            failures: 0,
            dropped: 0,
            next_serial: 0,
        }
    }

    /// Takes in an occurrence of the event `key`, which is about `object`.
    pub fn add(&mut self, now: Time, key: K, object: O, occurrence: S) {
        self.refill(now);
        self.forget_quiet(now);
        if let Some(series) = self.series.get_mut(&key) {
            series.count += 1;
            series.last = occurrence;
            let before = std::mem::replace(&mut series.last_at, now);
            if series.phase == Phase::Resting {
                let resting = (before, key);
                self.resting.remove(&resting);
                self.line_up(now, resting.1);
            }
            return;
        }
        if self.series.len() >= self.config.memory {
            let Some((_, oldest)) = self.resting.pop_first() else {
                self.dropped += 1;
                return;
            };
            self.forget(&oldest);
        }
        let series = Series {
            object,
            first: occurrence.clone(),
            last: occurrence,
            last_at: now,
            count: 1,
            told: 0,
            serial: self.serial(),
            phase: Phase::Resting,
            attempts: 0,
            unsure: None,
        };
        self.series.insert(key.clone(), series);
        self.line_up(now, key);
    }

    /// What to do next.
    pub fn next(&mut self, now: Time) -> Next<K, S> {
        self.refill(now);
        if now < self.pause && !self.ready.is_empty() {
            return Next::WaitUntil(self.pause);
        }
        while let Some(key) = self.ready.pop_front() {
            // Whatever is in the line is a series.
            if let Some(write) = self.hand_out(&key) {
                return Next::Send(write);
            }
        }
        match self.refills.first() {
            Some((time, _)) => Next::WaitUntil(*time),
            None => Next::Idle,
        }
    }

    /// Takes in an occurrence, and hands out the write that tells it and all that waits of the same
    /// series. It waits neither for its turn nor for a token: this is for those who wait for the answer
    /// themselves.
    ///
    /// `None` while a write of the series is under way; try again when it is done. The write is
    /// answered by [`done`](Self::done) with [`Outcome::Told`], or by [`withdraw`](Self::withdraw).
    pub fn claim(&mut self, now: Time, key: &K, object: &O, occurrence: S) -> Option<Write<K, S>> {
        let phase = self.series.get(key).map(|series| series.phase);
        if matches!(phase, Some(Phase::Sending { .. })) {
            return None;
        }
        self.add(now, key.clone(), object.clone(), occurrence.clone());
        // It is in one of the lines now, at the latest since this occurrence.
        self.ready.retain(|ready| ready != key);
        if let Some(budget) = self.budgets.get_mut(object) {
            budget.waiting.retain(|waiting| waiting != key);
            budget.unknown.take_if(|unknown| unknown == key);
            if budget.waiting.is_empty() {
                let time = next_token(budget.full, &self.config);
                self.refills.remove(&(time, object.clone()));
            }
        }
        if !self.series.contains_key(key) {
            // There is no room to remember it. Nobody waits for `done` then.
            self.dropped -= 1;
            return Some(Write {
                key: key.clone(),
                serial: self.serial(),
                known: false,
                count: 1,
                first: occurrence.clone(),
                last: occurrence,
            });
        }
        self.hand_out(key)
    }

    /// The write of a series that is under way, once more and as that of a new event: because its name is
    /// taken, or because the server has forgotten the one that it knew.
    pub fn renew(&mut self, key: &K) -> Option<Write<K, S>> {
        let serial = self.serial();
        let series = self.series.get_mut(key)?;
        if series.told > 0 {
            series.count -= series.told;
            series.told = 0;
            series.first = series.last.clone();
        }
        series.serial = serial;
        series.unsure = None;
        self.sending -= 1;
        self.hand_out(key)
    }

    /// Takes back the occurrence of a [`claim`](Self::claim) whose write failed. Others of the series
    /// that waited go on waiting.
    pub fn withdraw(&mut self, now: Time, key: &K) {
        let Some(series) = self.series.get_mut(key) else {
            return;
        };
        if !matches!(series.phase, Phase::Sending { .. }) {
            return;
        }
        self.sending -= 1;
        series.count -= 1;
        if series.count > series.told {
            self.line_up(now, key.clone());
        } else if series.told > 0 {
            self.rest(key);
        } else {
            self.series.remove(key);
        }
    }

    /// Takes in what came of the write of `key`. `random` is a number drawn evenly from `[0, 1)`.
    pub fn done(&mut self, now: Time, key: &K, outcome: Outcome, random: f64) {
        let fresh = self.next_serial;
        let Some(series) = self.series.get_mut(key) else {
            return;
        };
        let Phase::Sending { count } = series.phase else {
            return;
        };
        self.sending -= 1;
        if !matches!(outcome, Outcome::Failed { .. } | Outcome::Interrupted) {
            self.failures = 0;
        }
        match outcome {
            Outcome::Told => self.settle(now, key, count),
            Outcome::Exists => {
                // It is ours if the answer to an earlier attempt never came.
                if let Some(count) = series.unsure {
                    self.settle(now, key, count);
                } else {
                    series.serial = fresh;
                    self.next_serial += 1;
                    self.retry(key);
                }
            }
            Outcome::Gone => {
                series.count -= series.told;
                series.told = 0;
                series.first = series.last.clone();
                series.serial = fresh;
                series.unsure = None;
                self.next_serial += 1;
                self.retry(key);
            }
            Outcome::Refused => self.give_up(key),
            Outcome::Failed { retry_after } => {
                series.unsure.get_or_insert(count);
                self.failures = self.failures.saturating_add(1);
                let asked = retry_after.unwrap_or_default();
                let delay = self.config.backoff.delay(self.failures, random);
                self.pause = now + delay.max(asked.min(self.config.longest_retry_after));
                self.retry(key);
            }
            Outcome::Interrupted => {
                series.unsure.get_or_insert(count);
                series.phase = Phase::Ready;
                self.ready.push_front(key.clone());
            }
        }
    }

    /// Whether nothing is being sent or could be sent. Series that wait for a token do not count.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sending == 0 && self.ready.is_empty()
    }

    /// How many occurrences nobody will be told of.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The write that tells all of a series, which is then under way.
    fn hand_out(&mut self, key: &K) -> Option<Write<K, S>> {
        let series = self.series.get_mut(key)?;
        series.phase = Phase::Sending {
            count: series.count,
        };
        self.sending += 1;
        Some(Write {
            key: key.clone(),
            serial: series.serial,
            known: series.told > 0,
            count: series.count,
            first: series.first.clone(),
            last: series.last.clone(),
        })
    }

    /// The server knows of `count` occurrences.
    fn settle(&mut self, now: Time, key: &K, count: u64) {
        let Some(series) = self.series.get_mut(key) else {
            return;
        };
        series.told = count;
        series.attempts = 0;
        series.unsure = None;
        if series.count > count {
            self.line_up(now, key.clone());
        } else {
            self.rest(key);
        }
    }

    /// Puts a series back into the line, behind the others, unless it was there too often.
    fn retry(&mut self, key: &K) {
        let Some(series) = self.series.get_mut(key) else {
            return;
        };
        series.attempts += 1;
        if series.attempts >= self.config.attempts {
            self.give_up(key);
        } else {
            series.phase = Phase::Ready;
            self.ready.push_back(key.clone());
        }
    }

    /// Stops to try. What the server knows is updated with the next occurrence; the rest is lost.
    fn give_up(&mut self, key: &K) {
        let Some(series) = self.series.get_mut(key) else {
            return;
        };
        series.attempts = 0;
        series.unsure = None;
        if series.told > 0 {
            self.rest(key);
        } else {
            self.forget(key);
        }
    }

    fn rest(&mut self, key: &K) {
        if let Some(series) = self.series.get_mut(key) {
            series.phase = Phase::Resting;
            self.resting.insert((series.last_at, key.clone()));
        }
    }

    /// Puts a series into the line of writes if its object has a token, and into that of its object
    /// otherwise.
    fn line_up(&mut self, now: Time, key: K) {
        let Some(object) = self.series.get(&key).map(|series| series.object.clone()) else {
            return;
        };
        if !self.budgets.contains_key(&object) {
            self.open_budget(now, object.clone());
        }
        let (series, budget) = (self.series.get_mut(&key), self.budgets.get_mut(&object));
        let (Some(series), Some(budget)) = (series, budget) else {
            return;
        };
        let free = budget.full.since(now) <= tolerance(&self.config);
        if free && budget.waiting.is_empty() {
            series.phase = Phase::Ready;
            self.ready.push_back(key);
            return self.take_token(now, &object);
        }
        series.phase = Phase::Waiting;
        if budget.waiting.is_empty() {
            let time = next_token(budget.full, &self.config);
            self.refills.insert((time, object));
        }
        budget.waiting.push_back(key.clone());
        if series.told == 0
            && let Some(earlier) = budget.unknown.replace(key)
        {
            budget.waiting.retain(|waiting| *waiting != earlier);
            self.forget(&earlier);
        }
    }

    /// Lets those go on whose objects have got a token.
    fn refill(&mut self, now: Time) {
        while let Some((time, _)) = self.refills.first()
            && *time <= now
        {
            let Some((_, object)) = self.refills.pop_first() else {
                return;
            };
            let Some(budget) = self.budgets.get_mut(&object) else {
                continue;
            };
            let Some(key) = budget.waiting.pop_front() else {
                continue;
            };
            if budget.unknown.as_ref() == Some(&key) {
                budget.unknown = None;
            }
            let more = !budget.waiting.is_empty();
            if let Some(series) = self.series.get_mut(&key) {
                series.phase = Phase::Ready;
                self.ready.push_back(key);
            }
            self.take_token(now, &object);
            if more && let Some(budget) = self.budgets.get(&object) {
                let time = next_token(budget.full, &self.config);
                self.refills.insert((time, object));
            }
        }
    }

    fn take_token(&mut self, now: Time, object: &O) {
        if let Some(budget) = self.budgets.get_mut(object) {
            let full = budget.full.max(now) + self.config.refill;
            let before = (std::mem::replace(&mut budget.full, full), object.clone());
            self.fulls.remove(&before);
            self.fulls.insert((full, before.1));
        }
    }

    /// Gives an object all of its tokens. If there are too many objects, the one that has most of
    /// its tokens is forgotten; not one that is waited for, of which there are fewer than series.
    fn open_budget(&mut self, now: Time, object: O) {
        while let Some((full, _)) = self.fulls.first()
            && *full <= now
        {
            // It is as good as a new one.
            if let Some((_, other)) = self.fulls.pop_first() {
                self.budgets.remove(&other);
            }
        }
        if self.budgets.len() >= self.config.memory {
            let budgets = &self.budgets;
            let free = |object| {
                budgets
                    .get(object)
                    .is_some_and(|other| other.waiting.is_empty())
            };
            let victim = self.fulls.iter().find(|(_, object)| free(object)).cloned();
            if let Some(victim) = victim {
                self.fulls.remove(&victim);
                self.budgets.remove(&victim.1);
            }
        }
        self.fulls.insert((now, object.clone()));
        let budget = Budget {
            full: now,
            waiting: VecDeque::new(),
            unknown: None,
        };
        self.budgets.insert(object, budget);
    }

    fn forget_quiet(&mut self, now: Time) {
        while let Some((last_at, _)) = self.resting.first()
            && now.since(*last_at) > self.config.quiet
        {
            if let Some((_, key)) = self.resting.pop_first() {
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &K) {
        if let Some(series) = self.series.remove(key) {
            self.dropped += series.count - series.told;
        }
    }

    fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial - 1
    }
}

/// How far away the moment of all tokens may be when there is one to take.
fn tolerance(config: &Config) -> Duration {
    config.refill.saturating_mul(config.burst.saturating_sub(1))
}

/// When an object that has all tokens at `full` has one.
fn next_token(full: Time, config: &Config) -> Time {
    Time::ORIGIN + full.since(Time::ORIGIN + tolerance(config))
}

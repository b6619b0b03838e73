//! When a server does not answer, and when it does again (rule R15a).
//!
//! An [`Outage`] is told how runs and sources fare ([`failed`](Outage::failed), [`answered`](Outage::answered), ...)
//! and says how fast runs may start ([`start`](Outage::start)) and which keys are to run before their delay is over
//! ([`next`](Outage::next)). It has no clock: `now` is an argument.
//!
//! ```text
//! phase       runs start               goes on to
//! Fine        as the queue says        Out after three failures in a row, or one and 10 s without an answer
//! Out         one a second             Recovering with the first answer
//! Recovering  one at once, then two,   Fine when all that waited has come back; Out after three failures in a
//!             up to the concurrency    row
//! ```
//!
//! # Guarantees
//!
//! - While nothing fails, nothing is held back.
//! - While the server does not answer, a run is tried every second as long as any is ready, and one of a key that
//!   waits out a delay every five seconds if none is. So the first answer comes within seconds of the server's
//!   recovery, however long it was away and however long the delays of the keys have become.
//! - With the first answer, the keys whose last run failed because the server did not answer come back, at most as
//!   many at once as runs have gone well, plus one. None comes back before the time that the server asked for.
//! - A key that fails for the server's sake again after it came back has only its own delays, until there is
//!   another outage: a server that answers others is no reason to hurry.

use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What an [`Outage`] goes by.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// How many failures in a row, without any answer, make an outage. Default: 3, so that one or two that are due
    /// to chance change nothing.
    pub failures: u32,
    /// After how long without any answer fewer failures make one. Default: 10 s. A key may have delays that are much
    /// longer.
    pub patience: Duration,
    /// How far starts of runs are apart while the server does not answer. Default: 1 s.
    pub spacing: Duration,
    /// How long after the last attempt a key is tried before its time. Default: 5 s.
    pub probing: Duration,
    /// The most runs at once; 0 means any number. Default: 16.
    pub concurrency: usize,
    /// How far the reports of failures are apart while the server does not answer. Default: 1 min.
    pub reporting: Duration,
}

/// Watches over what a server does; see the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Outage<K> {
    config: Config,
    phase: Phase<K>,
    /// Failures in a row, and when the first of them was.
    row: u32,
    row_began: Time,
    failed_at: Time,
    /// The keys that wait out a delay because the server did not answer them.
    held: BTreeMap<K, Held>,
    /// Those of them that have not come back yet, in the order in which the server may be asked for them.
    order: BTreeMap<Order, K>,
    failures: u64,
    /// The latest attempt of anything to reach the server.
    attempted: Time,
    reported: Option<Time>,
    /// An outage has begun of which nobody has been told.
    begun: bool,
}

#[derive(Clone, Debug)]
enum Phase<K> {
    Fine,
    Out {
        since: Time,
        /// When the next run may start.
        next_start: Time,
        /// When a key is tried before its time.
        next_probe: Time,
    },
    Recovering(Recovery<K>),
}

#[derive(Clone, Debug)]
struct Recovery<K> {
    /// How many runs there may be at once.
    window: usize,
    /// When it grows by itself: a run that takes long must not keep the others waiting.
    grows: Time,
    /// What has started since the recovery began, and runs.
    running: BTreeSet<K>,
    /// What came back and has not started.
    coming: BTreeSet<K>,
}

/// The place of a key: when it may come back, and the number of its failure.
type Order = (Time, u64);

#[derive(Clone, Debug)]
struct Held {
    order: Order,
    /// Whether it came back in this recovery already.
    tried: bool,
    /// Whether it runs, so that it need not come back.
    running: bool,
}

/// How long a recovery waits for runs to go well before it lets twice as many run.
const GROWTH: Duration = Duration::from_secs(1);

/// Whether a run may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It may; say so with [`Outage::started`].
    Now,
    /// Not before this time, unless another call changes that.
    At(Time),
}

/// What to do besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Run this key now, although its delay is not over.
    Run(K),
    /// Nothing until then.
    WaitUntil(Time),
    /// Nothing until another call changes that.
    Idle,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether an outage began with it.
    pub begun: bool,
    /// Whether somebody is to hear of it. While the server does not answer, the failure of one run a minute stands for
    /// all.
    pub report: bool,
}

/// What follows from an answer: an outage is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// When it began.
    pub since: Time,
    /// How many keys wait for the server.
    pub waiting: usize,
}

// === impl Outage ===

impl<K: Ord + Clone> Outage<K> {
    /// A server that answers, as far as is known.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            phase: Phase::Fine,
            row: 0,
            row_began: Time::ORIGIN,
            failed_at: Time::ORIGIN,
            held: BTreeMap::new(),
            order: BTreeMap::new(),
            failures: 0,
            attempted: Time::ORIGIN,
            reported: None,
            begun: false,
        }
    }

    /// Whether the server does not answer.
    #[must_use]
    pub fn is_out(&self) -> bool {
        matches!(self.phase, Phase::Out { .. })
    }

    /// Whether an outage has begun since the last call.
    pub fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.begun)
    }

    /// How many keys wait out a delay because the server did not answer them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Whether a run may start now.
    #[must_use]
    pub fn start(&self, now: Time) -> Start {
        match &self.phase {
            Phase::Fine => Start::Now,
            Phase::Out { next_start, .. } if *next_start <= now => Start::Now,
            Phase::Out { next_start, .. } => Start::At(*next_start),
            Phase::Recovering(recovery) if recovery.running.len() < recovery.window => Start::Now,
            Phase::Recovering(recovery) => Start::At(recovery.grows),
        }
    }

    /// Takes in that a run of `key` starts.
    pub fn started(&mut self, now: Time, key: &K) {
        self.attempted = now;
        if let Some(held) = self.held.get_mut(key) {
            held.running = true;
            self.order.remove(&held.order);
        }
        match &mut self.phase {
            Phase::Fine => {}
            Phase::Out {
                next_start,
                next_probe,
                since: _,
            } => {
                *next_start = now + self.config.spacing;
                *next_probe = now + self.config.probing;
            }
            Phase::Recovering(recovery) => {
                recovery.coming.remove(key);
                recovery.running.insert(key.clone());
            }
        }
    }

    /// Takes in that a run of `key` has failed because the server did not answer, and what the server has asked
    /// for, from now on.
    pub fn failed(&mut self, now: Time, key: &K, retry_after: Option<Duration>) -> Verdict {
        let mut tried = self.release(key).is_some_and(|held| held.tried);
        if let Phase::Recovering(recovery) = &mut self.phase {
            recovery.running.remove(key);
            recovery.window = (recovery.window / 2).max(1);
        } else {
            tried = false;
        }
        let order = self.place(now + retry_after.unwrap_or_default());
        let held = Held {
            order,
            tried,
            running: false,
        };
        self.held.insert(key.clone(), held);
        if !tried {
            self.order.insert(order, key.clone());
        }
        self.count_failure(now, true)
    }

    /// Takes in that a source has failed because the server did not answer.
    ///
    /// Sources have pauses of their own, which are short enough not to be cut; an [answer](Self::answered) ends them.
    pub fn source_failed(&mut self, now: Time) {
        self.attempted = self.attempted.max(now);
        self.count_failure(now, false);
    }

    /// Takes in that a run of `key` has ended in any other way.
    pub fn ended(&mut self, key: &K) {
        self.release(key);
        let all = self.config.concurrency();
        if let Phase::Recovering(recovery) = &mut self.phase {
            recovery.running.remove(key);
            recovery.window = recovery.window.saturating_add(1).min(all);
        }
        self.settle();
    }

    /// Takes in that the server has answered something, `at` this time. Old news are none.
    pub fn answered(&mut self, at: Time) -> Option<Over> {
        if self.row == 0 || at < self.failed_at {
            return None;
        }
        self.row = 0;
        let Phase::Out { since, .. } = self.phase else {
            return None;
        };
        self.phase = Phase::Recovering(Recovery {
            window: 1,
            grows: at + GROWTH,
            running: BTreeSet::new(),
            coming: BTreeSet::new(),
        });
        let waiting = self.held.len();
        Some(Over { since, waiting })
    }

    /// Takes in that the object behind `key` is gone. A run of it that is under way [ends](Self::ended) all the
    /// same.
    pub fn forget(&mut self, key: &K) {
        self.release(key);
        self.settle();
    }

    /// Says what to do now. Ask again until it is not [`Next::Run`].
    pub fn next(&mut self, now: Time) -> Next<K> {
        self.begin_by_patience(now);
        let patience = match self.phase {
            Phase::Fine | Phase::Recovering(_) if self.row > 0 => {
                self.row_began + self.config.patience
            }
            Phase::Fine | Phase::Recovering(_) | Phase::Out { .. } => Time::MAX,
        };
        let wait = match &mut self.phase {
            Phase::Fine => Time::MAX,
            Phase::Out { next_probe, .. } if *next_probe > now => *next_probe,
            Phase::Out { next_probe, .. } => {
                *next_probe = now + self.config.probing;
                let wait = *next_probe;
                if let Some((&(not_before, _), key)) = self.order.first_key_value()
                    && not_before <= now
                {
                    let key = key.clone();
                    // The next one is another.
                    self.put_last(now, &key);
                    return Next::Run(key);
                }
                wait
            }
            Phase::Recovering(recovery) => {
                let all = self.config.concurrency();
                if recovery.grows <= now {
                    recovery.window = recovery.window.saturating_mul(2).min(all);
                    recovery.grows = now + GROWTH;
                }
                match self.come_back(now) {
                    Ok(key) => return Next::Run(key),
                    Err(wait) => wait,
                }
            }
        };
        self.settle();
        match wait.min(patience) {
            Time::MAX => Next::Idle,
            wait => Next::WaitUntil(wait),
        }
    }

    /// In a recovery, the next key that comes back, or when there may be one.
    fn come_back(&mut self, now: Time) -> Result<K, Time> {
        let Phase::Recovering(recovery) = &mut self.phase else {
            return Err(Time::MAX);
        };
        if recovery.running.len() + recovery.coming.len() >= recovery.window {
            return Err(recovery.grows);
        }
        let earliest = match self.order.first_key_value() {
            None => Time::MAX,
            Some((&(not_before, _), _)) if not_before > now => not_before,
            Some((&order, key)) => {
                let key = key.clone();
                self.order.remove(&order);
                if let Some(held) = self.held.get_mut(&key) {
                    held.tried = true;
                }
                recovery.coming.insert(key.clone());
                return Ok(key);
            }
        };
        let full = recovery.window >= self.config.concurrency();
        Err(if full {
            earliest
        } else {
            earliest.min(recovery.grows)
        })
    }

    /// One more failure in a row.
    fn count_failure(&mut self, now: Time, of_run: bool) -> Verdict {
        if self.row == 0 {
            self.row_began = now;
        }
        self.row = self.row.saturating_add(1);
        self.failed_at = now;
        let begun = !self.is_out() && self.row >= self.config.failures;
        // One that begins an outage is told of like those that led to it.
        let report = !self.is_out()
            || self
                .reported
                .is_none_or(|at| now.since(at) >= self.config.reporting);
        if report && of_run {
            self.reported = Some(now);
        }
        if begun {
            self.begin(now);
        }
        Verdict { begun, report }
    }

    /// Few failures make an outage too when there is no answer for long.
    fn begin_by_patience(&mut self, now: Time) {
        let lasts = self.row > 0 && now.since(self.row_began) >= self.config.patience;
        if lasts && !self.is_out() {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Time) {
        self.begun = true;
        self.phase = Phase::Out {
            since: self.row_began,
            next_start: now + self.config.spacing,
            next_probe: self.attempted.max(self.failed_at) + self.config.probing,
        };
        for (key, held) in &mut self.held {
            held.tried = false;
            if !held.running {
                self.order.insert(held.order, key.clone());
            }
        }
    }

    /// The key waits for the server no longer.
    fn release(&mut self, key: &K) -> Option<Held> {
        let held = self.held.remove(key)?;
        self.order.remove(&held.order);
        if let Phase::Recovering(recovery) = &mut self.phase {
            recovery.coming.remove(key);
        }
        Some(held)
    }

    fn put_last(&mut self, now: Time, key: &K) {
        let order = self.place(now);
        if let Some(held) = self.held.get_mut(key) {
            self.order.remove(&held.order);
            held.order = order;
            self.order.insert(order, key.clone());
        }
    }

    /// A place for a key that may come back at this time, behind those that may then.
    fn place(&mut self, not_before: Time) -> Order {
        self.failures += 1;
        (not_before, self.failures)
    }

    /// A recovery is over when all that waited has come back, and as many runs as may go on at once.
    fn settle(&mut self) {
        if let Phase::Recovering(recovery) = &self.phase
            && self.order.is_empty()
            && recovery.coming.is_empty()
            && recovery.window >= self.config.concurrency()
        {
            self.phase = Phase::Fine;
        }
    }
}

// === impl Config ===

impl Config {
    /// Sets the concurrency.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// The most runs at once. Where there is no limit, a recovery has got far enough with some hundreds.
    fn concurrency(&self) -> usize {
        match self.concurrency {
            0 => 256,
            bound => bound,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            failures: 3,
            patience: Duration::from_secs(10),
            spacing: Duration::from_secs(1),
            probing: Duration::from_secs(5),
            concurrency: 16,
            reporting: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests;

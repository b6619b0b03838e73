//! The rules of the queue once more, as naive as can be: a list of records that is searched from
//! end to end, and histories instead of summaries. Nothing here is shared with the queue but the
//! words of its interface.

use crate::queue::{
    Action, Class, Config, Counts, Next, Outcome, Priority, Queue, State, Timer, Trigger,
};
use crate::time::Time;
use std::time::Duration;

/// One call of the queue, or some time between two calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Add {
        key: char,
        cause: &'a str,
        class: Class,
        priority: Priority,
    },
    Schedule {
        key: char,
        after: Duration,
    },
    Next,
    Done {
        key: char,
        outcome: Outcome,
        random: f64,
    },
    Forget {
        key: char,
    },
    /// Of a key that runs.
    Gate {
        key: char,
        time: Duration,
    },
    Open {
        key: char,
    },
    /// Of a key that runs.
    Damp {
        key: char,
        time: Duration,
        firm: bool,
    },
    Pass {
        time: Duration,
    },
    Close,
    /// The last one that is not `next`, `done` or the time that passes.
    Drain,
}

/// What `next` says, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said<'a> {
    Run {
        key: char,
        causes: Vec<&'a str>,
        omitted: u32,
        timer: Option<Timer>,
        priority: Priority,
        failures: u32,
        ready_since: Time,
    },
    WaitUntil(Time),
    Idle,
}

/// What can be asked about a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known<'a> {
    pub(super) state: State,
    pub(super) next_run: Option<Time>,
    pub(super) failures: u32,
    pub(super) causes: Vec<&'a str>,
    pub(super) gate: Option<Time>,
    pub(super) damped: Option<Time>,
}

/// A queue and its model, which go through the same steps.
#[derive(Clone, Debug)]
pub(super) struct Pair<'a> {
    pub(super) queue: Queue<char, &'a str>,
    pub(super) model: Model<'a>,
    pub(super) now: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Model<'a> {
    config: Config,
    now: Time,
    records: Vec<Record<'a>>,
    /// Numbers everything whose order matters.
    order: u64,
    /// What the rate limit has saved up at `credit_at`, as time.
    credit: Duration,
    credit_at: Time,
    closed: bool,
    draining: bool,
}

#[derive(Clone, Debug)]
struct Record<'a> {
    key: char,
    failures: u32,
    /// Moments in a row.
    moments: u32,
    /// The runs before the end of a hold since the last success, and the moment of the next one.
    early: (u32, Time),
    /// Whether it need not wait for more triggers.
    drained: bool,
    /// All since the last start.
    triggers: Vec<Arrival<'a>>,
    timer: Option<Requested>,
    gate: Option<Time>,
    /// Until when it is damped, and whether that is firm.
    damped: Option<(Time, bool)>,
    phase: Phase,
}

#[derive(Clone, Debug)]
struct Arrival<'a> {
    at: Time,
    cause: &'a str,
    class: Class,
    priority: Priority,
    starts: Starts,
}

/// Whether a trigger may start the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starts {
    /// It just comes along.
    No,
    /// When the next early run may be.
    Early,
    Now,
}

#[derive(Clone, Copy, Debug)]
struct Requested {
    at: Time,
    hold: bool,
    priority: Priority,
}

#[derive(Clone, Debug)]
enum Phase {
    Waiting {
        order: u64,
    },
    Ready {
        since: Time,
        order: u64,
        lane: Priority,
        timer: Option<Requested>,
        early: bool,
    },
    Running {
        priority: Priority,
        early: bool,
        forgotten: bool,
        asked: Option<Requested>,
    },
}

// === impl Pair ===

impl<'a> Pair<'a> {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            queue: Queue::new(config),
            model: Model::new(config),
            now: Time::ORIGIN,
        }
    }

    /// Takes the step on both sides, and returns what `next` said if it was asked.
    pub(super) fn take(&mut self, step: Step<'a>) -> Result<Option<Said<'a>>, String> {
        let Self { queue, model, now } = self;
        match step {
            Step::Add {
                key,
                cause,
                class,
                priority,
            } => {
                queue.add(
                    *now,
                    Trigger {
                        key,
                        cause,
                        class,
                        priority,
                    },
                );
                model.add(*now, key, cause, class, priority);
            }
            Step::Schedule { key, after } => {
                queue.schedule_at(*now, key, *now + after);
                model.schedule(*now, key, *now + after);
            }
            Step::Next => {
                let (said, expected) = (said(queue.next(*now)), model.next(*now));
                return if said == expected {
                    Ok(Some(said))
                } else {
                    Err(format!("said      {said:?}\ninstead of {expected:?}"))
                };
            }
            Step::Done {
                key,
                outcome,
                random,
            } => {
                queue.done(*now, &key, outcome, random);
                model.done(*now, key, outcome, random);
            }
            Step::Forget { key } => {
                queue.forget(&key);
                model.forget(key);
            }
            Step::Gate { key, time } => {
                queue.close_gate(&key, *now + time);
                model.record(key).gate = Some(*now + time);
            }
            Step::Open { key } => {
                queue.open_gate(*now, &key);
                model.open(*now, key);
            }
            Step::Damp { key, time, firm } => {
                queue.damp(&key, *now + time, firm);
                model.damp(key, *now + time, firm);
            }
            Step::Pass { time } => *now += time,
            Step::Close => {
                queue.close();
                model.closed = true;
            }
            Step::Drain => {
                queue.drain(*now);
                model.drain(*now);
            }
        }
        Ok(None)
    }

    /// Compares everything that can be asked. Section A 10: among them how many keys are ready, held
    /// and running, after every step of every script.
    pub(super) fn compare(&self, keys: impl IntoIterator<Item = char>) -> Result<(), String> {
        let (counts, expected) = (self.queue.counts(), self.model.counts());
        if counts != expected {
            return Err(format!("counts are {counts:?}\ninstead of {expected:?}"));
        }
        let oldest = self.queue.oldest_ready();
        if oldest != self.model.oldest_ready() {
            return Err(format!(
                "oldest is {oldest:?} instead of {:?}",
                self.model.oldest_ready()
            ));
        }
        for key in keys {
            let (known, expected) = (self.known(key), self.model.known(key));
            if known != expected {
                return Err(format!("{key} is {known:?}\ninstead of {expected:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn known(&self, key: char) -> Option<Known<'a>> {
        self.queue.entry(&key).map(|entry| Known {
            state: entry.state,
            next_run: entry.next_run,
            failures: entry.failures,
            causes: entry.causes.iter().copied().collect(),
            gate: entry.gate_closed_until,
            damped: entry.damped_until,
        })
    }
}

fn said(next: Next<char, &str>) -> Said<'_> {
    match next {
        Next::Run(run) => Said::Run {
            key: run.key,
            causes: run.causes.iter().copied().collect(),
            omitted: run.causes.omitted(),
            timer: run.timer,
            priority: run.priority,
            failures: run.failures,
            ready_since: run.ready_since,
        },
        Next::WaitUntil(time) => Said::WaitUntil(time),
        Next::Idle => Said::Idle,
    }
}

// === impl Model ===

impl<'a> Model<'a> {
    fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            now: Time::ORIGIN,
            records: Vec::new(),
            order: 0,
            credit: Duration::MAX,
            credit_at: Time::ORIGIN,
            closed: false,
            draining: false,
        }
    }

    fn add(&mut self, now: Time, key: char, cause: &'a str, class: Class, priority: Priority) {
        self.pass(now);
        let order = self.number();
        if !self.records.iter().any(|record| record.key == key) {
            self.records.push(Record {
                key,
                failures: 0,
                moments: 0,
                early: (0, Time::ORIGIN),
                drained: false,
                triggers: Vec::new(),
                timer: None,
                gate: None,
                damped: None,
                phase: Phase::Waiting { order },
            });
        }
        let ageing = self.config.ageing;
        let record = self.record(key);

        let held = matches!(record.phase, Phase::Waiting { .. })
            && record.timer.is_some_and(|timer| timer.hold);
        let mut before = record.triggers.iter().map(|trigger| trigger.starts);
        let starts = if !held || class == Class::Desired || before.any(|it| it == Starts::Now) {
            Starts::Now
        } else if record.ends_early(class) || record.is_asked() {
            Starts::Early
        } else {
            Starts::No
        };
        if class == Class::Desired && record.damped.is_some_and(|(_, firm)| !firm) {
            record.damped = None;
        }
        record.triggers.push(Arrival {
            at: now,
            cause,
            class,
            priority,
            starts,
        });
        match &mut record.phase {
            Phase::Waiting { order: place } if starts != Starts::No => *place = order,
            Phase::Ready {
                since,
                order: place,
                lane,
                ..
            } => {
                if priority == Priority::Normal && *lane == Priority::Low && *since + ageing > now {
                    (*lane, *place) = (Priority::Normal, order);
                }
            }
            Phase::Waiting { .. } | Phase::Running { .. } => {}
        }
        self.settle(key);
    }

    fn schedule(&mut self, now: Time, key: char, at: Time) {
        self.pass(now);
        let order = self.number();
        if !self.records.iter().any(|record| record.key == key) {
            let phase = Phase::Waiting { order };
            self.records.push(Record {
                key,
                failures: 0,
                moments: 0,
                early: (0, Time::ORIGIN),
                drained: false,
                triggers: Vec::new(),
                timer: None,
                gate: None,
                damped: None,
                phase,
            });
        }
        let record = self.record(key);
        let asked = Requested {
            at,
            hold: false,
            priority: Priority::Normal,
        };
        match &mut record.phase {
            Phase::Waiting { order: place } if at < Time::MAX => {
                if record.timer.is_none_or(|timer| !timer.hold) {
                    record.timer = Some(asked.or(record.timer));
                    *place = order;
                }
            }
            Phase::Running { asked: earlier, .. } if at < Time::MAX => {
                *earlier = Some(asked.or(*earlier));
            }
            Phase::Waiting { .. } | Phase::Running { .. } | Phase::Ready { .. } => {}
        }
        self.settle(key);
        self.clear(key);
    }

    fn open(&mut self, now: Time, key: char) {
        self.pass(now);
        let order = self.number();
        if !self.records.iter().any(|record| record.key == key) {
            return;
        }
        let record = self.record(key);
        record.gate = None;
        if let Phase::Waiting { order: place } = &mut record.phase {
            *place = order;
        }
        self.settle(key);
        self.clear(key);
    }

    /// In the order of the queue's places, in which they were added if nothing was removed before.
    fn drain(&mut self, now: Time) {
        self.pass(now);
        self.draining = true;
        let keys: Vec<char> = self.records.iter().map(|record| record.key).collect();
        for key in keys {
            let order = self.number();
            let record = self.record(key);
            record.drained = true;
            if let Phase::Waiting { order: place } = &mut record.phase {
                *place = order;
                (record.timer, record.failures, record.damped) = (None, 0, None);
                if !record.is_asked() {
                    record.triggers.clear();
                }
                for trigger in &mut record.triggers {
                    trigger.starts = Starts::Now;
                }
            }
            self.settle(key);
            self.clear(key);
        }
    }

    fn damp(&mut self, key: char, until: Time, firm: bool) {
        let record = self.record(key);
        let changed = record
            .triggers
            .iter()
            .any(|trigger| trigger.class == Class::Desired);
        if firm || !changed {
            record.damped = Some((until, firm));
        }
    }

    /// Removes a record that has nothing to wait for any more.
    fn clear(&mut self, key: char) {
        let now = self.now;
        self.records
            .retain(|record| record.key != key || !record.is_idle() || record.opens() > now);
    }

    fn next(&mut self, now: Time) -> Said<'a> {
        self.pass(now);
        let running = self.counts().running;
        if self.closed
            || (self.config.concurrency > 0 && running >= self.config.concurrency as usize)
        {
            return Said::Idle;
        }
        let token = now + self.missing_credit();
        let Some(key) = self.first_ready() else {
            let waiting = self
                .records
                .iter()
                .filter(|r| matches!(r.phase, Phase::Waiting { .. }));
            let due = waiting.filter_map(|r| r.wakes(&self.config, now)).min();
            let earliest = if token > now { token } else { Time::ORIGIN };
            return due.map_or(Said::Idle, |due| Said::WaitUntil(due.max(earliest)));
        };
        if token > now {
            return Said::WaitUntil(token);
        }

        if let Some(limit) = self.config.rate_limit {
            self.credit -= Duration::from_secs_f64(1.0 / limit.per_second);
        }
        let record = self.record(key);
        let Phase::Ready {
            since,
            timer,
            early,
            ..
        } = record.phase
        else {
            unreachable!("it is ready")
        };
        let triggers = std::mem::take(&mut record.triggers);
        let priority = triggers
            .iter()
            .map(|trigger| trigger.priority)
            .chain(timer.map(|timer| timer.priority))
            .max()
            .expect("something made it ready");
        record.phase = Phase::Running {
            priority,
            early,
            forgotten: false,
            asked: None,
        };
        record.timer = None;
        let (causes, omitted) = causes(&triggers);
        Said::Run {
            key,
            causes,
            omitted,
            timer: timer.map(|timer| {
                if timer.hold {
                    Timer::Retry
                } else {
                    Timer::Requeue
                }
            }),
            priority,
            failures: record.failures,
            ready_since: since,
        }
    }

    fn done(&mut self, now: Time, key: char, outcome: Outcome, random: f64) {
        self.pass(now);
        let order = self.number();
        let config = self.config.clone();
        let draining = self.draining;
        let record = self.record(key);
        let Phase::Running {
            priority,
            early,
            forgotten,
            asked,
        } = record.phase
        else {
            panic!("{key} runs not")
        };
        record.phase = Phase::Waiting { order };
        record.timer = None;
        let (forgotten, asked) = (forgotten || draining, asked.filter(|_| !draining));
        let held = if forgotten {
            None
        } else {
            record.held(early, outcome, &config, random)
        };
        let requested = |after, hold| Requested {
            at: now + after,
            hold,
            priority,
        };
        if let Some((delay, failures)) = held {
            record.failures = failures;
            record.timer = Some(requested(delay, true));
            if early {
                let runs = record.early.0 + 1;
                record.early = (runs, now + config.early.delay(runs, 0.0));
            }
            // What came during the run waits, unless somebody else is behind any of it.
            let classes = record.triggers.iter().map(|trigger| trigger.class);
            let starts = match classes.max() {
                Some(Class::Desired) => Starts::Now,
                Some(class) if record.ends_early(class) => Starts::Early,
                Some(_) | None => Starts::No,
            };
            for trigger in &mut record.triggers {
                trigger.starts = starts;
            }
        } else {
            (record.failures, record.moments) = (0, 0);
            record.early = (0, Time::ORIGIN);
            if let (Action::Requeue(after), false) = (outcome.action, forgotten) {
                record.timer = Some(requested(after, false));
            }
            if let Some(asked) = asked {
                record.timer = Some(asked.or(record.timer));
            }
        }
        self.settle(key);
        self.clear(key);
    }

    fn forget(&mut self, key: char) {
        for record in &mut self.records {
            if let Phase::Running { priority, .. } = record.phase
                && record.key == key
            {
                record.triggers.clear();
                record.failures = 0;
                (record.gate, record.damped) = (None, None);
                (record.moments, record.early) = (0, (0, Time::ORIGIN));
                record.phase = Phase::Running {
                    priority,
                    early: false,
                    forgotten: true,
                    asked: None,
                };
            }
        }
        self.records
            .retain(|r| r.key != key || matches!(r.phase, Phase::Running { .. }));
    }

    fn counts(&self) -> Counts {
        let count = |state| {
            self.records
                .iter()
                .filter(|record| record.state() == state)
                .count()
        };
        Counts {
            waiting: count(State::Waiting),
            backing_off: count(State::BackingOff),
            parked: count(State::Parked),
            ready: count(State::Ready),
            running: count(State::Running),
        }
    }

    fn oldest_ready(&self) -> Option<Time> {
        let heads = [self.head(Priority::Normal), self.head(Priority::Low)];
        heads.into_iter().flatten().map(|(since, _)| since).min()
    }

    fn known(&self, key: char) -> Option<Known<'a>> {
        let record = self.records.iter().find(|record| record.key == key)?;
        Some(Known {
            state: record.state(),
            next_run: match record.phase {
                Phase::Waiting { .. } => record.due(&self.config),
                Phase::Ready { since, .. } => Some(since),
                Phase::Running { .. } => None,
            },
            failures: record.failures,
            causes: causes(&record.triggers).0,
            gate: record.gate.filter(|&gate| gate > self.now),
            damped: record
                .damped
                .map(|(until, _)| until)
                .filter(|&until| until > self.now),
        })
    }

    /// Whether `next` would start a run.
    pub(super) fn would_run(&self, now: Time) -> bool {
        matches!(self.clone().next(now), Said::Run { .. })
    }

    /// Lets time pass: what has become due becomes ready, one after the other.
    fn pass(&mut self, now: Time) {
        if let Some(limit) = self.config.rate_limit {
            let full = Duration::from_secs_f64(1.0 / limit.per_second) * limit.burst;
            self.credit = self
                .credit
                .saturating_add(now.since(self.credit_at))
                .min(full);
            self.credit_at = now;
        }
        self.now = now;
        loop {
            let mut due: Vec<(Time, u64, char)> = Vec::new();
            for record in &self.records {
                if let Phase::Waiting { order } = record.phase
                    && let Some(at) = record.due(&self.config)
                    && at <= now
                {
                    due.push((at, order, record.key));
                }
            }
            let Some(&(at, _, key)) = due.iter().min() else {
                self.records
                    .retain(|record| !record.is_idle() || record.opens() > now);
                return;
            };
            self.make_ready(key, at);
        }
    }

    /// Makes a record ready if it is due now.
    fn settle(&mut self, key: char) {
        let (now, config) = (self.now, self.config.clone());
        let record = self.record(key);
        let due = record.due(&config).is_some_and(|at| at <= now);
        if due && matches!(record.phase, Phase::Waiting { .. }) {
            self.make_ready(key, now);
        }
    }

    fn make_ready(&mut self, key: char, since: Time) {
        let order = self.number();
        let record = self.record(key);
        let timer = record.timer.filter(|timer| timer.at <= since);
        let priorities = record.triggers.iter().map(|trigger| trigger.priority);
        let priorities = priorities.chain(timer.map(|timer| timer.priority));
        let lane = priorities.max().expect("something made it ready");
        let held = record.timer.is_some_and(|timer| timer.hold);
        let mut starts = record.triggers.iter().map(|trigger| trigger.starts);
        let early = held && timer.is_none() && starts.all(|starts| starts != Starts::Now);
        record.phase = Phase::Ready {
            early,
            since,
            order,
            lane,
            timer,
        };
    }

    fn first_ready(&self) -> Option<char> {
        let (normal, low) = (self.head(Priority::Normal), self.head(Priority::Low));
        let normal = normal.map(|(since, key)| (since, 0, key));
        let low = low.map(|(since, key)| (since + self.config.ageing, 1, key));
        [normal, low]
            .into_iter()
            .flatten()
            .min()
            .map(|(_, _, key)| key)
    }

    /// The ready record that came first into the lane.
    fn head(&self, wanted: Priority) -> Option<(Time, char)> {
        let mut ready: Vec<(u64, Time, char)> = Vec::new();
        for record in &self.records {
            if let Phase::Ready {
                since, order, lane, ..
            } = record.phase
                && lane == wanted
            {
                ready.push((order, since, record.key));
            }
        }
        ready.into_iter().min().map(|(_, since, key)| (since, key))
    }

    fn missing_credit(&self) -> Duration {
        self.config.rate_limit.map_or(Duration::ZERO, |limit| {
            Duration::from_secs_f64(1.0 / limit.per_second).saturating_sub(self.credit)
        })
    }

    fn record(&mut self, key: char) -> &mut Record<'a> {
        let found = self.records.iter_mut().find(|record| record.key == key);
        found.expect("the key has a record")
    }

    fn number(&mut self) -> u64 {
        self.order += 1;
        self.order
    }
}

impl Requested {
    /// The earlier time, and the priority of this one, which is not lower.
    fn or(self, other: Option<Self>) -> Self {
        let at = other.map_or(self.at, |other| other.at.min(self.at));
        Self { at, ..self }
    }
}

impl Record<'_> {
    /// For how long it is held after a run, and how many failures there are by then.
    fn held(
        &mut self,
        early: bool,
        outcome: Outcome,
        config: &Config,
        random: f64,
    ) -> Option<(Duration, u32)> {
        let (failures, moments) = (self.failures, self.moments);
        let row = if early { failures.max(1) } else { failures + 1 };
        let delay = config.backoff.delay(row, random);
        self.moments = 0;
        match (outcome.action, outcome.failed) {
            (Action::AwaitChange | Action::Requeue(_), false) => None,
            (Action::AwaitChange, true) => Some((Duration::MAX, 0)),
            (Action::Requeue(after), true) => {
                let hot = after <= Duration::from_millis(100) && row > 10;
                let least = config.backoff.delay(if hot { row - 10 } else { 1 }, random);
                Some((if hot { least.max(after) } else { after }, row))
            }
            (Action::Soon, _) => {
                self.moments = moments + 1;
                let chance = moments < 20;
                Some(if chance {
                    (config.backoff.soon(random), failures)
                } else {
                    (delay, row)
                })
            }
            (Action::Backoff { at_least }, _) => {
                Some((at_least.map_or(delay, |floor| floor.max(delay)), row))
            }
        }
    }

    fn due(&self, config: &Config) -> Option<Time> {
        let counts = |trigger: &&Arrival<'_>| trigger.starts != Starts::No;
        let mut starting = self.triggers.iter().filter(counts);
        let first = starting.next();
        let last = starting.next_back().or(first);
        let max_wait = config.debounce_max_wait.unwrap_or(config.debounce * 10);
        let window = first.zip(last).map(|(first, last)| {
            let (rested, latest) = (last.at + config.debounce, first.at + max_wait);
            let start = rested.min(latest);
            let now = self.triggers.iter().any(|it| it.starts == Starts::Now);
            match now {
                _ if self.drained => Time::ORIGIN,
                true => start,
                false => start.max(self.early.1),
            }
        });
        let timer = self.timer.map(|timer| timer.at);
        let asked = [window, timer].into_iter().flatten();
        let first = asked.filter(|&at| at < Time::MAX).min();
        first.map(|at| at.max(self.opens()))
    }

    /// When the queue has something to do about a record that waits.
    fn wakes(&self, config: &Config, now: Time) -> Option<Time> {
        let opens = Some(self.opens()).filter(|&opens| opens > now);
        self.due(config).or(opens).filter(|&at| at < Time::MAX)
    }

    fn opens(&self) -> Time {
        let damped = self.damped.map_or(Time::ORIGIN, |(until, _)| until);
        self.gate.unwrap_or(Time::ORIGIN).max(damped)
    }

    fn state(&self) -> State {
        match self.phase {
            Phase::Ready { .. } => State::Ready,
            Phase::Running { .. } => State::Running,
            Phase::Waiting { .. } if self.is_parked() => State::Parked,
            Phase::Waiting { .. } if self.timer.is_some_and(|timer| timer.hold) => {
                State::BackingOff
            }
            Phase::Waiting { .. } => State::Waiting,
        }
    }

    fn is_parked(&self) -> bool {
        self.timer
            .is_some_and(|timer| timer.hold && timer.at == Time::MAX)
    }

    /// Whether somebody asks for a run before the end of a hold.
    fn is_asked(&self) -> bool {
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.starts != Starts::No)
    }

    /// Whether triggers of this class end its hold early.
    fn ends_early(&self, class: Class) -> bool {
        match class {
            Class::Own => false,
            Class::Status => self.is_parked(),
            Class::Related | Class::Desired => true,
        }
    }

    fn is_idle(&self) -> bool {
        let endless = self
            .timer
            .is_none_or(|timer| !timer.hold && timer.at == Time::MAX);
        matches!(self.phase, Phase::Waiting { .. }) && self.triggers.is_empty() && endless
    }
}

/// The different causes that are kept, and how often others came.
fn causes<'a>(triggers: &[Arrival<'a>]) -> (Vec<&'a str>, u32) {
    let mut kept = Vec::new();
    let mut omitted = 0;
    for trigger in triggers {
        if kept.contains(&trigger.cause) {
            continue;
        }
        if kept.len() < 16 {
            kept.push(trigger.cause);
        } else {
            omitted += 1;
        }
    }
    (kept, omitted)
}

//! What to do next, and what this member may run.

mod ending;
mod obstacle;

use super::{
    Action, Answer, Config, Found, Input, Life, Loss, Output, Record, Share, Slots,
    membership::Membership, other::Other,
};
use crate::time::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// One member. The module says what it guarantees.
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    slots: Slots,
    name: String,
    /// The name of the own lease.
    lease: String,
    /// The version of the own lease, as far as it is known.
    version: Option<String>,
    epoch: u32,
    phase: Phase,
    step: Step,
    /// The number of the latest request.
    attempt: u64,
    /// The leases of others, by their names.
    others: BTreeMap<String, Other>,
    share: Arc<Share>,
    /// When the next renewal is due.
    renewal: Time,
    /// Whether a write was refused, and what is there is found out to write again.
    refused: bool,
    ending: Ending,
    obstacle: Option<String>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// It is no member. It may join when nothing runs any more.
    Out {
        idle: bool,
    },
    In(Membership),
}

#[derive(Clone, Debug)]
enum Step {
    List {
        sent: Time,
    },
    Write {
        sent: Time,
        record: Record,
    },
    Bury {
        sent: Time,
        lease: String,
        version: String,
        record: Record,
    },
    Remove {
        sent: Time,
        lease: String,
        version: String,
    },
    Rest {
        until: Time,
    },
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// What runs is being stopped. The lease is still renewed.
    Draining,
    /// Nothing runs any more. The lease is released as soon as no request is on its way.
    Idle,
}

// === impl Machine ===

impl Machine {
    /// A member that knows nothing yet. `lease` is the name of its lease, which nobody else may have, as little as its
    /// `name`.
    #[must_use]
    pub fn new(now: Time, config: Config, slots: Slots, name: String, lease: String) -> Self {
        let share = Arc::new(Share::new(slots, 0, &name, []));
        let mut machine = Self {
            config,
            slots,
            name,
            lease,
            version: None,
            epoch: 0,
            phase: Phase::Out { idle: true },
            step: Step::End,
            attempt: 0,
            others: BTreeMap::new(),
            share,
            renewal: now,
            refused: false,
            ending: Ending::No,
            obstacle: None,
        };
        machine.list(now);
        machine
    }

    /// What to do next. It stays the same until the next [input](Self::on).
    #[must_use]
    pub fn action(&self) -> Action {
        let attempt = self.attempt;
        let deadline = |sent: Time| sent + self.config.request_timeout();
        match &self.step {
            Step::List { sent } => Action::List {
                attempt,
                deadline: deadline(*sent),
            },
            Step::Write { sent, record } => Action::Write {
                attempt,
                deadline: deadline(*sent),
                version: self.version.clone(),
                record: record.clone(),
            },
            Step::Bury {
                sent,
                lease,
                version,
                record,
            } => Action::Bury {
                attempt,
                deadline: deadline(*sent),
                lease: lease.clone(),
                version: version.clone(),
                record: record.clone(),
            },
            Step::Remove {
                sent,
                lease,
                version,
            } => Action::Remove {
                attempt,
                deadline: deadline(*sent),
                lease: lease.clone(),
                version: version.clone(),
            },
            Step::Rest { until } => Action::Sleep { until: *until },
            Step::End => Action::End,
        }
    }

    /// Until when this member may run keys of its [`share`](Self::share), unless it renews its lease before; `None` if
    /// it runs nothing.
    ///
    /// The driver must say [`Input::Awake`] when this moment has come, even while a request is on its way.
    #[must_use]
    pub fn runs_until(&self) -> Option<Time> {
        match &self.phase {
            Phase::In(membership) if membership.ready => Some(membership.until(&self.config)),
            Phase::In(_) | Phase::Out { .. } => None,
        }
    }

    /// Until when this epoch lasts, unless the lease is renewed before. The driver must say [`Input::Awake`] then.
    #[must_use]
    pub fn lasts_until(&self) -> Option<Time> {
        match &self.phase {
            Phase::In(membership) => Some(membership.until(&self.config)),
            Phase::Out { .. } => None,
        }
    }

    /// What this member owns. It runs that only [while it may](Self::runs_until).
    #[must_use]
    pub const fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// How often this member has joined.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The members whose word this one waits for before it runs anything.
    pub fn awaited(&self) -> impl Iterator<Item = &str> {
        let waits = match &self.phase {
            Phase::In(membership) => membership.waits.as_ref(),
            Phase::Out { .. } => None,
        };
        let lives = waits.into_iter().flatten();
        lives.map(|life| life.name.as_str())
    }

    /// What keeps this member from joining, besides requests that fail.
    #[must_use]
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    /// Takes in what happened, at `now`, and says what it led to.
    ///
    /// `random` is a number drawn evenly from `[0, 1)`. An answer to anything but the latest request changes nothing.
    pub fn on(&mut self, now: Time, input: Input, random: f64) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.expire(now, &mut outputs);
        match input {
            Input::Awake => self.wake(now),
            Input::Answered { attempt, answer } if attempt == self.attempt => {
                self.answered(now, answer, random, &mut outputs);
            }
            Input::Answered { .. } => {}
            Input::Released { view } => self.released(now, view),
            Input::Idle => self.idle(now, &mut outputs),
            Input::Stop => self.stop(now, &mut outputs),
        }
        outputs
    }

    /// Ends an epoch whose time is over.
    fn expire(&mut self, now: Time, outputs: &mut Vec<Output>) {
        let Phase::In(membership) = &self.phase else {
            return;
        };
        if now < membership.until(&self.config) {
            return;
        }
        let written = membership.written.unwrap_or(membership.joined);
        let is_late = now >= written + self.config.renew_deadline();
        let loss = if is_late {
            Loss::NotRenewed
        } else {
            Loss::NotListed
        };
        self.lose(loss, outputs);
    }

    /// Ends the epoch. If nothing ran in it, the next one can begin.
    fn lose(&mut self, loss: Loss, outputs: &mut Vec<Output>) {
        let Phase::In(membership) = &self.phase else {
            return;
        };
        let ran = membership.ready;
        self.phase = Phase::Out { idle: !ran };
        if ran {
            outputs.push(Output::Lost(loss));
        }
    }

    fn wake(&mut self, now: Time) {
        let Step::Rest { until } = self.step else {
            return;
        };
        if now < until {
            return;
        }
        match self.phase {
            Phase::In(_) if !self.refused => self.write(now),
            // The version is not known after a write was refused. Whoever joins must be able to list: one that cannot
            // would keep keys from others.
            Phase::In(_) | Phase::Out { .. } => self.list(now),
        }
    }

    fn answered(&mut self, now: Time, answer: Answer, random: f64, outputs: &mut Vec<Output>) {
        match std::mem::replace(&mut self.step, Step::End) {
            Step::List { sent } => match answer {
                Answer::Listed(found) => self.listed(now, sent, found, outputs),
                Answer::Written { .. }
                | Answer::Removed
                | Answer::Conflict
                | Answer::Missing
                | Answer::Failed => self.rest(now, random),
            },
            // Releasing is a courtesy: whatever came of it, the lease runs out by itself.
            Step::Write { record, .. } if record.name.is_empty() => return,
            Step::Write { sent, record } => {
                self.write_answered(now, sent, record, answer, random, outputs);
            }
            Step::Remove { lease, .. } => {
                if answer == Answer::Removed {
                    self.others.remove(&lease);
                }
                self.rest(now, random);
            }
            // What came of it is seen in the next list.
            Step::Bury { .. } => self.rest(now, random),
            // There is no request that this could answer.
            step @ (Step::Rest { .. } | Step::End) => {
                self.step = step;
                return;
            }
        }
        if let Step::End = self.step {
            self.go_on(now, random);
        }
        self.release_when_idle(now);
    }

    fn write_answered(
        &mut self,
        now: Time,
        sent: Time,
        record: Record,
        answer: Answer,
        random: f64,
        outputs: &mut Vec<Output>,
    ) {
        match answer {
            Answer::Written { version } => {
                self.version = Some(version);
                self.refused = false;
                if let Phase::In(membership) = &mut self.phase
                    && record.epoch == self.epoch
                {
                    membership.written = Some(sent);
                    membership.told = Some((record.ready, record.knows));
                    self.renewal = sent + self.config.retry();
                }
                self.list(now);
            }
            Answer::Missing => {
                // Others may take this member for gone.
                self.version = None;
                self.lose(Loss::Deleted, outputs);
                self.rest(now, random);
            }
            // An earlier write may have been carried out without an answer. What is there is known after a list.
            Answer::Conflict if !self.refused => {
                self.refused = true;
                self.list(now);
            }
            Answer::Conflict | Answer::Failed | Answer::Listed(_) | Answer::Removed => {
                self.rest(now, random);
            }
        }
    }

    /// Takes in all leases, as they were after `sent`.
    fn listed(&mut self, now: Time, sent: Time, found: Vec<Found>, outputs: &mut Vec<Output>) {
        let mut missing: BTreeSet<String> = self.others.keys().cloned().collect();
        let mut own = None;
        for Found {
            lease,
            version,
            record,
        } in found
        {
            if lease == self.lease {
                own = Some((version, record));
                continue;
            }
            missing.remove(&lease);
            let other = self.others.entry(lease).or_insert_with(|| Other::new(now));
            other.see(now, sent, version, record, &self.config);
        }
        for lease in missing {
            let is_over = self
                .others
                .get_mut(&lease)
                .is_none_or(|other| other.miss(now, sent, &self.config));
            if is_over {
                self.others.remove(&lease);
            }
        }
        self.look_at_own(own, outputs);
        self.check_slots(outputs);
        let is_in = match &mut self.phase {
            Phase::In(membership) => {
                // A list that was asked for before the lease was there says nothing of who came before.
                if membership.written.is_some_and(|written| written <= sent) {
                    membership.listed = Some(sent);
                }
                true
            }
            Phase::Out { .. } => false,
        };
        if is_in {
            self.count(outputs);
        } else {
            self.join(now);
        }
    }

    /// Takes in what the own lease says.
    fn look_at_own(&mut self, own: Option<(String, Record)>, outputs: &mut Vec<Output>) {
        let was_written = match &self.phase {
            Phase::In(membership) => membership.written.is_some(),
            Phase::Out { .. } => false,
        };
        if let Some((version, record)) = own {
            self.version = Some(version);
            if record.name.is_empty() && was_written {
                // Others have taken this member for gone.
                self.lose(Loss::Deleted, outputs);
            }
            if let Phase::Out { .. } = self.phase {
                // The next epoch must be another one than any before.
                self.epoch = self.epoch.max(record.epoch);
            }
        } else {
            self.version = None;
            if was_written {
                self.lose(Loss::Deleted, outputs);
            }
        }
    }

    /// Begins an epoch, if it may.
    fn join(&mut self, now: Time) {
        let Phase::Out { idle: true } = self.phase else {
            return;
        };
        if self.ending != Ending::No || self.obstacle.is_some() {
            return;
        }
        self.epoch = self.epoch.saturating_add(1);
        self.phase = Phase::In(Membership::new(now));
        self.write(now);
    }

    /// Counts the members, and draws the consequences.
    fn count(&mut self, outputs: &mut Vec<Output>) {
        let Phase::In(membership) = &mut self.phase else {
            return;
        };
        let own = Life {
            name: self.name.clone(),
            epoch: self.epoch,
        };
        let alive: Vec<&Other> = self
            .others
            .values()
            .filter(|other| other.is_alive())
            .collect();
        if membership.listed.is_some() {
            let waits = membership
                .waits
                .get_or_insert_with(|| alive.iter().map(|other| other.life()).collect());
            waits.retain(|life| {
                alive
                    .iter()
                    .any(|other| other.life() == *life && !other.record.knows.contains(&own))
            });
        }
        let names = alive.iter().map(|other| other.record.name.as_str());
        let view = self.share.view() + 1;
        let share = Share::new(self.slots, view, &self.name, names);
        let moved = share.members() != self.share.members();
        if moved {
            self.share = Arc::new(share);
        }
        let view = self.share.view();
        // Who runs keys waits for nobody, so there is nothing to tell it.
        let waiting: BTreeSet<Life> = alive
            .iter()
            .filter(|other| !other.record.ready)
            .map(|other| other.life())
            .collect();
        membership.pending.retain(|life, _| waiting.contains(life));
        membership.knows.retain(|life| waiting.contains(life));
        for life in waiting {
            if membership.knows.contains(&life) || membership.pending.contains_key(&life) {
                continue;
            }
            if membership.ready {
                membership.pending.insert(life, view);
            } else {
                // Nothing runs that could be in the way.
                membership.knows.insert(life);
            }
        }
        let heard = membership.waits.as_ref().is_some_and(BTreeSet::is_empty);
        if heard && !membership.ready {
            membership.ready = true;
            outputs.push(Output::Runs);
        } else if membership.ready && moved {
            outputs.push(Output::Moved);
        } else if membership.ready && !membership.pending.is_empty() {
            // The same members with another life of one of them: what that one owns is not run here.
            outputs.push(Output::Moved);
        }
    }

    /// What comes after an answer that did not say it.
    fn go_on(&mut self, now: Time, random: f64) {
        if self.refused || self.has_news() {
            self.write(now);
        } else if let Some(step) = self.clean_up(now) {
            self.attempt += 1;
            self.step = step;
        } else {
            self.rest(now, random);
        }
    }

    /// Whether there is something to tell others at once.
    fn has_news(&self) -> bool {
        match &self.phase {
            Phase::In(membership) => {
                let knows: Vec<_> = membership.knows.iter().cloned().collect();
                let told = membership.told.as_ref();
                told.is_some_and(|(_, told)| knows.iter().any(|life| !told.contains(life)))
            }
            Phase::Out { .. } => false,
        }
    }

    fn released(&mut self, now: Time, view: u64) {
        let Phase::In(membership) = &mut self.phase else {
            return;
        };
        let (done, pending) = std::mem::take(&mut membership.pending)
            .into_iter()
            .partition(|(_, since)| *since <= view);
        membership.pending = pending;
        let done: BTreeMap<Life, u64> = done;
        membership.knows.extend(done.into_keys());
        if matches!(self.step, Step::Rest { .. }) && self.has_news() {
            self.write(now);
        }
    }

    fn write(&mut self, now: Time) {
        let (ready, knows) = match &self.phase {
            Phase::In(membership) => {
                let knows = membership.knows.iter().cloned().collect();
                (membership.ready, knows)
            }
            Phase::Out { .. } => (false, Vec::new()),
        };
        let record = Record {
            name: self.name.clone(),
            epoch: self.epoch,
            duration: Some(self.config.duration()),
            slots: Some(self.slots.count()),
            ready,
            knows,
        };
        self.attempt += 1;
        self.step = Step::Write { sent: now, record };
    }

    fn list(&mut self, now: Time) {
        self.attempt += 1;
        self.step = Step::List { sent: now };
    }

    /// Waits for the next attempt: up to a fifth earlier than [`Config::retry`], so that members drift apart, and half as
    /// long while this member waits to be known.
    fn rest(&mut self, now: Time, random: f64) {
        let retry = self.config.retry();
        let runs = matches!(&self.phase, Phase::In(membership) if membership.ready);
        let retry = if runs { retry } else { retry / 2 };
        let retry = retry.mul_f64(1.0 - 0.2 * random.clamp(0.0, 1.0));
        // A renewal that was due while requests were slow is not put off further.
        let until = if runs && self.renewal > now {
            self.renewal.min(now + retry)
        } else {
            now + retry
        };
        self.step = Step::Rest { until };
    }
}

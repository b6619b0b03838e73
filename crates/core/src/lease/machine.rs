//! What to do next, and who leads.

use super::{Action, Answer, Config, Draft, Input, Loss, Output, Record};
use crate::time::Time;
use std::time::Duration;

/// One candidate. The module says what it guarantees.
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    identity: String,
    role: Role,
    step: Step,
    /// The number of the latest request.
    attempt: u64,
    /// The lease as it was last known, and since when.
    seen: Option<Seen>,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Standby,
    Leader {
        /// Just before the last accepted write was sent.
        renewed: Time,
    },
}

#[derive(Clone, Debug)]
enum Step {
    /// The lease is asked for.
    Read {
        deadline: Time,
    },
    /// The lease is written.
    Write {
        sent: Time,
        deadline: Time,
        draft: Draft,
    },
    Rest {
        until: Time,
    },
    End,
}

#[derive(Clone, Debug)]
struct Seen {
    /// `None` if there is no lease any more.
    version: Option<String>,
    record: Record,
    /// When this version was first known to be there: after it was written.
    since: Time,
}

/// How far giving up the lease has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// What needs the lease is being stopped. The lease is still renewed.
    Draining(Then),
    /// Nothing needs the lease any more. It is released as soon as no request is on its way.
    Idle(Then),
}

/// What comes after the lease was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Others have their chance, then this candidate tries again.
    Candidate,
    End,
}

/// What a released lease says about its validity: client-go's candidates want more than zero.
const RELEASED: Duration = Duration::from_secs(1);

// === impl Machine ===

impl Machine {
    /// A candidate that knows nothing yet.
    ///
    /// `identity` must be of this candidate alone: two programs, or two lives of one program, that share an
    /// identity would both lead.
    #[must_use]
    pub fn new(now: Time, config: Config, identity: String) -> Self {
        let mut machine = Self {
            config,
            identity,
            role: Role::Standby,
            step: Step::End,
            attempt: 0,
            seen: None,
            ending: Ending::No,
        };
        machine.read(now);
        machine
    }

    /// What to do next. It stays the same until the next [input](Self::on).
    #[must_use]
    pub fn action(&self) -> Action {
        let attempt = self.attempt;
        match &self.step {
            Step::Read { deadline } => Action::Read {
                attempt,
                deadline: *deadline,
            },
            Step::Write {
                sent: _,
                deadline,
                draft,
            } => Action::Write {
                attempt,
                deadline: *deadline,
                draft: draft.clone(),
            },
            Step::Rest { until } => Action::Sleep { until: *until },
            Step::End => Action::End,
        }
    }

    /// Until when this candidate leads, unless it renews the lease before; `None` if it does not lead.
    ///
    /// Nothing that needs the lease may be done at this moment or later. The driver must say
    /// [`Input::Awake`] when it has come, even while a request is on its way.
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        match self.role {
            Role::Leader { renewed } => Some(renewed + self.config.renew_deadline),
            Role::Standby => None,
        }
    }

    /// Who holds the lease, as far as this candidate knows; `None` if nobody does.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        let seen = self.seen.as_ref()?;
        Some(seen.record.holder.as_str()).filter(|holder| !holder.is_empty())
    }

    /// Takes in what happened, at `now`, and says what it led to.
    ///
    /// `random` is a number drawn evenly from `[0, 1)`. An answer to anything but the latest request changes
    /// nothing, so a repeated answer does no harm.
    pub fn on(&mut self, now: Time, input: Input, random: f64) -> Vec<Output> {
        let expired = self.expire(now);
        let output = match input {
            Input::Awake => {
                self.wake(now);
                None
            }
            Input::Answered { attempt, answer } if attempt == self.attempt => {
                self.answered(now, answer, random)
            }
            Input::Answered { .. } => None,
            Input::Resign => self.end(now, Then::Candidate),
            Input::Stop => self.end(now, Then::End),
            Input::Idle => self.idle(now),
        };
        // A leader whose time ran out a moment ago can have renewed its lease meanwhile, so there can be both.
        expired.into_iter().chain(output).collect()
    }

    fn expire(&mut self, now: Time) -> Option<Output> {
        let until = self.leads_until()?;
        if now < until {
            return None;
        }
        if let Step::Rest { until } = &mut self.step
            && self.ending == Ending::Draining(Then::Candidate)
        {
            // It was asked to make room.
            *until = now + self.config.duration;
        }
        Some(self.lose(Loss::NotRenewed))
    }

    /// The lease is not held any more, so there is nothing left to resign from.
    fn lose(&mut self, loss: Loss) -> Output {
        self.role = Role::Standby;
        if self.ending == Ending::Draining(Then::Candidate) {
            self.ending = Ending::No;
        }
        Output::Lost(loss)
    }

    fn wake(&mut self, now: Time) {
        let Step::Rest { until } = self.step else {
            return;
        };
        if now < until {
            return;
        }
        match self.role {
            // The version is known, so there is nothing to read.
            Role::Leader { .. } => self.claim(now),
            Role::Standby => self.read(now),
        }
    }

    fn answered(&mut self, now: Time, answer: Answer, random: f64) -> Option<Output> {
        let sent = match std::mem::replace(&mut self.step, Step::End) {
            Step::Read { .. } => None,
            Step::Write { sent, draft, .. } => Some((sent, draft)),
            // There is no request that this could answer.
            step @ (Step::Rest { .. } | Step::End) => {
                self.step = step;
                return None;
            }
        };
        if sent
            .as_ref()
            .is_some_and(|(_, draft)| draft.record.holder.is_empty())
        {
            // Releasing is a courtesy: whatever came of it, the lease runs out by itself.
            self.seen = None;
            self.give_way(now);
            return None;
        }
        let output = match (answer, sent) {
            (Answer::Found { version, record }, None) => self.found(now, version, record, random),
            (Answer::Written { version }, Some((sent, draft))) => {
                self.written(now, sent, version, draft)
            }
            (Answer::Missing, _) => {
                self.missing(now, random);
                None
            }
            (Answer::Conflict, Some(_)) => {
                // Somebody was faster. The sooner this candidate knows whom, the sooner it counts.
                self.read(now);
                None
            }
            // A mistake of the driver, or no answer.
            (
                Answer::Failed | Answer::Conflict | Answer::Found { .. } | Answer::Written { .. },
                _,
            ) => {
                self.rest(now, random);
                None
            }
        };
        self.release_when_idle(now);
        output
    }

    fn found(&mut self, now: Time, version: String, record: Record, random: f64) -> Option<Output> {
        let is_free = record.holder.is_empty() || record.holder == self.identity;
        let is_new = self
            .seen
            .as_ref()
            .is_none_or(|seen| seen.version.as_ref() != Some(&version));
        if is_new {
            self.seen = Some(Seen {
                version: Some(version),
                record,
                since: now,
            });
        }
        self.claim_or_wait(now, random);
        if is_free {
            return None;
        }
        match self.role {
            Role::Leader { .. } => Some(self.lose(Loss::Taken)),
            Role::Standby => None,
        }
    }

    fn missing(&mut self, now: Time, random: f64) {
        // Whoever held it does not know yet that it is gone, so its time goes on.
        if let Some(seen) = &mut self.seen {
            seen.version = None;
        }
        self.claim_or_wait(now, random);
    }

    /// Claims the lease if whoever holds it has not renewed it for as long as it is valid, and waits otherwise.
    fn claim_or_wait(&mut self, now: Time, random: f64) {
        let expires = self.seen.as_ref().map_or(now, |seen| self.expires(seen));
        if now >= expires && self.is_wanted() {
            self.claim(now);
        } else {
            self.rest(now, random);
        }
    }

    /// Whether holding the lease is of any use: not for a candidate that is about to end.
    fn is_wanted(&self) -> bool {
        match self.role {
            Role::Leader { .. } => true,
            Role::Standby => self.ending == Ending::No,
        }
    }

    fn expires(&self, seen: &Seen) -> Time {
        let Record {
            holder, duration, ..
        } = &seen.record;
        if holder.is_empty() || *holder == self.identity {
            return seen.since;
        }
        seen.since + duration.unwrap_or(self.config.duration)
    }

    fn written(&mut self, now: Time, sent: Time, version: String, draft: Draft) -> Option<Output> {
        self.seen = Some(Seen {
            version: Some(version),
            record: draft.record,
            since: now,
        });
        self.step = Step::Rest {
            until: now + self.config.retry,
        };
        if !self.is_wanted() {
            return None;
        }
        if now >= sent + self.config.renew_deadline {
            // The answer took so long that it says nothing about now.
            self.claim(now);
            return None;
        }
        let before = std::mem::replace(&mut self.role, Role::Leader { renewed: sent });
        (before == Role::Standby).then_some(Output::Leads)
    }

    fn end(&mut self, now: Time, then: Then) -> Option<Output> {
        self.ending = match (self.ending, then) {
            (Ending::Idle(_), Then::End) => Ending::Idle(Then::End),
            (Ending::Draining(_), Then::End) | (Ending::No, _) => Ending::Draining(then),
            (ending, Then::Candidate) => ending,
        };
        match self.role {
            Role::Leader { .. } => None,
            // There is nothing to be stopped.
            Role::Standby => self.idle(now),
        }
    }

    fn idle(&mut self, now: Time) -> Option<Output> {
        if let Ending::Draining(then) = self.ending {
            self.ending = Ending::Idle(then);
        }
        let Ending::Idle(_) = self.ending else {
            return None;
        };
        let was = std::mem::replace(&mut self.role, Role::Standby);
        match self.step {
            Step::Rest { .. } => self.release_when_idle(now),
            // Nobody needs to know what it says. The answer will be one to an earlier request.
            Step::Read { .. } => {
                self.attempt += 1;
                self.release_when_idle(now);
            }
            // It decides whether there is something to release.
            Step::Write { .. } | Step::End => {}
        }
        matches!(was, Role::Leader { .. }).then_some(Output::Lost(Loss::Released))
    }

    /// Releases the lease, if that is what is wanted and possible, or ends. No request is on its way.
    fn release_when_idle(&mut self, now: Time) {
        let Ending::Idle(_) = self.ending else {
            return;
        };
        let held = self
            .seen
            .as_ref()
            .filter(|seen| seen.record.holder == self.identity && seen.version.is_some());
        let Some(seen) = held else {
            self.give_way(now);
            return;
        };
        let draft = Draft {
            version: seen.version.clone(),
            record: Record {
                holder: String::new(),
                duration: Some(RELEASED),
                transitions: seen.record.transitions,
            },
            acquired: true,
        };
        self.write(now, draft);
    }

    /// The lease was given up, or there was none to be given up. Others have their chance, for as long as it
    /// takes them to notice.
    fn give_way(&mut self, now: Time) {
        self.step = match std::mem::replace(&mut self.ending, Ending::No) {
            Ending::Draining(Then::End) | Ending::Idle(Then::End) => Step::End,
            Ending::Draining(Then::Candidate) | Ending::Idle(Then::Candidate) | Ending::No => {
                let until = now + self.config.duration;
                Step::Rest { until }
            }
        };
    }

    /// Writes the lease with this candidate as its holder.
    fn claim(&mut self, now: Time) {
        let (version, before) = match &self.seen {
            Some(seen) => (seen.version.clone(), Some(&seen.record)),
            None => (None, None),
        };
        let goes_on = before.is_some_and(|record| record.holder == self.identity);
        let transitions = before.map_or(0, |record| record.transitions);
        let is_handed_over = before.is_some() && !goes_on;
        let draft = Draft {
            version,
            record: Record {
                holder: self.identity.clone(),
                duration: Some(self.config.duration),
                transitions: transitions.saturating_add(is_handed_over.into()),
            },
            acquired: !goes_on,
        };
        self.write(now, draft);
    }

    fn write(&mut self, now: Time, draft: Draft) {
        self.attempt += 1;
        self.step = Step::Write {
            sent: now,
            deadline: now + self.config.request_timeout(),
            draft,
        };
    }

    fn read(&mut self, now: Time) {
        self.attempt += 1;
        self.step = Step::Read {
            deadline: now + self.config.request_timeout(),
        };
    }

    /// Waits for the next attempt: up to a fifth earlier than [`Config::retry`], so that candidates drift apart,
    /// and no longer than until the lease can be claimed.
    fn rest(&mut self, now: Time, random: f64) {
        let retry = self
            .config
            .retry
            .mul_f64(1.0 - 0.2 * random.clamp(0.0, 1.0));
        let expires = self.seen.as_ref().map(|seen| self.expires(seen));
        let until = now + retry;
        let until = match expires {
            Some(expires) if expires > now => until.min(expires),
            Some(_) | None => until,
        };
        self.step = Step::Rest { until };
    }
}

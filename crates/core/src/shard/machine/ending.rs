//! The end of members: of this one, and what others leave behind.

use super::{Ending, Machine, Phase, Step};
use crate::{
    shard::{Loss, Output, Record},
    time::Time,
};

impl Machine {
    /// What is to be done about the lease of a member that is gone, if it is for this one to do.
    pub(super) fn clean_up(&self, now: Time) -> Option<Step> {
        if !matches!(&self.phase, Phase::In(membership) if membership.ready) {
            return None;
        }
        let first = self.share.members().first()?;
        if first.name() != self.name {
            return None;
        }
        self.others.iter().find_map(|(lease, other)| {
            let (_, since) = other.over?;
            let (lease, version) = (lease.clone(), other.version.clone()?);
            if other.is_alive() {
                None
            } else if !other.record.name.is_empty() {
                let record = Record {
                    epoch: other.record.epoch,
                    ..self.release()
                };
                Some(Step::Bury {
                    sent: now,
                    lease,
                    version,
                    record,
                })
            } else if now >= since + self.config.duration() * 2 {
                Some(Step::Remove {
                    sent: now,
                    lease,
                    version,
                })
            } else {
                None
            }
        })
    }

    /// What a lease says that is released.
    fn release(&self) -> Record {
        Record {
            epoch: self.epoch,
            duration: Some(self.config.duration()),
            slots: Some(self.slots.count()),
            ..Record::default()
        }
    }

    pub(super) fn idle(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if let Phase::Out { idle } = &mut self.phase {
            *idle = true;
        }
        if self.ending == Ending::No {
            return;
        }
        self.ending = Ending::Idle;
        self.lose(Loss::Released, outputs);
        self.phase = Phase::Out { idle: true };
        match self.step {
            Step::Rest { .. } => self.release_when_idle(now),
            // Nobody needs to know what they say. The answers will be ones to earlier requests.
            Step::List { .. } | Step::Bury { .. } | Step::Remove { .. } => {
                self.attempt += 1;
                self.release_when_idle(now);
            }
            // It decides which version there is to release.
            Step::Write { .. } | Step::End => {}
        }
    }

    pub(super) fn stop(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if self.ending == Ending::No {
            self.ending = Ending::Draining;
        }
        let runs = match &self.phase {
            Phase::In(membership) => membership.ready,
            Phase::Out { idle } => !idle,
        };
        if !runs {
            self.idle(now, outputs);
        }
    }

    /// Releases the lease, if that is what is wanted and possible, or ends. No request is on its way.
    pub(super) fn release_when_idle(&mut self, now: Time) {
        if self.ending != Ending::Idle {
            return;
        }
        if self.version.is_none() {
            self.step = Step::End;
            return;
        }
        self.attempt += 1;
        let record = self.release();
        self.step = Step::Write { sent: now, record };
    }
}

//! What a member knows of another one.

use super::{Config, Life, Record};
use crate::time::Time;
use std::time::Duration;

/// The lease of another member.
#[derive(Clone, Debug)]
pub(super) struct Other {
    /// `None` if there is no such lease any more.
    pub(super) version: Option<String>,
    pub(super) record: Record,
    /// When this version was first known to be there.
    since: Time,
    /// The epoch that is over for sure, and since when.
    pub(super) over: Option<(u32, Time)>,
}

// === impl Other ===

impl Other {
    pub(super) fn new(now: Time) -> Self {
        Self {
            version: None,
            record: Record::default(),
            since: now,
            over: None,
        }
    }

    /// Whether it may run something.
    pub(super) fn is_alive(&self) -> bool {
        let is_over = self
            .over
            .is_some_and(|(epoch, _)| epoch >= self.record.epoch);
        !self.record.name.is_empty() && !is_over
    }

    pub(super) fn life(&self) -> Life {
        Life {
            name: self.record.name.clone(),
            epoch: self.record.epoch,
        }
    }

    /// Takes in the lease as a list shows it that was asked for at `sent`.
    pub(super) fn see(
        &mut self,
        now: Time,
        sent: Time,
        version: String,
        record: Record,
        config: &Config,
    ) {
        if self.version.as_ref() != Some(&version) {
            self.version = Some(version);
            self.since = now;
            self.record = record;
            if self.record.name.is_empty() {
                self.end(now);
            }
        } else if sent >= self.since + self.duration(config) {
            self.end(now);
        }
    }

    /// Takes in that a list does not show the lease. Whether it can be forgotten.
    pub(super) fn miss(&mut self, now: Time, sent: Time, config: &Config) -> bool {
        if !self.is_alive() {
            return true;
        }
        if self.version.take().is_some() {
            self.since = now;
        }
        sent >= self.since + self.duration(config)
    }

    fn end(&mut self, now: Time) {
        if self.is_alive() || self.over.is_none() {
            self.over = Some((self.record.epoch, now));
        }
    }

    fn duration(&self, config: &Config) -> Duration {
        self.record.duration.unwrap_or_else(|| config.duration())
    }
}

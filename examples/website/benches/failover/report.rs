//! What came of it.

use super::{LEASE, LENGTH, load::RATE, sites::SITES};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

pub(crate) struct Report {
    /// Sites that are not as they should be at the end.
    pub(crate) lost: usize,
    /// Writes of an old leader after the new one's first.
    pub(crate) doubled: usize,
    /// From the signal until the next operator's first write: after the kill and after the pause, if there was one.
    pub(crate) handovers: [Option<Duration>; 2],
    pub(crate) changes: usize,
    /// Changes that the server did not take.
    pub(crate) refused: usize,
    /// How much each operator has written.
    pub(crate) writes: BTreeMap<String, usize>,
    /// How long after the last change all sites were as they should be.
    pub(crate) settled: Duration,
}

// === impl Report ===

impl Report {
    pub(crate) fn is_well(&self) -> bool {
        let handed_over = self.handovers.iter().all(Option::is_some);
        self.lost == 0 && self.doubled == 0 && handed_over
    }

    /// How many changes were made in a second. There are fewer than there are to be where the server is too slow.
    fn rate(&self) -> f64 {
        let changes = u32::try_from(self.changes).unwrap_or(u32::MAX);
        (f64::from(changes) / LENGTH.as_secs_f64()).round()
    }

    pub(crate) fn json(&self) -> Value {
        let Self {
            lost,
            doubled,
            handovers,
            changes,
            refused,
            writes,
            settled,
        } = self;
        let [killed, paused] = handovers.map(|took| took.map(seconds));
        // The longer one; nothing if one did not take place.
        let longest = killed
            .zip(paused)
            .map(|(killed, paused)| killed.max(paused));
        json!({
            "converged": *lost == 0,
            "doubled": doubled,
            "lost": lost,
            "handover_s": longest,
            "killed_handover_s": killed,
            "paused_handover_s": paused,
            "lease_s": LEASE,
            "changes": changes,
            "changes_per_s": self.rate(),
            "changes_refused": refused,
            "settled_s": seconds(*settled),
            "writes": writes,
        })
    }

    pub(crate) fn text(&self) -> String {
        let verdict = if self.is_well() { "well" } else { "NOT WELL" };
        let Self {
            lost,
            doubled,
            handovers,
            changes,
            refused,
            writes,
            settled,
        } = self;
        let [killed, paused] = handovers
            .map(|took| took.map_or_else(|| "never".into(), |took| format!("{} s", seconds(took))));
        format!(
            "{verdict}: {changes} changes, {} of {RATE} a second, of which {refused} were refused\n\
             {lost} of {SITES} sites are not as they should be; the others were after {} s\n\
             {doubled} writes of an old leader after the first of the new one\n\
             with a lease of {LEASE} s, another one worked after {killed} (killed) and {paused} (paused)\n\
             writes: {writes:?}",
            self.rate(),
            seconds(*settled)
        )
    }
}

/// With two decimals.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100.0).round() / 100.0
}

//! When a world has come to rest.

use super::World;
use crate::{
    log::{Entry, Event},
    plan::Plan,
    state::State,
    trace::{Part, Rest},
};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};

/// How long nothing may be written for a world to be at rest: longer than the longest delay between two
/// tries (5 minutes and a fifth), twice.
const QUIET: Duration = Duration::from_secs(900);

/// The same for a world that is as the reference was.
const SHORT: Duration = Duration::from_secs(60);

/// How long a world may take to come to rest.
const LONGEST: Duration = Duration::from_secs(4 * 3600);

impl<X: Send + Sync + 'static> World<X> {
    /// Waits until nothing is written any more: for long, or until the world is as the reference was at the end of
    /// this part, which began there in the log. Answers the state, too, if it was looked at.
    pub(super) async fn settle(&self, part: Option<(Part, usize)>) -> (Rest, Option<State>) {
        let begin = Instant::now();
        loop {
            sleep(Duration::from_secs(5)).await;
            self.recorder.note_cluster();
            if self.wire.is_overrun() {
                return (Rest::Overrun, None);
            }
            let calm = self.recorder.calm().min(begin.elapsed());
            if calm >= QUIET && !self.collect_late() {
                return (Rest::Calm, None);
            }
            if let Some((part, from)) = part
                && let Some(state) = self.done(part, from, calm)
                && !self.collect_late()
            {
                return (Rest::Calm, Some(state));
            }
            if begin.elapsed() >= LONGEST {
                return (Rest::Restless, None);
            }
        }
    }

    /// The state if it is known that nothing more will happen: the world is as the reference was, and what has failed
    /// was tried again.
    fn done(&self, part: Part, from: usize, calm: Duration) -> Option<State> {
        let part = self.resembles(part)?;
        let (expected, gap) = self.hints.ends.get(&part)?;
        // Looking at everything costs time, so it is done once in a minute.
        let enough = SHORT.max(*gap * 2);
        let is_time = calm >= enough && calm.as_secs() % 60 < 5;
        if !is_time || !self.recorder.with(from, is_tried_again) {
            return None;
        }
        let state = self.state();
        let differences = expected.differences(&state, &self.hints.varying);
        differences.is_empty().then_some(state)
    }

    /// The part of the reference that this one ends like.
    fn resembles(&self, part: Part) -> Option<Part> {
        let deletes = matches!(self.plan, Plan::Delete(_) | Plan::DeleteWhileDown(_));
        let damages = matches!(self.plan, Plan::Lose(_) | Plan::Late | Plan::Direct);
        if deletes && self.wire.has_fired() {
            return Some(Part::Deleted);
        }
        match part {
            Part::Probe if damages => Some(self.last_step()),
            // What may happen at rest needs its time.
            Part::Probe => None,
            Part::Given | Part::Step(_) | Part::Deleted | Part::Again => Some(part),
        }
    }

    fn last_step(&self) -> Part {
        match self.setup.steps.len() {
            0 => Part::Given,
            steps => Part::Step(steps - 1),
        }
    }

    /// Lets a garbage collector that was held back work. Whether it had something to do.
    fn collect_late(&self) -> bool {
        let mut worked = false;
        if self.plan == Plan::LateCollector {
            while self.server.step_garbage_collection() {
                worked = true;
            }
        }
        worked
    }
}

/// The errors since this time that no later run has made good.
pub(super) fn still_failing(entries: &[Entry], since: Duration) -> Vec<String> {
    if is_tried_again(entries) {
        return Vec::new();
    }
    let late = entries.iter().filter(|entry| entry.at >= since);
    let mut errors: Vec<String> = late
        .filter_map(|entry| {
            let Event::Outcome(Err(text)) = &entry.event else {
                return None;
            };
            Some(text.clone())
        })
        .collect();
    errors.sort();
    errors.dedup();
    errors
}

/// Whether every object that ran before the last error ran again after it.
fn is_tried_again(entries: &[Entry]) -> bool {
    let is_error = |entry: &Entry| matches!(entry.event, Event::Outcome(Err(_)));
    let Some(last) = entries.iter().rposition(is_error) else {
        return true;
    };
    let (before, after) = entries.split_at(last);
    let after: BTreeSet<&str> = after.iter().filter_map(object_of_run).collect();
    let mut before = before.iter().filter_map(object_of_run);
    before.all(|object| after.contains(object))
}

fn object_of_run(entry: &Entry) -> Option<&str> {
    let Event::Run { object, .. } = &entry.event else {
        return None;
    };
    Some(object)
}

//! What the plots of the page show: the last hour, in steps.

use crate::controller::About;
use serde_json::{Value, json};
use std::{collections::VecDeque, time::Duration};

/// How long a step is.
pub(in crate::manager) const STEP: Duration = Duration::from_secs(15);
/// How many steps there are: an hour.
const KEPT: usize = 240;

/// Samples of all controllers together. The memory for them is bounded.
#[derive(Debug, Default)]
pub(super) struct Samples {
    steps: VecDeque<Step>,
    /// What was counted until the last step.
    before: Option<Totals>,
}

/// What happened in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    /// How many keys waited for a slot at its end.
    depth: usize,
    runs: u64,
    failures: u64,
    requests: u64,
    /// How long a run took on the average.
    took: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    runs: u64,
    failures: u64,
    requests: u64,
    took: Duration,
}

// === impl Samples ===

impl Samples {
    pub(super) fn take<'a>(&mut self, controllers: impl Iterator<Item = &'a About>) {
        let mut depth = 0;
        let mut totals = Totals::default();
        for about in controllers {
            let counts = about.counts();
            depth += about.meter().ready();
            totals.runs += counts.runs;
            totals.failures += counts.failures;
            totals.requests += counts.requests;
            totals.took += about.meter().time_in_runs();
        }
        self.add(depth, totals);
    }

    fn add(&mut self, depth: usize, now: Totals) {
        let Some(before) = self.before.replace(now) else {
            return;
        };
        // What a controller has counted goes with it when it is removed.
        let runs = now.runs.saturating_sub(before.runs);
        let took = now.took.saturating_sub(before.took);
        let mean = u32::try_from(runs)
            .ok()
            .and_then(|runs| took.checked_div(runs));
        if self.steps.len() == KEPT {
            self.steps.pop_front();
        }
        self.steps.push_back(Step {
            depth,
            runs,
            failures: now.failures.saturating_sub(before.failures),
            requests: now.requests.saturating_sub(before.requests),
            took: mean.unwrap_or_default(),
        });
    }

    /// The oldest first, each as depth, runs, failures and requests in the step, and milliseconds per run.
    pub(super) fn to_value(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!([
                step.depth,
                step.runs,
                step.failures,
                step.requests,
                step.took.as_secs_f64() * 1000.0,
            ])
        });
        json!({ "step_s": STEP.as_secs(), "steps": steps.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Samples, Totals};
    use std::time::Duration;

    #[test]
    fn steps_show_what_is_new_and_only_the_last_hour_is_kept() {
        let mut samples = Samples::default();
        let totals = |runs: u64| Totals {
            runs,
            failures: runs / 2,
            requests: 3 * runs,
            took: Duration::from_millis(8 * runs),
        };
        samples.add(1, totals(10));
        assert!(samples.steps.is_empty(), "nothing to compare with");
        samples.add(5, totals(14));
        let step = samples.steps[0];
        assert_eq!((step.depth, step.runs), (5, 4));
        assert_eq!((step.failures, step.requests), (2, 12));
        assert_eq!(step.took, Duration::from_millis(8));
        samples.add(0, totals(14));
        assert_eq!(samples.steps[1].took, Duration::ZERO, "nothing ran");
        samples.add(0, totals(2));
        assert_eq!(samples.steps[2].runs, 0, "a controller was removed");
        for _ in 0..2 * KEPT {
            samples.add(0, totals(2));
        }
        assert_eq!(samples.steps.len(), KEPT);
    }
}

//! Writes in vain over time: a poll that sends what is there already, hour after hour.
//!
//! Such a key never looks like a loop, since it rests between its runs. So the runs are counted here, with however
//! long pauses between them. It is told and not slowed down: each request is one for nothing, and that is all.

use super::evidence::{Evidence, Standard};
use super::trace::Kind;
use super::{Cause, Config, Finding, Incident, Object, Run, Verdict};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How many different faults are told. The objects of one kind have the same, and one report is enough.
const TOLD: usize = 64;
/// After what time without a run a key makes room for others.
const IDLE: Duration = Duration::from_secs(24 * 3600);

/// Counts the runs of the keys `K` that changed nothing.
#[derive(Clone, Debug)]
pub(super) struct Vain<K> {
    keys: BTreeMap<K, State>,
    /// The kind of each object and the place that was told.
    told: BTreeSet<(Arc<str>, String)>,
}

#[derive(Clone, Debug)]
struct State {
    runs: u32,
    since: Time,
    last: Time,
    /// What the last of them looked like.
    evidence: Option<Box<Evidence>>,
    object: Object,
    over: bool,
}

// === impl Vain ===

impl<K: Ord + Clone> Vain<K> {
    pub(super) const fn new() -> Self {
        Self {
            keys: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Whether the next run of a key is to be looked at.
    pub(super) fn observes(&self, key: &K) -> bool {
        let state = self.keys.get(key);
        state.is_some_and(|state| state.evidence.is_some() && !state.over)
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.keys.remove(key);
    }

    /// Takes in a run. Answers what there is to report.
    pub(super) fn finished(
        &mut self,
        now: Time,
        key: &K,
        run: &Run,
        config: &Config,
    ) -> Option<Arc<Incident>> {
        let first = run.writes.first()?;
        let in_vain = run.writes.iter().all(|write| write.changed == Some(false));
        if run.failed {
            return None;
        }
        if !in_vain {
            self.keys.remove(key);
            return None;
        }
        // Events come many at once, as in a roll-out, and rest in the end. They are counted elsewhere.
        if !run
            .causes
            .iter()
            .all(|cause| matches!(cause, Cause::Timer | Cause::First))
        {
            return None;
        }
        if !self.keys.contains_key(key) && !self.has_room(now, config) {
            return None;
        }
        let state = self.keys.entry(key.clone()).or_insert_with(|| State {
            runs: 0,
            since: run.started,
            last: Time::ORIGIN,
            evidence: None,
            object: first.object.clone(),
            over: false,
        });
        if state.over {
            return None;
        }
        state.runs += 1;
        state.last = now;
        let proof = config.sights() - 1;
        if let Some(evidence) = &mut state.evidence {
            evidence.take(&Kind::Planned, run);
        } else if state.runs + config.sights() > config.runs {
            state.evidence = Some(Box::default());
        }
        if state.runs < config.runs.max(proof) {
            return None;
        }
        state.over = true;
        let evidence = state.evidence.take();
        let findings = evidence.map_or_else(Vec::new, |evidence| {
            evidence.judge(Standard {
                config,
                own: 0,
                wasteful: true,
            })
        });
        let findings = if findings.is_empty() {
            vec![Finding {
                object: state.object.clone(),
                verdict: Verdict::Unchanged,
                changes: Vec::new(),
                omitted: 0,
            }]
        } else {
            findings
        };
        let incident = Incident {
            runs: state.runs,
            time: now.since(state.since),
            findings,
            damped: false,
        };
        self.is_news(&incident).then(|| Arc::new(incident))
    }

    /// Whether nothing of the kind was told before.
    fn is_news(&mut self, incident: &Incident) -> bool {
        let news = incident.findings.iter().map(|finding| {
            let place = finding.changes.first();
            let place = place.map(|change| change.path.to_string());
            (Arc::clone(&finding.object.kind), place.unwrap_or_default())
        });
        let mut is_news = false;
        for fault in news {
            is_news |= self.told.len() < TOLD && self.told.insert(fault);
        }
        is_news
    }

    fn has_room(&mut self, now: Time, config: &Config) -> bool {
        if self.keys.len() >= config.keys {
            self.keys.retain(|_, state| now.since(state.last) <= IDLE);
        }
        self.keys.len() < config.keys
    }
}

//! Finding loops of keys whose writes nobody tells of.

use super::detector::Count;
use super::{Answer, Cause, Config, Finding, Incident, Object, Run, Verdict};
use crate::time::Time;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// How long after a run the events of its writes may come.
const GRACE: Duration = Duration::from_millis(500);

/// How long a pause is that shows something: others have as much time in it as the events.
const PAUSE: Duration = Duration::from_secs(1);

/// At how many keys those at rest are looked for.
const FIRST_SWEEP: usize = 1024;

/// Finds reconcile loops of the keys `K` from nothing but when runs and events are.
///
/// Where nobody tells what a run writes, the events of its writes look like those of others. But others do not wait
/// for the key to run. So after [`Config::runs`] runs in a row that nothing but events with the run before has caused,
/// the next ones are [delayed](Answer::delay), which is an experiment: if something happens while the key does not run,
/// others do it, too, and the key is left alone until twice as many runs are counted. If it is quiet in each of
/// `Config::sights` pauses, and never when the key has run, that is a loop: it is [reported](Answer::report), and
/// delayed on.
#[derive(Clone, Debug)]
pub struct Blind<K> {
    config: Config,
    /// Never walked through but to drop some.
    keys: HashMap<K, Beat, FxBuildHasher>,
    /// At how many keys those at rest are looked for next, and not before this moment.
    sweep: (usize, Time),
}

/// When a key runs and when something happens to it.
#[derive(Clone, Debug)]
struct Beat {
    /// Runs in a row that nothing but events with the run before has caused.
    runs: Count,
    running: bool,
    /// When its last run ended.
    ended: Time,
    /// After what time that wanted another.
    after: Option<Duration>,
    /// What has happened since the last start, and what had happened by then.
    since: Events,
    before: Events,
    /// Whether there was a pause before the last start, and before how many of the runs.
    paused: bool,
    pauses: u32,
    /// Runs that were delayed.
    delays: u32,
    incident: Option<Arc<Incident>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Events {
    /// Whether there were any in a run or right after it.
    with: bool,
    /// Whether there were others.
    apart: bool,
}

// === impl Blind ===

impl<K: Hash + Eq + Clone> Blind<K> {
    /// Knows nothing yet.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            keys: HashMap::with_hasher(FxBuildHasher),
            sweep: (FIRST_SWEEP, Time::ORIGIN),
        }
    }

    /// Takes in that something happened to what a key has to do with, and nobody is known to want it.
    pub fn happened(&mut self, now: Time, key: &K) {
        if let Some(beat) = self.keys.get_mut(key) {
            let with = beat.running || now.since(beat.ended) <= GRACE;
            beat.since.with |= with;
            beat.since.apart |= !with;
        }
    }

    /// Takes in that a run of a key begins, and whether somebody is known to [want](Self::wanted) it.
    ///
    /// Of a key that is not known, a run that somebody wants leaves nothing behind. So all the objects that are there
    /// when a program starts cost nothing.
    pub fn started(&mut self, now: Time, key: &K, wanted: bool) {
        if !self.keys.contains_key(key) && (wanted || !self.has_place(now)) {
            return;
        }
        let Self { config, keys, .. } = self;
        let new = || Beat::new(now, config);
        let beat = keys.entry(key.clone()).or_insert_with(new);
        if beat.rests(now, config) {
            *beat = new();
        }
        beat.running = true;
        beat.paused = now.since(beat.ended) >= PAUSE;
        beat.before = std::mem::take(&mut beat.since);
    }

    /// Whether one more key can be looked at. If there are many, those that rest are given up.
    fn has_place(&mut self, now: Time) -> bool {
        let Self {
            config,
            keys,
            sweep: (limit, not_before),
        } = self;
        if keys.len() >= (*limit).min(config.keys) && now >= *not_before {
            keys.retain(|_, beat| !beat.rests(now, config));
            *limit = (2 * keys.len()).max(FIRST_SWEEP);
            keys.shrink_to(*limit);
            // When all places are taken, looking again at each new key would be of no use.
            let full = keys.len() >= config.keys;
            *not_before = now + if full { config.pause } else { Duration::ZERO };
        }
        keys.len() < config.keys
    }

    /// Takes in a run of a key that has just ended. What it wrote does not matter.
    pub fn finished(&mut self, now: Time, key: &K, run: &Run) -> Answer {
        let beat = self.keys.get_mut(key);
        beat.map_or_else(Answer::default, |beat| beat.take(now, run, &self.config))
    }

    /// The same as [`finished`](Self::finished) for a run that somebody wanted, or nobody knows why it was: whatever
    /// causes it has besides, it is no loop.
    pub fn wanted(&mut self, now: Time, key: &K, after: Option<Duration>) {
        if let Some(beat) = self.keys.get_mut(key) {
            beat.wanted(now, after, &self.config);
        }
    }

    /// How many keys are looked at now, and those that have not been looked through since they came to rest.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.keys.len()
    }

    /// Drops all that is known of a key, because its object is gone.
    pub fn forget(&mut self, key: &K) {
        self.keys.remove(key);
    }
}

// === impl Beat ===

impl Beat {
    const fn new(now: Time, config: &Config) -> Self {
        let none = Events {
            with: false,
            apart: false,
        };
        Self {
            runs: Count::new(now, config.runs),
            running: false,
            ended: now,
            after: None,
            since: none,
            before: none,
            paused: false,
            pauses: 0,
            delays: 0,
            incident: None,
        }
    }

    fn rests(&self, now: Time, config: &Config) -> bool {
        let delay = match self.delays {
            0 => Duration::ZERO,
            delays => config.damping.delay(delays, 0.0),
        };
        !self.running && now.since(self.ended) > config.pause + delay
    }

    fn take(&mut self, now: Time, run: &Run, config: &Config) -> Answer {
        self.running = false;
        self.ended = now;
        let at_once = self.after.is_some_and(|after| after <= config.instant);
        self.after = run.after;
        let is_event = |cause: &Cause| matches!(cause, Cause::Own | Cause::Foreign(_));
        let is_timer = |cause: &Cause| matches!(cause, Cause::Timer | Cause::Retry);
        if run.causes.is_empty() || !run.causes.iter().all(|it| is_event(it) || is_timer(it)) {
            self.wanted(now, run.after, config);
            return Answer::default();
        }
        if !at_once && run.causes.iter().any(is_timer) {
            // Its time had come in any case.
            return Answer::default();
        }
        if self.before.apart || !self.before.with {
            self.acquit(now, config);
            return Answer::default();
        }
        self.runs.add(run.started);
        self.pauses = self.pauses.saturating_add(self.paused.into());
        if !self.runs.is_reached() {
            return Answer::default();
        }
        self.delays = self.delays.saturating_add(1);
        let mut answer = Answer::default();
        if self.pauses >= config.sights() && self.incident.is_none() {
            let incident = self.incident(now, run);
            answer.report = Some(Arc::clone(&incident));
            self.incident = Some(incident);
        }
        let time = config.damping.delay(self.delays, 0.0);
        answer.delay = Some(super::Delay { time, firm: false });
        answer
    }

    fn wanted(&mut self, now: Time, after: Option<Duration>, config: &Config) {
        let since = self.since;
        *self = Self::new(now, config);
        (self.since, self.after) = (since, after);
    }

    /// Counts from the start, and to twice as many if that took a delay to find out.
    fn acquit(&mut self, now: Time, config: &Config) {
        let limit = if self.delays > 0 {
            self.runs.raised()
        } else {
            self.runs.limit()
        };
        self.runs = Count::new(now, limit.max(config.runs));
        (self.pauses, self.delays) = (0, 0);
        self.incident = None;
    }

    fn incident(&self, now: Time, run: &Run) -> Arc<Incident> {
        let changed = run.causes.iter().find_map(|cause| match cause {
            Cause::Foreign(object) => object.clone(),
            Cause::First | Cause::Desired | Cause::Timer | Cause::Retry | Cause::Own => None,
        });
        let object: Object = changed.unwrap_or_else(|| run.object.clone());
        Arc::new(Incident {
            runs: self.runs.runs(),
            time: now.since(self.runs.since()),
            findings: vec![Finding {
                object,
                verdict: Verdict::Untracked,
                changes: Vec::new(),
                omitted: 0,
            }],
            damped: true,
        })
    }
}

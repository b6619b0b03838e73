//! Counting runs, and deciding when to look and when to judge.

use super::evidence::{Evidence, Standard};
use super::trace::Kind;
use super::vain::Vain;
use super::{Answer, Cause, Config, Incident, Object, Run, Verdict};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Of how many objects that a key writes the writes are counted.
const OBJECTS: usize = 16;
/// How many keys are kept before it is looked which of them have come to rest.
const FIRST_SWEEP: usize = 1024;

/// Finds reconcile loops of the keys `K`; see the [module](super).
///
/// # Guarantees
///
/// A key that rests costs nothing once the others are looked through for such. What is kept of a
/// key is bounded, and so is the number of keys ([`Config::keys`], [`Config::observed`]). Bodies are
/// dropped before [`Detector::finished`] returns.
#[derive(Clone, Debug)]
pub struct Detector<K> {
    config: Config,
    keys: BTreeMap<K, State>,
    /// The keys that are being observed.
    observed: BTreeSet<K>,
    /// At how many keys those at rest are looked for next, and not before this moment.
    sweep: (usize, Time),
    /// Those that write in vain, with long pauses between.
    vain: Vain<K>,
}

/// What is known of a key.
#[derive(Clone, Debug)]
struct State {
    /// When its last run ended that wrote something.
    wrote: Time,
    /// After what time its last run wanted another.
    after: Option<Duration>,
    /// Runs in a row that only its own writes have caused, and that changed something.
    own: Count,
    written: Vec<Written>,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    Counting,
    /// So many more runs that write are looked at.
    Observing {
        left: u32,
        evidence: Box<Evidence>,
    },
    Looping {
        incident: Arc<Incident>,
        delays: u32,
    },
}

/// An object that the key writes.
#[derive(Clone, Debug)]
struct Written {
    object: Object,
    /// When the last run began that wrote it.
    last: Time,
    /// Runs that changed it.
    again: Count,
    /// Runs in a row that wrote it and changed nothing.
    unchanged: Count,
    /// Whether the last run that wrote anything changed it.
    lately: bool,
}

/// A number of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    runs: u32,
    /// When the first of them began.
    since: Time,
    /// At which number it is looked at.
    limit: u32,
}

// === impl Detector ===

impl<K: Ord + Clone> Detector<K> {
    /// Knows nothing yet.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            keys: BTreeMap::new(),
            observed: BTreeSet::new(),
            sweep: (FIRST_SWEEP, Time::ORIGIN),
            vain: Vain::new(),
        }
    }

    /// Whether the key's next run is to be observed: each of its [writes](super::Write) should come
    /// with a [`Sight`](super::Sight).
    ///
    /// A driver that cannot do this, for this write or at all, leaves it out. What is then found is
    /// less well explained.
    #[must_use]
    pub fn observes(&self, key: &K) -> bool {
        self.observed.contains(key) || self.vain.observes(key)
    }

    /// Takes in a run of a key that has just ended.
    pub fn finished(&mut self, now: Time, key: &K, run: &Run) -> Answer {
        let mut answer = self.counted_run(now, key, run);
        if answer.report.is_some() {
            self.vain.forget(key);
        } else {
            answer.report = self.vain.finished(now, key, run, &self.config);
        }
        answer
    }

    fn counted_run(&mut self, now: Time, key: &K, run: &Run) -> Answer {
        let state = if let Some(state) = self.keys.get_mut(key) {
            state
        } else if self.admits(now, run) {
            let state = State::new(run, &self.config);
            self.keys.entry(key.clone()).or_insert(state)
        } else {
            return Answer::default();
        };
        if state.is_over(run, &self.config) {
            self.observed.remove(key);
            *state = State::new(run, &self.config);
        }
        let answer = state.take(now, run, &self.config);
        match state.phase {
            Phase::Observing { .. } => {}
            Phase::Looping { .. } => {
                self.observed.remove(key);
            }
            Phase::Counting => {
                self.observed.remove(key);
                if state.is_suspicious() && self.has_place(now) {
                    self.observe(key);
                }
            }
        }
        answer
    }

    /// Drops all that is known of a key, because its object is gone.
    pub fn forget(&mut self, key: &K) {
        self.keys.remove(key);
        self.observed.remove(key);
        self.vain.forget(key);
    }

    /// Whether the runs of a key are being counted. A run of any other key that wrote nothing need not be
    /// [told](Self::finished).
    #[must_use]
    pub fn counts(&self, key: &K) -> bool {
        self.keys.contains_key(key)
    }

    /// The loop that a key is in, if one was found.
    #[must_use]
    pub fn incident(&self, now: Time, key: &K) -> Option<&Arc<Incident>> {
        let state = self.keys.get(key)?;
        state.incident().filter(|_| !state.rests(now, &self.config))
    }

    /// All loops that go on, in the order of their keys.
    pub fn incidents(&self, now: Time) -> impl Iterator<Item = (&K, &Arc<Incident>)> {
        let keys = self
            .keys
            .iter()
            .filter(move |(_, state)| !state.rests(now, &self.config));
        keys.filter_map(|(key, state)| Some((key, state.incident()?)))
    }

    /// How many keys are counted now: those that wrote lately, and those that have not been looked
    /// through since.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.keys.len()
    }

    /// Whether the key of a run is one to count, and there is a place for it.
    fn admits(&mut self, now: Time, run: &Run) -> bool {
        if !run.is_write() || run.is_held(&self.config) {
            return false;
        }
        let (limit, not_before) = self.sweep;
        if self.keys.len() >= limit.min(self.config.keys) && now >= not_before {
            let config = &self.config;
            self.keys.retain(|_, state| !state.rests(now, config));
            let keys = &self.keys;
            self.observed.retain(|key| keys.contains_key(key));
            let next = (2 * keys.len()).max(FIRST_SWEEP);
            // When all places are taken, looking again at each new key would be of no use.
            let full = keys.len() >= config.keys;
            let pause = if full { config.pause } else { Duration::ZERO };
            self.sweep = (next, now + pause);
        }
        self.keys.len() < self.config.keys
    }

    /// Whether one more key can be observed. If there is no place, those are given up that have come
    /// to rest.
    fn has_place(&mut self, now: Time) -> bool {
        if self.observed.len() >= self.config.observed {
            let Self {
                config,
                keys,
                observed,
                ..
            } = self;
            observed.retain(|key| {
                let stays = keys.get(key).is_some_and(|state| !state.rests(now, config));
                if !stays {
                    keys.remove(key);
                }
                stays
            });
        }
        self.observed.len() < self.config.observed
    }

    fn observe(&mut self, key: &K) {
        if let Some(state) = self.keys.get_mut(key) {
            state.phase = Phase::Observing {
                left: self.config.sights(),
                evidence: Box::default(),
            };
            self.observed.insert(key.clone());
        }
    }
}

// === impl State ===

impl State {
    fn new(run: &Run, config: &Config) -> Self {
        Self {
            wrote: run.started,
            after: None,
            own: Count::new(run.started, config.runs),
            written: Vec::new(),
            phase: Phase::Counting,
        }
    }

    fn incident(&self) -> Option<&Arc<Incident>> {
        match &self.phase {
            Phase::Looping { incident, .. } => Some(incident),
            Phase::Counting | Phase::Observing { .. } => None,
        }
    }

    /// The longest pause until the next run of a loop.
    fn pause(&self, config: &Config) -> Duration {
        match &self.phase {
            Phase::Looping { incident, delays } if incident.damped => {
                config.pause + config.damping.delay(*delays, 0.0)
            }
            Phase::Counting | Phase::Observing { .. } | Phase::Looping { .. } => config.pause,
        }
    }

    fn rests(&self, now: Time, config: &Config) -> bool {
        now.since(self.wrote) > self.pause(config)
    }

    /// Whether what was counted or found before this run has nothing to do with it.
    fn is_over(&self, run: &Run, config: &Config) -> bool {
        let fight = self.incident().is_some_and(|incident| incident.is_fight());
        let looping = self.incident().is_some();
        looping && !fight && run.causes.contains(&Cause::Desired) || self.rests(run.started, config)
    }

    fn take(&mut self, now: Time, run: &Run, config: &Config) -> Answer {
        let kind = self.kind(run, config);
        self.after = run.after;
        self.count(&kind, run, config);
        if run.is_write() {
            self.wrote = now;
        }
        match &mut self.phase {
            Phase::Counting => Answer::default(),
            Phase::Observing { left, evidence } => {
                if run.is_write() {
                    evidence.take(&kind, run);
                    *left = left.saturating_sub(1);
                }
                if *left == 0 {
                    self.judge(now, config)
                } else {
                    Answer::default()
                }
            }
            Phase::Looping { incident, delays } => {
                let goes_on = incident.damped && kind != Kind::Excused && run.changes_something();
                *delays = delays.saturating_add(u32::from(goes_on));
                Answer {
                    report: None,
                    delay: goes_on.then(|| incident.delay(*delays, config)),
                }
            }
        }
    }

    fn kind(&self, run: &Run, config: &Config) -> Kind {
        let mut kind = Kind::Own { echoes: Vec::new() };
        // Whoever runs again at once is delayed by nothing, and has not waited for anything.
        let at_once = self.after.is_some_and(|after| after <= config.instant);
        if run.is_held(config) || run.causes.contains(&Cause::Retry) && !at_once {
            return Kind::Excused;
        }
        if run.causes.is_empty() {
            return Kind::Planned;
        }
        for cause in &run.causes {
            kind = match (kind, cause) {
                (_, Cause::Desired) => return Kind::Desired,
                (kind, Cause::Timer | Cause::Retry) if at_once => kind,
                (Kind::Own { mut echoes }, Cause::Foreign(Some(object))) if self.echoes(object) => {
                    echoes.push(object.clone());
                    Kind::Own { echoes }
                }
                (_, Cause::Foreign(_)) => Kind::Foreign,
                (Kind::Own { .. } | Kind::Planned, Cause::First | Cause::Timer | Cause::Retry) => {
                    Kind::Planned
                }
                (kind, Cause::Own | Cause::First | Cause::Timer | Cause::Retry) => kind,
            };
        }
        kind
    }

    /// Whether what others do to the object now is what they make of the key's last change to it.
    fn echoes(&self, object: &Object) -> bool {
        let mut written = self.written.iter();
        written.any(|written| written.lately && written.object == *object)
    }

    fn count(&mut self, kind: &Kind, run: &Run, config: &Config) {
        if *kind == Kind::Excused {
            return;
        }
        let started = run.started;
        if matches!(kind, Kind::Own { .. }) && run.changes_something() {
            self.own.add(started);
        } else {
            self.own = Count::new(started, config.runs);
        }
        if !run.is_write() {
            return;
        }
        let pause = self.pause(config);
        self.written
            .retain(|written| started.since(written.last) <= pause);
        for written in &mut self.written {
            written.lately = false;
        }
        let mut changed: BTreeMap<&Object, bool> = BTreeMap::new();
        for write in &run.writes {
            *changed.entry(&write.object).or_default() |= write.changed != Some(false);
        }
        for written in &mut self.written {
            if !changed.contains_key(&written.object) {
                written.unchanged = Count::new(started, config.unchanged);
            }
        }
        for (object, changed) in changed {
            let Some(written) = self.written(object, started, config) else {
                continue;
            };
            written.last = started;
            written.lately = changed;
            if changed {
                written.again.add(started);
            }
            match kind {
                Kind::Own { .. } | Kind::Foreign if !changed => written.unchanged.add(started),
                Kind::Excused | Kind::Planned if !changed => {}
                Kind::Excused
                | Kind::Planned
                | Kind::Desired
                | Kind::Own { .. }
                | Kind::Foreign => written.unchanged = Count::new(started, config.unchanged),
            }
        }
    }

    fn written(&mut self, object: &Object, now: Time, config: &Config) -> Option<&mut Written> {
        let known = self
            .written
            .iter()
            .position(|written| written.object == *object);
        let at = known.or_else(|| {
            if self.written.len() >= OBJECTS {
                // Who writes ever new objects does not write these again.
                let idle = self.written.iter().position(|written| !written.lately)?;
                self.written.remove(idle);
            }
            self.written.push(Written {
                object: object.clone(),
                last: now,
                again: Count::new(now, config.again),
                unchanged: Count::new(now, config.unchanged),
                lately: false,
            });
            Some(self.written.len() - 1)
        })?;
        self.written.get_mut(at)
    }

    fn is_suspicious(&self) -> bool {
        let mut written = self.written.iter();
        self.own.is_reached()
            || written.any(|written| written.again.is_reached() || written.unchanged.is_reached())
    }

    fn judge(&mut self, now: Time, config: &Config) -> Answer {
        let Phase::Observing { evidence, .. } = &self.phase else {
            return Answer::default();
        };
        let mut written = self.written.iter();
        let looping = self.own.runs >= config.runs;
        let findings = evidence.judge(Standard {
            config,
            own: self.own.runs,
            wasteful: written.any(|written| written.unchanged.runs >= config.unchanged),
        });
        let Some(first) = findings.first() else {
            self.acquit();
            return Answer::default();
        };
        let own_fault =
            |verdict: &Verdict| !matches!(verdict, Verdict::Unchanged | Verdict::Reverted);
        let damped = looping || findings.iter().any(|finding| own_fault(&finding.verdict));
        let mut written = self.written.iter();
        let written = written.find(|written| written.object == first.object);
        let count = match written.filter(|_| !looping) {
            Some(Written {
                again, unchanged, ..
            }) if again.runs < unchanged.runs => *unchanged,
            Some(Written { again, .. }) => *again,
            None => self.own,
        };
        let incident = Arc::new(Incident {
            runs: count.runs,
            time: now.since(count.since),
            findings,
            damped,
        });
        self.phase = Phase::Looping {
            incident: Arc::clone(&incident),
            delays: 1,
        };
        Answer {
            delay: damped.then(|| incident.delay(1, config)),
            report: Some(incident),
        }
    }

    /// Looks again when twice as many runs are counted.
    fn acquit(&mut self) {
        self.phase = Phase::Counting;
        self.own.raise();
        for written in &mut self.written {
            written.again.raise();
            written.unchanged.raise();
        }
    }
}

// === impl Count ===

impl Count {
    pub(super) const fn new(since: Time, limit: u32) -> Self {
        Self {
            runs: 0,
            since,
            limit,
        }
    }

    pub(super) const fn runs(self) -> u32 {
        self.runs
    }

    pub(super) const fn since(self) -> Time {
        self.since
    }

    pub(super) const fn limit(self) -> u32 {
        self.limit
    }

    /// Twice as many as are counted.
    pub(super) fn raised(self) -> u32 {
        self.runs.saturating_mul(2).max(1)
    }

    pub(super) fn add(&mut self, started: Time) {
        if self.runs == 0 {
            self.since = started;
        }
        self.runs = self.runs.saturating_add(1);
    }

    pub(super) const fn is_reached(self) -> bool {
        self.runs >= self.limit
    }

    fn raise(&mut self) {
        if self.is_reached() {
            self.limit = self.raised();
        }
    }
}

//! What happened to the objects of a controller lately.

use super::{
    counts::{Counters, Counts},
    cover::{self, Unseen},
    meter::Meter,
    reason::{Cause, describe},
    recent::{Recent, Renew},
};
use crate::{client::Write, reflector::ObjectKey};
use homeostat_core::{
    loops::Incident,
    queue::{Causes, Timer},
    time::Time,
};
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How many runs of an object are remembered: enough to see what repeats.
const RUNS: usize = 10;
/// How many objects are remembered, those that ran last. With usual writes it is a few megabytes.
const OBJECTS: usize = 1024;
/// How many writes of a run are remembered; the others are counted.
const WRITES: usize = 16;
/// How long a text of an error may be.
const TEXT: usize = 1024;

/// What happened to an object lately. Its `Display` is a report for people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The last runs, oldest first. Empty for an object that was not reconciled lately.
    pub runs: Vec<PastRun>,
    /// How long the run that is under way has been going on; `None` if there is none.
    pub running_for: Option<Duration>,
    /// What came of the last run, as of its end.
    pub next: Next,
    /// The loop that the object was found in last, if there was one.
    pub incident: Option<Arc<Incident>>,
}

/// A run that has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PastRun {
    /// How long ago it started.
    pub ago: Duration,
    /// How long it took, without the time that the object waited for its turn.
    pub duration: Duration,
    /// Why it ran, as in its tracing span.
    pub reason: String,
    /// Whether triggers by others have led to it, or only what the object's own runs have written.
    pub self_triggered: bool,
    /// The text of its error, if it failed.
    pub error: Option<String>,
    /// What the store holds that it read before the store's first list was complete: the run did not count, and was
    /// repeated when it was.
    pub not_ready: Option<String>,
    /// How many requests it sent through a [tracked client](crate::client).
    pub requests: u32,
    /// How many of them were reads.
    pub reads: u32,
    /// What it wrote, oldest first.
    pub writes: Vec<Write>,
    /// How many more writes there were.
    pub more_writes: usize,
    /// How it was waited for the caches to see these writes.
    pub wait: Option<CacheWait>,
}

/// A wait for caches to see what a run has written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CacheWait {
    /// What was missing when the run ended: `configmaps default/web at version 12`.
    pub missing: Vec<String>,
    /// How long it took; `None` while it lasts.
    pub duration: Option<Duration>,
    /// Whether the caches had seen it by then.
    pub seen: bool,
}

/// What comes next for an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Next {
    /// After how much more time it runs, if nothing happens before.
    pub run_in: Option<Duration>,
    /// How many times in a row it has failed.
    pub failures: u32,
    /// Whether it is held back because it failed.
    pub backing_off: bool,
    /// Whether it failed in a way that only somebody else can mend, so that it waits for a change.
    pub awaits_change: bool,
    /// How much longer it runs less often because it is in a loop.
    pub damped_for: Option<Duration>,
}

/// The histories of a controller's objects, and what is counted of all of them. Clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct Histories {
    state: Arc<Mutex<State>>,
    counters: Arc<Counters>,
    meter: Arc<Meter>,
}

struct State {
    /// When the controller's time began.
    origin: Option<Instant>,
    objects: Recent<ObjectKey, History>,
}

#[derive(Default)]
struct History {
    /// When the run that is under way started.
    running: Option<Time>,
    runs: VecDeque<Record>,
    standing: Standing,
    incident: Option<Arc<Incident>>,
}

/// A run that has ended, as it is kept.
pub(super) struct Record {
    pub(super) started: Time,
    pub(super) ended: Time,
    pub(super) causes: Causes<Cause>,
    pub(super) timer: Option<Timer>,
    pub(super) error: Option<String>,
    pub(super) not_ready: Option<String>,
    pub(super) requests: u32,
    pub(super) reads: u32,
    pub(super) writes: Vec<Write>,
    /// How many more there were than are kept.
    pub(super) more_writes: usize,
    /// What caches have not seen yet.
    pub(super) missing: Vec<Unseen>,
    pub(super) wait_ended: Option<(Time, bool)>,
}

/// What the queue knew when the last run had ended.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) next_run: Option<Time>,
    pub(super) failures: u32,
    pub(super) backing_off: bool,
    pub(super) parked: bool,
    pub(super) damped_until: Option<Time>,
}

/// As much of a text as is kept.
pub(super) fn cut(text: &str) -> &str {
    let end = (0..=TEXT).rev().find(|&end| text.is_char_boundary(end));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

// === impl Histories ===

impl Histories {
    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// How long the run has been going on that runs for the longest time, of those that are remembered.
    #[cfg(feature = "metrics")]
    pub(super) fn longest_running(&self) -> Duration {
        let state = self.lock();
        let running = state.objects.iter();
        let running = running.filter_map(|(_, history)| history.running);
        let first = running.min();
        let now = state.origin.map(|origin| Time::ORIGIN + origin.elapsed());
        match (first, now) {
            (Some(first), Some(now)) => now.since(first),
            _ => Duration::ZERO,
        }
    }

    pub(super) fn begin(&self, origin: Instant) {
        self.lock().origin = Some(origin);
    }

    /// Something asks for a run, and whether it is only what a run before has written.
    pub(super) fn triggered(&self, by_itself: bool) {
        self.counters.triggered(by_itself);
    }

    /// A run of `key` has started.
    pub(super) fn started(&self, key: &ObjectKey, now: Time) {
        self.lock().objects.touch(key).running = Some(now);
    }

    /// Nothing runs for `key`, and nothing is planned: the object is gone, or the controller stops.
    pub(super) fn abandoned(&self, key: &ObjectKey) {
        if let Some(history) = self.lock().objects.get_mut(key) {
            history.running = None;
            history.standing = Standing::default();
        }
    }

    pub(super) fn finished(&self, key: &ObjectKey, mut record: Record, standing: Standing) {
        if record.not_ready.is_some() {
            self.counters.came_early();
        }
        self.counters.finished(
            record.is_self_triggered(),
            record.error.is_some(),
            record.requests,
            &record.writes,
        );
        record.forget_many();
        if let Some(error) = &mut record.error {
            error.truncate(cut(error).len());
        }
        let mut state = self.lock();
        let history = state.objects.touch(key);
        history.running = None;
        history.standing = standing;
        if history.runs.len() == RUNS {
            history.runs.pop_front();
        }
        if history.runs.capacity() == 0 {
            // Most objects run once when the program starts, and not again for long.
            history.runs.reserve_exact(1);
        }
        history.runs.push_back(record);
    }

    /// The API server does not answer any more.
    pub(super) fn lost_server(&self) {
        self.counters.lost_server();
    }

    /// A failure was no item of the stream.
    pub(super) fn unreported(&self) {
        self.counters.unreported();
    }

    /// All slots are taken for long.
    pub(super) fn wedged(&self) {
        self.counters.wedged();
    }

    /// A loop was found.
    pub(super) fn reported(&self, key: &ObjectKey, incident: Arc<Incident>) {
        self.counters.reported();
        self.lock().objects.touch(key).incident = Some(incident);
    }

    /// The wait of `key` for caches is over.
    pub(super) fn waited(&self, key: &ObjectKey, now: Time, seen: bool) {
        self.counters.waited(seen);
        if let Some(history) = self.lock().objects.get_mut(key)
            && let Some(last) = history.runs.back_mut()
            && last.wait_ended.is_none()
        {
            last.wait_ended = Some((now, seen));
        }
    }

    pub(super) fn explain(&self, key: &ObjectKey) -> Explanation {
        let state = self.lock();
        let now = state.origin.map(|origin| Time::ORIGIN + origin.elapsed());
        let now = now.unwrap_or(Time::ORIGIN);
        let Some(history) = state.objects.get(key) else {
            return Explanation {
                runs: Vec::new(),
                running_for: None,
                next: Next::default(),
                incident: None,
            };
        };
        Explanation {
            runs: history.runs.iter().map(|run| run.tell(now)).collect(),
            running_for: history.running.map(|start| now.since(start)),
            next: history.standing.tell(now),
            incident: history.incident.clone(),
        }
    }

    /// The loops that objects were found in lately, at most so many.
    pub(super) fn incidents(&self, limit: usize) -> Vec<(ObjectKey, String)> {
        let state = self.lock();
        let found = state.objects.iter().filter_map(|(key, history)| {
            let incident = history.incident.as_ref()?;
            Some((key.clone(), incident.to_string()))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    pub(super) fn counts(&self) -> Counts {
        self.counters.read()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self {
            origin: None,
            objects: Recent::new(OBJECTS),
        }
    }
}

// === impl History ===

impl Renew for History {
    fn renew(&mut self) {
        let Self {
            running,
            runs,
            standing,
            incident,
        } = self;
        *running = None;
        runs.clear();
        *standing = Standing::default();
        *incident = None;
    }
}

// === impl Record ===

impl Record {
    /// Forgets the writes that are too many to be kept.
    fn forget_many(&mut self) {
        self.more_writes = self.writes.len().saturating_sub(WRITES);
        self.missing.truncate(WRITES);
        if self.more_writes > 0 {
            self.writes.truncate(WRITES);
            self.writes.shrink_to_fit();
        }
    }

    fn tell(&self, now: Time) -> PastRun {
        let wait = (!self.missing.is_empty()).then(|| CacheWait {
            missing: self.missing.iter().map(cover::describe).collect(),
            duration: self.wait_ended.map(|(at, _)| at.since(self.ended)),
            seen: self.wait_ended.is_some_and(|(_, seen)| seen),
        });
        PastRun {
            ago: now.since(self.started),
            duration: self.ended.since(self.started),
            reason: describe(&self.causes, self.timer),
            self_triggered: self.is_self_triggered(),
            error: self.error.clone(),
            not_ready: self.not_ready.clone(),
            requests: self.requests,
            reads: self.reads,
            writes: self.writes.clone(),
            more_writes: self.more_writes,
            wait,
        }
    }

    /// Whether nothing but own writes has led to it.
    pub(super) fn is_self_triggered(&self) -> bool {
        self.timer.is_none()
            && !self.causes.is_empty()
            && self.causes.omitted() == 0
            && self.causes.iter().all(Cause::is_own)
    }
}

// === impl Standing ===

impl Standing {
    fn tell(&self, now: Time) -> Next {
        Next {
            run_in: self.next_run.map(|at| at.since(now)),
            failures: self.failures,
            backing_off: self.backing_off,
            awaits_change: self.parked,
            damped_for: self
                .damped_until
                .filter(|&until| until > now)
                .map(|until| until.since(now)),
        }
    }
}

// === impl Explanation ===

/// A line for each run and each write, and what comes next.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            running_for,
            next,
            incident,
        } = self;
        if runs.is_empty() && running_for.is_none() {
            return writeln!(f, "not reconciled lately");
        }
        for run in runs {
            write!(f, "{run}")?;
        }
        if let Some(incident) = incident {
            writeln!(f, "{incident}")?;
        }
        if let Some(time) = running_for {
            return writeln!(f, "has been running for {time:.1?}");
        }
        writeln!(f, "{next}")
    }
}

impl fmt::Display for PastRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (took, requests) = (Length(self.duration), self.requests);
        let plural = if requests == 1 { "" } else { "s" };
        write!(f, "{} ago: {}", Length(self.ago), self.reason)?;
        write!(f, "; took {took}, {requests} request{plural}")?;
        match (&self.error, &self.not_ready) {
            (Some(error), _) => writeln!(f, "; failed: {error}")?,
            (None, Some(store)) => {
                writeln!(f, "; too early: the store of {store} was not complete")?;
            }
            (None, None) => writeln!(f)?,
        }
        for write in &self.writes {
            writeln!(f, "  {write}")?;
        }
        if self.more_writes > 0 {
            writeln!(f, "  and {} more writes", self.more_writes)?;
        }
        let Some(CacheWait {
            missing,
            duration,
            seen,
        }) = &self.wait
        else {
            return Ok(());
        };
        let missing = missing.join(", ");
        match (duration, seen) {
            (None, _) => writeln!(f, "  waits for {missing}"),
            (Some(time), true) => writeln!(f, "  waited {time:.1?} for {missing}"),
            (Some(time), false) => writeln!(f, "  waited {time:.1?} in vain for {missing}"),
        }
    }
}

/// A time for people. Under a paused clock it is often none at all.
struct Length(Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            f.write_str("0s")
        } else {
            write!(f, "{:.1?}", self.0)
        }
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run_in {
            Some(time) if self.backing_off => write!(f, "backs off for {time:.1?}")?,
            Some(time) => write!(f, "runs again in {time:.1?}")?,
            None if self.awaits_change => {
                write!(f, "has failed, and waits for a change by somebody else")?;
            }
            None => write!(f, "runs when something happens")?,
        }
        if self.failures > 0 {
            write!(f, " after {} failures", self.failures)?;
        }
        if let Some(time) = self.damped_for {
            write!(f, "; is in a loop, so not within {time:.1?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Histories, Record, Standing, WRITES};
    use crate::{
        client::{Run, Tracked, in_run},
        reflector::ObjectKey,
    };
    use homeostat_apiserver::ApiServer;
    use homeostat_core::{queue::Causes, time::Time};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, api::PostParams};
    use std::sync::Arc;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn of_many_writes_the_first_are_kept_and_the_others_counted() {
        let server = ApiServer::builder().build();
        let maps: Api<ConfigMap> = Api::default_namespaced(Tracked::wrap(server.client()));
        let run = Arc::new(Run::default());
        in_run(Arc::clone(&run), async {
            for number in 0..40 {
                let mut map = ConfigMap::default();
                map.metadata.name = Some(format!("map-{number}"));
                maps.create(&PostParams::default(), &map).await.unwrap();
            }
        })
        .await;
        let histories = Histories::default();
        histories.begin(Instant::now());
        let key = ObjectKey::new(Some("default"), "a");
        let record = Record {
            started: Time::ORIGIN,
            ended: Time::ORIGIN,
            causes: Causes::default(),
            timer: None,
            error: None,
            not_ready: None,
            requests: run.requests(),
            reads: run.reads(),
            writes: run.take_writes(),
            more_writes: 0,
            missing: Vec::new(),
            wait_ended: None,
        };
        histories.finished(&key, record, Standing::default());
        let kept = &histories.lock().objects.get(&key).unwrap().runs[0]
            .writes
            .capacity();
        assert_eq!(*kept, WRITES);
        let told = &histories.explain(&key).runs[0];
        assert_eq!(
            (told.requests, told.writes.len(), told.more_writes),
            (40, 16, 24)
        );
        assert_eq!(told.writes[15].name(), "map-15");
        assert_eq!(histories.counts().writes, 40);
    }
}

//! Writes the log of a world while it happens.

use crate::{
    log::{Actor, Change, Effect, Entry, Event},
    object::{ObjectId, changed_paths, metadata},
};
use homeostat_apiserver::{ApiServer, StoredChange};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The log of one world. Clones share it.
#[derive(Clone)]
pub(crate) struct Recorder {
    server: ApiServer,
    start: Instant,
    state: Arc<Mutex<Recorded>>,
}

/// What is looked at after every write.
pub(crate) type Watchdog = Box<dyn Fn() -> Vec<String> + Send>;

struct Recorded {
    entries: Vec<Entry>,
    /// The revision up to which writes are in the log.
    revision: u64,
    /// The object of every uid that was ever there.
    uids: BTreeMap<String, ObjectId>,
    /// How many objects were created from each `generateName`, and what each is called here.
    stems: BTreeMap<ObjectId, String>,
    runs: u32,
    last_change: Duration,
    watchdog: Option<Watchdog>,
    violated: Vec<String>,
}

/// Resources whose objects come and go with every run and say nothing of the operator's state.
const PASSING: &[&str] = &[
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
];

/// Whether an operator may write such objects as often as it likes.
pub(crate) fn is_passing(object: &ObjectId) -> bool {
    PASSING.contains(&object.resource.as_str())
}

// === impl Recorder ===

impl Recorder {
    pub(crate) fn new(server: &ApiServer) -> Self {
        let recorded = Recorded {
            entries: Vec::new(),
            revision: server.revision(),
            uids: BTreeMap::new(),
            stems: BTreeMap::new(),
            runs: 0,
            last_change: Duration::ZERO,
            watchdog: None,
            violated: Vec::new(),
        };
        Self {
            server: server.clone(),
            start: Instant::now(),
            state: Arc::new(Mutex::new(recorded)),
        }
    }

    /// From now on this is asked after every write. Each thing that it says is noted once.
    pub(crate) fn set_watchdog(&self, watchdog: Option<Watchdog>) {
        self.lock().watchdog = watchdog;
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn note(&self, event: Event) {
        let at = self.now();
        self.lock().entries.push(Entry { at, event });
    }

    pub(crate) fn deed(&self, text: impl Into<String>) {
        self.note(Event::Deed(text.into()));
    }

    /// Notes that a reconcile began, and answers its number.
    pub(crate) fn begin_run(&self, object: String, reason: String) -> u32 {
        let at = self.now();
        let mut state = self.lock();
        state.runs += 1;
        let run = state.runs;
        let event = Event::Run {
            run,
            object,
            reason,
        };
        state.entries.push(Entry { at, event });
        run
    }

    /// Notes what the cluster has written by itself since the last look.
    pub(crate) fn note_cluster(&self) {
        for change in self.take_changes(Actor::Cluster) {
            self.note(Event::Cluster(change));
        }
    }

    /// What was written since the last look. What is passing does not count as a change of the world.
    pub(crate) fn take_changes(&self, actor: Actor) -> Vec<Change> {
        let at = self.now();
        let mut state = self.lock();
        if self.server.revision() == state.revision {
            return Vec::new();
        }
        let stored = self.server.changes_after(state.revision);
        let changes: Vec<Change> = stored
            .into_iter()
            .map(|stored| state.learn(&stored))
            .filter(|change| !(actor == Actor::Operator && is_passing(&change.object)))
            .collect();
        if changes.iter().any(|change| !is_passing(&change.object)) {
            state.last_change = at;
        }
        let watchdog = state.watchdog.take();
        drop(state);
        if let Some(watchdog) = watchdog {
            let barks = watchdog();
            let mut state = self.lock();
            for bark in barks {
                if !state.violated.contains(&bark) {
                    state.violated.push(bark.clone());
                    let event = Event::Violation(bark);
                    state.entries.push(Entry { at, event });
                }
            }
            state.watchdog = Some(watchdog);
        }
        changes
    }

    /// How long nothing was written.
    pub(crate) fn calm(&self) -> Duration {
        self.now().saturating_sub(self.lock().last_change)
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Looks at the entries from this one on.
    pub(crate) fn with<T>(&self, from: usize, look: impl FnOnce(&[Entry]) -> T) -> T {
        let state = self.lock();
        look(state.entries.get(from..).unwrap_or_default())
    }

    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.lock().entries)
    }

    pub(crate) fn uids(&self) -> BTreeMap<String, ObjectId> {
        self.lock().uids.clone()
    }

    /// What an object is called in every run.
    pub(crate) fn stem(&self, id: &ObjectId) -> ObjectId {
        self.lock().stem(id)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Recorded ===

impl Recorded {
    fn learn(&mut self, stored: &StoredChange) -> Change {
        self.revision = stored.revision;
        let object = ObjectId::new(
            &stored.group,
            &stored.resource,
            &stored.namespace,
            &stored.name,
        );
        let nothing = json!({});
        let before: &Value = stored.before.as_ref().unwrap_or(&nothing);
        let after: &Value = stored.after.as_ref().unwrap_or(&nothing);
        let effect = match (&stored.before, &stored.after) {
            (None, _) => Effect::Created,
            (Some(_), Some(_)) => Effect::Updated,
            (Some(_), None) => Effect::Deleted,
        };
        let paths = match effect {
            Effect::Updated => changed_paths(before, after),
            Effect::Created | Effect::Deleted => Vec::new(),
        };
        let there = if effect == Effect::Deleted {
            before
        } else {
            after
        };
        let uid = metadata(there, "uid").to_owned();
        if effect == Effect::Created {
            self.uids.insert(uid.clone(), object.clone());
            self.name(&object, metadata(there, "generateName"));
        }
        Change {
            revision: stored.revision,
            stem: self.stem(&object),
            object,
            uid,
            effect,
            before: metadata(before, "resourceVersion").to_owned(),
            paths,
        }
    }

    /// An object whose name the server made is called by the part that is not random.
    fn name(&mut self, object: &ObjectId, base: &str) {
        if base.is_empty() || self.stems.contains_key(object) {
            return;
        }
        self.stems.insert(object.clone(), format!("{base}*"));
    }

    fn stem(&self, id: &ObjectId) -> ObjectId {
        let mut stem = id.clone();
        if let Some(name) = self.stems.get(id) {
            stem.name.clone_from(name);
        }
        stem
    }
}

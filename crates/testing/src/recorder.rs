//! Writes the log of a world while it happens.

use crate::{
    log::{Actor, Change, Effect, Entry, Event},
    object::{ObjectId, changed_paths, metadata},
};
use homeostat_apiserver::{ApiServer, ChangeView};
use serde_json::Value;
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
pub(crate) type Watchdog = Box<dyn FnMut() -> Vec<String> + Send>;

struct Recorded {
    entries: Vec<Entry>,
    /// The revision up to which writes are in the log.
    revision: u64,
    names: Names,
    runs: u32,
    last_change: Duration,
    watchdog: Option<Watchdog>,
    violated: Vec<String>,
}

/// What the objects are called in every run.
#[derive(Default)]
pub(crate) struct Names {
    /// The object of every uid that was ever there.
    uids: BTreeMap<String, ObjectId>,
    /// The pod of every address that one ever had.
    addresses: BTreeMap<String, ObjectId>,
    /// What objects are called whose names the server made.
    stems: BTreeMap<ObjectId, String>,
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
            names: Names::default(),
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
        let mut changes = Vec::new();
        self.server.visit_changes(state.revision, |stored| {
            let change = state.learn(&stored);
            if !(actor == Actor::Operator && is_passing(&change.object)) {
                changes.push(change);
            }
        });
        if changes.iter().any(|change| !is_passing(&change.object)) {
            state.last_change = at;
        }
        let watchdog = state.watchdog.take();
        drop(state);
        if let Some(mut watchdog) = watchdog {
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

    /// Everything so far, which is forgotten here.
    pub(crate) fn take(&self) -> Vec<Entry> {
        let mut state = self.lock();
        state.violated.clear();
        std::mem::take(&mut state.entries)
    }

    /// Lends what the objects are called.
    pub(crate) fn with_names<T>(&self, look: impl FnOnce(&Names) -> T) -> T {
        look(&self.lock().names)
    }

    /// What an object is called in every run.
    pub(crate) fn stem(&self, id: &ObjectId) -> ObjectId {
        self.lock().names.stem(id)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Recorded ===

impl Recorded {
    fn learn(&mut self, stored: &ChangeView<'_>) -> Change {
        self.revision = stored.revision;
        let object = ObjectId::new(stored.group, stored.resource, stored.namespace, stored.name);
        let (before, after) = (stored.before, stored.after);
        let (effect, there) = match (before, after) {
            (Some(_), Some(after)) => (Effect::Updated, after),
            (Some(before), None) => (Effect::Deleted, before),
            (None, after) => (Effect::Created, after.unwrap_or(&Value::Null)),
        };
        let paths = match (before, after) {
            (Some(before), Some(after)) => changed_paths(before, after),
            (_, _) => Vec::new(),
        };
        self.names.learn(&object, there, effect);
        Change {
            revision: stored.revision,
            stem: self.names.stem(&object),
            object,
            uid: metadata(there, "uid").to_owned(),
            effect,
            before: before
                .map_or("", |before| metadata(before, "resourceVersion"))
                .to_owned(),
            paths,
        }
    }
}

// === impl Names ===

impl Names {
    /// The object that has or had a uid.
    pub(crate) fn of_uid(&self, uid: &str) -> Option<&ObjectId> {
        self.uids.get(uid)
    }

    /// The pod that has or had an address of the cluster's network.
    pub(crate) fn of_address(&self, address: &str) -> Option<&ObjectId> {
        self.addresses.get(address)
    }

    #[cfg(test)]
    pub(crate) fn of<const U: usize, const A: usize>(
        uids: [(&str, ObjectId); U],
        addresses: [(&str, ObjectId); A],
    ) -> Self {
        Self {
            uids: uids.map(|(uid, id)| (uid.to_owned(), id)).into(),
            addresses: addresses
                .map(|(address, id)| (address.to_owned(), id))
                .into(),
            stems: BTreeMap::new(),
        }
    }

    /// What an object is called in every run.
    pub(crate) fn stem(&self, id: &ObjectId) -> ObjectId {
        let mut stem = id.clone();
        if let Some(name) = self.stems.get(id) {
            stem.name.clone_from(name);
        }
        stem
    }

    fn learn(&mut self, object: &ObjectId, value: &Value, effect: Effect) {
        if effect == Effect::Created {
            let uid = metadata(value, "uid").to_owned();
            self.uids.insert(uid, object.clone());
            self.name(object, metadata(value, "generateName"));
        }
        if object.resource == "pods"
            && let Some(address) = value["status"]["podIP"].as_str()
            && !self.addresses.contains_key(address)
        {
            self.addresses.insert(address.to_owned(), self.stem(object));
        }
    }

    /// An object whose name the server made is called by the part that is not random.
    fn name(&mut self, object: &ObjectId, base: &str) {
        if base.is_empty() || self.stems.contains_key(object) {
            return;
        }
        self.stems.insert(object.clone(), format!("{base}*"));
    }
}

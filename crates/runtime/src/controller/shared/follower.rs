//! Who follows a shared watch: the store of its objects, and controllers for whose objects they matter.

use super::{
    super::{
        relation::Relations,
        source::{self, Filter, Signal, failed},
    },
    outbox::Outbox,
    pile::{Letter, Pile},
};
use crate::{
    client::Noted,
    reflector::{
        ObjectKey, Reader, Store, reading_now,
        store::{ObjectChange, Snapshot, Writer},
    },
    task::catch,
    watcher::{self, Event},
};
use homeostat_core::{cache::Change, queue::Priority};
use kube::Resource;
use std::{fmt::Debug, hash::Hash, sync::Arc};
use tokio::sync::mpsc;

/// What happens on a watch.
pub(super) enum Observed<K> {
    /// The server accepted a watch.
    Opened,
    Event(Event<K>),
    Failed(watcher::Error),
}

/// One who follows a watch. It must not take long.
pub(super) trait Follower<K>: Send {
    fn take_in(&mut self, observed: Observed<K>);

    /// All up to this version was taken in.
    fn reached(&mut self, version: u64);

    /// Takes in what is known of the watch's client.
    fn note(&mut self, noted: Noted);

    /// Whether nobody would miss it.
    fn is_over(&self) -> bool;

    /// Whether it keeps the objects.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// What one who comes late has missed, if that is known here.
    fn replay(&self) -> Option<Vec<Event<K>>> {
        None
    }

    /// Takes in those who have come to follow this one.
    /// `failing` is why the watch does not work at present.
    fn admit(&mut self, _failing: Option<&watcher::Error>) {}
}

/// Keeps the objects of a watch in a store, for all controllers of its kind and for whoever reads it.
pub(super) struct Keeper<K>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
{
    pub(super) writer: Writer<K>,
    /// Whether it is there without controllers.
    pub(super) pinned: Arc<std::sync::atomic::AtomicBool>,
    pub(super) joining: mpsc::UnboundedReceiver<Feed<K>>,
    pub(super) feeds: Vec<Feed<K>>,
    pub(super) reached: Option<u64>,
    pub(super) managed_fields: bool,
}

/// A controller of the kind that is watched.
pub(super) struct Feed<K> {
    pub(super) outbox: Arc<Outbox>,
    pub(super) filter: Option<Filter<K>>,
    /// Whether it wants to know of changes that do not matter.
    pub(super) wants_passed: Box<dyn Fn() -> bool + Send>,
    pub(super) reader: Arc<Reader>,
    pub(super) synced: bool,
}

/// A controller to whose objects those that are watched are related.
pub(super) struct Relating<K: Resource, F> {
    pub(super) outbox: Arc<Outbox>,
    pub(super) relations: Arc<Relations<K>>,
    pub(super) relate: F,
    pub(super) reader: Arc<Reader>,
}

// === impl Observed ===

impl<K: Clone> Observed<K> {
    pub(super) fn copy(&self) -> Self {
        match self {
            Self::Opened => Self::Opened,
            Self::Event(event) => Self::Event(event.clone()),
            Self::Failed(error) => Self::Failed(error.retold()),
        }
    }
}

// === impl Keeper ===

impl<K> Keeper<K>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn tell(&self, signal: impl Fn() -> Signal) {
        for feed in &self.feeds {
            feed.outbox.put([signal()]);
        }
    }
}

impl<K> Follower<K> for Keeper<K>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn take_in(&mut self, observed: Observed<K>) {
        match observed {
            Observed::Opened => {
                self.writer.works();
                self.tell(|| Signal::Recovered);
            }
            Observed::Event(event) => {
                let listed = matches!(event, Event::InitDone);
                let changes: Vec<_> = {
                    let event = source::slim(event, self.managed_fields);
                    self.writer.take_in(event).collect()
                };
                for feed in &mut self.feeds {
                    feed.take_in(&changes, listed);
                }
            }
            Observed::Failed(error) => {
                let changes: Vec<_> = self.writer.take_in_error(&error).collect();
                for feed in &mut self.feeds {
                    feed.pass(&changes, Priority::Normal, false);
                }
                self.tell(|| failed(error.retold()));
            }
        }
    }

    fn reached(&mut self, version: u64) {
        self.reached = Some(version);
        let store = self.writer.as_reader();
        store.progress().listed(Some(version));
        for feed in &self.feeds {
            feed.outbox.reached(version);
        }
    }

    fn note(&mut self, noted: Noted) {
        for feed in &self.feeds {
            feed.outbox.note(noted);
        }
    }

    fn is_over(&self) -> bool {
        let pinned = self.pinned.load(std::sync::atomic::Ordering::Acquire);
        let followed = self.feeds.iter().any(|feed| !feed.outbox.is_closed());
        !pinned && !followed && self.joining.is_empty()
    }

    fn keeps_objects(&self) -> bool {
        true
    }

    fn replay(&self) -> Option<Vec<Event<K>>> {
        let store = self.writer.as_reader().even_if_incomplete();
        store.is_ready().then(|| {
            let objects = store.state().into_iter();
            let objects = objects.map(|obj| Event::InitApply((*obj).clone()));
            let all = std::iter::once(Event::Init).chain(objects);
            all.chain([Event::InitDone]).collect()
        })
    }

    fn admit(&mut self, failing: Option<&watcher::Error>) {
        self.feeds.retain(|feed| !feed.outbox.is_closed());
        while let Ok(mut feed) = self.joining.try_recv() {
            feed.catch_up(&self.writer.as_reader(), self.reached);
            feed.outbox.put(failing.map(|error| failed(error.retold())));
            self.feeds.push(feed);
        }
    }
}

// === impl Feed ===

impl<K> Feed<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Tells of all that is there.
    fn catch_up(&mut self, store: &Store<K>, reached: Option<u64>) {
        let store = store.even_if_incomplete();
        if !store.is_ready() {
            return;
        }
        let objects = store.state().into_iter();
        let all: Vec<_> = objects
            .map(|new| Change::Added {
                key: ObjectKey::of(&*new),
                new: Snapshot::Whole(new),
            })
            .collect();
        self.take_in(&all, true);
        if let Some(version) = reached {
            self.outbox.reached(version);
        }
    }

    fn take_in(&mut self, changes: &[ObjectChange<K>], listed: bool) {
        let priority = source::priority(self.synced);
        if listed {
            // Before its objects, so that those which have run need not wait for those which have not come.
            self.synced = true;
            self.outbox.put([Signal::Synced]);
        }
        self.pass(changes, priority, !listed);
    }

    fn pass(&mut self, changes: &[ObjectChange<K>], priority: Priority, single: bool) {
        if changes.is_empty() || self.outbox.is_closed() {
            return;
        }
        let filter = self.filter.as_deref();
        let wants_passed = (self.wants_passed)();
        let tell = || -> Pile {
            let changes = changes.iter().cloned();
            changes
                .filter_map(|change| source::signal(change, filter, priority, single))
                .filter(|signal| wants_passed || !matches!(signal, Signal::Passed(_)))
                .map(Letter::Signal)
                .collect()
        };
        let reader = Arc::clone(&self.reader);
        match reading_now(reader, || catch(tell)) {
            Ok(pile) => self.outbox.put_pile(pile),
            Err(panic) => give_up(&self.outbox, &panic),
        }
    }
}

// === impl Relating ===

impl<K, F> Follower<K> for Relating<K, F>
where
    K: Resource + Send + 'static,
    K::DynamicType: Clone,
    F: Fn(K) -> Vec<ObjectKey> + Send,
{
    fn take_in(&mut self, observed: Observed<K>) {
        if self.outbox.is_closed() {
            return;
        }
        let Self {
            relations, relate, ..
        } = &*self;
        let tell = || match observed {
            Observed::Opened => vec![Signal::Recovered],
            Observed::Failed(error) => relations.take_in_error(error),
            Observed::Event(event) => relations.take_in(event, relate),
        };
        let reader = Arc::clone(&self.reader);
        match reading_now(reader, || catch(tell)) {
            Ok(signals) => self.outbox.put(signals),
            Err(panic) => give_up(&self.outbox, &panic),
        }
    }

    fn reached(&mut self, version: u64) {
        self.outbox.reached(version);
    }

    fn note(&mut self, noted: Noted) {
        self.outbox.note(noted);
    }

    fn is_over(&self) -> bool {
        self.outbox.is_closed()
    }
}

/// A mapper or a filter has panicked. Its controller hears nothing more of this watch; all others do.
fn give_up(outbox: &Outbox, panic: &str) {
    tracing::error!(
        panic,
        "a mapper or filter of a controller has panicked: its watch is followed no more"
    );
    outbox.close();
}

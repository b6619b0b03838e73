//! Watches that the controllers of a manager share (rule R18).
//!
//! Equal watches are one [`Hub`](hub::Hub), which runs in a task of its own and hands what happens to its followers:
//! each controller of the kind, each controller with related objects of the kind, and the one store of its objects.

mod follower;
mod hub;
mod outbox;
mod pile;
mod tally;

use self::{
    follower::{Feed, Keeper, Relating},
    hub::{Hub, Order},
    outbox::{Inbox, Outbox},
};
use super::{
    cover::Covers,
    relation::Related,
    source::{self, Filter, Primary, Source},
};
use crate::{
    client::{self, Traffic},
    progress::Progress,
    recovery,
    reflector::{ObjectKey, Reader, Registry, Store, store::Writer},
    sharding::Shares,
    task::{self, Task},
    watcher::{self, Heard, ListSemantic, Origin},
};
use futures::StreamExt;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt::Debug,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, mpsc, watch};

#[cfg(feature = "metrics")]
pub(crate) use self::tally::Tallied;
use self::tally::Tally;

/// The watches of one manager. Clones are of the same manager.
#[derive(Clone)]
pub(crate) struct Watches(Arc<Shared>);

struct Shared {
    hubs: Mutex<BTreeMap<Key, Entry>>,
    /// Stores that every controller waits for.
    stores: Mutex<Vec<Box<dyn Fn() -> Source + Send>>>,
    /// Whether requests may be sent: when all who are there at the beginning have joined.
    opened: watch::Sender<bool>,
    /// How watches are told that the server may answer again.
    back: Arc<Notify>,
    /// Where the requests of the manager are counted.
    traffic: Arc<Traffic>,
}

/// What makes two watches equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: TypeId,
    url: String,
    labels: Option<String>,
    fields: Option<String>,
    any_version: bool,
    managed_fields: bool,
    /// Whether it is of the objects of this replica only.
    sharded: bool,
}

/// A watch, to whoever wants to join it.
struct Entry {
    label: String,
    /// An `UnboundedSender<Order<K>>`.
    orders: Box<dyn Any + Send>,
    /// A `Kept<K>`, if somebody wants the objects.
    kept: Option<Box<dyn Any + Send>>,
    /// How many objects are kept.
    #[cfg(feature = "metrics")]
    objects: Option<Box<dyn Fn() -> usize + Send>>,
    #[cfg(feature = "metrics")]
    tally: Arc<Tally>,
    _task: Task<()>,
}

/// The store of a watch.
struct Kept<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    store: Store<K>,
    feeds: mpsc::UnboundedSender<Feed<K>>,
    pinned: Arc<AtomicBool>,
}

/// What sources of one controller have in common.
pub(super) struct Joint {
    pub(super) covers: Arc<Covers>,
    pub(super) registry: Arc<Registry>,
    /// The watches of the manager, if there is one.
    pub(super) watches: Option<Watches>,
    /// What belongs to this replica, if there are others that work.
    pub(super) shares: Option<Shares>,
}

// === impl Key ===

impl Key {
    fn of<K: Resource + 'static>(
        api: &Api<K>,
        config: &watcher::Config,
        managed_fields: bool,
    ) -> Self {
        Self {
            object: TypeId::of::<K>(),
            url: api.resource_url().to_owned(),
            labels: config.label_selector.clone(),
            fields: config.field_selector.clone(),
            any_version: config.list_semantic == ListSemantic::Any,
            managed_fields,
            sharded: false,
        }
    }
}

// === impl Watches ===

impl Watches {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            hubs: Mutex::default(),
            stores: Mutex::default(),
            opened: watch::Sender::new(false),
            back: Arc::default(),
            traffic: Arc::default(),
        }))
    }

    /// Lets watches begin.
    pub(crate) fn open(&self) {
        self.0.opened.send_replace(true);
    }

    /// Ends all watches.
    pub(crate) fn close(&self) {
        let hubs = std::mem::take(&mut *self.hubs());
        drop(hubs);
        let mut stores = self.0.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.clear();
    }

    /// How all who wait for the server are told that it may answer again.
    pub(crate) fn back(&self) -> Arc<Notify> {
        Arc::clone(&self.0.back)
    }

    /// Where the requests of the manager are counted.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.0.traffic
    }

    /// What is watched, for people.
    pub(crate) fn labels(&self) -> Vec<String> {
        let hubs = self.hubs();
        hubs.values().map(|entry| entry.label.clone()).collect()
    }

    /// What each watch has counted: what it watches, that, and how many objects are kept of it.
    #[cfg(feature = "metrics")]
    pub(crate) fn tallied(&self) -> Vec<(String, Tallied, Option<usize>)> {
        let hubs = self.hubs();
        let all = hubs.values().map(|entry| {
            let objects = entry.objects.as_ref().map(|count| count());
            (entry.label.clone(), entry.tally.read(), objects)
        });
        all.collect()
    }

    /// Sources that wait for the stores that every controller waits for.
    pub(super) fn awaited(&self) -> Vec<Source> {
        let stores = self.0.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().map(|source| source()).collect()
    }

    /// The store of a watch, which is there as long as the manager. Every controller that starts from now on waits
    /// for it.
    pub(crate) fn store<K>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        dyntype: &K::DynamicType,
    ) -> Store<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        let key = Key::of(&api, &config, false);
        let mut hubs = self.hubs();
        let entry = self.entry(&mut hubs, &key, (&api, &config), None);
        let kept = kept::<K>(entry, &key, &api, &config, dyntype);
        let store = kept.store.clone();
        if kept.pinned.swap(true, Ordering::AcqRel) {
            return store;
        }
        drop(hubs);
        let waited = store.clone();
        let source = move || Source::of_read_store(&waited, &api, &config);
        let mut stores = self.0.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.push(Box::new(source));
        store
    }

    /// A controller's own kind.
    pub(super) fn primary<K>(
        &self,
        primary: Primary<K>,
        filter: Option<Filter<K>>,
        managed_fields: bool,
        joint: &Joint,
    ) -> Source
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        let Primary {
            api,
            config,
            writer,
        } = primary;
        let key = Key {
            sharded: joint.shares.is_some(),
            ..Key::of(&api, &config, managed_fields)
        };
        let reader = writer.as_reader();
        let covers = Arc::clone(&joint.covers);
        let outbox = Outbox::new();
        let feed = Feed {
            outbox: Arc::clone(&outbox),
            filter,
            wants_passed: Box::new(move || !covers.are_tracked()),
            reader: Arc::new(Reader::of_source(Arc::clone(&joint.registry))),
            synced: false,
        };
        let mut hubs = self.hubs();
        let entry = self.entry(&mut hubs, &key, (&api, &config), joint.shares.as_ref());
        let kept = kept::<K>(entry, &key, &api, &config, reader.dyntype());
        writer.join(&kept.store);
        let store = kept.store.clone();
        // Its hub is there as long as the entry.
        let _joined = kept.feeds.send(feed);
        let orders = orders::<K>(entry);
        let _told = orders.send(Order::Look);
        drop(hubs);
        let status = Arc::clone(store.status());
        let (label, cover) = source::watched(&api, &config, Arc::new(store), Progress::default());
        let leave = move || drop(orders.send(Order::Look));
        let signals = Inbox::new(outbox, cover.progress.clone(), leave);
        Source {
            label,
            syncs: true,
            cover: Some(cover),
            store: Some(status),
            asks: true,
            signals: signals.boxed(),
        }
    }

    /// Objects that have to do with those of a controller.
    pub(super) fn related<Child, F>(
        &self,
        api: &Api<Child>,
        config: &watcher::Config,
        related: Related<Child, F>,
        joint: &Joint,
    ) -> Source
    where
        Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::DynamicType: Clone,
        F: Fn(Child) -> Vec<ObjectKey> + Send + 'static,
    {
        let Related {
            relations,
            relate,
            cover,
            label,
        } = related;
        let key = Key::of(api, config, false);
        let outbox = Outbox::new();
        let follower = Relating {
            outbox: Arc::clone(&outbox),
            relations,
            relate,
            reader: Arc::new(Reader::of_source(Arc::clone(&joint.registry))),
        };
        let mut hubs = self.hubs();
        let entry = self.entry(&mut hubs, &key, (api, config), None);
        let orders = orders::<Child>(entry);
        // Its hub is there as long as the entry.
        let _joined = orders.send(Order::Follow(Box::new(follower)));
        drop(hubs);
        let leave = move || drop(orders.send(Order::Look));
        let signals = Inbox::new(outbox, cover.progress.clone(), leave);
        Source {
            label,
            syncs: true,
            cover: Some(cover),
            store: None,
            asks: true,
            signals: signals.boxed(),
        }
    }

    /// The watch with this key, which is started if there is none.
    fn entry<'a, K>(
        &self,
        hubs: &'a mut BTreeMap<Key, Entry>,
        key: &Key,
        (api, config): (&Api<K>, &watcher::Config),
        shares: Option<&Shares>,
    ) -> &'a mut Entry
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        hubs.entry(key.clone()).or_insert_with(|| {
            let (sender, orders) = mpsc::unbounded_channel::<Order<K>>();
            let tally = Arc::<Tally>::default();
            let hub = Hub::new(
                (api.clone(), config.clone()),
                shares.cloned(),
                orders,
                Arc::clone(&tally),
            );
            let mut opened = self.0.opened.subscribe();
            let (all, key) = (Arc::downgrade(&self.0), key.clone());
            let run = async move {
                if opened.wait_for(|opened| *opened).await.is_err() {
                    return;
                }
                hub.run(move |nobody_follows| {
                    let Some(all) = all.upgrade() else {
                        return true;
                    };
                    let mut hubs = all.hubs();
                    nobody_follows() && {
                        // The task that is dropped with it is this one, which ends by itself right now.
                        hubs.remove(&key);
                        true
                    }
                })
                .await;
            };
            let run = client::counted(Arc::clone(&self.0.traffic), client::noting_requests(run));
            let run = recovery::told_by(Arc::clone(&self.0.back), run);
            Entry {
                label: Origin::new(watcher::target(api), config).to_string(),
                orders: Box::new(sender),
                kept: None,
                #[cfg(feature = "metrics")]
                objects: None,
                #[cfg(feature = "metrics")]
                tally,
                _task: task::start(run),
            }
        })
    }

    fn hubs(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.0.hubs()
    }
}

impl Shared {
    fn hubs(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the watch of an entry is told something.
fn orders<K: 'static>(entry: &Entry) -> mpsc::UnboundedSender<Order<K>> {
    let orders = entry
        .orders
        .downcast_ref::<mpsc::UnboundedSender<Order<K>>>();
    orders
        .expect("the type of the objects is a part of the key")
        .clone()
}

/// The store of a watch, which is made if nobody has wanted it before.
fn kept<'a, K>(
    entry: &'a mut Entry,
    key: &Key,
    api: &Api<K>,
    config: &watcher::Config,
    dyntype: &K::DynamicType,
) -> &'a Kept<K>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let orders = orders::<K>(entry);
    let kept = entry.kept.get_or_insert_with(|| {
        let mut writer = Writer::new(dyntype.clone());
        let origin = Origin::new(watcher::target(api), config);
        writer.hear(Heard::One(Arc::new(origin)));
        let (feeds, joining) = mpsc::unbounded_channel();
        let store = writer.as_reader();
        #[cfg(feature = "metrics")]
        {
            let counted = store.even_if_incomplete();
            entry.objects = Some(Box::new(move || counted.len()));
        }
        let pinned = Arc::<AtomicBool>::default();
        let keeper = Keeper {
            writer,
            pinned: Arc::clone(&pinned),
            joining,
            feeds: Vec::new(),
            reached: None,
            managed_fields: key.managed_fields,
        };
        // Its hub is there as long as the entry.
        let _joined = orders.send(Order::Follow(Box::new(keeper)));
        Box::new(Kept::<K> {
            store,
            feeds,
            pinned,
        })
    });
    let kept = kept.downcast_ref::<Kept<K>>();
    kept.expect("the type of the objects is a part of the key")
}

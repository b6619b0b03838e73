//! The store of a reflector: one writer, many readers.

use super::{
    Lookup, ObjectRef,
    entries::{Entries, Indexed},
    key::{Named, ObjectKey},
    mailbox::Mailbox,
    names_kind,
};
use crate::{progress::Progress, watcher};
use homeostat_core::cache::{Cache, Change, Versioned};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use std::{
    fmt::{self, Debug},
    hash::Hash,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
};
use tokio::sync::watch;

pub(crate) use super::snapshot::{ObjectChange, Snapshot};

/// A reader of the objects that a [`Writer`] keeps. Clones are cheap and see the same objects.
///
/// # Guarantees
///
/// - Objects are ordered by namespace and name.
/// - Before the first list is complete there are no objects; later lists take effect at once when
///   they are complete. Nobody sees a half-built store.
/// - An object is handed out as an `Arc` and never copied.
pub struct Store<K: 'static + Lookup>
where
    K::DynamicType: Hash + Eq,
{
    shared: Arc<Shared<K>>,
    ready: watch::Receiver<bool>,
}

/// The one writer of a [`Store`].
pub struct Writer<K: 'static + Lookup>
where
    K::DynamicType: Eq + Hash,
{
    shared: Arc<Shared<K>>,
    ready: watch::Sender<bool>,
    /// Changes of the latest event; kept to use its memory again.
    changes: Vec<ObjectChange<K>>,
}

/// What a writer and its readers share.
struct Shared<K: Lookup> {
    dyntype: K::DynamicType,
    state: RwLock<State<K>>,
    /// How far the objects are up to date: as of the latest version among them, at least.
    progress: Progress,
}

struct State<K> {
    objects: Cache<ObjectKey, Snapshot<K>>,
    subscribers: Vec<Weak<Mailbox<K>>>,
    indexes: Vec<Weak<dyn Indexed<K>>>,
    /// By the uid of each owner; made when it is first asked for.
    owners: Option<Arc<Entries<K, String>>>,
    /// Whether the writer is gone.
    closed: bool,
}

/// The writer of a store was dropped before the store was ready, so it never will be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the store's writer was dropped before its first list was complete: keep polling the stream that fills it"
)]
pub struct WriterDropped(());

/// The first list of a store is not complete yet, so nothing can be said of what is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store's first list is not complete: wait for it with `wait_until_ready`")]
pub struct NotReady(());

/// An empty store and its writer.
#[must_use]
pub fn store<K>() -> (Store<K>, Writer<K>)
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    let writer = Writer::default();
    (writer.as_reader(), writer)
}

/// The same as [`store`]: every store can be [subscribed](Store::subscribe) to.
///
/// The size is not needed. What waits for a subscriber is the latest state of each object that it
/// has not seen, so it is bounded by the objects, and nobody waits for a slow one.
#[must_use]
pub fn store_shared<K>(_buf_size: usize) -> (Store<K>, Writer<K>)
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    store()
}

// === impl Writer ===

impl<K: 'static + Lookup + Clone> Writer<K>
where
    K::DynamicType: Eq + Hash + Clone,
{
    /// The writer of a new, empty store for a type known at run time.
    #[must_use]
    pub fn new(dyntype: K::DynamicType) -> Self {
        let state = State {
            objects: Cache::default(),
            subscribers: Vec::new(),
            indexes: Vec::new(),
            owners: None,
            closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                dyntype,
                state: RwLock::new(state),
                progress: Progress::default(),
            }),
            ready: watch::Sender::new(false),
            changes: Vec::new(),
        }
    }

    /// The same as [`new`](Self::new); see [`store_shared`] for the size.
    #[must_use]
    pub fn new_shared(_buf_size: usize, dyntype: K::DynamicType) -> Self {
        Self::new(dyntype)
    }

    /// A reader of this store.
    #[must_use]
    pub fn as_reader(&self) -> Store<K> {
        Store {
            shared: Arc::clone(&self.shared),
            ready: self.ready.subscribe(),
        }
    }

    /// Takes in one event of a watch.
    ///
    /// The event is borrowed, so its object is copied. The adapters of this crate hand objects over
    /// instead; [`reflect`](crate::WatchStreamExt::reflect) is the usual way to fill a store.
    pub fn apply_watcher_event(&mut self, event: &watcher::Event<K>) {
        self.take_in(event.clone());
    }

    /// Takes in one event of a watch, and tells what it changed.
    pub(crate) fn take_in(
        &mut self,
        event: watcher::Event<K>,
    ) -> std::vec::Drain<'_, ObjectChange<K>> {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let reached = match &event {
            Apply(obj) | Delete(obj) => version(obj),
            Init | InitApply(_) | InitDone => None,
        };
        let listed = matches!(event, InitDone);
        let changes = &mut self.changes;
        let mut state = self.shared.write();
        match event {
            Apply(obj) => state
                .objects
                .apply(ObjectKey::of(&obj), snapshot(obj), changes),
            Delete(obj) => state
                .objects
                .delete(ObjectKey::of(&obj), snapshot(obj), changes),
            Init => state.objects.begin(),
            InitApply(obj) => state.objects.stage(ObjectKey::of(&obj), snapshot(obj)),
            InitDone => {
                state.objects.commit(changes);
                self.ready
                    .send_if_modified(|ready| !std::mem::replace(ready, true));
            }
        }
        state.tell(changes);
        let latest = listed.then(|| state.latest());
        drop(state);
        match (latest, reached) {
            (Some(latest), _) => self.shared.progress.listed(latest),
            (None, Some(reached)) => self.shared.progress.reached(reached),
            (None, None) => {}
        }
        self.changes.drain(..)
    }

    /// Takes in that a watch failed, and tells what that changed: an object that cannot be decoded
    /// keeps the state that is known of it, until it is deleted.
    pub(crate) fn take_in_error(
        &mut self,
        error: &watcher::Error,
    ) -> std::vec::Drain<'_, ObjectChange<K>> {
        let changes = &mut self.changes;
        let mut state = self.shared.write();
        take_in_error(&mut state.objects, error, changes);
        state.tell(changes);
        self.changes.drain(..)
    }
}

impl<K: 'static + Lookup> Drop for Writer<K>
where
    K::DynamicType: Eq + Hash,
{
    fn drop(&mut self) {
        let mut state = self.shared.write();
        state.closed = true;
        for mailbox in state.subscribers.drain(..) {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.close();
            }
        }
    }
}

impl<K: 'static + Lookup + Clone> Default for Writer<K>
where
    K::DynamicType: Eq + Hash + Clone + Default,
{
    fn default() -> Self {
        Self::new(K::DynamicType::default())
    }
}

impl<K: 'static + Lookup> Debug for Writer<K>
where
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

// === impl Store ===

impl<K: 'static + Lookup> Store<K>
where
    K::DynamicType: Hash + Eq,
{
    /// Waits until the first list is complete.
    ///
    /// # Errors
    ///
    /// [`WriterDropped`] if that can no longer happen.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        let mut ready = self.ready.clone();
        match ready.wait_for(|ready| *ready).await {
            Ok(_) => Ok(()),
            Err(_) => Err(WriterDropped(())),
        }
    }

    /// This store, once its first list is complete: for reads that must not take an empty store
    /// for an empty cluster.
    ///
    /// Reconcilers need not ask: a controller runs none before its caches are complete.
    ///
    /// ```
    /// use homeostat::reflector::{self, store::NotReady};
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// let (store, _writer) = reflector::store::<Secret>();
    /// assert_eq!(store.state().len(), 0, "which says nothing yet");
    /// let secrets: Result<_, NotReady> = store.ready().map(|store| store.state());
    /// assert!(secrets.is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotReady`] before that.
    pub fn ready(&self) -> Result<&Self, NotReady> {
        if self.is_ready() {
            Ok(self)
        } else {
            Err(NotReady(()))
        }
    }

    /// A mailbox for all objects, and then for what happens in this store.
    pub(super) fn mailbox(&self) -> Arc<Mailbox<K>> {
        let mut state = self.shared.write();
        let objects = state
            .objects
            .iter()
            .map(|(key, obj)| (key.clone(), Arc::clone(&obj.0)));
        let mailbox = Arc::new(Mailbox::new(objects));
        if state.closed {
            mailbox.close();
        } else {
            state.subscribers.push(Arc::downgrade(&mailbox));
        }
        mailbox
    }

    /// What an index of the objects holds, kept up to date as long as somebody holds it.
    pub(super) fn entries<V, I>(
        &self,
        property: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Arc<Entries<K, V>>
    where
        K: Send + Sync,
        V: Ord + Send + 'static,
        I: IntoIterator<Item = V>,
    {
        self.shared.write().index(property)
    }

    /// The objects that `owner` owns: those with its uid in their owner references.
    ///
    /// The first call makes an index, which the store keeps from then on.
    pub fn owned_by<O: Resource>(&self, owner: &O) -> Vec<Arc<K>>
    where
        K: Resource + Send + Sync,
    {
        let uid = owner.meta().uid.as_deref();
        uid.map(|uid| self.owned_by_uid(uid)).unwrap_or_default()
    }

    /// The objects with this uid in their owner references.
    pub(crate) fn owned_by_uid(&self, uid: &str) -> Vec<Arc<K>>
    where
        K: Resource + Send + Sync,
    {
        let known = self.shared.read().owners.clone();
        let owners = known.unwrap_or_else(|| {
            let mut state = self.shared.write();
            // Somebody else may have made it meanwhile.
            let known = state.owners.clone();
            known.unwrap_or_else(|| {
                let uids = |obj: &K| {
                    let owners = obj.owner_references().iter();
                    owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
                };
                let made = state.index(uids);
                state.owners = Some(Arc::clone(&made));
                made
            })
        });
        self.get_all(|| owners.keys_of(&uid.to_owned()))
    }

    /// The object that owns `child`: the one that an owner reference of `child` names by kind, name
    /// and uid. An object with the owner's name and another uid is another object.
    pub fn owner_of<C: Resource>(&self, child: &C) -> Option<Arc<K>> {
        let namespace = child.meta().namespace.as_deref();
        child.owner_references().iter().find_map(|owner| {
            if !names_kind::<K>(owner, self.dyntype()) {
                return None;
            }
            let found = self.get_named(namespace.unwrap_or_default(), &owner.name)?;
            (found.uid().as_deref() == Some(&owner.uid)).then_some(found)
        })
    }

    /// The objects in a namespace, ordered by name.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let cache = &self.shared.read().objects;
        let first = ObjectKey::new(Some(namespace), "");
        let from = cache.iter_from(&first);
        let there = from.take_while(|(key, _)| key.namespace() == namespace);
        there.map(|(_, obj)| Arc::clone(&obj.0)).collect()
    }

    /// The objects with the keys that `keys` finds, in one state of the store.
    pub(super) fn get_all(&self, keys: impl FnOnce() -> Vec<ObjectKey>) -> Vec<Arc<K>> {
        let cache = &self.shared.read().objects;
        let found = keys().into_iter().filter_map(|key| cache.get(&key));
        found.map(|obj| Arc::clone(&obj.0)).collect()
    }

    /// The type of the objects, for those known at run time.
    pub(crate) fn dyntype(&self) -> &K::DynamicType {
        &self.shared.dyntype
    }

    /// How far the store has come.
    pub(crate) fn progress(&self) -> Progress {
        self.shared.progress.clone()
    }

    /// Whether the first list is complete.
    pub(crate) fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// The object that `reference` names.
    ///
    /// A reference with a namespace finds an object of the cluster too: the owner of a namespaced
    /// object may be one, and its owner reference does not tell.
    #[must_use]
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        self.get_named(namespace, &reference.name)
    }

    fn get_named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let cache = &self.shared.read().objects;
        let find = |namespace: &str| {
            let key = (namespace, name);
            cache
                .get(&key as &dyn Named)
                .map(|found| Arc::clone(&found.0))
        };
        find(namespace).or_else(|| (!namespace.is_empty()).then(|| find(""))?)
    }

    /// The object with exactly this key.
    pub(crate) fn get_key(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.shared
            .read()
            .objects
            .get(key)
            .map(|found| Arc::clone(&found.0))
    }

    /// The keys of all objects.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        let cache = &self.shared.read().objects;
        cache.iter().map(|(key, _)| key.clone()).collect()
    }

    /// All objects, as they are now.
    #[must_use]
    pub fn state(&self) -> Vec<Arc<K>> {
        self.state_filter(|_| true)
    }

    /// The objects that fulfil `predicate`. It runs under the store's lock, so keep it short.
    pub fn state_filter(&self, predicate: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let cache = &self.shared.read().objects;
        let all = cache.iter().map(|(_, obj)| &obj.0);
        all.filter(|obj| predicate(obj)).cloned().collect()
    }

    /// The objects whose labels match `selector`.
    #[must_use]
    pub fn state_filter_selector(&self, selector: &Selector) -> Vec<Arc<K>>
    where
        K: ResourceExt,
    {
        self.state_filter(|obj| selector.matches(obj.labels()))
    }

    /// The first object, by namespace and name, that fulfils `predicate`. It runs under the
    /// store's lock, so keep it short.
    pub fn find(&self, predicate: impl Fn(&K) -> bool) -> Option<Arc<K>> {
        let cache = &self.shared.read().objects;
        let mut all = cache.iter().map(|(_, obj)| &obj.0);
        all.find(|obj| predicate(obj)).cloned()
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: 'static + Lookup> Clone for Store<K>
where
    K::DynamicType: Hash + Eq,
{
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            ready: self.ready.clone(),
        }
    }
}

impl<K: 'static + Lookup> Debug for Store<K>
where
    K::DynamicType: Hash + Eq,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("len", &self.len())
            .field("ready", &self.is_ready())
            .finish()
    }
}

// === impl State ===

impl<K: Lookup> State<K> {
    /// The latest version among the objects: a list of them is at least that recent.
    fn latest(&self) -> Option<u64> {
        let versions = self.objects.iter().map(|(_, obj)| version(&*obj.0));
        versions.max().flatten()
    }

    /// Makes an index and keeps it up to date as long as somebody holds it.
    fn index<V, I>(
        &mut self,
        property: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Arc<Entries<K, V>>
    where
        K: Send + Sync + 'static,
        V: Ord + Send + 'static,
        I: IntoIterator<Item = V>,
    {
        let values = move |obj: &K| property(obj).into_iter().collect();
        let entries = Arc::new(Entries::new(values, self.objects.iter()));
        let indexed: Arc<dyn Indexed<K>> = entries.clone();
        self.indexes.push(Arc::downgrade(&indexed));
        entries
    }

    /// Tells everybody who follows the store what happened.
    fn tell(&mut self, changes: &[ObjectChange<K>]) {
        if changes.is_empty() {
            return;
        }
        self.indexes.retain(|index| {
            let index = index.upgrade();
            index.is_some_and(|index| {
                index.take_in(changes);
                true
            })
        });
        self.subscribers.retain(|mailbox| {
            let Some(mailbox) = mailbox.upgrade() else {
                return false;
            };
            mailbox.put(changes.iter().map(|change| match change {
                Change::Added { key, new } | Change::Modified { key, new, old: _ } => {
                    (key.clone(), Arc::clone(&new.0), false)
                }
                Change::Deleted { key, last, old: _ } => (key.clone(), Arc::clone(&last.0), true),
            }));
            true
        });
    }
}

// === impl Shared ===

/// A panic of a reader's predicate leaves the objects whole, so a poisoned lock is as good as any.
impl<K: Lookup> Shared<K> {
    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a failure of a watch into a cache of what it delivers.
pub(crate) fn take_in_error<V: Versioned + Clone>(
    cache: &mut Cache<ObjectKey, V>,
    error: &watcher::Error,
    changes: &mut Vec<Change<ObjectKey, V>>,
) {
    let watcher::Error::Undecodable(object) = error else {
        return;
    };
    let key = ObjectKey::new(object.namespace.as_deref(), &object.name);
    if object.deleted {
        cache.remove(&key, changes);
    } else {
        cache.keep(&key);
    }
}

fn version<K: Lookup>(obj: &K) -> Option<u64> {
    obj.resource_version()?.parse().ok()
}

fn snapshot<K>(obj: K) -> Snapshot<K> {
    Snapshot(Arc::new(obj))
}

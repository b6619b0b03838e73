//! The store of a reflector: one writer, many readers.

mod relations;

use super::{
    Lookup, ObjectRef,
    entries::Entries,
    key::{Named, ObjectKey},
    mailbox::Mailbox,
    reads::Use,
    shared::{Shared, State},
    status::{Condition, Status},
    unread::{Decode, Header},
};
use crate::{
    progress::Progress,
    watcher::{self, Heard, Origin},
};
use homeostat_core::cache::{Cache, Change, Versioned};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use std::{
    fmt::{self, Debug},
    hash::Hash,
    sync::Arc,
};

pub(crate) use super::snapshot::{ObjectChange, Snapshot};

/// A reader of the objects that a [`Writer`] keeps. Clones are cheap and see the same objects.
///
/// # Guarantees
///
/// - Objects are ordered by namespace and name.
/// - Before the first list is complete there are no objects; later lists take effect at once when
///   they are complete. Nobody sees a half-built store.
/// - An object is handed out as an `Arc` and never copied.
///
/// # In reconcilers
///
/// A [`Controller`](crate::Controller) notices which stores its reconciler reads, whoever fills them. From the first
/// read on such a store is one of the controller's caches, like the watches that it was built with: no run starts
/// before its first list is complete, [`Readiness`](crate::controller::Readiness) shows it, and an object's next run
/// waits until it has seen what the run before wrote.
///
/// The very first run reads the store before the controller knows of it. If the store is not complete then, what is
/// missing in it may well exist, so that run must not act on it: its later writes through a
/// [tracked client](crate::client) fail with [`client::Refused`](crate::client::Refused). Whatever the run returns,
/// it counts neither as a success nor as a failure; it appears nowhere in the controller's stream, and the object is
/// reconciled again as soon as the store is complete. Without a tracked client the writes cannot be stopped, and
/// the log warns once for each store.
///
/// What a reconciler reads in tasks of its own counts as well if they are started with
/// [`homeostat::spawn`](crate::spawn). Reads in `tokio::spawn` and `spawn_blocking` are outside of the run, so wait
/// with [`wait_until_ready`](Self::wait_until_ready) there.
///
/// If you do want to look at a store that may be incomplete, for a metric or a hint, say so with
/// [`even_if_incomplete`](Self::even_if_incomplete).
pub struct Store<K: 'static + Lookup>
where
    K::DynamicType: Hash + Eq,
{
    shared: Arc<Shared<K>>,
    /// Whether reconcilers that read it may do so without being noticed.
    unnoticed: bool,
}

/// The one writer of a [`Store`].
pub struct Writer<K: 'static + Lookup>
where
    K::DynamicType: Eq + Hash,
{
    shared: Arc<Shared<K>>,
    /// Changes of the latest event; kept to use its memory again.
    changes: Vec<ObjectChange<K>>,
    /// The watch that fills the store, as far as it is known.
    origin: Option<Arc<Origin>>,
    /// Whether the last thing that came was a failure.
    failing: bool,
}

/// The writer of a store was dropped before the store was ready, so it never will be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the writer of the store of {store} was dropped before its first list was complete: keep polling the stream that fills it{}",
    because(.error.as_deref())
)]
pub struct WriterDropped {
    store: String,
    /// The last failure of what filled it.
    error: Option<Arc<str>>,
}

/// A store is not complete, because what fills it fails; see [`Store::wait_until_ready_or_failed`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FirstListError {
    /// A request failed. It is tried again, so the store may be complete later.
    #[error("{error}")]
    Failed {
        /// What failed, as the watch says it.
        error: String,
    },
    /// Nothing fills the store any more.
    #[error(transparent)]
    WriterDropped(#[from] WriterDropped),
}

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

// === impl WriterDropped ===

impl WriterDropped {
    pub(crate) fn of(status: &Status, condition: Condition) -> Self {
        Self {
            store: status.to_string(),
            error: condition.error,
        }
    }
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
            versions: None,
            closed: false,
        };
        let status = Status::new(&K::group(&dyntype), &K::plural(&dyntype));
        Self {
            shared: Arc::new(Shared::new(dyntype, state, status)),
            changes: Vec::new(),
            origin: None,
            failing: false,
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
            unnoticed: false,
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
            Apply(obj) | Delete(obj) => obj.resource_version().and_then(|it| it.parse().ok()),
            Init | InitApply(_) | InitDone => None,
        };
        let listed = matches!(event, InitDone);
        let changes = &mut self.changes;
        let mut state = self.shared.write();
        match event {
            Apply(obj) => state
                .objects
                .apply(ObjectKey::of(&obj), Snapshot::new(obj), changes),
            Delete(obj) => state
                .objects
                .delete(ObjectKey::of(&obj), Snapshot::new(obj), changes),
            Init => state.objects.begin(),
            InitApply(obj) => state.objects.stage(ObjectKey::of(&obj), Snapshot::new(obj)),
            InitDone => {
                state.objects.commit(changes);
                self.shared.status().set_ready();
            }
        }
        state.tell(changes);
        let latest = listed.then(|| state.latest());
        drop(state);
        match (latest, reached) {
            (Some(latest), _) => self.shared.status().progress.listed(latest),
            (None, Some(reached)) => self.shared.status().progress.reached(reached),
            (None, None) => {}
        }
        self.changes.drain(..)
    }

    /// Whether whoever follows the store wants each object of it, so that none may stay unread.
    pub(crate) fn wants_objects(&self) -> bool {
        let state = self.shared.read();
        !state.indexes.is_empty() || !state.subscribers.is_empty()
    }

    /// Takes in the text of a changed object, which is decoded when somebody reads it, and tells what it changed.
    pub(crate) fn take_in_unread(
        &mut self,
        key: ObjectKey,
        header: Header,
        text: Box<[u8]>,
        decode: Arc<Decode<K>>,
    ) -> std::vec::Drain<'_, ObjectChange<K>> {
        let changes = &mut self.changes;
        let mut state = self.shared.write();
        let before = state.objects.get(&key);
        let snapshot = Snapshot::unread(header, text, before, decode);
        let reached = snapshot.version();
        state.objects.apply(key, snapshot, changes);
        state.tell(changes);
        drop(state);
        if let Some(reached) = reached {
            self.shared.status().progress.reached(reached);
        }
        self.changes.drain(..)
    }

    /// Forgets an object of which no version can be decoded, unless there is another one by now.
    pub(crate) fn forget_unreadable(
        &mut self,
        key: &ObjectKey,
    ) -> std::vec::Drain<'_, ObjectChange<K>> {
        let changes = &mut self.changes;
        let mut state = self.shared.write();
        let found = state.objects.get(key);
        if found.is_some_and(|found| found.object().is_none()) {
            state.objects.remove(key, changes);
            state.tell(changes);
        }
        drop(state);
        self.changes.drain(..)
    }

    /// Makes this store, which is empty yet, a part of `other`: all who read or follow this one see what is in
    /// that one.
    pub(crate) fn join(self, other: &Store<K>) {
        self.shared.join(&other.shared);
    }

    /// Takes in which watches what fills the store comes from.
    pub(crate) fn hear(&mut self, heard: Heard) {
        let is_news = match (&heard, &self.origin) {
            (Heard::Nothing, _) => false,
            (Heard::One(new), Some(origin)) => !Arc::ptr_eq(new, origin),
            (Heard::One(_) | Heard::Several, _) => true,
        };
        if let Heard::One(origin) = &heard
            && self.failing
            && !origin.is_failing()
        {
            self.works();
        }
        if is_news {
            if let Heard::One(origin) = &heard {
                self.origin = Some(Arc::clone(origin));
            }
            self.shared.status().heard(heard);
        }
    }

    /// Takes in that what fills the store works.
    pub(crate) fn works(&mut self) {
        if std::mem::replace(&mut self.failing, false) {
            self.shared.status().set_error(None);
        }
    }

    /// Tells the controller that this task belongs to, if it does, that the store matters to it.
    pub(crate) fn note_use(&self) {
        self.shared.note(Use::Wait);
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
        drop(state);
        if !matches!(error, watcher::Error::Undecodable(_)) {
            self.failing = true;
            let text = error.to_string().into();
            self.shared.status().set_error(Some(text));
        }
        self.changes.drain(..)
    }
}

impl<K: 'static + Lookup> Drop for Writer<K>
where
    K::DynamicType: Eq + Hash,
{
    fn drop(&mut self) {
        if self.shared.is_joined() {
            return;
        }
        let mut state = self.shared.write();
        state.closed = true;
        for mailbox in state.subscribers.drain(..) {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.close();
            }
        }
        drop(state);
        self.shared.status().close();
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
    /// That can take for ever: as long as the server refuses the list, or does not answer.
    /// [`wait_until_ready_or_failed`](Self::wait_until_ready_or_failed) ends at the first failure, and
    /// [`last_error`](Self::last_error) says at any time what the matter is.
    ///
    /// # Errors
    ///
    /// [`WriterDropped`] if that can no longer happen.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        self.note_use();
        let is_known = |condition: &Condition| condition.ready || condition.closed;
        match self.wait_for(is_known).await {
            Condition { ready: true, .. } => Ok(()),
            condition => Err(WriterDropped::of(self.status(), condition)),
        }
    }

    /// Waits until the first list is complete, or until an attempt to get it has failed.
    ///
    /// For stores that are filled on demand, where somebody waits for an answer:
    ///
    /// ```
    /// use homeostat::reflector::{Store, store::FirstListError};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// async fn count(pods: &Store<Pod>) -> Result<usize, FirstListError> {
    ///     // Says "pods is forbidden" instead of waiting for ever.
    ///     pods.wait_until_ready_or_failed().await?;
    ///     Ok(pods.len())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FirstListError::Failed`] with what failed last, if the store is not complete. The watch goes on, so you can
    /// wait once more. [`FirstListError::WriterDropped`] if the store will never be complete.
    ///
    /// Failures are known of stores that [`reflector()`](crate::reflector()) or
    /// [`reflect`](crate::WatchStreamExt::reflect) fills, and of a controller's own.
    pub async fn wait_until_ready_or_failed(&self) -> Result<(), FirstListError> {
        self.note_use();
        let is_known = |condition: &Condition| {
            condition.ready || condition.closed || condition.error.is_some()
        };
        match self.wait_for(is_known).await {
            Condition { ready: true, .. } => Ok(()),
            condition if condition.closed => {
                Err(WriterDropped::of(self.status(), condition).into())
            }
            condition => Err(FirstListError::Failed {
                error: condition.error.as_deref().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Waits until the store, or the one that it becomes a part of meanwhile, is in a condition like this.
    async fn wait_for(&self, is_it: impl Fn(&Condition) -> bool) -> Condition {
        loop {
            let status = Arc::clone(self.status());
            let wanted = |condition: &Condition| condition.joined || is_it(condition);
            match status.wait_for(wanted).await {
                Condition { joined: true, .. } => {}
                condition => return condition,
            }
        }
    }

    /// Why the watch that fills this store does not work at present; `None` if it does, as far as is known.
    ///
    /// A store whose first list is complete keeps its objects while its watch fails, and is as old as the failure.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        let condition = self.status().condition();
        condition.error.map(|error| error.to_string())
    }

    /// This store, once its first list is complete: for reads that must not take an empty store
    /// for an empty cluster.
    ///
    /// Reconcilers need not ask: a controller runs none before its caches are complete, and a store that its
    /// reconciler reads [is one of them](Self#in-reconcilers).
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
        self.note_use();
        if self.is_ready() {
            Ok(self)
        } else {
            Err(NotReady(()))
        }
    }

    /// The same objects, for reads that do not mind if the store is incomplete: no run waits for it, none is
    /// refused a write because of it, and the controller does not count it among its caches.
    ///
    /// Nothing may follow from an object that is missing there. It suits a metric, or a hint that is made good
    /// later.
    ///
    /// A controller waits for a store as a whole. If you make stores on demand, one for each tenant say, and one that
    /// is refused must not hold up the objects of the others, wait with this handle
    /// ([`wait_until_ready_or_failed`](Self::wait_until_ready_or_failed)) before you read.
    ///
    /// ```
    /// use homeostat::reflector::Store;
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// fn nodes_seen(nodes: &Store<Node>) -> usize {
    ///     nodes.even_if_incomplete().len()
    /// }
    /// ```
    #[must_use]
    pub fn even_if_incomplete(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            unnoticed: true,
        }
    }

    /// A mailbox for all objects, and then for what happens in this store.
    pub(super) fn mailbox(&self) -> Arc<Mailbox<K>> {
        let mut state = self.shared.write();
        let objects = state
            .objects
            .iter()
            .filter_map(|(key, obj)| Some((key.clone(), Arc::clone(obj.object()?))));
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

    /// The objects with the keys that `keys` finds, in one state of the store.
    pub(super) fn get_all(&self, keys: impl FnOnce() -> Vec<ObjectKey>) -> Vec<Arc<K>> {
        self.note();
        let cache = &self.shared.read().objects;
        let found = keys().into_iter().filter_map(|key| cache.get(&key));
        found.filter_map(|obj| obj.object().cloned()).collect()
    }

    /// The type of the objects, for those known at run time.
    pub(crate) fn dyntype(&self) -> &K::DynamicType {
        &self.shared.dyntype
    }

    /// How far the store has come.
    pub(crate) fn progress(&self) -> Progress {
        self.status().progress()
    }

    /// What is known of it besides its objects.
    pub(crate) fn status(&self) -> &Arc<Status> {
        self.shared.status()
    }

    /// Whether the first list is complete.
    pub(crate) fn is_ready(&self) -> bool {
        self.status().is_ready()
    }

    /// Tells the controller that this task belongs to, if it does, that the store is read.
    pub(super) fn note(&self) {
        if !self.unnoticed {
            self.shared.note(Use::Read);
        }
    }

    /// The same for one who follows it, or asks whether it is complete.
    pub(super) fn note_use(&self) {
        if !self.unnoticed {
            self.shared.note(Use::Wait);
        }
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
        self.note();
        let found = {
            let cache = &self.shared.read().objects;
            let find = |namespace: &str| cache.get(&(namespace, name) as &dyn Named);
            let found = find(namespace).or_else(|| (!namespace.is_empty()).then(|| find(""))?);
            found.cloned()
        };
        // Nobody else has to wait while it is decoded.
        found?.object().cloned()
    }

    /// Takes in that the running list shows an object in this version. True if that is the one which is here.
    pub(crate) fn confirm(&self, namespace: &str, name: &str, uid: &str, version: &str) -> bool {
        let named = (namespace, name);
        let is_it = |obj: &Snapshot<K>| {
            obj.resource_version().as_deref() == Some(version)
                && obj.uid().as_deref() == Some(uid)
                && !obj.is_unfit()
        };
        let mut state = self.shared.write();
        state.objects.confirm(&named as &dyn Named, is_it)
    }

    /// The object with exactly this key.
    pub(crate) fn get_key(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let found = self.snapshot(key);
        // Nobody else has to wait while it is decoded.
        found?.object().cloned()
    }

    /// What the store holds under this key.
    pub(crate) fn snapshot(&self, key: &ObjectKey) -> Option<Snapshot<K>> {
        self.shared.read().objects.get(key).cloned()
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
    pub fn state_filter<P: Fn(&K) -> bool>(&self, predicate: P) -> Vec<Arc<K>> {
        self.note();
        let cache = &self.shared.read().objects;
        let all = cache.iter().filter_map(|(_, obj)| obj.object());
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
    pub fn find<P: Fn(&K) -> bool>(&self, predicate: P) -> Option<Arc<K>> {
        self.note();
        let cache = &self.shared.read().objects;
        let mut all = cache.iter().filter_map(|(_, obj)| obj.object());
        all.find(|obj| predicate(obj)).cloned()
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.note();
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
            unnoticed: self.unnoticed,
        }
    }
}

impl<K: 'static + Lookup> Debug for Store<K>
where
    K::DynamicType: Hash + Eq,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("len", &self.shared.read().objects.len())
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
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

/// For the end of a sentence: what went wrong, if it is known.
fn because(error: Option<&str>) -> String {
    error.map_or_else(String::new, |error| format!("; what failed last: {error}"))
}

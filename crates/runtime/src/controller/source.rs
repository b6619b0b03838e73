//! Sources: whatever makes a controller reconcile something, as one kind of stream.
//!
//! Each source is a stream of its own, with its own watch and its own pace, so one that fails holds
//! back nothing (rule R10).

mod primary;

use super::{
    ReconcileReason,
    cover::{Cover, View},
    desk::Question,
    reason::News,
    scope::Scope,
};
use crate::{
    Predicate, WatchStreamExt,
    notes::{self, Note},
    predicate::matters,
    progress::Progress,
    reflector::{
        ObjectKey, ObjectRef, Status, Store,
        store::{ObjectChange, Writer, WriterDropped},
    },
    utils::WatchItem,
    watcher::{self, Origin},
};
use futures::{Stream, StreamExt, stream, stream::BoxStream};
use homeostat_core::{cache::Change, queue::Priority};
use kube::{Api, Client, Resource, ResourceExt};
use std::{borrow::Borrow, fmt::Debug, hash::Hash, sync::Arc};

/// One thing that a source tells its controller.
#[derive(Debug)]
pub(super) enum Signal<Q = watcher::Error> {
    /// An object is to be reconciled.
    Trigger {
        key: ObjectKey,
        reason: ReconcileReason,
        priority: Priority,
        /// What a watch told, if it did.
        event: Option<Happened>,
    },
    /// An object of the controller's own kind has changed, in a way that does not matter by the filter. It is told
    /// only where nobody tells what runs write.
    Passed(ObjectKey),
    /// Every object is to be reconciled.
    TriggerAll,
    /// An object of the controller's own kind is gone.
    Gone(ObjectKey),
    /// The source is followed from now on: it knows of the stores that it follows.
    Started,
    /// The source has a complete cache.
    Synced,
    /// What failed before works again.
    Recovered,
    /// The source failed; it goes on by itself.
    Failed(Q),
    /// One object of the source cannot be read; the others come.
    ObjectFailed(Q),
    /// The store of the controller will never be ready.
    StoreLost(WriterDropped),
    /// Somebody asks the controller. It comes from no source.
    Asked(Question),
    /// The source joined a controller that runs.
    Joined {
        /// See [`Source::label`].
        label: String,
        /// See [`Source::syncs`].
        syncs: bool,
    },
}

/// What a watch told of the object that a signal is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Happened {
    /// Whether what is wanted of the controller's own object has changed.
    pub(super) desired: bool,
    pub(super) version: EventVersion,
    pub(super) news: News,
}

/// Which version of an object an event shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventVersion {
    /// The step from the version before to this one, and nothing between.
    Step(u64),
    /// This object, by its uid, is gone; with the version that the deletion has got.
    Gone(Box<str>, Option<u64>),
    /// The state at this version, after an unknown number of steps: a stream of the user's need not have all.
    Shown(u64),
    /// The same as a list shows it.
    Listed(u64),
    /// The state after an unknown number of steps, at no version that is known.
    Unknown,
}

/// A stream of signals and what it is called.
pub(super) struct Source {
    /// What is watched, for people: `deployments.apps in all namespaces`.
    pub(super) label: String,
    /// Whether the source will say [`Signal::Synced`], so that nothing runs before (rule R15).
    pub(super) syncs: bool,
    /// The cache that the source fills, whose readers do not want to see less than they have written.
    pub(super) cover: Option<Cover>,
    /// The store that it fills or waits for.
    pub(super) store: Option<Arc<Status>>,
    /// Whether the source sends requests of its own, whose client is most often that of the
    /// reconciler too.
    pub(super) asks: bool,
    pub(super) signals: BoxStream<'static, Signal>,
}

/// A predicate that changes of the controller's own kind must pass.
pub(super) type Filter<K> = Box<dyn Predicate<K> + Send>;

/// Where the objects of the controller's own kind come from.
pub(super) enum Input<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash,
{
    Watch(Box<Primary<K>>),
    Stream(BoxStream<'static, watcher::Result<K>>),
    SharedStream(BoxStream<'static, Arc<K>>),
}

/// What the source of the controller's own kind watches.
pub(super) struct Primary<K: Resource + Clone + 'static>
where
    K::DynamicType: Eq + Hash,
{
    pub(super) api: Api<K>,
    pub(super) config: watcher::Config,
    pub(super) writer: Writer<K>,
}

// === impl Signal ===

impl<Q> Signal<Q> {
    /// Whether it shows that the API server answers.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::Trigger { event, .. } => event.is_some(),
            Self::Passed(_) | Self::Synced | Self::Recovered => true,
            Self::TriggerAll
            | Self::Started
            | Self::Gone(_)
            | Self::Failed(_)
            | Self::ObjectFailed(_)
            | Self::StoreLost(_)
            | Self::Asked(_)
            | Self::Joined { .. } => false,
        }
    }
}

// === impl Source ===

impl Source {
    /// A source that watches nothing: whatever `signals` says, right from the start.
    pub(super) fn of_signals(
        label: impl Into<String>,
        signals: impl Stream<Item = Signal> + Send + 'static,
    ) -> Self {
        Self {
            label: label.into(),
            syncs: false,
            cover: None,
            store: None,
            asks: false,
            signals: signals.boxed(),
        }
    }

    /// The readiness of a store that somebody else fills.
    pub(super) fn of_store<K>(store: Store<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Send + Sync,
    {
        Self {
            label: "store".into(),
            syncs: true,
            cover: Some(Cover::of_store(&store)),
            store: Some(Arc::clone(store.status())),
            asks: false,
            signals: stream::once(store_ready(store)).boxed(),
        }
    }

    /// A store that reconcilers read, which is filled by such a watch.
    pub(super) fn of_read_store<K>(store: &Store<K>, api: &Api<K>, config: &watcher::Config) -> Self
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Send + Sync,
    {
        let (label, cover) = watched(api, config, Arc::new(store.clone()), store.progress());
        Self {
            label: format!("store of {label}"),
            cover: Some(cover),
            ..Self::of_store(store.clone())
        }
    }

    /// The objects of a stream that belongs to the controller's own kind.
    pub(super) fn of_objects<K, T>(
        objects: impl Stream<Item = watcher::Result<T>> + Send + 'static,
        dyntype: &K::DynamicType,
    ) -> Self
    where
        K: Resource + 'static,
        T: Borrow<K> + 'static,
    {
        let signals = objects.map(|item| match item {
            Ok(obj) => updated(obj.borrow()),
            Err(error) => failed(error),
        });
        Self {
            cover: Some(Cover::of_stream::<K>(dyntype)),
            ..Self::of_signals(format!("stream of {}", K::plural(dyntype)), signals)
        }
    }

    /// The objects of a stream that have to do with those of the controller. `relate` names the
    /// latter.
    pub(super) fn of_related<Child, T>(
        objects: impl Stream<Item = watcher::Result<T>> + Send + 'static,
        dyntype: Child::DynamicType,
        relate: impl Fn(T) -> Vec<ObjectKey> + Send + 'static,
    ) -> Self
    where
        Child: Resource + 'static,
        Child::DynamicType: Clone,
        T: Borrow<Child> + 'static,
    {
        let label = format!("stream of {}", Child::plural(&dyntype));
        let cover = Cover::of_stream::<Child>(&dyntype);
        let objects = expecting_reflect(objects, label.clone());
        let signals = objects.flat_map(move |item| {
            stream::iter(match item {
                Err(error) => vec![failed(error)],
                Ok(obj) => {
                    let child = ObjectKey::of(obj.borrow());
                    let mut signals = Vec::new();
                    let told = (Priority::Normal, shown(obj.borrow()));
                    let concerned = relate(obj);
                    concern::<Child>(&child, &dyntype, &concerned, told, &mut signals);
                    signals
                }
            })
        });
        Self {
            cover: Some(cover),
            ..Self::of_signals(label, signals)
        }
    }
}

/// The same stream. The log tells once if its lists are not written into a store: such a stream says nothing of
/// what was deleted while its watch was down.
fn expecting_reflect<S: Stream>(objects: S, label: String) -> impl Stream<Item = S::Item> {
    let mut objects = Box::pin(objects);
    let mut checked = false;
    stream::poll_fn(move |cx| {
        if checked {
            return objects.as_mut().poll_next(cx);
        }
        let (polled, noted) = notes::hear(|| objects.as_mut().poll_next(cx));
        if noted.iter().any(|note| matches!(note, Note::Begun(_))) {
            checked = true;
            if !noted.iter().any(|note| matches!(note, Note::Reflected)) {
                tracing::warn!(
                    source = label,
                    "a stream of related objects does not go through a store, so it misses what is deleted while \
                     its watch is down; put `.reflect(writer)` before `.touched_objects()`, or let the controller \
                     watch with `owns` or `watches`"
                );
            }
        }
        polled
    })
}

// === impl Input ===

impl<K: Resource + Clone + 'static> Input<K>
where
    K::DynamicType: Eq + Hash,
{
    /// The client that the objects are watched with. A stream does not tell its own.
    pub(super) fn client(&self) -> Option<Client> {
        match self {
            Self::Watch(primary) => Some(primary.api.clone().into_client()),
            Self::Stream(_) | Self::SharedStream(_) => None,
        }
    }
}

/// What a watch is called, and the cache that it fills.
pub(super) fn watched<K: Resource>(
    api: &Api<K>,
    config: &watcher::Config,
    view: Arc<dyn View>,
    progress: Progress,
) -> (String, Cover) {
    let origin = Origin::new(watcher::target(api), config);
    let cover = Cover {
        scope: Scope::of(&origin),
        view: Some(view),
        progress,
    };
    (origin.to_string(), cover)
}

/// Waits until a store that somebody else fills is ready.
pub(super) async fn store_ready<K, Q>(store: Store<K>) -> Signal<Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
{
    match store.wait_until_ready().await {
        Ok(()) => Signal::Synced,
        Err(lost) => Signal::StoreLost(lost),
    }
}

/// The keys of what a mapper named.
pub(super) fn keys<K: Resource>(named: impl IntoIterator<Item = ObjectRef<K>>) -> Vec<ObjectKey> {
    named
        .into_iter()
        .map(|named| ObjectKey::of_ref(&named))
        .collect()
}

/// The owners of kind `K` that an object names.
pub(super) fn owners<K: Resource, Child: Resource>(
    dyntype: K::DynamicType,
) -> impl Fn(&Child) -> Vec<ObjectKey> + Send + 'static {
    move |child| {
        let meta = child.meta();
        child
            .owner_references()
            .iter()
            .filter(|owner| crate::reflector::names_kind::<K>(owner, &dyntype))
            .map(|owner| ObjectKey::new(meta.namespace.as_deref(), &owner.name))
            .collect()
    }
}

/// The signal for an error of a watch.
pub(super) fn failed(error: watcher::Error) -> Signal {
    if matches!(error, watcher::Error::Undecodable(_)) {
        Signal::ObjectFailed(error)
    } else {
        Signal::Failed(error)
    }
}

/// The priority of what a source finds: what it lists at first can wait for changes (rule R2).
pub(super) fn priority(synced: bool) -> Priority {
    if synced {
        Priority::Normal
    } else {
        Priority::Low
    }
}

/// The signal for an object that a stream shows.
fn updated<K: Resource>(obj: &K) -> Signal {
    Signal::Trigger {
        key: ObjectKey::of(obj),
        reason: ReconcileReason::ObjectUpdated,
        priority: Priority::Normal,
        event: shown(obj),
    }
}

/// What a stream that shows an object tells.
fn shown<K: Resource>(obj: &K) -> Option<Happened> {
    let version = obj.meta().resource_version.as_deref()?.parse().ok()?;
    Some(Happened {
        desired: false,
        version: EventVersion::Shown(version),
        news: News::Changed,
    })
}

/// The signal for an object that somebody asks for.
pub(super) fn requested<K: Resource>(reference: &ObjectRef<K>) -> Signal {
    trigger(reference, ReconcileReason::Unknown, Priority::Normal)
}

/// The signal for an object that `reference` names.
pub(super) fn trigger<K: Resource, Q>(
    reference: &ObjectRef<K>,
    reason: ReconcileReason,
    priority: Priority,
) -> Signal<Q> {
    Signal::Trigger {
        key: ObjectKey::of_ref(reference),
        reason,
        priority,
        event: None,
    }
}

/// The signals for those whom a change of `child` concerns.
pub(super) fn concern<Child: Resource>(
    child: &ObjectKey,
    dyntype: &Child::DynamicType,
    concerned: &[ObjectKey],
    (priority, event): (Priority, Option<Happened>),
    signals: &mut Vec<Signal>,
) where
    Child::DynamicType: Clone,
{
    // Most objects concern nobody, and for these nothing is to be copied.
    if concerned.is_empty() {
        return;
    }
    let child = Box::new(child.to_ref::<Child>(dyntype.clone()).erase());
    signals.extend(concerned.iter().map(|key| Signal::Trigger {
        key: key.clone(),
        reason: ReconcileReason::RelatedObjectUpdated {
            obj_ref: child.clone(),
        },
        priority,
        event: event.clone(),
    }));
}

/// The signal for a change of the controller's own kind; `single` tells that a watch told it as one.
pub(super) fn signal<K: Resource>(
    change: ObjectChange<K>,
    filter: Option<&(dyn Predicate<K> + Send)>,
    priority: Priority,
    single: bool,
) -> Option<Signal> {
    let (key, new, desired, news) = match change {
        Change::Deleted { key, .. } => return Some(Signal::Gone(key)),
        Change::Added { key, new } if single => (key, new, true, News::Added),
        Change::Added { key, new } => (key, new, true, News::Listed),
        Change::Modified { key, old, new } => {
            if let Some(filter) = filter
                && let Some(old) = old.object()
                && !matters(filter, &**old, &**new.object()?)
            {
                return single.then_some(Signal::Passed(key));
            }
            let desired = old.changes_desired_state(&new)?;
            (key, new, desired, News::Changed)
        }
    };
    let step = new.version().filter(|_| single);
    Some(Signal::Trigger {
        key,
        reason: ReconcileReason::ObjectUpdated,
        priority,
        event: Some(Happened {
            desired,
            version: step.map_or(EventVersion::Unknown, EventVersion::Step),
            news,
        }),
    })
}

/// Drops `metadata.managedFields` unless they are to be kept (rule R16).
pub(super) fn slim<K: Resource>(
    event: watcher::Event<K>,
    managed_fields: bool,
) -> watcher::Event<K> {
    if managed_fields {
        event
    } else {
        event.modify(|obj| obj.meta_mut().managed_fields = None)
    }
}

/// Lets those objects pass that `filter` lets pass.
pub(super) fn filtered<K: Resource + 'static, S>(
    objects: S,
    filter: Option<Filter<K>>,
) -> BoxStream<'static, S::Item>
where
    S: Stream<Item: WatchItem<Object = K>> + Send + 'static,
{
    match filter {
        None => objects.boxed(),
        Some(filter) => objects
            .predicate_filter(move |obj: &K| filter.hash_property(obj))
            .boxed(),
    }
}

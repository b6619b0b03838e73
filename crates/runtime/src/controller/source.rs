//! Sources: whatever makes a controller reconcile something, as one kind of stream.
//!
//! Each source is a stream of its own, with its own watch and its own pace, so one that fails holds
//! back nothing (rule R10).

use super::{ReconcileReason, relation::Relations};
use crate::{
    Predicate,
    predicate::matters,
    reflector::{
        ObjectKey, ObjectRef, Store,
        store::{ObjectChange, Writer, WriterDropped},
    },
    watcher::{self, Observation},
};
use futures::{Stream, StreamExt, stream, stream::BoxStream};
use homeostat_core::{cache::Change, queue::Priority};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::{borrow::Borrow, fmt::Debug, hash::Hash};

/// One thing that a source tells its controller.
#[derive(Debug)]
pub(super) enum Signal<Q = watcher::Error> {
    /// An object is to be reconciled.
    Trigger {
        key: ObjectKey,
        reason: ReconcileReason,
        priority: Priority,
    },
    /// Every object is to be reconciled.
    TriggerAll,
    /// An object of the controller's own kind is gone.
    Gone(ObjectKey),
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
    /// The source joined a controller that runs.
    Joined {
        /// See [`Source::label`].
        label: String,
        /// See [`Source::syncs`].
        syncs: bool,
    },
}

/// A stream of signals and what it is called.
pub(super) struct Source {
    /// What is watched, for people: `deployments.apps in all namespaces`.
    pub(super) label: String,
    /// Whether the source will say [`Signal::Synced`], so that nothing runs before (rule R15).
    pub(super) syncs: bool,
    pub(super) signals: BoxStream<'static, Signal>,
}

/// A predicate that changes of the controller's own kind must pass.
pub(super) type Filter<K> = Box<dyn Predicate<K> + Send>;

/// What the source of the controller's own kind watches.
pub(super) struct Primary<K: Resource + Clone + 'static>
where
    K::DynamicType: Eq + Hash,
{
    pub(super) api: Api<K>,
    pub(super) config: watcher::Config,
    pub(super) writer: Writer<K>,
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
            signals: stream::once(store_ready(store)).boxed(),
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
            Ok(obj) => updated(ObjectKey::of(obj.borrow()), Priority::Normal),
            Err(error) => failed(error),
        });
        Self::of_signals(format!("stream of {}", K::plural(dyntype)), signals)
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
        let signals = objects.flat_map(move |item| {
            stream::iter(match item {
                Err(error) => vec![failed(error)],
                Ok(obj) => {
                    let child = ObjectKey::of(obj.borrow());
                    let mut signals = Vec::new();
                    let concerned = relate(obj);
                    concern::<Child>(&child, &dyntype, &concerned, Priority::Normal, &mut signals);
                    signals
                }
            })
        });
        Self::of_signals(label, signals)
    }

    /// A watch of objects that have to do with those of the controller. `relate` names the latter.
    pub(super) fn of_related_watch<Child>(
        api: Api<Child>,
        config: watcher::Config,
        dyntype: Child::DynamicType,
        relate: impl Fn(Child) -> Vec<ObjectKey> + Send + 'static,
    ) -> Self
    where
        Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::DynamicType: Clone,
    {
        let label = watcher::target(&api);
        let mut relations = Relations::<Child>::new(dyntype);
        let signals = watcher::observe(api, config).flat_map(move |observation| {
            stream::iter(match observation {
                Observation::Opened => vec![Signal::Recovered],
                Observation::Item(Err(error)) => relations.take_in_error(error),
                Observation::Item(Ok(event)) => relations.take_in(event, &relate),
            })
        });
        Self {
            label,
            syncs: true,
            signals: signals.boxed(),
        }
    }
}

// === impl Primary ===

impl<K> Primary<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Fills the store and triggers each object that changed in a way that matters.
    pub(super) fn source(self, filter: Option<Filter<K>>, managed_fields: bool) -> Source {
        let Self {
            api,
            config,
            mut writer,
        } = self;
        let label = watcher::target(&api);
        let mut synced = false;
        let signals = watcher::observe(api, config).flat_map(move |observation| {
            let signals = match observation {
                Observation::Opened => vec![Signal::Recovered],
                Observation::Item(Err(error)) => {
                    let changes = writer.take_in_error(&error);
                    let mut signals: Vec<_> = changes
                        .filter_map(|change| signal(change, filter.as_deref(), Priority::Normal))
                        .collect();
                    signals.push(failed(error));
                    signals
                }
                Observation::Item(Ok(event)) => {
                    let listed = matches!(event, watcher::Event::InitDone);
                    let priority = priority(synced);
                    let changes = writer.take_in(slim(event, managed_fields));
                    let mut signals: Vec<_> = changes
                        .filter_map(|change| signal(change, filter.as_deref(), priority))
                        .collect();
                    synced |= listed;
                    signals.extend(listed.then_some(Signal::Synced));
                    signals
                }
            };
            stream::iter(signals)
        });
        Source {
            label,
            syncs: true,
            signals: signals.boxed(),
        }
    }
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

/// A watch of objects that those of the controller own.
pub(super) fn owned<K, Child>(
    api: Api<Child>,
    config: watcher::Config,
    dyntype: Child::DynamicType,
    owner_type: K::DynamicType,
) -> Source
where
    K: Resource,
    Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    Child::DynamicType: Clone,
{
    let owners = owners::<K, Child>(owner_type);
    Source::of_related_watch(api, config, dyntype, move |child| owners(&child))
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

/// The signal for an object that changed by itself.
pub(super) fn updated<Q>(key: ObjectKey, priority: Priority) -> Signal<Q> {
    Signal::Trigger {
        key,
        reason: ReconcileReason::ObjectUpdated,
        priority,
    }
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
    }
}

/// The signals for those whom a change of `child` concerns.
pub(super) fn concern<Child: Resource>(
    child: &ObjectKey,
    dyntype: &Child::DynamicType,
    concerned: &[ObjectKey],
    priority: Priority,
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
    }));
}

fn signal<K: Resource>(
    change: ObjectChange<K>,
    filter: Option<&(dyn Predicate<K> + Send)>,
    priority: Priority,
) -> Option<Signal> {
    match change {
        Change::Added { key, .. } => Some(updated(key, priority)),
        Change::Modified { key, old, new } => filter
            .is_none_or(|filter| matters(filter, &*old.0, &*new.0))
            .then(|| updated(key, priority)),
        Change::Deleted { key, .. } => Some(Signal::Gone(key)),
    }
}

/// Drops `metadata.managedFields` unless they are to be kept (rule R16).
fn slim<K: Resource>(event: watcher::Event<K>, managed_fields: bool) -> watcher::Event<K> {
    if managed_fields {
        event
    } else {
        event.modify(|obj| obj.meta_mut().managed_fields = None)
    }
}

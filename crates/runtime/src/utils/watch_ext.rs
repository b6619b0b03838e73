//! What can be done with the stream of a watch.

use super::{
    Backoff, Changes, EventDecode, EventModify, PredicateFilter, Reflect, StreamBackoff, WatchItem,
    predicate_filter::Which,
};
use crate::{
    predicate::{Predicate, PredicateConfig},
    reflector::{Lookup, store::Writer},
    watcher::{DefaultBackoff, Error, Event},
};
use futures::{Stream, TryStream};
use std::hash::Hash;

/// Adapters for the streams of [`watcher`](crate::watcher()), in the order in which they are
/// usually needed.
///
/// ```
/// use futures::{Stream, TryStreamExt};
/// use homeostat::{WatchStreamExt, predicates, watcher};
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube::{Api, ResourceExt};
///
/// // One line for every deployment whose spec changes.
/// async fn follow(api: Api<Deployment>, wc: watcher::Config) -> Result<(), watcher::Error> {
///     watcher(api, wc)
///         .default_backoff()
///         .applied_objects()
///         .predicate_filter(predicates::generation)
///         .try_for_each(|deployment| async move {
///             println!("{}", deployment.name_any());
///             Ok(())
///         })
///         .await
/// }
/// ```
pub trait WatchStreamExt: Stream {
    /// Leaves the stream alone for a while after each error, for [`DefaultBackoff`]'s delays.
    ///
    /// [`watcher`](crate::watcher()) paces itself already, and delays do not add up: both count
    /// from the failure.
    fn default_backoff(self) -> StreamBackoff<Self, DefaultBackoff>
    where
        Self: TryStream + Sized,
    {
        self.backoff(DefaultBackoff::default())
    }

    /// Leaves the stream alone for a while after each error, for the delays of `backoff`.
    fn backoff<B: Backoff>(self, backoff: B) -> StreamBackoff<Self, B>
    where
        Self: TryStream + Sized,
    {
        StreamBackoff::new(self, backoff)
    }

    /// Objects instead of events: those that were listed, created or changed.
    fn applied_objects<K>(self) -> EventDecode<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        EventDecode::new(self, Which::Applied)
    }

    /// Objects instead of events: those that were listed, created, changed or deleted.
    fn touched_objects<K>(self) -> EventDecode<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        EventDecode::new(self, Which::Touched)
    }

    /// Objects instead of events: those that were deleted.
    ///
    /// Behind [`reflect`](Self::reflect), those too whose deletion the watch missed.
    fn deleted_objects<K>(self) -> EventDecode<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        EventDecode::new(self, Which::Deleted)
    }

    /// What became of each object, with its state before and after.
    ///
    /// Lists and events become true changes, as in a store: a list causes nothing for objects that
    /// are as before, and objects that it no longer mentions were deleted. An object that was
    /// deleted and created again while nobody looked is `Deleted` and then `Added`.
    fn changes<K>(self) -> Changes<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup,
    {
        Changes::new(self)
    }

    /// Changes each object on its way, for instance to drop fields before they reach a store.
    ///
    /// A store compares `metadata.resourceVersion` and `metadata.uid`: leave them.
    fn modify<F, K>(self, modify: F) -> EventModify<Self, F>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        F: FnMut(&mut K),
    {
        EventModify::new(self, modify)
    }

    /// Lets an object pass only when a property of it changed since it was last seen.
    ///
    /// Whatever the predicate, an object passes that is seen for the first time, that was deleted
    /// and created again under the same name, that is marked for deletion, or whose finalizers
    /// changed. An object without the property always passes.
    ///
    /// Behind [`applied_objects`](Self::applied_objects), [`touched_objects`](Self::touched_objects) and
    /// [`Store::subscribe`](crate::reflector::Store::subscribe) the filter knows of deletions too, also if
    /// `.boxed()` and the like stand between: a deleted object always passes, and what is kept of an object goes
    /// with it. Of a stream that tells nothing of deletions, such as one that you make from a channel, it forgets
    /// an object that was not seen for an hour; see [`PredicateConfig::ttl`].
    ///
    /// Of events that come neither from a [`watcher`](crate::watcher()) nor through [`reflect`](Self::reflect), such as
    /// those of a script, `applied_objects` tells how many objects are gone and not which. Then all are forgotten when
    /// half of them are gone, so that memory is bounded by what is there.
    ///
    /// It works on streams of `Result<K, watcher::Error>` and on shared streams of `Arc<K>`.
    fn predicate_filter<P>(
        self,
        predicate: P,
    ) -> PredicateFilter<Self, <Self::Item as WatchItem>::Object, P>
    where
        Self: Sized,
        Self::Item: WatchItem,
        P: Predicate<<Self::Item as WatchItem>::Object>,
    {
        self.predicate_filter_with(predicate, PredicateConfig::default())
    }

    /// The same as [`predicate_filter`](Self::predicate_filter), with another configuration.
    fn predicate_filter_with<P>(
        self,
        predicate: P,
        config: PredicateConfig,
    ) -> PredicateFilter<Self, <Self::Item as WatchItem>::Object, P>
    where
        Self: Sized,
        Self::Item: WatchItem,
        P: Predicate<<Self::Item as WatchItem>::Object>,
    {
        PredicateFilter::new(self, predicate, &config)
    }

    /// Writes everything into a store and passes it on.
    ///
    /// # Guarantees
    ///
    /// - What comes out of this stream is in the store already.
    /// - The first list comes out as one piece when it is complete: `Init`, `InitApply` for each
    ///   object, `InitDone`. A later list comes out as what it changed: `Apply` for objects that are
    ///   new or have another version, `Delete` for objects that vanished, nothing for the others.
    fn reflect<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup + Clone + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        Reflect::new(self, writer)
    }

    /// The same as [`reflect`](Self::reflect), which serves
    /// [subscribers](crate::reflector::Store::subscribe) too.
    fn reflect_shared<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup + Clone + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        self.reflect(writer)
    }
}

impl<S: ?Sized + Stream> WatchStreamExt for S {}

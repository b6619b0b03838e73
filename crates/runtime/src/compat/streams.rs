//! The streams of watches.

use crate::{
    predicate::{Predicate, PredicateConfig},
    reflector::store::Writer,
    utils::{Backoff, EventModify, PredicateFilter, Reflect, StreamBackoff},
    watcher::{self as watch, DefaultBackoff, Event},
};
use futures::{Stream, TryStream};
use kube::Resource;
use std::{
    hash::Hash,
    pin::Pin,
    task::{Context, Poll},
};

/// The stream of [`WatchStreamExt::applied_objects`] and [`WatchStreamExt::touched_objects`].
///
/// It has no filter of its own, so that `predicate_filter` is the method of the trait.
#[derive(Debug)]
pub struct EventDecode<S>(crate::utils::EventDecode<S>);

/// Adapters for the streams of [`watcher`](crate::watcher()), with the signatures of kube-runtime 5.
///
/// Each method is that of [`homeostat::WatchStreamExt`](crate::WatchStreamExt) with the same name,
/// except for [`predicate_filter`](Self::predicate_filter). It has those of kube and no others, so that
/// the methods of your own traits for streams keep their names.
pub trait WatchStreamExt: Stream {
    /// See [`default_backoff`](crate::WatchStreamExt::default_backoff).
    fn default_backoff(self) -> StreamBackoff<Self, DefaultBackoff>
    where
        Self: TryStream + Sized,
    {
        crate::WatchStreamExt::default_backoff(self)
    }

    /// See [`backoff`](crate::WatchStreamExt::backoff).
    fn backoff<B>(self, backoff: B) -> StreamBackoff<Self, B>
    where
        B: Backoff,
        Self: TryStream + Sized,
    {
        crate::WatchStreamExt::backoff(self, backoff)
    }

    /// See [`applied_objects`](crate::WatchStreamExt::applied_objects).
    fn applied_objects<K>(self) -> EventDecode<Self>
    where
        Self: Stream<Item = watch::Result<Event<K>>> + Sized,
    {
        EventDecode(crate::WatchStreamExt::applied_objects(self))
    }

    /// See [`touched_objects`](crate::WatchStreamExt::touched_objects).
    fn touched_objects<K>(self) -> EventDecode<Self>
    where
        Self: Stream<Item = watch::Result<Event<K>>> + Sized,
    {
        EventDecode(crate::WatchStreamExt::touched_objects(self))
    }

    /// See [`modify`](crate::WatchStreamExt::modify).
    fn modify<F, K>(self, modify: F) -> EventModify<Self, F>
    where
        Self: Stream<Item = watch::Result<Event<K>>> + Sized,
        F: FnMut(&mut K),
    {
        crate::WatchStreamExt::modify(self, modify)
    }

    /// Lets an object pass only when a property of it changed since it was last seen.
    ///
    /// See [`predicate_filter_with`](crate::WatchStreamExt::predicate_filter_with).
    fn predicate_filter<K, P>(
        self,
        predicate: P,
        config: PredicateConfig,
    ) -> PredicateFilter<Self, K, P>
    where
        Self: Stream<Item = watch::Result<K>> + Sized,
        K: Resource + 'static,
        P: Predicate<K> + 'static,
    {
        crate::WatchStreamExt::predicate_filter_with(self, predicate, config)
    }

    /// See [`reflect`](crate::WatchStreamExt::reflect).
    fn reflect<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = watch::Result<Event<K>>> + Sized,
        K: Resource + Clone + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        crate::WatchStreamExt::reflect(self, writer)
    }

    /// See [`reflect_shared`](crate::WatchStreamExt::reflect_shared).
    fn reflect_shared<K>(self, writer: Writer<K>) -> impl Stream<Item = Self::Item>
    where
        Self: Stream<Item = watch::Result<Event<K>>> + Sized,
        K: Resource + Clone + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        crate::WatchStreamExt::reflect_shared(self, writer)
    }
}

impl<S: ?Sized + Stream> WatchStreamExt for S {}

impl<S, K> Stream for EventDecode<S>
where
    S: Stream<Item = watch::Result<Event<K>>>,
{
    type Item = watch::Result<K>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx)
    }
}

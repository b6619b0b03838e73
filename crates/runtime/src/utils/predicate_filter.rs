//! Lets only those objects pass for which a property changed.

use crate::{
    predicate::{Predicate, PredicateConfig, lifecycle},
    reflector::ObjectKey,
    watcher::{Error, Event},
};
use futures::Stream;
use kube::Resource;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::{self, Debug},
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

/// An item of a stream of objects: `Result<K, watcher::Error>`, or `Arc<K>` on shared streams.
pub trait WatchItem {
    /// The type of the objects.
    type Object: Resource + 'static;

    /// The object, unless this is an error.
    fn object(&self) -> Option<&Self::Object>;
}

/// Which objects pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that were listed, created or changed.
    Applied,
    /// Those that were deleted.
    Deleted,
    /// Both.
    Touched,
}

/// The stream of [`predicate_filter`](crate::WatchStreamExt::predicate_filter).
pub struct PredicateFilter<S, K, P> {
    stream: Pin<Box<S>>,
    predicate: P,
    seen: Seen,
    ttl: Duration,
    _object: PhantomData<fn(K)>,
}

/// The stream of [`EventDecode::predicate_filter`](super::EventDecode::predicate_filter).
pub struct EventFilter<S, K, P> {
    stream: Pin<Box<S>>,
    predicate: P,
    seen: Seen,
    which: Which,
    _object: PhantomData<fn(K)>,
}

/// What a filter remembers of each object.
#[derive(Debug, Default)]
struct Seen {
    objects: BTreeMap<ObjectKey, Trace>,
    /// When objects were seen, oldest first, for those that are forgotten after a time. An object
    /// that was seen again since then has a later entry too.
    ages: VecDeque<(Instant, ObjectKey)>,
    /// Number of the running or last list.
    round: u64,
}

#[derive(Debug)]
struct Trace {
    property: Option<u64>,
    lifecycle: u64,
    at: Instant,
    round: u64,
}

impl<K: Resource + 'static> WatchItem for Result<K, Error> {
    type Object = K;

    fn object(&self) -> Option<&K> {
        self.as_ref().ok()
    }
}

impl<K: Resource + 'static> WatchItem for Arc<K> {
    type Object = K;

    fn object(&self) -> Option<&K> {
        Some(self)
    }
}

// === impl Which ===

impl Which {
    pub(super) fn applied(self) -> bool {
        self != Self::Deleted
    }

    pub(super) fn deleted(self) -> bool {
        self != Self::Applied
    }
}

// === impl Seen ===

impl Seen {
    /// Remembers `obj` and tells whether it differs from what was remembered of it.
    fn differs<K: Resource>(&mut self, predicate: &impl Predicate<K>, obj: &K) -> bool {
        let trace = Trace {
            property: predicate.hash_property(obj),
            lifecycle: lifecycle(obj),
            at: Instant::now(),
            round: self.round,
        };
        let (property, lifecycle) = (trace.property, trace.lifecycle);
        let old = self.objects.insert(ObjectKey::of(obj), trace);
        property.is_none()
            || old.is_none_or(|old| old.property != property || old.lifecycle != lifecycle)
    }

    /// Notes that `key` is to be forgotten when it was not seen for a while.
    fn age(&mut self, key: ObjectKey) {
        self.ages.push_back((Instant::now(), key));
    }

    /// Forgets the objects that were not seen for `ttl`.
    fn forget_older(&mut self, ttl: Duration) {
        let now = Instant::now();
        while let Some((at, key)) = self.ages.front() {
            if now.saturating_duration_since(*at) < ttl {
                break;
            }
            if self.objects.get(key).is_some_and(|trace| trace.at == *at) {
                self.objects.remove(key);
            }
            self.ages.pop_front();
        }
    }
}

// === impl PredicateFilter ===

impl<S, K, P> PredicateFilter<S, K, P> {
    pub(crate) fn new(stream: S, predicate: P, config: &PredicateConfig) -> Self {
        Self {
            stream: Box::pin(stream),
            predicate,
            seen: Seen::default(),
            ttl: config.ttl,
            _object: PhantomData,
        }
    }
}

// The stream is pinned in its box, and the predicate is never pinned.
impl<S, K, P> Unpin for PredicateFilter<S, K, P> {}

impl<S, K, P> Stream for PredicateFilter<S, K, P>
where
    S: Stream,
    S::Item: WatchItem<Object = K>,
    K: Resource,
    P: Predicate<K>,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let item = ready!(this.stream.as_mut().poll_next(cx));
            this.seen.forget_older(this.ttl);
            let passes = match item.as_ref().and_then(WatchItem::object) {
                Some(obj) => {
                    let differs = this.seen.differs(&this.predicate, obj);
                    this.seen.age(ObjectKey::of(obj));
                    differs
                }
                None => true,
            };
            if passes {
                return Poll::Ready(item);
            }
        }
    }
}

impl<S: Debug, K, P> Debug for PredicateFilter<S, K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredicateFilter")
            .field("stream", &self.stream)
            .field("remembered", &self.seen.objects.len())
            .finish_non_exhaustive()
    }
}

// === impl EventFilter ===

impl<S, K, P> EventFilter<S, K, P> {
    pub(super) fn new(stream: Pin<Box<S>>, which: Which, predicate: P) -> Self {
        Self {
            stream,
            predicate,
            seen: Seen::default(),
            which,
            _object: PhantomData,
        }
    }
}

// The stream is pinned in its box, and the predicate is never pinned.
impl<S, K, P> Unpin for EventFilter<S, K, P> {}

impl<S, K, P> Stream for EventFilter<S, K, P>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Resource,
    P: Predicate<K>,
{
    type Item = Result<K, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(event) = ready!(this.stream.as_mut().poll_next(cx)?) else {
                return Poll::Ready(None);
            };
            let object = match event {
                Event::Apply(obj) | Event::InitApply(obj) => {
                    let differs = this.seen.differs(&this.predicate, &obj);
                    (differs && this.which.applied()).then_some(obj)
                }
                Event::Delete(obj) => {
                    this.seen.objects.remove(&ObjectKey::of(&obj));
                    this.which.deleted().then_some(obj)
                }
                Event::Init => {
                    this.seen.round += 1;
                    None
                }
                Event::InitDone => {
                    let round = this.seen.round;
                    this.seen.objects.retain(|_, trace| trace.round == round);
                    None
                }
            };
            if let Some(object) = object {
                return Poll::Ready(Some(Ok(object)));
            }
        }
    }
}

impl<S: Debug, K, P> Debug for EventFilter<S, K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFilter")
            .field("stream", &self.stream)
            .field("remembered", &self.seen.objects.len())
            .field("which", &self.which)
            .finish_non_exhaustive()
    }
}

//! Lets only those objects pass for which a property changed.

use crate::{
    notes::{self, Note, SourceId},
    predicate::{Predicate, PredicateConfig, lifecycle},
    reflector::ObjectKey,
    watcher::{Error, Event},
};
use futures::Stream;
use kube::Resource;
use std::{
    collections::BTreeMap,
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
    type Object: Resource;

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
    id: SourceId,
    _object: PhantomData<fn(K)>,
}

/// What a filter remembers of each object.
#[derive(Debug, Default)]
struct Seen {
    objects: BTreeMap<ObjectKey, Trace>,
    /// The objects of which nobody says when they are gone, in the order in which they were seen last; one
    /// entry for each.
    ages: BTreeMap<Age, ObjectKey>,
    /// Number of the running or last list of each source.
    rounds: BTreeMap<SourceId, u64>,
    /// How many of the objects that a source vouches for are gone, without anybody who said which.
    lost: usize,
    sightings: u64,
}

/// So many lost objects are kept, however few others there are.
const LOST_LIMIT: usize = 16;

/// When an object was seen. The number tells those of a moment apart.
type Age = (Instant, u64);

#[derive(Debug)]
struct Trace {
    property: Option<u64>,
    lifecycle: u64,
    origin: Origin,
}

/// Who says when an object is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This source, in whose list of this number it was seen last.
    Source(SourceId, u64),
    /// Nobody, so that it is forgotten after a while.
    Unknown(Age),
}

impl<K: Resource> WatchItem for Result<K, Error> {
    type Object = K;

    fn object(&self) -> Option<&K> {
        self.as_ref().ok()
    }
}

impl<K: Resource> WatchItem for Arc<K> {
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
    fn differs<K: Resource>(
        &mut self,
        predicate: &impl Predicate<K>,
        obj: &K,
        source: Option<SourceId>,
    ) -> bool {
        let origin = if let Some(id) = source {
            Origin::Source(id, self.round(id))
        } else {
            self.sightings += 1;
            Origin::Unknown((Instant::now(), self.sightings))
        };
        let key = ObjectKey::of(obj);
        if let Origin::Unknown(age) = origin {
            self.ages.insert(age, key.clone());
        }
        let trace = Trace {
            property: predicate.hash_property(obj),
            lifecycle: lifecycle(obj),
            origin,
        };
        let (property, lifecycle) = (trace.property, trace.lifecycle);
        let old = self.objects.insert(key, trace);
        if let Some(Origin::Unknown(age)) = old.as_ref().map(|old| old.origin) {
            self.ages.remove(&age);
        }
        property.is_none()
            || old.is_none_or(|old| old.property != property || old.lifecycle != lifecycle)
    }

    fn round(&self, id: SourceId) -> u64 {
        self.rounds.get(&id).copied().unwrap_or_default()
    }

    /// Takes in what the stream of the filter noted, and returns the note on the item that came.
    fn take_in(&mut self, notes: &[Note]) -> Option<(SourceId, bool)> {
        let mut yielded = None;
        let mut named = false;
        for note in notes {
            match note {
                Note::Reflected => {}
                Note::Begun(id) => self.begin(*id),
                Note::Yielded(id, deleted) => yielded = Some((*id, *deleted)),
                Note::Passed(id, key) => {
                    let round = self.round(*id);
                    if let Some(trace) = self.objects.get_mut(key)
                        && let Origin::Source(of, seen) = &mut trace.origin
                        && of == id
                    {
                        *seen = round;
                    }
                }
                Note::Gone(key) => {
                    self.forget(key);
                    named = true;
                }
                Note::Dropped if named => named = false,
                Note::Dropped => self.lose(),
                Note::Done(id) => self.finish(*id),
            }
        }
        yielded
    }

    /// One of the objects is gone, and nobody said which.
    ///
    /// When half of them are lost, everything is forgotten that a source vouches for: so the memory is bounded by
    /// what is there, and no more objects pass once too often than are gone.
    fn lose(&mut self) {
        self.lost += 1;
        if self.lost > LOST_LIMIT && 2 * self.lost > self.objects.len() {
            self.lost = 0;
            self.objects
                .retain(|_, trace| matches!(trace.origin, Origin::Unknown(_)));
        }
    }

    /// A list of a source begins.
    fn begin(&mut self, id: SourceId) {
        *self.rounds.entry(id).or_default() += 1;
    }

    /// A list of a source is complete: what it did not mention is gone.
    fn finish(&mut self, id: SourceId) {
        let current = Origin::Source(id, self.round(id));
        self.objects.retain(|_, trace| match trace.origin {
            Origin::Source(of, _) if of == id => trace.origin == current,
            Origin::Source(..) | Origin::Unknown(_) => true,
        });
        self.lost = 0;
    }

    fn forget(&mut self, key: &ObjectKey) {
        if let Some(Origin::Unknown(age)) = self.objects.remove(key).map(|trace| trace.origin) {
            self.ages.remove(&age);
        }
    }

    /// Forgets the objects that were not seen for `ttl`, of which nobody says when they are gone.
    fn forget_older(&mut self, ttl: Duration) {
        if self.ages.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(entry) = self.ages.first_entry() {
            if now.saturating_duration_since(entry.key().0) < ttl {
                break;
            }
            self.objects.remove(&entry.remove());
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
            let (polled, mut noted) = notes::hear(|| this.stream.as_mut().poll_next(cx));
            let yielded = this.seen.take_in(&noted);
            this.seen.forget_older(this.ttl);
            let passes = match &polled {
                Poll::Pending | Poll::Ready(None) => true,
                Poll::Ready(Some(item)) => match (item.object(), yielded) {
                    (Some(obj), Some((_, true))) => {
                        this.seen.forget(&ObjectKey::of(obj));
                        true
                    }
                    (Some(obj), yielded) => {
                        let source = yielded.map(|(id, _)| id);
                        this.seen.differs(&this.predicate, obj, source)
                    }
                    (None, _) => true,
                },
            };
            if !passes && let Poll::Ready(Some(item)) = &polled {
                // Whoever listens further down gets no item, and is to know that the object is there.
                noted.retain(|note| !matches!(note, Note::Yielded(..)));
                if let (Some((id, _)), Some(obj)) = (yielded, item.object()) {
                    noted.push(Note::Passed(id, ObjectKey::of(obj)));
                }
            }
            for heard in noted {
                notes::note(|| heard);
            }
            if passes {
                return polled;
            }
        }
    }
}

impl<S: Debug, K, P> Debug for PredicateFilter<S, K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredicateFilter")
            .field("stream", &self.stream)
            .field("ages", &self.seen.ages.len())
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
            id: SourceId::new(),
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
            if let Some(object) = this.object(event) {
                return Poll::Ready(Some(Ok(object)));
            }
        }
    }
}

impl<S, K: Resource, P: Predicate<K>> EventFilter<S, K, P> {
    /// The object that the stream yields for an event. What no item says is noted.
    fn object(&mut self, event: Event<K>) -> Option<K> {
        let (seen, id) = (&mut self.seen, self.id);
        match event {
            Event::Init => {
                seen.begin(id);
                notes::note(|| Note::Begun(id));
            }
            Event::InitDone => {
                seen.finish(id);
                notes::note(|| Note::Done(id));
            }
            Event::Apply(obj) | Event::InitApply(obj) => {
                if seen.differs(&self.predicate, &obj, Some(id)) && self.which.applied() {
                    notes::note(|| Note::Yielded(id, false));
                    return Some(obj);
                }
                notes::note(|| Note::Passed(id, ObjectKey::of(&obj)));
            }
            Event::Delete(obj) => {
                let key = ObjectKey::of(&obj);
                seen.forget(&key);
                if self.which.deleted() {
                    notes::note(|| Note::Yielded(id, true));
                    return Some(obj);
                }
                notes::note(|| Note::Gone(key));
            }
        }
        None
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

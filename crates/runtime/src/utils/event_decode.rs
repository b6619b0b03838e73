//! Takes the objects out of watch events.

use super::predicate_filter::{EventFilter, Which};
use crate::{
    notes::{self, Note, SourceId},
    predicate::{Predicate, PredicateConfig},
    watcher::{Error, Event},
};
use futures::Stream;
use kube::Resource;
use std::{
    fmt::{self, Debug},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The stream of [`applied_objects`](crate::WatchStreamExt::applied_objects),
/// [`touched_objects`](crate::WatchStreamExt::touched_objects) and
/// [`deleted_objects`](crate::WatchStreamExt::deleted_objects): objects instead of events.
pub struct EventDecode<S> {
    stream: Pin<Box<S>>,
    which: Which,
    id: SourceId,
}

// === impl EventDecode ===

impl<S> EventDecode<S> {
    pub(super) fn new(stream: S, which: Which) -> Self {
        Self {
            stream: Box::pin(stream),
            which,
            id: SourceId::new(),
        }
    }
}

impl<S, K> EventDecode<S>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Resource,
{
    /// Passes on the objects for which a property changed since they were last seen.
    ///
    /// The same as [`WatchStreamExt::predicate_filter`](crate::WatchStreamExt::predicate_filter),
    /// but this stream tells deletes and lists apart: a deleted object always passes, what is kept
    /// of an object goes with it, and nothing depends on a time to live.
    pub fn predicate_filter<P: Predicate<K>>(self, predicate: P) -> EventFilter<S, K, P> {
        EventFilter::new(self.stream, self.which, predicate)
    }

    /// The same as [`predicate_filter`](Self::predicate_filter). What is kept of an object goes
    /// when the object is deleted, so the time to live in `config` is not needed here.
    pub fn predicate_filter_with<P: Predicate<K>>(
        self,
        predicate: P,
        _config: PredicateConfig,
    ) -> EventFilter<S, K, P> {
        self.predicate_filter(predicate)
    }
}

impl<S, K> Stream for EventDecode<S>
where
    S: Stream<Item = Result<Event<K>, Error>>,
{
    type Item = Result<K, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let event = match ready!(self.stream.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(event)) => event,
            };
            if let Some(object) = self.which.object(self.id, event) {
                return Poll::Ready(Some(Ok(object)));
            }
        }
    }
}

impl Which {
    /// The object that the stream yields for an event. What no item says is noted.
    fn object<K>(self, id: SourceId, event: Event<K>) -> Option<K> {
        match event {
            Event::Apply(obj) | Event::InitApply(obj) if self.applied() => {
                notes::note(|| Note::Yielded(id, false));
                return Some(obj);
            }
            // Nobody behind this stream remembers an object that is there.
            Event::Apply(_) | Event::InitApply(_) => {}
            Event::Delete(obj) if self.deleted() => {
                notes::note(|| Note::Yielded(id, true));
                return Some(obj);
            }
            Event::Delete(_) => notes::note(|| Note::Dropped),
            Event::Init => notes::note(|| Note::Begun(id)),
            Event::InitDone => notes::note(|| Note::Done(id)),
        }
        None
    }
}

impl<S: Debug> Debug for EventDecode<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDecode")
            .field("stream", &self.stream)
            .field("which", &self.which)
            .finish_non_exhaustive()
    }
}

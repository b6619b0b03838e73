//! Old and new of each object of a watch.

use crate::{
    reflector::{
        Lookup, ObjectKey,
        store::{Snapshot, take_in_error},
    },
    watcher::{Error, Event},
};
use futures::Stream;
use homeostat_core::cache::{self, Cache};
use std::{
    collections::VecDeque,
    fmt::{self, Debug},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// What became of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<K> {
    /// It is new, or was there from the start.
    Added(Arc<K>),
    /// It changed, from the first state to the second.
    Modified(Arc<K>, Arc<K>),
    /// It is gone; this is the last state that is known of it.
    Deleted(Arc<K>),
}

/// The stream of [`changes`](crate::WatchStreamExt::changes).
pub struct Changes<S, K> {
    stream: Pin<Box<S>>,
    objects: Cache<ObjectKey, Snapshot<K>>,
    /// Of the latest event; kept to use its memory again.
    latest: Vec<cache::Change<ObjectKey, Snapshot<K>>>,
    outbox: VecDeque<Result<Change<K>, Error>>,
}

// === impl Changes ===

impl<S, K: Lookup> Changes<S, K> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream: Box::pin(stream),
            objects: Cache::default(),
            latest: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    fn take_in(&mut self, item: Result<Event<K>, Error>) {
        let (objects, changes) = (&mut self.objects, &mut self.latest);
        let of = |obj: K| (ObjectKey::of(&obj), Snapshot::new(obj));
        let mut failure = None;
        match item {
            Ok(Event::Apply(obj)) => {
                let (key, obj) = of(obj);
                objects.apply(key, obj, changes);
            }
            Ok(Event::Delete(obj)) => {
                let (key, obj) = of(obj);
                objects.delete(key, obj, changes);
            }
            Ok(Event::Init) => objects.begin(),
            Ok(Event::InitApply(obj)) => {
                let (key, obj) = of(obj);
                objects.stage(key, obj);
            }
            Ok(Event::InitDone) => objects.commit(changes),
            Err(error) => {
                take_in_error(objects, &error, changes);
                failure = Some(Err(error));
            }
        }
        self.outbox
            .extend(changes.drain(..).filter_map(Change::of).map(Ok));
        self.outbox.extend(failure);
    }
}

// The stream is pinned in its box.
impl<S, K> Unpin for Changes<S, K> {}

impl<S, K> Stream for Changes<S, K>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Lookup,
{
    type Item = Result<Change<K>, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.outbox.pop_front() {
                return Poll::Ready(Some(item));
            }
            match ready!(this.stream.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(item) => this.take_in(item),
            }
        }
    }
}

impl<K> Change<K> {
    /// The same change of the objects themselves. Each of them was decoded.
    fn of(change: cache::Change<ObjectKey, Snapshot<K>>) -> Option<Self> {
        Some(match change {
            cache::Change::Added { new, key: _ } => Self::Added(new.into_object()?),
            cache::Change::Modified { old, new, key: _ } => {
                Self::Modified(old.into_object()?, new.into_object()?)
            }
            cache::Change::Deleted {
                last,
                old: _,
                key: _,
            } => Self::Deleted(last.into_object()?),
        })
    }
}

impl<S: Debug, K> Debug for Changes<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

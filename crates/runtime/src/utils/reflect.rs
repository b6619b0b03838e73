//! Writes what a watch delivers into a store, and passes it on.

use crate::{
    notes::{Note, note},
    reflector::{
        Lookup, ObjectKey,
        store::{ObjectChange, Writer},
    },
    watcher::{self, Error, Event},
};
use futures::Stream;
use homeostat_core::cache::Change;
use std::{
    collections::VecDeque,
    fmt::{self, Debug},
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The stream of [`reflect`](crate::WatchStreamExt::reflect).
pub struct Reflect<S, K>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    stream: Pin<Box<S>>,
    writer: Writer<K>,
    /// What the store took in and is still to be passed on.
    outbox: VecDeque<Passed<K>>,
    /// Whether the first list is complete.
    synced: bool,
}

enum Passed<K> {
    Init,
    InitApply(Arc<K>),
    InitDone,
    Apply(Arc<K>),
    Delete(Arc<K>),
}

// === impl Reflect ===

impl<S, K> Reflect<S, K>
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    pub(crate) fn new(stream: S, writer: Writer<K>) -> Self {
        Self {
            stream: Box::pin(stream),
            writer,
            outbox: VecDeque::new(),
            synced: false,
        }
    }

    fn take_in(&mut self, event: Event<K>) {
        let first_list = !self.synced && matches!(event, Event::InitDone);
        let changes = self.writer.take_in(event);
        if first_list {
            self.synced = true;
            let gone: Vec<_> = changes.filter_map(gone).map(Passed::Delete).collect();
            // Also what came before the list and is as it was.
            let all = self.writer.as_reader().even_if_incomplete().state();
            self.outbox.push_back(Passed::Init);
            self.outbox.extend(all.into_iter().map(Passed::InitApply));
            self.outbox.extend(gone);
            self.outbox.push_back(Passed::InitDone);
        } else {
            self.outbox.extend(changes.filter_map(Passed::of));
        }
    }
}

/// The last state of an object that is gone.
fn gone<K>(change: ObjectChange<K>) -> Option<Arc<K>> {
    match change {
        Change::Added { .. } | Change::Modified { .. } => None,
        Change::Deleted { last, .. } => last.into_object(),
    }
}

impl<K> Passed<K> {
    /// What a change is for readers downstream.
    fn of(change: ObjectChange<K>) -> Option<Self> {
        match change {
            Change::Added { new, .. } | Change::Modified { new, .. } => {
                new.into_object().map(Self::Apply)
            }
            Change::Deleted { last, .. } => last.into_object().map(Self::Delete),
        }
    }
}

impl<K: Clone> Passed<K> {
    /// The event for readers downstream, who own its object: the store keeps one, they get a copy.
    fn into_event(self) -> Event<K> {
        match self {
            Self::Init => Event::Init,
            Self::InitApply(obj) => Event::InitApply(Arc::unwrap_or_clone(obj)),
            Self::InitDone => Event::InitDone,
            Self::Apply(obj) => Event::Apply(Arc::unwrap_or_clone(obj)),
            Self::Delete(obj) => Event::Delete(Arc::unwrap_or_clone(obj)),
        }
    }
}

// The stream is pinned in its box.
impl<S, K> Unpin for Reflect<S, K>
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
}

impl<S, K> Stream for Reflect<S, K>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(passed) = this.outbox.pop_front() {
                match &passed {
                    Passed::Init => note(|| Note::Reflected),
                    Passed::Delete(obj) => note(|| Note::Gone(ObjectKey::of(&**obj))),
                    Passed::InitApply(_) | Passed::InitDone | Passed::Apply(_) => {}
                }
                return Poll::Ready(Some(Ok(passed.into_event())));
            }
            this.writer.note_use();
            let (polled, heard) = watcher::hear(|| this.stream.as_mut().poll_next(cx));
            this.writer.hear(heard);
            match ready!(polled) {
                None => return Poll::Ready(None),
                Some(Err(error)) => {
                    let changes = this.writer.take_in_error(&error);
                    this.outbox.extend(changes.filter_map(Passed::of));
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Ok(event)) => this.take_in(event),
            }
        }
    }
}

impl<S: Debug, K> Debug for Reflect<S, K>
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflect")
            .field("stream", &self.stream)
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

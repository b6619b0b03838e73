//! Changes each object of a watch on its way.

use crate::watcher::{Error, Event};
use futures::Stream;
use std::{
    fmt::{self, Debug},
    pin::Pin,
    task::{Context, Poll},
};

/// The stream of [`WatchStreamExt::modify`](crate::WatchStreamExt::modify).
pub struct EventModify<S, F> {
    stream: Pin<Box<S>>,
    modify: F,
}

// === impl EventModify ===

impl<S, F> EventModify<S, F> {
    pub(super) fn new(stream: S, modify: F) -> Self {
        Self {
            stream: Box::pin(stream),
            modify,
        }
    }
}

// The stream is pinned in its box, and the function is never pinned.
impl<S, F> Unpin for EventModify<S, F> {}

impl<S, F, K> Stream for EventModify<S, F>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    F: FnMut(&mut K),
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.stream
            .as_mut()
            .poll_next(cx)
            .map_ok(|event| event.modify(&mut this.modify))
    }
}

impl<S: Debug, F> Debug for EventModify<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventModify")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

//! Waits after each error of a stream.

use super::Backoff;
use futures::{Stream, TryStream};
use std::{
    fmt::{self, Debug},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::{Instant, Sleep, sleep_until};

/// A stream that is left alone for a while after each error.
///
/// An item that is no error resets the backoff. When the backoff has no more delays, the stream
/// ends.
pub struct StreamBackoff<S, B> {
    stream: Pin<Box<S>>,
    backoff: B,
    state: State,
}

enum State {
    Awake,
    Asleep(Pin<Box<Sleep>>),
    GivenUp,
}

// === impl StreamBackoff ===

impl<S: TryStream, B: Backoff> StreamBackoff<S, B> {
    /// Wraps `stream` so that `backoff` says how long it is left alone after each error.
    pub fn new(stream: S, backoff: B) -> Self {
        Self {
            stream: Box::pin(stream),
            backoff,
            state: State::Awake,
        }
    }
}

impl<S: TryStream, B: Backoff> Stream for StreamBackoff<S, B> {
    type Item = Result<S::Ok, S::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match &mut this.state {
            State::GivenUp => return Poll::Ready(None),
            State::Asleep(sleep) => std::task::ready!(sleep.as_mut().poll(cx)),
            State::Awake => {}
        }
        this.state = State::Awake;
        let item = std::task::ready!(this.stream.as_mut().try_poll_next(cx));
        match &item {
            Some(Ok(_)) => this.backoff.reset(),
            Some(Err(_)) => {
                this.state = match this.backoff.next() {
                    // The delay counts from the failure, so a slow reader does not wait twice.
                    Some(delay) => State::Asleep(Box::pin(sleep_until(Instant::now() + delay))),
                    None => State::GivenUp,
                };
            }
            None => {}
        }
        Poll::Ready(item)
    }
}

impl<S: Debug, B: Debug> Debug for StreamBackoff<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBackoff")
            .field("stream", &self.stream)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

//! The body of an answer, which has to go on.

use super::{flight::Flight, heard::How};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};
use tower::BoxError;

/// The body of an answer to a request that went through a [tracked client](super). It fails when nothing comes for
/// too long.
pub struct TrackedBody<B> {
    body: Pin<Box<B>>,
    silence: Option<Duration>,
    /// The end of the silence that goes on.
    timer: Option<Pin<Box<Sleep>>>,
    flight: Option<Flight>,
}

/// Nothing came from the server for this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing came from the server within {0:?}")]
pub(super) struct Silent(pub(super) Duration);

// === impl TrackedBody ===

impl<B> TrackedBody<B> {
    pub(super) fn new(body: B, silence: Option<Duration>, flight: Option<Flight>) -> Self {
        Self {
            body: Box::pin(body),
            silence,
            timer: None,
            flight,
        }
    }

    fn fail(&mut self, error: BoxError) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(flight) = self.flight.take() {
            flight.note(How::Unavailable(None));
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl<B> Body for TrackedBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.timer = None;
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => self.fail(error.into()),
            Poll::Ready(None) => {
                self.flight = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(silence) = self.silence else {
                    return Poll::Pending;
                };
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(silence)));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.fail(Silent(silence).into())
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for TrackedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedBody")
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}

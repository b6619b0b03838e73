//! The layer's service: passes requests on, and records the writes among them.

use super::{run::Recording, sight::Intent};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full};
use kube::client::Body;
use std::{
    fmt,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::Mutex;
use tower::{BoxError, Service, ServiceExt};

/// The service of [`Tracked`](super::Tracked).
///
/// kube's client calls its service in a task of its own, and only the future that the call returns is
/// driven in the task of the one who asks. Which run that is can only be seen there, so the call does
/// nothing yet.
pub struct TrackedService<S> {
    /// Held for as long as it takes to hand over a request, not until its answer comes.
    inner: Arc<Mutex<S>>,
}

// === impl TrackedService ===

impl<S> TrackedService<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }
}

impl<S> fmt::Debug for TrackedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedService").finish_non_exhaustive()
    }
}

impl<S, B> Service<Request<Body>> for TrackedService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<Full<Bytes>, B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        // A block, since the arguments of an async function are kept twice. It is made for every request.
        Box::pin(async move {
            let mut recording = Recording::begin(&request);
            if let Some(recording) = &mut recording
                && recording.run.is_observed()
            {
                // Seldom, so that it has its own place: the others are as small as they can be.
                let intent = Intent::of(&request, &recording.begun.target);
                recording.begun.sight = Some(Box::new(Box::pin(intent.look(&inner)).await));
            }
            let answer = {
                let mut inner = match inner.try_lock() {
                    Ok(inner) => inner,
                    Err(_) => inner.lock().await,
                };
                let ready = inner.ready().await.map_err(Into::into)?;
                ready.call(request)
            };
            let response = answer.await.map_err(Into::into)?;
            let Some(recording) = recording.filter(|_| tells_objects(&response)) else {
                return Ok(response.map(Either::Right));
            };
            let (head, body) = response.into_parts();
            let body = collect(body).await.map_err(Into::into)?;
            recording.end(body.clone());
            Ok(Response::from_parts(head, Either::Left(Full::new(body))))
        })
    }
}

/// The whole of a body. Most come in one piece, which is not copied.
async fn collect<B: http_body::Body<Data = Bytes>>(body: B) -> Result<Bytes, B::Error> {
    let mut body = pin!(body);
    let first = match body.frame().await {
        Some(frame) => frame?.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = body.collect().await?.to_bytes();
    Ok(if rest.is_empty() {
        first
    } else {
        [first, rest].concat().into()
    })
}

/// Whether an answer is that of a write that succeeded, and no stream.
fn tells_objects<B>(response: &Response<B>) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    response.status().is_success()
        && response.status() != StatusCode::NO_CONTENT
        && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

#[cfg(test)]
mod tests {
    use super::collect;
    use bytes::Bytes;
    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use std::io::Error;

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_in_any_number_of_pieces() {
        for pieces in [&[][..], &["whole"], &["", "who", "l", "", "e"]] {
            let frames = pieces.iter().map(|piece| {
                let piece = Bytes::from_static(piece.as_bytes());
                Ok::<_, Error>(Frame::data(piece))
            });
            let body = StreamBody::new(stream::iter(frames));
            assert_eq!(collect(body).await.unwrap(), pieces.concat());
        }
        let broken = [
            Ok(Frame::data(Bytes::from_static(b"who"))),
            Err(Error::other("broken off")),
        ];
        let body = StreamBody::new(stream::iter(broken));
        assert_eq!(collect(body).await.unwrap_err().to_string(), "broken off");
    }
}

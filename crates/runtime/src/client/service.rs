//! The layer's service: passes requests on, and records the writes among them.

use super::{
    body::{Silent, TrackedBody},
    flight::Flight,
    heard::How,
    request::{self, OwnPatience},
    run::{Recording, Run},
    sight::Intent,
    traffic::Traffic,
};
use crate::identity::{Identity, introduce};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, Either, Full};
use kube::client::Body;
use std::{
    fmt,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::Mutex, time::timeout};
use tower::{BoxError, Service, ServiceExt};

/// The service of [`Tracked`](super::Tracked).
///
/// kube's client calls its service in a task of its own, and only the future that the call returns is
/// driven in the task of the one who asks. Which run that is can only be seen there, so the call does
/// nothing yet.
pub struct TrackedService<S> {
    /// Held for as long as it takes to hand over a request, not until its answer comes.
    inner: Arc<Mutex<S>>,
    /// How long the server may be silent.
    silence: Option<Duration>,
    /// Whether it is known how the services below send requests again.
    settled: bool,
    sender: Arc<Sender>,
}

/// In whose name requests are sent.
struct Sender {
    identity: Identity,
    user_agent: Option<HeaderValue>,
}

// === impl TrackedService ===

impl<S> TrackedService<S> {
    pub(super) fn new(
        inner: S,
        silence: Option<Duration>,
        settled: bool,
        identity: Identity,
    ) -> Self {
        let user_agent = identity.user_agent();
        Self {
            inner: Arc::new(Mutex::new(inner)),
            silence,
            settled,
            sender: Arc::new(Sender {
                identity,
                user_agent,
            }),
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
    type Response = Response<Either<Full<Bytes>, TrackedBody<B>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        let settled = self.settled;
        let is_patient =
            request.extensions().get::<OwnPatience>().is_some() || request::is_stream(&request);
        let silence = self.silence.filter(|_| !is_patient);
        let sender = Arc::clone(&self.sender);
        // A block, since the arguments of an async function are kept twice. It is made for every request.
        Box::pin(async move {
            sender.sign(&mut request);
            let run = Run::current();
            let writer = run.clone().filter(|_| *request.method() != Method::GET);
            let recording = Recording::begin(run.as_ref(), &request, settled);
            let mut recording = recording.map_err(kube::Error::from)?;
            let traffic = match &run {
                Some(run) => run.traffic().map(Arc::clone),
                None => Traffic::current(),
            };
            let counting = traffic.map(|traffic| Box::new(traffic.begin(&request)));
            let flight = run.map(|run| Flight::begin(run, &request));
            let path = flight.as_ref().map(|_| request.uri().clone());
            if let Some(recording) = &mut recording
                && recording.run.is_observed()
            {
                // Seldom, so that it has its own place: the others are as small as they can be.
                let intent = Intent::of(&request, &recording.begun.target);
                let look = Box::pin(within(silence, async { Ok(intent.look(&inner).await) }));
                recording.begun.sight = Some(Box::new(look.await?));
            }
            let sent = within(silence, async {
                let answer = {
                    let mut inner = match inner.try_lock() {
                        Ok(inner) => inner,
                        Err(_) => inner.lock().await,
                    };
                    let ready = inner.ready().await.map_err(Into::into)?;
                    if let Some(run) = &writer {
                        // It may have waited for long.
                        run.check_term().map_err(kube::Error::from)?;
                    }
                    ready.call(request)
                };
                answer.await.map_err(Into::into)
            });
            let answered = sent.await;
            if let Some(counting) = counting {
                let head = answered.as_ref().ok();
                counting.answered(head.map(|response| response.status().as_u16()));
            }
            if let (Some(flight), Some(uri)) = (&flight, &path) {
                flight.note(match &answered {
                    Ok(response) => How::of(uri.path(), response.status(), response.headers()),
                    Err(_) => How::Unavailable(None),
                });
            }
            let (head, body) = answered?.into_parts();
            let body = TrackedBody::new(body, silence, flight);
            let Some(recording) = recording.filter(|_| tells_objects(&head)) else {
                return Ok(Response::from_parts(head, Either::Right(body)));
            };
            let body = collect(body).await?;
            recording.end(body.clone());
            Ok(Response::from_parts(head, Either::Left(Full::new(body))))
        })
    }
}

/// Fails when `answer` takes longer than `silence`.
async fn within<T>(
    silence: Option<Duration>,
    answer: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match silence {
        None => answer.await,
        Some(silence) => match timeout(silence, answer).await {
            Ok(answered) => answered,
            Err(_) => Err(Silent(silence).into()),
        },
    }
}

// === impl Sender ===

impl Sender {
    /// Says who sends a request, unless that is said. A run's controller knows best.
    fn sign(&self, request: &mut Request<Body>) {
        introduce(request, self.user_agent.as_ref());
        if *request.method() != Method::GET {
            let run = Run::current();
            let of_run = run.as_ref().and_then(|run| run.identity());
            of_run.unwrap_or(&self.identity).sign(request);
        }
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
fn tells_objects(head: &Parts) -> bool {
    let content_type = head.headers.get(header::CONTENT_TYPE);
    head.status.is_success()
        && head.status != StatusCode::NO_CONTENT
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

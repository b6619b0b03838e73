//! The tasks of a controller. Everything that is spawned is spawned here, and ends with its owner; what
//! has none ends by itself.

use crate::{client, term::Fence};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    task::{JoinError, JoinHandle},
    time::{Sleep, sleep},
};
use tracing::Instrument;

/// A spawned task. It is cancelled when this is dropped.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<T>);

/// A task of the user's that is cancelled when its handle is dropped. A panic in it goes on in whoever
/// waits for it.
#[derive(Debug)]
pub struct CancelableJoinHandle<T>(Task<T>);

/// A future whose panic, or taking too long, is its result.
pub(crate) struct Guarded<F> {
    future: Pin<Box<F>>,
    fence: Option<Fence>,
    timeout: Option<(Duration, Pin<Box<Sleep>>)>,
}

/// How a [`Guarded`] future ended.
#[derive(Debug)]
pub(crate) enum Completion<T> {
    /// It returned.
    Returned(T),
    /// It panicked, with this message.
    Panicked(String),
    /// It did not end within this time.
    TimedOut(Duration),
    /// The leadership that it needs was lost before its end, so it was not driven any further.
    Deposed,
}

/// Where guarded futures are driven.
pub(crate) trait Spawn<F: Future> {
    /// The handle to one; whoever drops it cancels it.
    type Handle: Future<Output = Completion<F::Output>> + Unpin;

    /// Starts one.
    fn spawn(&self, future: Guarded<F>) -> Self::Handle;
}

/// Drives each future in a task of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InTasks;

/// Leaves it to the owner of the handle to drive each future.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InPlace;

/// Starts a task in the runtime that this is called in.
pub(crate) fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Task<T> {
    Task(tokio::spawn(future))
}

/// Starts a task that nobody owns, in the runtime that this is called in. It has to end by itself.
pub(crate) fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(future);
}

/// Starts a task as a part of the run that this is called in: what it writes through a
/// [tracked client](crate::client) counts for that run.
///
/// Like `tokio::spawn`, which it is outside of a reconcile, and in the caller's tracing span. The task
/// goes on when the handle is dropped; wait for it, because what it writes after the end of the run does
/// not count.
///
/// ```
/// # async fn sketch() {
/// let backup = homeostat::spawn(async { 1 });
/// let website = homeostat::spawn(async { 2 });
/// let (backup, website) = tokio::join!(backup, website);
/// # }
/// ```
pub fn spawn_in_run<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let future = client::keeping_run(client::Run::current(), future);
    tokio::spawn(future.in_current_span())
}

/// Calls `f`, with a panic as its message.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(f)).map_err(|panic| message(&*panic))
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a value that is no text".into())
}

// === impl Task ===

impl<T> Future for Task<Completion<T>> {
    type Output = Completion<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.0).poll(cx));
        // A guarded future does not panic, so this says that the runtime is shutting down.
        Poll::Ready(result.unwrap_or_else(|error| Completion::Panicked(error.to_string())))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl CancelableJoinHandle ===

impl<T: Send + 'static> CancelableJoinHandle<T> {
    /// Starts a task in `runtime`.
    #[must_use = "the task is cancelled when its handle is dropped"]
    pub fn spawn(future: impl Future<Output = T> + Send + 'static, runtime: &Handle) -> Self {
        Self(Task(runtime.spawn(future)))
    }
}

impl<T> Future for CancelableJoinHandle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0.0).poll(cx)).map_err(JoinError::try_into_panic) {
            Ok(value) => Poll::Ready(value),
            Err(Ok(panic)) => resume_unwind(panic),
            // The runtime is shutting down, so nobody waits any more.
            Err(Err(_)) => Poll::Pending,
        }
    }
}

// === impl InTasks ===

impl<F> Spawn<F> for InTasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Handle = Task<Completion<F::Output>>;

    fn spawn(&self, future: Guarded<F>) -> Self::Handle {
        start(future)
    }
}

// === impl InPlace ===

impl<F: Future> Spawn<F> for InPlace {
    type Handle = Guarded<F>;

    fn spawn(&self, future: Guarded<F>) -> Self::Handle {
        future
    }
}

// === impl Guarded ===

impl<F: Future> Guarded<F> {
    /// Guards `future`. With a timeout it must be created in a runtime.
    pub(crate) fn new(future: F, timeout: Option<Duration>) -> Self {
        Self {
            future: Box::pin(future),
            fence: None,
            timeout: timeout.map(|limit| (limit, Box::pin(sleep(limit)))),
        }
    }
}

impl<F> Guarded<F> {
    /// The same, and it is driven no further than `fence` allows.
    pub(crate) fn within(self, fence: Option<Fence>) -> Self {
        Self { fence, ..self }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Completion<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            future,
            fence,
            timeout,
        } = &mut *self;
        if fence.as_ref().is_some_and(|fence| !fence.holds()) {
            return Poll::Ready(Completion::Deposed);
        }
        match catch(|| future.as_mut().poll(cx)) {
            Ok(Poll::Ready(value)) => return Poll::Ready(Completion::Returned(value)),
            Err(panic) => return Poll::Ready(Completion::Panicked(panic)),
            Ok(Poll::Pending) => {}
        }
        match timeout {
            Some((limit, sleep)) => {
                ready!(sleep.as_mut().poll(cx));
                Poll::Ready(Completion::TimedOut(*limit))
            }
            None => Poll::Pending,
        }
    }
}

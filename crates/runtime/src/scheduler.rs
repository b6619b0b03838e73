//! Delays messages, and merges equal ones that wait.

use futures::Stream;
use hashbrown::HashMap;
use homeostat_core::{
    queue::{Action, Class, Config, Next, Outcome, Priority, Queue, Trigger},
    time::Time,
};
use rustc_hash::FxBuildHasher;
use std::{
    collections::VecDeque,
    fmt::{self, Debug},
    hash::Hash,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};

/// A message and when it is to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRequest<T> {
    /// The message.
    pub message: T,
    /// When it is to be delivered; a time that has passed means now.
    pub run_at: Instant,
}

/// The stream of [`scheduler()`] and [`debounced_scheduler`].
pub struct Scheduler<T, S> {
    requests: Option<Pin<Box<S>>>,
    debounce: Duration,
    queue: Queue<T, ()>,
    /// The messages that wait, each as it is to be delivered, and the time that this version of it asked for.
    waiting: HashMap<T, Time, FxBuildHasher>,
    /// The latest moment that the queue knows of.
    latest: Time,
    /// Messages whose time has come and that nobody has taken yet, in this order.
    due: VecDeque<T>,
    origin: Instant,
    sleep: Pin<Box<Sleep>>,
}

/// A [`Scheduler`] that holds messages back for now: see [`Scheduler::hold_unless`].
pub struct HoldUnless<'a, T, S, C> {
    scheduler: Pin<&'a mut Scheduler<T, S>>,
    can_take: C,
}

/// A [`Scheduler`] that only takes in requests for now: see [`Scheduler::hold`].
pub struct Hold<'a, T, S> {
    scheduler: Pin<&'a mut Scheduler<T, S>>,
}

/// Delivers each message at its time. Of equal messages that wait one is delivered, at the earliest
/// of their times, and it is the one that asked for this time.
///
/// Messages whose time has come are delivered in this order. When `requests` ends, what waits is
/// still delivered, and then the stream ends.
///
/// Must be called in a tokio runtime.
pub fn scheduler<T: Eq + Hash + Clone, S: Stream<Item = ScheduleRequest<T>>>(
    requests: S,
) -> Scheduler<T, S> {
    debounced_scheduler(requests, Duration::ZERO)
}

/// The same as [`scheduler()`]; a message that is due now waits until no equal one came for
/// `debounce`, but no longer than ten times that, and the last of them is delivered. A time in the future is not put
/// off.
pub fn debounced_scheduler<T: Eq + Hash + Clone, S: Stream<Item = ScheduleRequest<T>>>(
    requests: S,
    debounce: Duration,
) -> Scheduler<T, S> {
    let config = Config::default().concurrency(0).debounce(debounce);
    let origin = Instant::now();
    Scheduler {
        requests: Some(Box::pin(requests)),
        debounce,
        queue: Queue::new(&config),
        waiting: HashMap::default(),
        latest: Time::ORIGIN,
        due: VecDeque::new(),
        origin,
        sleep: Box::pin(sleep_until(origin)),
    }
}

// === impl Scheduler ===

impl<T, S> Scheduler<T, S> {
    /// A stream of those messages that are due and for which `can_take` holds. The others stay.
    ///
    /// It ends when the scheduler has no requests left and no message that it may deliver.
    pub fn hold_unless<C: Fn(&T) -> bool>(
        self: Pin<&mut Self>,
        can_take: C,
    ) -> HoldUnless<'_, T, S, C> {
        HoldUnless {
            scheduler: self,
            can_take,
        }
    }

    /// A stream that takes in requests, and delivers nothing.
    #[must_use]
    pub fn hold(self: Pin<&mut Self>) -> Hold<'_, T, S> {
        Hold { scheduler: self }
    }
}

// The stream of requests and the timer are pinned in their boxes.
impl<T, S> Unpin for Scheduler<T, S> {}

impl<T, S> Scheduler<T, S>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        can_take: impl Fn(&T) -> bool,
    ) -> Poll<Option<T>> {
        self.take_in(cx);
        loop {
            let wait = self.collect_due();
            if let Some(place) = self.due.iter().position(&can_take) {
                return Poll::Ready(self.due.remove(place));
            }
            match wait {
                Some(until) => {
                    self.sleep.as_mut().reset(until);
                    // A timer that is over already wakes nobody, so the queue is asked again.
                    if self.sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                None if self.requests.is_none() => return Poll::Ready(None),
                None => return Poll::Pending,
            }
        }
    }

    /// Takes in all requests that are there.
    fn take_in(&mut self, cx: &mut Context<'_>) {
        while let Some(requests) = &mut self.requests {
            match requests.as_mut().poll_next(cx) {
                Poll::Ready(Some(request)) => self.request(request),
                Poll::Ready(None) => self.requests = None,
                Poll::Pending => return,
            }
        }
    }

    fn request(&mut self, request: ScheduleRequest<T>) {
        let ScheduleRequest { message, run_at } = request;
        if self.due.contains(&message) {
            return;
        }
        let (now, at) = (self.now(), self.time(run_at));
        let due_now = at <= now;
        self.keep(message.clone(), at, due_now);
        if due_now {
            // It may be that nobody looked since then.
            self.latest = self.latest.max(at);
            let trigger = Trigger {
                key: message,
                cause: (),
                class: Class::Desired,
                priority: Priority::Normal,
            };
            self.queue.add(self.latest, trigger);
        } else {
            self.latest = now;
            self.queue.schedule_at(now, message, at);
        }
    }

    /// Keeps this version of a message, unless there is one that asked for an earlier time.
    fn keep(&mut self, message: T, at: Time, due_now: bool) {
        let due = if due_now { at + self.debounce } else { at };
        let earlier = self.waiting.get(&message).is_some_and(|kept| *kept < at);
        if !earlier {
            // An entry keeps the first of equal keys.
            self.waiting.remove(&message);
            self.waiting.insert(message, due);
        }
    }

    /// Collects what is due, and says when there is more.
    fn collect_due(&mut self) -> Option<Instant> {
        let now = self.now();
        self.latest = now;
        loop {
            match self.queue.next(now) {
                Next::Run(run) => {
                    let delivered = Outcome::success(Action::AwaitChange);
                    self.queue.done(now, &run.key, delivered, 0.0);
                    let kept = self.waiting.remove_entry(&run.key);
                    self.due
                        .push_back(kept.map_or(run.key, |(message, _)| message));
                }
                Next::WaitUntil(time) => return Some(self.origin + time.since(Time::ORIGIN)),
                Next::Idle => return None,
            }
        }
    }

    fn now(&self) -> Time {
        self.time(Instant::now())
    }

    fn time(&self, instant: Instant) -> Time {
        Time::ORIGIN + instant.saturating_duration_since(self.origin)
    }
}

impl<T, S> Stream for Scheduler<T, S>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_take(cx, |_| true)
    }
}

impl<T, S, C> Stream for HoldUnless<'_, T, S, C>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
    C: Fn(&T) -> bool + Unpin,
{
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Self {
            scheduler,
            can_take,
        } = self.get_mut();
        scheduler.poll_take(cx, &*can_take)
    }
}

impl<T, S> Stream for Hold<'_, T, S>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().scheduler.poll_take(cx, |_| false)
    }
}

impl<T, S> Debug for Scheduler<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("due", &self.due.len())
            .finish_non_exhaustive()
    }
}

impl<T, S, C> Debug for HoldUnless<'_, T, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HoldUnless").field(&self.scheduler).finish()
    }
}

impl<T, S> Debug for Hold<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.scheduler).finish()
    }
}

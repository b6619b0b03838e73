//! What waits between a watch that several controllers share and one of them.

use super::super::{
    reason::News,
    source::{EventVersion, Happened, Signal},
};
use super::pile::{Letter, Pile};
use crate::{
    client::{self, Noted},
    progress::Progress,
    reflector::ObjectKey,
};
use futures::Stream;
use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// How many signals wait before those about the same object are merged.
const MERGE_AT: usize = 4096;

/// The signals for one follower of a watch, at most a few for each object once it is slow. Whoever puts something in
/// never waits.
pub(super) struct Outbox(Mutex<Letters>);

struct Letters {
    waiting: Pile,
    /// At how many they are merged next.
    merge_at: usize,
    noted: Noted,
    /// Nothing comes any more, or nobody listens any more.
    closed: bool,
    waker: Option<Waker>,
}

/// The follower's end: a stream of its signals.
pub(super) struct Inbox {
    outbox: Arc<Outbox>,
    /// How far the follower has come.
    progress: Progress,
    /// Tells the watch that nobody listens any more.
    leave: Box<dyn Fn() + Send>,
}

// === impl Outbox ===

impl Outbox {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Letters {
            waiting: Pile::default(),
            merge_at: MERGE_AT,
            noted: Noted::Nothing,
            closed: false,
            waker: None,
        })))
    }

    pub(super) fn put(&self, signals: impl IntoIterator<Item = Signal>) {
        let signals = signals.into_iter().map(Letter::Signal);
        self.put_by(|waiting| waiting.extend(signals));
    }

    /// Puts in what was piled up elsewhere.
    pub(super) fn put_pile(&self, pile: Pile) {
        self.put_by(|waiting| waiting.append(pile));
    }

    fn put_by(&self, put: impl FnOnce(&mut Pile)) {
        let mut letters = self.lock();
        if letters.closed {
            return;
        }
        let before = letters.waiting.len();
        put(&mut letters.waiting);
        letters.merge_if_many(before);
        letters.wake();
    }

    /// The watch has come to this version, and all before it was put in.
    pub(super) fn reached(&self, version: u64) {
        let mut letters = self.lock();
        if !letters.closed {
            letters.waiting.reached(version);
        }
        letters.wake();
    }

    /// Takes in what is known of the watch's client.
    pub(super) fn note(&self, noted: Noted) {
        let mut letters = self.lock();
        letters.noted = letters.noted.max(noted);
    }

    /// Nothing comes any more. What waits is handed out.
    pub(super) fn close(&self) {
        let mut letters = self.lock();
        letters.closed = true;
        letters.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Letters ===

impl Letters {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Merges what waits if there is much of it, and so much was there `before`.
    fn merge_if_many(&mut self, before: usize) {
        if before < MERGE_AT {
            // What comes at once, as a list does, is about different objects.
            self.merge_at = (self.waiting.len() * 2).max(MERGE_AT);
            return;
        }
        if self.waiting.len() < self.merge_at {
            return;
        }
        self.waiting = merged(self.waiting.take());
        // Merging goes over all, so it must not happen for each that is put in.
        self.merge_at = (self.waiting.len() * 2).max(MERGE_AT);
    }
}

/// The same signals, with one for each object: the last tells whether it is there, and all causes for which it is to
/// run count. Of marks and of what tells how the watch is, the last ones stay.
fn merged(waiting: impl Iterator<Item = Letter>) -> Pile {
    let mut merged: Vec<Option<Letter>> = Vec::new();
    let mut places: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    let mut mark = None;
    let mut others: BTreeMap<u8, usize> = BTreeMap::new();
    for letter in waiting {
        let signal = match letter {
            Letter::Reached(version) => {
                mark = Some(version);
                continue;
            }
            Letter::Signal(signal) => signal,
        };
        let place = merged.len();
        let before = match of(&signal) {
            Of::Object(key) => places.insert(key.clone(), place),
            Of::Watch(what) => others.insert(what, place),
        };
        let before = before.and_then(|place| merged[place].take());
        let signal = match before {
            Some(Letter::Signal(before)) => merge(before, signal),
            Some(Letter::Reached(_)) | None => signal,
        };
        merged.push(Some(Letter::Signal(signal)));
    }
    let mark = mark.map(Letter::Reached);
    merged.into_iter().flatten().chain(mark).collect()
}

enum Of<'a> {
    Object(&'a ObjectKey),
    /// The watch as a whole; what is told of it is one of a few things.
    Watch(u8),
}

fn of(signal: &Signal) -> Of<'_> {
    match signal {
        Signal::Trigger { key, .. } | Signal::Passed(key) | Signal::Gone(key) => Of::Object(key),
        Signal::TriggerAll => Of::Watch(0),
        Signal::Synced => Of::Watch(1),
        // What came last counts.
        Signal::Recovered | Signal::Failed(_) => Of::Watch(2),
        Signal::ObjectFailed(_) => Of::Watch(3),
        Signal::StoreLost(_) => Of::Watch(4),
        Signal::Started => Of::Watch(5),
        Signal::Joined { .. } => Of::Watch(6),
        Signal::Asked(_) => Of::Watch(7),
    }
}

/// One signal in place of two about the same object or watch.
fn merge(before: Signal, now: Signal) -> Signal {
    match (before, now) {
        (
            Signal::Trigger {
                priority: earlier,
                event,
                ..
            },
            Signal::Trigger {
                key,
                reason,
                priority,
                event: later,
            },
        ) => {
            let desired = |event: &Option<Happened>| event.as_ref().is_some_and(|one| one.desired);
            let told = event.is_some() && later.is_some();
            let desired = desired(&event) || desired(&later);
            Signal::Trigger {
                key,
                reason,
                priority: earlier.max(priority),
                event: told.then_some(Happened {
                    desired,
                    version: EventVersion::Unknown,
                    news: News::Changed,
                }),
            }
        }
        (before @ Signal::Trigger { .. }, Signal::Passed(_)) => before,
        (_, now) => now,
    }
}

// === impl Inbox ===

impl Inbox {
    pub(super) fn new(
        outbox: Arc<Outbox>,
        progress: Progress,
        leave: impl Fn() + Send + 'static,
    ) -> Self {
        Self {
            outbox,
            progress,
            leave: Box::new(leave),
        }
    }
}

impl Stream for Inbox {
    type Item = Signal;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        let mut letters = self.outbox.lock();
        client::note_requests(letters.noted);
        loop {
            match letters.waiting.pop() {
                Some(Letter::Signal(signal)) => return Poll::Ready(Some(signal)),
                // Whoever asks for more has taken in all that was handed out before.
                Some(Letter::Reached(version)) => self.progress.listed(Some(version)),
                None if letters.closed => return Poll::Ready(None),
                None => {
                    letters.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        {
            let mut letters = self.outbox.lock();
            letters.closed = true;
            letters.waiting = Pile::default();
        }
        (self.leave)();
    }
}

#[cfg(test)]
mod tests {
    use super::{Inbox, MERGE_AT, Outbox};
    use crate::{
        controller::{
            ReconcileReason,
            reason::News,
            source::{EventVersion, Happened, Signal},
        },
        progress::Progress,
        reflector::ObjectKey,
    };
    use futures::{FutureExt, StreamExt};
    use homeostat_core::queue::Priority;
    use std::sync::Arc;

    fn trigger(name: &str, desired: bool) -> Signal {
        Signal::Trigger {
            key: ObjectKey::new(Some("default"), name),
            reason: ReconcileReason::ObjectUpdated,
            priority: Priority::Normal,
            event: Some(Happened {
                desired,
                version: EventVersion::Step(1),
                news: News::Changed,
            }),
        }
    }

    fn all(inbox: &mut Inbox) -> Vec<Signal> {
        let mut signals = Vec::new();
        while let Some(Some(signal)) = inbox.next().now_or_never() {
            signals.push(signal);
        }
        signals
    }

    #[test]
    fn a_slow_follower_costs_no_more_than_its_objects() {
        let outbox = Outbox::new();
        let progress = Progress::default();
        let mut inbox = Inbox::new(Arc::clone(&outbox), progress.clone(), || {});
        for round in 0..100_000_u64 {
            outbox.put([trigger(&format!("site-{}", round % 10), round == 17)]);
            outbox.reached(round);
        }
        outbox.put([Signal::Gone(ObjectKey::new(Some("default"), "site-3"))]);
        let waiting = outbox.lock().waiting.len();
        assert!(waiting <= 2 * MERGE_AT, "{waiting}");
        let signals = all(&mut inbox);
        let last = signals.last();
        assert!(matches!(last, Some(Signal::Gone(_))), "{last:?}");
        let desired = signals.iter().any(
            |signal| matches!(signal, Signal::Trigger { event: Some(event), .. } if event.desired),
        );
        assert!(desired, "what somebody wants is not lost in the others");
        assert_eq!(progress.version(), 99_999);
    }

    #[test]
    fn the_version_is_told_when_all_before_it_was_taken_in() {
        let outbox = Outbox::new();
        let progress = Progress::default();
        let mut inbox = Inbox::new(Arc::clone(&outbox), progress.clone(), || {});
        outbox.put([trigger("a", false)]);
        outbox.reached(7);
        assert!(inbox.next().now_or_never().is_some());
        assert_eq!(progress.version(), 0, "it is not known to be taken in yet");
        assert!(inbox.next().now_or_never().is_none());
        assert_eq!(progress.version(), 7);
        drop(inbox);
        assert!(outbox.is_closed());
    }
}

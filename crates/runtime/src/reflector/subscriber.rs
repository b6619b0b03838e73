//! Streams of what happens in a store.

use super::{Lookup, ObjectKey, Store};
use futures::Stream;
use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// A stream of the objects of a [`Store`]: first all that are there, then each that is created,
/// changed or deleted. See [`Store::subscribe`] for what it guarantees.
///
/// A clone is a subscriber of its own and starts with all objects again.
pub struct ReflectHandle<K: Lookup + 'static>
where
    K::DynamicType: Eq + Hash,
{
    store: Store<K>,
    mailbox: Arc<Mailbox<K>>,
}

/// What waits for one subscriber.
pub(super) struct Mailbox<K>(Mutex<Letters<K>>);

struct Letters<K> {
    /// Objects to hand out, in the order in which they first came.
    waiting: BTreeMap<u64, (Identity, Arc<K>)>,
    /// Where an object stands in `waiting`.
    places: BTreeMap<Identity, u64>,
    next_place: u64,
    closed: bool,
    waker: Option<Waker>,
}

/// An object, and which of those that had its name: the owners of each are to hear of it.
type Identity = (ObjectKey, Option<Box<str>>);

// === impl ReflectHandle ===

impl<K: Lookup + 'static> ReflectHandle<K>
where
    K::DynamicType: Eq + Hash,
{
    pub(super) fn new(store: Store<K>, mailbox: Arc<Mailbox<K>>) -> Self {
        Self { store, mailbox }
    }

    /// The store that this follows.
    #[must_use]
    pub fn reader(&self) -> Store<K> {
        self.store.clone()
    }
}

impl<K: Lookup + 'static> Clone for ReflectHandle<K>
where
    K::DynamicType: Eq + Hash,
{
    fn clone(&self) -> Self {
        self.store.subscribe()
    }
}

impl<K: Lookup + 'static> Stream for ReflectHandle<K>
where
    K::DynamicType: Eq + Hash,
{
    type Item = Arc<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Arc<K>>> {
        let mut letters = self.mailbox.lock();
        match letters.take() {
            Some(obj) => Poll::Ready(Some(obj)),
            None if letters.closed => Poll::Ready(None),
            None => {
                letters.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<K: Lookup + 'static> Debug for ReflectHandle<K>
where
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectHandle")
            .field("store", &self.store)
            .field("waiting", &self.mailbox.lock().waiting.len())
            .finish()
    }
}

// === impl Mailbox ===

impl<K: Lookup> Mailbox<K> {
    pub(super) fn new(objects: impl Iterator<Item = (ObjectKey, Arc<K>)>) -> Self {
        let mailbox = Self(Mutex::new(Letters {
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            next_place: 0,
            closed: false,
            waker: None,
        }));
        mailbox.put(objects);
        mailbox
    }

    /// Puts in objects and wakes the subscriber. One that waits already is replaced.
    pub(super) fn put(&self, objects: impl Iterator<Item = (ObjectKey, Arc<K>)>) {
        let mut letters = self.lock();
        for (key, obj) in objects {
            letters.put((key, obj.uid().map(Into::into)), obj);
        }
        letters.wake();
    }
}

impl<K> Mailbox<K> {
    /// Nothing will come any more.
    pub(super) fn close(&self) {
        let mut letters = self.lock();
        letters.closed = true;
        letters.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Letters<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Letters ===

impl<K> Letters<K> {
    fn put(&mut self, identity: Identity, obj: Arc<K>) {
        if let Some(place) = self.places.get(&identity) {
            self.waiting.insert(*place, (identity, obj));
            return;
        }
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert(identity.clone(), place);
        self.waiting.insert(place, (identity, obj));
    }

    fn take(&mut self) -> Option<Arc<K>> {
        let (_place, (identity, obj)) = self.waiting.pop_first()?;
        self.places.remove(&identity);
        Some(obj)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

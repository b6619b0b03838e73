//! What waits for the subscribers of a store.

use super::{Lookup, ObjectKey};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// What waits for one subscriber.
pub(super) struct Mailbox<K>(Mutex<Letters<K>>);

pub(super) struct Letters<K> {
    /// Objects to hand out, in the order in which they first came.
    pub(super) waiting: BTreeMap<u64, (Identity, Arc<K>)>,
    /// Where an object stands in `waiting`.
    places: BTreeMap<Identity, u64>,
    next_place: u64,
    pub(super) closed: bool,
    pub(super) waker: Option<Waker>,
}

/// An object, and which of those that had its name: the owners of each are to hear of it.
type Identity = (ObjectKey, Option<Box<str>>);

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

    pub(super) fn lock(&self) -> MutexGuard<'_, Letters<K>> {
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

    pub(super) fn take(&mut self) -> Option<Arc<K>> {
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

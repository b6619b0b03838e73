//! What waits for the subscribers of a store.

use super::{Lookup, ObjectKey};
use crate::notes::{self, Note, SourceId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// What waits for one subscriber: at most one letter for each object that is there, and for each that is gone and
/// that the subscriber has seen.
pub(super) struct Mailbox<K>(Mutex<Letters<K>>);

pub(super) struct Letters<K> {
    /// Objects to hand out, in the order in which they first came.
    pub(super) waiting: BTreeMap<u64, Letter<K>>,
    /// Where an object stands in `waiting`.
    places: BTreeMap<Identity, u64>,
    /// The objects that the subscriber has seen and does not know to be gone. What came and went without being
    /// read is none of its business.
    seen: BTreeSet<Identity>,
    /// Tells filters further down what is gone.
    id: SourceId,
    next_place: u64,
    pub(super) closed: bool,
    pub(super) waker: Option<Waker>,
}

pub(super) struct Letter<K> {
    identity: Identity,
    obj: Arc<K>,
    gone: bool,
}

/// An object, and which of those that had its name: the owners of each are to hear of it.
type Identity = (ObjectKey, Option<Box<str>>);

// === impl Mailbox ===

impl<K: Lookup> Mailbox<K> {
    pub(super) fn new(objects: impl Iterator<Item = (ObjectKey, Arc<K>)>) -> Self {
        let mailbox = Self(Mutex::new(Letters {
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            seen: BTreeSet::new(),
            id: SourceId::new(),
            next_place: 0,
            closed: false,
            waker: None,
        }));
        mailbox.put(objects.map(|(key, obj)| (key, obj, false)));
        mailbox
    }

    /// Puts in objects, of each whether it is gone, and wakes the subscriber. One that waits already is
    /// replaced.
    pub(super) fn put(&self, objects: impl Iterator<Item = (ObjectKey, Arc<K>, bool)>) {
        let mut letters = self.lock();
        for (key, obj, gone) in objects {
            let identity = (key, obj.uid().map(Into::into));
            letters.put(Letter {
                identity,
                obj,
                gone,
            });
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
    fn put(&mut self, letter: Letter<K>) {
        let place = self.places.get(&letter.identity).copied();
        if letter.gone && !self.seen.contains(&letter.identity) {
            if let Some(place) = place {
                self.places.remove(&letter.identity);
                self.waiting.remove(&place);
            }
            return;
        }
        let place = place.unwrap_or_else(|| {
            let place = self.next_place;
            self.next_place += 1;
            self.places.insert(letter.identity.clone(), place);
            place
        });
        self.waiting.insert(place, letter);
    }

    pub(super) fn take(&mut self) -> Option<Arc<K>> {
        let (_place, letter) = self.waiting.pop_first()?;
        let Letter {
            identity,
            obj,
            gone,
        } = letter;
        self.places.remove(&identity);
        if gone {
            self.seen.remove(&identity);
        } else {
            self.seen.insert(identity);
        }
        notes::note(|| Note::Yielded(self.id, gone));
        Some(obj)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

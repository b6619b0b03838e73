//! Streams of what happens in a store.

use super::{
    Lookup,
    mailbox::Mailbox,
    store::{Store, Writer},
};
use futures::Stream;
use std::{
    fmt::{self, Debug},
    hash::Hash,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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

// === impl Store ===

impl<K: Lookup + Clone + 'static> Writer<K>
where
    K::DynamicType: Eq + Hash + Clone,
{
    /// A stream of what happens in this store: see [`Store::subscribe`]. It is always there.
    #[must_use]
    pub fn subscribe(&self) -> Option<ReflectHandle<K>> {
        Some(self.as_reader().subscribe())
    }
}

impl<K: Lookup + 'static> Store<K>
where
    K::DynamicType: Eq + Hash,
{
    /// A stream of what happens in this store, which starts with all objects that are in it.
    ///
    /// # Guarantees
    ///
    /// - A subscriber that comes late sees every object that is there, then each change. Nothing is
    ///   missing between the two.
    /// - Deleted objects come too, in their last state; [`get`](Self::get) tells whether an object
    ///   is still there.
    /// - A slow subscriber stalls nobody. It sees the latest state of each object that changed
    ///   meanwhile. Of an object that was created and deleted again meanwhile it hears nothing, so what waits
    ///   for a subscriber that does not read is bounded by the objects that it has seen and those that are there.
    ///
    /// The stream ends when the writer is dropped.
    #[must_use]
    pub fn subscribe(&self) -> ReflectHandle<K> {
        let mailbox = self.mailbox();
        ReflectHandle::new(self.clone(), mailbox)
    }
}

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
        self.store.note_use();
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

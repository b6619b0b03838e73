//! What a stream of objects does not say in its items: which of them were deleted, and when lists begin and end.
//!
//! Adapters that turn events into objects note this while they are polled, and an adapter further down that wants
//! to know it [listens](hear) while it polls. So a filter behind `.boxed()`, `.map(..)` or `.inspect(..)` knows as
//! much as one that stands directly behind the events. Behind an adapter that holds items back, such as
//! `.buffered(..)`, a note can come earlier than its item.

use crate::reflector::ObjectKey;
use std::{
    cell::RefCell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

thread_local! {
    /// The notes of whoever listens in this thread now.
    static HEARD: RefCell<Option<Vec<Note>>> = const { RefCell::new(None) };
}

/// Tells the streams of a program apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(u64);

/// What a stream does while it is polled.
#[derive(Debug)]
pub(crate) enum Note {
    /// Lists of this stream are written into a store, so later ones come as what they changed.
    Reflected,
    /// A list begins.
    Begun(SourceId),
    /// The item that follows is an object of this stream, and whether that is gone.
    Yielded(SourceId, bool),
    /// This object is there, and no item says so.
    Passed(SourceId, ObjectKey),
    /// This object is gone. A later item may say so too.
    Gone(ObjectKey),
    /// An object is gone, and no item says so. If the stream comes from a watch or a store, they have
    /// noted just before which one: who makes objects of events does not know what an object is.
    Dropped,
    /// A list is complete.
    Done(SourceId),
}

/// Polls with `poll`, and returns what was noted meanwhile, in order.
pub(crate) fn hear<T>(poll: impl FnOnce() -> T) -> (T, Vec<Note>) {
    /// Also when `poll` panics, whoever listened before goes on.
    struct Restore(Option<Vec<Note>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HEARD.set(self.0.take());
        }
    }
    let _restore = Restore(HEARD.replace(Some(Vec::new())));
    let polled = poll();
    let notes = HEARD.take().unwrap_or_default();
    (polled, notes)
}

/// Notes something, if anybody listens.
pub(crate) fn note(note: impl FnOnce() -> Note) {
    HEARD.with_borrow_mut(|heard| {
        if let Some(heard) = heard {
            heard.push(note());
        }
    });
}

// === impl SourceId ===

impl SourceId {
    /// One that no other stream has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{Note, SourceId, hear, note};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn only_who_listens_hears_and_the_innermost_alone() {
        let source = SourceId::new();
        let told = || note(|| Note::Begun(source));
        told();
        let ((inner, ()), outer) = hear(|| {
            told();
            let ((), inner) = hear(told);
            (inner, told())
        });
        assert_eq!((inner.len(), outer.len()), (1, 2));
        let broken = catch_unwind(AssertUnwindSafe(|| hear(|| panic!("on purpose"))));
        assert!(broken.is_err());
        let ((), none) = hear(|| {});
        assert!(none.is_empty());
    }
}

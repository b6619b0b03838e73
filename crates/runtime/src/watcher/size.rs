//! How large decoded objects were, for those who want to know how much a cache holds.

use std::cell::Cell;

thread_local! {
    /// How many objects were decoded in this thread, and how many bytes their text had, since it was last asked for.
    static DECODED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Notes that an object was decoded, of a text with so many bytes.
pub(super) fn note(bytes: usize) {
    let (objects, all) = DECODED.get();
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    DECODED.set((objects + 1, all.saturating_add(bytes)));
}

/// Calls `poll`, and gives how many objects were decoded meanwhile, and how many bytes their text had.
pub(crate) fn measured<T>(poll: impl FnOnce() -> T) -> (T, u64, u64) {
    DECODED.take();
    let polled = poll();
    let (objects, bytes) = DECODED.take();
    (polled, objects, bytes)
}

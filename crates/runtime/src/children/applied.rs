//! What came of a child.

use std::{ops::Deref, sync::Arc};

/// A child as it is after [`Set::apply`](super::Set::apply). It can be read like the object itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied<K> {
    object: Arc<K>,
    done: Done,
}

/// What was done about a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Kept,
    Written,
    Leaving,
}

// === impl Applied ===

impl<K> Applied<K> {
    pub(super) fn new(object: Arc<K>, done: Done) -> Self {
        Self { object, done }
    }

    /// Whether a request was sent that writes. Without one the child was as it should be, or is
    /// leaving.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.done == Done::Written
    }

    /// Whether an older object has the name of the child and is on its way out, so that the child is
    /// still to be made.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.done == Done::Leaving
    }

    /// The object itself.
    #[must_use]
    pub fn into_object(self) -> Arc<K> {
        self.object
    }
}

impl<K> Deref for Applied<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

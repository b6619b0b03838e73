//! The versions of objects that a store holds.

use super::{Lookup, key::ObjectKey};
use homeostat_core::cache::{Change, Versioned};
use std::{borrow::Cow, sync::Arc};

/// A change of an object in a store, with its state before and after.
pub(crate) type ObjectChange<K> = Change<ObjectKey, Snapshot<K>>;

/// One version of an object, as the cache holds it.
pub(crate) struct Snapshot<K>(pub(crate) Arc<K>);

// === impl Snapshot ===

impl<K: Lookup> Versioned for Snapshot<K> {
    fn uid(&self) -> Option<Cow<'_, str>> {
        self.0.uid()
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.0.resource_version()
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

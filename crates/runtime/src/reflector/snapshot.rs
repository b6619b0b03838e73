//! The versions of objects that a store holds.

use super::{
    Lookup,
    key::ObjectKey,
    unread::{Decode, Header, Unread},
};
use crate::predicate::changes_desired_state;
use homeostat_core::cache::{Change, Versioned};
use kube::Resource;
use std::{borrow::Cow, sync::Arc};

/// A change of an object in a store, with its state before and after.
pub(crate) type ObjectChange<K> = Change<ObjectKey, Snapshot<K>>;

/// One version of an object, as the cache holds it.
pub(crate) enum Snapshot<K> {
    Whole(Arc<K>),
    /// It is decoded when somebody first reads it.
    Unread(Arc<Unread<K>>),
}

// === impl Snapshot ===

impl<K> Snapshot<K> {
    pub(crate) fn new(obj: K) -> Self {
        Self::Whole(Arc::new(obj))
    }

    /// A version that nobody has read, of an object that was known as `before`.
    pub(super) fn unread(
        header: Header,
        text: Box<[u8]>,
        before: Option<&Self>,
        decode: Arc<Decode<K>>,
    ) -> Self {
        let before = before.and_then(Self::known);
        Self::Unread(Arc::new(Unread::new(header, text, before, decode)))
    }

    /// The object. `None` if it cannot be decoded, which was reported, and no earlier state of it is known.
    pub(crate) fn object(&self) -> Option<&Arc<K>> {
        match self {
            Self::Whole(obj) => Some(obj),
            Self::Unread(unread) => unread.read().object.as_ref(),
        }
    }

    /// The same, without keeping the snapshot.
    pub(crate) fn into_object(self) -> Option<Arc<K>> {
        match self {
            Self::Whole(obj) => Some(obj),
            Self::Unread(unread) => unread.read().object.clone(),
        }
    }

    /// The object in this very version; `None` if it cannot be decoded.
    fn current(&self) -> Option<&Arc<K>> {
        match self {
            Self::Whole(obj) => Some(obj),
            Self::Unread(unread) => {
                let read = unread.read();
                read.object.as_ref().filter(|_| read.fits)
            }
        }
    }

    /// Whether it is known that this version cannot be decoded.
    pub(super) fn is_unfit(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Unread(unread) => unread.is_unfit(),
        }
    }

    /// The object in the latest version that was decoded.
    fn known(&self) -> Option<Arc<K>> {
        match self {
            Self::Whole(obj) => Some(Arc::clone(obj)),
            Self::Unread(unread) => unread.known(),
        }
    }
}

impl<K: Resource> Snapshot<K> {
    /// Whether what is wanted of the object changes from this version to `new`. `None` if that cannot be told,
    /// because the object cannot be decoded.
    pub(crate) fn changes_desired_state(&self, new: &Self) -> Option<bool> {
        if let (Self::Unread(old), Self::Unread(new)) = (self, new) {
            let (old, new) = (old.header().desired(), new.header().desired());
            return Some(old.is_none() || old != new);
        }
        let new = new.current()?;
        let old = self.object();
        Some(old.is_none_or(|old| changes_desired_state(&**old, &**new)))
    }
}

impl<K: Lookup> Snapshot<K> {
    /// The version as a number.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version()?.parse().ok()
    }
}

impl<K: Lookup> Versioned for Snapshot<K> {
    fn uid(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Whole(obj) => obj.uid(),
            Self::Unread(unread) => unread.header().uid().map(Cow::Borrowed),
        }
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Whole(obj) => obj.resource_version(),
            Self::Unread(unread) => Some(Cow::Borrowed(unread.header().version())),
        }
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Whole(obj) => Self::Whole(Arc::clone(obj)),
            Self::Unread(unread) => Self::Unread(Arc::clone(unread)),
        }
    }
}

//! Writes that are not sent.

use crate::reflector::Status;

/// Why a write of a reconcile was not sent: the same run had read a store before its first list was complete, so that
/// what seemed to be missing may exist.
///
/// It is the source of a [`kube::Error::Service`], and [transient](crate::ErrorClass::Transient). Nothing need be
/// done about it: the run does not count, and its object is reconciled again when the store is complete. See
/// [`Store`](crate::reflector::Store#in-reconcilers).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not sent, because this reconcile has read the store of {store} before its first list was complete; it runs again when that is complete"
)]
pub struct Refused {
    store: String,
}

/// Why a write of a reconcile was not sent: this replica is not the leader any more, or not in the term in which the
/// reconcile has begun.
///
/// It is the source of a [`kube::Error::Service`], and [transient](crate::ErrorClass::Transient). Nothing need be
/// done about it: the run was cancelled, and its object is reconciled by whoever leads. See
/// [`Manager`](crate::Manager).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent, because this replica leads no more")]
pub struct Deposed(());

/// Why a run must not write.
pub(crate) enum Barred {
    Refused(Refused),
    Deposed(Deposed),
}

// === impl Deposed ===

impl Deposed {
    pub(super) const fn new() -> Self {
        Self(())
    }
}

// === impl Barred ===

impl From<Barred> for kube::Error {
    fn from(barred: Barred) -> Self {
        match barred {
            Barred::Refused(refused) => refused.into(),
            Barred::Deposed(deposed) => Self::Service(Box::new(deposed)),
        }
    }
}

// === impl Refused ===

impl Refused {
    pub(super) fn because_of(store: &Status) -> Self {
        Self {
            store: store.to_string(),
        }
    }

    /// What the store holds, as in `secrets in all namespaces`.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.store
    }
}

impl From<Refused> for kube::Error {
    fn from(refused: Refused) -> Self {
        Self::Service(Box::new(refused))
    }
}

//! What is known of one write.

use super::answer::Labels;
use crate::reflector::ObjectKey;
use homeostat_core::loops::Sight;
use std::fmt;

/// A write that a reconcile has made, and that the server has accepted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Write {
    /// What was asked for.
    pub verb: Verb,
    /// The group of the kind; empty for the core group.
    pub group: String,
    /// The version of the kind that was written in.
    pub version: String,
    /// The name of the kind in paths, as `deployments`.
    pub resource: String,
    /// The kind of the object, as `Deployment`, if the answer tells it.
    pub kind: Option<String>,
    /// The part of the object that was written, as `status`; `None` for the object itself.
    pub subresource: Option<String>,
    /// Where the object is; `None` for an object of the cluster.
    pub namespace: Option<String>,
    /// The name of the object, as the server has completed it.
    pub name: String,
    /// The object's `metadata.uid`, as far as the answer tells it.
    pub uid: Option<String>,
    /// The name that the server knows the writer by: the `fieldManager` of the request, or else the
    /// beginning of its user agent.
    pub field_manager: Option<String>,
    /// The object's `metadata.resourceVersion` after the write. A delete at once has none.
    pub resource_version: Option<String>,
    /// Whether the object is another one than before, as far as its version before is known: to the
    /// caches of the controller, or from an earlier write of the same run.
    pub changed: Option<bool>,
    /// Whether the object is gone with this write.
    pub gone: bool,
    pub(crate) labels: Labels,
    /// How it looked, if its run is observed.
    pub(crate) sight: Option<Box<Sight>>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// A new object, or something that is made of one, as an eviction.
    Create,
    /// The whole object in another state.
    Update,
    /// A change of the object.
    Patch,
    /// The fields that the object is to have (server-side apply).
    Apply,
    /// The object away.
    Delete,
    /// All objects of a collection away.
    DeleteCollection,
}

/// What is known of objects besides the writes of a run.
pub(crate) trait Known: Send + Sync {
    /// The latest version of an object that somebody has seen, and the version up to which all of its
    /// kind has been seen.
    fn before(&self, group: &str, resource: &str, key: &ObjectKey) -> Before;
}

/// What was known of an object before a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// The object's version.
    pub(crate) version: Option<u64>,
    /// A version that a write after this moment is later than.
    pub(crate) reached: Option<u64>,
}

// === impl Write ===

impl Write {
    /// The version as a number, as they are compared.
    pub(crate) fn number(&self) -> Option<u64> {
        self.resource_version.as_deref()?.parse().ok()
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }
}

/// For people: `patch configmaps default/settings to 1234`.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " {namespace}/{}", self.name)?,
            None => write!(f, " {}", self.name)?,
        }
        if let Some(version) = &self.resource_version {
            write!(f, " to {version}")?;
        }
        if self.changed == Some(false) {
            f.write_str(" (unchanged)")?;
        }
        Ok(())
    }
}

// === impl Verb ===

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "delete collection",
        })
    }
}

// === impl Before ===

impl Before {
    /// Whether a write that led to `after` has changed something.
    ///
    /// A version that was there before the write is no change, even if the object's own version was
    /// not known. The other way round somebody else may have made the difference, which nobody can
    /// tell without the answer to a read.
    pub(super) fn changed(self, after: Option<u64>) -> Option<bool> {
        let (Self { version, reached }, after) = (self, after?);
        if version.max(reached).is_some_and(|known| after <= known) {
            return Some(false);
        }
        version.map(|_| true)
    }
}

//! What can go wrong with children.

use crate::{Classify, ErrorClass, readable};
use homeostat_core::children::manager_in;
use kube::core::response::StatusCause;
use std::{borrow::Cow, fmt};

/// Why a child is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request, or did not answer. Classified as the [`kube::Error`] is.
    #[error("{child}: {}", readable(.source))]
    Api {
        /// Kind, namespace and name.
        child: String,
        /// What the server said.
        source: kube::Error,
    },
    /// Other managers own fields of the child and want them otherwise. Transient: they may give them
    /// up. [`Set::force`](super::Set::force) takes them over.
    #[error("other managers own fields of {child}: {}", Listed(.conflicts))]
    Conflict {
        /// Kind, namespace and name.
        child: String,
        /// Each field and its manager.
        conflicts: Vec<FieldConflict>,
    },
    /// Another object controls the one that has the name of the child. Transient: it may go.
    #[error("{child} belongs to {by}")]
    Taken {
        /// Kind, namespace and name.
        child: String,
        /// Kind and name of the other owner.
        by: String,
    },
    /// An object that belongs to nobody has the name of the child and is being deleted. Transient.
    #[error("another {child} is being deleted")]
    Leaving {
        /// Kind, namespace and name.
        child: String,
    },
    /// The child is to be where its owner cannot own it. Permanent, with the reason `InvalidChild`.
    #[error("{child} cannot be owned by {owner}: {why}")]
    Misplaced {
        /// Kind, namespace and name.
        child: String,
        /// Kind, namespace and name.
        owner: String,
        /// What is wrong, and what to do about it.
        why: &'static str,
    },
    /// The child has no name. Permanent, with the reason `InvalidChild`.
    #[error("a child of kind {kind} has no name: make one with children::name")]
    UnnamedChild {
        /// The kind of the child.
        kind: String,
    },
    /// The owner is being deleted, so nothing is made for it any more. Permanent, with the reason
    /// `OwnerLeaving`. [`Set::for_cleanup`](super::Set::for_cleanup) allows it.
    #[error("{child} is not made, because its owner is being deleted")]
    OwnerLeaving {
        /// Kind, namespace and name.
        child: String,
    },
    /// The owner does not come from a server. Permanent, with the reason `UnknownOwner`.
    #[error("the owner has no {missing}, so it does not come from a server and can own nothing")]
    UnknownOwner {
        /// What it does not have.
        missing: &'static str,
    },
}

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field, as `.spec.replicas`.
    pub field: String,
    /// The name of the manager that owns it.
    pub manager: String,
}

/// Conflicts in one line.
struct Listed<'a>(&'a [FieldConflict]);

// === impl Error ===

impl Classify for Error {
    fn classify(&self) -> ErrorClass {
        match self {
            Self::Api { source, .. } => source.classify(),
            Self::Conflict { .. } | Self::Taken { .. } | Self::Leaving { .. } => {
                ErrorClass::Transient
            }
            Self::Misplaced { .. } | Self::UnnamedChild { .. } => {
                ErrorClass::permanent("InvalidChild")
            }
            Self::OwnerLeaving { .. } => ErrorClass::permanent("OwnerLeaving"),
            Self::UnknownOwner { .. } => ErrorClass::permanent("UnknownOwner"),
        }
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Api { source, .. } => return source.reason(),
            Self::Conflict { .. } => "ChildConflict".into(),
            Self::Taken { .. } => "ChildTaken".into(),
            Self::Leaving { .. } => "ChildLeaving".into(),
            Self::Misplaced { .. } | Self::UnnamedChild { .. } => "InvalidChild".into(),
            Self::OwnerLeaving { .. } => "OwnerLeaving".into(),
            Self::UnknownOwner { .. } => "UnknownOwner".into(),
        })
    }
}

// === impl FieldConflict ===

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.field, self.manager)
    }
}

// === impl Listed ===

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, conflict) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{conflict}")?;
        }
        Ok(())
    }
}

/// The fields that others own, if that is why the server refused an apply.
pub(super) fn conflicts(error: &kube::Error) -> Option<Vec<FieldConflict>> {
    let causes = causes(error).iter();
    let conflicts: Vec<_> = causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| FieldConflict {
            field: cause.field.clone(),
            manager: manager_in(&cause.message).unwrap_or_else(|| "unknown".to_owned()),
        })
        .collect();
    (!conflicts.is_empty()).then_some(conflicts)
}

/// Whether the server refused a request because the object is another one by now.
pub(super) fn is_outdated(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let is_about =
        |cause: &StatusCause| ["metadata.uid", "metadata.ownerReferences"].contains(&&*cause.field);
    let other_object = status.is_invalid() && causes(error).iter().any(is_about);
    other_object || (status.is_conflict() && conflicts(error).is_none())
}

fn causes(error: &kube::Error) -> &[StatusCause] {
    if let kube::Error::Api(status) = error
        && let Some(details) = &status.details
    {
        &details.causes
    } else {
        &[]
    }
}

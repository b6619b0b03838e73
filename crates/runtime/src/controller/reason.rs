//! Why an object is reconciled. It is for people and metrics: reconcilers never see it.

use crate::reflector::ObjectRef;
use homeostat_core::queue::{Causes, Timer};
use kube::{Resource, api::DynamicObject};
use std::{
    fmt::{self, Debug, Display},
    hash::{Hash, Hasher},
};

/// A request to reconcile an object.
pub struct ReconcileRequest<K: Resource> {
    /// The object.
    pub obj_ref: ObjectRef<K>,
    /// Why. Two requests for one object are equal whatever their reasons.
    pub reason: ReconcileReason,
}

/// Why an object is reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileReason {
    /// Nobody said why.
    Unknown,
    /// The object was created or changed.
    ObjectUpdated,
    /// Another object was created, changed or deleted that has to do with it.
    RelatedObjectUpdated {
        /// The other object.
        obj_ref: Box<ObjectRef<DynamicObject>>,
    },
    /// The reconciler asked for it, with [`Action`](super::Action).
    ReconcilerRequestedRetry,
    /// The error policy asked for it, with [`Action`](super::Action).
    ErrorPolicyRequestedRetry,
    /// All objects are reconciled.
    BulkReconcile,
    /// Something else.
    Custom {
        /// What it is.
        reason: String,
    },
}

// === impl ReconcileRequest ===

impl<K: Resource> From<ObjectRef<K>> for ReconcileRequest<K> {
    fn from(obj_ref: ObjectRef<K>) -> Self {
        Self {
            obj_ref,
            reason: ReconcileReason::Unknown,
        }
    }
}

impl<K: Resource> Clone for ReconcileRequest<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            obj_ref: self.obj_ref.clone(),
            reason: self.reason.clone(),
        }
    }
}

impl<K: Resource> PartialEq for ReconcileRequest<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.obj_ref == other.obj_ref
    }
}

impl<K: Resource> Eq for ReconcileRequest<K> where K::DynamicType: Eq {}

impl<K: Resource> Hash for ReconcileRequest<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.obj_ref.hash(state);
    }
}

impl<K: Resource> Debug for ReconcileRequest<K>
where
    K::DynamicType: Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileRequest")
            .field("obj_ref", &self.obj_ref)
            .field("reason", &self.reason)
            .finish()
    }
}

// === impl ReconcileReason ===

impl Display for ReconcileReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::ObjectUpdated => f.write_str("object updated"),
            Self::RelatedObjectUpdated { obj_ref } => {
                write!(f, "related object updated: {obj_ref}")
            }
            Self::ReconcilerRequestedRetry => f.write_str("reconciler requested retry"),
            Self::ErrorPolicyRequestedRetry => f.write_str("error policy requested retry"),
            Self::BulkReconcile => f.write_str("bulk reconcile requested"),
            Self::Custom { reason } => f.write_str(reason),
        }
    }
}

/// What leads to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) reason: ReconcileReason,
    pub(super) origin: Origin,
    pub(super) news: News,
}

/// What a watch has told of the controller's own object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum News {
    /// It has changed, or it is not known what has happened.
    #[default]
    Changed,
    /// It is new to the watch.
    Added,
    /// It was there when the watch began, or began anew.
    Listed,
}

/// Who is behind a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Somebody wants a run, or the object was there before the controller.
    Asked,
    /// Somebody else has changed what is wanted of the object.
    Desired,
    /// The event shows what a run of the same key has written.
    Own,
    /// Any other event.
    Foreign,
}

impl Cause {
    pub(super) fn is_own(&self) -> bool {
        self.origin == Origin::Own
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            origin,
            news,
        } = self;
        match (reason, news) {
            (ReconcileReason::ObjectUpdated, News::Added) => f.write_str("object added")?,
            (ReconcileReason::ObjectUpdated, News::Listed) => f.write_str("object listed")?,
            (reason, _) => write!(f, "{reason}")?,
        }
        match origin {
            Origin::Own => f.write_str(" (own write)"),
            Origin::Asked | Origin::Desired | Origin::Foreign => Ok(()),
        }
    }
}

/// All reasons of one run, in one line.
pub(super) fn describe(causes: &Causes<Cause>, timer: Option<Timer>) -> String {
    let timer = timer.map(|timer| match timer {
        Timer::Requeue => ReconcileReason::ReconcilerRequestedRetry,
        Timer::Retry => ReconcileReason::ErrorPolicyRequestedRetry,
    });
    let mut reasons: Vec<String> = timer.iter().map(ToString::to_string).collect();
    for cause in causes.iter() {
        let reason = cause.to_string();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if causes.omitted() > 0 {
        reasons.push(format!("and {} more", causes.omitted()));
    }
    reasons.join(", ")
}

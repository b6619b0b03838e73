//! Predicates: which changes of an object matter.

use kube::{Resource, ResourceExt};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// A property of an object, as a hash: while it stays the same, a change of the object does not
/// matter.
///
/// Functions `Fn(&K) -> Option<u64>` are predicates; those in [`predicates`] cover the usual
/// properties.
///
/// ```
/// use homeostat::{Predicate, predicates};
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// // Both, whichever changes:
/// let both = predicates::generation.combine(predicates::finalizers);
/// // The replicas alone:
/// let replicas = |obj: &Deployment| {
///     let replicas = obj.spec.as_ref()?.replicas?;
///     u64::try_from(replicas).ok()
/// };
/// # fn check<P: Predicate<Deployment>>(_: P) {}
/// # check(both);
/// # check(replicas);
/// ```
pub trait Predicate<K> {
    /// A hash of the property, or `None` where the object does not have it: then every change
    /// matters.
    fn hash_property(&self, obj: &K) -> Option<u64>;

    /// This property, or that of `f` for an object that does not have this one.
    fn fallback<F: Predicate<K>>(self, f: F) -> Fallback<Self, F>
    where
        Self: Sized,
    {
        Fallback(self, f)
    }

    /// This property and that of `f`: a change of either matters.
    fn combine<F: Predicate<K>>(self, f: F) -> Combine<Self, F>
    where
        Self: Sized,
    {
        Combine(self, f)
    }
}

impl<K, F: Fn(&K) -> Option<u64>> Predicate<K> for F {
    fn hash_property(&self, obj: &K) -> Option<u64> {
        self(obj)
    }
}

/// The predicate of [`Predicate::fallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback<A, B>(A, B);

/// The predicate of [`Predicate::combine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combine<A, B>(A, B);

/// How a predicate filter on a stream remembers what it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PredicateConfig {
    /// How long an object is remembered after it was last seen. See [`ttl`](Self::ttl).
    pub(crate) ttl: Duration,
}

// === impl Fallback and Combine ===

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Fallback<A, B> {
    fn hash_property(&self, obj: &K) -> Option<u64> {
        let Self(first, second) = self;
        first
            .hash_property(obj)
            .or_else(|| second.hash_property(obj))
    }
}

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Combine<A, B> {
    fn hash_property(&self, obj: &K) -> Option<u64> {
        let Self(first, second) = self;
        match (first.hash_property(obj), second.hash_property(obj)) {
            (None, None) => None,
            both => Some(hash(&both)),
        }
    }
}

// === impl PredicateConfig ===

impl PredicateConfig {
    /// How long an object is remembered after it was last seen; one hour by default.
    ///
    /// It bounds the memory for objects whose deletion the stream does not show. An object that
    /// was quiet for longer passes once more, whatever changed. Streams that show deletions
    /// ([`applied_objects`] and [`touched_objects`] directly before the filter) do not need it.
    ///
    /// [`applied_objects`]: crate::WatchStreamExt::applied_objects
    /// [`touched_objects`]: crate::WatchStreamExt::touched_objects
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

impl Default for PredicateConfig {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
        }
    }
}

/// A hash that is the same in every run of the program.
pub(crate) fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What every filter lets pass, whatever its predicate: another object under the same name, the
/// mark of deletion, and a change of the finalizers.
pub(crate) fn lifecycle<K: Resource>(obj: &K) -> u64 {
    let meta = obj.meta();
    hash(&(
        &meta.uid,
        meta.deletion_timestamp.is_some(),
        obj.finalizers(),
    ))
}

/// Whether a change from `old` to `new` matters by `predicate`.
pub(crate) fn matters<K: Resource>(predicate: &dyn Predicate<K>, old: &K, new: &K) -> bool {
    let property = predicate.hash_property(new);
    property.is_none()
        || property != predicate.hash_property(old)
        || lifecycle(old) != lifecycle(new)
}

/// Whether what is wanted of an object changes from `old` to `new`: the same as two values of
/// [`predicates::desired_state`], for whoever has both objects at hand.
pub(crate) fn changes_desired_state<K: Resource>(old: &K, new: &K) -> bool {
    let (old, new) = (old.meta(), new.meta());
    let contents = if old.generation.is_some() && new.generation.is_some() {
        old.generation == new.generation
    } else {
        old.resource_version == new.resource_version
    };
    !contents
        || old.uid != new.uid
        || old.deletion_timestamp.is_some() != new.deletion_timestamp.is_some()
        || old.finalizers != new.finalizers
        || old.labels != new.labels
        || old.annotations != new.annotations
}

/// The usual properties.
pub mod predicates {
    use super::hash;
    use kube::{Resource, ResourceExt};

    /// `metadata.generation`, which the server raises with every change of the spec.
    ///
    /// `None` for kinds without one, as config maps and secrets.
    pub fn generation<K: Resource>(obj: &K) -> Option<u64> {
        obj.meta().generation.map(|generation| hash(&generation))
    }

    /// `metadata.resourceVersion`, which changes with every write.
    pub fn resource_version<K: Resource>(obj: &K) -> Option<u64> {
        obj.meta().resource_version.as_ref().map(hash)
    }

    /// `metadata.labels`.
    pub fn labels<K: Resource>(obj: &K) -> Option<u64> {
        Some(hash(obj.labels()))
    }

    /// `metadata.annotations`.
    pub fn annotations<K: Resource>(obj: &K) -> Option<u64> {
        Some(hash(obj.annotations()))
    }

    /// `metadata.finalizers`.
    pub fn finalizers<K: Resource>(obj: &K) -> Option<u64> {
        Some(hash(obj.finalizers()))
    }

    /// All that says what is wanted of an object: uid, generation, labels, annotations, finalizers
    /// and whether it is being deleted. Changes of the status are left out.
    ///
    /// Kinds without a generation do not tell their status from the rest, so with them every write
    /// counts.
    pub fn desired_state<K: Resource>(obj: &K) -> Option<u64> {
        let meta = obj.meta();
        let contents = match meta.generation {
            Some(generation) => Ok(generation),
            None => Err(meta.resource_version.as_ref()?),
        };
        Some(hash(&(
            super::lifecycle(obj),
            contents,
            obj.labels(),
            obj.annotations(),
        )))
    }
}

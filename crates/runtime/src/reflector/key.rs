//! Namespace and name: what tells the objects of one type apart.

use super::{Lookup, ObjectRef, ObjectRefExtra};
use std::{borrow::Borrow, cmp::Ordering, fmt};

/// Namespace and name of an object, ordered by them. The empty namespace is the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    namespace: Box<str>,
    name: Box<str>,
}

/// Something that names an object: an [`ObjectKey`], or its borrowed parts.
///
/// The trait object is what a map of keys is asked with, so that a look-up allocates nothing.
pub(crate) trait Named {
    fn parts(&self) -> (&str, &str);
}

// === impl ObjectKey ===

impl ObjectKey {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.unwrap_or_default().into(),
            name: name.into(),
        }
    }

    pub(crate) fn of<K: Lookup>(obj: &K) -> Self {
        Self::new(obj.namespace().as_deref(), &obj.name().unwrap_or_default())
    }

    pub(crate) fn of_ref<K: Lookup>(reference: &ObjectRef<K>) -> Self {
        Self::new(reference.namespace.as_deref(), &reference.name)
    }

    /// The namespace; empty for an object of the cluster.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same name as an object of the cluster, unless this is one already.
    pub(crate) fn in_cluster(&self) -> Option<Self> {
        (!self.namespace.is_empty()).then(|| Self {
            namespace: Box::default(),
            name: self.name.clone(),
        })
    }

    pub(crate) fn to_ref<K: Lookup>(&self, dyntype: K::DynamicType) -> ObjectRef<K> {
        ObjectRef {
            dyntype,
            name: self.name.clone().into(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone().into()),
            extra: ObjectRefExtra::default(),
        }
    }
}

/// As `namespace/name`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        if namespace.is_empty() {
            f.write_str(name)
        } else {
            write!(f, "{namespace}/{name}")
        }
    }
}

impl Named for ObjectKey {
    fn parts(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl Named for (&str, &str) {
    fn parts(&self) -> (&str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Named + 'a> for ObjectKey {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Named + '_ {}

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

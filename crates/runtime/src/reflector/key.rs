//! Namespace and name: what tells the objects of one type apart.

use super::{Lookup, ObjectRef, ObjectRefExtra};
use std::{borrow::Borrow, cmp::Ordering, fmt, sync::Arc};

/// Namespace and name of an object, ordered by them. The empty namespace is the cluster.
///
/// Every map of a controller is ordered by these, so they are one text: a comparison looks at one place
/// in memory. Clones share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// Namespace, [`SEPARATOR`], name. Their order is that of the texts, since the separator comes before
    /// every character of a name.
    text: Arc<str>,
    namespace: usize,
}

const SEPARATOR: &str = "\0";

/// Something that names an object: an [`ObjectKey`], or its borrowed parts.
///
/// The trait object is what a map of keys is asked with, so that a look-up allocates nothing.
pub(crate) trait Named {
    fn parts(&self) -> (&str, &str);
}

// === impl ObjectKey ===

impl ObjectKey {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.unwrap_or_default();
        let mut text = String::with_capacity(namespace.len() + SEPARATOR.len() + name.len());
        text.push_str(namespace);
        text.push_str(SEPARATOR);
        text.push_str(name);
        Self {
            text: text.into(),
            namespace: namespace.len(),
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
        self.text.get(..self.namespace).unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        let name = self.text.get(self.namespace + SEPARATOR.len()..);
        name.unwrap_or_default()
    }

    /// `None` for an object of the cluster.
    #[cfg(feature = "server")]
    pub(crate) fn namespace_if_any(&self) -> Option<&str> {
        (self.namespace > 0).then(|| self.namespace())
    }

    /// The same name as an object of the cluster, unless this is one already.
    pub(crate) fn in_cluster(&self) -> Option<Self> {
        (self.namespace > 0).then(|| Self::new(None, self.name()))
    }

    pub(crate) fn to_ref<K: Lookup>(&self, dyntype: K::DynamicType) -> ObjectRef<K> {
        ObjectRef {
            dyntype,
            name: self.name().to_owned(),
            namespace: (self.namespace > 0).then(|| self.namespace().to_owned()),
            extra: ObjectRefExtra::default(),
        }
    }
}

/// As `namespace/name`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = self.parts();
        if namespace.is_empty() {
            f.write_str(name)
        } else {
            write!(f, "{namespace}/{name}")
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

impl Named for ObjectKey {
    fn parts(&self) -> (&str, &str) {
        (self.namespace(), self.name())
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

#[cfg(test)]
mod tests {
    use super::{Named, ObjectKey};

    #[test]
    fn keys_are_ordered_by_namespace_and_then_by_name() {
        let parts = [
            (None, "a"),
            (None, "b"),
            (Some("x"), ""),
            (Some("x"), "b"),
            (Some("x-y"), "a"),
            (Some("x.y"), "a"),
            (Some("xa"), "a"),
        ];
        let keys = parts.map(|(namespace, name)| ObjectKey::new(namespace, name));
        assert!(keys.is_sorted());
        for (key, (namespace, name)) in keys.iter().zip(parts) {
            assert_eq!(key.parts(), (namespace.unwrap_or_default(), name));
            for other in &keys {
                let (one, two): (&dyn Named, &dyn Named) = (key, other);
                assert_eq!(key.cmp(other), one.cmp(two));
            }
        }
    }
}

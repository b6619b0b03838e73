use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Where an object is stored. Ordered by resource and then by `namespace/name` as one text, as lists
/// are: namespace `x-b` comes before namespace `x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Group and plural name: `apps/deployments`, `/configmaps`.
    pub(crate) resource: Arc<str>,
    /// Empty for objects that are in no namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(resource: &Arc<str>, namespace: &str, name: &str) -> Self {
        Self {
            resource: Arc::clone(resource),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Not behind any key of the resource, in the namespace if one is given.
    pub(super) fn first(resource: &Arc<str>, namespace: Option<&str>) -> Self {
        Self::new(resource, namespace.unwrap_or_default(), "")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            namespace,
            name,
        } = self;
        let resource = resource.trim_start_matches('/');
        if namespace.is_empty() {
            write!(f, "/registry/{resource}/{name}")
        } else {
            write!(f, "/registry/{resource}/{namespace}/{name}")
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let Self {
            resource,
            namespace,
            name,
        } = self;
        let path = |key: &'_ Self| -> (bool, Vec<u8>) {
            (
                !key.namespace.is_empty(),
                format!("{}/", key.namespace).into_bytes(),
            )
        };
        // Nearly always the same text at the same place.
        let resources = if Arc::ptr_eq(resource, &other.resource) {
            Ordering::Equal
        } else {
            resource.cmp(&other.resource)
        };
        resources
            .then_with(|| {
                if *namespace == other.namespace {
                    Ordering::Equal
                } else {
                    path(self).cmp(&path(other))
                }
            })
            .then_with(|| name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

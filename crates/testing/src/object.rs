//! Which object, and where in it.

use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Which object something is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectId {
    /// The plural name of the resource, with its group if it has one: `configmaps`, `deployments.apps`.
    pub resource: String,
    /// The namespace; empty if none.
    pub namespace: String,
    /// The name; empty for a collection.
    pub name: String,
}

/// Members of `metadata` that every write changes, or that no user decides.
const BOOKKEEPING: &[&str] = &["generation", "managedFields", "resourceVersion"];

// === impl ObjectId ===

impl ObjectId {
    pub(crate) fn new(group: &str, plural: &str, namespace: &str, name: &str) -> Self {
        let resource = if group.is_empty() {
            plural.to_owned()
        } else {
            format!("{plural}.{group}")
        };
        Self {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            namespace,
            name,
        } = self;
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => write!(f, "{resource}"),
            (true, false) => write!(f, "{resource} {name}"),
            (false, _) => write!(f, "{resource} {namespace}/{name}"),
        }
    }
}

/// A place in an object, as `kubectl` users write it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn member(&self, name: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        Self(if !name.chars().all(plain) {
            format!("{}[{name:?}]", self.0)
        } else if self.0.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.0)
        })
    }

    pub(crate) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Calls `each` for every place where two values differ, with what is there. It goes into objects
/// and into lists of equal length.
pub(crate) fn differences(
    left: &Value,
    right: &Value,
    path: &Path,
    each: &mut impl FnMut(&Path, Option<&Value>, Option<&Value>),
) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                match right.get(name) {
                    // Most places are equal, and need no path.
                    Some(other) if other == value => {}
                    Some(other) => differences(value, other, &path.member(name), each),
                    None => each(&path.member(name), Some(value), None),
                }
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                each(&path.member(name), None, Some(value));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            for (index, (left, right)) in pairs.filter(|(_, (left, right))| left != right) {
                differences(left, right, &path.item(index), each);
            }
        }
        (left, right) if left != right => each(path, Some(left), Some(right)),
        (_, _) => {}
    }
}

/// Where a write has changed an object, without what every write changes.
pub(crate) fn changed_paths(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    differences(before, after, &Path::default(), &mut |path, _, _| {
        let behind = path.as_str().strip_prefix("metadata.");
        let starts = |name: &&str| behind.is_some_and(|behind| behind.starts_with(*name));
        if !BOOKKEEPING.iter().any(starts) {
            paths.push(path.as_str().to_owned());
        }
    });
    paths
}

/// A text of `metadata`; empty if there is none.
pub(crate) fn metadata<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changed_paths_leave_out_bookkeeping() {
        let before = json!({ "metadata": { "resourceVersion": "1", "labels": { "a/b": "x" } },
            "spec": { "list": [{ "a": 1 }], "gone": true } });
        let after = json!({ "metadata": { "resourceVersion": "2", "labels": { "a/b": "y" } },
            "spec": { "list": [{ "a": 2 }], "new": null } });
        let expected = [
            r#"metadata.labels["a/b"]"#,
            "spec.gone",
            "spec.list[0].a",
            "spec.new",
        ];
        assert_eq!(changed_paths(&before, &after), expected);
    }
}

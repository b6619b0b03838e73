//! Whether a child is as it should be. Pure functions of what is there and what should be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;

/// What is to be done about a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is as it should be. This is what makes a converged site cost no writes.
    Keep,
    /// Write it.
    Apply,
    /// Nothing yet: it is being deleted. When it is gone a watch tells, and it is made anew.
    AwaitDeletion,
}

/// An object of the child's name belongs to somebody else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {child} of this name belongs to {by}")]
pub struct Taken {
    /// The kind of the child.
    pub child: &'static str,
    /// Kind and name of the other owner.
    pub by: String,
}

/// What is to be done about a child, if it is there as `live` and should be as `desired`.
///
/// An object that nobody controls is adopted. So is one that an earlier site of this name left behind,
/// before the garbage collector comes for it.
///
/// # Errors
///
/// When the object is controlled by somebody else. Taking it would start a fight that never ends.
pub fn step<K>(live: Option<&K>, desired: &K, child: &'static str) -> Result<Step, Taken>
where
    K: Resource + Serialize,
{
    let Some(live) = live else {
        return Ok(Step::Apply);
    };
    let owners = (controller(live), controller(desired));
    if let (Some(owner), Some(site)) = owners
        && !is_same_or_earlier(owner, site)
    {
        let by = format!("{}/{}", owner.kind, owner.name);
        return Err(Taken { child, by });
    }
    if live.meta().deletion_timestamp.is_some() {
        return Ok(Step::AwaitDeletion);
    }
    Ok(if covers(&json(live), &json(desired)) {
        Step::Keep
    } else {
        Step::Apply
    })
}

/// Who controls an object; there is one at most.
fn controller(obj: &impl Resource) -> Option<&OwnerReference> {
    let mut owners = obj.owner_references().iter();
    owners.find(|owner| owner.controller == Some(true))
}

fn is_same_or_earlier(owner: &OwnerReference, site: &OwnerReference) -> bool {
    let group = |reference: &OwnerReference| {
        let group = reference.api_version.split_once('/');
        group.map(|(group, _version)| group.to_owned())
    };
    owner.kind == site.kind && owner.name == site.name && group(owner) == group(site)
}

fn json(obj: &impl Serialize) -> Value {
    serde_json::to_value(obj).expect("objects of Kubernetes have a JSON form")
}

/// Whether everything that is in `desired` is in `live` too, and equal.
///
/// `live` has more: what the server fills in, and what others add. Comparing the two as a whole would
/// find a difference for ever, and write for ever.
///
/// - Objects: each desired member is there.
/// - Lists of objects: each desired item is there, in whatever place. The server knows items of such
///   lists by a key, and others may add some, as a sidecar to the containers of a pod.
/// - Other lists: equal, for their order has a meaning, as with a command and its arguments.
/// - What is empty and what is missing is the same, since servers drop empty things.
///
/// Desired values must be written as the server would write them: `500m`, not `0.5`, for a CPU.
#[must_use]
pub fn covers(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(name, desired)| match live.get(name) {
                Some(live) => covers(live, desired),
                None => is_empty(desired),
            })
        }
        (Value::Array(live), Value::Array(desired)) if desired.iter().all(Value::is_object) => {
            desired
                .iter()
                .all(|desired| live.iter().any(|live| covers(live, desired)))
        }
        (live, desired) => live == desired || (is_empty(live) && is_empty(desired)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::{
        api::core::v1::ConfigMap,
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
        jiff::Timestamp,
    };
    use serde_json::json;

    #[test]
    fn what_covers_what() {
        for (live, desired, expected) in [
            // Scalars.
            (json!(1), json!(1), true),
            (json!(1), json!(2), false),
            (json!("1"), json!(1), false),
            (json!(false), json!(null), false),
            // Members that the server adds do not count; desired ones do.
            (json!({"a": 1, "b": 2}), json!({"a": 1}), true),
            (json!({"a": 2}), json!({"a": 1}), false),
            (json!({}), json!({"a": 1}), false),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1}}), true),
            (json!({"a": {"c": 2}}), json!({"a": {"b": 1}}), false),
            // A member that is desired to be false or zero must be there.
            (json!({}), json!({"a": false}), false),
            (json!({}), json!({"a": 0}), false),
            (json!({}), json!({"a": ""}), false),
            // Empty and missing are the same.
            (json!({}), json!({"a": null, "b": [], "c": {}}), true),
            (json!({"a": []}), json!({"a": null}), true),
            // Lists of objects: in whatever place, with defaults and with others' items.
            (json!([{"n": "a", "d": 1}]), json!([{"n": "a"}]), true),
            (json!([{"n": "b"}, {"n": "a"}]), json!([{"n": "a"}]), true),
            (json!([{"n": "b"}]), json!([{"n": "a"}]), false),
            (
                json!([{"n": "a", "i": 1}]),
                json!([{"n": "a", "i": 2}]),
                false,
            ),
            (json!([]), json!([{"n": "a"}]), false),
            // Other lists: the same, in the same order.
            (json!(["a", "b"]), json!(["a", "b"]), true),
            (json!(["b", "a"]), json!(["a", "b"]), false),
            (json!(["a", "b"]), json!(["a"]), false),
            // Types that do not fit.
            (json!({"a": 1}), json!([1]), false),
            (json!("a"), json!({"a": 1}), false),
        ] {
            assert_eq!(covers(&live, &desired), expected, "{live} covers {desired}");
        }
    }

    fn owned_by(kind: &str, group: &str, uid: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some("blog".into()),
                owner_references: Some(vec![OwnerReference {
                    api_version: format!("{group}/v1"),
                    kind: kind.into(),
                    name: "blog".into(),
                    uid: uid.into(),
                    controller: Some(true),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    #[test]
    fn steps() {
        let desired = owned_by("Website", "demo.homeostat.dev", "2");
        let mut leaving = desired.clone();
        leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let mut orphan = desired.clone();
        orphan.metadata.owner_references = None;
        let mut more = desired.clone();
        more.immutable = Some(false);
        let taken = |by: &str| {
            Err(Taken {
                child: "ConfigMap",
                by: by.into(),
            })
        };
        for (what, live, expected) in [
            ("missing", None, Ok(Step::Apply)),
            ("as desired", Some(desired.clone()), Ok(Step::Keep)),
            ("with more fields", Some(more), Ok(Step::Keep)),
            ("being deleted", Some(leaving), Ok(Step::AwaitDeletion)),
            ("nobody's", Some(orphan), Ok(Step::Apply)),
            (
                "of an earlier site",
                Some(owned_by("Website", "demo.homeostat.dev", "1")),
                Ok(Step::Apply),
            ),
            (
                "of another kind",
                Some(owned_by("Gateway", "demo.homeostat.dev", "1")),
                taken("Gateway/blog"),
            ),
            (
                "of a kind of the same name",
                Some(owned_by("Website", "example.org", "1")),
                taken("Website/blog"),
            ),
        ] {
            assert_eq!(
                step(live.as_ref(), &desired, "ConfigMap"),
                expected,
                "{what}"
            );
        }
    }
}

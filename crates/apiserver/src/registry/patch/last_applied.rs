//! The annotation of client-side apply, for those who move on to server-side apply with kubectl.

use serde_json::{Value, json};

use crate::managed;
use crate::object;
use crate::schema::Schema;
use crate::status::Status;

/// Holds the configuration that was applied last from the client's side.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager for which the annotation counts.
const MANAGER: &str = "kubectl";

/// Whether an apply by this manager goes on from an object that was applied from the client's side.
pub(super) fn goes_on(manager: &str, live: Option<&Value>) -> bool {
    manager == MANAGER && live.is_some_and(|live| annotation(live).is_some())
}

/// Whether all fields in conflict are as they were applied last from the client's side: then they
/// belong to whoever applies now.
pub(super) fn may_take(schema: &Schema, live: &Value, conflicts: &Status) -> bool {
    let Some(last) = annotation(live).and_then(|text| serde_json::from_str(text).ok()) else {
        return false;
    };
    let own = managed::common_fields(schema, &last, live);
    let causes = conflicts.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().all(|cause| own.contains(&cause.field))
}

/// Writes a configuration into the annotation.
pub(super) fn refresh(new: &mut Value, config: &Value) {
    let mut config = config.clone();
    let annotations = config.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let metadata = object::member_mut(new, "metadata");
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations[ANNOTATION] = json!(format!("{config}\n"));
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str()
}

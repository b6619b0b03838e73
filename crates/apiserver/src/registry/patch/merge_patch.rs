use serde_json::{Map, Value};

use crate::status::Status;

/// Checks that a merge patch is an object.
pub(super) fn check(patch: &Value) -> Result<(), Status> {
    if patch.is_object() {
        return Ok(());
    }
    Err(Status::bad_request(
        "error decoding patch: json: cannot unmarshal array into Go value of type \
         map[string]interface {}",
    ))
}

/// Merges a patch into a value, as RFC 7386 says.
pub(super) fn apply(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for (name, change) in patch {
        if change.is_null() {
            members.remove(name);
        } else {
            apply(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

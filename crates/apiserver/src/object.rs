//! Reading and writing the members that every object has.
//!
//! A request's body is checked to be an object with an object as `metadata` when it is taken in, so
//! that these need no errors.

use serde_json::{Map, Value, json};

use crate::status::Status;

/// Checks what every function here takes for granted.
///
/// # Errors
///
/// 400 where the body is not an object, or `metadata` is something else than an object.
pub(crate) fn check_shape(object: &mut Value) -> Result<(), Status> {
    let Some(members) = object.as_object_mut() else {
        return Err(Status::bad_request(
            "the body of the request must be a JSON object",
        ));
    };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if !metadata.is_object() {
        return Err(Status::bad_request("metadata must be a JSON object"));
    }
    Ok(())
}

/// The metadata, made if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    member_mut(object, "metadata")
}

/// A member that is an object, made if it is missing or something else.
pub(crate) fn member_mut<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !object[name].is_object() {
        object[name] = json!({});
    }
    object[name]
        .as_object_mut()
        .expect("it was made an object just now")
}

/// The elements of a member that is a list.
pub(crate) fn elements<'a>(
    object: &'a Value,
    name: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    object[name].as_array().into_iter().flatten()
}

/// The elements of a member that is a list.
pub(crate) fn elements_mut<'a>(
    object: &'a mut Value,
    name: &str,
) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(crate) fn resource_version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
}

pub(crate) fn set_resource_version(object: &mut Value, revision: u64) {
    metadata_mut(object).insert("resourceVersion".to_owned(), json!(revision.to_string()));
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default()
}

pub(crate) fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// The owner that made the object and looks after it.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    owners(object)
        .iter()
        .find(|owner| owner["controller"] == true)
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Sets the finalizers; an empty list takes the member away.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let metadata = metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// The value of a label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// The value at a path of members, if it is there.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.')
        .split('.')
        .try_fold(object, |value, member| value.get(member))
}

/// Takes away the value at a path of members.
pub(crate) fn remove_at(object: &mut Value, path: &str) {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = Some(object);
    for member in parents.split('.').filter(|member| !member.is_empty()) {
        place = place.and_then(|place| place.get_mut(member));
    }
    if let Some(members) = place.and_then(Value::as_object_mut) {
        members.remove(last);
    }
}

/// Sets the value at a path of members, making objects on the way.
pub(crate) fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for member in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[member];
    }
    *place = value;
}

//! Objects as a version of their resource shows them, and as they are stored.

use serde_json::{Value, json};

use super::autoscalers;
use crate::resource::{Resource, api_version};
use crate::schema::{decode_custom, prune_custom};
use crate::storage::Object;

/// The names that members of an Event have in `events.k8s.io/v1` and in `v1`, where it is stored.
const EVENT_MEMBERS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
];

/// An object as the version of the resource shows it.
pub(crate) fn present(resource: &Resource, object: &Object) -> Object {
    let api_version = resource.api_version();
    let same_version = object.has_version(&api_version);
    let defaults = resource
        .custom
        .as_ref()
        .is_some_and(|custom| custom.has_defaults);
    if same_version && !defaults {
        return object.clone();
    }
    let mut shown = Value::clone(object);
    shown["apiVersion"] = json!(api_version);
    if is_new_event(resource) {
        rename(&mut shown, |new, old| (old, new));
        // `v1` always has these two; here they are left out when they are empty.
        if let Some(members) = shown.as_object_mut() {
            members.retain(|name, value| !(name.starts_with("reporting") && *value == ""));
        }
    }
    if autoscalers::is_old(resource) {
        autoscalers::to_old(&mut shown);
    }
    if same_version {
        // There may be defaults that are newer than the object.
        decode_custom(&mut shown, &resource.schema);
    } else if resource.is_custom() {
        prune_custom(&mut shown, &resource.schema);
    }
    Object::new(shown)
}

/// Brings an object into the version in which its resource is stored.
pub(super) fn to_storage(resource: &Resource, object: &mut Value) {
    let version = resource
        .custom
        .as_ref()
        .map_or(&resource.version, |custom| &custom.storage_version);
    object["apiVersion"] = json!(api_version(&resource.group, version));
    object["kind"] = json!(resource.kind);
    if autoscalers::is_old(resource) {
        autoscalers::to_new(object);
        object["apiVersion"] = json!("autoscaling/v2");
    }
    let custom = resource.custom.as_ref();
    if let Some(schema) = custom.and_then(|custom| custom.storage_schema.as_deref()) {
        prune_custom(object, schema);
    }
    if is_new_event(resource) {
        rename(object, |new, old| (new, old));
        object["apiVersion"] = json!("v1");
        for member in ["reportingComponent", "reportingInstance"] {
            if object[member].is_null() {
                object[member] = json!("");
            }
        }
    }
}

fn is_new_event(resource: &Resource) -> bool {
    resource.is("events.k8s.io", "events")
}

fn rename(
    object: &mut Value,
    direction: fn(&'static str, &'static str) -> (&'static str, &'static str),
) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    for (new, old) in EVENT_MEMBERS {
        let (from, to) = direction(new, old);
        if let Some(value) = members.remove(from) {
            members.insert(to.to_owned(), value);
        }
    }
}

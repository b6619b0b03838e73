//! Types.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{list_type_name, reference, type_name};
use crate::resource::{Custom, Resource};
use crate::schema::builtin_types_raw;

/// The metadata of objects and of lists.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Types that requests and answers of every resource use.
const COMMON: [&str; 3] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

/// Members of the data that `OpenAPI` calls the same.
const SAME: [&str; 8] = [
    "default",
    "enum",
    "format",
    "maximum",
    "minimum",
    "pattern",
    "required",
    "uniqueItems",
];

/// Members of the data that are extensions in `OpenAPI`.
const EXTENSIONS: [(&str, &str); 6] = [
    ("listMapKeys", "x-kubernetes-list-map-keys"),
    ("listType", "x-kubernetes-list-type"),
    ("mapType", "x-kubernetes-map-type"),
    ("patchMergeKey", "x-kubernetes-patch-merge-key"),
    ("patchStrategy", "x-kubernetes-patch-strategy"),
    ("unions", "x-kubernetes-unions"),
];

/// The types of the resources and every type that they use.
pub(super) fn of(resources: &[&Resource]) -> Value {
    let mut schemas = Map::new();
    let mut open: BTreeSet<String> = COMMON.map(str::to_owned).into();
    for resource in resources {
        let (name, list_name) = (type_name(resource), list_type_name(resource));
        if let Some(custom) = &resource.custom {
            schemas.insert(name.clone(), custom_type(resource, custom));
            schemas.insert(list_name, list_type(resource, &name));
            open.extend([OBJECT_META.to_owned(), LIST_META.to_owned()]);
        } else {
            open.extend([name, list_name]);
        }
        // `Scale` and the like are described where their own group is.
        for subresource in &resource.subresources {
            if let Some(package) = type_name(resource).strip_suffix(&resource.kind)
                && subresource.group.is_none()
            {
                open.insert(format!("{package}{}", subresource.kind));
            }
        }
    }
    while let Some(name) = open.pop_first() {
        let Some(raw) = builtin_types_raw().get(&name) else {
            continue;
        };
        if !schemas.contains_key(&name) {
            schemas.insert(name, converted(raw, &mut open));
        }
    }
    Value::Object(schemas)
}

/// A type of the data as `OpenAPI` says it. Adds the types to which it refers.
fn converted(raw: &Value, referred: &mut BTreeSet<String>) -> Value {
    let mut schema = Map::new();
    for name in SAME {
        if let Some(value) = raw.get(name) {
            schema.insert(name.to_owned(), value.clone());
        }
    }
    for (name, extension) in EXTENSIONS {
        if let Some(value) = raw.get(name) {
            schema.insert(extension.to_owned(), value.clone());
        }
    }
    if let Some(types) = raw["type"].as_array() {
        let types: Vec<Value> = types.iter().map(|one| json!({ "type": one })).collect();
        schema.insert("oneOf".to_owned(), Value::Array(types));
    } else if raw["type"].is_string() {
        schema.insert("type".to_owned(), raw["type"].clone());
    }
    if let Some(fields) = raw["fields"].as_object() {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|(name, field)| (name.clone(), converted(field, referred)))
            .collect();
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    for (member, name) in [("values", "additionalProperties"), ("items", "items")] {
        if let Some(inner) = raw.get(member) {
            schema.insert(name.to_owned(), converted(inner, referred));
        }
    }
    let kinds: Vec<Value> = raw["gvk"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|kind| kind[0] != "*")
        .map(|kind| json!({ "group": kind[0], "version": kind[1], "kind": kind[2] }))
        .collect();
    if !kinds.is_empty() {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), json!(kinds));
    }
    let Some(name) = raw["ref"].as_str() else {
        return Value::Object(schema);
    };
    referred.insert(name.to_owned());
    if schema.is_empty() {
        return reference(name);
    }
    // Nothing may stand beside a reference.
    schema.insert("allOf".to_owned(), json!([reference(name)]));
    Value::Object(schema)
}

fn kind_of(resource: &Resource, kind: &str) -> Value {
    json!([{ "group": resource.group, "version": resource.version, "kind": kind }])
}

/// What a definition says, with the members that every object has.
fn custom_type(resource: &Resource, custom: &Custom) -> Value {
    let mut schema = Value::clone(&custom.structural);
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = json!("object");
    schema["properties"]["apiVersion"] = json!({ "type": "string" });
    schema["properties"]["kind"] = json!({ "type": "string" });
    schema["properties"]["metadata"] = reference(OBJECT_META);
    schema["x-kubernetes-group-version-kind"] = kind_of(resource, &resource.kind);
    schema
}

fn list_type(resource: &Resource, item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": reference(LIST_META),
            "items": { "type": "array", "items": reference(item) },
        },
        "x-kubernetes-group-version-kind": kind_of(resource, &resource.list_kind),
    })
}

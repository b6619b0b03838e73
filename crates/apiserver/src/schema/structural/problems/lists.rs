//! Of what kind lists and maps are.

use serde_json::{Value, json};

use crate::status::Cause;

/// Checks of what kind a list or a map is said to be.
pub(super) fn topology(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let own = |keyword: &str| format!("{place}.{keyword}");
    for (keyword, kind, known) in [
        ("x-kubernetes-list-type", "array", &LIST_TYPES[..]),
        ("x-kubernetes-map-type", "object", &MAP_TYPES[..]),
    ] {
        let said = &schema[keyword];
        let Some(name) = said.as_str() else { continue };
        let why = format!("must be {kind} if {keyword} is specified");
        match schema["type"].as_str() {
            None | Some("") => causes.push(Cause::required(own("type"), &why)),
            Some(found) if found != kind => {
                causes.push(Cause::invalid(own("type"), &schema["type"], &why));
            }
            Some(_) if !known.contains(&name) => {
                causes.push(Cause::not_supported(own(keyword), said, known));
            }
            Some(_) => {}
        }
    }
    let said = &schema["x-kubernetes-list-type"];
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    if keys.is_some_and(|keys| !keys.is_empty()) && *said != "map" {
        let (field, why) = (
            own("x-kubernetes-list-type"),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        );
        causes.push(if said.is_null() {
            Cause::required(field, why)
        } else {
            Cause::invalid(field, said, why)
        });
    }
    match said.as_str() {
        Some("map") => map_items(schema, place, causes),
        Some("set") => set_items(schema, place, causes),
        Some(_) | None => {}
    }
    if let Some(kind @ ("map" | "set")) = said.as_str()
        && schema["items"]["nullable"] == true
    {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        causes.push(Cause::forbidden(own("items.nullable"), &why));
    }
}

const LIST_TYPES: [&str; 3] = ["atomic", "map", "set"];
const MAP_TYPES: [&str; 2] = ["atomic", "granular"];

/// The elements of a set are compared as a whole.
fn set_items(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let items = &schema["items"];
    let (keyword, fits) = match items["type"].as_str() {
        Some("array") => {
            let kind = &items["x-kubernetes-list-type"];
            (
                "x-kubernetes-list-type",
                kind.is_null() || *kind == "atomic",
            )
        }
        Some("object") => (
            "x-kubernetes-map-type",
            items["x-kubernetes-map-type"] == "atomic",
        ),
        Some(_) | None => return,
    };
    if !fits {
        let field = format!("{place}.items.{keyword}");
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        causes.push(Cause::invalid(field, &items[keyword], why));
    }
}

/// The elements of a map in a list are objects, which single values in them tell apart.
fn map_items(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let field = format!("{place}.x-kubernetes-list-map-keys");
    let shown = &schema["x-kubernetes-list-map-keys"];
    let keys = shown.as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        causes.push(Cause::required(field.clone(), why));
    }
    let items = &schema["items"];
    if !items.is_object() {
        let why = "must have a schema if x-kubernetes-list-type is map";
        causes.push(Cause::required(format!("{place}.items"), why));
        return;
    }
    if items["type"] != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        let kind = items.get("type").cloned().unwrap_or_else(|| json!(""));
        causes.push(Cause::invalid(format!("{place}.items.type"), &kind, why));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let property = &items["properties"][name];
        let inner = format!("{place}.items.properties[{name}]");
        if !property.is_object() {
            let why = "entries must all be names of item properties";
            causes.push(Cause::invalid(&field, shown, why));
        } else if ["array", "object"].contains(&property["type"].as_str().unwrap_or_default()) {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            causes.push(Cause::invalid(format!("{inner}.type"), &items["type"], why));
        }
        if keys[..index].contains(key) {
            let why = "must not contain duplicate entries";
            causes.push(Cause::invalid(&field, shown, why));
        }
        let required = items["required"].as_array();
        let required = required.is_some_and(|names| names.contains(key));
        if property.is_object() && !required && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                       or be a required property";
            causes.push(Cause::required(format!("{inner}.default"), why));
        }
        if property["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.push(Cause::forbidden(format!("{inner}.nullable"), why));
        }
    }
}

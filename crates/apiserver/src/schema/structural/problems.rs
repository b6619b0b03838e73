//! What makes the schema of a definition not structural, or wrong in itself.

use serde_json::{Value, json};

use super::super::decode::has_unknown;
use super::super::validate::validate_default;
use super::from_structural;
use crate::pattern::Pattern;
use crate::status::Cause;

/// Keywords that only the structure itself may have, not what is said with `anyOf` and its like.
const STRUCTURE_ONLY: [&str; 13] = [
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Keywords of other kinds of schemas.
const UNSUPPORTED: [&str; 6] = [
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
];

/// The types that a value can have.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords with a list of schemas.
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Checks the schema at `place` in a definition.
pub(crate) fn structural_problems(schema: &Value, place: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if schema["type"].as_str().is_some_and(|kind| kind != "object") {
        let why = "must be object at the root";
        causes.push(Cause::invalid(
            format!("{place}.type"),
            &schema["type"],
            why,
        ));
    }
    root_metadata(&schema["properties"]["metadata"], place, &mut causes);
    structure(schema, place, "at the root", &mut causes);
    causes
}

/// Of the metadata of every object a schema can say something about the names alone.
fn root_metadata(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut others =
        properties.filter(|(name, _)| !["name", "generateName"].contains(&name.as_str()));
    if others.next().is_some() {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        causes.push(Cause::forbidden(
            format!("{place}.properties[metadata]"),
            why,
        ));
    }
}

fn structure(schema: &Value, place: &str, role: &str, causes: &mut Vec<Cause>) {
    let own = |keyword: &str| format!("{place}.{keyword}");
    let flag = |keyword: &str| schema[keyword] == true;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.properties[{name}]");
        structure(property, &place, "for specified object fields", causes);
    }
    if schema["items"].is_object() {
        let role = "for specified array items";
        structure(&schema["items"], &own("items"), role, causes);
    } else if schema["items"].is_array() {
        let why = "items must be a schema object and not an array";
        causes.push(Cause::forbidden(own("items"), why));
    } else if schema["type"] == "array" {
        causes.push(Cause::required(own("items"), "must be specified"));
    }
    let values = &schema["additionalProperties"];
    if values.is_object() {
        let role = "for specified object fields";
        structure(values, &own("additionalProperties"), role, causes);
    }
    let some = |schema: &Value| {
        schema
            .as_object()
            .is_some_and(|members| !members.is_empty())
    };
    if !values.is_null() && some(&schema["properties"]) {
        let why = "additionalProperties and properties are mutual exclusive";
        causes.push(Cause::forbidden(own("additionalProperties"), why));
    }
    said_of_values(schema, place, causes);
    let untyped = schema["type"].as_str().is_none_or(str::is_empty);
    let open = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if untyped && (!open || role == "at the root") {
        causes.push(Cause::required(
            own("type"),
            &format!("must not be empty {role}"),
        ));
    }
    if !untyped && flag("x-kubernetes-int-or-string") {
        let why = "must be empty if x-kubernetes-int-or-string is true";
        causes.push(Cause::invalid(own("type"), &schema["type"], why));
    }
    if flag("x-kubernetes-embedded-resource") && schema["type"] != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(Cause::invalid(own("type"), &schema["type"], why));
    }
    if flag("uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(Cause::forbidden(own("uniqueItems"), why));
    }
    for keyword in UNSUPPORTED {
        if schema.get(keyword).is_some_and(|value| !value.is_null()) {
            let why = format!("{keyword} is not supported");
            causes.push(Cause::forbidden(own(keyword), &why));
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let field = own("x-kubernetes-preserve-unknown-fields");
        let why = "must be true or undefined";
        causes.push(Cause::invalid(field, &json!(false), why));
    }
    if !untyped && !TYPES.iter().any(|known| schema["type"] == *known) {
        causes.push(Cause::not_supported(own("type"), &schema["type"], &TYPES));
    }
    topology(schema, place, causes);
    default(schema, &own("default"), causes);
}

/// Checks what is said about values beside the structure.
fn said_of_values(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(problem) = Pattern::new(pattern)
    {
        let field = format!("{place}.pattern");
        let why = format!("must be a valid regular expression, but isn't: {problem}");
        causes.push(Cause::invalid(field, &schema["pattern"], &why));
    }
    // A choice between a number and a text may say again what the structure says, alone or first of all.
    let choice = json!([{ "type": "integer" }, { "type": "string" }]);
    let is_choice = schema["x-kubernetes-int-or-string"] == true;
    for junctor in JUNCTORS {
        if is_choice && junctor == "anyOf" && schema[junctor] == choice {
            continue;
        }
        for (index, part) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}.{junctor}[{index}]");
            if is_choice && junctor == "allOf" && index == 0 && part["anyOf"] == choice {
                let mut rest = part.clone();
                rest["anyOf"].take();
                no_structure(&rest, &place, causes);
            } else {
                no_structure(part, &place, causes);
            }
        }
    }
    if schema["not"].is_object() {
        no_structure(&schema["not"], &format!("{place}.not"), causes);
    }
}

/// Checks that a schema has no structure of its own.
fn no_structure(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        no_structure(property, &format!("{place}.properties[{name}]"), causes);
    }
    if schema["items"].is_object() {
        no_structure(&schema["items"], &format!("{place}.items"), causes);
    }
    said_of_values(schema, place, causes);
    for keyword in STRUCTURE_ONLY {
        let set = &schema[keyword];
        if !set.is_null() && *set != false && *set != "" {
            let field = format!("{place}.{keyword}");
            let what = match keyword {
                "default"
                | "additionalProperties"
                | "x-kubernetes-list-type"
                | "x-kubernetes-map-type" => "undefined",
                "nullable"
                | "x-kubernetes-embedded-resource"
                | "x-kubernetes-int-or-string"
                | "x-kubernetes-preserve-unknown-fields" => "false",
                _ => "empty",
            };
            let why = format!("must be {what} to be structural");
            causes.push(Cause::forbidden(field, &why));
        }
    }
}

/// Checks of what kind a list or a map is said to be.
fn topology(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
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
    }
}

/// A default must be a value that the schema allows.
fn default(schema: &Value, field: &str, causes: &mut Vec<Cause>) {
    let Some(default) = schema.get("default").filter(|default| !default.is_null()) else {
        return;
    };
    if has_unknown(default, &from_structural(schema)) {
        causes.push(Cause::invalid(
            field,
            default,
            "must not have unknown fields",
        ));
        return;
    }
    causes.extend(validate_default(schema, default, field));
}

//! What makes the schema of a definition not structural, or wrong in itself.

mod completeness;
mod lists;
mod resources;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::super::decode::has_unknown;
use super::super::validate::validate_default;
use super::from_structural;
use crate::pattern::Pattern;
use crate::status::Cause;

/// Keywords that only the structure itself may have, not what is said with `anyOf` and its like.
const STRUCTURE_ONLY: [&str; 14] = [
    "additionalProperties",
    "default",
    "description",
    "externalDocs",
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

/// What is wrong with a schema, by the step of a server that tells it.
#[derive(Debug, Default)]
struct Problems {
    root: Vec<Cause>,
    structure: Vec<Cause>,
    defaults: Vec<Cause>,
    keywords: Vec<Cause>,
    /// There are keywords that a structure cannot even be made of.
    unreadable: bool,
}

/// Where a schema stands: what of it depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Where defaults are not allowed.
#[derive(Debug, Clone, Copy)]
struct Surroundings<'a> {
    /// Within the type, the name or the metadata of an object.
    within_identity: bool,
    no_defaults: Option<&'a str>,
}

/// Checks the schema at `place` in a definition. With a status of its own, less can be said at the root.
pub(crate) fn structural_problems(schema: &Value, place: &str, has_status: bool) -> Vec<Cause> {
    let mut problems = Problems::default();
    resources::root(schema, place, has_status, &mut problems.root);
    structure(schema, place, Level::Root, &mut problems);
    completeness::of_root(schema, place, &mut problems.structure);
    let surroundings = Surroundings {
        within_identity: false,
        no_defaults: None,
    };
    keywords(schema, place, true, surroundings, &mut problems);
    problems.told()
}

/// Whether a keyword says something: it is there, and is not what stands for its absence.
fn says(schema: &Value, keyword: &str) -> bool {
    match &schema[keyword] {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn structure(schema: &Value, place: &str, level: Level, problems: &mut Problems) {
    let own = |keyword: &str| format!("{place}.{keyword}");
    let flag = |keyword: &str| schema[keyword] == true;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.properties[{name}]");
        structure(property, &place, Level::Field, problems);
    }
    if schema["items"].is_object() {
        structure(&schema["items"], &own("items"), Level::Item, problems);
    } else if schema["type"] == "array" && schema["items"].is_null() {
        let cause = Cause::required(own("items"), "must be specified");
        problems.structure.push(cause);
    }
    let values = &schema["additionalProperties"];
    if !values.is_null() && level == Level::Root {
        let cause = Cause::forbidden(own("additionalProperties"), "must not be used at the root");
        problems.structure.push(cause);
    }
    if values.is_object() {
        structure(values, &own("additionalProperties"), Level::Field, problems);
    }
    let causes = &mut problems.structure;
    if flag("x-kubernetes-int-or-string") {
        let why = "must be false if x-kubernetes-int-or-string is true";
        for keyword in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if flag(keyword) {
                causes.push(Cause::invalid(own(keyword), &json!(true), why));
            }
        }
    }
    said_of_values(schema, place, causes);
    let untyped = !says(schema, "type");
    let open = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if flag("x-kubernetes-embedded-resource") {
        resources::embedded(schema, place, causes);
    } else if untyped && !open {
        let why = format!("must not be empty {}", level.role());
        causes.push(Cause::required(own("type"), &why));
    }
    if level == Level::Root || flag("x-kubernetes-embedded-resource") {
        resources::identity(schema, place, causes);
    }
    if level == Level::Root {
        if !untyped && schema["type"] != "object" {
            let why = "must be object at the root";
            causes.push(Cause::invalid(own("type"), &schema["type"], why));
        }
        resources::root_metadata(schema, place, causes);
    }
    default(schema, &own("default"), &mut problems.defaults);
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
    for junctor in JUNCTORS {
        if junctor == "anyOf" && schema[junctor] == choice {
            continue;
        }
        for (index, part) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}.{junctor}[{index}]");
            if junctor == "allOf" && index == 0 && part["anyOf"] == choice {
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
        if says(schema, keyword) {
            let field = format!("{place}.{keyword}");
            let what = match keyword {
                "default"
                | "additionalProperties"
                | "externalDocs"
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
    if schema["properties"].get("metadata").is_some() {
        let field = format!("{place}.properties[metadata]");
        let why = "must not be specified in a nested context";
        causes.push(Cause::forbidden(field, why));
    }
}

/// Checks each keyword by itself, in the structure and in what is said of values.
fn keywords(
    schema: &Value,
    place: &str,
    is_root: bool,
    surroundings: Surroundings<'_>,
    problems: &mut Problems,
) {
    own_keywords(schema, place, surroundings, problems);
    lists::topology(schema, place, &mut problems.keywords);
    let values = &schema["additionalProperties"];
    if values.is_object() {
        let mut inner = surroundings;
        if surroundings.within_identity {
            inner.no_defaults = Some("inside additionalProperties applying to object metadata");
        }
        let place = format!("{place}.additionalProperties");
        keywords(values, &place, false, inner, problems);
    }
    let is_resource = is_root || schema["x-kubernetes-embedded-resource"] == true;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mut inner = surroundings;
        let reason = format!("in top-level {name}");
        if is_resource && resources::IDENTITY.contains(&name.as_str()) {
            inner.within_identity = true;
            if is_root {
                inner.no_defaults = Some(&reason);
            }
        }
        let place = format!("{place}.properties[{name}]");
        keywords(property, &place, false, inner, problems);
    }
    for keyword in ["not", "items"] {
        if schema[keyword].is_object() {
            let place = format!("{place}.{keyword}");
            keywords(&schema[keyword], &place, false, surroundings, problems);
        }
    }
    for junctor in JUNCTORS {
        for (index, part) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}.{junctor}[{index}]");
            keywords(part, &place, false, surroundings, problems);
        }
    }
}

fn own_keywords(
    schema: &Value,
    place: &str,
    surroundings: Surroundings<'_>,
    problems: &mut Problems,
) {
    let own = |keyword: &str| format!("{place}.{keyword}");
    let causes = &mut problems.keywords;
    if says(schema, "type") && !TYPES.iter().any(|known| schema["type"] == *known) {
        causes.push(Cause::not_supported(own("type"), &schema["type"], &TYPES));
    }
    if let Some(reason) = surroundings.no_defaults
        && !schema["default"].is_null()
    {
        let why = format!("must not be set {reason}");
        causes.push(Cause::forbidden(own("default"), &why));
    }
    for keyword in UNSUPPORTED {
        if !schema[keyword].is_null() {
            let why = format!("{keyword} is not supported");
            causes.push(Cause::forbidden(own(keyword), &why));
            problems.unreadable = true;
        }
    }
    if schema["type"] == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        causes.push(Cause::forbidden(own("type"), why));
    }
    if schema["items"].is_array() {
        let why = "items must be a schema object and not an array";
        causes.push(Cause::forbidden(own("items"), why));
        problems.unreadable = true;
    }
    if surroundings.within_identity && schema["x-kubernetes-embedded-resource"] == true {
        let why = "must not be used inside of resource meta";
        causes.push(Cause::forbidden(own("x-kubernetes-embedded-resource"), why));
    }
    if schema["uniqueItems"] == true {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(Cause::forbidden(own("uniqueItems"), why));
    }
    let values = &schema["additionalProperties"];
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|members| !members.is_empty());
    if (values.is_object() || *values == false) && has_properties {
        let why = "additionalProperties and properties are mutual exclusive";
        causes.push(Cause::forbidden(own("additionalProperties"), why));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let field = own("x-kubernetes-preserve-unknown-fields");
        let why = "must be true or undefined";
        causes.push(Cause::invalid(field, &json!(false), why));
        problems.unreadable = true;
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

// === impl Problems ===

impl Problems {
    /// What a server tells of these, in its order.
    fn told(self) -> Vec<Cause> {
        let Self {
            root: mut told,
            mut structure,
            defaults,
            keywords,
            unreadable,
        } = self;
        if !unreadable {
            structure.sort_by(|one, other| {
                (&one.field, &one.message).cmp(&(&other.field, &other.message))
            });
            let is_structural = structure.is_empty();
            told.extend(structure);
            if is_structural {
                told.extend(defaults);
            }
        }
        told.extend(keywords);
        told
    }
}

// === impl Level ===

impl Level {
    fn role(self) -> &'static str {
        match self {
            Self::Root => "at the root",
            Self::Item => "for specified array items",
            Self::Field => "for specified object fields",
        }
    }
}

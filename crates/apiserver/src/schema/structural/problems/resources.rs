//! What a schema may say of an object as a whole: at the root, and where an object is embedded.

use serde_json::{Value, json};

use super::says;
use crate::status::Cause;

/// What every object has.
pub(super) const IDENTITY: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// What may be said at the root of a kind with a status of its own, and how a server calls it. What else is said there
/// would be lost where the schema of the status is taken out of the whole.
const BESIDE_A_STATUS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "XPreserveUnknownFields",
    ),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks what is said at the root before its structure is looked at.
pub(super) fn root(schema: &Value, place: &str, has_status: bool, causes: &mut Vec<Cause>) {
    if has_status {
        beside_a_status(schema, place, causes);
    }
    if schema["nullable"] == true {
        let why = "nullable cannot be true at the root";
        causes.push(Cause::forbidden(format!("{place}.nullable"), why));
    }
}

fn beside_a_status(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    if says(schema, "type") && schema["type"] != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status \
                   subresource is enabled";
        causes.push(Cause::invalid(
            format!("{place}.type"),
            &schema["type"],
            why,
        ));
        return;
    }
    let mut members = schema.as_object().into_iter().flatten();
    let allowed = |keyword: &str| BESIDE_A_STATUS.iter().any(|(name, _)| *name == keyword);
    if members.any(|(keyword, _)| says(schema, keyword) && !allowed(keyword)) {
        let names = BESIDE_A_STATUS.map(|(_, name)| name).join(" ");
        let why = format!(
            "only [{names}] fields are allowed at the root of the schema if the status subresource \
             is enabled"
        );
        causes.push(Cause::invalid(place, schema, &why));
    }
}

/// Checks what is said of what every object has. `schema` is the root, or of an embedded object.
pub(super) fn identity(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    for (name, kind) in [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ] {
        let Some(property) = schema["properties"].get(name) else {
            continue;
        };
        if property["type"] != kind {
            let field = format!("{place}.properties[{name}].type");
            let why = format!("must be {kind}");
            causes.push(Cause::invalid(field, &type_of(property), &why));
        }
    }
}

/// Of the metadata of every object a schema can say something about the names alone.
pub(super) fn root_metadata(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let metadata = &schema["properties"]["metadata"];
    let properties = metadata["properties"].as_object().into_iter().flatten();
    let mut others =
        properties.filter(|(name, _)| !["name", "generateName"].contains(&name.as_str()));
    let free = ["type", "default", "properties", "example"];
    let mut members = metadata.as_object().into_iter().flatten();
    let says_more =
        members.any(|(keyword, _)| says(metadata, keyword) && !free.contains(&keyword.as_str()));
    if others.next().is_some() || says_more {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        causes.push(Cause::forbidden(
            format!("{place}.properties[metadata]"),
            why,
        ));
    }
}

/// Checks the schema of an embedded object.
pub(super) fn embedded(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let own = |keyword: &str| format!("{place}.{keyword}");
    if schema["type"] != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(if says(schema, "type") {
            Cause::invalid(own("type"), &schema["type"], why)
        } else {
            Cause::required(own("type"), why)
        });
    }
    if !schema["additionalProperties"].is_null() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        causes.push(Cause::forbidden(own("additionalProperties"), why));
    }
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|members| !members.is_empty());
    if !has_properties && schema["x-kubernetes-preserve-unknown-fields"] != true {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        causes.push(Cause::required(own("properties"), why));
    }
}

/// The type that a schema names, or the empty text.
fn type_of(schema: &Value) -> Value {
    schema.get("type").cloned().unwrap_or_else(|| json!(""))
}

//! What structural schemas say about values: types and limits.

use std::sync::Arc;

use serde_json::Value;

use super::names::field_name;
use super::types::{Declared, Object, Type};

/// No request is larger, so no part of an object is.
pub(crate) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// The quotes around the longest text.
const MAX_CONTENT_BYTES: u64 = MAX_REQUEST_BYTES - 2;

/// UTF-8 takes so many bytes for a character.
const MAX_BYTES_PER_CHARACTER: u64 = 4;

const MAX_DURATION_BYTES: u64 = 32;
const MAX_DATE_BYTES: u64 = 12;
const MAX_TIME_BYTES: u64 = 32;

/// The members that every object has, and what rules see of its metadata.
const TYPE_MEMBERS: [&str; 2] = ["apiVersion", "kind"];
const METADATA_MEMBERS: [&str; 2] = ["name", "generateName"];

/// The values that a schema describes; those of the root always have a type and a name. None
/// where the schema does not say what type they have.
pub(crate) fn declared(schema: &Value, root: bool) -> Option<Declared> {
    let kind = |kind, max_elements, min_bytes| {
        Some(Declared {
            kind,
            max_elements,
            min_bytes,
            element: None,
        })
    };
    if schema["x-kubernetes-int-or-string"] == true {
        let max = limit(schema, "maxLength").map(|max| max.saturating_mul(MAX_BYTES_PER_CHARACTER));
        return kind(Type::Dyn, max.unwrap_or(MAX_CONTENT_BYTES), 1);
    }
    match schema["type"].as_str()? {
        "boolean" => kind(Type::Bool, 0, 4),
        "number" => kind(Type::Double, 0, 1),
        "integer" => kind(Type::Int, 0, 1),
        "string" => Some(text(schema)),
        "array" => {
            let element = declared(&schema["items"], false)?;
            let most = MAX_CONTENT_BYTES / (element.min_bytes + 1);
            Some(Declared {
                kind: Type::list(element.kind.clone()),
                max_elements: limit(schema, "maxItems").unwrap_or(most),
                min_bytes: 2,
                element: Some(Arc::new(element)),
            })
        }
        "object" if schema["additionalProperties"].is_object() => {
            let element = declared(&schema["additionalProperties"], false)?;
            // `"":,` stands around each value.
            let most = MAX_CONTENT_BYTES / (element.min_bytes + 6);
            Some(Declared {
                kind: Type::map(Type::Text, element.kind.clone()),
                max_elements: limit(schema, "maxProperties").unwrap_or(most),
                min_bytes: 2,
                element: Some(Arc::new(element)),
            })
        }
        "object" => {
            let resource = root || schema["x-kubernetes-embedded-resource"] == true;
            Some(object(schema, resource))
        }
        _ => None,
    }
}

/// A limit of a schema. What is negative limits to nothing.
pub(crate) fn limit(schema: &Value, keyword: &str) -> Option<u64> {
    let number = &schema[keyword];
    if let Some(number) = number.as_u64() {
        return Some(number);
    }
    let number = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast goes to the nearest number there is"
    )]
    Some(number as u64)
}

fn text(schema: &Value) -> Declared {
    let length = limit(schema, "maxLength");
    let (kind, max_elements, min_bytes) = match schema["format"].as_str().unwrap_or_default() {
        "byte" => (Type::Bytes, length.unwrap_or(MAX_CONTENT_BYTES), 2),
        "duration" => (Type::Duration, MAX_DURATION_BYTES, 3),
        "date" => (Type::Timestamp, MAX_DATE_BYTES, 12),
        "date-time" => (Type::Timestamp, MAX_TIME_BYTES, 21),
        _ => {
            let length = length.map(|length| length.saturating_mul(MAX_BYTES_PER_CHARACTER));
            let max = length.or_else(|| longest_choice(schema));
            (Type::Text, max.unwrap_or(MAX_CONTENT_BYTES), 2)
        }
    };
    Declared {
        kind,
        max_elements,
        min_bytes,
        element: None,
    }
}

fn longest_choice(schema: &Value) -> Option<u64> {
    let choices = schema["enum"].as_array()?;
    let lengths = choices.iter().filter_map(Value::as_str).map(str::len);
    let longest = lengths.max().unwrap_or_default() as u64;
    (!choices.is_empty()).then_some(longest)
}

fn object(schema: &Value, resource: bool) -> Declared {
    let mut properties: Vec<(&str, Option<Declared>)> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), declared(schema, false)))
        .collect();
    if resource && !names_itself(schema) {
        properties.retain(|(name, _)| !TYPE_MEMBERS.contains(name) && *name != "metadata");
        properties.extend(TYPE_MEMBERS.map(|name| (name, Some(unlimited_text()))));
        properties.push(("metadata", Some(metadata())));
    }
    let mut min_bytes = 2;
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        let mut found = properties.iter();
        let Some((_, Some(property))) = found.find(|(property, _)| *property == name) else {
            continue;
        };
        if schema["properties"][name]["default"].is_null() {
            min_bytes += name.len() as u64 + property.min_bytes + 4;
        }
    }
    let fields = properties
        .into_iter()
        .filter_map(|(name, property)| Some((field_name(name)?, property?)));
    let object = Object {
        fields: fields.collect(),
    };
    Declared {
        kind: Type::Object(Arc::new(object)),
        max_elements: 0,
        min_bytes,
        element: None,
    }
}

/// Whether a schema describes all of the members that every object has.
fn names_itself(schema: &Value) -> bool {
    let properties = &schema["properties"];
    let metadata = &properties["metadata"];
    let are_texts = |properties: &Value, names: [&str; 2]| {
        let mut names = names.iter();
        names.all(|name| properties[*name]["type"] == "string")
    };
    are_texts(properties, TYPE_MEMBERS)
        && metadata["type"] == "object"
        && are_texts(&metadata["properties"], METADATA_MEMBERS)
}

fn unlimited_text() -> Declared {
    text(&Value::Null)
}

fn metadata() -> Declared {
    let fields = METADATA_MEMBERS.map(|name| (name.to_owned(), unlimited_text()));
    let object = Object {
        fields: fields.into(),
    };
    Declared {
        kind: Type::Object(Arc::new(object)),
        max_elements: 0,
        min_bytes: 2,
        element: None,
    }
}

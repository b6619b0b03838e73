//! Descriptions of what is served, in `OpenAPI` 2: all groups in one document. kubectl reads it for a kind
//! that no description in `OpenAPI` 3 has, and older clients read nothing else.

use serde_json::{Map, Value, json};

use super::document;
use crate::resource::Catalog;

/// Keywords that `OpenAPI` 2 does not have.
const UNKNOWN: [&str; 5] = [
    "anyOf",
    "oneOf",
    "not",
    "nullable",
    "x-kubernetes-validations",
];

/// `/openapi/v2`
pub(in crate::http) fn whole(catalog: &Catalog) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    let mut known: Vec<(&str, &str)> = Vec::new();
    for resource in catalog.all() {
        let own = (resource.group.as_str(), resource.version.as_str());
        if known.contains(&own) {
            continue;
        }
        known.push(own);
        let Some(described) = document(catalog, own.0, own.1) else {
            continue;
        };
        for (path, item) in described["paths"].as_object().into_iter().flatten() {
            paths.insert(path.clone(), older_path(item));
        }
        let schemas = described["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten() {
            if !definitions.contains_key(name) {
                definitions.insert(name.clone(), older(schema));
            }
        }
    }
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "v1.36.2" },
        "paths": paths,
        "definitions": definitions,
    })
}

/// A path: its parameters have their types beside their names, and a body is a parameter.
fn older_path(item: &Value) -> Value {
    let mut path = Map::new();
    for (name, value) in item.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "parameters" => parameters(value),
            _ if value.is_object() => older_operation(value),
            _ => older(value),
        };
        path.insert(name.clone(), value);
    }
    Value::Object(path)
}

fn older_operation(operation: &Value) -> Value {
    let mut older_one = Map::new();
    for (name, value) in operation.as_object().into_iter().flatten() {
        match name.as_str() {
            "parameters" | "requestBody" | "responses" => {}
            _ => {
                older_one.insert(name.clone(), value.clone());
            }
        }
    }
    let mut all = parameters(&operation["parameters"]);
    let content = operation["requestBody"]["content"].as_object();
    if let (Some(content), Some(all)) = (content, all.as_array_mut()) {
        let schema = content.values().next().map(|media| older(&media["schema"]));
        let schema = schema.unwrap_or_else(|| json!({ "type": "object" }));
        all.push(json!({ "name": "body", "in": "body", "required": true, "schema": schema }));
        let types: Vec<&String> = content.keys().collect();
        older_one.insert("consumes".to_owned(), json!(types));
    }
    older_one.insert("parameters".to_owned(), all);
    let mut responses = Map::new();
    for (code, response) in operation["responses"].as_object().into_iter().flatten() {
        let mut answer = json!({ "description": response["description"] });
        let content = response["content"].as_object();
        if let Some(media) = content.and_then(|content| content.values().next()) {
            answer["schema"] = older(&media["schema"]);
        }
        responses.insert(code.clone(), answer);
    }
    older_one.insert("responses".to_owned(), Value::Object(responses));
    Value::Object(older_one)
}

fn parameters(list: &Value) -> Value {
    let list = list.as_array().into_iter().flatten();
    list.map(|parameter| {
        let mut older_one = parameter.clone();
        let Some(members) = older_one.as_object_mut() else {
            return older_one;
        };
        let schema = members.remove("schema").unwrap_or_default();
        let kind = schema["type"].as_str().unwrap_or("string");
        members.insert("type".to_owned(), json!(kind));
        older_one
    })
    .collect()
}

/// A schema without what `OpenAPI` 2 does not have.
fn older(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let name = reference.rsplit('/').next().unwrap_or_default();
                return json!({ "$ref": format!("#/definitions/{name}") });
            }
            // What may have several types is told as a text.
            let several = members.get("oneOf").is_some() && members.get("type").is_none();
            let mut older_one: Map<String, Value> = members
                .iter()
                .filter(|(name, _)| !UNKNOWN.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), older_member(name, value)))
                .collect();
            if several {
                older_one.insert("type".to_owned(), json!("string"));
            }
            Value::Object(older_one)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            schema.clone()
        }
    }
}

fn older_member(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("properties", Value::Object(properties)) => properties
            .iter()
            .map(|(name, schema)| (name.clone(), older(schema)))
            .collect(),
        ("allOf", Value::Array(list)) => list.iter().map(older).collect(),
        ("items" | "additionalProperties", value) => older(value),
        (_, value) => value.clone(),
    }
}

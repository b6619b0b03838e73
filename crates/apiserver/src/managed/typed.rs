//! Whether a configuration can be read by the schema of its kind at all.

use serde_json::Value;

use super::compare::{below, element};
use crate::schema::{ListKind, Schema};

/// What is wrong with a configuration: a member that the schema does not know, a value of another
/// type, or two elements of a list that should be different and are not.
pub(super) fn problem(schema: &Schema, config: &Value) -> Option<String> {
    members_problem(schema, config, "", true)
}

fn members_problem(schema: &Schema, value: &Value, path: &str, root: bool) -> Option<String> {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // Every object has these two, also where no schema names them.
        if root && ["apiVersion", "kind"].contains(&name.as_str()) {
            continue;
        }
        let problem = match schema.member(name) {
            Some(inner) => value_problem(inner, value, &path),
            None if is_closed(schema) => Some(format!("{path}: field not declared in schema")),
            None => None,
        };
        if problem.is_some() {
            return problem;
        }
    }
    None
}

/// Whether members that are not described are a fault.
fn is_closed(schema: &Schema) -> bool {
    schema.is_struct() && !schema.resolved().preserve_unknown
}

fn value_problem(schema: &Schema, value: &Value, path: &str) -> Option<String> {
    if value.is_null() || !schema.has_types() {
        return None;
    }
    if value.is_object() {
        return members_problem(schema, value, path, schema.embedded);
    }
    if let Some(list) = value.as_array() {
        return list_problem(schema, list, path);
    }
    let fits = match value {
        Value::Bool(_) => schema.has_type("boolean"),
        Value::Number(_) => schema.has_type("number") || schema.has_type("integer"),
        Value::String(_) => schema.has_type("string"),
        Value::Null | Value::Array(_) | Value::Object(_) => true,
    };
    (!fits).then(|| format!("{path}: expected another type, got {value}"))
}

fn list_problem(schema: &Schema, list: &[Value], path: &str) -> Option<String> {
    let kind = schema.list_kind();
    let items = schema.resolved().items.as_deref();
    let mut seen = Vec::new();
    for value in list {
        let inner = below(Some(schema), "i:0");
        if let Some(problem) = inner.and_then(|inner| value_problem(inner, value, path)) {
            return Some(problem);
        }
        let own = element(kind, items, value);
        if kind != ListKind::Atomic && own.is_some() && seen.contains(&own) {
            return Some(format!("{path}: duplicate entries for key"));
        }
        seen.push(own);
    }
    None
}

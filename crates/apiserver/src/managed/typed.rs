//! Whether a configuration can be read by the schema of its kind at all.

use serde_json::{Map, Value};

use super::compare::{below, element};
use super::field_set::shown;
use crate::schema::{ListKind, Schema};

/// What is wrong with a configuration: members that the schema does not know, values of another type,
/// and elements of a list that should be different and are not.
pub(super) fn problem(schema: &Schema, config: &Value) -> Option<String> {
    let mut problems = Vec::new();
    members(schema, config, "", true, &mut problems);
    match &problems[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

/// Whether a value has parts that its schema cannot take apart at all.
pub(super) fn is_unreadable(schema: &Schema, value: &Value) -> bool {
    let mut problems = Vec::new();
    members(schema, value, "", true, &mut problems);
    // Elements that are there twice can be lived with.
    problems
        .iter()
        .any(|problem| !problem.contains(": duplicate entries for key ["))
}

fn members(schema: &Schema, value: &Value, path: &str, root: bool, problems: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // Every object has these, also where no schema names them.
        let is_own = ["apiVersion", "kind"].contains(&name.as_str())
            || (name == "metadata" && schema.member(name).is_none());
        if root && is_own {
            continue;
        }
        match schema.member(name) {
            Some(inner) => one(inner, value, &path, problems),
            None if is_closed(schema) => {
                problems.push(format!("{path}: field not declared in schema"));
            }
            None => {}
        }
    }
}

/// Whether members that are not described are a fault.
fn is_closed(schema: &Schema) -> bool {
    schema.is_struct() && !schema.resolved().preserve_unknown
}

/// What a schema takes a value for.
enum Wanted {
    Map,
    List,
    Number,
    Text,
    Flag,
    /// Any value that has no parts.
    Scalar,
    Anything,
}

fn wanted(schema: &Schema) -> Wanted {
    let reference = schema.reference.as_deref().unwrap_or_default();
    let resolved = schema.resolved();
    let untyped = [".Quantity", ".IntOrString", ".Time", ".MicroTime"];
    if untyped.iter().any(|name| reference.ends_with(name)) {
        return Wanted::Scalar;
    }
    match (
        schema.has_type("string"),
        schema.has_type("integer") || schema.has_type("number"),
    ) {
        (true, false) => Wanted::Text,
        (false, true) => Wanted::Number,
        (false, false) if schema.has_type("boolean") => Wanted::Flag,
        (false, false) if schema.has_type("array") && resolved.items.is_some() => Wanted::List,
        (false, false) if schema.is_struct() || schema.is_map() => Wanted::Map,
        // A number or a text is one value, whatever it is.
        (true, true) | (false, false) => Wanted::Anything,
    }
}

fn one(schema: &Schema, value: &Value, path: &str, problems: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let mut expected = |what: &str, found: String| {
        problems.push(format!("{path}: expected {what}, got {found}"));
    };
    match (wanted(schema), value) {
        (Wanted::Map, Value::Object(_)) => members(schema, value, path, schema.embedded, problems),
        (Wanted::List, Value::Array(values)) => list(schema, values, path, problems),
        (Wanted::Map, _) => expected("map", format!("&{{{}}}", plain(value))),
        (Wanted::List, _) => expected("list", format!("&{{{}}}", plain(value))),
        (Wanted::Text, Value::String(_))
        | (Wanted::Number, Value::Number(_))
        | (Wanted::Flag, Value::Bool(_))
        | (Wanted::Anything, _) => {}
        (Wanted::Text, _) => {
            let found = format!("&value.valueUnstructured{{Value:{}}}", typed(value));
            expected("string", found);
        }
        (Wanted::Number, _) => expected("numeric (int or float)", type_name(value).to_owned()),
        (Wanted::Flag, _) => expected("boolean", format!("&{{{}}}", plain(value))),
        (Wanted::Scalar, Value::Object(_) | Value::Array(_)) => {
            expected("any scalar", format!("&{{{}}}", plain(value)));
        }
        (Wanted::Scalar, _) => {}
    }
}

fn list(schema: &Schema, list: &[Value], path: &str, problems: &mut Vec<String>) {
    let kind = schema.list_kind();
    let items = schema.resolved().items.as_deref();
    let mut seen: Vec<(String, bool)> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let own = match kind {
            ListKind::Atomic => None,
            ListKind::Set | ListKind::Map(_) => element(kind, items, value),
        };
        let is_keyed = matches!(kind, ListKind::Map(_));
        if is_keyed && own.is_none() {
            problems.push(format!(
                "{path}: element {index}: associative list with keys may not have non-map elements"
            ));
            continue;
        }
        let place = own.as_deref().map_or_else(|| format!("[{index}]"), shown);
        if let Some(inner) = below(Some(schema), "i:0") {
            one(inner, value, &format!("{path}{place}"), problems);
        }
        let Some(own) = own else { continue };
        match seen.iter_mut().find(|(one, _)| *one == own) {
            Some((_, true)) => {}
            Some((_, told)) => {
                *told = true;
                problems.push(format!("{path}: duplicate entries for key {place}"));
            }
            None => seen.push((own, false)),
        }
    }
}

/// The name of a value's type as Go says it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it without its type.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(plain).collect();
            format!("[{}]", list.join(" "))
        }
        Value::Object(members) => {
            let list = sorted(members).map(|(name, value)| format!("{name}:{}", plain(value)));
            format!("map[{}]", list.collect::<Vec<_>>().join(" "))
        }
    }
}

/// A value as Go prints it with its type.
fn typed(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(typed).collect();
            format!("[]interface {{}}{{{}}}", list.join(", "))
        }
        Value::Object(members) => {
            let list = sorted(members).map(|(name, value)| format!("{name:?}:{}", typed(value)));
            let list = list.collect::<Vec<_>>().join(", ");
            format!("map[string]interface {{}}{{{list}}}")
        }
    }
}

fn sorted(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter()
}

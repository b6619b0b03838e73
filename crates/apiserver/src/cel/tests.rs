use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::check::{Checked, check};
use super::cost;
use super::declared::declared;
use super::evaluate::evaluate;
use super::program::Program;
use super::types::{Declared, Type};
use super::value::Value;
use super::{functions, library, operators, parse};
use crate::pattern::Patterns;

mod costs;
mod decisions;
mod hostile;
mod models;
mod values;

/// A text of at most so many characters.
fn text(max: u64) -> Json {
    json!({ "type": "string", "maxLength": max })
}

fn any_text() -> Json {
    json!({ "type": "string" })
}

fn int() -> Json {
    json!({ "type": "integer" })
}

fn list(items: &Json, max: u64) -> Json {
    json!({ "type": "array", "items": items, "maxItems": max })
}

fn any_list(items: &Json) -> Json {
    json!({ "type": "array", "items": items })
}

fn map(values: &Json, max: u64) -> Json {
    json!({ "type": "object", "additionalProperties": values, "maxProperties": max })
}

fn object(properties: &Json) -> Json {
    json!({ "type": "object", "properties": properties })
}

fn compiled(node: &Declared, optional_old: bool, source: &str) -> Result<Checked, String> {
    let old = if optional_old {
        Type::optional(node.kind.clone())
    } else {
        node.kind.clone()
    };
    let variables = vec![
        (Arc::from("self"), node.kind.clone()),
        (Arc::from("oldSelf"), old),
    ];
    parse(source).and_then(|ast| check(source, ast, variables))
}

#[track_caller]
fn cost_of(schema: &Json, root: bool, source: &str) -> u64 {
    let node = declared(schema, root).expect("the schema has a type");
    match compiled(&node, false, source) {
        Ok(checked) => cost::estimate(&checked, &node),
        Err(why) => panic!("{source}: {why}"),
    }
}

/// Whether an expression is true of a value, or why it is nothing.
#[track_caller]
fn outcome(schema: &Json, value: &Json, source: &str) -> Result<bool, String> {
    let node = declared(schema, false).expect("the schema has a type");
    let checked = compiled(&node, false, source).unwrap_or_else(|why| panic!("{source}: {why}"));
    let program = Program::new(checked).unwrap_or_else(|why| panic!("{source}: {why}"));
    let own = Value::of(value, schema, false).map_err(|fault| fault.to_string())?;
    let variables = [("self", own.clone()), ("oldSelf", own)];
    let patterns = Patterns::default();
    match evaluate(&program, &variables, &patterns, 1_000_000).0 {
        Ok(Value::Bool(flag)) => Ok(flag),
        Ok(other) => Err(format!("{other:?}")),
        Err(fault) => Err(fault.to_string()),
    }
}

/// Every function that an expression can name does something.
#[test]
fn functions_are_there() {
    let own = [
        operators::AND,
        operators::OR,
        operators::CONDITIONAL,
        operators::INDEX,
        operators::OPTIONAL_INDEX,
        operators::MAP_INSERT,
    ];
    for name in functions::names() {
        let there = own.contains(&name) || library::function_of(name).is_some();
        assert!(there, "{name}");
    }
}

//! Putting objects together and taking fields away.

use serde_json::{Map, Value};

use super::compare::{Form, below, form};
use super::field_set::FieldSet;
use crate::schema::Schema;

/// An object with what a configuration says about it.
pub(super) fn merge(
    schema: Option<&Schema>,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    let (live, config) = match (live, config) {
        (Some(live), Some(config)) => (live, config),
        (live, config) => return live.or(config).cloned(),
    };
    match (form(schema, live), form(schema, config)) {
        (Form::Members(live), Form::Members(config)) => {
            let mut merged = live.clone();
            for (name, value) in config {
                let inner = below(schema, &format!("f:{name}"));
                if let Some(value) = merge(inner, live.get(name), Some(value)) {
                    merged.insert(name.clone(), value);
                }
            }
            Some(Value::Object(merged))
        }
        (Form::Elements(live), Form::Elements(config)) => {
            Some(Value::Array(merge_lists(schema, &live, &config)))
        }
        // Null for what has parts takes none of them away.
        (Form::Members(members), Form::Leaf) if config.is_null() && !members.is_empty() => {
            Some(Value::Object(members.clone()))
        }
        (Form::Elements(elements), Form::Leaf) if config.is_null() && !elements.is_empty() => {
            Some(live.clone())
        }
        (Form::Leaf | Form::Members(_) | Form::Elements(_), _) => Some(config.clone()),
    }
}

/// Merges two lists: elements keep the order of each list as far as that is possible.
fn merge_lists(
    schema: Option<&Schema>,
    live: &[(String, &Value)],
    config: &[(String, &Value)],
) -> Vec<Value> {
    let find = |list: &[(String, &Value)], wanted: &str| {
        list.iter().position(|(element, _)| element == wanted)
    };
    let mut merged = Vec::new();
    let mut shared = config
        .iter()
        .filter(|(element, _)| find(live, element).is_some())
        .peekable();
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        if let Some((element, value)) = live.get(l) {
            if find(config, element).is_none() {
                merged.push((*value).clone());
                l += 1;
                continue;
            }
            // Its turn comes in the configuration's order.
            let next = shared.peek().map(|(next, _)| next);
            if c >= config.len() || next.is_some_and(|next| next != element) {
                l += 1;
                continue;
            }
        }
        let Some((element, value)) = config.get(c) else {
            continue;
        };
        let known = find(live, element).map(|place| live[place].1);
        merged.extend(merge(below(schema, element), known, Some(value)));
        c += 1;
        if shared.next_if(|(next, _)| next == element).is_some()
            && live.get(l).is_some_and(|(next, _)| next == element)
        {
            l += 1;
        }
    }
    merged
}

/// A value without the fields of a set; nothing if nothing is left.
pub(super) fn without(schema: Option<&Schema>, value: &Value, gone: &FieldSet) -> Option<Value> {
    let keep = |element: &str, value: &Value| match gone.node(element) {
        None => Some(value.clone()),
        Some(node) if node.member => None,
        Some(node) => {
            // An element whose keys are there by default alone is still an element.
            let emptied = if element.starts_with("k:") {
                Value::Object(Map::new())
            } else {
                Value::Null
            };
            without(below(schema, element), value, &node.children).or(Some(emptied))
        }
    };
    match form(schema, value) {
        Form::Leaf => Some(value.clone()),
        Form::Members(members) => {
            let left: Map<String, Value> = members
                .iter()
                .filter_map(|(name, value)| {
                    Some((name.clone(), keep(&format!("f:{name}"), value)?))
                })
                .collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
        Form::Elements(list) => {
            let left: Vec<Value> = list
                .iter()
                .filter_map(|(element, value)| keep(element, value))
                .collect();
            (!left.is_empty()).then_some(Value::Array(left))
        }
    }
}

//! Walking objects by their schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::field_set::{FieldSet, Node};
use crate::schema::{ListKind, Schema};

/// What differs between two objects.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// How two values at one place differ.
#[derive(Debug, Default)]
struct Difference {
    added: Node,
    modified: Node,
    removed: Node,
}

/// How a value is taken apart.
pub(super) enum Form<'a> {
    /// It is one value.
    Leaf,
    Members(&'a Map<String, Value>),
    /// The elements of a list by their key or value, in order.
    Elements(Vec<(String, &'a Value)>),
}

/// How a value of this schema is taken apart; without a schema, maps are and lists are not.
pub(super) fn form<'a>(schema: Option<&Schema>, value: &'a Value) -> Form<'a> {
    if let Some(members) = value.as_object() {
        if schema.is_some_and(Schema::is_atomic_map) {
            Form::Leaf
        } else {
            Form::Members(members)
        }
    } else if let (Some(list), Some(schema)) = (value.as_array(), schema) {
        elements(schema, list).map_or(Form::Leaf, Form::Elements)
    } else {
        Form::Leaf
    }
}

/// The elements of a list that is not one value.
fn elements<'a>(schema: &Schema, list: &'a [Value]) -> Option<Vec<(String, &'a Value)>> {
    let kind = schema.list_kind();
    if kind == ListKind::Atomic {
        return None;
    }
    let items = schema.resolved().items.as_deref();
    list.iter()
        .map(|value| Some((element(kind, items, value)?, value)))
        .collect()
}

pub(super) fn element(kind: ListKind<'_>, items: Option<&Schema>, value: &Value) -> Option<String> {
    match kind {
        ListKind::Atomic => None,
        ListKind::Set => Some(format!("v:{value}")),
        ListKind::Map(keys) => {
            let members = value.as_object()?;
            let mut key = Map::new();
            for name in keys {
                let default = || items.and_then(|items| items.key_default(name));
                if let Some(value) = members.get(name).or_else(default) {
                    key.insert(name.clone(), value.clone());
                }
            }
            Some(format!("k:{}", Value::Object(key)))
        }
    }
}

/// The schema of what an element leads to.
pub(super) fn below<'a>(schema: Option<&'a Schema>, element: &str) -> Option<&'a Schema> {
    let schema = schema?;
    match element.strip_prefix("f:") {
        Some(name) => schema.member(name),
        None => schema.resolved().items.as_deref(),
    }
}

/// Every field of an object.
pub(super) fn to_set(schema: Option<&Schema>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match form(schema, value) {
        Form::Leaf => {}
        Form::Members(members) => {
            for (name, value) in members {
                let element = format!("f:{name}");
                let inner = below(schema, &element);
                let mut node = set_of(inner, value);
                let named =
                    schema.is_some_and(|schema| schema.resolved().fields.contains_key(name));
                let empty = value.as_object().is_some_and(Map::is_empty) || value.is_null();
                node.member |= empty || !named;
                set.insert(element, node);
            }
        }
        Form::Elements(list) => {
            for (element, value) in list {
                let mut node = set_of(below(schema, &element), value);
                node.member = true;
                set.insert(element, node);
            }
        }
    }
    set
}

/// The node of a value: a member if it is one value.
fn set_of(schema: Option<&Schema>, value: &Value) -> Node {
    let member = matches!(form(schema, value), Form::Leaf);
    Node {
        member,
        children: to_set(schema, value),
    }
}

/// Makes every named member that leads to fields of the set a field of it.
pub(super) fn named_as_members(schema: Option<&Schema>, set: &FieldSet) -> FieldSet {
    let mut named = FieldSet::default();
    for (element, node) in set.nodes() {
        let is_named = element.strip_prefix("f:").is_some_and(|name| {
            schema.is_some_and(|schema| schema.resolved().fields.contains_key(name))
        });
        let children = named_as_members(below(schema, element), &node.children);
        let member = node.member || (is_named && !children.is_empty());
        named.insert(element.clone(), Node { member, children });
    }
    named
}

/// What changes from one object to another.
pub(super) fn compare(schema: &Schema, old: &Value, new: &Value) -> Comparison {
    let Difference {
        added,
        modified,
        removed,
    } = differ(Some(schema), Some(old), Some(new));
    Comparison {
        added: added.children,
        modified: modified.children,
        removed: removed.children,
    }
}

fn differ(schema: Option<&Schema>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut difference = Difference::default();
    if old == new {
        return difference;
    }
    let forms = (
        old.map(|value| form(schema, value)),
        new.map(|value| form(schema, value)),
    );
    let null = |value: Option<&Value>| value.is_some_and(Value::is_null);
    match forms {
        // What is one value on one side has no parts there. Null stands for nothing, and is not another
        // value, where there is something to take apart on the other side.
        (Some(Form::Leaf), Some(Form::Members(_) | Form::Elements(_))) => {
            difference = differ(schema, None, new);
            difference.added.member = false;
            difference.modified.member = !null(old) || is_empty(new);
        }
        (Some(Form::Members(_) | Form::Elements(_)), Some(Form::Leaf)) => {
            difference = differ(schema, old, None);
            difference.removed.member = false;
            difference.modified.member = !null(new) || is_empty(old);
        }
        (Some(Form::Leaf), Some(Form::Leaf)) => difference.modified.member = true,
        (old_form, new_form) => {
            difference.added.member = old.is_none();
            difference.removed.member = new.is_none();
            let (old, new) = (children(old_form), children(new_form));
            let mut all: Vec<&String> = old.keys().chain(new.keys()).collect();
            all.sort();
            all.dedup();
            for element in all {
                let inner = below(schema, element);
                let below = differ(inner, old.get(element).copied(), new.get(element).copied());
                for (set, node) in [
                    (&mut difference.added.children, below.added),
                    (&mut difference.modified.children, below.modified),
                    (&mut difference.removed.children, below.removed),
                ] {
                    // Of most elements there is something in one of the three only.
                    if !node.is_empty() {
                        set.insert(element.clone(), node);
                    }
                }
            }
        }
    }
    difference
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        None | Some(_) => false,
    }
}

/// The parts of a value by element. Of list elements that should be different and are not, the first
/// counts.
fn children(form: Option<Form<'_>>) -> BTreeMap<String, &Value> {
    let mut children = BTreeMap::new();
    match form {
        None | Some(Form::Leaf) => {}
        Some(Form::Members(members)) => {
            for (name, value) in members {
                children.insert(format!("f:{name}"), value);
            }
        }
        Some(Form::Elements(list)) => {
            for (element, value) in list {
                children.entry(element).or_insert(value);
            }
        }
    }
    children
}

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
            for (element, values) in grouped(list) {
                let mut node = match values[..] {
                    [value] => set_of(below(schema, &element), value),
                    // Elements that should be different and are not are one value.
                    _ => Node::default(),
                };
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
                let below = differ_in(inner, old.get(element), new.get(element));
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

/// How the parts of one name differ. Of list elements that should be different and are not all are one
/// value together.
fn differ_in(
    schema: Option<&Schema>,
    old: Option<&Vec<&Value>>,
    new: Option<&Vec<&Value>>,
) -> Difference {
    let one = |values: Option<&Vec<&_>>| values.is_none_or(|values| values.len() == 1);
    if one(old) && one(new) {
        let first = |values: Option<&Vec<_>>| values.and_then(|values| values.first().copied());
        return differ(schema, first(old), first(new));
    }
    let mut difference = Difference::default();
    if old != new {
        match (old.is_some(), new.is_some()) {
            (false, _) => difference.added.member = true,
            (true, false) => difference.removed.member = true,
            (true, true) => difference.modified.member = true,
        }
    }
    difference
}

fn grouped(list: Vec<(String, &Value)>) -> BTreeMap<String, Vec<&Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (element, value) in list {
        groups.entry(element).or_default().push(value);
    }
    groups
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        None | Some(_) => false,
    }
}

/// The parts of a value by element. A list may have several of one element.
fn children(form: Option<Form<'_>>) -> BTreeMap<String, Vec<&Value>> {
    match form {
        None | Some(Form::Leaf) => BTreeMap::new(),
        Some(Form::Members(members)) => members
            .iter()
            .map(|(name, value)| (format!("f:{name}"), vec![value]))
            .collect(),
        Some(Form::Elements(list)) => grouped(list),
    }
}

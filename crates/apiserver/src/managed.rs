//! Who owns which fields: `metadata.managedFields` and server-side apply.
//!
//! Objects are compared by the schema of their kind. An update takes the fields that it changes from
//! whoever had them; an apply owns what it names, may not change what others own, and removes what
//! it named before and does not name any more.

mod compare;
mod entries;
mod field_set;
mod merge;
mod typed;

use std::collections::BTreeMap;

use serde_json::Value;

use self::compare::{Comparison, Form, below, compare, form, named_as_members, to_set};
pub(crate) use self::entries::{Entry, Managers, Operation, Writer, same_but_for_times};
pub(crate) use self::field_set::FieldSet;
use self::merge::{merge, without};
use crate::schema::Schema;
use crate::status::{Cause, Status};

/// Gets the fields of an object that was never tracked when it is applied for the first time.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Members of every object that nobody owns.
const NOT_OWNED: [&str; 2] = ["f:apiVersion", "f:kind"];

/// Members of metadata that nobody owns.
const NOT_OWNED_METADATA: [&str; 9] = [
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:clusterName",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
];

/// Which fields of a kind an endpoint can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach<'a> {
    Everything,
    /// All top-level members but this one.
    AllBut(&'a str),
    /// Of the top-level members this one alone.
    Only(&'a str),
    /// Metadata and this top-level member.
    MetadataAnd(&'a str),
}

/// Why a configuration cannot be read by the schema of its kind, if that is so.
pub(crate) fn problem(schema: &Schema, config: &Value) -> Option<String> {
    typed::problem(schema, config)
}

/// Whether an object cannot be taken apart by the schema of its kind.
pub(crate) fn is_unreadable(schema: &Schema, object: &Value) -> bool {
    typed::is_unreadable(schema, object)
}

/// The state that an apply leads to.
pub(crate) struct Applied {
    /// The new object without managedFields; none if nothing changes.
    pub(crate) object: Option<Value>,
    pub(crate) managers: Managers,
}

/// A write as this module sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) reach: Reach<'a>,
    pub(crate) writer: &'a Writer,
    /// Now, as objects show it; none if the entry is to have no time.
    pub(crate) now: Option<&'a str>,
}

// === impl Reach ===

impl Reach<'_> {
    /// Drops the fields that the endpoint cannot write.
    fn limit(self, mut set: FieldSet) -> FieldSet {
        let is = |element: &str, member: &str| element.strip_prefix("f:") == Some(member);
        match self {
            Self::Everything => {}
            Self::AllBut(member) => set.retain(|element| !is(element, member)),
            Self::Only(member) => set.retain(|element| is(element, member)),
            Self::MetadataAnd(member) => {
                set.retain(|element| is(element, member) || is(element, "metadata"));
            }
        }
        set
    }
}

/// The managers after an update from `old` to `new`. For a creation `old` is an object about which
/// nothing was said.
pub(crate) fn update(
    context: Context<'_>,
    old: &Value,
    is_new: bool,
    new: &Value,
    mut managers: Managers,
) -> Managers {
    // An object that is not tracked stays so until it is applied.
    if !is_new && managers.is_empty() {
        return managers;
    }
    let Context {
        schema,
        reach,
        writer,
        now,
    } = context;
    let Comparison {
        added,
        modified,
        removed,
    } = compare(schema, old, new);
    let taken = reach.limit(added.union(&modified));
    let removed = reach.limit(removed);
    managers.take_from_all(&taken.union(&removed));
    let owned = strip(taken);
    if !owned.is_empty() {
        managers.give(writer, &owned, now);
    }
    managers.cap();
    managers
}

/// Applies a configuration to an object (an empty one for a creation).
///
/// # Errors
///
/// 409 with a cause for each field that another manager owns, unless it is forced.
pub(crate) fn apply(
    context: Context<'_>,
    live: &Value,
    config: &Value,
    mut managers: Managers,
    force: bool,
) -> Result<Applied, Status> {
    let Context {
        schema,
        reach,
        writer,
        now,
    } = context;
    if managers.is_empty() {
        // What was there is met through the same endpoint. A scale shows another object than it writes.
        let endpoint = match reach {
            Reach::Everything => "",
            Reach::AllBut(_) | Reach::Only(_) | Reach::MetadataAnd(_) => &writer.subresource,
        };
        let before = Writer::update(BEFORE_FIRST_APPLY, &writer.api_version, endpoint);
        let fields = Context {
            writer: &before,
            ..context
        };
        let nothing = Value::Object(serde_json::Map::new());
        managers = update(fields, &nothing, true, live, managers);
    }
    let merged = merge(Some(schema), Some(live), Some(config)).unwrap_or_default();
    let last = managers.remove(writer);
    let named = reach.limit(to_set(Some(schema), config));
    let new = prune(schema, merged, &managers, &named, last.as_ref());
    let set = strip(named);
    let Comparison {
        added,
        modified,
        removed,
    } = compare(schema, live, &new);
    let conflicts = managers.conflicts(&reach.limit(added.union(&modified)));
    if !force && !conflicts.is_empty() {
        return Err(refuse(&conflicts));
    }
    for (other, fields) in &conflicts {
        managers.take(other, fields);
    }
    managers.take_from_all(&reach.limit(removed));
    let changed = new != *live;
    let time = if changed {
        now.map(str::to_owned)
    } else {
        last.and_then(|last| last.time)
    };
    if !set.is_empty() {
        managers.insert(writer, Entry { set, time });
    }
    Ok(Applied {
        object: changed.then_some(new),
        managers,
    })
}

/// The paths of the fields that two objects have with the same values.
pub(crate) fn common_fields(schema: &Schema, one: &Value, other: &Value) -> Vec<String> {
    let Comparison {
        added,
        modified,
        removed,
    } = compare(schema, one, other);
    let differing = added.union(&modified).union(&removed);
    to_set(Some(schema), one).difference(&differing).paths()
}

/// Removes what the manager applied before and does not any more, unless somebody else owns it.
fn prune(
    schema: &Schema,
    merged: Value,
    others: &Managers,
    set: &FieldSet,
    last: Option<&Entry>,
) -> Value {
    let Some(last) = last.filter(|last| !last.set.is_empty()) else {
        return merged;
    };
    let named = |set: &FieldSet| named_as_members(Some(schema), set);
    let all = named(&to_set(Some(schema), &merged));
    let last = named(&last.set);
    let pruned = without(Some(schema), &merged, &last).unwrap_or_default();
    let owned = named(&others.owned().union(set));
    let gone = all.difference(&named(&to_set(Some(schema), &pruned)).union(&owned));
    let pruned = without(Some(schema), &merged, &gone).unwrap_or_default();
    // What was never in the manager's own set stays, though nobody may own it.
    let left = named(&to_set(Some(schema), &pruned));
    let gone = all.difference(&left).intersection(&last);
    let mut left = without(Some(schema), &merged, &gone).unwrap_or_default();
    keep_named(Some(schema), &mut left, &merged, &others.owned().union(set));
    left
}

/// An object that somebody names stays when the last member goes.
fn keep_named(schema: Option<&Schema>, left: &mut Value, merged: &Value, owned: &FieldSet) {
    let elements: Vec<String> = match form(schema, left) {
        Form::Leaf => return,
        Form::Members(members) => members.keys().map(|name| format!("f:{name}")).collect(),
        Form::Elements(list) => list.into_iter().map(|(element, _)| element).collect(),
    };
    let values: Vec<&mut Value> = match left {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(list) => list.iter_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    let merged: BTreeMap<String, &Value> = match form(schema, merged) {
        Form::Leaf => return,
        Form::Members(members) => members
            .iter()
            .map(|(name, value)| (format!("f:{name}"), value))
            .collect(),
        Form::Elements(list) => list.into_iter().collect(),
    };
    for (element, value) in elements.iter().zip(values) {
        let (Some(node), Some(before)) = (owned.node(element), merged.get(element)) else {
            continue;
        };
        if value.is_null() && before.is_object() && node.member {
            *value = Value::Object(serde_json::Map::new());
        }
        keep_named(below(schema, element), value, before, &node.children);
    }
}

/// Drops what has become null with its last part, where null is no value. A null that the configuration says stays, to
/// be refused.
pub(crate) fn drop_emptied(schema: &Schema, object: &mut Value, config: &Value) {
    drop_emptied_below(Some(schema), object, Some(config));
}

fn drop_emptied_below(schema: Option<&Schema>, value: &mut Value, config: Option<&Value>) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let field = schema.and_then(|schema| schema.member(name));
            let said = config.and_then(|config| config.get(name));
            drop_emptied_below(field, value, said);
            let may_be =
                said.is_some_and(Value::is_null) || field.is_none_or(|field| field.nullable);
            !value.is_null() || may_be
        }),
        Value::Array(_) => {
            let said: BTreeMap<String, &Value> = elements(schema, config).into_iter().collect();
            let keys: Vec<String> = elements(schema, Some(value))
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            for (key, element) in keys.iter().zip(value.as_array_mut().into_iter().flatten()) {
                drop_emptied_below(below(schema, key), element, said.get(key).copied());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The elements of a list by their keys; none of a list that is one value.
fn elements<'a>(schema: Option<&Schema>, list: Option<&'a Value>) -> Vec<(String, &'a Value)> {
    match list.map(|list| form(schema, list)) {
        Some(Form::Elements(elements)) => elements,
        Some(Form::Leaf | Form::Members(_)) | None => Vec::new(),
    }
}

/// Drops what nobody owns.
fn strip(mut set: FieldSet) -> FieldSet {
    for element in NOT_OWNED {
        set.remove_member(&[element]);
    }
    set.remove_member(&["f:metadata"]);
    for element in NOT_OWNED_METADATA {
        set.remove_member(&["f:metadata", element]);
    }
    set
}

fn refuse(conflicts: &[(Writer, FieldSet)]) -> Status {
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for (writer, fields) in conflicts {
        let described = describe(writer);
        let paths = fields.paths();
        causes.extend(paths.iter().map(|path| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {described}"),
            field: path.clone(),
        }));
        lines.push((described, paths));
    }
    lines.sort();
    let detail = match &lines[..] {
        [(described, paths)] if paths.len() == 1 => {
            format!("conflict with {described}: {}", paths[0])
        }
        _ => lines
            .iter()
            .map(|(described, paths)| {
                let list: Vec<String> = paths.iter().map(|path| format!("- {path}")).collect();
                format!("conflicts with {described}:\n{}", list.join("\n"))
            })
            .collect::<Vec<_>>()
            .join("\n"),
    };
    let mut status = Status::apply_conflict(causes);
    status.message = format!("{}: {detail}", status.message);
    status
}

/// Names a manager as conflicts do.
fn describe(writer: &Writer) -> String {
    let Writer {
        manager,
        operation,
        api_version,
        subresource,
    } = writer;
    let mut text = format!("{manager:?}");
    if !subresource.is_empty() {
        text = format!("{text} with subresource {subresource:?}");
    }
    if *operation == Operation::Update {
        text = format!("{text} using {api_version}");
    }
    text
}

#[cfg(test)]
mod tests;

//! Strategic merge patches: merge patches that know the kind, merge some lists by key, and carry
//! directives.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use crate::schema::Schema;
use crate::status::Status;

/// Says what to do with the map or list that it stands in.
const DIRECTIVE: &str = "$patch";

/// Names the members that stay.
const RETAIN_KEYS: &str = "$retainKeys";

/// In front of a list's name: the order of its elements.
const ORDER_PREFIX: &str = "$setElementOrder/";

/// In front of a list's name: values to take out.
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object.
///
/// # Errors
///
/// 400 for a patch that is no object, 500 for directives that cannot be followed.
pub(super) fn apply(object: &mut Value, patch: &Value, schema: &Schema) -> Result<(), Status> {
    let Some(patch) = patch.as_object() else {
        return Err(Status::bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type \
             map[string]interface {}",
        ));
    };
    let original = object.as_object().cloned().unwrap_or_default();
    *object = Value::Object(merge_map(original, patch, Some(schema))?);
    Ok(())
}

fn failure(why: &str) -> Status {
    Status::internal(why)
}

fn merge_map(
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<Map<String, Value>, Status> {
    match patch
        .get(DIRECTIVE)
        .map(|directive| directive.as_str().unwrap_or_default())
    {
        None | Some("merge") => {}
        Some("replace") => return Ok(without_directives(patch)),
        Some("delete") => return Ok(Map::new()),
        Some(directive) => {
            return Err(failure(&format!(
                "unknown patch type: {directive} in map: {}",
                printed(&json!(patch))
            )));
        }
    }
    retain_keys(&mut original, patch)?;
    for (name, change) in patch {
        if [DIRECTIVE, RETAIN_KEYS].contains(&name.as_str()) || name.starts_with(ORDER_PREFIX) {
            continue;
        }
        if let Some(name) = name.strip_prefix(DELETE_PREFIX) {
            delete_values(&mut original, name, change);
            continue;
        }
        if change.is_null() {
            original.remove(name);
            continue;
        }
        let field = schema.and_then(|schema| schema.member(name));
        let order = patch
            .get(&format!("{ORDER_PREFIX}{name}"))
            .and_then(Value::as_array);
        let old = original.remove(name).unwrap_or(Value::Null);
        original.insert(name.clone(), merge_value(old, change, order, field)?);
    }
    for (name, order) in patch {
        // An order may come without changes to the list.
        if let (Some(name), Some(order)) = (name.strip_prefix(ORDER_PREFIX), order.as_array())
            && !patch.contains_key(name)
            && let Some(list) = original.get_mut(name).and_then(Value::as_array_mut)
        {
            let field = schema.and_then(|schema| schema.member(name));
            let key = field.and_then(|field| field.patch_merge_key.as_deref());
            *list = arrange(list, order, list, key);
        }
    }
    Ok(original)
}

fn merge_value(
    old: Value,
    change: &Value,
    order: Option<&Vec<Value>>,
    field: Option<&Schema>,
) -> Result<Value, Status> {
    if let Some(change) = change.as_object() {
        // Some objects are one value for patches.
        if field.is_some_and(|field| field.patch_strategy_is("replace") && field.is_struct()) {
            return Ok(Value::Object(without_directives(change)));
        }
        let old = match old {
            Value::Object(old) => old,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        return merge_map(old, change, field).map(Value::Object);
    }
    let (Some(change), Some(field)) = (change.as_array(), field) else {
        return Ok(change.clone());
    };
    if !field.merges_patches() {
        return Ok(json!(change));
    }
    let Some(old) = old.as_array().cloned() else {
        let has_directive = |element: &Value| element.get(DIRECTIVE).is_some();
        // A new list is taken as it is: there is nothing to find by a key.
        if !change.iter().any(has_directive) && order.is_none() {
            return Ok(json!(change));
        }
        return merge_list(&[], change, order, field).map(Value::Array);
    };
    merge_list(&old, change, order, field).map(Value::Array)
}

fn merge_list(
    original: &[Value],
    patch: &[Value],
    order: Option<&Vec<Value>>,
    field: &Schema,
) -> Result<Vec<Value>, Status> {
    if let Some(order) = order {
        check_order(patch, order, field.patch_merge_key.as_deref())?;
    }
    let Some(key) = field.patch_merge_key.as_deref() else {
        let mut merged = original.to_vec();
        merged.extend(
            patch
                .iter()
                .filter(|value| !original.contains(value))
                .cloned(),
        );
        return Ok(arrange(
            &merged,
            order.map_or(patch, Vec::as_slice),
            original,
            None,
        ));
    };
    let items = field.resolved().items.as_deref();
    let mut merged = original.to_vec();
    let mut changes: Vec<&Map<String, Value>> = Vec::new();
    let mut replace = false;
    for element in patch {
        let Some(members) = element.as_object() else {
            return Err(failure(
                "a list of maps cannot be merged with one of other values",
            ));
        };
        match members
            .get(DIRECTIVE)
            .map(|directive| directive.as_str().unwrap_or_default())
        {
            None => changes.push(members),
            Some("replace") => replace = true,
            Some("delete") => {
                let value = merge_key(members, key)?;
                merged.retain(|element| element[key] != *value);
            }
            Some(directive) => {
                return Err(failure(&format!(
                    "unknown patch type: {directive} in map: {}",
                    printed(element)
                )));
            }
        }
    }
    if replace {
        let kept = changes.into_iter().map(without_directives);
        return Ok(kept.map(Value::Object).collect());
    }
    for change in &changes {
        let value = merge_key(change, key)?;
        match merged.iter_mut().find(|element| element[key] == *value) {
            Some(known) => {
                let old = known.as_object().cloned().unwrap_or_default();
                *known = Value::Object(merge_map(old, change, items)?);
            }
            None => merged.push(Value::Object(merge_map(Map::new(), change, items)?)),
        }
    }
    let own: Vec<Value> = changes.into_iter().map(|change| json!(change)).collect();
    Ok(arrange(
        &merged,
        order.map_or(&own, |order| order),
        original,
        Some(key),
    ))
}

fn merge_key<'a>(members: &'a Map<String, Value>, key: &str) -> Result<&'a Value, Status> {
    members
        .get(key)
        .ok_or_else(|| failure(&format!("map: does not contain declared merge key: {key}")))
}

/// Elements of a patch must stand in the order that it names, each of them.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Status> {
    let mut rest = order.iter();
    let kept = patch
        .iter()
        .filter(|element| element.get(DIRECTIVE).is_none());
    for element in kept {
        let own = identity(element, key);
        if !rest.any(|other| identity(other, key) == own) {
            return Err(failure(&format!(
                "the elements of a list in the patch do not stand in the order of its \
                 $setElementOrder: {own} has no place there"
            )));
        }
    }
    Ok(())
}

/// What tells an element of a list from the others.
fn identity<'a>(element: &'a Value, key: Option<&str>) -> &'a Value {
    match key {
        Some(key) if element.is_object() => &element[key],
        Some(_) | None => element,
    }
}

/// Orders a merged list: elements of the patch in the patch's order, the others among them as they
/// stood on the server.
fn arrange(
    merged: &[Value],
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let place = |order: &[Value], element: &Value| {
        order
            .iter()
            .position(|other| identity(other, key) == identity(element, key))
    };
    let (mut patched, mut others): (Vec<&Value>, Vec<&Value>) = merged
        .iter()
        .partition(|element| place(patch_order, element).is_some());
    patched.sort_by_key(|element| place(patch_order, element));
    others.sort_by_key(|element| place(server_order, element).unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(merged.len());
    let (mut patched, mut others) = (
        patched.into_iter().peekable(),
        others.into_iter().peekable(),
    );
    loop {
        let next = match (others.peek(), patched.peek()) {
            (None, None) => return arranged,
            (Some(_), None) => others.next(),
            (None, Some(_)) => patched.next(),
            (Some(other), Some(own)) => {
                let places = (place(server_order, other), place(server_order, own));
                let before =
                    matches!(places, (Some(other), Some(own)) if other.cmp(&own) == Ordering::Less);
                if before {
                    others.next()
                } else {
                    patched.next()
                }
            }
        };
        arranged.extend(next.cloned());
    }
}

/// Keeps only the members that the directive names.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), Status> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys: Vec<&str> = keys
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let known = |name: &String| keys.contains(&name.as_str());
    if patch
        .iter()
        .any(|(name, change)| !name.starts_with('$') && !change.is_null() && !known(name))
    {
        return Err(Status::rejected());
    }
    original.retain(|name, _| known(name));
    Ok(())
}

fn delete_values(original: &mut Map<String, Value>, name: &str, values: &Value) {
    let gone = values.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(list) = original.get_mut(name).and_then(Value::as_array_mut) {
        list.retain(|value| !gone.contains(value));
    }
}

/// A value as Go prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(printed).collect();
            format!("[{}]", list.join(" "))
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let list: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{name}:{}", printed(value)))
                .collect();
            format!("map[{}]", list.join(" "))
        }
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch
        .iter()
        .filter(|(name, _)| !name.starts_with('$'))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

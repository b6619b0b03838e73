//! Lists whose elements are different ones.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

use crate::place::Place;
use crate::status::Cause;

/// The elements of sets and list maps that are in their list twice, each told once. Where an old state
/// had some, too, nothing is said.
pub(crate) fn duplicates(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    let of = |value: &Value| {
        let mut causes = Vec::new();
        walk(schema, value, &Place::At(""), &mut causes);
        causes
    };
    match old {
        Some(old) if !of(old).is_empty() => Vec::new(),
        Some(_) | None => of(value),
    }
}

fn walk(schema: &Value, value: &Value, field: &Place<'_>, causes: &mut Vec<Cause>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if let Some(inner) = schema["properties"].get(name) {
            walk(inner, value, &Place::Member(field, name), causes);
        } else if schema["additionalProperties"].is_object() {
            let place = Place::Key(field, name);
            walk(&schema["additionalProperties"], value, &place, causes);
        }
    }
    let Some(list) = value.as_array() else { return };
    for (index, element) in list.iter().enumerate() {
        walk(
            &schema["items"],
            element,
            &Place::Element(field, index),
            causes,
        );
    }
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => twice(list.iter().map(Some), field, causes),
        Some("map") => {
            for (index, element) in list.iter().enumerate() {
                if !element.is_object() {
                    let why = "must be an object for an array of list-type map";
                    causes.push(Cause::invalid(Place::Element(field, index), element, why));
                }
            }
            let keys: Vec<Option<Value>> = list.iter().map(|one| key(schema, one)).collect();
            twice(keys.iter().map(Option::as_ref), field, causes);
        }
        Some(_) | None => {}
    }
}

/// The members of an element that tell it from the others.
fn key(schema: &Value, element: &Value) -> Option<Value> {
    let members = element.as_object()?;
    let names = schema["x-kubernetes-list-map-keys"].as_array()?.iter();
    let names = names.filter_map(Value::as_str);
    Some(
        names
            .filter_map(|name| Some((name.to_owned(), members.get(name)?.clone())))
            .collect(),
    )
}

fn twice<'a>(
    values: impl Iterator<Item = Option<&'a Value>>,
    field: &Place<'_>,
    causes: &mut Vec<Cause>,
) {
    // By their text, and whether that was told.
    let mut seen: BTreeMap<String, bool> = BTreeMap::new();
    for (index, value) in values.enumerate() {
        let Some(value) = value else { continue };
        match seen.entry(value.to_string()) {
            Entry::Vacant(entry) => {
                entry.insert(false);
            }
            Entry::Occupied(mut entry) if !entry.get() => {
                entry.insert(true);
                causes.push(Cause::duplicate(Place::Element(field, index), value));
            }
            Entry::Occupied(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_is_told_once_and_by_its_key() {
        let set = json!({ "type": "array", "x-kubernetes-list-type": "set" });
        let schema = json!({ "properties": { "m": { "additionalProperties": set } } });
        let value = json!({ "m": { "a": [1, 2, 1, 1] } });
        let causes = duplicates(&schema, &value, None);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["m[a][2]"]);
        assert_eq!(duplicates(&schema, &value, Some(&value)), []);
    }
}

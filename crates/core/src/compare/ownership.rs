//! Whether a manager owns what it wants to apply.

use serde_json::{Map, Value};

/// Whether `fields`, an entry's `fieldsV1` in an object's `managedFields`, is the set of fields of
/// `applied`: an apply that says the same again changes the owner of nothing and removes nothing.
///
/// When in doubt the answer is no: one request too many does no harm.
#[must_use]
pub fn owns(fields: &Value, applied: &Value) -> bool {
    let Value::Object(fields) = fields else {
        return false;
    };
    let parts = fields.keys().filter(|name| *name != ".").count();
    match applied {
        // What is owned as a whole has no parts: scalars, and maps and lists that are atomic.
        _ if parts == 0 => true,
        Value::Object(members) => {
            let mut members = members.iter().filter(|(_, value)| !value.is_null());
            let mut told = 0;
            let all_owned = members.all(|(name, value)| {
                told += 1;
                let owned = fields.get(&format!("f:{name}"));
                owned.is_some_and(|owned| owns(owned, value))
            });
            all_owned && told == parts
        }
        Value::Array(elements) => {
            elements.len() == parts && elements.iter().all(|element| owns_element(fields, element))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn owns_element(fields: &Map<String, Value>, element: &Value) -> bool {
    fields.iter().any(|(name, owned)| {
        let Some((kind, name)) = name.split_once(':') else {
            return false;
        };
        let Ok(name) = serde_json::from_str::<Value>(name) else {
            return false;
        };
        match (kind, &name) {
            ("v", value) => value == element,
            // A key that has a default need not be told, so only those that are count.
            ("k", Value::Object(keys)) => {
                let mut keys = keys.iter();
                keys.all(|(key, value)| element[key].is_null() || element[key] == *value)
                    && owns(owned, element)
            }
            _ => false,
        }
    })
}

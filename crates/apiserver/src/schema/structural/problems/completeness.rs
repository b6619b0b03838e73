//! What is said of values at the root is said of fields that the structure has.

use serde_json::Value;

use super::JUNCTORS;
use crate::status::Cause;

/// Checks what the root says of values. Servers look at the root alone, though the rule is told of every schema: see
/// `complete.go` in Kubernetes' `apiextensions-apiserver`.
pub(super) fn of_root(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    parts(schema, Some(schema), place, place, causes);
}

/// Checks the parts of what is said at `said_at` against the structure at `place`.
fn parts(
    said: &Value,
    structure: Option<&Value>,
    place: &str,
    said_at: &str,
    causes: &mut Vec<Cause>,
) {
    if said["not"].is_object() {
        let said_at = format!("{said_at}.not");
        nested(&said["not"], structure, place, &said_at, causes);
    }
    for junctor in JUNCTORS {
        for (index, part) in said[junctor].as_array().into_iter().flatten().enumerate() {
            let said_at = format!("{said_at}.{junctor}[{index}]");
            nested(part, structure, place, &said_at, causes);
        }
    }
}

fn nested(
    said: &Value,
    structure: Option<&Value>,
    place: &str,
    said_at: &str,
    causes: &mut Vec<Cause>,
) {
    let Some(known) = structure else {
        let why = format!("because it is defined in {said_at}");
        causes.push(Cause::required(place, &why));
        return;
    };
    parts(said, structure, place, said_at, causes);
    if said["items"].is_object() {
        let items = known.get("items").filter(|items| items.is_object());
        let (place, said_at) = (format!("{place}.items"), format!("{said_at}.items"));
        nested(&said["items"], items, &place, &said_at, causes);
    }
    for (name, property) in said["properties"].as_object().into_iter().flatten() {
        let own = |place: &str| format!("{place}.properties[{name}]");
        let field = known["properties"].get(name);
        nested(property, field, &own(place), &own(said_at), causes);
    }
}

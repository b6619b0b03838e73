//! Rules for slices of endpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object;
use crate::registry::forms;
use crate::status::Cause;

const MAX_ENDPOINTS: u64 = 1000;

const MAX_PORTS: u64 = 20_000;

/// What a slice's ports and the number of its endpoints break.
pub(super) fn causes(slice: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (list, most) in [("endpoints", MAX_ENDPOINTS), ("ports", MAX_PORTS)] {
        let found = object::elements(slice, list).count() as u64;
        if found > most {
            causes.push(Cause::too_many(list, found, most));
            return causes;
        }
    }
    let mut known = BTreeSet::new();
    for (index, port) in object::elements(slice, "ports").enumerate() {
        let field = format!("ports[{index}].name");
        let name = port["name"].as_str().unwrap_or_default();
        if !name.is_empty() {
            let cause = |why| Cause::invalid(field.clone(), &json!(name), why);
            causes.extend(forms::label(name).into_iter().map(cause));
        }
        if !known.insert(name) {
            causes.push(Cause::duplicate(field, &json!(name)));
        }
    }
    causes
}

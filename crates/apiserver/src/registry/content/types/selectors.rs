//! The terms of selectors.

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::registry::forms;
use crate::status::Cause;

/// A term of a selector of labels.
pub(super) fn of_labels(term: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let values = term["values"].as_array().map_or(0, Vec::len);
    let place = field.member("values");
    match term["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if values == 0 => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(place, why));
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(place, why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => unknown_operator(other, field, causes),
    }
    label_values(term, field, causes);
}

/// A term of a selector of nodes.
pub(super) fn of_nodes(term: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let values = term["values"].as_array().map_or(0, Vec::len);
    match term["operator"].as_str().unwrap_or_default() {
        "Gt" | "Lt" => {
            if values != 1 {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.push(Cause::required(field.member("values"), why));
            }
            label_values(term, field, causes);
        }
        _ => of_labels(term, field, causes),
    }
}

fn unknown_operator(operator: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let why = "not a valid selector operator";
    causes.push(Cause::invalid(
        field.member("operator"),
        &json!(operator),
        why,
    ));
}

fn label_values(term: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("values");
    for (index, value) in object::elements(term, "values").enumerate() {
        let problems = forms::label_value(value.as_str().unwrap_or_default());
        let cause = |why| Cause::invalid(list.element(index), value, why);
        causes.extend(problems.into_iter().map(cause));
    }
}

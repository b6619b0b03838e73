//! What is checked of custom objects: the schema of their definition, and its rules.

use serde_json::{Value, json};

use super::{Target, definitions, names};
use crate::resource::{Custom, Resource};
use crate::schema::{Findings, duplicates, validate};
use crate::status::Cause;

/// Reasons of causes after which no rule is looked at: a rule may rely on the schema.
const BLOCKING: [&str; 5] = [
    "FieldValueTypeInvalid",
    "FieldValueRequired",
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "FieldValueTooMany",
];

/// Does beforehand what takes long about a write: looks through the schemas of a definition, or compiles
/// what a definition says of its objects, as far as this one comes to it. What is wrong is told by the write.
pub(crate) fn look_ahead(resource: &Resource, text: &[u8]) {
    let Some(custom) = &resource.custom else {
        return definitions::look_ahead(resource, text);
    };
    if let Ok(object) = serde_json::from_slice::<Value>(text) {
        let schema = &custom.structural;
        validate(schema, &object, None, ["", ""], &custom.patterns);
        custom.rules.check(schema, &object, None, &custom.patterns);
    }
}

/// Checks a state of a custom object; `old` is the state before an update.
pub(super) fn findings(
    target: &Target,
    custom: &Custom,
    object: &Value,
    old: Option<&Value>,
) -> Findings {
    let schema = &custom.structural;
    let is_status = target.is_subresource("status");
    let mut findings = Findings {
        causes: if is_status {
            status_causes(custom, object, old)
        } else {
            validate(schema, object, old, ["", ""], &custom.patterns)
        },
        warnings: Vec::new(),
    };
    let causes = &mut findings.causes;
    if !is_status && let Some(scale) = &custom.scale {
        for path in [&scale.spec_replicas, &scale.status_replicas] {
            causes.extend(replicas_cause(object, path));
        }
    }
    embedded_causes(schema, object, old, "", causes);
    causes.extend(duplicates(schema, object, old));
    if custom.rules.is_empty() {
        return findings;
    }
    if causes.iter().any(|cause| BLOCKING.contains(&cause.reason)) {
        let why = "some validation rules were not checked because the object was invalid; correct \
                   the existing errors to complete validation";
        causes.push(Cause::invalid("<nil>", &Value::Null, why));
        return findings;
    }
    let Findings { causes, warnings } = custom.rules.check(schema, object, old, &custom.patterns);
    findings.causes.extend(causes);
    findings.warnings.extend(warnings);
    findings
}

/// Through its own subresource only the status can be wrong.
fn status_causes(custom: &Custom, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let old = old.and_then(|old| old.get("status"));
    object.get("status").map_or_else(Vec::new, |status| {
        let schema = &custom.structural["properties"]["status"];
        validate(schema, status, old, ["status", ""], &custom.patterns)
    })
}

/// Checks the labels and annotations of objects inside of the object.
fn embedded_causes(
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    field: &str,
    causes: &mut Vec<Cause>,
) {
    if old == Some(value) {
        return;
    }
    if schema["x-kubernetes-embedded-resource"] == true {
        let own = names::label_causes(value)
            .into_iter()
            .chain(names::annotation_causes(value));
        causes.extend(own.map(|cause| Cause {
            field: format!("{field}.{}", cause.field),
            ..cause
        }));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let inner = schema["properties"].get(name);
        let inner = inner.unwrap_or(&schema["additionalProperties"]);
        let old = old.and_then(|old| old.get(name));
        let place = if field.is_empty() {
            name.clone()
        } else {
            format!("{field}.{name}")
        };
        embedded_causes(inner, value, old, &place, causes);
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        let place = format!("{field}[{index}]");
        embedded_causes(&schema["items"], element, None, &place, causes);
    }
}

/// What scale shows must be a number that is not negative.
fn replicas_cause(object: &Value, path: &str) -> Option<Cause> {
    let wrong = |value: &Value, wanted: &str| {
        let whole = value.as_f64().filter(|number| number.fract() == 0.0);
        let shown = match (value.as_str(), whole) {
            (Some(text), _) => text.to_owned(),
            (None, Some(number)) => format!("{number:.0}"),
            (None, None) => value.to_string(),
        };
        let kind = match value {
            Value::Null => "<nil>",
            Value::Bool(_) => "bool",
            Value::Number(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "[]interface {}",
            Value::Object(_) => "map[string]interface {}",
        };
        let why =
            format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}");
        Some(Cause::invalid(path, &json!(0), &why))
    };
    let mut value = object;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        if !value.is_object() {
            return wrong(value, "map[string]interface{}");
        }
        value = value.get(name)?;
    }
    let Some(number) = value.as_i64() else {
        return wrong(value, "int64");
    };
    let why = if number < 0 {
        "should be a non-negative integer"
    } else if i32::try_from(number).is_err() {
        "should be less than or equal to 2147483647"
    } else {
        return None;
    };
    Some(Cause::invalid(path, value, why))
}

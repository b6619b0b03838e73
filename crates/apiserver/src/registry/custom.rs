//! What is checked of custom objects: the schema of their definition, and its rules.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Target, definitions, names};
use crate::place::Place;
use crate::resource::{Custom, Resource};
use crate::schema::{Findings, decode_custom, duplicates, validate};
use crate::status::Cause;

/// Reasons of causes after which no rule is looked at: a rule may rely on the schema.
const BLOCKING: [&str; 5] = [
    "FieldValueTypeInvalid",
    "FieldValueRequired",
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "FieldValueTooMany",
];

/// Members of a custom object that fit the schema of their definition, found before somebody has to wait for their
/// write.
#[derive(Debug)]
pub(crate) struct Vouched {
    resource: Arc<Resource>,
    members: Map<String, Value>,
}

/// Members that the write itself changes.
const CHANGED_BY_WRITE: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Does beforehand what takes long about a write of `object`: looks through the schemas of a definition, or compiles
/// what a definition says of its objects, as far as this one comes to it, and holds the object against its schema.
/// What is wrong is told by the write.
pub(crate) fn look_ahead(resource: &Arc<Resource>, object: &Value) -> Option<Vouched> {
    if resource.is_definition() {
        definitions::look_ahead(resource, object.clone());
        return None;
    }
    let custom = resource.custom.as_ref()?;
    let mut object = object.clone();
    decode_custom(&mut object, &resource.schema);
    let schema = &custom.structural;
    let causes = validate(schema, &object, None, ["", ""], &[], &custom.patterns);
    custom.rules.check(schema, &object, None, &custom.patterns);
    let Value::Object(mut members) = object else {
        return None;
    };
    members.retain(|name, _| !CHANGED_BY_WRITE.contains(&name.as_str()));
    causes.is_empty().then(|| Vouched {
        resource: Arc::clone(resource),
        members,
    })
}

// === impl Vouched ===

impl Vouched {
    /// The members of an object that are known to fit.
    fn of<'a>(&'a self, target: &Target, object: &Value) -> Vec<&'a str> {
        let known = self.members.iter();
        let same = known.filter(|(name, value)| object.get(name.as_str()) == Some(value));
        let names = same.map(|(name, _)| name.as_str());
        if Arc::ptr_eq(&self.resource, &target.resource) {
            names.collect()
        } else {
            Vec::new()
        }
    }
}

/// Checks a state of a custom object; `old` is the state before an update. What is vouched for is not held against
/// the schema again.
pub(super) fn findings(
    target: &Target,
    custom: &Custom,
    object: &Value,
    old: Option<&Value>,
    vouched: Option<&Vouched>,
) -> Findings {
    let fitting = vouched.map_or_else(Vec::new, |vouched| vouched.of(target, object));
    let schema = &custom.structural;
    let is_status = target.is_subresource("status");
    let mut findings = Findings {
        causes: if is_status {
            status_causes(custom, object, old)
        } else {
            validate(schema, object, old, ["", ""], &fitting, &custom.patterns)
        },
        warnings: Vec::new(),
    };
    let causes = &mut findings.causes;
    if !is_status && let Some(scale) = &custom.scale {
        for path in [&scale.spec_replicas, &scale.status_replicas] {
            causes.extend(replicas_cause(object, path));
        }
    }
    embedded_causes(schema, object, old, &Place::At(""), causes);
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
        validate(schema, status, old, ["status", ""], &[], &custom.patterns)
    })
}

/// Checks the labels and annotations of objects inside of the object.
fn embedded_causes(
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    field: &Place<'_>,
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
        embedded_causes(inner, value, old, &Place::Member(field, name), causes);
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        let place = Place::Element(field, index);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::from_definition;
    use crate::storage::Object;

    fn target() -> Target {
        let schema = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "properties": { "name": { "type": "string", "pattern": "^a+$" } } },
            "other": { "type": "string", "pattern": "^a+$" },
        } });
        let names = json!({ "plural": "things", "kind": "Thing" });
        let versions = json!([{
            "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
        }]);
        let definition = json!({
            "spec": { "group": "example.com", "names": names, "versions": versions },
            "status": { "acceptedNames": names },
        });
        let resource = from_definition(&Object::new(definition)).remove(0);
        Target {
            resource: Arc::new(resource),
            namespace: String::new(),
            name: String::new(),
            subresource: None,
        }
    }

    #[track_caller]
    fn check(target: &Target, object: &Value, vouched: &Vouched, expected: &[&str]) {
        let custom = target
            .resource
            .custom
            .as_ref()
            .expect("it is a custom kind");
        let findings = findings(target, custom, object, None, Some(vouched));
        let fields = findings.causes.iter().map(|cause| cause.field.as_str());
        assert_eq!(fields.collect::<Vec<_>>(), expected, "{object}");
    }

    #[test]
    fn what_is_vouched_for_is_not_checked_again_and_all_else_is() {
        let target = target();
        // It would not fit, which shows who looks at it.
        let spec = json!({ "name": "b" });
        let vouched = Vouched {
            resource: Arc::clone(&target.resource),
            members: Map::from_iter([("spec".to_owned(), spec.clone())]),
        };
        check(&target, &json!({ "spec": spec }), &vouched, &[]);
        check(
            &target,
            &json!({ "spec": spec, "other": "b" }),
            &vouched,
            &["other"],
        );
        check(
            &target,
            &json!({ "spec": { "name": "c" } }),
            &vouched,
            &["spec.name"],
        );
        // By another definition, or another version of it.
        let other = self::target();
        check(&other, &json!({ "spec": spec }), &vouched, &["spec.name"]);
    }

    #[test]
    fn only_what_fits_is_vouched_for() {
        let target = target();
        let object = |name: &str| json!({ "metadata": {}, "spec": { "name": name, "unknown": 1 } });
        assert!(look_ahead(&target.resource, &object("b")).is_none());
        let vouched = look_ahead(&target.resource, &object("a")).expect("it fits");
        // As it is stored, and without what the write changes.
        let members = json!({ "spec": { "name": "a" } });
        assert_eq!(Value::Object(vouched.members), members);
    }
}

mod problems;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use self::problems::structural_problems;
use super::{Schema, TypeName};

/// The schema that a custom resource definition states in `openAPIV3Schema`.
pub(crate) fn from_structural(raw: &Value) -> Schema {
    let text = |member: &str| raw[member].as_str();
    let flag = |member: &str| raw[member].as_bool().unwrap_or_default();
    let int_or_string = flag("x-kubernetes-int-or-string");
    let kind = if int_or_string {
        Some(TypeName::Several(vec![
            "integer".to_owned(),
            "string".to_owned(),
        ]))
    } else {
        text("type").map(|name| TypeName::One(name.to_owned()))
    };
    let fields: BTreeMap<String, Schema> = raw["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), from_structural(schema)))
        .collect();
    // `additionalProperties: true` allows anything and describes nothing.
    let values = &raw["additionalProperties"];
    let values = (values.is_object() || *values == Value::Bool(true))
        .then(|| Box::new(from_structural(values)));
    let items = raw["items"]
        .is_object()
        .then(|| Box::new(from_structural(&raw["items"])));
    let names = |member: &str| {
        let list = raw[member].as_array().into_iter().flatten();
        list.filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    let mut schema = Schema {
        kind,
        fields,
        required: names("required"),
        items,
        values,
        default: raw.get("default").cloned(),
        list_map_keys: names("x-kubernetes-list-map-keys"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        nullable: flag("nullable"),
        embedded: flag("x-kubernetes-embedded-resource"),
        ..Schema::default()
    };
    schema.set_list_type(text("x-kubernetes-list-type"));
    schema.set_atomic_map(text("x-kubernetes-map-type") == Some("atomic"));
    schema
}

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use serde_json::Value;

use super::{
    Custom, DeleteAnswer, Lazily, Lifecycle, Part, Resource, ScalePaths, Subresource, column,
    version_priority,
};
use crate::fingerprint::fingerprint;
use crate::object;
use crate::pattern::Patterns;
use crate::schema::{Rules, Schema, from_structural};
use crate::storage::Object;

/// What a custom resource can do.
const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// The resources that an established definition serves: one for each served version.
pub(crate) fn from_definition(definition: &Object) -> Vec<Resource> {
    let text = definition.text().whole();
    versions_of(definition)
        .iter()
        .enumerate()
        .filter(|(_, version)| version["served"] == true)
        .map(|(index, version)| served(definition, version, Place { text, index }))
        .collect()
}

/// Where a version stands. What is read later holds only the text, which storage holds too.
#[derive(Clone, Copy)]
struct Place<'a> {
    text: &'a Bytes,
    index: usize,
}

// === impl Place ===

impl Place<'_> {
    /// What is made of the definition and of the version when that is first needed.
    fn lazily<T: 'static>(self, make: fn(&Value, &Value) -> T) -> Lazily<T> {
        let Self { text, index } = self;
        let text = text.clone();
        Lazily::new(Box::new(move || {
            let definition: Value =
                serde_json::from_slice(&text).expect("what was encoded here can be decoded");
            make(&definition, &definition["spec"]["versions"][index])
        }))
    }
}

fn structural(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

fn served(definition: &Value, version: &Value, place: Place<'_>) -> Resource {
    let spec = &definition["spec"];
    // The names that were accepted, which may be older ones than those asked for.
    let names = &definition["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    };
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let kind = text(&names["kind"]);
    let status = version["subresources"]["status"].is_object();
    let scale = scale_paths(&version["subresources"]["scale"]);
    let stored = storage_version(definition);
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Resource {
        storage: Arc::from(format!("{group}/{plural}")),
        version: text(&version["name"]),
        singular: text(&names["singular"]),
        list_kind: text(&names["listKind"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS.map(str::to_owned).to_vec(),
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        subresources: subresources(&kind, status, scale.is_some()),
        field_selectors: ["metadata.name".to_owned(), "metadata.namespace".to_owned()]
            .into_iter()
            .chain(
                selectable.map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned()),
            )
            .collect(),
        columns: column::of_version(version),
        lifecycle: Lifecycle {
            generation: true,
            generation_raised_by: vec![Part::Spec],
            unconditional_update: false,
            create_by_put: false,
            delete_answers: DeleteAnswer::Status,
            filled: Value::Null,
        },
        schema: place.lazily(schema_of),
        custom: Some(Custom {
            scale,
            has_defaults: has_defaults(structural(version)),
            seen: AtomicBool::new(false),
            fingerprint: fingerprint([structural(version).to_string().as_str()]),
            patterns: Patterns::default(),
            rules: Rules::of(structural(version)),
            structural: place.lazily(|_, version| structural(version).clone()),
            storage_version: text(&stored["name"]),
            storage_schema: (stored["name"] != version["name"]).then(|| {
                place.lazily(|definition, _| schema_of(definition, storage_version(definition)))
            }),
            terminating: object::is_being_deleted(definition),
            deprecation: deprecation(definition, version),
        }),
        group,
        plural,
        kind,
    }
}

/// Whether there is a default anywhere in a schema.
fn has_defaults(schema: &Value) -> bool {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let inner = [&schema["items"], &schema["additionalProperties"]];
    schema.get("default").is_some()
        || properties.map(|(_, schema)| schema).any(has_defaults)
        || inner
            .into_iter()
            .any(|schema| schema.is_object() && has_defaults(schema))
}

/// The version in which objects are stored: the one that says so.
fn storage_version(definition: &Value) -> &Value {
    let mut versions = versions_of(definition).iter();
    versions
        .find(|version| version["storage"] == true)
        .unwrap_or(&Value::Null)
}

/// The schema of a version, with what every object has.
fn schema_of(definition: &Value, version: &Value) -> Schema {
    let mut schema = from_structural(&version["schema"]["openAPIV3Schema"]);
    schema
        .fields
        .insert("metadata".to_owned(), Schema::object_meta());
    schema.preserve_unknown |= definition["spec"]["preserveUnknownFields"] == true;
    schema
}

fn subresources(kind: &str, status: bool, scale: bool) -> Vec<Subresource> {
    let verbs: Vec<String> = ["get", "patch", "update"].map(str::to_owned).to_vec();
    let status = status.then(|| Subresource {
        name: "status".to_owned(),
        kind: kind.to_owned(),
        verbs: verbs.clone(),
        group: None,
        version: None,
    });
    let scale = scale.then(|| Subresource {
        name: "scale".to_owned(),
        kind: "Scale".to_owned(),
        verbs,
        group: Some("autoscaling".to_owned()),
        version: Some("v1".to_owned()),
    });
    status.into_iter().chain(scale).collect()
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    Some(ScalePaths {
        spec_replicas: scale["specReplicasPath"].as_str()?.to_owned(),
        status_replicas: scale["statusReplicasPath"].as_str()?.to_owned(),
        selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    })
}

/// What the users of a deprecated version are told: what the definition says, or which version to use.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let kind = &definition["status"]["acceptedNames"]["kind"];
    let kind = kind.as_str().unwrap_or_default();
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let own = name(version);
    let better = versions_of(definition)
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(name)
        .filter(|other| version_priority(other) < version_priority(&own))
        .min_by_key(|other| version_priority(other));
    let advice = better.map_or_else(String::new, |better| {
        format!("; use {group}/{better} {kind}")
    });
    Some(format!("{group}/{own} {kind} is deprecated{advice}"))
}

fn versions_of(definition: &Value) -> &[Value] {
    let versions = definition["spec"]["versions"].as_array();
    versions.map_or(&[], Vec::as_slice)
}

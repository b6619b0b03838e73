use std::sync::Arc;

use serde_json::Value;

use super::{Custom, DeleteAnswer, Lifecycle, Part, Resource, ScalePaths, Subresource, column};
use crate::object;
use crate::schema::{Rules, Schema, from_structural};

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
pub(crate) fn from_definition(definition: &Value) -> Vec<Resource> {
    let versions = definition["spec"]["versions"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| served(definition, version))
        .collect()
}

fn served(definition: &Value, version: &Value) -> Resource {
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
    let structural = version["schema"]["openAPIV3Schema"].clone();
    let mut schema = from_structural(&structural);
    schema
        .fields
        .insert("metadata".to_owned(), Schema::object_meta());
    schema.preserve_unknown |= spec["preserveUnknownFields"] == true;
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
        schema,
        custom: Some(Custom {
            scale,
            has_defaults: has_defaults(&structural),
            // What is wrong was found when the definition was written.
            rules: Rules::compile(&structural, "").0,
            structural,
            storage_version: storage_version(definition),
            terminating: object::is_being_deleted(definition),
            deprecation: deprecation(&group, &kind, version),
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
fn storage_version(definition: &Value) -> String {
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let stored = versions
        .into_iter()
        .find(|version| version["storage"] == true);
    stored
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default()
        .to_owned()
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

fn deprecation(group: &str, kind: &str, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    Some(version["deprecationWarning"].as_str().map_or_else(
        || {
            format!(
                "{group}/{} {kind} is deprecated",
                version["name"].as_str().unwrap_or_default()
            )
        },
        str::to_owned,
    ))
}

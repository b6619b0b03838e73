//! Descriptions of what is served, in `OpenAPI` 3: for `kubectl explain`, for clients that look
//! whether the server checks fields, and for strategic merge patches, which need the keys of lists.

mod gnostic;
mod paths;
mod schemas;
mod v2;

use serde_json::{Map, Value, json};

use super::Answer;
use crate::fingerprint::fingerprint;
use crate::resource::{Catalog, Resource};

/// `/openapi/v3`: a document for each group and version. The URL changes when the document does.
pub(super) fn index(catalog: &Catalog) -> Value {
    let mut paths = Map::new();
    for resource in catalog.all() {
        let path = prefix(&resource.group, &resource.version);
        if !paths.contains_key(&path) {
            let hash = hash(&catalog.served(&resource.group, &resource.version));
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths })
}

/// `api/v1`, `apis/<group>/<version>`
fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Identifies what a document says. Built-in ones never change.
fn hash(resources: &[&Resource]) -> String {
    let custom = resources
        .iter()
        .filter_map(|resource| Some((resource, resource.custom.as_ref()?)));
    let texts: Vec<String> = custom
        .map(|(resource, custom)| {
            let names: Vec<&str> = resource
                .subresources
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            let schema = &custom.fingerprint;
            format!("{} {} {names:?} {schema}", resource.plural, resource.kind)
        })
        .collect();
    fingerprint(texts.iter().map(String::as_str))
}

/// `/openapi/v3/api/<version>`, `/openapi/v3/apis/<group>/<version>`
pub(super) fn document(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let resources = catalog.served(group, version);
    if resources.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.2" },
        "paths": paths::of(&resources),
        "components": { "schemas": schemas::of(&resources) },
    }))
}

/// `/openapi/v2`: everything in one document, as JSON or as kubectl asks for it.
pub(super) fn whole(catalog: &Catalog, accept: &str) -> Answer {
    let document = v2::whole(catalog);
    if gnostic::ACCEPTED.iter().any(|name| accept.contains(name)) {
        return Answer::Bytes {
            content_type: gnostic::MEDIA_TYPE,
            bytes: gnostic::encode(&document).into(),
        };
    }
    Answer::Document {
        content_type: "application/json",
        body: document,
    }
}

/// The name under which the type of a resource is described.
fn type_name(resource: &Resource) -> String {
    if let Some(name) = &resource.schema.reference {
        return name.clone();
    }
    let labels: Vec<&str> = resource.group.rsplit('.').collect();
    let group = labels.join(".");
    format!("{group}.{}.{}", resource.version, resource.kind)
}

fn list_type_name(resource: &Resource) -> String {
    format!("{}List", type_name(resource))
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[cfg(test)]
mod tests;

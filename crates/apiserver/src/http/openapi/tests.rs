use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::storage::Object;

/// Every text under `$ref`, anywhere in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    if let Some(members) = value.as_object() {
        for (name, inner) in members {
            match inner.as_str().filter(|_| name == "$ref") {
                Some(text) => {
                    found.insert(text.to_owned());
                }
                None => references(inner, found),
            }
        }
    }
    for element in value.as_array().into_iter().flatten() {
        references(element, found);
    }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.define(&Object::new(definition("integer")));
    catalog
}

fn definition(kind: &str) -> Value {
    json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": {
                        "replicas": { "type": kind, "description": "How many." },
                    } } },
                } },
            }],
        },
        "status": { "acceptedNames": {
            "kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget",
        } },
    })
}

#[test]
fn every_document_of_the_index_is_there_and_every_reference_leads_somewhere() {
    let catalog = catalog();
    let index = index(&catalog);
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/example.com/v1"));
    for path in paths.keys() {
        let parts: Vec<&str> = path.split('/').collect();
        let (group, version) = match parts.as_slice() {
            ["api", version] => ("", *version),
            ["apis", group, version] => (*group, *version),
            _ => panic!("{path} is no group and version"),
        };
        let document = document(&catalog, group, version).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(!found.is_empty(), "{path}");
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{path}: {reference}");
        }
    }
}

#[test]
fn a_custom_resource_is_described_as_its_definition_says() {
    let document = document(&catalog(), "example.com", "v1").unwrap();
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    let replicas = &schema["properties"]["spec"]["properties"]["replicas"];
    assert_eq!(replicas["description"], "How many.");
    let kind = json!({ "group": "example.com", "version": "v1", "kind": "Widget" });
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([kind]));
    let path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}";
    let operation = &document["paths"][path]["patch"];
    assert_eq!(operation["x-kubernetes-group-version-kind"], kind);
    let bodies = operation["requestBody"]["content"].as_object().unwrap();
    assert!(bodies.contains_key("application/merge-patch+json"));
    assert!(!bodies.contains_key("application/strategic-merge-patch+json"));
    let status = &document["paths"][format!("{path}/status")];
    assert!(status["put"].is_object() && status["delete"].is_null());
}

#[test]
fn lists_of_built_in_kinds_have_the_keys_that_patches_need() {
    let document = document(&catalog(), "apps", "v1").unwrap();
    let schemas = &document["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let content = &document["paths"][path]["patch"]["requestBody"]["content"];
    assert!(content["application/strategic-merge-patch+json"].is_object());
}

#[test]
fn the_url_of_a_document_changes_with_it() {
    let url = |catalog: &Catalog, path: &str| index(catalog)["paths"][path].to_string();
    let mut catalog = catalog();
    let (before, core) = (
        url(&catalog, "apis/example.com/v1"),
        url(&catalog, "api/v1"),
    );
    catalog.define(&Object::new(definition("string")));
    assert_ne!(url(&catalog, "apis/example.com/v1"), before);
    assert_eq!(url(&catalog, "api/v1"), core);
}

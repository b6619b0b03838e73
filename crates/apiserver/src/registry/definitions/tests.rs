//! Definitions: what is refused, and which names are accepted.

use serde_json::{Value, json};

use super::acceptance::accept;
use super::{causes, prepare};
use crate::registry::defaults;

/// A definition that is right.
fn definition() -> Value {
    let mut definition = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {} },
                } } },
            }],
        },
    });
    defaults::complete_definition(&mut definition);
    prepare(&mut definition);
    definition
}

/// The same with a member changed; its status is that of a new definition.
fn with(pointer: &str, value: Value) -> Value {
    let mut definition = definition();
    let (parent, name) = pointer.rsplit_once('/').expect("a path");
    definition.pointer_mut(parent).expect("it is there")[name] = value;
    prepare(&mut definition);
    definition
}

#[track_caller]
fn fields(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let causes = causes(definition, old).into_iter();
    causes.map(|cause| cause.field).collect()
}

#[test]
fn refused() {
    assert_eq!(causes(&definition(), None), []);
    for (pointer, value, field) in [
        (
            "/metadata/name",
            json!("others.example.com"),
            "metadata.name",
        ),
        ("/spec/scope", json!("Local"), "spec.scope"),
        ("/spec/scope", json!(null), "spec.scope"),
        ("/spec/versions", json!([]), "spec.versions"),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields",
        ),
        (
            "/spec/conversion",
            json!({ "strategy": "Magic" }),
            "spec.conversion.strategy",
        ),
        ("/spec/names/kind", json!(""), "spec.names.kind"),
        ("/spec/names/kind", json!("Th_ing"), "spec.names.kind"),
        (
            "/spec/names/listKind",
            json!("Thing"),
            "spec.names.listKind",
        ),
        (
            "/spec/names/shortNames",
            json!(["ok", "Not"]),
            "spec.names.shortNames[1]",
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("w"),
            "spec.versions[0].deprecationWarning",
        ),
        ("/spec/versions/0/storage", json!(false), "spec.versions"),
        (
            "/spec/versions/0/subresources",
            json!({ "scale": { "specReplicasPath": ".status.x", "statusReplicasPath": ".status.x" } }),
            "spec.versions[0].subresources.scale.specReplicasPath",
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{ "name": "a", "jsonPath": ".a", "type": "text" }]),
            "spec.additionalPrinterColumns[0].type",
        ),
    ] {
        let found = fields(&with(pointer, value.clone()), None);
        assert!(
            found.contains(&field.to_owned()),
            "{pointer} {value}: {found:?}"
        );
    }
    for group in ["", "Example.com", "local"] {
        let mut definition = with("/spec/group", json!(group));
        definition["metadata"]["name"] = json!(format!("things.{group}"));
        assert_eq!(fields(&definition, None), ["spec.group"], "{group}");
    }
}

/// Schemas for a spec, and what is refused of each.
#[track_caller]
fn are_refused(table: &[(Value, &str)]) {
    let place = "spec.validation.openAPIV3Schema.properties[spec]";
    for (schema, field) in table {
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        let found = fields(&with(path, schema.clone()), None);
        assert_eq!(found, [format!("{place}{field}")], "{schema}");
    }
}

#[test]
fn refused_schemas() {
    are_refused(&[
        (json!({ "properties": {} }), ".type"),
        (json!({ "type": "array" }), ".items"),
        (json!({ "type": "array", "items": {} }), ".items.type"),
        (
            json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }),
            ".uniqueItems",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" }, "properties": { "a": { "type": "string" } } }),
            ".additionalProperties",
        ),
        (
            json!({ "type": "object", "not": { "default": 1 } }),
            ".not.default",
        ),
        (
            json!({ "type": "object", "allOf": [{ "items": { "nullable": true } }] }),
            ".allOf[0].items.nullable",
        ),
        (json!({ "type": "string", "pattern": "(" }), ".pattern"),
        (json!({ "type": "string", "default": 5 }), ".default"),
        (
            json!({ "type": "string", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true }),
            ".type",
        ),
        (json!({ "type": "object", "$ref": "#/x" }), ".$ref"),
        (
            json!({ "x-kubernetes-int-or-string": true, "allOf": [
                { "pattern": "a" }, { "anyOf": [{ "type": "integer" }, { "pattern": "b" }] },
            ] }),
            ".allOf[1].anyOf[0].type",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                    "items": { "type": "object", "properties": { "a": { "type": "string" } } } }),
            ".items.properties[a].default",
        ),
        (
            json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self" }] }),
            ".x-kubernetes-validations[0].rule",
        ),
    ]);
}

#[test]
fn refused_lists_and_maps() {
    are_refused(&[
        (
            json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "bag" }),
            ".x-kubernetes-list-type",
        ),
        (
            json!({ "type": "array", "items": { "type": "object" }, "x-kubernetes-list-type": "map" }),
            ".x-kubernetes-list-map-keys",
        ),
        (
            json!({ "type": "object", "x-kubernetes-list-type": "set" }),
            ".type",
        ),
        (
            json!({ "type": "object", "x-kubernetes-map-type": "set" }),
            ".x-kubernetes-map-type",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-map-keys": ["a"], "items": { "type": "string" } }),
            ".x-kubernetes-list-type",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"],
                    "items": { "type": "object", "properties": { "a": { "type": "string" } } } }),
            ".x-kubernetes-list-map-keys",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                    "items": { "type": "object", "required": ["a"], "properties": { "a": { "type": "object" } } } }),
            ".items.properties[a].type",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "object" } }),
            ".items.x-kubernetes-map-type",
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set",
                    "items": { "type": "string", "nullable": true } }),
            ".items.nullable",
        ),
    ]);
}

#[test]
fn numbers_or_texts() {
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    for schema in [
        json!({ "x-kubernetes-int-or-string": true }),
        json!({ "type": "string", "x-kubernetes-int-or-string": true }),
        json!({ "x-kubernetes-int-or-string": true, "anyOf": either }),
        json!({ "x-kubernetes-int-or-string": true, "allOf": [{ "anyOf": either }, { "pattern": "a" }] }),
    ] {
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let found = fields(&with(path, json!({ "p": schema })), None);
        assert_eq!(found, [""; 0], "{schema}");
    }
}

/// An update can neither change what is fixed nor make anything wrong; what was wrong may stay.
#[test]
fn updates() {
    let old = definition();
    let mut established = old.clone();
    established["status"]["conditions"] = json!([{ "type": "Established", "status": "True" }]);
    let wrong = with("/spec/versions/0/deprecationWarning", json!("w"));
    let mut labelled = wrong.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    for (old, new, expected) in [
        (&old, with("/spec/scope", json!("Cluster")), &[][..]),
        (
            &established,
            with("/spec/scope", json!("Cluster")),
            &["spec.scope"],
        ),
        (
            &established,
            with("/spec/names/kind", json!("Other")),
            &["spec.names.kind"],
        ),
        (&wrong, labelled, &[]),
        (
            &old,
            wrong.clone(),
            &["spec.versions[0].deprecationWarning"],
        ),
    ] {
        assert_eq!(fields(&new, Some(old)), expected);
    }
}

#[test]
fn names() {
    let mut first = definition();
    first["status"]["acceptedNames"] = first["spec"]["names"].clone();
    first["status"]["acceptedNames"]["shortNames"] = json!(["th"]);
    for (names, reason, kind) in [
        (
            json!({ "plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList" }),
            None,
            "Other",
        ),
        (
            json!({ "plural": "others", "singular": "other", "kind": "Thing", "listKind": "OtherList" }),
            Some("KindConflict"),
            "",
        ),
        (
            json!({ "plural": "others", "singular": "thing", "kind": "Other", "listKind": "OtherList" }),
            Some("SingularConflict"),
            "Other",
        ),
        (
            json!({ "plural": "th", "singular": "other", "kind": "Other", "listKind": "OtherList" }),
            Some("PluralConflict"),
            "Other",
        ),
        (
            json!({ "plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList", "shortNames": ["th"] }),
            Some("ShortNamesConflict"),
            "Other",
        ),
    ] {
        let second = with("/spec/names", names.clone());
        let accepted = accept(&second, &[&first]);
        assert_eq!(
            accepted.conflict.map(|(reason, _)| reason),
            reason,
            "{names}"
        );
        assert_eq!(accepted.names["kind"], kind, "{names}");
    }
}

use serde_json::{Value, json};

use super::structural_problems;

/// The rules are those of `ValidateStructural` and `ValidateCustomResourceDefinitionOpenAPISchema` in Kubernetes'
/// `apiextensions-apiserver`.
#[track_caller]
fn check(schema: &Value, has_status: bool, expected: &[&str]) {
    let found: Vec<String> = structural_problems(schema, "s", has_status)
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    assert_eq!(found, expected, "{schema}");
}

fn root(members: &Value) -> Value {
    let mut schema = json!({ "type": "object" });
    let Some(all) = schema.as_object_mut() else {
        return schema;
    };
    for (name, member) in members.as_object().into_iter().flatten() {
        all.insert(name.clone(), member.clone());
    }
    schema
}

#[test]
fn what_the_root_may_say() {
    check(
        &json!({ "x-kubernetes-preserve-unknown-fields": true }),
        true,
        &[],
    );
    let untyped = "s.type: Required value: must not be empty at the root";
    check(&json!({ "properties": {} }), true, &[untyped]);
    let values = json!({ "additionalProperties": { "type": "string" } });
    let forbidden = "s.additionalProperties: Forbidden: must not be used at the root";
    check(&root(&values), false, &[forbidden]);
    let nullable = "s.nullable: Forbidden: nullable cannot be true at the root";
    check(&root(&json!({ "nullable": true })), false, &[nullable]);
}

#[test]
fn with_a_status_the_root_says_less() {
    let one_of = json!({
        "properties": { "a": { "type": "string" } },
        "oneOf": [{ "required": ["a"] }],
    });
    check(&root(&one_of), false, &[]);
    let found = structural_problems(&root(&one_of), "s", true);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "s");
    let names = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                 ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                 MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields \
                 XValidations] fields are allowed at the root of the schema if the status \
                 subresource is enabled";
    assert!(found[0].message.ends_with(names), "{}", found[0].message);
    // What says nothing is not there.
    check(
        &root(&json!({ "nullable": false, "anyOf": [], "enum": null })),
        true,
        &[],
    );
}

#[test]
fn what_is_said_of_values_is_in_the_structure() {
    let known = json!({ "spec": { "type": "object", "properties": {
        "a": { "type": "string" },
        "list": { "type": "array", "items": { "type": "object", "properties": { "x": { "type": "string" } } } },
    } } });
    let spec = |inner: Value| json!({ "properties": { "spec": inner } });
    for (said, expected) in [
        (spec(json!({ "required": ["a"] })), vec![]),
        (
            spec(json!({ "properties": { "a": { "minLength": 1 } } })),
            vec![],
        ),
        (
            spec(json!({ "properties": { "list": { "items": { "properties": { "x": {} } } } } })),
            vec![],
        ),
        (
            spec(json!({ "properties": { "b": {} } })),
            vec![
                "s.properties[spec].properties[b]: Required value: because it is defined in \
                 s.anyOf[0].properties[spec].properties[b]",
            ],
        ),
        (
            spec(json!({ "properties": { "a": { "items": {} } } })),
            vec![
                "s.properties[spec].properties[a].items: Required value: because it is defined in \
                 s.anyOf[0].properties[spec].properties[a].items",
            ],
        ),
        (
            json!({ "not": { "properties": { "other": {} } } }),
            vec![
                "s.properties[other]: Required value: because it is defined in \
                 s.anyOf[0].not.properties[other]",
            ],
        ),
    ] {
        let schema = root(&json!({ "properties": known, "anyOf": [said] }));
        check(&schema, false, &expected);
    }
    // Further inside, servers do not look.
    let inner = json!({ "properties": { "spec": {
        "type": "object", "anyOf": [{ "properties": { "b": {} } }],
    } } });
    check(&root(&inner), true, &[]);
}

#[test]
fn what_every_object_has() {
    let with = |name: &str, property: Value| root(&json!({ "properties": { name: property } }));
    check(&with("metadata", json!({ "type": "object" })), true, &[]);
    let names =
        json!({ "type": "object", "properties": { "name": { "type": "string", "maxLength": 9 } } });
    check(&with("metadata", names), true, &[]);
    let more = "s.properties[metadata]: Forbidden: must not specify anything other than name and \
                generateName, but metadata is implicitly specified";
    let described = json!({ "type": "object", "description": "x" });
    check(&with("metadata", described), true, &[more]);
    let labels = json!({ "type": "object", "properties": { "labels": { "type": "object" } } });
    check(&with("metadata", labels), true, &[more]);
    check(
        &with("metadata", json!({ "type": "string" })),
        true,
        &["s.properties[metadata].type: Invalid value: \"string\": must be object"],
    );
    check(
        &with("kind", json!({ "type": "integer" })),
        true,
        &["s.properties[kind].type: Invalid value: \"integer\": must be string"],
    );
    check(
        &with("kind", json!({ "type": "string", "default": "x" })),
        true,
        &["s.properties[kind].default: Forbidden: must not be set in top-level kind"],
    );
    let nested = root(&json!({
        "properties": { "metadata": { "type": "object" } },
        "anyOf": [{ "properties": { "metadata": {} } }],
    }));
    check(
        &nested,
        false,
        &["s.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
    );
}

#[test]
fn embedded_objects() {
    let with = |property: Value| root(&json!({ "properties": { "o": property } }));
    let embedded = "x-kubernetes-embedded-resource";
    let open = "x-kubernetes-preserve-unknown-fields";
    check(
        &with(json!({ "type": "object", embedded: true, open: true })),
        true,
        &[],
    );
    check(
        &with(json!({ embedded: true, open: true })),
        true,
        &[
            "s.properties[o].type: Required value: must be object if x-kubernetes-embedded-resource is true",
        ],
    );
    check(
        &with(json!({ "type": "object", embedded: true })),
        true,
        &[
            "s.properties[o].properties: Required value: must not be empty if \
           x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    let metadata = json!({ "type": "object", "properties": { "metadata": { "type": "array", "items": { "type": "string" } } } });
    let mut schema = metadata.clone();
    schema[embedded] = json!(true);
    check(
        &with(schema),
        true,
        &["s.properties[o].properties[metadata].type: Invalid value: \"array\": must be object"],
    );
    check(&with(metadata), true, &[]);
    check(
        &with(json!({ "x-kubernetes-int-or-string": true, open: true })),
        true,
        &[
            "s.properties[o].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be \
           false if x-kubernetes-int-or-string is true",
        ],
    );
}

#[test]
fn keywords_are_checked_in_what_is_said_of_values_too() {
    let with = |property: Value| root(&json!({ "properties": { "a": property } }));
    check(
        &with(
            json!({ "type": "array", "items": { "type": "string" }, "not": { "uniqueItems": true } }),
        ),
        true,
        &[
            "s.properties[a].not.uniqueItems: Forbidden: uniqueItems cannot be set to true since the \
           runtime complexity becomes quadratic",
        ],
    );
    // Of what cannot be read as a structure, nothing is said of the structure.
    check(
        &with(json!({ "$ref": "#/x" })),
        true,
        &["s.properties[a].$ref: Forbidden: $ref is not supported"],
    );
    check(
        &with(json!({ "type": "null" })),
        true,
        &[
            "s.properties[a].type: Unsupported value: \"null\": supported values: \"array\", \
             \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            "s.properties[a].type: Forbidden: type cannot be set to null, use nullable as an \
             alternative",
        ],
    );
    // A number or a text can be said of any type.
    let choice = json!([{ "type": "integer" }, { "type": "string" }]);
    check(
        &with(json!({ "type": "string", "anyOf": choice })),
        true,
        &[],
    );
    check(
        &with(json!({ "type": "string", "x-kubernetes-int-or-string": true })),
        true,
        &[],
    );
}

use serde_json::json;

use super::*;
use crate::schema::from_structural;

/// A kind with every sort of list and map.
fn schema() -> Schema {
    from_structural(&json!({
        "type": "object",
        "properties": { "status": { "type": "object" }, "spec": { "type": "object", "properties": {
            "replicas": { "type": "integer" },
            "image": { "type": "string" },
            "settings": { "type": "object", "additionalProperties": { "type": "string" } },
            "tags": {
                "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"],
                "items": { "type": "object", "properties": {
                    "port": { "type": "integer" }, "name": { "type": "string" },
                } },
            },
            "steps": { "type": "array", "items": { "type": "string" } },
        } } },
    }))
}

fn writer(operation: Operation, manager: &str) -> Writer {
    Writer {
        operation,
        ..Writer::update(manager, "v1", "")
    }
}

/// Lets managers apply and update in turn: `(manager, operation, spec)`, and answers the last spec
/// with who owns what.
fn play(steps: &[(&str, Operation, Value)]) -> (Value, Vec<(String, Vec<String>)>) {
    let schema = schema();
    let mut object = json!({});
    let mut managers = Managers::default();
    for (index, (manager, operation, spec)) in steps.iter().enumerate() {
        let writer = writer(*operation, manager);
        let context = Context {
            schema: &schema,
            reach: Reach::Everything,
            writer: &writer,
            now: Some("t"),
        };
        let body = json!({ "spec": spec });
        match operation {
            Operation::Update => {
                managers = update(context, &object, index == 0, &body, managers);
                object = body;
            }
            Operation::Apply => {
                let applied = apply(context, &object, &body, managers, false);
                let Ok(applied) = applied else {
                    panic!("conflict in step {index}")
                };
                managers = applied.managers;
                object = applied.object.unwrap_or(object);
            }
        }
    }
    let owners = managers
        .conflicts(&managers.owned())
        .into_iter()
        .map(|(writer, fields)| (writer.manager, fields.paths()))
        .collect();
    (object["spec"].clone(), owners)
}

#[track_caller]
fn check(steps: &[(&str, Operation, Value)], spec: &Value, owners: &[(&str, &[&str])]) {
    let (found, found_owners) = play(steps);
    assert_eq!(found, *spec);
    let owners: Vec<(String, Vec<String>)> = owners
        .iter()
        .map(|(manager, paths)| {
            (
                (*manager).to_owned(),
                paths.iter().map(|path| (*path).to_owned()).collect(),
            )
        })
        .collect();
    assert_eq!(found_owners, owners);
}

#[test]
fn an_apply_removes_what_it_dropped_and_keeps_what_others_own() {
    use Operation::Apply;
    check(
        &[
            (
                "one",
                Apply,
                json!({ "replicas": 1, "image": "i", "tags": ["a", "b"] }),
            ),
            ("two", Apply, json!({ "image": "i", "tags": ["c", "b"] })),
            ("one", Apply, json!({ "tags": ["d"] })),
        ],
        &json!({ "image": "i", "tags": ["c", "b", "d"] }),
        &[
            ("one", &[".spec.tags[=\"d\"]"]),
            (
                "two",
                &[".spec.image", ".spec.tags[=\"b\"]", ".spec.tags[=\"c\"]"],
            ),
        ],
    );
}

#[test]
fn an_update_takes_what_it_changes() {
    use Operation::{Apply, Update};
    check(
        &[
            (
                "one",
                Apply,
                json!({ "replicas": 1, "ports": [{ "port": 80, "name": "a" }] }),
            ),
            (
                "two",
                Update,
                json!({ "replicas": 2, "ports": [{ "port": 80, "name": "a" }] }),
            ),
        ],
        &json!({ "replicas": 2, "ports": [{ "port": 80, "name": "a" }] }),
        &[
            (
                "one",
                &[
                    ".spec.ports[port=80]",
                    ".spec.ports[port=80].name",
                    ".spec.ports[port=80].port",
                ],
            ),
            ("two", &[".spec.replicas"]),
        ],
    );
}

#[test]
fn the_first_apply_of_an_untracked_object_meets_its_fields() {
    let schema = schema();
    let writer = writer(Operation::Apply, "one");
    let context = Context {
        schema: &schema,
        reach: Reach::Everything,
        writer: &writer,
        now: Some("t"),
    };
    let live = json!({ "spec": { "replicas": 1 } });
    let config = json!({ "spec": { "replicas": 2 } });
    let refused = apply(context, &live, &config, Managers::default(), false)
        .err()
        .unwrap();
    assert_eq!(refused.code, 409);
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .spec.replicas"
    );
    let forced = apply(context, &live, &config, Managers::default(), true)
        .ok()
        .unwrap();
    assert_eq!(forced.object, Some(config));
}

/// What an endpoint cannot write is not met there, and who had it before writes there too.
#[test]
fn the_first_apply_meets_what_its_endpoint_can_write() {
    let schema = schema();
    let writer = Writer::apply("one", "v1", "status");
    let context = Context {
        schema: &schema,
        reach: Reach::Only("status"),
        writer: &writer,
        now: Some("t"),
    };
    let live = json!({ "spec": { "replicas": 1 }, "status": { "phase": "a", "seen": 1 } });
    let config = json!({ "spec": { "replicas": 2 }, "status": { "phase": "b" } });
    let refused = apply(context, &live, &config, Managers::default(), false);
    assert_eq!(
        refused.err().unwrap().message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" with subresource \
         \"status\" using v1: .status.phase"
    );
    let forced = apply(context, &live, &config, Managers::default(), true);
    let owners = forced.ok().unwrap().managers;
    let owners = owners.conflicts(&owners.owned());
    let paths: Vec<Vec<String>> = owners.iter().map(|(_, fields)| fields.paths()).collect();
    assert_eq!(
        paths,
        [[".status.phase"].as_slice(), &[".status", ".status.seen"]]
    );
}

/// Where anything may be, a value that becomes a map or the other way round changes, and the parts
/// come and go.
#[test]
fn a_value_that_becomes_a_map() {
    let schema = from_structural(&json!({
        "type": "object",
        "properties": { "free": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        } },
    }));
    let writer = writer(Operation::Update, "one");
    let context = Context {
        schema: &schema,
        reach: Reach::Everything,
        writer: &writer,
        now: Some("t"),
    };
    let one = json!({ "free": { "a": [1] } });
    let other = json!({ "free": { "a": { "b": 1 } } });
    let first = update(context, &json!({}), true, &one, Managers::default());
    let second = update(context, &one, false, &other, first.clone());
    assert_eq!(second.owned().paths(), [".free", ".free.a", ".free.a.b"],);
    let third = update(context, &other, false, &one, second);
    assert_eq!(third, first);
}

#[test]
fn the_same_apply_again_changes_nothing() {
    let schema = schema();
    let writer = writer(Operation::Apply, "one");
    let config = json!({ "spec": { "replicas": 1, "settings": {}, "ports": [{ "port": 80 }] } });
    let context = Context {
        schema: &schema,
        reach: Reach::Everything,
        writer: &writer,
        now: Some("1"),
    };
    let first = apply(context, &json!({}), &config, Managers::default(), false)
        .ok()
        .unwrap();
    let object = first.object.unwrap();
    let later = Context {
        now: Some("2"),
        ..context
    };
    let second = apply(later, &object, &config, first.managers.clone(), false)
        .ok()
        .unwrap();
    assert!(second.object.is_none());
    assert_eq!(second.managers, first.managers, "the time stays as well");
}

/// What the server filled in of an element's keys is not taken away by the next apply.
#[test]
fn an_element_that_is_named_by_defaults_alone() {
    let schema = from_structural(&json!({
        "type": "object",
        "properties": { "ports": {
            "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": { "type": "object", "properties": {
                "port": { "type": "integer", "default": 80 },
            } },
        } },
    }));
    let writer = writer(Operation::Apply, "x");
    let context = Context {
        schema: &schema,
        reach: Reach::Everything,
        writer: &writer,
        now: Some("t"),
    };
    let config = json!({ "ports": [{}] });
    let stored = json!({ "ports": [{ "port": 80 }] });
    let nobody = Managers::default();
    let Ok(first) = apply(context, &json!({}), &config, nobody, false) else {
        panic!("nobody else is there")
    };
    let Ok(second) = apply(context, &stored, &config, first.managers, false) else {
        panic!("nobody else is there")
    };
    assert_eq!(second.object, None);
}

#[test]
fn written_sets_are_read_back() {
    let fields = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
        "f:spec": { "f:ports": { "k:{\"port\":80}": { ".": {}, "f:port": {} } } },
    });
    assert_eq!(FieldSet::read(&fields).write(), fields);
}

/// More than ten updaters are too many: the oldest become one.
#[test]
fn ancient_changes() {
    let schema = schema();
    let mut object = json!({ "spec": {} });
    let mut managers = Managers::default();
    for number in 0..12 {
        let writer = writer(Operation::Update, &format!("m{number:02}"));
        let now = format!("{number:02}");
        let context = Context {
            schema: &schema,
            reach: Reach::Everything,
            writer: &writer,
            now: Some(&now),
        };
        let mut new = object.clone();
        new["spec"]["settings"][format!("k{number}")] = json!("v");
        managers = update(context, &object, number == 0, &new, managers);
        object = new;
    }
    let entries = managers.write();
    let names: Vec<&str> = entries
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names[..3], ["ancient-changes", "m03", "m04"]);
    assert_eq!(entries[0]["time"], "02");
    let settings = &entries[0]["fieldsV1"]["f:spec"]["f:settings"];
    assert_eq!(
        *settings,
        json!({ ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {} })
    );
}

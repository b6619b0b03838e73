//! Paths and what can be done there.

use serde_json::{Map, Value, json};

use super::{list_type_name, prefix, reference, type_name};
use crate::http::resource::patch_types;
use crate::resource::{Resource, Subresource};

/// What can be done at one path, with the resource's verb for it.
#[derive(Clone, Copy)]
struct Operation {
    verb: &'static str,
    method: &'static str,
    action: &'static str,
    parameters: &'static [&'static str],
    takes: Body,
}

/// The body that a request has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    Object,
    Patch,
    DeleteOptions,
}

const LIST_PARAMETERS: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

const WRITE_PARAMETERS: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];

const DELETE_PARAMETERS: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "orphanDependents",
    "propagationPolicy",
];

const LIST: Operation = Operation {
    verb: "list",
    method: "get",
    action: "list",
    parameters: LIST_PARAMETERS,
    takes: Body::None,
};

const ON_COLLECTION: [Operation; 3] = [
    LIST,
    Operation {
        verb: "create",
        method: "post",
        action: "post",
        parameters: WRITE_PARAMETERS,
        takes: Body::Object,
    },
    Operation {
        verb: "deletecollection",
        method: "delete",
        action: "deletecollection",
        parameters: DELETE_PARAMETERS,
        takes: Body::DeleteOptions,
    },
];

const ON_OBJECT: [Operation; 4] = [
    Operation {
        verb: "get",
        method: "get",
        action: "get",
        parameters: &[],
        takes: Body::None,
    },
    Operation {
        verb: "update",
        method: "put",
        action: "put",
        parameters: WRITE_PARAMETERS,
        takes: Body::Object,
    },
    Operation {
        verb: "patch",
        method: "patch",
        action: "patch",
        parameters: &["dryRun", "fieldManager", "fieldValidation", "force"],
        takes: Body::Patch,
    },
    Operation {
        verb: "delete",
        method: "delete",
        action: "delete",
        parameters: DELETE_PARAMETERS,
        takes: Body::DeleteOptions,
    },
];

/// What the operations at a path are about.
struct Subject<'a> {
    resource: &'a Resource,
    subresource: Option<&'a Subresource>,
    collection: bool,
}

/// Every path of the resources.
pub(super) fn of(resources: &[&Resource]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let base = format!("/{}", prefix(&resource.group, &resource.version));
        let everywhere = format!("{base}/{}", resource.plural);
        let collection = if resource.namespaced {
            format!("{base}/namespaces/{{namespace}}/{}", resource.plural)
        } else {
            everywhere.clone()
        };
        let object = format!("{collection}/{{name}}");
        let subject = |subresource, collection| Subject {
            resource,
            subresource,
            collection,
        };
        let mut add = |path: String, item: Value| {
            if item.as_object().is_some_and(|members| members.len() > 1) {
                paths.insert(path, item);
            }
        };
        if resource.namespaced {
            add(
                everywhere.clone(),
                item(&everywhere, &subject(None, true), &[LIST]),
            );
        }
        let item_of_collection = item(&collection, &subject(None, true), &ON_COLLECTION);
        add(collection, item_of_collection);
        add(
            object.clone(),
            item(&object, &subject(None, false), &ON_OBJECT),
        );
        for subresource in &resource.subresources {
            let path = format!("{object}/{}", subresource.name);
            // A POST of a subresource is about one object.
            let operations = [&ON_OBJECT[..], &ON_COLLECTION[1..2]].concat();
            let item = item(&path, &subject(Some(subresource), false), &operations);
            add(path, item);
        }
    }
    Value::Object(paths)
}

/// The operations of a path that the resource's verbs allow.
fn item(path: &str, subject: &Subject<'_>, operations: &[Operation]) -> Value {
    let verbs = match subject.subresource {
        Some(subresource) => &subresource.verbs,
        None => &subject.resource.verbs,
    };
    let in_path: Vec<Value> = ["namespace", "name"]
        .into_iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text() }))
        .collect();
    let mut item = json!({ "parameters": in_path });
    for operation in operations {
        if verbs.iter().any(|verb| verb == operation.verb) {
            item[operation.method] = described(subject, operation);
        }
    }
    item
}

fn described(subject: &Subject<'_>, operation: &Operation) -> Value {
    let resource = subject.resource;
    let (group, version, kind) = match subject.subresource {
        Some(subresource) => (
            subresource.group.as_deref().unwrap_or(&resource.group),
            subresource.version.as_deref().unwrap_or(&resource.version),
            subresource.kind.as_str(),
        ),
        None => (
            resource.group.as_str(),
            resource.version.as_str(),
            resource.kind.as_str(),
        ),
    };
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": text() }))
        .collect();
    let own = type_name(resource);
    let answer = if subject.collection && operation.action == "list" {
        reference(&list_type_name(resource))
    } else {
        reference(&own)
    };
    let mut described = json!({
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "OK",
                "content": { "application/json": { "schema": answer } },
            },
        },
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
    });
    let meta = |name: &str| reference(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
    let content = match operation.takes {
        Body::None => return described,
        Body::Object => json!({ "*/*": { "schema": reference(&own) } }),
        Body::DeleteOptions => json!({ "*/*": { "schema": meta("DeleteOptions") } }),
        Body::Patch => patch_types(resource)
            .into_iter()
            .map(|name| (name.to_owned(), json!({ "schema": meta("Patch") })))
            .collect::<Map<_, _>>()
            .into(),
    };
    described["requestBody"] = json!({ "content": content });
    described
}

fn text() -> Value {
    json!({ "type": "string" })
}

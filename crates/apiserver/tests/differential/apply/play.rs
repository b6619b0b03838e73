//! Sends each step to the server, and compares.

use std::time::Duration;

use serde_json::{Value, json};

use super::fields::{Element, Path, Paths, path};
use super::managers::{Causes, Managers, Operation};
use super::model::{Answer, Model, Object};
use super::step::{Step, Verb, Version};
use crate::server::{Server, text};

const PATH: &str = "/apis/model.example.com/v1/namespaces/default/shapes";

/// The server and the model.
pub(crate) struct Play {
    server: Server,
    model: Model,
    /// The version of the first list.
    start: String,
}

// === impl Play ===

impl Play {
    pub(crate) async fn begin() -> Result<Self, String> {
        let server = Server::new();
        server.define(definition()).await?;
        let (_, list) = server.send("GET", PATH, None, None).await?;
        Ok(Self {
            server,
            model: Model::default(),
            start: text(&list, "/metadata/resourceVersion"),
        })
    }

    /// Plays one step.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), String> {
        if step.late {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let (method, path, content_type, body) = self.request(step);
        let (code, body) = self.server.send(method, &path, content_type, body).await?;
        match self.model.step(step) {
            Answer::Error(expected, reason) => {
                let got = (code, text(&body, "/reason"));
                let conflicts = body.pointer("/details/causes/0/reason");
                let is_other = conflicts == Some(&json!("FieldManagerConflict"));
                if got != (expected, reason.to_owned()) || is_other {
                    return Err(format!("{got:?} instead of {expected} {reason}: {body}"));
                }
            }
            Answer::Conflicts(causes) => {
                if (code, conflicts(&body)) != (409, Some(causes.clone())) {
                    return Err(format!("{code} {body} instead of {causes:?}"));
                }
            }
            Answer::Success if code == 200 => {}
            Answer::Object(expected, object) if code == expected => {
                self.compare(&object, &body, !step.dry_run)?;
            }
            expected @ (Answer::Success | Answer::Object(..)) => {
                return Err(format!("{code} instead of {expected:?}: {body}"));
            }
        }
        self.compare_list().await
    }

    /// Compares what a watch shows that began before the first step.
    pub(crate) async fn end(mut self) -> Result<(), String> {
        let start = &self.start;
        let path = format!("{PATH}?watch=1&timeoutSeconds=1&resourceVersion={start}");
        let events = self.server.lines(&path).await?;
        let expected = std::mem::take(&mut self.model.events);
        let types: Vec<String> = events.iter().map(|event| text(event, "/type")).collect();
        let expected_types: Vec<&str> = expected.iter().map(|(kind, _)| *kind).collect();
        if types != expected_types {
            return Err(format!("{types:?} instead of {expected_types:?}"));
        }
        for ((_, object), event) in expected.iter().zip(&events) {
            self.compare(object, &event["object"], true)
                .map_err(|error| format!("in an event: {error}"))?;
        }
        Ok(())
    }

    /// Method, path with query, content type and body of a step.
    fn request(&self, step: &Step) -> (&'static str, String, Option<&'static str>, Option<Value>) {
        let Step {
            name,
            late: _,
            dry_run,
            manager,
            status,
            verb,
        } = step;
        let dry_run = if *dry_run { "&dryRun=All" } else { "" };
        let query = format!("fieldManager={manager}{dry_run}");
        let endpoint = if *status { "/status" } else { "" };
        let object = format!("{PATH}/{name}{endpoint}?{query}");
        let whole = |body: &Value, version: Version, reset: bool| {
            let mut body = body.clone();
            body["apiVersion"] = json!("model.example.com/v1");
            body["kind"] = json!("Shape");
            body["metadata"]["name"] = json!(name);
            let known = self.model.objects.get(name);
            let version = match version {
                Version::Unsaid => None,
                Version::Current => known.map(|object| self.server.version(object.revision)),
                Version::Stale => Some(1),
            };
            if let Some(version) = version {
                body["metadata"]["resourceVersion"] = json!(version.to_string());
            }
            if reset {
                body["metadata"]["managedFields"] = json!([{}]);
            }
            body
        };
        match verb {
            Verb::Apply {
                config,
                force,
                version,
            } => {
                let path = format!("{object}&force={force}");
                let body = whole(config, *version, false);
                (
                    "PATCH",
                    path,
                    Some("application/apply-patch+yaml"),
                    Some(body),
                )
            }
            Verb::Create { body } => {
                let body = whole(body, Version::Unsaid, false);
                ("POST", format!("{PATH}?{query}"), None, Some(body))
            }
            Verb::Put {
                body,
                version,
                reset,
            } => ("PUT", object, None, Some(whole(body, *version, *reset))),
            Verb::Merge { patch, reset } => {
                let mut patch = patch.clone();
                if *reset {
                    patch["metadata"]["managedFields"] = json!([{}]);
                }
                (
                    "PATCH",
                    object,
                    Some("application/merge-patch+json"),
                    Some(patch),
                )
            }
            Verb::Delete => ("DELETE", format!("{PATH}/{name}?{query}"), None, None),
        }
    }

    async fn compare_list(&mut self) -> Result<(), String> {
        let (code, list) = self.server.send("GET", PATH, None, None).await?;
        let none = vec![];
        let items = list["items"].as_array().unwrap_or(&none);
        let expected: Vec<Object> = self.model.objects.values().cloned().collect();
        if code != 200 || items.len() != expected.len() {
            return Err(format!("{code} {list}, and not the list of {expected:?}"));
        }
        for (object, item) in expected.iter().zip(items) {
            self.compare(object, item, true)?;
        }
        Ok(())
    }

    /// Compares an object. What was not stored has neither a version nor a uid that would count.
    fn compare(&mut self, expected: &Object, got: &Value, stored: bool) -> Result<(), String> {
        let (wanted, seen) = (show(expected), show_json(got));
        if wanted != seen {
            return Err(format!("{seen}\ninstead of\n{wanted}"));
        }
        let (wanted, seen) = (entries(&expected.managers), entries_json(got));
        if wanted != seen {
            return Err(format!("{seen:#?}\ninstead of\n{wanted:#?}\nof {got}"));
        }
        if stored {
            self.server.note(expected.uid, expected.revision, got)?;
        }
        Ok(())
    }
}

/// What counts of an object beside its managers.
fn show(object: &Object) -> Value {
    let at = |names: &[&str]| object.fields.to_json_at(&path(names));
    json!({
        "name": object.name,
        "generation": object.generation,
        "deleting": object.is_being_deleted(),
        "labels": at(&["metadata", "labels"]),
        "finalizers": at(&["metadata", "finalizers"]),
        "spec": at(&["spec"]),
        "status": at(&["status"]),
    })
}

/// The same of what the server sent.
fn show_json(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "name": metadata["name"],
        "generation": metadata["generation"],
        "deleting": metadata.get("deletionTimestamp").is_some(),
        "labels": metadata["labels"],
        "finalizers": metadata["finalizers"],
        "spec": object["spec"],
        "status": object["status"],
    })
}

/// An entry: operation, manager, subresource and time, and what it owns.
type Entry = ([String; 4], Paths);

fn entries(managers: &Managers) -> Vec<Entry> {
    let entry = |(manager, entry): &(&super::managers::Manager, &super::managers::Entry)| {
        let operation = match manager.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let subresource = if manager.status { "status" } else { "" };
        let time = |time: u64| format!("2026-01-01T00:{:02}:{:02}Z", time / 60, time % 60);
        let time = entry.time.map(time).unwrap_or_default();
        let name = [operation, manager.name, subresource, &time];
        (name.map(str::to_owned), entry.owned.clone())
    };
    managers.in_order().iter().map(entry).collect()
}

fn entries_json(object: &Value) -> Vec<Entry> {
    let list = object["metadata"]["managedFields"].as_array();
    let entry = |entry: &Value| {
        let member = |name: &str| text(entry, &format!("/{name}"));
        let name = ["operation", "manager", "subresource", "time"].map(member);
        let mut owned = Paths::new();
        read(&entry["fieldsV1"], &mut vec![], &mut owned);
        (name, owned)
    };
    list.into_iter().flatten().map(entry).collect()
}

/// Reads a set of fields as it stands in an entry.
fn read(set: &Value, way: &mut Path, into: &mut Paths) {
    for (name, below) in set.as_object().into_iter().flatten() {
        if name == "." {
            into.insert(way.clone());
            continue;
        }
        let (kind, rest) = name.split_at(2);
        way.push(match kind {
            "k:" => Element::Keys(rest.to_owned()),
            "v:" => Element::Item(rest.to_owned()),
            _ => Element::Member(rest.to_owned()),
        });
        if below == &json!({}) {
            into.insert(way.clone());
        }
        read(below, way, into);
        way.pop();
    }
}

/// The causes of a refused apply, if it is one.
fn conflicts(status: &Value) -> Option<Causes> {
    let causes = status["details"]["causes"].as_array()?;
    let cause = |cause: &Value| {
        let is_conflict = cause["reason"] == "FieldManagerConflict";
        is_conflict.then(|| (text(cause, "/message"), text(cause, "/field")))
    };
    causes.iter().map(cause).collect()
}

fn definition() -> Value {
    let integer = || json!({ "type": "integer" });
    let string = || json!({ "type": "string" });
    let object = |members: Value| json!({ "type": "object", "properties": members });
    let keyed = |keys: Value, required: &str, members: Value| {
        let mut items = object(members);
        items["required"] = json!([required]);
        json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
            "items": items,
        })
    };
    let tags = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let mut frame = object(json!({ "w": integer(), "h": integer() }));
    frame["x-kubernetes-map-type"] = json!("atomic");
    let port = json!({
        "port": integer(),
        "protocol": { "type": "string", "default": "TCP" },
        "name": string(),
        "notes": tags(),
    });
    let spec = json!({
        "size": integer(),
        "note": { "type": "string", "nullable": true },
        "box": object(json!({ "x": integer(), "y": integer() })),
        "frame": frame,
        "tags": tags(),
        "ports": keyed(json!(["port", "protocol"]), "port", port),
        "colors": { "type": "array", "items": string(), "x-kubernetes-list-type": "set" },
        "steps": { "type": "array", "items": integer(), "x-kubernetes-list-type": "atomic" },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    let condition = json!({ "type": string(), "status": string() });
    let status = json!({
        "seen": integer(),
        "conditions": keyed(json!(["type"]), "type", condition),
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "shapes.model.example.com" },
        "spec": {
            "group": "model.example.com",
            "scope": "Namespaced",
            "names": { "kind": "Shape", "plural": "shapes", "singular": "shape" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": object(json!({
                    "spec": object(spec), "status": object(status),
                })) },
            }],
        },
    })
}

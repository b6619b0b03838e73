//! Sends each step to the server, and compares.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::model::{Answer, Model, Object};
use crate::server::{Server, text};
use crate::step::{KINDS, Kind, Precondition, Step, Verb, Version};

/// A uid that no object has.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// The server and the model.
pub(crate) struct Play {
    server: Server,
    model: Model,
    /// The version of the first list of each kind.
    start: BTreeMap<Kind, String>,
}

// === impl Play ===

impl Play {
    pub(crate) async fn begin() -> Result<Self, String> {
        let mut play = Self {
            server: Server::new(),
            model: Model::default(),
            start: BTreeMap::new(),
        };
        for kind in [Kind::Thing, Kind::Plain] {
            play.server.define(definition(kind)).await?;
        }
        for kind in KINDS {
            let (_, list) = play.server.send("GET", kind.path(), None, None).await?;
            play.start
                .insert(kind, text(&list, "/metadata/resourceVersion"));
        }
        Ok(play)
    }

    /// Plays one step.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), String> {
        let (method, path, content_type, body) = self.request(step);
        let (code, body) = self.server.send(method, &path, content_type, body).await?;
        match self.model.step(step) {
            Answer::Error(expected, reason) => {
                let got = (code, text(&body, "/reason"));
                if got != (expected, reason.to_owned()) {
                    return Err(format!("{got:?} instead of {expected} {reason}: {body}"));
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
        for kind in KINDS {
            self.compare_lists(kind).await?;
        }
        Ok(())
    }

    /// Compares what watches show that begin before the first step.
    pub(crate) async fn end(mut self) -> Result<(), String> {
        for kind in KINDS {
            for labelled in [false, true] {
                let selector = if labelled {
                    "&labelSelector=label%3D1"
                } else {
                    ""
                };
                let (path, start) = (kind.path(), &self.start[&kind]);
                let path =
                    format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={start}{selector}");
                let events = self.server.lines(&path).await?;
                let expected = self.model.seen(kind, labelled);
                let types: Vec<String> = events.iter().map(|event| text(event, "/type")).collect();
                let expected_types: Vec<&str> = expected.iter().map(|(kind, _)| *kind).collect();
                if types != expected_types {
                    return Err(format!("{path}: {types:?} instead of {expected_types:?}"));
                }
                for ((_, object), event) in expected.iter().zip(&events) {
                    self.compare(object, &event["object"], true)
                        .map_err(|error| format!("{path}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Method, path with query, content type and body of a step.
    fn request(&self, step: &Step) -> (&'static str, String, Option<&'static str>, Option<Value>) {
        let Step {
            kind,
            name,
            dry_run,
            verb,
        } = step;
        // A body takes the place of the query, so a deletion says it there.
        let all = if *dry_run { vec!["All"] } else { vec![] };
        let dry_run = if *dry_run { "dryRun=All" } else { "" };
        let collection = kind.path();
        let object = |status: bool| {
            let status = if status { "/status" } else { "" };
            format!("{collection}/{name}{status}?{dry_run}")
        };
        let known = self.model.objects.get(&(*kind, *name));
        match verb {
            Verb::Get => ("GET", object(false), None, None),
            Verb::Create { content, versioned } => {
                let mut metadata = Map::new();
                if *versioned {
                    metadata.insert("resourceVersion".into(), json!("1"));
                }
                let body = content.body(*kind, name, metadata);
                ("POST", format!("{collection}?{dry_run}"), None, Some(body))
            }
            Verb::Put {
                precondition,
                content,
                status,
            } => {
                let body = content.body(*kind, name, self.identity(known, *precondition));
                ("PUT", object(*status), None, Some(body))
            }
            Verb::Merge {
                version,
                change,
                status,
            } => {
                let identity = self.identity(known, Precondition::Version(*version));
                let body = change.body(*kind, identity);
                let content_type = Some("application/merge-patch+json");
                ("PATCH", object(*status), content_type, Some(body))
            }
            Verb::Test { expected, value } => {
                let (path, expected) = kind.pointer(*expected);
                let (_, value) = kind.pointer(*value);
                let body = json!([
                    { "op": "test", "path": path, "value": expected },
                    { "op": "replace", "path": path, "value": value },
                ]);
                let content_type = Some("application/json-patch+json");
                ("PATCH", object(false), content_type, Some(body))
            }
            Verb::Delete { precondition } => {
                let preconditions = self.identity(known, *precondition);
                let body = json!({ "preconditions": preconditions, "dryRun": all });
                ("DELETE", object(false), None, Some(body))
            }
            Verb::DeleteAll { labelled } => {
                let selector = if *labelled {
                    "labelSelector=label%3D1"
                } else {
                    ""
                };
                let path = format!("{collection}?{dry_run}&{selector}");
                ("DELETE", path, None, None)
            }
        }
    }

    /// How a request says which object it means.
    fn identity(&self, known: Option<&Object>, precondition: Precondition) -> Map<String, Value> {
        let mut identity = Map::new();
        match precondition {
            Precondition::Version(Version::Unsaid) => {}
            Precondition::Version(Version::Current) => {
                let version = known.map_or(1, |object| self.server.version(object.revision));
                identity.insert("resourceVersion".into(), json!(version.to_string()));
            }
            Precondition::Version(Version::Stale) => {
                identity.insert("resourceVersion".into(), json!("1"));
            }
            Precondition::RightUid => {
                let uid = known.map_or(NOBODY, |object| self.server.uid(object.uid));
                identity.insert("uid".into(), json!(uid));
            }
            Precondition::WrongUid => {
                identity.insert("uid".into(), json!(NOBODY));
            }
        }
        identity
    }

    async fn compare_lists(&mut self, kind: Kind) -> Result<(), String> {
        let (code, list) = self.server.send("GET", kind.path(), None, None).await?;
        let none = vec![];
        let items = list["items"].as_array().unwrap_or(&none);
        let of_kind = self.model.objects.iter().filter(|(key, _)| key.0 == kind);
        let expected: Vec<Object> = of_kind.map(|(_, object)| object.clone()).collect();
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
            return Err(format!("{seen} instead of {wanted}"));
        }
        if !stored {
            return Ok(());
        }
        self.server.note(expected.uid, expected.revision, got)
    }
}

/// What counts of an object.
fn show(object: &Object) -> Value {
    let content = &object.content;
    json!({
        "name": object.name,
        "generation": object.generation,
        "deleting": object.deleting,
        "label": content.label.map(|label| label.to_string()),
        "finalizers": content.finalizers,
        "value": content.value.map(|value| value.to_string()),
        "status": content.status,
    })
}

/// The same of what the server sent.
fn show_json(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let data = object.pointer("/data/value").cloned();
    let spec = object
        .pointer("/spec/value")
        .map(|value| json!(value.to_string()));
    json!({
        "name": metadata["name"],
        "generation": metadata["generation"],
        "deleting": metadata.get("deletionTimestamp").is_some(),
        "label": metadata.pointer("/labels/label"),
        "finalizers": metadata.get("finalizers").cloned().unwrap_or_else(|| json!([])),
        "value": data.or(spec),
        "status": object.pointer("/status/seen"),
    })
}

fn definition(kind: Kind) -> Value {
    let singular = kind.name().to_lowercase();
    let plural = format!("{singular}s");
    let number =
        |member: &str| json!({ "type": "object", "properties": { member: { "type": "integer" } } });
    let subresources = match kind {
        Kind::Thing => json!({ "status": {} }),
        Kind::Map | Kind::Plain => json!({}),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.model.example.com") },
        "spec": {
            "group": "model.example.com",
            "scope": "Namespaced",
            "names": { "kind": kind.name(), "plural": plural, "singular": singular },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": subresources,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": number("value"), "status": number("seen") },
                } },
            }],
        },
    })
}

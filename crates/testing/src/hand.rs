//! What users and others do to objects in a world.

use crate::wire::NAMESPACE;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde_json::{Value, json};
use std::{cell::RefCell, collections::BTreeMap};

/// Does things in the name of users.
pub(crate) struct Hand {
    client: Client,
    kinds: RefCell<BTreeMap<String, (ApiResource, bool)>>,
}

/// The annotation that somebody else sets.
pub(crate) const ANNOTATION: &str = "checker.homeostat.dev/noise";

/// The finalizer that somebody else sets.
pub(crate) const FINALIZER: &str = "checker.homeostat.dev/held";

// === impl Hand ===

impl Hand {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            kinds: RefCell::default(),
        }
    }

    /// Creates objects in order.
    pub(crate) async fn create(&self, objects: &[Value]) -> Result<(), String> {
        for value in objects {
            let (api, mut object) = self.object(value).await?;
            if object.metadata.name.is_none() && object.metadata.generate_name.is_none() {
                return Err(format!("an object without a name: {value}"));
            }
            object.metadata.namespace = None;
            let name = object.metadata.name.clone().unwrap_or_default();
            let created = api.create(&PostParams::default(), &object).await;
            created.map_err(|error| format!("create {name}: {error}"))?;
        }
        Ok(())
    }

    /// Deletes objects in order. What is gone is gone.
    pub(crate) async fn delete(&self, objects: &[Value]) {
        for value in objects {
            if let Ok((api, object)) = self.object(value).await {
                let name = object.metadata.name.unwrap_or_default();
                // As kubectl does: without it, the pods of a Job would stay. It may be gone, and it may have gone while it
                // was looked for.
                let _ = api.delete(&name, &DeleteParams::background()).await;
            }
        }
    }

    /// Objects as they are now; those that are gone are left out.
    pub(crate) async fn read(&self, objects: &[Value]) -> Vec<Value> {
        let mut found = Vec::new();
        for value in objects {
            let Ok((api, object)) = self.object(value).await else {
                continue;
            };
            let name = object.metadata.name.unwrap_or_default();
            if let Ok(Some(object)) = api.get_opt(&name).await
                && let Ok(object) = serde_json::to_value(object)
            {
                found.push(object);
            }
        }
        found
    }

    /// Changes an object in the name of another manager.
    pub(crate) async fn patch(&self, object: &Value, patch: &Value) -> Result<(), String> {
        self.patch_as("kubectl-edit", object, patch).await
    }

    /// Changes an object as an autoscaler does.
    pub(crate) async fn scale(&self, object: &Value, patch: &Value) -> Result<(), String> {
        self.patch_as("kube-controller-manager", object, patch)
            .await
    }

    async fn patch_as(&self, manager: &str, object: &Value, patch: &Value) -> Result<(), String> {
        let (api, target) = self.object(object).await?;
        let name = target.metadata.name.unwrap_or_default();
        let params = PatchParams {
            field_manager: Some(manager.into()),
            ..PatchParams::default()
        };
        let patched = api.patch(&name, &params, &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| error.to_string())
    }

    /// Annotates objects in the name of another manager.
    pub(crate) async fn annotate(&self, objects: &[Value]) {
        let patch = json!({ "metadata": { "annotations": { ANNOTATION: "kept" } } });
        for object in objects {
            // What is gone needs no annotation.
            let _ = self.patch(object, &patch).await;
        }
    }

    /// Adds or removes a finalizer of another manager.
    pub(crate) async fn hold(&self, objects: &[Value], held: bool) {
        for object in self.read(objects).await {
            let mut finalizers = object["metadata"]["finalizers"].clone();
            if !finalizers.is_array() {
                finalizers = json!([]);
            }
            if let Some(items) = finalizers.as_array_mut() {
                items.retain(|item| item != FINALIZER);
                if held {
                    items.push(json!(FINALIZER));
                }
            }
            let version = &object["metadata"]["resourceVersion"];
            let patch =
                json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
            // What is gone needs no finalizer.
            let _ = self.patch(&object, &patch).await;
        }
    }

    /// Deletes the scenario's namespace.
    pub(crate) async fn delete_namespace(&self) {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": NAMESPACE } });
        self.delete(&[namespace]).await;
    }

    async fn object(&self, value: &Value) -> Result<(Api<DynamicObject>, DynamicObject), String> {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let (group, version) = match text("apiVersion").split_once('/') {
            Some(parts) => parts,
            None => ("", text("apiVersion")),
        };
        let kind = GroupVersionKind::gvk(group, version, text("kind"));
        let key = format!("{} {}", text("apiVersion"), text("kind"));
        let known = self.kinds.borrow().get(&key).cloned();
        let (resource, namespaced) = if let Some(known) = known {
            known
        } else {
            let found = pinned_kind(&self.client, &kind).await;
            let (resource, capabilities) =
                found.map_err(|error| format!("{} of {kind:?}: {error}", text("kind")))?;
            let known = (resource, capabilities.scope == Scope::Namespaced);
            self.kinds.borrow_mut().insert(key, known.clone());
            known
        };
        let object: DynamicObject =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let api = if namespaced {
            let namespace = object.metadata.namespace.as_deref().unwrap_or(NAMESPACE);
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        Ok((api, object))
    }
}

/// An object as a user would write it who wants it to be like this one.
pub(crate) fn as_given(object: &Value) -> Value {
    let mut given = object.clone();
    if let Some(members) = given.as_object_mut() {
        members.remove("status");
        let metadata = members.get("metadata").cloned().unwrap_or_default();
        let kept = ["name", "namespace", "labels", "annotations"];
        let kept = kept.into_iter().filter_map(|name| {
            let value = metadata.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        members.insert("metadata".into(), Value::Object(kept.collect()));
    }
    given
}

/// Ways to change an object a little, one place each: the first that the server accepts is taken.
pub(crate) fn edits(object: &Value) -> Vec<Value> {
    let members = object.as_object().into_iter().flatten();
    let skipped = ["apiVersion", "kind", "metadata", "status", "type"];
    let edits = members.filter(|(name, _)| !skipped.contains(&name.as_str()));
    let edits = edits.flat_map(|(name, value)| {
        let edits = edits_of(value).into_iter();
        edits.map(move |edit| json!({ name: edit }))
    });
    let entries = object["metadata"]["managedFields"].as_array();
    let entries: Vec<&Value> = entries.into_iter().flatten().collect();
    // What somebody wrote first, and then what the server has filled in.
    let (mut written, filled_in): (Vec<Value>, Vec<Value>) = edits.partition(|edit| {
        let mut owners = entries.iter().map(|entry| &entry["fieldsV1"]);
        owners.any(|fields| is_owned(edit, fields))
    });
    written.extend(filled_in);
    written
}

/// Whether the place of an edit is among these fields, which are in the form of `fieldsV1`.
fn is_owned(edit: &Value, fields: &Value) -> bool {
    let mut members = edit.as_object().into_iter().flatten();
    members.all(|(name, rest)| {
        let field = fields.get(format!("f:{name}"));
        field.is_some_and(|field| is_owned(rest, field))
    })
}

fn edits_of(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let members = members.iter().flat_map(|(name, value)| {
                let edits = edits_of(value).into_iter();
                edits.map(move |edit| json!({ name: edit }))
            });
            members.collect()
        }
        Value::Number(number) => number.as_i64().map(|n| json!(n + 1)).into_iter().collect(),
        Value::Bool(is) => vec![json!(!is)],
        // Base64 stays base64: the values of secrets are.
        Value::String(text) if text.len() % 4 == 0 => vec![json!(format!("{text}ZWRp"))],
        Value::String(text) => vec![json!(format!("{text}x"))],
        // Merge patches replace whole lists, which says little about one field.
        Value::Array(_) | Value::Null => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_begin_with_what_somebody_wrote() {
        let object = json!({
            "kind": "Deployment",
            "metadata": { "managedFields": [{ "fieldsV1": { "f:spec": { "f:replicas": {} } } }] },
            "spec": { "paused": false, "replicas": 2, "list": [1], "name": "web" },
            "status": { "replicas": 2 },
        });
        let expected = [
            json!({ "spec": { "replicas": 3 } }),
            json!({ "spec": { "name": "webx" } }),
            json!({ "spec": { "paused": true } }),
        ];
        assert_eq!(edits(&object), expected);
    }

    #[test]
    fn an_object_is_given_again_as_a_user_would() {
        let object = json!({
            "kind": "A", "spec": 1, "status": 2,
            "metadata": { "name": "a", "uid": "u", "labels": { "b": "c" }, "finalizers": ["d"] },
        });
        let expected = json!({ "kind": "A", "spec": 1,
            "metadata": { "name": "a", "labels": { "b": "c" } } });
        assert_eq!(as_given(&object), expected);
    }
}

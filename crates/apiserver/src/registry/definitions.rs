//! Custom resource definitions: what they make the server serve.

use serde_json::{Value, json};

use super::{Registry, Target, object};
use crate::storage::{Key, Object};

/// Held by every definition until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what a definition may leave out.
pub(super) fn complete(definition: &mut Value) {
    complete_names(&mut definition["spec"]["names"]);
}

/// The status of a new definition.
pub(super) fn prepare(definition: &mut Value) {
    let stored: Vec<Value> = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    definition["status"] = json!({
        "acceptedNames": { "kind": "", "plural": "" },
        "conditions": null,
        "storedVersions": stored,
    });
}

fn complete_names(names: &mut Value) {
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].as_str().is_none_or(str::is_empty) {
        names["singular"] = json!(kind.to_lowercase());
    }
    if names["listKind"].as_str().is_none_or(str::is_empty) {
        names["listKind"] = json!(format!("{kind}List"));
    }
}

impl Registry {
    /// Reacts to a write of a definition: names are accepted, what it says is served, and the
    /// conditions tell so. A real server does this a moment later; here nobody has to wait.
    pub(super) fn definition_written(&mut self, target: &Target, written: &Object) {
        if !target
            .resource
            .is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            return;
        }
        let mut definition = Value::clone(written);
        let deleting = object::is_being_deleted(&definition);
        if !deleting {
            self.establish(&mut definition);
        }
        let key = target.key_named(object::name(&definition));
        if definition == **written {
            self.catalog.define(&definition);
        } else {
            let stored = self.store.put(key, definition);
            self.catalog.define(&stored);
        }
    }

    fn establish(&mut self, definition: &mut Value) {
        let now = self.now();
        let names = definition["spec"]["names"].clone();
        definition["status"]["acceptedNames"] = names;
        let accepted = condition("NamesAccepted", "NoConflicts", "no conflicts found");
        let established = condition(
            "Established",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        );
        for condition in [accepted, established] {
            set_condition(&mut definition["status"]["conditions"], condition, &now);
        }
        if object::finalizers(definition).all(|one| one != CLEANUP_FINALIZER) {
            let mut finalizers: Vec<String> =
                object::finalizers(definition).map(str::to_owned).collect();
            finalizers.push(CLEANUP_FINALIZER.to_owned());
            object::set_finalizers(definition, &finalizers);
        }
    }

    /// The definition is gone.
    pub(super) fn definition_removed(&mut self, key: &Key) {
        if &*key.resource == "apiextensions.k8s.io/customresourcedefinitions" {
            self.catalog.undefine(&key.name);
        }
    }
}

fn condition(kind: &str, reason: &str, message: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": reason, "message": message })
}

/// Sets a condition; its time stays as long as its status does.
pub(crate) fn set_condition(conditions: &mut Value, mut condition: Value, now: &str) {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let mut known = list.iter_mut();
    if let Some(found) = known.find(|one| one["type"] == condition["type"]) {
        let changed = found["status"] != condition["status"];
        condition["lastTransitionTime"] = if changed {
            json!(now)
        } else {
            found["lastTransitionTime"].clone()
        };
        *found = condition;
    } else {
        condition["lastTransitionTime"] = json!(now);
        list.push(condition);
    }
}

// === impl Target ===

impl Target {
    fn key_named(&self, name: &str) -> Key {
        Key::new(&self.resource.storage, &self.namespace, name)
    }
}

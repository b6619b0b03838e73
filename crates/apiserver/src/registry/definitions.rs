//! Custom resource definitions: what they make the server serve.

mod acceptance;
mod checked;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::{Value, json};

use self::acceptance::{Accepted, accept};
pub(super) use self::validate::causes;
use super::accept::{Origin, check_type, decode};
use super::{Registry, Target, WriteOptions, defaults, object};
use crate::resource::Resource;
use crate::storage::{Key, Object};

/// Held by every definition until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Where definitions are stored.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Looks through the schemas of a definition that is to be written. What else is wrong with it is told
/// by the write.
pub(super) fn look_ahead(resource: &Resource, mut definition: Value) {
    // In the form in which the write comes to look at them; if the type is wrong, it is refused.
    let options = WriteOptions::default();
    if check_type(resource, &mut definition, &options).is_ok()
        && decode(resource, &mut definition, Origin::Put, &options).is_ok()
    {
        defaults::fill(resource, &mut definition);
        validate::look_through(list_of(&definition["spec"]["versions"]));
    }
}

/// The status of a new definition.
pub(super) fn prepare(definition: &mut Value) {
    let stored: Vec<Value> = storage_versions(&definition["spec"])
        .take(1)
        .cloned()
        .collect();
    definition["status"] = json!({
        "acceptedNames": { "kind": "", "plural": "" },
        "conditions": null,
        "storedVersions": stored,
    });
}

/// Notes that objects are now also stored in the version that says so.
pub(super) fn note_storage(definition: &mut Value) {
    let current: Vec<Value> = storage_versions(&definition["spec"]).cloned().collect();
    if let Some(stored) = definition["status"]["storedVersions"].as_array_mut() {
        let added = current.into_iter().filter(|name| !stored.contains(name));
        let added: Vec<Value> = added.collect();
        stored.extend(added);
    }
}

/// Notes that a definition is going to be deleted.
pub(super) fn note_deletion(definition: &mut Value, now: &str) {
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                    begin soon",
    });
    set_condition(&mut definition["status"]["conditions"], condition, now);
}

/// The names of the versions that are said to be the stored one.
fn storage_versions(spec: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    let versions = list_of(&spec["versions"]).iter();
    versions
        .filter(|version| version["storage"] == true)
        .map(|version| &version["name"])
}

/// The elements of a list; none if it is not there.
fn list_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_established(definition: &Value) -> bool {
    let mut conditions = list_of(&definition["status"]["conditions"]).iter();
    conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
}

impl Registry {
    /// Reacts to a write of a definition: names are accepted, what it says is served, and the
    /// conditions tell so. A real server does this a moment later; here nobody has to wait.
    pub(super) fn definition_written(&mut self, target: &Target, written: &Object) {
        if !target.resource.is_definition() {
            return;
        }
        let mut definition = Value::clone(written);
        if !object::is_being_deleted(&definition) {
            self.settle(&mut definition);
        }
        let key = target.key_named(object::name(&definition));
        let stored = if definition == **written {
            written.clone()
        } else {
            self.store.put(key, definition)
        };
        if is_established(&stored) {
            self.catalog.define(&stored);
        }
    }

    /// Accepts the names that are free, and establishes the definition when all are.
    fn settle(&mut self, definition: &mut Value) {
        let now = self.now();
        let others = self.definitions_of_group(definition);
        let others: Vec<&Value> = others.iter().map(|other| &**other).collect();
        let Accepted { names, conflict } = accept(definition, &others);
        definition["status"]["acceptedNames"] = names;
        let mut found = Vec::new();
        if let Some((reason, message)) = conflict {
            found.push(condition("NamesAccepted", "False", reason, &message));
            if !is_established(definition) {
                let why = "not all names are accepted";
                found.push(condition("Established", "False", "NotAccepted", why));
            }
        } else {
            let why = "no conflicts found";
            found.push(condition("NamesAccepted", "True", "NoConflicts", why));
            let (reason, why) = (
                "InitialNamesAccepted",
                "the initial names have been accepted",
            );
            found.push(condition("Established", "True", reason, why));
        }
        for condition in found {
            set_condition(&mut definition["status"]["conditions"], condition, &now);
        }
        if object::finalizers(definition).all(|one| one != CLEANUP_FINALIZER) {
            let mut finalizers: Vec<String> =
                object::finalizers(definition).map(str::to_owned).collect();
            finalizers.push(CLEANUP_FINALIZER.to_owned());
            object::set_finalizers(definition, &finalizers);
        }
    }

    /// The other definitions of the same group.
    fn definitions_of_group(&self, definition: &Value) -> Vec<Object> {
        let now = self.store.revision();
        // A definition is named after its group, so that only those are decoded that matter.
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let ending = format!(".{group}");
        let all = self.store.scan(&DEFINITIONS.into(), None, now, None);
        all.filter(|(key, _)| key.name.ends_with(&ending))
            .map(|(_, other)| other)
            .filter(|other| other["spec"]["group"] == definition["spec"]["group"])
            .filter(|other| object::name(other) != object::name(definition))
            .collect()
    }

    /// A definition is gone: others may get the names that it had.
    pub(super) fn definition_removed(&mut self, key: &Key, last: Option<&Object>) {
        if &*key.resource != DEFINITIONS {
            return;
        }
        self.catalog.undefine(&key.name);
        let Some(last) = last else { return };
        for other in self.definitions_of_group(last) {
            if let Some(target) = self.target_of(&Key::new(&key.resource, "", object::name(&other)))
            {
                self.definition_written(&target, &other);
            }
        }
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": message })
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

//! What an actor wants to be written, as values.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::delete_options;
use crate::object;
use crate::registry::{DeleteOptions, Registry, Target, WriteOptions};
use crate::storage::{Key, Object};

/// A kind of which the actors write objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

pub(super) const POD: Kind = Kind::new("", "v1", "pods");
pub(super) const NODE: Kind = Kind::new("", "v1", "nodes");
pub(super) const REPLICA_SET: Kind = Kind::new("apps", "v1", "replicasets");
pub(super) const DEPLOYMENT: Kind = Kind::new("apps", "v1", "deployments");
pub(super) const STATEFUL_SET: Kind = Kind::new("apps", "v1", "statefulsets");
pub(super) const DAEMON_SET: Kind = Kind::new("apps", "v1", "daemonsets");
pub(super) const REVISION: Kind = Kind::new("apps", "v1", "controllerrevisions");
pub(super) const JOB: Kind = Kind::new("batch", "v1", "jobs");
pub(super) const CRON_JOB: Kind = Kind::new("batch", "v1", "cronjobs");
pub(super) const CLAIM: Kind = Kind::new("", "v1", "persistentvolumeclaims");
pub(super) const VOLUME: Kind = Kind::new("", "v1", "persistentvolumes");

/// What there is when somebody decides what to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    /// What it has made.
    pub(super) own: &'a [Object],
    /// The claims of its namespace.
    pub(super) claims: &'a [Object],
    pub(super) nodes: &'a [Object],
    pub(super) now: Timestamp,
}

/// One write. An object that has another uid by then is left alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Create(Kind, Value),
    /// A JSON merge patch.
    Patch(Kind, Subject, Value),
    /// A whole status, and a merge patch of the metadata.
    Status(Kind, Subject, Value, Value),
    Delete(Kind, Subject),
}

/// The object that a step is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    name: String,
    uid: String,
}

/// What is to be written now, and when to look again though nothing has changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) wake: Option<Timestamp>,
}

// === impl Kind ===

impl Kind {
    pub(super) const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            plural,
        }
    }

    pub(super) fn target(self, registry: &Registry, namespace: &str, name: &str) -> Option<Target> {
        let mut target = registry.target(self.group, self.version, self.plural, namespace, name)?;
        if !target.resource.namespaced {
            target.namespace.clear();
        }
        Some(target)
    }

    /// Whether this is where its objects are stored.
    pub(super) fn is_at(self, storage: &str) -> bool {
        storage.split_once('/') == Some((self.group, self.plural))
    }

    /// The objects of a namespace, or of all.
    pub(super) fn keys(self, registry: &Registry, namespace: Option<&str>) -> Vec<Key> {
        let found = registry.catalog.find(self.group, self.version, self.plural);
        let now = registry.store.revision();
        let keys = found.map(|resource| {
            let all = registry.store.scan(&resource.storage, namespace, now, None);
            all.map(|(key, _)| key.clone()).collect()
        });
        keys.unwrap_or_default()
    }
}

// === impl Subject ===

impl Subject {
    pub(super) fn of(object: &Value) -> Self {
        Self {
            name: object::name(object).to_owned(),
            uid: object::uid(object).to_owned(),
        }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

// === impl Plan ===

impl Plan {
    pub(super) fn of(steps: Vec<Step>) -> Self {
        Self { steps, wake: None }
    }
}

// === impl Step ===

impl Step {
    /// Writes a status if it says something else than the one that is there.
    pub(super) fn status(kind: Kind, object: &Value, status: Value) -> Option<Self> {
        let differs = object["status"] != status;
        differs.then(|| Self::Status(kind, Subject::of(object), status, json!({})))
    }

    /// Whether it can only fail because the server refuses it. Others may have nothing to change.
    pub(super) fn must_work(&self) -> bool {
        match self {
            Self::Create(..) | Self::Delete(..) => true,
            Self::Patch(..) | Self::Status(..) => false,
        }
    }

    /// Makes the write. False if the server refuses it, or the object is gone.
    pub(super) fn make(&self, registry: &mut Registry, namespace: &str, manager: &str) -> bool {
        let options = WriteOptions {
            manager: manager.to_owned(),
            ..WriteOptions::default()
        };
        match self {
            Self::Create(kind, object) => kind
                .target(registry, namespace, "")
                .is_some_and(|target| registry.create(&target, object.clone(), &options).is_ok()),
            Self::Patch(kind, subject, patch) => {
                let key = find(registry, *kind, namespace, subject);
                key.is_some_and(|key| registry.edit(&key, &options, |object| merge(object, patch)))
            }
            Self::Status(kind, subject, status, metadata) => {
                let key = find(registry, *kind, namespace, subject);
                key.is_some_and(|key| {
                    registry.edit_status(&key, &options, |object| {
                        object["status"] = status.clone();
                        merge(&mut object["metadata"], metadata);
                    })
                })
            }
            Self::Delete(kind, subject) => {
                let Some(target) = kind.target(registry, namespace, &subject.name) else {
                    return false;
                };
                let options = DeleteOptions {
                    expected_uid: Some(subject.uid.clone()),
                    propagation: Some(crate::registry::Propagation::Background),
                    ..delete_options()
                };
                registry.delete(&target, &options).is_ok()
            }
        }
    }
}

/// Where an object is, if it is still the same.
fn find(registry: &Registry, kind: Kind, namespace: &str, subject: &Subject) -> Option<Key> {
    let key = kind.target(registry, namespace, &subject.name)?.key();
    let object = registry.store.get(&key)?;
    (object::uid(&object) == subject.uid).then_some(key)
}

/// Merges as a JSON merge patch does.
fn merge(value: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

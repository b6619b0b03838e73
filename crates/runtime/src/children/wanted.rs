//! A child as it should be.

use super::{Applied, Error, FieldConflict, applied::Done};
use crate::{reflector::ObjectRef, target::Target};
use homeostat_core::children::{Misplaced, Owner, Refusal, Scope, Standing, Step};
use k8s_openapi::{ByteString, ClusterResourceScope, NamespaceResourceScope};
use kube::{Client, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{any::TypeId, hash::Hash, sync::Arc};

/// A child as it should be, and where.
pub(super) struct Wanted {
    /// What is applied.
    pub(super) desired: Value,
    namespace: Option<String>,
    name: String,
    /// Of its kind in its namespace.
    url: String,
    /// For people: kind, namespace and name.
    label: String,
}

/// What is needed of an object to own others; or what it does not have.
pub(super) fn owner<O: Resource>(
    owner: &O,
    dyntype: &O::DynamicType,
) -> Result<Owner, &'static str> {
    let meta = owner.meta();
    Ok(Owner {
        api_version: O::api_version(dyntype).into_owned(),
        kind: O::kind(dyntype).into_owned(),
        name: meta.name.clone().ok_or("name")?,
        uid: meta.uid.clone().ok_or("uid")?,
        namespace: meta.namespace.clone(),
    })
}

pub(super) fn json<K: Serialize>(object: &K) -> Result<Value, kube::Error> {
    serde_json::to_value(object).map_err(kube::Error::SerdeError)
}

// === impl Wanted ===

impl Wanted {
    pub(super) fn new<K>(owner: &Owner, child: &K, dyntype: &K::DynamicType) -> Result<Self, Error>
    where
        K: Resource + Serialize + 'static,
    {
        let (kind, meta) = (K::kind(dyntype), child.meta());
        let Some(name) = meta.name.clone().filter(|name| !name.is_empty()) else {
            let kind = kind.into_owned();
            return Err(Error::UnnamedChild { kind });
        };
        let said = meta.namespace.as_deref();
        let place = owner.place(scope::<K>(), said);
        let namespace = place.map_err(|misplaced| Error::Misplaced {
            child: label(&kind, said, &name),
            owner: label(&owner.kind, owner.namespace.as_deref(), &owner.name),
            why: explained(misplaced),
        })?;
        let label = label(&kind, namespace.as_deref(), &name);
        let failed = |source| Error::Api {
            child: label.clone(),
            source,
        };
        let mut desired = json(child).map_err(failed)?;
        if let Some(members) = desired.as_object_mut() {
            members.remove("status");
            members.insert("apiVersion".into(), K::api_version(dyntype).into());
            members.insert("kind".into(), (*kind).into());
            let metadata = members.get_mut("metadata");
            if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
                metadata.remove("resourceVersion");
                metadata.insert("namespace".into(), namespace.clone().into());
            }
            if K::group(dyntype).is_empty() && kind == "Secret" {
                encode(members);
            }
        }
        owner.claim(&mut desired);
        Ok(Self {
            url: K::url_path(dyntype, namespace.as_deref()),
            desired,
            namespace,
            name,
            label,
        })
    }

    pub(super) fn target(&self, client: &Client) -> Target {
        Target {
            client: client.clone(),
            url: self.url.clone(),
            name: self.name.clone(),
        }
    }

    pub(super) fn reference<K>(&self, dyntype: K::DynamicType) -> ObjectRef<K>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
    {
        let reference = ObjectRef::new_with(&self.name, dyntype);
        match &self.namespace {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }

    /// What is to be done, given what is there.
    pub(super) fn step(&self, owner: &Owner, live: &Value, manager: &str) -> Result<Step, Error> {
        let step = owner.step(live, &self.desired, manager);
        step.map_err(|refusal| self.refused(refusal))
    }

    /// Whose the object is that is there.
    pub(super) fn standing(&self, owner: &Owner, live: &Value) -> Result<Standing, Error> {
        let standing = owner.standing(live);
        standing.map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Error {
        let child = self.label.clone();
        match refusal {
            Refusal::Taken(by) => Error::Taken { child, by },
            Refusal::Leaving => Error::Leaving { child },
        }
    }

    pub(super) fn owner_leaving(&self) -> Error {
        let child = self.label.clone();
        Error::OwnerLeaving { child }
    }

    /// What is sent, for the object with this uid alone if there is one.
    pub(super) fn body(&self, uid: Option<&str>) -> Value {
        let mut body = self.desired.clone();
        if let Some(uid) = uid
            && let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("uid".into(), uid.into());
        }
        body
    }

    /// What the server shows of the child.
    pub(super) fn read<K: DeserializeOwned>(
        &self,
        live: &Value,
        done: Done,
    ) -> Result<Applied<K>, Error> {
        let object = K::deserialize(live).map_err(kube::Error::SerdeError);
        let object = object.map_err(|source| self.failed(source))?;
        Ok(Applied::new(Arc::new(object), done))
    }

    pub(super) fn failed(&self, source: kube::Error) -> Error {
        let child = self.label.clone();
        Error::Api { child, source }
    }

    pub(super) fn conflicting(&self, conflicts: Vec<FieldConflict>) -> Error {
        let child = self.label.clone();
        Error::Conflict { child, conflicts }
    }
}

/// Moves what a Secret says in plain text to where the server keeps it.
fn encode(secret: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| Map::new().into());
    if data.is_null() {
        *data = Map::new().into();
    }
    if let Some(data) = data.as_object_mut() {
        data.extend(texts.into_iter().map(|(key, text)| {
            let text = text.as_str().unwrap_or_default().to_owned();
            (key, serde_json::json!(ByteString(text.into_bytes())))
        }));
    }
}

fn scope<K: Resource + 'static>() -> Scope {
    let scope = TypeId::of::<K::Scope>();
    if scope == TypeId::of::<NamespaceResourceScope>() {
        Scope::Namespaced
    } else if scope == TypeId::of::<ClusterResourceScope>() {
        Scope::Cluster
    } else {
        Scope::Unknown
    }
}

fn label(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

const fn explained(misplaced: Misplaced) -> &'static str {
    match misplaced {
        Misplaced::OtherNamespace => {
            "an owner is looked for in the namespace of the child, and where it is not found the \
             garbage collector deletes the child. Put it into the namespace of its owner, or apply it \
             without an owner and delete it with a finalizer"
        }
        Misplaced::NoNamespace => {
            "it is in no namespace and its owner is in one, where the garbage collector does not look \
             for it and deletes the child. Apply it without an owner and delete it with a finalizer"
        }
        Misplaced::Unsaid => {
            "the owner is in no namespace, so the child has to say in which it is. Set \
             metadata.namespace"
        }
    }
}

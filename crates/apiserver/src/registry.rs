//! The API server as a library: every operation on objects, without HTTP and without a clock of its
//! own.

mod accept;
mod actions;
mod addresses;
mod admission;
mod autoscalers;
mod content;
mod create;
mod cron;
mod custom;
mod defaults;
mod definitions;
mod delete;
mod forms;
mod immutable;
mod list;
mod metadata;
mod names;
mod ownership;
mod patch;
mod pods;
mod policy;
mod priorities;
mod reviews;
mod rights;
mod scale;
mod selector;
mod services;
mod shards;
mod update;
mod view;
mod warnings;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::accept::blank as blank_of;
pub(crate) use self::cron::Schedule;
pub(crate) use self::custom::{Vouched, look_ahead};
pub(crate) use self::definitions::{CLEANUP_FINALIZER, set_condition};
pub(crate) use self::delete::{DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation};
pub(crate) use self::list::{ListOptions, ListWant, VersionMatch, parse_version};
pub(crate) use self::patch::{Patch, PatchKind};
pub(crate) use self::selector::{Selection, selects};
pub(crate) use self::view::present;
use self::view::to_storage;
use crate::access::Requester;
use crate::config::Config;
use crate::environment::{Clock, Entropy, seconds};
use crate::object;
use crate::resource::{Catalog, Resource};
use crate::status::Status;
use crate::storage::{Key, Object, Store};

/// The state of the server and what may be done to it.
pub(crate) struct Registry {
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) config: Config,
    clock: Box<dyn Clock>,
    entropy: Entropy,
}

/// What an operation is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// Empty for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<String>,
}

/// How a write is to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Do everything but the write itself.
    pub(crate) dry_run: bool,
    /// Who asks.
    pub(crate) requester: Requester,
    /// Under which name fields are written.
    pub(crate) manager: String,
    /// Whether the request named the manager; apply needs that.
    pub(crate) manager_is_given: bool,
    pub(crate) validation: FieldValidation,
    /// The body as it came, of which messages show the beginning.
    pub(crate) body: Bytes,
    /// Paths of members that occurred more than once in the body.
    pub(crate) duplicates: Vec<String>,
    /// What is known already of the object that is to be written.
    pub(crate) vouched: Option<Arc<Vouched>>,
}

/// What to do about members that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Object,
    pub(crate) warnings: Vec<String>,
}

/// The namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

// === impl Registry ===

impl Registry {
    /// A server with nothing but the namespaces that are always there.
    pub(crate) fn new(config: Config, clock: Box<dyn Clock>, seed: u64) -> Self {
        let mut registry = Self {
            store: Store::new(config.max_history),
            catalog: Catalog::default(),
            config,
            clock,
            entropy: Entropy::from_seed(seed),
        };
        for name in NAMESPACES {
            registry.bootstrap_namespace(name);
        }
        registry
    }

    fn bootstrap_namespace(&mut self, name: &str) {
        let Some(target) = self.target("", "v1", "namespaces", "", name) else {
            return;
        };
        let body = json!({ "metadata": { "name": name } });
        let options = WriteOptions {
            manager: "kube-apiserver".to_owned(),
            ..WriteOptions::default()
        };
        self.create(&target, body, &options)
            .expect("a namespace without an object of that name in the way can be created");
    }

    /// A target by names, if the resource is served.
    pub(crate) fn target(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Target> {
        let resource = Arc::clone(self.catalog.find(group, version, plural)?);
        Some(Target {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: None,
        })
    }

    /// The target that a stored key stands for, if its resource is still served.
    pub(crate) fn target_of(&self, key: &Key) -> Option<Target> {
        let resource = Arc::clone(self.catalog.stored_at(&key.resource)?);
        Some(Target {
            resource,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: None,
        })
    }

    /// Reads one object.
    ///
    /// # Errors
    ///
    /// 404 if it is not there.
    pub(crate) fn get(&self, target: &Target) -> Result<Object, Status> {
        let object = self.stored(target)?;
        if target.subresource.as_deref() == Some("scale") {
            return scale::read(&target.resource, &object).map(Object::new);
        }
        Ok(present(&target.resource, &object))
    }

    fn stored(&self, target: &Target) -> Result<Object, Status> {
        self.store
            .get(&target.key())
            .ok_or_else(|| Status::not_found(target.resource.subject(&target.name)))
    }

    /// Changes a stored object. True if that made a difference.
    pub(crate) fn edit(
        &mut self,
        key: &Key,
        options: &WriteOptions,
        change: impl FnOnce(&mut Value),
    ) -> bool {
        self.edit_through(key, None, options, change)
    }

    /// Changes the status of a stored object. True if that made a difference.
    pub(crate) fn edit_status(
        &mut self,
        key: &Key,
        options: &WriteOptions,
        change: impl FnOnce(&mut Value),
    ) -> bool {
        self.edit_through(key, Some("status"), options, change)
    }

    fn edit_through(
        &mut self,
        key: &Key,
        subresource: Option<&str>,
        options: &WriteOptions,
        change: impl FnOnce(&mut Value),
    ) -> bool {
        let (Some(mut target), Some(old)) = (self.target_of(key), self.store.get(key)) else {
            return false;
        };
        target.subresource = subresource.map(str::to_owned);
        let mut new = Value::clone(&present(&target.resource, &old));
        change(&mut new);
        let before = self.store.revision();
        let outcome = self.change(&target, new, None, &old, accept::Origin::Patch, options);
        outcome.is_ok() && self.store.revision() != before
    }

    /// Tells by an event that an owner reference leads into another namespace.
    pub(crate) fn report_owner_out_of_reach(&mut self, key: &Key, object: &Object) {
        let name = format!("{}.{}", key.name, self.entropy.uid().short());
        let Some(target) = self.target("", "v1", "events", &key.namespace, "") else {
            return;
        };
        let now = self.now();
        let body = json!({
            "metadata": { "name": name },
            "involvedObject": {
                "apiVersion": object["apiVersion"],
                "kind": object["kind"],
                "name": key.name,
                "namespace": key.namespace,
                "uid": object::uid(object),
            },
            "reason": "OwnerRefInvalidNamespace",
            "message": "an owner reference names an object that is not in this namespace",
            "type": "Warning",
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": { "component": "garbage-collector-controller" },
        });
        let options = WriteOptions {
            manager: "kube-controller-manager".to_owned(),
            ..WriteOptions::default()
        };
        // In a namespace that is being deleted there is nobody left to tell.
        let _ = self.create(&target, body, &options);
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        self.clock.now()
    }

    /// Now, as objects show it.
    pub(crate) fn now(&self) -> String {
        seconds(self.clock.now())
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("revision", &self.store.revision())
            .finish_non_exhaustive()
    }
}

// === impl Target ===

impl Target {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.resource.storage, &self.namespace, &self.name)
    }

    /// The same object without the subresource.
    pub(crate) fn main(&self) -> Self {
        Self {
            subresource: None,
            ..self.clone()
        }
    }

    pub(crate) fn is_subresource(&self, name: &str) -> bool {
        self.subresource.as_deref() == Some(name)
    }
}

/// Whether a generation is kept for the object.
fn has_generation(resource: &Resource, object: &Value) -> bool {
    resource.lifecycle.generation || object::generation(object) > 0
}

//! The scale subresource: how many replicas an object wants and has.

use serde_json::{Value, json};

use super::{Registry, Reply, Target, WriteOptions, ownership, present};
use crate::managed::Managers;
use crate::object;
use crate::resource::{Resource, ScalePaths, Subresource};
use crate::status::{Cause, Status, Subject};
use crate::storage::{Key, Object};

impl Registry {
    /// Writes the replicas that a scale asks for into the object.
    pub(super) fn change_scale(
        &mut self,
        target: &Target,
        scale: &Value,
        managers: Option<Managers>,
        old: &Object,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let resource = &target.resource;
        let wanted = &scale["spec"]["replicas"];
        let replicas = wanted.as_i64().unwrap_or_default();
        if replicas < 0 && !resource.is_custom() {
            let why = "must be greater than or equal to 0";
            let cause = Cause::invalid("spec.replicas", wanted, why);
            let subject = Subject {
                group: "autoscaling",
                kind: "Scale",
                name: &target.name,
            };
            return Err(Status::invalid(subject, vec![cause]));
        }
        let version = object::resource_version(scale);
        if !version.is_empty() && version != object::resource_version(old) {
            return Err(Status::modified(resource.subject(&target.name)));
        }
        let shown = present(resource, old);
        let mut new = Value::clone(&shown);
        let path = paths(resource).spec_replicas;
        object::set_at(&mut new, &path, json!(replicas));
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let has_place = !resource.is_custom() || object::at(&shown, parent).is_some();
        let managers = managers.unwrap_or_else(|| {
            // What has to be made for the number is not followed.
            if !has_place {
                return ownership::of(&shown);
            }
            // A scale does not show zero, so nobody comes to own it.
            let mut written = new.clone();
            if replicas == 0 {
                object::remove_at(&mut written, &path);
            }
            self.track(
                target,
                Some(&shown),
                &written,
                ownership::of(&shown),
                options,
            )
        });
        ownership::set(&mut new, &managers);
        let mut warnings = Vec::new();
        let object = self.commit(&target.main(), new, old, options, &mut warnings)?;
        Ok(Reply {
            code: 200,
            body: Object::new(of(resource, &object)),
            warnings,
        })
    }
}

impl Registry {
    /// The uid of what makes pods, by a reference to it, and how many it is to make. Nothing if it is
    /// not there or cannot be scaled.
    pub(crate) fn wanted_replicas(
        &self,
        namespace: &str,
        reference: &Value,
    ) -> Option<(String, i64)> {
        let text = |member: &str| reference[member].as_str().unwrap_or_default();
        let resource = self.catalog.of_kind(text("apiVersion"), text("kind"))?;
        let key = Key::new(&resource.storage, namespace, text("name"));
        let maker = self.store.get(&key)?;
        let scale = |one: &Subresource| one.name == "scale";
        if object::uid(&maker) != text("uid") || !resource.subresources.iter().any(scale) {
            return None;
        }
        // A deployment makes pods by way of replica sets.
        if resource.is("apps", "replicasets")
            && let Some(deployment) = object::controller(&maker)
        {
            return self.wanted_replicas(namespace, deployment);
        }
        let shown = present(resource, &maker);
        let replicas = object::at(&shown, &paths(resource).spec_replicas);
        let replicas = replicas.and_then(Value::as_i64).unwrap_or_default();
        Some((text("uid").to_owned(), replicas))
    }
}

/// Checks that a body is a scale.
///
/// # Errors
///
/// 400 if it is something else.
pub(super) fn check_type(body: &Value) -> Result<(), Status> {
    if [&json!("Scale"), &Value::Null].contains(&&body["kind"]) {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "{} is no Scale of autoscaling/v1",
        body["kind"]
    )))
}

/// Where an object keeps what its scale shows.
pub(super) fn paths(resource: &Resource) -> ScalePaths {
    resource
        .custom
        .as_ref()
        .and_then(|custom| custom.scale.clone())
        .unwrap_or_else(|| ScalePaths {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: None,
        })
}

/// What the subresource shows of an object, if it can be read.
///
/// # Errors
///
/// 500 for a custom object without a value at the path of the replicas.
pub(super) fn read(resource: &Resource, object: &Value) -> Result<Value, Status> {
    let path = paths(resource).spec_replicas;
    if resource.is_custom() && object::at(object, &path).is_none() {
        let why = format!("the spec replicas field {path:?} does not exist");
        return Err(Status::internal_error(&why));
    }
    Ok(of(resource, object))
}

/// What the subresource shows of an object.
pub(super) fn of(resource: &Resource, object: &Value) -> Value {
    let paths = paths(resource);
    let number = |path: &str| {
        object::at(object, path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let mut metadata = json!({});
    for member in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = object["metadata"].get(member) {
            metadata[member] = value.clone();
        }
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": { "replicas": number(&paths.status_replicas) },
    });
    let replicas = number(&paths.spec_replicas);
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let selector = match (&resource.custom, &paths.selector) {
        (Some(_), Some(path)) => object::at(object, path)
            .and_then(Value::as_str)
            .map(str::to_owned),
        (Some(_), None) => None,
        (None, _) => Some(super::selector::printed(&object["spec"]["selector"])),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

//! Server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{check_identity, last_applied};
use crate::managed::{self, Context, Managers, Writer};
use crate::object;
use crate::registry::accept::{self, Origin};
use crate::registry::rights::may_create;
use crate::registry::{Registry, Reply, Target, WriteOptions, ownership, present, scale};
use crate::resource::Resource;
use crate::status::{Cause, Status, Subject};

impl Registry {
    /// Applies a configuration: creates the object or changes it.
    ///
    /// # Errors
    ///
    /// 409 where others own fields that differ, unless it is forced; 400 and 422 for what cannot be
    /// applied; 404 for a subresource of an object that is not there.
    pub(super) fn apply(
        &mut self,
        target: &Target,
        body: &Value,
        force: bool,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let resource = Arc::clone(&target.resource);
        check_manager(options)?;
        let stored = self.store.get(&target.key());
        if stored.is_none() && target.subresource.is_some() {
            return Err(Status::not_found(resource.subject(&target.name)));
        }
        let config = check_config(target, body, stored.is_some())?;
        if target.subresource.as_deref() != Some("scale")
            && let Some(why) = managed::problem(&resource.schema, &config)
        {
            return Err(Status::internal(format!(
                "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {why}",
                object::namespace(body),
                target.name,
                resource.group,
                resource.version,
                resource.kind
            )));
        }
        let config = if target.is_subresource("scale") {
            scale_config(&resource, &config)
        } else {
            config
        };
        let live = stored.as_ref().map(|stored| present(&resource, stored));
        let empty = json!({ "apiVersion": resource.api_version(), "kind": resource.kind });
        let shown = live.as_deref().map_or(empty, ownership::without);
        let managers = live.as_deref().map(ownership::of).unwrap_or_default();
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let writer = Writer::apply(&options.manager, &resource.api_version(), subresource);
        let now = self.now();
        let context = Context {
            schema: &resource.schema,
            reach: ownership::reach(target),
            writer: &writer,
            now: Some(&now),
        };
        let goes_on = target.subresource.is_none()
            && last_applied::goes_on(&options.manager, live.as_deref());
        let apply = |force| managed::apply(context, &shown, &config, managers.clone(), force);
        let applied = match apply(force) {
            Err(conflicts)
                if goes_on && last_applied::may_take(&resource.schema, &shown, &conflicts) =>
            {
                apply(true)?
            }
            applied => applied?,
        };
        let mut new = applied.object.unwrap_or(shown);
        if resource.is_custom() {
            managed::drop_emptied(&resource.schema, &mut new, &config);
        }
        if goes_on {
            last_applied::refresh(&mut new, body);
        }
        let managers = Some(applied.managers);
        match stored {
            Some(old) if target.is_subresource("scale") => {
                let mut wanted = scale::of(&resource, &new);
                object::metadata_mut(&mut wanted).remove("resourceVersion");
                self.change(target, wanted, managers, &old, Origin::Apply, options)
            }
            Some(old) => self.change(target, new, managers, &old, Origin::Apply, options),
            None => self.apply_new(target, new, managers, options),
        }
    }

    /// Creates an object from a configuration that was applied.
    fn apply_new(
        &mut self,
        target: &Target,
        mut new: Value,
        managers: Option<Managers>,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        accept::settle_namespace(target, &mut new)?;
        let mut warnings = accept::decode(&target.resource, &mut new, Origin::Apply, options)?;
        if !object::uid(&new).is_empty() {
            return Err(uid_of_nothing(target, object::uid(&new)));
        }
        object::metadata_mut(&mut new).remove("resourceVersion");
        may_create(self, target, options)?;
        let body = self.create_decoded(target, new, managers, options, &mut warnings)?;
        Ok(Reply {
            code: 201,
            body,
            warnings,
        })
    }
}

/// Whoever applies has to say who they are.
fn check_manager(options: &WriteOptions) -> Result<(), Status> {
    if options.manager_is_given {
        return Ok(());
    }
    let cause = Cause::required("fieldManager", "is required for apply patch");
    let subject = Subject {
        group: "meta.k8s.io",
        kind: "PatchOptions",
        name: "",
    };
    Err(Status::invalid(subject, vec![cause]))
}

/// Checks a configuration and completes it.
///
/// Of an object that exists the name may be left out: the request names it.
fn check_config(target: &Target, config: &Value, exists: bool) -> Result<Value, Status> {
    let resource = &target.resource;
    let mut config = if config.is_null() {
        json!({})
    } else {
        config.clone()
    };
    object::check_shape(&mut config)?;
    let expected = match target.subresource.as_deref() {
        Some("scale") => "autoscaling/v1".to_owned(),
        None | Some(_) => resource.api_version(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&config["apiVersion"]), text(&config["kind"]));
    let is_kind = target.subresource.is_some() || kind == resource.kind;
    if version.is_empty() || !is_kind {
        return Err(Status::bad_request(format!(
            "invalid object type: {version}, Kind={kind}"
        )));
    }
    if version != expected {
        return Err(Status::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, \
             expected: {expected}"
        )));
    }
    if config["metadata"]
        .get("managedFields")
        .is_some_and(|managed| !managed.is_null())
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if target.resource.namespaced && object::namespace(&config).is_empty() {
        object::metadata_mut(&mut config).insert("namespace".to_owned(), json!(target.namespace));
    }
    if exists && object::name(&config).is_empty() {
        object::metadata_mut(&mut config).insert("name".to_owned(), json!(target.name));
    }
    check_identity(target, &config)?;
    Ok(config)
}

/// A scale as a configuration of the object that it scales.
fn scale_config(resource: &Resource, wanted: &Value) -> Value {
    let mut config = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": wanted["metadata"]["name"], "namespace": wanted["metadata"]["namespace"] },
    });
    if let Some(replicas) = wanted["spec"].get("replicas") {
        object::set_at(
            &mut config,
            &scale::paths(resource).spec_replicas,
            replicas.clone(),
        );
    }
    config
}

/// An apply that names a uid means an object that exists.
fn uid_of_nothing(target: &Target, uid: &str) -> Status {
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Status::conflict(target.resource.subject(&target.name), &why)
}

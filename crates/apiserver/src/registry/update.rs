//! Changing objects: PUT and PATCH of the object itself and of its subresources.

use std::num::{IntErrorKind, ParseIntError};
use std::sync::Arc;

use serde_json::{Value, json};

use super::accept::{self, Origin};
use super::metadata::{dedup_owners, keep_server_members, validate_update};
use super::{
    Registry, Reply, Target, WriteOptions, defaults, has_generation, names, ownership, pods,
    present,
    rights::{may_create, note_owners},
    scale, to_storage, warnings as of_kinds,
};
use crate::managed::{Managers, same_but_for_times};
use crate::object;
use crate::resource::{Part, Resource};
use crate::status::{Cause, Status};
use crate::storage::Object;

impl Registry {
    /// Replaces an object, or what a subresource shows of it.
    ///
    /// # Errors
    ///
    /// 404 if it is not there and cannot be created by PUT, 409 for another version or uid, 400 and
    /// 422 for a body that cannot be accepted.
    pub(crate) fn update(
        &mut self,
        target: &Target,
        mut body: Value,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let resource = Arc::clone(&target.resource);
        if target.is_subresource("scale") {
            object::check_shape(&mut body)?;
            scale::check_type(&body)?;
        } else {
            accept::check_type(&resource, &mut body, options)?;
        }
        accept::check_name(target, &body)?;
        accept::settle_namespace(target, &mut body)?;
        let Some(old) = self.store.get(&target.key()) else {
            if resource.lifecycle.create_by_put && target.subresource.is_none() {
                check_uid(target, object::uid(&body), "", options)?;
                object::metadata_mut(&mut body).remove("resourceVersion");
                may_create(self, target, options)?;
                return self.create(target, body, options);
            }
            if !target.is_subresource("scale") {
                accept::decode(&resource, &mut body, Origin::Put, options)?;
            }
            return Err(Status::not_found(resource.subject(&target.name)));
        };
        check_uid(target, object::uid(&body), object::uid(&old), options)?;
        self.change(target, body, None, &old, Origin::Put, options)
    }

    /// Puts a new state, which came about from a request, in the place of the stored one. Without
    /// `managers` what changed belongs to whoever writes.
    pub(super) fn change(
        &mut self,
        target: &Target,
        new: Value,
        managers: Option<Managers>,
        old: &Object,
        origin: Origin,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let resource = &target.resource;
        if target.is_subresource("scale") {
            return self.change_scale(target, &new, managers, old, options);
        }
        let mut new = new;
        let old_shown = present(resource, old);
        let shown = &*old_shown;
        let mut warnings = accept::decode(resource, &mut new, origin, options)?;
        check_version(target, &new, shown, origin)?;
        warnings.extend(dedup_owners(&mut new));
        defaults::fill(resource, &mut new);
        keep_beside_status(target, &mut new, shown);
        let managers = managers.unwrap_or_else(|| {
            let known = ownership::of_update(target, &new, shown);
            self.track(target, Some(shown), &new, known, options)
        });
        ownership::set(&mut new, &managers);
        match self.commit(target, new, old, options, &mut warnings) {
            Ok(body) => Ok(Reply {
                code: 200,
                body,
                warnings,
            }),
            Err(mut status) => {
                warnings.append(&mut status.warnings);
                Err(Status { warnings, ..status })
            }
        }
    }

    pub(super) fn commit(
        &mut self,
        target: &Target,
        mut new: Value,
        old: &Object,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let resource = &target.resource;
        let shown = present(resource, old);
        separate(target, &mut new, &shown);
        if target.subresource.is_none() {
            self.allocate(target, &mut new, Some(&shown))?;
        }
        keep_server_members(&mut new, &shown);
        warnings.extend(validate_update(target, &new, &shown, options)?);
        self.admit_change(target, &new, &shown)?;
        self.check_grants(target, &new, Some(&shown), options)?;
        note_owners(self, target, &new, options);
        warnings.extend(names::finalizer_warnings(resource, &new, Some(&shown)));
        accept::finish(resource, &mut new);
        raise_generation(target, &mut new, &shown);
        if target.subresource.is_none() {
            warnings.extend(of_kinds::of(resource, &new, Some(&shown)));
        }
        object::metadata_mut(&mut new).insert(
            "resourceVersion".to_owned(),
            shown["metadata"]["resourceVersion"].clone(),
        );
        to_storage(resource, &mut new);
        if finishes_deletion(target, &new, old) {
            if !options.dry_run {
                self.erase(target);
            }
            return Ok(present(resource, &Object::new(new)));
        }
        if same_but_for_times(&new, old) {
            return Ok(shown);
        }
        if options.dry_run {
            return Ok(present(resource, &Object::new(new)));
        }
        let object = self.store.put(target.key(), new);
        self.definition_written(target, &object);
        Ok(present(resource, &object))
    }

    /// Removes the object from storage. Answers its last state at the revision of the removal.
    pub(super) fn erase(&mut self, target: &Target) -> Option<Object> {
        let key = target.key();
        let last = self.store.remove(&key);
        self.definition_removed(&key, last.as_ref());
        last
    }
}

/// A uid in a body means that very object.
fn check_uid(
    target: &Target,
    uid: &str,
    stored: &str,
    options: &WriteOptions,
) -> Result<(), Status> {
    if uid.is_empty() || uid == stored {
        return Ok(());
    }
    let key = target.key().to_string();
    // A dry run does not come as far as the prefix.
    let key = if options.dry_run {
        key.strip_prefix("/registry").unwrap_or(&key)
    } else {
        &key
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
    );
    Err(Status::conflict(
        target.resource.subject(&target.name),
        &why,
    ))
}

fn check_version(target: &Target, new: &Value, old: &Value, origin: Origin) -> Result<(), Status> {
    let resource = &target.resource;
    let version = object::resource_version(new);
    let absent = version.is_empty() || version == "0";
    if absent {
        return match origin {
            Origin::Put | Origin::Patch if !resource.lifecycle.unconditional_update => {
                let cause = Cause {
                    reason: "FieldValueInvalid",
                    field: "metadata.resourceVersion".to_owned(),
                    message: "Invalid value: 0: must be specified for an update".to_owned(),
                };
                Err(Status::invalid(resource.subject(&target.name), vec![cause]))
            }
            Origin::Put | Origin::Patch | Origin::Apply => Ok(()),
        };
    }
    if let Err(why) = version.parse::<u64>() {
        return Err(Status::internal(unreadable(version, &why)));
    }
    if version != object::resource_version(old) {
        return Err(Status::modified(resource.subject(&target.name)));
    }
    Ok(())
}

/// What is said of a version that is no number.
fn unreadable(version: &str, why: &ParseIntError) -> String {
    let why = if *why.kind() == IntErrorKind::PosOverflow {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.ParseUint: parsing {version:?}: {why}")
}

/// Members of metadata that some kinds keep though others let them be changed with the status.
const KEPT_BESIDE_STATUS: [(&str, &str, &str); 2] = [
    ("apps", "deployments", "labels"),
    ("", "pods", "ownerReferences"),
];

/// Keeps what a write to the status does not change, before anybody comes to own it.
fn keep_beside_status(target: &Target, new: &mut Value, old: &Value) {
    if !target.is_subresource("status") {
        return;
    }
    for (group, plural, member) in KEPT_BESIDE_STATUS {
        if target.resource.is(group, plural) {
            let kept = old["metadata"].get(member).cloned();
            set_member(&mut new["metadata"], member, kept);
        }
    }
}

/// Takes from the new state only what the endpoint may change.
fn separate(target: &Target, new: &mut Value, old: &Value) {
    let resource = &target.resource;
    match target.subresource.as_deref() {
        None if resource.has_status() => copy_member(old, new, "status"),
        Some("status") if resource.is_custom() => {
            let status = new.get("status").cloned();
            let managers = new["metadata"].get("managedFields").cloned();
            *new = old.clone();
            set_member(new, "status", status);
            set_member(&mut new["metadata"], "managedFields", managers);
        }
        Some("status") => {
            for member in other_members(new, old) {
                copy_member(old, new, &member);
            }
            // A pod keeps its class of service, which depends on its spec.
            if resource.is("", "pods") && new["status"]["qosClass"].is_null() {
                new["status"]["qosClass"] = old["status"]["qosClass"].clone();
            }
        }
        Some(part) if resource.is("", "pods") && pods::take_part(part, new, old) => {}
        Some("finalize") => {
            let finalizers = new["spec"].get("finalizers").cloned();
            let managers = new["metadata"].get("managedFields").cloned();
            *new = old.clone();
            set_member(&mut new["spec"], "finalizers", finalizers);
            set_member(&mut new["metadata"], "managedFields", managers);
        }
        None | Some(_) => {}
    }
    if target.subresource.is_none() && resource.is("", "namespaces") {
        copy_member(old, new, "spec");
    }
}

/// The members of either object beside metadata, status and the type.
fn other_members(new: &Value, old: &Value) -> Vec<String> {
    let members = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .map(|members| members.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut names = members(new);
    names.extend(members(old));
    names.retain(|name| !["metadata", "status", "apiVersion", "kind"].contains(&name.as_str()));
    names
}

fn copy_member(from: &Value, to: &mut Value, name: &str) {
    set_member(to, name, from.get(name).cloned());
}

fn set_member(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => {
            members.insert(name.to_owned(), value);
        }
        None => {
            members.remove(name);
        }
    }
}

/// Raises the generation if a part changed that raises it.
fn raise_generation(target: &Target, new: &mut Value, old: &Value) {
    let resource = &target.resource;
    // A write to the status changes nothing that somebody wants.
    if target.is_subresource("status") {
        return;
    }
    if !has_generation(resource, old) {
        return;
    }
    let changed = resource
        .lifecycle
        .generation_raised_by
        .iter()
        .any(|part| match part {
            Part::Labels => new["metadata"]["labels"] != old["metadata"]["labels"],
            Part::Annotations => new["metadata"]["annotations"] != old["metadata"]["annotations"],
            Part::Finalizers => new["metadata"]["finalizers"] != old["metadata"]["finalizers"],
            Part::Spec => spec_differs(resource, new, old),
        });
    if changed {
        let raised = json!(object::generation(old) + 1);
        object::metadata_mut(new).insert("generation".to_owned(), raised);
    }
}

fn spec_differs(resource: &Resource, new: &Value, old: &Value) -> bool {
    let mut names = other_members(new, old);
    // Without a status subresource the status is a part of the object like any other.
    if resource.is_custom() && !resource.has_status() {
        names.push("status".to_owned());
    }
    names.iter().any(|name| new.get(name) != old.get(name))
}

/// Whether the last thing that held a deleted object is now gone.
fn finishes_deletion(target: &Target, new: &Value, old: &Value) -> bool {
    let grace = old["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default();
    let held = target.resource.is("", "namespaces")
        && new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
    object::is_being_deleted(old) && grace == 0 && object::finalizers(new).next().is_none() && !held
}

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{ListOptions, Registry, Reply, Target, definitions, has_generation, present};
use crate::environment::seconds;
use crate::object;
use crate::resource::{DeleteAnswer, Resource};
use crate::status::{Cause, Status, Subject};
use crate::storage::Object;

/// Holds an owner until the dependents that block it are gone.
pub(crate) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// Holds an owner until its dependents no longer name it.
pub(crate) const ORPHAN_FINALIZER: &str = "orphan";

/// The grace of a pod that names none.
const DEFAULT_POD_GRACE_SECONDS: i64 = 30;

/// How a deletion is to be done.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// Whether the old way of saying it was used, to have the dependents deleted.
    pub(crate) cascades: bool,
    pub(crate) expected_uid: Option<String>,
    pub(crate) expected_version: Option<String>,
}

/// What becomes of the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after the owner.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without an owner.
    Orphan,
}

/// The state into which a deletion brings an object.
enum Mark {
    /// Nothing holds it.
    Gone(Value),
    /// It stays until what holds it lets go, or its grace is over.
    Held(Value),
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads a body of kind `DeleteOptions`, which is complete in itself.
    ///
    /// # Errors
    ///
    /// 422 for values that are not allowed.
    pub(crate) fn from_body(body: &Value) -> Result<Self, Status> {
        let text = |value: &Value| {
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let mut causes = Vec::new();
        let dry_run = match body["dryRun"].as_array().map_or(&[][..], Vec::as_slice) {
            [] => false,
            values if values.iter().all(|value| value == "All") => true,
            values => {
                causes.push(Cause::not_supported("dryRun", &json!(values), &["All"]));
                false
            }
        };
        let orphan = body["orphanDependents"].as_bool();
        let mut propagation = match orphan {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Background),
            None => None,
        };
        let policy = &body["propagationPolicy"];
        if let Some(name) = policy.as_str() {
            propagation = Propagation::by_name(name);
            if orphan.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid("propagationPolicy", policy, why));
            } else if propagation.is_none() {
                let names = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::not_supported("propagationPolicy", policy, &names));
            }
        }
        if !causes.is_empty() {
            let subject = Subject {
                group: "meta.k8s.io",
                kind: "DeleteOptions",
                name: "",
            };
            return Err(Status::invalid(subject, causes));
        }
        Ok(Self {
            dry_run,
            grace_seconds: body["gracePeriodSeconds"].as_i64(),
            propagation,
            cascades: orphan == Some(false),
            expected_uid: text(&body["preconditions"]["uid"]),
            expected_version: text(&body["preconditions"]["resourceVersion"]),
        })
    }
}

// === impl Propagation ===

impl Propagation {
    fn by_name(name: &str) -> Option<Self> {
        match name {
            "Background" => Some(Self::Background),
            "Foreground" => Some(Self::Foreground),
            "Orphan" => Some(Self::Orphan),
            _ => None,
        }
    }

    /// The finalizer through which the garbage collector sees the wish.
    fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND_FINALIZER),
            Self::Orphan => Some(ORPHAN_FINALIZER),
        }
    }
}

impl Registry {
    /// Deletes an object, or marks it as deleted while something holds it. Answers the body.
    ///
    /// # Errors
    ///
    /// 404 if it is not there, 403 if it may not be deleted, 409 where a precondition fails.
    pub(crate) fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Reply, Status> {
        let resource = Arc::clone(&target.resource);
        Self::admit_deletion(target)?;
        let warnings = warnings(&resource, options);
        let old = self.stored(target).map_err(|status| Status {
            warnings: warnings.clone(),
            ..status
        })?;
        check_preconditions(&resource, &old, options)?;
        let mark = self.mark(&resource, &old, options);
        // Older clients are told that there is something to wait for.
        let waits = options.cascades && matches!(mark, Mark::Held(_));
        let body = match mark {
            Mark::Gone(mut last) => {
                let removed = if options.dry_run {
                    None
                } else {
                    self.erase(target)
                };
                match resource.lifecycle.delete_answers {
                    DeleteAnswer::Status => Object::new(success(&resource, &old)),
                    DeleteAnswer::Object => {
                        let version = removed.as_deref().unwrap_or(&old);
                        let version = version["metadata"]["resourceVersion"].clone();
                        object::metadata_mut(&mut last)
                            .insert("resourceVersion".to_owned(), version);
                        present(&resource, &Object::new(last))
                    }
                }
            }
            Mark::Held(new) if new == *old || options.dry_run => {
                present(&resource, &Object::new(new))
            }
            Mark::Held(new) => {
                let object = self.store.put(target.key(), new);
                self.definition_written(target, &object);
                present(&resource, &object)
            }
        };
        Ok(Reply {
            code: if waits { 202 } else { 200 },
            body,
            warnings,
        })
    }

    /// Deletes every object of a list, one by one. Answers the list as it was.
    ///
    /// # Errors
    ///
    /// Those of the list, and of a deletion other than that the object is gone already.
    pub(crate) fn delete_collection(
        &mut self,
        target: &Target,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Value, Status> {
        let page = self.page(target, list)?;
        for object in &page.items {
            let one = Target {
                namespace: object::namespace(object).to_owned(),
                name: object::name(object).to_owned(),
                ..target.clone()
            };
            if let Err(status) = self.delete(&one, options)
                && !status.is_not_found()
            {
                return Err(status);
            }
        }
        Ok(page.into_body(&target.resource))
    }

    fn mark(&self, resource: &Resource, old: &Value, options: &DeleteOptions) -> Mark {
        let mut new = old.clone();
        let propagation = options
            .propagation
            .or_else(|| default_propagation(resource, old));
        if let Some(propagation) = propagation {
            set_propagation(&mut new, propagation);
        }
        if resource.is("", "namespaces") {
            new["status"]["phase"] = json!("Terminating");
        }
        if resource.is_definition() && !object::is_being_deleted(old) {
            definitions::note_deletion(&mut new, &self.now());
        }
        let grace = grace_seconds(resource, old, options);
        let marked_grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let shorter = marked_grace.is_none_or(|marked| grace < marked);
        if !object::is_being_deleted(old) || (resource.is("", "pods") && shorter) {
            let time = self
                .clock
                .now()
                .checked_add(SignedDuration::from_secs(grace));
            let first = !object::is_being_deleted(old);
            let metadata = object::metadata_mut(&mut new);
            let time = time.unwrap_or(jiff::Timestamp::MAX);
            metadata.insert("deletionTimestamp".to_owned(), json!(seconds(time)));
            // The end of a namespace is not a matter of grace.
            if !resource.is("", "namespaces") {
                metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
            }
            if first && has_generation(resource, old) {
                let raised = json!(object::generation(old) + 1);
                metadata.insert("generation".to_owned(), raised);
            }
        }
        let held = object::finalizers(&new).next().is_some()
            || new["metadata"]["deletionGracePeriodSeconds"]
                .as_i64()
                .is_some_and(|left| left > 0)
            || (resource.is("", "namespaces")
                && new["spec"]["finalizers"]
                    .as_array()
                    .is_some_and(|list| !list.is_empty()));
        if held {
            return Mark::Held(new);
        }
        // An answer that shows the object shows it as it was, but for pods, which are marked first.
        Mark::Gone(if resource.is("", "pods") {
            new
        } else {
            old.clone()
        })
    }
}

/// What to warn about: a kind that keeps its dependents for reasons of history.
fn warnings(resource: &Resource, options: &DeleteOptions) -> Vec<String> {
    if options.propagation.is_some() || !resource.is("batch", "jobs") {
        return Vec::new();
    }
    vec![
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning"
            .to_owned(),
    ]
}

fn check_preconditions(
    resource: &Resource,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let subject = resource.kind_subject(object::name(old));
    let uid = object::uid(old);
    if let Some(expected) = options
        .expected_uid
        .as_deref()
        .filter(|expected| *expected != uid)
    {
        return Err(Status::conflict(
            subject,
            &format!(
                "the UID in the precondition ({expected}) does not match the UID in record \
                 ({uid}). The object might have been deleted and then recreated"
            ),
        ));
    }
    let version = object::resource_version(old);
    let expected = options.expected_version.as_deref();
    if let Some(expected) = expected.filter(|expected| *expected != version) {
        return Err(Status::conflict(
            subject,
            &format!(
                "the ResourceVersion in the precondition ({expected}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}

/// What happens to the dependents when the request does not say: what earlier finalizers want, or
/// what the kind is used to.
fn default_propagation(resource: &Resource, old: &Value) -> Option<Propagation> {
    let has = |name| object::finalizers(old).any(|one| one == name);
    if has(ORPHAN_FINALIZER) || has(FOREGROUND_FINALIZER) {
        return None;
    }
    // Kept from before garbage collection existed.
    let orphans = resource.is("batch", "jobs") || resource.is("", "replicationcontrollers");
    orphans.then_some(Propagation::Orphan)
}

fn set_propagation(object: &mut Value, propagation: Propagation) {
    let mut finalizers: Vec<String> = object::finalizers(object)
        .filter(|one| ![ORPHAN_FINALIZER, FOREGROUND_FINALIZER].contains(one))
        .map(str::to_owned)
        .collect();
    finalizers.extend(propagation.finalizer().map(str::to_owned));
    object::set_finalizers(object, &finalizers);
}

/// Only pods that run have time to end.
fn grace_seconds(resource: &Resource, old: &Value, options: &DeleteOptions) -> i64 {
    let phase = &old["status"]["phase"];
    let ended = phase == "Succeeded" || phase == "Failed";
    let scheduled = old["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    if !resource.is("", "pods") || ended || !scheduled {
        return 0;
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64();
    let grace = options
        .grace_seconds
        .or(own)
        .unwrap_or(DEFAULT_POD_GRACE_SECONDS);
    if grace < 0 { 1 } else { grace }
}

/// The answer to a deletion that is done.
fn success(resource: &Resource, old: &Value) -> Value {
    let mut details = json!({
        "name": object::name(old),
        "kind": resource.plural,
        "uid": object::uid(old),
    });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

use serde_json::{Value, json};

use super::accept::{self, Origin};
use super::metadata::{dedup_owners, validate_new};
use super::{
    Registry, Reply, Target, WriteOptions, defaults, names, ownership, present, reviews,
    rights::note_owners, to_storage, warnings as of_kinds,
};
use crate::managed::Managers;
use crate::object;
use crate::status::{Cause, Status};
use crate::storage::{Key, Object};

/// How much of `generateName` is kept in front of the suffix: the name has 63 characters at most.
const MAX_GENERATED_BASE: usize = 58;

/// How often another name is tried when a generated one is taken.
const MAX_GENERATE_ATTEMPTS: usize = 8;

/// Members of metadata that only the server sets.
const SERVER_MEMBERS: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

impl Registry {
    /// Creates an object.
    ///
    /// # Errors
    ///
    /// 400 and 422 for a body that cannot be accepted, 403 and 404 because of its namespace, 409 if
    /// the name is taken.
    pub(crate) fn create(
        &mut self,
        target: &Target,
        mut body: Value,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        if target.subresource.is_some() {
            return self.act(target, body, options);
        }
        let resource = &target.resource;
        accept::check_type(resource, &mut body, options)?;
        accept::settle_namespace(target, &mut body)?;
        let mut warnings = accept::decode(resource, &mut body, Origin::Put, options)?;
        if let Some(answer) = reviews::answer(self, target, &body, &options.requester) {
            let managers = self.track(target, None, &body, ownership::of(&body), options);
            ownership::set(&mut body, &managers);
            body["status"] = answer;
            return Ok(Reply {
                code: 201,
                body: Object::new(body),
                warnings,
            });
        }
        self.create_decoded(target, body, None, options, &mut warnings)
            .map_err(|status| Status {
                warnings: warnings.clone(),
                ..status
            })
            .map(|object| Reply {
                code: 201,
                body: object,
                warnings,
            })
    }

    /// Creates an object from a body that was taken in; without `managers` the fields belong to whoever
    /// writes.
    pub(super) fn create_decoded(
        &mut self,
        target: &Target,
        mut body: Value,
        managers: Option<Managers>,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let resource = &target.resource;
        warnings.extend(dedup_owners(&mut body));
        for member in SERVER_MEMBERS {
            object::metadata_mut(&mut body).remove(member);
        }
        defaults::fill(resource, &mut body);
        let managers = managers.unwrap_or_else(|| {
            let given = ownership::of(&body);
            self.track(target, None, &body, given, options)
        });
        ownership::set(&mut body, &managers);
        self.admit_creation(target, &body)?;
        self.settle_name(target, &mut body)?;
        if resource.has_status() {
            drop_status(&mut body);
            defaults::fill_status(resource, &mut body);
        }
        self.set_server_metadata(target, &mut body);
        self.allocate(target, &mut body, None)?;
        warnings.extend(validate_new(target, &body, options)?);
        warnings.extend(of_kinds::of(resource, &body, None));
        warnings.extend(names::finalizer_warnings(resource, &body, None));
        accept::finish(resource, &mut body);
        to_storage(resource, &mut body);
        if !object::resource_version(&body).is_empty() && !options.dry_run {
            return Err(Status::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.check_grants(target, &body, None, options)?;
        note_owners(self, target, &body, options);
        let key = Key::new(&resource.storage, &target.namespace, object::name(&body));
        if let Some(existing) = self.store.get(&key) {
            let deleting = object::is_being_deleted(&existing);
            let subject = resource.subject(&key.name);
            let base = body["metadata"]["generateName"].as_str();
            return Err(if base.is_none_or(str::is_empty) {
                Status::already_exists(subject, deleting)
            } else {
                Status::not_unique(subject, deleting)
            });
        }
        if options.dry_run {
            return Ok(present(resource, &Object::new(body)));
        }
        if self.store.len() >= self.config.max_objects {
            return Err(Status::storage_is_full());
        }
        let object = self.store.put(key, body);
        self.definition_written(target, &object);
        Ok(present(resource, &object))
    }

    fn settle_name(&mut self, target: &Target, body: &mut Value) -> Result<(), Status> {
        let resource = &target.resource;
        let metadata = &body["metadata"];
        if metadata["name"]
            .as_str()
            .is_some_and(|name| !name.is_empty())
        {
            return Ok(());
        }
        let base = metadata["generateName"].as_str().unwrap_or_default();
        if base.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(resource.kind_subject(""), vec![cause]));
        }
        let base: String = base.chars().take(MAX_GENERATED_BASE).collect();
        let mut name = String::new();
        for _ in 0..MAX_GENERATE_ATTEMPTS {
            name = format!("{base}{}", self.entropy.suffix());
            if self
                .store
                .get(&Key::new(&resource.storage, &target.namespace, &name))
                .is_none()
            {
                break;
            }
        }
        object::metadata_mut(body).insert("name".to_owned(), json!(name));
        Ok(())
    }

    fn set_server_metadata(&mut self, target: &Target, body: &mut Value) {
        let now = self.now();
        let uid = self.entropy.uid().to_string();
        let metadata = object::metadata_mut(body);
        metadata.insert("creationTimestamp".to_owned(), json!(now));
        metadata.insert("uid".to_owned(), json!(uid));
        if target.resource.lifecycle.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
    }
}

/// A status can only be written through its subresource.
fn drop_status(body: &mut Value) {
    if let Some(members) = body.as_object_mut() {
        members.remove("status");
    }
}

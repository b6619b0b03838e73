//! PATCH in its forms.

mod apply;
mod json_patch;
mod last_applied;
mod merge_patch;
mod strategic;

use std::sync::Arc;

use serde_json::Value;

use super::accept::{self, Origin};
use super::{Registry, Reply, Target, WriteOptions, present, scale};
use crate::object;
use crate::status::Status;
use crate::storage::Object;

/// A patch as it came.
#[derive(Debug, Clone)]
pub(crate) struct Patch {
    pub(crate) kind: PatchKind,
    pub(crate) body: Value,
    /// Take fields from other managers. Only for apply.
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Registry {
    /// Changes an object by a patch.
    ///
    /// # Errors
    ///
    /// 404 if it is not there, 409 if the patch names another version, 400, 415 and 422 for patches
    /// that cannot be applied.
    pub(crate) fn patch(
        &mut self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let resource = Arc::clone(&target.resource);
        let Some(old) = self.store.get(&target.key()) else {
            if patch.kind == PatchKind::Apply {
                return self.apply(target, &patch.body, patch.force, options);
            }
            return Err(Status::not_found(resource.subject(&target.name)));
        };
        let is_scale = target.is_subresource("scale");
        let shown = if is_scale {
            Object::new(scale::of(&resource, &old))
        } else {
            present(&resource, &old)
        };
        let mut new = Value::clone(&shown);
        match patch.kind {
            PatchKind::Json => {
                json_patch::apply(&mut new, &patch.body, self.config.max_json_patch_operations)?;
            }
            PatchKind::Merge => {
                merge_patch::check(&patch.body)?;
                merge_patch::apply(&mut new, &patch.body);
            }
            PatchKind::Strategic => strategic::apply(&mut new, &patch.body, &resource.schema)?,
            PatchKind::Apply => return self.apply(target, &patch.body, patch.force, options),
        }
        if is_scale {
            object::check_shape(&mut new)?;
        } else {
            accept::check_type(&resource, &mut new, options)?;
        }
        check_identity(target, &new)?;
        self.change(target, new, None, &old, Origin::Patch, options)
    }
}

/// A patch cannot give an object another name or namespace.
fn check_identity(target: &Target, new: &Value) -> Result<(), Status> {
    accept::check_name(target, new)?;
    if object::namespace(new) != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

//! Taking in the body of a write: it must be of the right type, and is brought into the form in
//! which it is stored.

use serde_json::{Value, json};

use super::{FieldValidation, Target, WriteOptions};
use crate::object;
use crate::resource::Resource;
use crate::schema::{decode_builtin, decode_custom, finish_builtin};
use crate::status::{Cause, Status};

/// How a new state comes about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A client sent the whole object.
    Put,
    /// Something was changed in the stored object.
    Patch,
}

/// Checks apiVersion and kind of a body against the resource; a built-in one may leave them out.
///
/// # Errors
///
/// 400 or 422, as the server answers for built-in and custom kinds.
pub(super) fn check_type(resource: &Resource, body: &mut Value) -> Result<(), Status> {
    object::check_shape(body)?;
    let expected = resource.api_version();
    if !resource.is_custom() {
        for (member, value) in [("apiVersion", &expected), ("kind", &resource.kind)] {
            if body[member].as_str().is_none_or(str::is_empty) {
                body[member] = json!(value);
            }
        }
    }
    let kind = body["kind"].as_str().unwrap_or_default().to_owned();
    let api_version = body["apiVersion"].as_str().unwrap_or_default().to_owned();
    if kind.is_empty() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
            resource.kind
        )));
    }
    if api_version != expected && (resource.is_custom() || kind == resource.kind) {
        let mut status = Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({expected})"
        ));
        // Of a version that nobody serves no member is known beside those of every object.
        let members = body
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let unknown = members.filter(|name| !["apiVersion", "kind", "metadata"].contains(name));
        if resource.is_custom() {
            status.warnings = unknown
                .map(|name| format!("unknown field {name:?}"))
                .collect();
        }
        return Err(status);
    }
    if kind != resource.kind {
        if resource.is_custom() {
            let subject = crate::status::Subject {
                group: &resource.group,
                kind: &kind,
                name: object::name(body),
            };
            let why = format!("must be {}", resource.kind);
            let cause = Cause::invalid("kind", &json!(kind), &why);
            return Err(Status::invalid(subject, vec![cause]));
        }
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}",
            resource.version, resource.kind
        )));
    }
    Ok(())
}

/// Brings a body into its canonical form: what is not known is dropped, defaults of custom objects
/// are filled in. Answers what to warn about.
///
/// # Errors
///
/// 400 (422 for a patch) where a member has the wrong type, or is not known and the request wants that
/// to be an error.
pub(super) fn decode(
    resource: &Resource,
    body: &mut Value,
    origin: Origin,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let decoded = if resource.is_custom() {
        decode_custom(body, &resource.schema)
    } else {
        decode_builtin(body, &resource.schema)
    };
    if let Some(problem) = decoded.problem {
        return Err(refuse(resource, origin, &problem));
    }
    report_unknown(resource, &decoded.unknown, origin, options)
}

fn refuse(resource: &Resource, origin: Origin, why: &str) -> Status {
    let Resource { kind, version, .. } = resource;
    match origin {
        Origin::Put => Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        )),
        Origin::Patch => Status::bad_patch(why),
    }
}

/// Brings an object into the form that comes back from storage.
pub(super) fn finish(resource: &Resource, object: &mut Value) {
    if !resource.is_custom() {
        decode_builtin(object, &resource.schema);
        finish_builtin(object, &resource.schema);
    }
}

/// An object about which nothing was said.
pub(super) fn nothing(resource: &Resource) -> Value {
    let mut nothing = json!({});
    if !resource.is_custom() {
        decode_builtin(&mut nothing, &resource.schema);
    }
    nothing
}

fn report_unknown(
    resource: &Resource,
    unknown: &[String],
    origin: Origin,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let duplicates = options.duplicates.iter();
    let found: Vec<String> = duplicates
        .map(|path| format!("duplicate field {path:?}"))
        .chain(unknown.iter().map(|path| format!("unknown field {path:?}")))
        .collect();
    match options.validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(found),
        FieldValidation::Strict if found.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(refuse(resource, origin, &why))
        }
    }
}

/// Settles the namespace of a body with that of the request.
///
/// # Errors
///
/// 400 where they differ.
pub(super) fn settle_namespace(target: &Target, body: &mut Value) -> Result<(), Status> {
    let metadata = object::metadata_mut(body);
    if !target.resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    let given = metadata
        .get("namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !given.is_empty() && given != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata.insert("namespace".to_owned(), json!(target.namespace));
    Ok(())
}

/// The name in a body must be that of the request.
pub(super) fn check_name(target: &Target, body: &Value) -> Result<(), Status> {
    let name = object::name(body);
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    if name != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}

//! Taking in the body of a write: it must be of the right type, and is brought into the form in
//! which it is stored.

use serde_json::{Value, json};

use super::{FieldValidation, Target, WriteOptions};
use crate::object;
use crate::quoted::quoted;
use crate::resource::{Resource, is_registered};
use crate::schema::{blank_builtin, decode_applied, decode_builtin, decode_custom, finish_builtin};
use crate::status::{Cause, Status};

/// How a new state comes about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A client sent the whole object.
    Put,
    /// Something was changed in the stored object.
    Patch,
    /// A configuration was merged with the stored object.
    Apply,
}

/// Checks apiVersion and kind of a body against the resource; a built-in one may leave them out.
///
/// # Errors
///
/// 400 or 422, as the server answers for built-in and custom kinds.
pub(super) fn check_type(
    resource: &Resource,
    body: &mut Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    if let Some(problem) = metadata_problem(resource, body) {
        return Err(refuse(resource, Origin::Put, &problem));
    }
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
    if api_version.split('/').count() > 2 {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): unexpected GroupVersion \
             string: {api_version} ({})",
            resource.kind,
            summary(&options.body)
        )));
    }
    if !resource.is_custom() && (api_version != expected || kind != resource.kind) {
        check_registered(resource, &api_version, &kind)?;
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

/// How much of a body is shown.
const SHOWN_BYTES: usize = 30;

/// The beginning of a body.
fn summary(body: &[u8]) -> String {
    match body.get(..SHOWN_BYTES) {
        _ if body.is_empty() => "<empty>".to_owned(),
        Some(start) if body.len() > SHOWN_BYTES => {
            format!("{} ...", String::from_utf8_lossy(start))
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// What is wrong with metadata that is no object.
fn metadata_problem(resource: &Resource, body: &Value) -> Option<String> {
    let found = match body.get("metadata")? {
        Value::Null | Value::Object(_) => return None,
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    let kind = &resource.kind;
    (!resource.is_custom()).then(|| {
        format!(
            "json: cannot unmarshal {found} into Go struct field {kind}.metadata of type \
             v1.ObjectMeta"
        )
    })
}

/// Where the recorded server's kinds are registered, as its messages say.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// Whether a body of another kind or version is one that the server knows.
///
/// # Errors
///
/// 400 for a kind that is not known in that version, and for one that cannot become the resource's.
fn check_registered(resource: &Resource, api_version: &str, kind: &str) -> Result<(), Status> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let package = |group: &str| match group.split('.').next() {
        None | Some("") => "core".to_owned(),
        Some(package) => package.to_owned(),
    };
    let own = &resource.kind;
    let refused = |why: String| {
        Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {own}: {why}"
        )))
    };
    if !is_registered(group, version, kind) {
        return refused(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}"
        ));
    }
    if kind != own {
        return refused(format!(
            "converting ({version}.{kind}) to ({}.{own}): unknown conversion",
            package(&resource.group)
        ));
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
    let patched = resource.is_custom()
        && options.validation == FieldValidation::Strict
        && !matches!(origin, Origin::Put);
    let shown = patched.then(|| quoted(&body.to_string()));
    let mut decoded = if !resource.is_custom() {
        decode_builtin(body, &resource.schema)
    } else if matches!(origin, Origin::Apply) {
        decode_applied(body, &resource.schema)
    } else {
        decode_custom(body, &resource.schema)
    };
    if resource.is_custom() {
        decoded.unknown.sort();
    }
    if let Some(problem) = decoded.problem {
        return Err(refuse(resource, origin, &problem));
    }
    report_unknown(resource, &decoded.unknown, origin, options).map_err(|status| match &shown {
        // The value that is refused is the whole object.
        Some(shown) => status.with_shown_patch(shown),
        None => status,
    })
}

fn refuse(resource: &Resource, origin: Origin, why: &str) -> Status {
    let Resource { kind, version, .. } = resource;
    match origin {
        Origin::Put => Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        )),
        Origin::Patch => Status::bad_patch(why),
        Origin::Apply => Status::internal(why),
    }
}

/// Brings an object into the form that comes back from storage.
pub(super) fn finish(resource: &Resource, object: &mut Value) {
    if resource.is_custom() {
        whole_numbers(object);
    }
    if !resource.is_custom() {
        decode_builtin(object, &resource.schema);
        finish_builtin(object, &resource.schema);
    }
}

/// A number without a fraction is written without one.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64());
            let whole = whole.filter(|whole| whole.fract() == 0.0 && whole.abs() < LARGEST_WHOLE);
            if let Some(whole) = whole
                && let Ok(number) = format!("{whole:.0}").parse::<i64>()
            {
                *value = json!(number);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Numbers from here on are not the only ones that a double stands for.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// An object about which nothing was said.
pub(crate) fn nothing(resource: &Resource) -> Value {
    let mut nothing = json!({});
    if !resource.is_custom() {
        decode_builtin(&mut nothing, &resource.schema);
    }
    nothing
}

/// An object of which nothing is known, as bookmarks show it.
pub(crate) fn blank(resource: &Resource) -> Value {
    if resource.is_custom() {
        json!({})
    } else {
        blank_builtin(&resource.schema)
    }
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
        FieldValidation::Strict if matches!(origin, Origin::Apply) && !found.is_empty() => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(Status::bad_patch(&why))
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::builtin_resources;

    /// What a typed server cannot leave out is in an object of which nothing is known.
    #[test]
    fn blank_objects() {
        let template = json!({ "metadata": {}, "spec": { "containers": null } });
        for (kind, spec, status) in [
            ("ConfigMap", Value::Null, Value::Null),
            ("Pod", json!({ "containers": null }), json!({})),
            ("Service", json!({}), json!({ "loadBalancer": {} })),
            (
                "PersistentVolumeClaim",
                json!({ "resources": {} }),
                json!({}),
            ),
            ("LimitRange", json!({ "limits": null }), Value::Null),
            ("Job", json!({ "template": template }), json!({})),
            (
                "DaemonSet",
                json!({ "selector": null, "template": template, "updateStrategy": {} }),
                json!({
                    "currentNumberScheduled": 0,
                    "desiredNumberScheduled": 0,
                    "numberMisscheduled": 0,
                    "numberReady": 0,
                }),
            ),
            (
                "HorizontalPodAutoscaler",
                json!({ "scaleTargetRef": { "kind": "", "name": "" }, "maxReplicas": 0 }),
                json!({ "desiredReplicas": 0, "currentMetrics": null }),
            ),
            ("Lease", json!({}), Value::Null),
        ] {
            let mut known = builtin_resources().iter();
            let resource = known.find(|one| one.kind == kind);
            let object = blank(resource.expect("the kind is there"));
            let shown = (&object["spec"], &object["status"]);
            assert_eq!(shown, (&spec, &status), "{kind}");
        }
    }
}

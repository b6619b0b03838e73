//! What is sent, and what follows from the answer.

use crate::target::Target;
use homeostat_core::{
    compare::{self, Shape},
    conditions,
};
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

/// How often a patch is made anew because others write to the same object at the same time. Of any
/// number of writes at a time one succeeds, so this is how many others there may be.
const ATTEMPTS: u32 = 8;

/// Makes the status of an object be as `desired` says, given the status that is there.
///
/// `live` is the latest that is known of the object. Answers what the object is afterwards, or `None`
/// if nothing differs and nothing was sent.
pub(crate) async fn merge(
    target: &Target,
    shape: &Shape,
    live: Value,
    desired: impl Fn(&Value) -> Value,
) -> Result<Option<Value>, kube::Error> {
    let patch = |live: &Value| {
        let body = merge_body(shape, live, &desired(&live["status"]))?;
        Some(Patch::Merge(body))
    };
    send(target, &PatchParams::default(), live, patch).await
}

/// Applies `desired` to the status of an object, unless that is done. The rest is as with [`merge`].
pub(super) async fn apply(
    target: &Target,
    field_manager: &str,
    shape: &Shape,
    live: Value,
    desired: &Value,
) -> Result<Option<Value>, kube::Error> {
    for name in ["apiVersion", "kind"] {
        if live[name].is_null() {
            let message = format!("the object does not say its {name}, which an apply needs");
            let error = kube::core::request::Error::Validation(message);
            return Err(kube::Error::BuildRequest(error));
        }
    }
    let patch = |live: &Value| {
        let body = apply_body(shape, live, desired, field_manager)?;
        Some(Patch::Apply(body))
    };
    let params = PatchParams::apply(field_manager).force();
    send(target, &params, live, patch).await
}

/// Sends what is to be sent for the state of the object that is known, and reads the object when it
/// turns out to be another one.
async fn send(
    target: &Target,
    params: &PatchParams,
    mut live: Value,
    patch: impl Fn(&Value) -> Option<Patch<Value>>,
) -> Result<Option<Value>, kube::Error> {
    let mut attempt = 1;
    loop {
        let Some(patch) = patch(&live) else {
            return Ok(None);
        };
        let error = match target.patch_status(params, &patch).await {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => error,
        };
        let is_outdated = matches!(&error, kube::Error::Api(status) if status.code == 409);
        if !is_outdated || attempt == ATTEMPTS {
            return Err(error);
        }
        attempt += 1;
        let now = target.get().await?;
        let uid = &live["metadata"]["uid"];
        if !uid.is_null() && *uid != now["metadata"]["uid"] {
            return Err(error);
        }
        live = now;
    }
}

/// The merge patch that makes the status of the object `live` be `desired`.
fn merge_body(shape: &Shape, live: &Value, desired: &Value) -> Option<Value> {
    let change = shape.merge_patch(&live["status"], desired)?;
    let metadata = members(&live["metadata"], &["resourceVersion"]);
    Some(json!({ "metadata": metadata, "status": change }))
}

/// What is applied to the object `live`.
fn apply_body(shape: &Shape, live: &Value, desired: &Value, field_manager: &str) -> Option<Value> {
    let desired = with_conditions(&live["status"], desired.clone(), conditions::carried);
    let desired = compare::without_nulls(&desired);
    if is_applied(shape, live, &desired, field_manager) {
        return None;
    }
    let identity = ["name", "namespace", "resourceVersion"];
    let mut body = members(live, &["apiVersion", "kind"]);
    body.insert(
        "metadata".into(),
        members(&live["metadata"], &identity).into(),
    );
    body.insert("status".into(), desired);
    Some(body.into())
}

/// Some members of a map, as far as they are there.
fn members(map: &Value, names: &[&str]) -> Map<String, Value> {
    let member = |&name: &&str| Some((name.to_owned(), map.get(name)?.clone()));
    names.iter().filter_map(member).collect()
}

/// The status that is desired, with the conditions that it does not name and with the times that stay.
pub(super) fn completed(live: &Value, desired: Value) -> Value {
    with_conditions(live, desired, conditions::overlaid)
}

/// The status with what becomes of its conditions, given those that are there.
fn with_conditions(
    live: &Value,
    mut desired: Value,
    combined: fn(&Value, &Value) -> Option<Value>,
) -> Value {
    let named = &desired["conditions"];
    let list = combined(&live["conditions"], named);
    let list = list.filter(|list| !named.is_null() || *list != json!([]));
    if let (Value::Object(members), Some(list)) = (&mut desired, list) {
        members.insert("conditions".to_owned(), list);
    }
    desired
}

/// Whether to apply `desired` would change neither the status nor who owns what of it.
fn is_applied(shape: &Shape, live: &Value, desired: &Value, field_manager: &str) -> bool {
    let status = &live["status"];
    let entries = live["metadata"]["managedFields"].as_array();
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
        return shape.equal(status, desired);
    };
    let mut entries = entries.iter().filter(|entry| {
        entry["manager"] == field_manager
            && entry["operation"] == "Apply"
            && entry["subresource"] == "status"
    });
    entries.any(|entry| compare::owns(&entry["fieldsV1"]["f:status"], desired))
        && shape.covers(status, desired)
}

#[cfg(test)]
mod tests;

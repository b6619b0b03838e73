//! What makers of pods see of them, and how they make them.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::step::{Kind, Step, Subject};
use crate::object;
use crate::registry::selects;
use crate::storage::Object;

/// An owner reference by which an object is looked after.
pub(super) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": object::name(owner),
        "uid": object::uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The metadata of a template with what makes the pod as its owner.
pub(super) fn from_template(owner: &Value, template: &Value) -> Value {
    let mut metadata = json!({ "ownerReferences": [controller_reference(owner)] });
    for member in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(member) {
            metadata[member] = value.clone();
        }
    }
    json!({ "metadata": metadata, "spec": template["spec"] })
}

/// Whether somebody is looked after by this owner.
pub(super) fn is_of(owner: &Value, object: &Value) -> bool {
    object::controller(object).is_some_and(|one| one["uid"] == owner["metadata"]["uid"])
}

/// Takes the objects as its own that the owner selects and nobody looks after, and lets those go that it selects no more.
pub(super) fn claim(owner: &Value, kind: Kind, objects: &[Object]) -> Vec<Step> {
    if object::is_being_deleted(owner) {
        return Vec::new();
    }
    let selector = &owner["spec"]["selector"];
    let claimed = objects.iter().filter_map(|object| {
        let selected = selects(selector, object);
        let had = object::owners(object);
        let references = match object::controller(object) {
            None if selected && !object::is_being_deleted(object) => {
                let mut references = had.to_vec();
                references.push(controller_reference(owner));
                references
            }
            Some(_) if !selected && is_of(owner, object) => {
                let rest = had
                    .iter()
                    .filter(|one| one["uid"] != owner["metadata"]["uid"]);
                rest.cloned().collect()
            }
            Some(_) | None => return None,
        };
        let references = if references.is_empty() {
            Value::Null
        } else {
            json!(references)
        };
        let patch = json!({ "metadata": { "ownerReferences": references } });
        Some(Step::Patch(kind, Subject::of(object), patch))
    });
    claimed.collect()
}

/// Whether a pod runs or will: it has not ended and is not told to.
pub(super) fn is_active(pod: &Value) -> bool {
    !object::is_being_deleted(pod) && !has_ended(pod)
}

pub(super) fn has_ended(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed"
}

pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object::elements(&object["status"], "conditions").find(|condition| condition["type"] == kind)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition["status"] == "True")
}

/// Since when a pod is ready.
fn ready_since(pod: &Value) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|condition| condition["status"] == "True")?;
    time(&ready["lastTransitionTime"])
}

/// From when on a ready pod counts as available.
pub(super) fn available_at(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    let wait = SignedDuration::from_secs(min_ready_seconds);
    ready_since(pod)?.checked_add(wait).ok()
}

/// Whether a pod has been ready for long enough; if not yet, when it will.
pub(super) fn is_available(
    pod: &Value,
    min_ready_seconds: i64,
    now: Timestamp,
) -> Result<bool, Timestamp> {
    match available_at(pod, min_ready_seconds) {
        Some(time) if time > now && min_ready_seconds > 0 => Err(time),
        available => Ok(available.is_some()),
    }
}

pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The order in which a maker gives up pods that are too many: what has come least far goes first.
pub(super) fn worth(pod: &Value) -> impl Ord + use<> {
    let phase = match pod["status"]["phase"].as_str() {
        Some("Running") => 2,
        Some("Pending") | None => 0,
        Some(_) => 1,
    };
    let cost = pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"]
        .as_str()
        .and_then(|cost| cost.parse::<i64>().ok());
    let restarts: i64 = object::elements(&pod["status"], "containerStatuses")
        .filter_map(|one| one["restartCount"].as_i64())
        .sum();
    (
        pod["spec"]["nodeName"].is_string(),
        phase,
        is_ready(pod),
        cost.unwrap_or_default(),
        Reverse(ready_since(pod)),
        Reverse(restarts),
        Reverse(
            pod["metadata"]["creationTimestamp"]
                .as_str()
                .map(str::to_owned),
        ),
        object::name(pod).to_owned(),
    )
}

/// A number of the spec.
pub(super) fn number(spec: &Value, member: &str, default: i64) -> i64 {
    spec[member].as_i64().unwrap_or(default)
}

/// A number, or a percentage of all.
pub(super) fn part(value: &Value, all: i64, up: bool) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    match percent.and_then(|number| number.parse::<i64>().ok()) {
        Some(percent) => {
            let piece = if up { 99 } else { 0 };
            all.saturating_mul(percent).saturating_add(piece) / 100
        }
        None => value.as_i64().unwrap_or_default(),
    }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! What a deployment's status says, and until when a rollout has time.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{View, available, replicas};
use crate::actors::workloads::pods::{condition, number, time};
use crate::actors::workloads::replica_sets::set_number;
use crate::environment::seconds;
use crate::object;

/// What has just happened to the set of the present template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    None,
    Created(String),
    /// It was there before: it is rolled back to.
    Found(String),
}

/// A deadline that stands for none.
const NO_DEADLINE: i64 = i32::MAX as i64;

const PROGRESSING: &str = "Progressing";
const COMPLETE: &str = "NewReplicaSetAvailable";
const LATE: &str = "ProgressDeadlineExceeded";

/// The status, and when to look at it again.
pub(super) fn of(view: &View<'_>, event: &Event, now: Timestamp) -> (Value, Option<Timestamp>) {
    let deployment = view.deployment;
    let had = &deployment["status"];
    let mut status = if had.is_object() {
        had.clone()
    } else {
        json!({})
    };
    let sum = |number_of: fn(&Value) -> i64| view.all().map(|set| number_of(set)).sum::<i64>();
    let shown = |set: &Value| number(&set["status"], "replicas", 0);
    let there = sum(shown);
    let available = sum(available);
    status["observedGeneration"] = json!(object::generation(deployment));
    let terminating = sum(|set| number(&set["status"], "terminatingReplicas", 0));
    status["terminatingReplicas"] = json!(terminating);
    for (member, number) in [
        ("replicas", there),
        ("updatedReplicas", view.new.map_or(0, |set| shown(set))),
        (
            "readyReplicas",
            sum(|set| number(&set["status"], "readyReplicas", 0)),
        ),
        ("availableReplicas", available),
        ("unavailableReplicas", (sum(replicas) - available).max(0)),
    ] {
        set_number(&mut status, member, number);
    }
    let enough = available >= view.limits.wanted - view.limits.spare();
    let (reason, message) = if enough {
        (
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    note(&mut status, "Available", enough, reason, message, now);
    let wake = note_progress(view, event, had, &mut status, now);
    (status, wake)
}

/// Sets a condition. What says the same keeps its times; a new reason alone is an update.
fn note(status: &mut Value, kind: &str, holds: bool, reason: &str, message: &str, now: Timestamp) {
    let now = seconds(now);
    let mut condition = json!({
        "type": kind,
        "status": if holds { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
    });
    let had = object::elements(status, "conditions").find(|one| one["type"] == kind);
    if let Some(had) = had
        && had["status"] == condition["status"]
        && had["reason"] == reason
    {
        condition["lastUpdateTime"] = had["lastUpdateTime"].clone();
        condition["message"] = had["message"].clone();
    }
    crate::registry::set_condition(&mut status["conditions"], condition, &now);
}

fn note_progress(
    view: &View<'_>,
    event: &Event,
    had: &Value,
    status: &mut Value,
    now: Timestamp,
) -> Option<Timestamp> {
    let spec = &view.deployment["spec"];
    let deadline = number(spec, "progressDeadlineSeconds", NO_DEADLINE);
    if deadline == NO_DEADLINE {
        if let Some(conditions) = status["conditions"].as_array_mut() {
            conditions.retain(|one| one["type"] != PROGRESSING);
        }
        return None;
    }
    let told = condition(view.deployment, PROGRESSING);
    let reason = told.and_then(|told| told["reason"].as_str());
    if spec["paused"] == true {
        if reason != Some(LATE) {
            let message = "Deployment is paused";
            set_unknown(status, "DeploymentPaused", message, now);
        }
        return None;
    }
    if reason == Some("DeploymentPaused") {
        let message = "Deployment is resumed";
        set_unknown(status, "DeploymentResumed", message, now);
        return in_seconds(now, deadline);
    }
    let name = view.new.map_or("", |set| object::name(set));
    match event {
        Event::Created(name) => {
            let message = format!("Created new replica set \"{name}\"");
            renew(status, "NewReplicaSetCreated", &message, now);
            return in_seconds(now, deadline);
        }
        Event::Found(name) => {
            let message = format!("Found new replica set \"{name}\"");
            renew(status, "FoundNewReplicaSet", &message, now);
            return in_seconds(now, deadline);
        }
        Event::None => {}
    }
    let (there, updated) = (
        number(status, "replicas", 0),
        number(status, "updatedReplicas", 0),
    );
    if reason == Some(COMPLETE) && there == updated {
        return None;
    }
    let wanted = view.limits.wanted;
    let all = [there, updated, number(status, "availableReplicas", 0)];
    if view.new.is_some() && all.iter().all(|number| *number == wanted) {
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        note(status, PROGRESSING, true, COMPLETE, &message, now);
        return None;
    }
    if has_progressed(had, status) {
        let message = format!("ReplicaSet \"{name}\" is progressing.");
        renew(status, "ReplicaSetUpdated", &message, now);
        return in_seconds(now, deadline);
    }
    let since = told.and_then(|told| time(&told["lastUpdateTime"]));
    let end = since.and_then(|since| in_seconds(since, deadline));
    if reason == Some(COMPLETE) || reason == Some(LATE) {
        return None;
    }
    match end {
        Some(end) if end <= now => {
            let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
            note(status, PROGRESSING, false, LATE, &message, now);
            None
        }
        end => end,
    }
}

/// Notes progress: the time of the last one counts.
fn renew(status: &mut Value, reason: &str, message: &str, now: Timestamp) {
    note(status, PROGRESSING, true, reason, message, now);
    for one in object::elements_mut(status, "conditions") {
        if one["type"] == PROGRESSING {
            one["lastUpdateTime"] = json!(seconds(now));
            one["message"] = json!(message);
        }
    }
}

fn set_unknown(status: &mut Value, reason: &str, message: &str, now: Timestamp) {
    let known = object::elements(status, "conditions").find(|one| one["type"] == PROGRESSING);
    if known.is_some_and(|known| known["reason"] == reason) {
        return;
    }
    renew(status, reason, message, now);
    for one in object::elements_mut(status, "conditions") {
        if one["type"] == PROGRESSING && one["status"] != "Unknown" {
            one["status"] = json!("Unknown");
            one["lastTransitionTime"] = json!(seconds(now));
        }
    }
}

/// Whether there is more of the new than before, or less of the old.
fn has_progressed(had: &Value, status: &Value) -> bool {
    let of = |status: &Value, member: &str| number(status, member, 0);
    let old = |status: &Value| of(status, "replicas") - of(status, "updatedReplicas");
    let more = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    old(status) < old(had)
        || more
            .iter()
            .any(|member| of(status, member) > of(had, member))
}

fn in_seconds(since: Timestamp, seconds: i64) -> Option<Timestamp> {
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

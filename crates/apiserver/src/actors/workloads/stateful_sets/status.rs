//! What a set's status says.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::pods::{count, is_available, is_ready, number};
use super::super::replica_sets::set_number;
use super::super::revisions::LABEL;
use super::View;
use crate::object;
use crate::storage::Object;

/// The status, and when to look at it again.
pub(super) fn of(view: &View<'_>) -> (Value, Option<Timestamp>) {
    let set = view.set;
    let pods = || view.pods.values().copied();
    let living = || pods().filter(|pod| !object::is_being_deleted(pod));
    let of_revision = |name: &str| {
        let own = living().filter(|pod| object::label(pod, LABEL) == Some(name));
        count(own.count())
    };
    let min_ready = number(&set["spec"], "minReadySeconds", 0);
    let soon = |pod: &Object| is_available(pod, min_ready, view.now).err();
    let there = count(pods().count());
    let ready = count(living().filter(|pod| is_ready(pod)).count());
    let available = count(living().filter(|pod| view.is_available(pod)).count());
    let updated = of_revision(view.update);
    let rolls = set["spec"]["updateStrategy"]["type"] != "OnDelete";
    let wanted = view.wanted;
    let is_done = rolls && [there, updated, ready] == [wanted; 3];
    let current = if is_done { view.update } else { view.current };
    let mut status = if set["status"].is_object() {
        set["status"].clone()
    } else {
        json!({})
    };
    for (member, value) in [
        ("observedGeneration", json!(object::generation(set))),
        ("replicas", json!(there)),
        ("availableReplicas", json!(available)),
        ("currentRevision", json!(current)),
        ("updateRevision", json!(view.update)),
        ("collisionCount", json!(0)),
    ] {
        status[member] = value;
    }
    for (member, number) in [
        ("readyReplicas", ready),
        ("currentReplicas", of_revision(current)),
        ("updatedReplicas", updated),
    ] {
        set_number(&mut status, member, number);
    }
    (status, living().filter_map(soon).min())
}

//! Pretends that a cluster runs the workloads: Deployments become available, Pods run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::write_options;
use crate::object;
use crate::registry::Registry;
use crate::storage::{ChangeKind, Key};

/// Looks at every Deployment and Pod that changed.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    seen: u64,
    queue: BTreeSet<Key>,
}

// === impl Workloads ===

impl Workloads {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        for change in registry.store.all_changes_after(self.seen) {
            let concerned = ["apps/deployments", "/pods"].contains(&&*change.key.resource);
            if concerned && change.kind != ChangeKind::Deleted {
                self.queue.insert(change.key.clone());
            }
        }
        self.seen = registry.store.revision();
        while let Some(key) = self.queue.pop_first() {
            if set_status(registry, &key) {
                return true;
            }
        }
        false
    }
}

fn set_status(registry: &mut Registry, key: &Key) -> bool {
    let now = registry.now();
    registry.edit_status(key, &write_options(), |object| {
        if object::is_being_deleted(object) {
            return;
        }
        if &*key.resource == "/pods" {
            run_pod(object, &now);
        } else {
            make_available(object, &now);
        }
    })
}

fn run_pod(pod: &mut Value, now: &str) {
    if pod["status"]["phase"] != "Pending" {
        return;
    }
    pod["status"]["phase"] = json!("Running");
    pod["status"]["startTime"] = json!(now);
    for kind in ["Initialized", "ContainersReady", "Ready"] {
        let condition = json!({ "type": kind, "status": "True" });
        crate::registry::set_condition(&mut pod["status"]["conditions"], condition, now);
    }
}

fn make_available(deployment: &mut Value, now: &str) {
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let generation = object::generation(deployment);
    let status = object::member_mut(deployment, "status");
    status.insert("observedGeneration".to_owned(), json!(generation));
    for member in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
    ] {
        if replicas == 0 {
            status.remove(member);
        } else {
            status.insert(member.to_owned(), json!(replicas));
        }
    }
    for (kind, reason) in [
        ("Available", "MinimumReplicasAvailable"),
        ("Progressing", "NewReplicaSetAvailable"),
    ] {
        let conditions = &mut deployment["status"]["conditions"];
        let had = conditions
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["type"] == kind);
        let updated = had.map_or_else(|| json!(now), |had| had["lastUpdateTime"].clone());
        let condition = json!({
            "type": kind, "status": "True", "reason": reason, "lastUpdateTime": updated,
        });
        crate::registry::set_condition(conditions, condition, now);
    }
}

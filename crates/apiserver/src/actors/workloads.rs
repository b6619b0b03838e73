//! Pretends that a cluster runs the workloads: Deployments become available, Pods run and end, and
//! disruption budgets say how many can go.

mod budgets;
mod kubelet;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{delete_options, write_options};
use crate::object;
use crate::registry::{DeleteOptions, Registry};
use crate::storage::{ChangeKind, Key};

/// What budgets depend on: pods, and how many of them there are to be.
const COUNTED: [&str; 5] = [
    PODS,
    "/replicationcontrollers",
    DEPLOYMENTS,
    "apps/replicasets",
    "apps/statefulsets",
];

const PODS: &str = "/pods";

const DEPLOYMENTS: &str = "apps/deployments";

const BUDGETS: &str = "policy/poddisruptionbudgets";

/// What is looked at when it changes.
const OWN: [&str; 3] = [PODS, DEPLOYMENTS, BUDGETS];

/// Looks at every Deployment, Pod and disruption budget that changed.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    seen: u64,
    queue: BTreeSet<Key>,
    /// How many addresses were given to pods.
    addresses: u32,
}

// === impl Workloads ===

impl Workloads {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        self.take_in(registry);
        while let Some(key) = self.queue.pop_first() {
            let worked = match &*key.resource {
                PODS => self.look_at_pod(registry, &key),
                BUDGETS => budgets::look_at(registry, &key),
                _ => look_at_deployment(registry, &key),
            };
            if worked {
                return true;
            }
        }
        false
    }

    fn take_in(&mut self, registry: &Registry) {
        let is_own = |key: &Key| OWN.contains(&&*key.resource);
        let mut counted: BTreeSet<String> = BTreeSet::new();
        if self.seen < registry.store.compacted() {
            // Some changes are forgotten already: look at everything.
            let all = registry.store.keys().filter(|key| is_own(key));
            self.queue.extend(all.cloned());
        } else {
            for change in registry.store.all_changes_after(self.seen) {
                if is_own(&change.key) && change.kind != ChangeKind::Deleted {
                    self.queue.insert(change.key.clone());
                }
                if COUNTED.contains(&&*change.key.resource) {
                    counted.insert(change.key.namespace.clone());
                }
            }
        }
        self.seen = registry.store.revision();
        for namespace in counted {
            let budgets = budgets::of_namespace(registry, &namespace);
            self.queue.extend(budgets);
        }
    }

    fn look_at_pod(&mut self, registry: &mut Registry, key: &Key) -> bool {
        let Some(pod) = registry.store.get(key) else {
            return false;
        };
        if object::is_being_deleted(&pod) {
            return end_pod(registry, key, &pod);
        }
        let place = kubelet::Place {
            now: registry.now(),
            address: kubelet::address(self.addresses),
        };
        let worked = registry.edit_status(key, &write_options(), |pod| {
            kubelet::observe(pod, &place);
        });
        self.addresses += u32::from(worked);
        worked
    }
}

/// Lets a pod go that has time to end: nothing runs in it.
fn end_pod(registry: &mut Registry, key: &Key, pod: &Value) -> bool {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if grace.unwrap_or_default() == 0 {
        return false;
    }
    let options = DeleteOptions {
        grace_seconds: Some(0),
        expected_uid: Some(object::uid(pod).to_owned()),
        ..delete_options()
    };
    registry
        .target_of(key)
        .is_some_and(|target| registry.delete(&target, &options).is_ok())
}

fn look_at_deployment(registry: &mut Registry, key: &Key) -> bool {
    let now = registry.now();
    registry.edit_status(key, &write_options(), |deployment| {
        if !object::is_being_deleted(deployment) {
            make_available(deployment, &now);
        }
    })
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

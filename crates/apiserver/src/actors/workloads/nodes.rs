//! The nodes of the cluster that is not there, and which of them a pod fits on.

use serde_json::{Value, json};

use super::pods::{condition, count};
use super::step::{NODE, Step, Subject};
use crate::object;
use crate::registry::{Registry, set_condition};
use crate::storage::Object;

/// The node that is there from the start.
const FIRST: &str = "node-1";

/// What keeps pods away from a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The nodes that a pod can be put on, and how many there are.
#[derive(Debug)]
pub(super) struct Fit {
    names: Vec<String>,
    all: usize,
}

/// What is written so that there is a node.
pub(super) fn first() -> Step {
    Step::Create(
        NODE,
        json!({
            "metadata": {
                "name": FIRST,
                "labels": {
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": FIRST,
                    "kubernetes.io/os": "linux",
                },
            },
        }),
    )
}

/// Lets a node be ready of which nobody has said whether it is, and pods come to one that is.
pub(super) fn plan(node: &Value, now: &str) -> Vec<Step> {
    if object::is_being_deleted(node) {
        return Vec::new();
    }
    let Some(ready) = condition(node, "Ready") else {
        let mut status = node["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        for member in ["capacity", "allocatable"] {
            if status[member].is_null() {
                status[member] = json!({ "cpu": "8", "memory": "32Gi", "pods": "110" });
            }
        }
        if status["addresses"].is_null() {
            let name = object::name(node);
            status["addresses"] = json!([
                { "type": "InternalIP", "address": "10.0.0.1" },
                { "type": "Hostname", "address": name },
            ]);
        }
        status["nodeInfo"]["kubeletVersion"] = json!("v1.36.0");
        let condition = json!({
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the node is pretended to be ready",
            "lastHeartbeatTime": now,
        });
        set_condition(&mut status["conditions"], condition, now);
        return vec![Step::Status(NODE, Subject::of(node), status, json!({}))];
    };
    let taints = || object::elements(&node["spec"], "taints");
    if ready["status"] == "True" && taints().any(|taint| taint["key"] == NOT_READY) {
        let rest: Vec<&Value> = taints().filter(|one| one["key"] != NOT_READY).collect();
        let rest = if rest.is_empty() {
            Value::Null
        } else {
            json!(rest)
        };
        let patch = json!({ "spec": { "taints": rest } });
        return vec![Step::Patch(NODE, Subject::of(node), patch)];
    }
    Vec::new()
}

/// All nodes by name.
pub(super) fn all(registry: &Registry) -> Vec<Object> {
    let keys = NODE.keys(registry, None);
    keys.iter()
        .filter_map(|key| registry.store.get(key))
        .filter(|node| !object::is_being_deleted(node))
        .collect()
}

/// The nodes that a pod fits on. What it requests is not counted.
pub(super) fn fit(nodes: &[Object], pod: &Value) -> Fit {
    let fitting = nodes.iter().filter(|node| {
        let closed = node["spec"]["unschedulable"] == true;
        let closed_to_it = closed
            && !tolerates(
                pod,
                &json!({ "key": UNSCHEDULABLE, "effect": "NoSchedule" }),
            );
        !closed_to_it && wants(&pod["spec"], node) && is_tolerated(pod, node)
    });
    Fit {
        names: fitting.map(|node| object::name(node).to_owned()).collect(),
        all: nodes.len(),
    }
}

/// The taint of a node that takes no more pods.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether a pod wants to be on a node: its selector and its required affinity.
pub(super) fn wants(spec: &Value, node: &Value) -> bool {
    let selector = json!({ "matchLabels": spec["nodeSelector"] });
    if !crate::registry::selects(&selector, node) {
        return false;
    }
    let required =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = &required["nodeSelectorTerms"];
    terms.is_null()
        || object::elements(required, "nodeSelectorTerms").any(|term| {
            let expressions = json!({ "matchExpressions": term["matchExpressions"] });
            // The only field that can be meant is the name.
            let fields = object::elements(term, "matchFields").all(|field| {
                let listed = object::elements(field, "values").any(|one| one == object::name(node));
                listed == (field["operator"] == "In")
            });
            let says_something =
                !term["matchExpressions"].is_null() || !term["matchFields"].is_null();
            says_something && fields && crate::registry::selects(&expressions, node)
        })
}

/// Whether a pod bears the taints of a node.
pub(super) fn is_tolerated(pod: &Value, node: &Value) -> bool {
    object::elements(&node["spec"], "taints")
        .filter(|taint| taint["effect"] != "PreferNoSchedule")
        .all(|taint| tolerates(pod, taint))
}

fn tolerates(pod: &Value, taint: &Value) -> bool {
    object::elements(&pod["spec"], "tolerations").any(|toleration| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
        let exists = toleration["operator"] == "Exists";
        (effect.is_empty() || taint["effect"] == effect)
            && (key.is_empty() && exists || taint["key"] == key)
            && (exists || text(&taint["value"]) == text(&toleration["value"]))
    })
}

// === impl Fit ===

impl Fit {
    /// No node at all.
    pub(super) fn none(nodes: &[Object]) -> Self {
        Self {
            names: Vec::new(),
            all: nodes.len(),
        }
    }

    /// One of the nodes, in turn.
    pub(super) fn choose(&self, turn: usize) -> Option<&str> {
        let index = turn.checked_rem(self.names.len())?;
        self.names.get(index).map(String::as_str)
    }

    pub(super) fn problem(&self) -> String {
        let all = count(self.all);
        format!("0/{all} nodes are available: no node takes the pod.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, spec: &Value) -> Object {
        Object::new(
            json!({ "metadata": { "name": name, "labels": { "zone": name } }, "spec": spec }),
        )
    }

    #[track_caller]
    fn check(pod: &Value, expected: &[&str]) {
        let taint = json!({ "taints": [{ "key": "t", "value": "v", "effect": "NoSchedule" }] });
        let nodes = [
            node("a", &json!({})),
            node("b", &json!({ "unschedulable": true })),
            node("c", &taint),
        ];
        assert_eq!(
            fit(&nodes, &json!({ "spec": pod })).names,
            expected,
            "{pod}"
        );
    }

    #[test]
    fn where_pods_fit() {
        let affinity = |term: Value| {
            json!({ "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] },
            } } })
        };
        let field = |name: &str| {
            json!({ "matchFields": [
                { "key": "metadata.name", "operator": "In", "values": [name] },
            ] })
        };
        let zone = json!({ "matchExpressions": [
            { "key": "zone", "operator": "NotIn", "values": ["a"] },
        ] });
        check(&json!({}), &["a"]);
        check(&json!({ "nodeSelector": { "zone": "a" } }), &["a"]);
        check(&json!({ "nodeSelector": { "zone": "x" } }), &[]);
        check(&affinity(field("a")), &["a"]);
        check(&affinity(field("b")), &[]);
        check(&affinity(zone), &[]);
        check(&affinity(json!({})), &[]);
        let tolerations = |list: Value| json!({ "tolerations": list });
        check(
            &tolerations(json!([{ "operator": "Exists" }])),
            &["a", "b", "c"],
        );
        check(
            &tolerations(json!([{ "key": "t", "value": "v", "effect": "NoSchedule" }])),
            &["a", "c"],
        );
        check(&tolerations(json!([{ "key": "t", "value": "w" }])), &["a"]);
    }

    #[test]
    fn a_node_becomes_ready_once_and_is_then_open() {
        let mut node = json!({
            "metadata": { "name": "n" },
            "spec": { "taints": [{ "key": NOT_READY, "effect": "NoSchedule" }] },
        });
        let steps = plan(&node, "t");
        let [Step::Status(_, _, status, _)] = &steps[..] else {
            panic!("{steps:?}");
        };
        node["status"] = status.clone();
        let steps = plan(&node, "t");
        assert!(matches!(&steps[..], [Step::Patch(..)]), "{steps:?}");
        node["spec"] = json!({});
        assert_eq!(plan(&node, "t"), []);
        node["status"]["conditions"][0]["status"] = json!("False");
        assert_eq!(plan(&node, "t"), []);
    }
}

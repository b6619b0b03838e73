//! `DaemonSet`s: a pod on each node that takes it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::nodes::{is_tolerated, wants};
use super::pods::{count, from_template, has_ended, is_available, is_ready, number, part};
use super::replica_sets::set_number;
use super::revisions::{LABEL, Revisions};
use super::step::{Around, DAEMON_SET, POD, Plan, Step, Subject};
use crate::object;
use crate::storage::Object;

/// A set with its nodes, and its pods by the node that they are for.
struct View<'a> {
    set: &'a Value,
    /// The nodes that are to have a pod.
    nodes: Vec<&'a str>,
    pods: BTreeMap<String, Vec<&'a Object>>,
    /// The label of pods of the present template.
    hash: &'a str,
    now: Timestamp,
}

/// What every pod of a set bears, so that it is where others are not.
const TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// What a set does about its pods.
pub(super) fn plan(set: &Value, around: &Around<'_>) -> Plan {
    let revisions = Revisions::new(set, around.own);
    let is_going = object::is_being_deleted(set);
    if let Some(step) = revisions.renew(set).filter(|_| !is_going) {
        return Plan::of(vec![step]);
    }
    let present = revisions.present();
    let hash = present.and_then(|one| object::label(one, LABEL));
    let view = View::new(set, around, hash.unwrap_or_default());
    let mut steps = Vec::new();
    if !is_going {
        steps = view.place();
        if steps.is_empty() {
            steps = view.update();
        }
        if steps.is_empty() {
            let live: Vec<&str> = present.iter().map(|one| object::name(one)).collect();
            steps = revisions.forget(set, &live);
        }
    }
    let (status, wake) = view.status();
    steps.extend(Step::status(DAEMON_SET, set, status));
    Plan { steps, wake }
}

// === impl View ===

impl<'a> View<'a> {
    fn new(set: &'a Value, around: &Around<'a>, hash: &'a str) -> Self {
        let pattern = pod(set, "", hash);
        let nodes = around.nodes.iter().filter(|node| {
            wants(&set["spec"]["template"]["spec"], node) && is_tolerated(&pattern, node)
        });
        let mut pods: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
        for pod in around.own.iter().filter(|one| one["kind"] == "Pod") {
            pods.entry(node_of(pod)).or_default().push(pod);
        }
        Self {
            set,
            nodes: nodes.map(|node| object::name(node)).collect(),
            pods,
            hash,
            now: around.now,
        }
    }

    fn on(&self, node: &str) -> impl Iterator<Item = &'a Object> {
        self.pods.get(node).into_iter().flatten().copied()
    }

    fn is_new(&self, pod: &Value) -> bool {
        object::label(pod, LABEL) == Some(self.hash)
    }

    fn is_available(&self, pod: &Value) -> bool {
        let min_ready = number(&self.set["spec"], "minReadySeconds", 0);
        !object::is_being_deleted(pod) && is_available(pod, min_ready, self.now) == Ok(true)
    }

    /// Makes pods where there is none, and gives those up that have ended, are too many, or on a node that is not meant.
    fn place(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for node in &self.nodes {
            let mut living: Vec<&Object> = Vec::new();
            let mut waits = false;
            for pod in self.on(node) {
                if object::is_being_deleted(pod) {
                    waits = true;
                } else if has_ended(pod) {
                    waits = true;
                    steps.push(Step::Delete(POD, Subject::of(pod)));
                } else {
                    living.push(pod);
                }
            }
            if living.is_empty() && !waits {
                steps.push(Step::Create(POD, pod(self.set, node, self.hash)));
            }
            // Of each template there is one.
            for new in [true, false] {
                let same = living.iter().filter(|pod| self.is_new(pod) == new);
                let excess = same.skip(1);
                steps.extend(excess.map(|pod| Step::Delete(POD, Subject::of(pod))));
            }
        }
        for (node, pods) in &self.pods {
            if !self.nodes.contains(&&**node) {
                let going = pods.iter().filter(|pod| !object::is_being_deleted(pod));
                steps.extend(going.map(|pod| Step::Delete(POD, Subject::of(pod))));
            }
        }
        steps
    }

    /// Replaces pods of an older template, as many at a time as allowed.
    fn update(&self) -> Vec<Step> {
        let strategy = &self.set["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" {
            return Vec::new();
        }
        let all = count(self.nodes.len());
        let rolling = &strategy["rollingUpdate"];
        let surge = part(&rolling["maxSurge"], all, true);
        let most = match part(&rolling["maxUnavailable"], all, true) {
            0 if rolling["maxUnavailable"].is_null() => i64::from(surge == 0),
            most => most,
        };
        let most = if most == 0 && surge == 0 { 1 } else { most };
        let (mut away, mut surging) = (0, 0);
        let mut steps = Vec::new();
        for node in &self.nodes {
            away += i64::from(!self.on(node).any(|pod| self.is_available(pod)));
            let of = |new: bool| self.on(node).any(|pod| self.is_new(pod) == new);
            surging += i64::from(of(true) && of(false));
        }
        for node in &self.nodes {
            let of = |new: bool| {
                let mut pods = self.on(node);
                pods.find(|pod| self.is_new(pod) == new && !object::is_being_deleted(pod))
            };
            let Some(old) = of(false) else {
                continue;
            };
            let replaced = of(true).is_some_and(|pod| self.is_available(pod));
            let useless = !self.is_available(old);
            if replaced || (useless && surge == 0) {
                steps.push(Step::Delete(POD, Subject::of(old)));
            } else if surge > 0 {
                if of(true).is_none() && surging < surge {
                    surging += 1;
                    steps.push(Step::Create(POD, pod(self.set, node, self.hash)));
                }
            } else if away < most {
                away += 1;
                steps.push(Step::Delete(POD, Subject::of(old)));
            }
        }
        steps
    }

    fn status(&self) -> (Value, Option<Timestamp>) {
        let min_ready = number(&self.set["spec"], "minReadySeconds", 0);
        let placed = self.nodes.iter().filter_map(|node| {
            let living = || self.on(node).filter(|pod| !object::is_being_deleted(pod));
            living().max_by_key(|pod| (self.is_available(pod), self.is_new(pod)))
        });
        let placed: Vec<&Object> = placed.collect();
        let number_of =
            |test: &dyn Fn(&Object) -> bool| count(placed.iter().filter(|pod| test(pod)).count());
        let elsewhere = self.pods.iter().filter(|(node, pods)| {
            let runs = pods.iter().any(|pod| !object::is_being_deleted(pod));
            runs && !self.nodes.contains(&&***node)
        });
        let desired = count(self.nodes.len());
        let available = number_of(&|pod| self.is_available(pod));
        let mut status = if self.set["status"].is_object() {
            self.set["status"].clone()
        } else {
            json!({})
        };
        for (member, number) in [
            ("observedGeneration", object::generation(self.set)),
            ("desiredNumberScheduled", desired),
            ("currentNumberScheduled", count(placed.len())),
            ("numberMisscheduled", count(elsewhere.count())),
            ("numberReady", number_of(&|pod| is_ready(pod))),
        ] {
            status[member] = json!(number);
        }
        for (member, number) in [
            ("updatedNumberScheduled", number_of(&|pod| self.is_new(pod))),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ] {
            set_number(&mut status, member, number);
        }
        let soon = placed
            .iter()
            .filter_map(|pod| is_available(pod, min_ready, self.now).err());
        (status, soon.min())
    }
}

/// The node that a pod is for.
fn node_of(pod: &Value) -> String {
    if let Some(node) = pod["spec"]["nodeName"].as_str() {
        return node.to_owned();
    }
    let path = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                /nodeSelectorTerms/0/matchFields/0/values/0";
    let wanted = pod["spec"].pointer(path).and_then(Value::as_str);
    wanted.unwrap_or_default().to_owned()
}

fn pod(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = from_template(set, &set["spec"]["template"]);
    pod["metadata"]["generateName"] = json!(format!("{}-", object::name(set)));
    object::member_mut(&mut pod["metadata"], "labels").insert(LABEL.to_owned(), json!(hash));
    let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let affinity = object::member_mut(&mut pod["spec"], "affinity");
    let own = affinity.entry("nodeAffinity").or_insert(Value::Null);
    own["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    let mut tolerations: Vec<Value> = object::elements(&pod["spec"], "tolerations")
        .cloned()
        .collect();
    for (key, effect) in TOLERATIONS {
        tolerations.push(json!({ "key": key, "operator": "Exists", "effect": effect }));
    }
    if pod["spec"]["hostNetwork"] == true {
        let key = "node.kubernetes.io/network-unavailable";
        tolerations.push(json!({ "key": key, "operator": "Exists", "effect": "NoSchedule" }));
    }
    pod["spec"]["tolerations"] = json!(tolerations);
    pod
}

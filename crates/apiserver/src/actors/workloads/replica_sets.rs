//! `ReplicaSet`s: as many pods as are wanted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pods::{count, from_template, is_active, is_available, is_ready, number, worth};
use super::step::{POD, Plan, REPLICA_SET, Step, Subject};
use crate::object;
use crate::registry::selects;
use crate::storage::Object;

/// What a set does about its pods: those that it looks after.
pub(super) fn plan(set: &Value, pods: &[Object], now: Timestamp) -> Plan {
    let mut active: Vec<&Object> = pods.iter().filter(|pod| is_active(pod)).collect();
    let wanted = number(&set["spec"], "replicas", 1);
    let excess = count(active.len()) - wanted;
    if !object::is_being_deleted(set) && excess != 0 {
        if excess < 0 {
            let pod = || Step::Create(POD, pod(set));
            let missing = (excess..0).map(|_| pod());
            return Plan::of(missing.collect());
        }
        active.sort_by_cached_key(|pod| worth(pod));
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        let given_up = active.iter().take(excess);
        let given_up = given_up.map(|pod| Step::Delete(POD, Subject::of(pod)));
        return Plan::of(given_up.collect());
    }
    let (status, wake) = status(set, pods, now);
    let steps = Step::status(REPLICA_SET, set, status);
    Plan {
        steps: steps.into_iter().collect(),
        wake,
    }
}

fn pod(set: &Value) -> Value {
    let mut pod = from_template(set, &set["spec"]["template"]);
    pod["metadata"]["generateName"] = json!(format!("{}-", object::name(set)));
    pod
}

fn status(set: &Value, pods: &[Object], now: Timestamp) -> (Value, Option<Timestamp>) {
    let min_ready = number(&set["spec"], "minReadySeconds", 0);
    let labels = json!({ "matchLabels": set["spec"]["template"]["metadata"]["labels"] });
    let active = || pods.iter().filter(|pod| is_active(pod));
    let (mut available, mut wake) = (0, None::<Timestamp>);
    for pod in active() {
        match is_available(pod, min_ready, now) {
            Ok(is_available) => available += i64::from(is_available),
            Err(time) => wake = Some(wake.map_or(time, |wake| wake.min(time))),
        }
    }
    let labelled = active().filter(|pod| selects(&labels, pod)).count();
    let terminating = pods.iter().filter(|pod| object::is_being_deleted(pod));
    let mut status = set["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    status["observedGeneration"] = json!(object::generation(set));
    status["replicas"] = json!(active().count());
    status["terminatingReplicas"] = json!(terminating.count());
    for (member, number) in [
        ("fullyLabeledReplicas", count(labelled)),
        (
            "readyReplicas",
            count(active().filter(|pod| is_ready(pod)).count()),
        ),
        ("availableReplicas", available),
    ] {
        set_number(&mut status, member, number);
    }
    (status, wake)
}

/// Sets a number that is not shown when it is zero.
pub(super) fn set_number(status: &mut Value, member: &str, number: i64) {
    let Some(members) = status.as_object_mut() else {
        return;
    };
    if number == 0 {
        members.remove(member);
    } else {
        members.insert(member.to_owned(), json!(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: i64) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": "s", "uid": "u", "generation": 2 },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": 10,
                "template": { "metadata": { "labels": { "a": "b" } }, "spec": {} },
            },
        })
    }

    fn pod(name: &str, phase: &str, ready: bool) -> Object {
        let ready = if ready { "True" } else { "False" };
        Object::new(json!({
            "metadata": { "name": name, "uid": name, "labels": { "a": "b" } },
            "spec": { "nodeName": "n" },
            "status": { "phase": phase, "conditions": [
                { "type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:00:00Z" },
            ] },
        }))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("it is in range")
    }

    #[test]
    fn pods_are_made_and_given_up() {
        let steps = plan(&set(2), &[], at(0)).steps;
        assert_eq!(steps.len(), 2);
        let Step::Create(_, made) = &steps[0] else {
            panic!("{steps:?}");
        };
        assert_eq!(made["metadata"]["generateName"], "s-");
        assert_eq!(made["metadata"]["labels"], json!({ "a": "b" }));
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "u",
            "controller": true, "blockOwnerDeletion": true,
        });
        assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));

        let mut gone = Value::clone(&pod("gone", "Running", true));
        gone["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        let pods = [
            pod("ready", "Running", true),
            pod("waits", "Pending", false),
            pod("unready", "Running", false),
            pod("failed", "Failed", false),
            Object::new(gone),
        ];
        for (replicas, given_up) in [
            (3, vec![]),
            (2, vec!["waits"]),
            (1, vec!["waits", "unready"]),
        ] {
            let steps = plan(&set(replicas), &pods, at(0)).steps;
            let deleted = steps.iter().filter(|step| matches!(step, Step::Delete(..)));
            let expected: Vec<Step> = pods
                .iter()
                .filter(|pod| given_up.contains(&object::name(pod)))
                .map(|pod| Step::Delete(POD, Subject::of(pod)))
                .collect();
            assert_eq!(deleted.count(), expected.len());
            for step in expected {
                assert!(steps.contains(&step), "{replicas}: {steps:?}");
            }
        }
    }

    #[test]
    fn a_status_counts_what_is_there() {
        let pods = [pod("a", "Running", true), pod("b", "Running", false)];
        for (seconds, available, wake) in [(9, None, Some(at(10))), (10, Some(1), None)] {
            let found = plan(&set(2), &pods, at(seconds));
            assert_eq!(found.wake, wake);
            let [Step::Status(_, _, status, _)] = &found.steps[..] else {
                panic!("{:?}", found.steps);
            };
            assert_eq!(status["availableReplicas"].as_i64(), available);
            for (member, number) in [
                ("replicas", 2),
                ("readyReplicas", 1),
                ("fullyLabeledReplicas", 2),
                ("terminatingReplicas", 0),
                ("observedGeneration", 2),
            ] {
                assert_eq!(status[member], number, "{member}");
            }
        }
    }

    #[test]
    fn one_that_is_deleted_makes_nothing() {
        let mut set = set(2);
        set["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        let steps = plan(&set, &[], at(0)).steps;
        assert!(matches!(&steps[..], [Step::Status(..)]), "{steps:?}");
    }
}

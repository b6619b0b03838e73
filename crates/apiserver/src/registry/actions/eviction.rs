//! Evictions: deletions that disruption budgets can refuse.

use serde_json::{Value, json};

use crate::object;
use crate::registry::{
    DeleteOptions, Registry, Reply, Target, WriteOptions, selector, set_condition,
};
use crate::status::{Cause, Status, Subject};
use crate::storage::{Key, Object};

/// Phases in which a pod does not count for a budget.
const NOT_COUNTED: [&str; 3] = ["Succeeded", "Failed", "Pending"];

/// How many evicted pods a budget notes.
const MAX_NOTED: usize = 2000;

/// When to ask again while nobody has looked at a budget.
const WAIT_SECONDS: u32 = 10;

const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What a budget says about an eviction.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The pod does not count for it.
    Ignored,
    /// It has one disruption less now.
    Granted,
    Refused(Status),
}

impl Registry {
    /// Deletes a pod if its budget allows it.
    pub(super) fn evict(
        &mut self,
        target: &Target,
        eviction: &Value,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let mut deletion = DeleteOptions::from_body(&eviction["deleteOptions"])?;
        deletion.dry_run |= options.dry_run;
        let pod = self.stored(&target.main())?;
        if counts(&pod)
            && let Some((key, budget)) = self.budget_of(&pod)?
        {
            match verdict(&pod, &budget) {
                Verdict::Ignored => {}
                Verdict::Refused(status) => return Err(status),
                Verdict::Granted if deletion.dry_run => {}
                Verdict::Granted => self.take_disruption(&key, object::name(&pod)),
            }
        }
        if !deletion.dry_run {
            self.mark_as_disrupted(target, &pod);
        }
        self.delete(&target.main(), &deletion)?;
        Ok(super::done())
    }

    /// The budget that a pod counts for.
    fn budget_of(&self, pod: &Value) -> Result<Option<(Key, Object)>, Status> {
        let Some(budgets) = self.catalog.find("policy", "v1", "poddisruptionbudgets") else {
            return Ok(None);
        };
        let namespace = Some(object::namespace(pod));
        let mut own = self
            .store
            .scan(&budgets.storage, namespace, self.store.revision(), None)
            .filter(|(_, budget)| selector::selects(&budget["spec"]["selector"], pod))
            .map(|(key, budget)| (key.clone(), budget));
        let first = own.next();
        if own.next().is_some() {
            return Err(Status::internal_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                 does not support.",
            ));
        }
        Ok(first)
    }

    /// Takes one disruption from a budget and notes for which pod.
    fn take_disruption(&mut self, key: &Key, pod: &str) {
        let now = self.now();
        let options = WriteOptions {
            manager: "kube-apiserver".to_owned(),
            ..WriteOptions::default()
        };
        self.edit_status(key, &options, |budget| {
            let status = object::member_mut(budget, "status");
            let left = status.get("disruptionsAllowed").and_then(Value::as_i64);
            let left = left.unwrap_or_default() - 1;
            status.insert("disruptionsAllowed".to_owned(), json!(left));
            object::member_mut(&mut budget["status"], "disruptedPods")
                .insert(pod.to_owned(), json!(now));
            if left == 0 {
                let condition = json!({
                    "type": "DisruptionAllowed",
                    "status": "False",
                    "reason": "InsufficientPods",
                    "message": "",
                    "observedGeneration": budget["status"]["observedGeneration"],
                });
                set_condition(&mut budget["status"]["conditions"], condition, &now);
            }
        });
    }

    /// Tells whoever watches the pod why it goes.
    fn mark_as_disrupted(&mut self, target: &Target, pod: &Object) {
        if object::is_being_deleted(pod) {
            return;
        }
        let mut pod = Value::clone(pod);
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": null,
        });
        let now = self.now();
        set_condition(&mut pod["status"]["conditions"], condition, &now);
        self.store.put(target.key(), pod);
    }
}

/// Whether a pod counts for its budget.
fn counts(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    !NOT_COUNTED.contains(&phase) && !object::is_being_deleted(pod)
}

/// What a budget says about the eviction of a pod that counts for it.
fn verdict(pod: &Value, budget: &Value) -> Verdict {
    let status = &budget["status"];
    let number = |member: &str| status[member].as_i64().unwrap_or_default();
    let (healthy, needed) = (number("currentHealthy"), number("desiredHealthy"));
    if !is_ready(pod) {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if always || (needed > 0 && healthy >= needed) {
            return Verdict::Ignored;
        }
    }
    let name = object::name(budget);
    let refused = |why: String, wait_seconds| {
        let cause = Cause {
            reason: "DisruptionBudget",
            message: why,
            field: String::new(),
        };
        Verdict::Refused(Status::too_many_requests(REFUSAL, cause, wait_seconds))
    };
    if number("observedGeneration") < object::generation(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return refused(why, WAIT_SECONDS);
    }
    let noted = status["disruptedPods"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    let forbidden = |why: &str| {
        let subject = Subject {
            group: "policy",
            kind: "poddisruptionbudget",
            name,
        };
        Verdict::Refused(Status::forbidden(subject, why))
    };
    match number("disruptionsAllowed") {
        ..0 => forbidden("pdb disruptions allowed is negative"),
        _ if noted > MAX_NOTED => forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ),
        0 => refused(
            format!(
                "The disruption budget {name} needs {needed} healthy pods and has {healthy} \
                 currently"
            ),
            0,
        ),
        1.. => Verdict::Granted,
    }
}

fn is_ready(pod: &Value) -> bool {
    object::elements(&pod["status"], "conditions")
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(ready: &str) -> Value {
        json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } })
    }

    fn budget(allowed: i64, healthy: i64, needed: i64, policy: &str) -> Value {
        json!({
            "metadata": { "name": "b", "generation": 1 },
            "spec": { "unhealthyPodEvictionPolicy": policy },
            "status": {
                "disruptionsAllowed": allowed, "currentHealthy": healthy,
                "desiredHealthy": needed, "observedGeneration": 1,
            },
        })
    }

    #[track_caller]
    fn check(pod: &Value, budget: &Value, code: Option<u16>, word: &str) {
        match (verdict(pod, budget), code) {
            (Verdict::Refused(status), Some(code)) => {
                assert_eq!(status.code, code);
                assert!(status.body().to_string().contains(word), "{status:?}");
            }
            (Verdict::Granted, None) => assert_eq!(word, "granted"),
            (Verdict::Ignored, None) => assert_eq!(word, "ignored"),
            (verdict, _) => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn verdicts() {
        let (ready, unready) = (pod("True"), pod("False"));
        check(&ready, &budget(1, 1, 0, ""), None, "granted");
        check(
            &ready,
            &budget(0, 1, 1, ""),
            Some(429),
            "needs 1 healthy pods and has 1",
        );
        check(&ready, &budget(-1, 1, 1, ""), Some(403), "negative");
        check(&unready, &budget(0, 1, 1, ""), None, "ignored");
        check(&unready, &budget(0, 0, 1, ""), Some(429), "has 0 currently");
        check(&unready, &budget(0, 0, 1, "AlwaysAllow"), None, "ignored");
        let mut unseen = budget(1, 1, 0, "");
        unseen["metadata"]["generation"] = json!(2);
        check(&ready, &unseen, Some(429), "\"retryAfterSeconds\":10");
    }

    #[test]
    fn pods_that_do_not_run_do_not_count() {
        for (phase, expected) in [("Running", true), ("Pending", false), ("Failed", false)] {
            assert_eq!(counts(&json!({ "status": { "phase": phase } })), expected);
        }
    }
}

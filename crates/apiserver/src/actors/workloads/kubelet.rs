//! The status of a pod, as the kubelet of its node writes it.

use serde_json::{Value, json};

use crate::object;
use crate::registry::set_condition;

/// The address of the node that every pod is said to run on.
const HOST: &str = "10.0.0.1";

/// What becomes true of a pod that runs, in the order in which it does.
const CONDITIONS: [&str; 5] = [
    "PodScheduled",
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
];

/// When and where a pod is seen.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) now: String,
    pub(super) address: String,
}

/// The address of a pod by its number, in 10.244.0.0/16.
pub(super) fn address(number: u32) -> String {
    // The first two and the last one of each block are left out, as networks leave them out.
    let (block, host) = (number / 253 % 256, number % 253 + 2);
    format!("10.244.{block}.{host}")
}

/// Starts a pod that waits, and takes notice of changes of one that runs.
pub(super) fn observe(pod: &mut Value, place: &Place) {
    let generation = object::generation(pod);
    let seen = pod["status"]["observedGeneration"].as_i64();
    if pod["status"]["phase"] == "Pending" && !is_gated(pod) {
        start(pod, place);
    } else if pod["status"]["phase"] != "Running" || seen.is_none_or(|seen| seen == generation) {
        return;
    }
    let mut statuses: Vec<(&str, Vec<Value>)> = Vec::new();
    for (list, shown) in [
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
        ("ephemeralContainers", "ephemeralContainerStatuses"),
    ] {
        let containers = object::elements(&pod["spec"], list);
        let had = &pod["status"][shown];
        let own = containers.map(|container| status(pod, list, container, had, place));
        statuses.push((shown, own.collect()));
    }
    let status = object::member_mut(pod, "status");
    status.insert("observedGeneration".to_owned(), json!(generation));
    for (shown, own) in statuses {
        if !own.is_empty() {
            status.insert(shown.to_owned(), json!(own));
        }
    }
}

/// Whether somebody wants the pod to wait.
fn is_gated(pod: &Value) -> bool {
    object::elements(&pod["spec"], "schedulingGates")
        .next()
        .is_some()
}

fn start(pod: &mut Value, place: &Place) {
    let Place { now, address } = place;
    let on_node = pod["spec"]["hostNetwork"] == true;
    let address = if on_node { HOST } else { address };
    let generation = object::generation(pod);
    let status = object::member_mut(pod, "status");
    for (member, value) in [
        ("phase", json!("Running")),
        ("startTime", json!(now)),
        ("hostIP", json!(HOST)),
        ("hostIPs", json!([{ "ip": HOST }])),
        ("podIP", json!(address)),
        ("podIPs", json!([{ "ip": address }])),
    ] {
        status.insert(member.to_owned(), value);
    }
    for kind in CONDITIONS {
        let condition = json!({
            "type": kind,
            "status": "True",
            "lastProbeTime": null,
            "observedGeneration": generation,
        });
        set_condition(&mut pod["status"]["conditions"], condition, now);
    }
}

/// The status of a container; one that ran already goes on.
fn status(pod: &Value, list: &str, container: &Value, had: &Value, place: &Place) -> Value {
    let Place { now, .. } = place;
    let (name, image) = (&container["name"], &container["image"]);
    let mut had = had.as_array().into_iter().flatten();
    let had = had.find(|one| one["name"] == *name && one["image"] == *image);
    if let Some(had) = had {
        return had.clone();
    }
    let id = format!(
        "containerd://{}-{}",
        object::uid(pod),
        name.as_str().unwrap_or_default()
    );
    let runs = list != "initContainers" || container["restartPolicy"] == "Always";
    let state = if runs {
        json!({ "running": { "startedAt": now } })
    } else {
        json!({ "terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
            "containerID": id,
        } })
    };
    json!({
        "name": name,
        "image": image,
        "imageID": image,
        "containerID": id,
        "ready": list != "ephemeralContainers",
        "started": runs,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(now: &str) -> Place {
        Place {
            now: now.to_owned(),
            address: address(0),
        }
    }

    fn pod() -> Value {
        json!({
            "metadata": { "uid": "u", "generation": 1 },
            "spec": {
                "containers": [{ "name": "c", "image": "a" }, { "name": "d", "image": "a" }],
                "initContainers": [
                    { "name": "i", "image": "a" },
                    { "name": "s", "image": "a", "restartPolicy": "Always" },
                ],
            },
            "status": { "phase": "Pending", "qosClass": "BestEffort" },
        })
    }

    #[test]
    fn addresses_differ() {
        for (number, expected) in [
            (0, "10.244.0.2"),
            (252, "10.244.0.254"),
            (253, "10.244.1.2"),
            (253 * 256, "10.244.0.2"),
        ] {
            assert_eq!(address(number), expected);
        }
    }

    #[test]
    fn a_pod_that_waits_is_started() {
        let mut pod = pod();
        observe(&mut pod, &place("t"));
        let status = &pod["status"];
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["podIPs"], json!([{ "ip": "10.244.0.2" }]));
        assert_eq!(status["startTime"], "t");
        assert_eq!(status["qosClass"], "BestEffort");
        assert_eq!(status["observedGeneration"], 1);
        let ready = json!({
            "type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": "t",
            "observedGeneration": 1,
        });
        assert_eq!(status["conditions"][4], ready);
        let running = json!({ "running": { "startedAt": "t" } });
        for container in object::elements(status, "containerStatuses") {
            assert_eq!(
                (&container["ready"], &container["state"]),
                (&json!(true), &running)
            );
        }
        let inits = &status["initContainerStatuses"];
        assert_eq!(inits[0]["state"]["terminated"]["exitCode"], 0);
        assert_eq!(inits[1]["state"], running);
    }

    #[test]
    fn a_pod_with_gates_waits_on() {
        let mut pod = pod();
        pod["spec"]["schedulingGates"] = json!([{ "name": "g" }]);
        let before = pod.clone();
        observe(&mut pod, &place("t"));
        assert_eq!(pod, before);
    }

    #[test]
    fn a_change_is_seen_once_and_touches_what_it_concerns() {
        let mut pod = pod();
        observe(&mut pod, &place("t"));
        let before = pod.clone();
        observe(&mut pod, &place("u"));
        assert_eq!(pod, before);
        pod["metadata"]["generation"] = json!(2);
        pod["spec"]["containers"][1]["image"] = json!("b");
        observe(&mut pod, &place("u"));
        let statuses = &pod["status"]["containerStatuses"];
        assert_eq!(statuses[0], before["status"]["containerStatuses"][0]);
        assert_eq!(statuses[1]["image"], "b");
        assert_eq!(statuses[1]["state"]["running"]["startedAt"], "u");
        assert_eq!(pod["status"]["observedGeneration"], 2);
        assert_eq!(pod["status"]["startTime"], "t");
    }

    #[test]
    fn a_status_that_somebody_else_wrote_is_left_alone() {
        let mut pod = pod();
        pod["status"]["phase"] = json!("Running");
        let before = pod.clone();
        observe(&mut pod, &place("t"));
        assert_eq!(pod, before);
    }
}

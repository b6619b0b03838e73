//! The status of a pod, as the kubelet of its node writes it.

use serde_json::{Value, json};

use super::stage::Stage;
use crate::object;
use crate::registry::set_condition;

/// The address of the node that every pod is said to run on.
const HOST: &str = "10.0.0.1";

/// The lists of a pod's containers, and where their statuses are.
const LISTS: [(&str, &str); 3] = [
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
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

/// Writes what is true of a pod at a stage.
pub(super) fn observe(pod: &mut Value, stage: Stage, place: &Place) {
    if !pod["status"]["startTime"].is_string() {
        start(pod, place);
    }
    let mut statuses: Vec<(&str, Vec<Value>)> = Vec::new();
    for (list, shown) in LISTS {
        let had = &pod["status"][shown];
        let containers = object::elements(&pod["spec"], list).enumerate();
        let own = containers.map(|(index, container)| {
            let part = Part {
                list,
                is_first: index == 0,
            };
            container_status(pod, part, container, had, stage, place)
        });
        statuses.push((shown, own.collect()));
    }
    let generation = object::generation(pod);
    let status = object::member_mut(pod, "status");
    status.insert("observedGeneration".to_owned(), json!(generation));
    for (shown, own) in statuses {
        if !own.is_empty() {
            status.insert(shown.to_owned(), json!(own));
        }
    }
    let (phase, reason, message) = match stage {
        Stage::Pulling { .. } | Stage::Initializing => ("Pending", None, None),
        Stage::Running { .. } | Stage::Crashed { .. } => ("Running", None, None),
        Stage::Ended { well: true, .. } => ("Succeeded", None, None),
        Stage::Ended { deadline: true, .. } => {
            let message = "Pod was active on the node longer than the specified deadline";
            ("Failed", Some("DeadlineExceeded"), Some(message))
        }
        Stage::Ended { .. } => ("Failed", None, None),
    };
    status.insert("phase".to_owned(), json!(phase));
    for (member, text) in [("reason", reason), ("message", message)] {
        match text {
            Some(text) => status.insert(member.to_owned(), json!(text)),
            None => status.remove(member),
        };
    }
    observe_conditions(pod, stage, &place.now);
}

fn start(pod: &mut Value, place: &Place) {
    let Place { now, address } = place;
    let on_node = pod["spec"]["hostNetwork"] == true;
    let address = if on_node { HOST } else { address };
    let status = object::member_mut(pod, "status");
    for (member, value) in [
        ("startTime", json!(now)),
        ("hostIP", json!(HOST)),
        ("hostIPs", json!([{ "ip": HOST }])),
        ("podIP", json!(address)),
        ("podIPs", json!([{ "ip": address }])),
    ] {
        status.insert(member.to_owned(), value);
    }
}

/// Says that somebody wants a pod on a node, or that no node has room for it.
pub(super) fn note_scheduling(pod: &mut Value, problem: Option<&str>, now: &str) {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": if problem.is_none() { "True" } else { "False" },
        "lastProbeTime": null,
        "observedGeneration": object::generation(pod),
    });
    if let Some(problem) = problem {
        condition["reason"] = json!("Unschedulable");
        condition["message"] = json!(problem);
    }
    set_condition(&mut pod["status"]["conditions"], condition, now);
}

fn observe_conditions(pod: &mut Value, stage: Stage, now: &str) {
    let names = |list: &str, shown: &str| -> String {
        let statuses = object::elements(&pod["status"], shown);
        let unready = statuses.filter(|status| status["ready"] != true);
        let names: Vec<&str> = unready.filter_map(|one| one["name"].as_str()).collect();
        format!("containers with {list} status: [{}]", names.join(" "))
    };
    let completed = matches!(stage, Stage::Ended { well: true, .. });
    let begun = !matches!(stage, Stage::Initializing);
    let gates_open = !matches!(
        stage,
        Stage::Running {
            gates_open: false,
            ..
        }
    );
    let ready = matches!(stage, Stage::Running { ready: true, .. });
    let unready = if completed {
        ("PodCompleted", None)
    } else if matches!(stage, Stage::Ended { .. }) {
        ("PodFailed", None)
    } else {
        let why = names("unready", "containerStatuses");
        ("ContainersNotReady", Some(why))
    };
    let gated = "the status of pod readiness gates is not True".to_owned();
    let unready_or_gated = if ready {
        ("ReadinessGatesNotReady", Some(gated))
    } else {
        unready.clone()
    };
    let incomplete = names("incomplete", "initContainerStatuses");
    let uninitialized = ("ContainersNotInitialized", Some(incomplete));
    let kinds = [
        ("PodReadyToStartContainers", true, uninitialized.clone()),
        ("Initialized", begun, uninitialized),
        ("ContainersReady", ready, unready),
        ("Ready", ready && gates_open, unready_or_gated),
    ];
    let generation = object::generation(pod);
    if super::pods::condition(pod, "PodScheduled").is_none() {
        note_scheduling(pod, None, now);
    }
    for (kind, holds, (reason, message)) in kinds {
        let mut condition = json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "lastProbeTime": null,
            "observedGeneration": generation,
        });
        if !holds {
            condition["reason"] = json!(reason);
            if let Some(message) = message {
                condition["message"] = json!(message);
            }
        }
        set_condition(&mut pod["status"]["conditions"], condition, now);
    }
}

/// Which container of a pod a status is about.
#[derive(Debug, Clone, Copy)]
struct Part {
    list: &'static str,
    is_first: bool,
}

/// The state of a container, whether it is ready, and how often it was started again.
struct State {
    now: Value,
    last: Value,
    ready: bool,
    restarts: i64,
}

/// The status of a container; one that ran already goes on.
fn container_status(
    pod: &Value,
    part: Part,
    container: &Value,
    had: &Value,
    stage: Stage,
    place: &Place,
) -> Value {
    let (name, image) = (&container["name"], &container["image"]);
    let mut had = had.as_array().into_iter().flatten();
    let had = had.find(|one| one["name"] == *name && one["image"] == *image);
    let named = name.as_str().unwrap_or_default();
    let id = format!("containerd://{}-{named}", object::uid(pod));
    let State {
        now,
        last,
        ready,
        restarts,
    } = state(part, container, had, stage, place, &id);
    let runs = now["running"].is_object();
    let was_started = now["waiting"].is_null() || restarts > 0;
    json!({
        "name": name,
        "image": image,
        "imageID": if was_started { image.clone() } else { json!("") },
        "containerID": if was_started { json!(id) } else { Value::Null },
        "ready": ready,
        "started": runs,
        "restartCount": restarts.max(had.map_or(0, restarts_of)),
        "state": now,
        "lastState": last,
    })
}

fn restarts_of(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or_default()
}

fn state(
    part: Part,
    container: &Value,
    had: Option<&Value>,
    stage: Stage,
    place: &Place,
    id: &str,
) -> State {
    let had = had.cloned().unwrap_or_default();
    let since = had["state"]["running"]["startedAt"].as_str();
    let since = since.unwrap_or(&place.now);
    let running = json!({ "running": { "startedAt": since } });
    let ended = |code: i64| terminated(code, since, &place.now, id);
    let has_ended = had["state"]["terminated"].is_object();
    let last = if had["lastState"].is_object() {
        had["lastState"].clone()
    } else {
        json!({})
    };
    let shown = |now: Value, ready: bool| State {
        now,
        last: last.clone(),
        ready,
        restarts: 0,
    };
    let is_sidecar = container["restartPolicy"] == "Always";
    if part.list == "initContainers" && !is_sidecar {
        let begins = matches!(stage, Stage::Initializing);
        return match (begins, part.is_first) {
            (true, true) => shown(running, false),
            (true, false) => shown(waiting("PodInitializing", None), false),
            (false, _) if has_ended => shown(had["state"].clone(), true),
            (false, _) => shown(ended(0), true),
        };
    }
    let image = container["image"].as_str().unwrap_or_default();
    let is_main = part.list == "containers";
    let counts = part.list != "ephemeralContainers";
    match stage {
        Stage::Initializing => shown(waiting("PodInitializing", None), false),
        Stage::Ended { .. } if has_ended => shown(had["state"].clone(), false),
        Stage::Ended { well, .. } => shown(ended(i64::from(!well && is_main)), false),
        Stage::Pulling { again } if is_main => shown(not_pulled(image, again), false),
        Stage::Crashed { times } if is_main => {
            let message = "back-off restarting failed container".to_owned();
            State {
                now: waiting("CrashLoopBackOff", Some(message)),
                last: ended(1),
                ready: false,
                restarts: times,
            }
        }
        Stage::Running { ready, .. } => shown(running, ready && counts),
        Stage::Pulling { .. } | Stage::Crashed { .. } => shown(running, counts),
    }
}

fn terminated(code: i64, since: &str, now: &str, id: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({ "terminated": {
        "exitCode": code, "reason": reason, "startedAt": since, "finishedAt": now,
        "containerID": id,
    } })
}

fn waiting(reason: &str, message: Option<String>) -> Value {
    let mut waiting = json!({ "reason": reason });
    if let Some(message) = message {
        waiting["message"] = json!(message);
    }
    json!({ "waiting": waiting })
}

fn not_pulled(image: &str, again: bool) -> Value {
    let (reason, message) = if again {
        (
            "ImagePullBackOff",
            format!("Back-off pulling image {image:?}"),
        )
    } else {
        (
            "ErrImagePull",
            format!("failed to pull image {image:?}: not found"),
        )
    };
    waiting(reason, Some(message))
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

    fn running(ready: bool) -> Stage {
        Stage::Running {
            ready,
            gates_open: true,
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
        observe(&mut pod, running(true), &place("t"));
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

    /// The phase, the state of the first container, its restarts, and the reason of `Ready`.
    #[track_caller]
    fn check(stage: Stage, phase: &str, told: &str, restarts: i64, reason: &str) {
        let mut pod = pod();
        observe(&mut pod, stage, &place("t"));
        let status = &pod["status"];
        assert_eq!(status["phase"], phase);
        let container = &status["containerStatuses"][0];
        let (path, text) = told.split_once('=').expect("there is one");
        let found = container["state"].pointer(path);
        assert_eq!(found, Some(&json!(text)), "{container}");
        assert_eq!(container["restartCount"], restarts);
        let ready = super::super::pods::condition(&pod, "Ready").expect("it is there");
        assert_eq!(
            (&ready["status"], &ready["reason"]),
            (&json!("False"), &json!(reason))
        );
    }

    #[test]
    fn stages() {
        let unready = "ContainersNotReady";
        let begins = "/waiting/reason=PodInitializing";
        check(Stage::Initializing, "Pending", begins, 0, unready);
        let pulling = |again| Stage::Pulling { again };
        let failed = "/waiting/reason=ErrImagePull";
        check(pulling(false), "Pending", failed, 0, unready);
        let put_off = "/waiting/reason=ImagePullBackOff";
        check(pulling(true), "Pending", put_off, 0, unready);
        let runs = "/running/startedAt=t";
        check(running(false), "Running", runs, 0, unready);
        let crashed = "/waiting/reason=CrashLoopBackOff";
        check(Stage::Crashed { times: 3 }, "Running", crashed, 3, unready);
        let gated = Stage::Running {
            ready: true,
            gates_open: false,
        };
        check(gated, "Running", runs, 0, "ReadinessGatesNotReady");
        let ended = |well| Stage::Ended {
            well,
            deadline: !well,
        };
        let completed = "/terminated/reason=Completed";
        check(ended(true), "Succeeded", completed, 0, "PodCompleted");
        let error = "/terminated/reason=Error";
        check(ended(false), "Failed", error, 0, "PodFailed");
    }

    #[test]
    fn a_change_touches_what_it_concerns() {
        let mut pod = pod();
        observe(&mut pod, running(true), &place("t"));
        let before = pod.clone();
        observe(&mut pod, running(true), &place("u"));
        assert_eq!(pod, before);
        pod["metadata"]["generation"] = json!(2);
        pod["spec"]["containers"][1]["image"] = json!("b");
        observe(&mut pod, running(true), &place("u"));
        let statuses = &pod["status"]["containerStatuses"];
        assert_eq!(statuses[0], before["status"]["containerStatuses"][0]);
        assert_eq!(statuses[1]["image"], "b");
        assert_eq!(statuses[1]["state"]["running"]["startedAt"], "u");
        assert_eq!(pod["status"]["observedGeneration"], 2);
        assert_eq!(pod["status"]["startTime"], "t");
    }
}

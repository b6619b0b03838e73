use serde_json::{Value, json};

use super::*;
use crate::resource::{builtin_resources, from_definition};
use crate::storage::Object;

/// Every created object here is 65 seconds old.
const CREATED: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:01:05Z";

/// The cells of an object in all columns, as a line.
fn line(resource: &Resource, object: &Value) -> String {
    let now = NOW.parse().unwrap();
    let cells: Vec<String> = resource
        .columns
        .iter()
        .map(|column| {
            let shown = cell(resource, column, object, now);
            shown
                .as_str()
                .map_or_else(|| shown.to_string(), str::to_owned)
        })
        .collect();
    cells.join(" | ")
}

#[track_caller]
fn check(group: &str, plural: &str, mut object: Value, expected: &str) {
    let resource = builtin_resources()
        .iter()
        .find(|resource| resource.is(group, plural))
        .unwrap();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("a");
    }
    object["metadata"]["creationTimestamp"] = json!(CREATED);
    assert_eq!(line(resource, &object), expected);
}

#[test]
fn every_column_of_every_kind_has_a_rule() {
    let now: Timestamp = NOW.parse().unwrap();
    let object = json!({ "metadata": { "name": "a", "creationTimestamp": CREATED } });
    for resource in builtin_resources() {
        // Nothing of this kind is ever stored.
        if resource.is("", "componentstatuses") {
            continue;
        }
        for column in &resource.columns {
            let shown = cell(resource, column, &object, now);
            let (kind, column) = (&resource.plural, &column.name);
            assert!(!shown.is_null(), "{kind} {column}");
        }
    }
}

fn pod(spec: &Value, status: &Value) -> Value {
    let mut spec = spec.clone();
    if spec["containers"].is_null() {
        spec["containers"] = json!([{ "name": "c" }]);
    }
    json!({ "metadata": {}, "spec": spec, "status": status })
}

#[track_caller]
fn check_pod(spec: &Value, status: &Value, expected: &str) {
    check("", "pods", pod(spec, status), expected);
}

#[test]
fn pods_that_run() {
    check_pod(
        &json!({}),
        &json!({ "phase": "Pending" }),
        "a | 0/1 | Pending | 0 | 65s | <none> | <none> | <none> | <none>",
    );
    check_pod(
        &json!({ "nodeName": "n", "readinessGates": [{ "conditionType": "x" }] }),
        &json!({
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podIPs": [{ "ip": "10.0.0.1" }],
            "conditions": [{ "type": "x", "status": "True" }],
            "containerStatuses": [{
                "name": "c",
                "ready": true,
                "restartCount": 2,
                "state": { "running": {} },
                "lastState": { "terminated": { "finishedAt": "2026-01-01T00:00:35Z" } },
            }],
        }),
        "a | 1/1 | Running | 2 (30s ago) | 65s | 10.0.0.1 | n | <none> | 1/1",
    );
}

#[track_caller]
fn check_pod_status(metadata: Value, spec: &Value, status: &Value, expected: &str) {
    let mut pod = pod(spec, status);
    pod["metadata"] = metadata;
    let row = Row {
        object: &pod,
        now: NOW.parse().unwrap(),
    };
    assert_eq!(pods::pod("Status", row), Some(json!(expected)));
}

#[test]
fn what_holds_a_pod_up() {
    let nothing = json!({});
    let container = |state: Value| json!({ "name": "c", "ready": false, "state": state });
    let waiting = container(json!({ "waiting": { "reason": "ImagePullBackOff" } }));
    let killed = container(json!({ "terminated": { "signal": 9, "exitCode": 137 } }));
    let failed = container(json!({ "terminated": { "exitCode": 3 } }));
    let done = container(json!({ "terminated": { "exitCode": 0, "reason": "Completed" } }));
    let running = json!({ "name": "d", "ready": true, "state": { "running": {} } });
    for (statuses, expected) in [
        (json!([waiting]), "ImagePullBackOff"),
        (json!([killed]), "Signal:9"),
        (json!([failed]), "ExitCode:3"),
        (json!([done, running]), "NotReady"),
        (json!([running, waiting]), "ImagePullBackOff"),
    ] {
        let status = json!({ "phase": "Running", "containerStatuses": statuses });
        check_pod_status(json!({}), &nothing, &status, expected);
    }
    let init = json!({ "initContainers": [{ "name": "i" }, { "name": "j" }] });
    let first_done = json!({ "name": "i", "state": { "terminated": { "exitCode": 0 } } });
    for (statuses, expected) in [
        (
            json!([first_done, { "name": "j", "state": { "waiting": { "reason": "PodInitializing" } } }]),
            "Init:1/2",
        ),
        (
            json!([{ "name": "i", "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]),
            "Init:CrashLoopBackOff",
        ),
        (
            json!([{ "name": "i", "state": { "terminated": { "exitCode": 2 } } }]),
            "Init:ExitCode:2",
        ),
    ] {
        let status = json!({ "phase": "Pending", "initContainerStatuses": statuses });
        check_pod_status(json!({}), &init, &status, expected);
    }
    let gated = json!({
        "phase": "Pending",
        "conditions": [{ "type": "PodScheduled", "reason": "SchedulingGated" }],
    });
    check_pod_status(json!({}), &nothing, &gated, "SchedulingGated");
    let evicted = json!({ "phase": "Failed", "reason": "Evicted" });
    check_pod_status(json!({}), &nothing, &evicted, "Evicted");
    let deleted = json!({ "deletionTimestamp": CREATED });
    let running = json!({ "phase": "Running" });
    check_pod_status(deleted.clone(), &nothing, &running, "Terminating");
    check_pod_status(
        deleted,
        &nothing,
        &json!({ "phase": "Succeeded" }),
        "Succeeded",
    );
}

#[test]
fn workloads() {
    let template = json!({ "spec": { "containers": [
        { "name": "c", "image": "nginx" },
        { "name": "d", "image": "sidecar:1" },
    ] } });
    let selector = json!({
        "matchLabels": { "app": "x" },
        "matchExpressions": [
            { "key": "k", "operator": "In", "values": ["a", "b"] },
            { "key": "l", "operator": "DoesNotExist" },
        ],
    });
    check(
        "apps",
        "deployments",
        json!({
            "spec": { "replicas": 3, "template": template, "selector": selector },
            "status": { "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1 },
        }),
        "a | 1/3 | 2 | 1 | 65s | c,d | nginx,sidecar:1 | app=x,k in (a,b),!l",
    );
    check(
        "",
        "replicationcontrollers",
        json!({ "spec": { "replicas": 1, "selector": { "app": "x" } }, "status": { "replicas": 1 } }),
        "a | 1 | 1 | 0 | 65s |  |  | app=x",
    );
    check(
        "batch",
        "jobs",
        json!({
            "spec": { "completions": 2, "template": template },
            "status": {
                "succeeded": 2,
                "startTime": "2026-01-01T00:00:00Z",
                "completionTime": "2026-01-01T00:00:50Z",
                "conditions": [{ "type": "Complete", "status": "True" }],
            },
        }),
        "a | Complete | 2/2 | 50s | 65s | c,d | nginx,sidecar:1 | <none>",
    );
    check(
        "batch",
        "cronjobs",
        json!({ "spec": { "schedule": "* * * * *", "suspend": false } }),
        "a | * * * * * | <none> | False | 0 | <none> | 65s |  |  | <none>",
    );
    let utilization = json!({ "type": "Utilization", "averageUtilization": 80 });
    let metric =
        json!({ "type": "Resource", "resource": { "name": "cpu", "target": utilization } });
    check(
        "autoscaling",
        "horizontalpodautoscalers",
        json!({
            "spec": {
                "scaleTargetRef": { "kind": "Deployment", "name": "web" },
                "minReplicas": 1,
                "maxReplicas": 5,
                "metrics": [metric],
            },
            "status": { "currentReplicas": 2 },
        }),
        "a | Deployment/web | cpu: <unknown>/80% | 1 | 5 | 2 | 65s",
    );
}

#[test]
fn network() {
    check(
        "",
        "services",
        json!({ "spec": {
            "type": "NodePort",
            "clusterIP": "10.0.0.9",
            "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 30000 }, { "port": 53, "protocol": "UDP" }],
            "selector": { "app": "x", "tier": "y" },
        } }),
        "a | NodePort | 10.0.0.9 | <none> | 80:30000/TCP,53/UDP | 65s | app=x,tier=y",
    );
    check(
        "",
        "services",
        json!({ "spec": { "type": "LoadBalancer", "clusterIP": "10.0.0.9" } }),
        "a | LoadBalancer | 10.0.0.9 | <pending> | <none> | 65s | <none>",
    );
    check(
        "",
        "endpoints",
        json!({ "subsets": [{
            "addresses": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }, { "ip": "fd00::1" }, { "ip": "10.0.0.4" }],
            "ports": [{ "port": 80 }],
        }] }),
        "a | 10.0.0.1:80,10.0.0.2:80,[fd00::1]:80 + 1 more... | 65s",
    );
    check(
        "networking.k8s.io",
        "ingresses",
        json!({
            "spec": { "rules": [{ "host": "a.example" }, {}], "tls": [{}] },
            "status": { "loadBalancer": { "ingress": [{ "ip": "1.2.3.4" }] } },
        }),
        "a | <none> | a.example | 1.2.3.4 | 80, 443 | 65s",
    );
}

#[test]
fn the_rest_of_a_cluster() {
    check(
        "",
        "configmaps",
        json!({ "data": { "k": "v" }, "binaryData": { "b": "eA==" } }),
        "a | 2 | 65s",
    );
    check(
        "",
        "secrets",
        json!({ "type": "Opaque" }),
        "a | Opaque | 0 | 65s",
    );
    check(
        "",
        "persistentvolumeclaims",
        json!({
            "spec": { "volumeName": "v", "storageClassName": "fast", "volumeMode": "Block" },
            "status": {
                "phase": "Bound",
                "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
                "capacity": { "storage": "1Gi" },
            },
        }),
        "a | Bound | v | 1Gi | RWO,RWOP | fast | <unset> | 65s | Block",
    );
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        json!({
            "roleRef": { "kind": "Role", "name": "r" },
            "subjects": [
                { "kind": "User", "name": "u" },
                { "kind": "ServiceAccount", "namespace": "n", "name": "s" },
            ],
        }),
        "a | Role/r | 65s | u |  | n/s",
    );
    check(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        json!({}),
        "a | 2026-01-01T00:00:00Z",
    );
}

#[test]
fn events_of_both_groups() {
    let event = json!({
        "involvedObject": { "kind": "Pod", "name": "p", "fieldPath": "spec" },
        "reason": "Started",
        "message": "it runs\n",
        "type": "Normal",
        "source": { "component": "kubelet", "host": "n" },
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
        "count": 3,
    });
    check(
        "",
        "events",
        event,
        "5s | Normal | Started | pod/p | spec | kubelet, n | it runs | 65s | 3 | a",
    );
    let newer = json!({
        "regarding": { "kind": "Pod", "name": "p" },
        "reason": "Started",
        "note": "it runs",
        "type": "Normal",
        "reportingController": "kubelet",
        "eventTime": "2026-01-01T00:00:05.000000Z",
    });
    check(
        "events.k8s.io",
        "events",
        newer,
        "60s | Normal | Started | pod/p |  | kubelet | it runs | 60s | 1 | a",
    );
}

#[test]
fn columns_of_a_definition() {
    let column = |name: &str, kind: &str, path: &str| json!({ "name": name, "type": kind, "jsonPath": path });
    let definition = json!({
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("Count", "integer", ".spec.count"),
                    column("Float", "integer", ".spec.load"),
                    column("Load", "number", ".spec.load"),
                    column("Paused", "boolean", ".spec.paused"),
                    column("Text", "string", ".spec.count"),
                    column("Map", "string", ".spec.labels"),
                    column("Since", "date", ".spec.since"),
                    column("Bad date", "date", ".spec.image"),
                    column("Wrong", "integer", ".spec.image"),
                    column("Absent", "string", ".spec.none"),
                    column("No path", "string", ".spec["),
                ],
            }],
        },
        "status": { "acceptedNames": { "kind": "Widget", "plural": "widgets" } },
    });
    let resource = &from_definition(&Object::new(definition))[0];
    let object = json!({
        "metadata": { "name": "a" },
        "spec": {
            "count": 3,
            "load": 2.75,
            "paused": false,
            "labels": { "k": "v" },
            "since": CREATED,
            "image": "nginx",
        },
    });
    assert_eq!(
        line(resource, &object),
        "a | 3 | 2 | 2.75 | false | 3 | {\"k\":\"v\"} | 65s | <invalid> | null | null | null"
    );
}

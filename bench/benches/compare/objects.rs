//! Objects as API servers send them.

use crate::scenario::{Kind, listed_version};
use serde_json::{Value, json};

/// The annotation with the time at which an event was sent, in nanoseconds since 1970.
pub(crate) const SENT: &str = "bench.homeostat.dev/sent";
/// What stands there before; as long as such a time.
const NEVER: &str = "0000000000000000000";
const VERSION: &str = "\"resourceVersion\":\"";

/// An object, cut where its version and the time of sending stand.
pub(crate) struct Object {
    before_sent: Vec<u8>,
    before_version: Vec<u8>,
    rest: Vec<u8>,
}

impl Object {
    pub(crate) fn new(kind: Kind, number: usize) -> Self {
        let object = match kind {
            Kind::ConfigMap => config_map(number),
            Kind::Pod => pod(number),
        };
        let text = object.to_string();
        let sent = text.find(NEVER).unwrap();
        let version = sent + text[sent..].find(VERSION).unwrap() + VERSION.len();
        let end = version + text[version..].find('"').unwrap();
        Self {
            before_sent: text[..sent].into(),
            before_version: text[sent + NEVER.len()..version].into(),
            rest: text[end..].into(),
        }
    }

    pub(crate) fn write(&self, version: u64, sent: Option<u128>, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.before_sent);
        match sent {
            Some(sent) => into.extend_from_slice(format!("{sent:019}").as_bytes()),
            None => into.extend_from_slice(NEVER.as_bytes()),
        }
        into.extend_from_slice(&self.before_version);
        into.extend_from_slice(version.to_string().as_bytes());
        into.extend_from_slice(&self.rest);
    }
}

/// The number of the object with this name.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.rsplit('-').next()?.parse().ok()
}

fn meta(number: usize, managed: &Value) -> Value {
    json!({
        "name": format!("team-application-{number:06}"),
        "namespace": format!("namespace-{}", number % 100),
        "uid": format!("6d0e9a3c-52f1-4c0b-9a55-{number:012}"),
        "resourceVersion": listed_version(number).to_string(),
        "creationTimestamp": "2026-03-01T09:12:44Z",
        "labels": {
            "app.kubernetes.io/name": "application",
            "app.kubernetes.io/instance": format!("application-{}", number % 1000),
            "app.kubernetes.io/managed-by": "Helm",
        },
        "annotations": { SENT: NEVER, "meta.helm.sh/release-name": "application" },
        "managedFields": managed,
    })
}

/// As lists of built-in kinds have them, without `apiVersion` and `kind`.
fn config_map(number: usize) -> Value {
    let managed = json!([{
        "manager": "helm", "operation": "Update", "apiVersion": "v1", "time": "2026-03-01T09:12:44Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": { ".": {}, "f:application.yaml": {}, "f:log-level": {} },
            "f:metadata": { "f:labels": { ".": {}, "f:app.kubernetes.io/name": {} } },
        },
    }]);
    let settings = (0..12).map(|line| format!("setting-{line}: \"value {line} of {number}\"\n"));
    let settings = settings.collect::<Vec<_>>().concat();
    json!({
        "metadata": meta(number, &managed),
        "data": { "application.yaml": settings, "log-level": "info" },
    })
}

fn pod(number: usize) -> Value {
    let managed = pod_fields();
    let containers: Vec<Value> = ["main", "proxy", "metrics"].map(container).into();
    let statuses: Vec<Value> = ["main", "proxy", "metrics"].map(container_status).into();
    let kinds = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    let conditions: Vec<Value> = kinds.map(condition).into();
    let mut metadata = meta(number, &managed);
    metadata["generateName"] = "team-application-".into();
    metadata["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "team-application-5c9f8d7b6d",
        "uid": "0f4e6a4b-5a67-4b63-8ec4-1f0b7e0a4c11", "controller": true, "blockOwnerDeletion": true,
    }]);
    json!({
        "metadata": metadata,
        "spec": {
            "volumes": [
                { "name": "config", "configMap": { "name": "application-config", "defaultMode": 420 } },
                { "name": "kube-api-access-x7k2p", "projected": { "defaultMode": 420, "sources": [
                    { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                    { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                    { "downwardAPI": { "items": [{ "path": "namespace",
                        "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } }] } },
                ] } },
            ],
            "containers": containers,
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "application", "serviceAccount": "application",
            "nodeName": format!("node-{}", number % 250), "securityContext": { "runAsNonRoot": true, "fsGroup": 2000 },
            "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
                { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.12.7", "hostIPs": [{ "ip": "10.0.12.7" }], "podIP": "10.244.3.17",
            "podIPs": [{ "ip": "10.244.3.17" }], "startTime": "2026-03-01T09:12:44Z",
            "containerStatuses": statuses, "qosClass": "Burstable",
        },
    })
}

fn pod_fields() -> Value {
    let fields = json!({
        "f:metadata": {
            "f:generateName": {}, "f:labels": { ".": {}, "f:app": {}, "f:pod-template-hash": {} },
            "f:ownerReferences": { ".": {}, "k:{\"uid\":\"0f4e6a4b-5a67-4b63-8ec4-1f0b7e0a4c11\"}": {} },
        },
        "f:spec": {
            "f:containers": { "k:{\"name\":\"main\"}": {
                ".": {}, "f:env": { ".": {}, "k:{\"name\":\"POD_NAME\"}": { ".": {}, "f:name": {}, "f:valueFrom": {} } },
                "f:image": {}, "f:imagePullPolicy": {}, "f:livenessProbe": {}, "f:name": {}, "f:ports": {},
                "f:readinessProbe": {}, "f:resources": {}, "f:terminationMessagePath": {}, "f:volumeMounts": {},
            } },
            "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
            "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}, "f:volumes": {},
        },
    });
    let status_fields = json!({ "f:status": {
        "f:conditions": {
            "k:{\"type\":\"ContainersReady\"}": { ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {} },
            "k:{\"type\":\"Initialized\"}": { ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {} },
            "k:{\"type\":\"Ready\"}": { ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {} },
        },
        "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs": {}, "f:startTime": {},
    } });
    json!([
        { "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
          "time": "2026-03-01T09:12:44Z", "fieldsType": "FieldsV1", "fieldsV1": fields },
        { "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
          "time": "2026-03-01T09:12:59Z", "fieldsType": "FieldsV1", "fieldsV1": status_fields },
    ])
}

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-03-01T09:12:59Z" })
}

fn container(name: &str) -> Value {
    let probe = json!({ "httpGet": { "path": "/healthz", "port": 8080, "scheme": "HTTP" }, "initialDelaySeconds": 5,
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3 });
    json!({
        "name": name, "image": format!("registry.example.com/team/{name}:1.27.4"),
        "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
        "env": [
            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } },
            { "name": "LOG_LEVEL", "value": "info" },
        ],
        "resources": { "limits": { "memory": "256Mi" }, "requests": { "cpu": "100m", "memory": "128Mi" } },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/application", "readOnly": true },
            { "name": "kube-api-access-x7k2p", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" },
        ],
        "livenessProbe": probe, "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true },
    })
}

fn container_status(name: &str) -> Value {
    json!({
        "name": name, "state": { "running": { "startedAt": "2026-03-01T09:12:58Z" } }, "lastState": {},
        "ready": true, "restartCount": 0, "image": format!("registry.example.com/team/{name}:1.27.4"),
        "imageID": format!("registry.example.com/team/{name}@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        "containerID": "containerd://3f1a6b0e9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f", "started": true,
    })
}

use serde_json::{Value, json};

use super::super::field::Field;
use super::*;
use crate::resource::builtin_resources;
use crate::schema::builtin_type;

#[test]
fn every_rule_is_of_something_that_exists() {
    let mut names = Vec::new();
    for special in table::TYPES.into_iter().flatten() {
        let types = ["io.k8s.api.", "io.k8s.apimachinery.pkg.apis."]
            .into_iter()
            .find_map(|package| builtin_type(&format!("{package}{}", special.name)));
        let schema = types.unwrap_or_else(|| panic!("{}", special.name));
        for (member, _) in special.members {
            assert!(
                schema.fields.contains_key(*member),
                "{}.{member}",
                special.name
            );
        }
        assert!(
            !names.contains(&special.name),
            "{} has its rules twice",
            special.name
        );
        names.push(special.name);
    }
}

/// What is said of an object of a kind, line by line as in the message of a status.
#[track_caller]
fn check(plural: &str, object: &Value, expected: &[&str]) {
    let resource = builtin_resources()
        .iter()
        .find(|resource| resource.plural == plural)
        .expect("the kind is part of the data");
    let mut causes = causes(resource, object);
    causes.extend(mount_causes(resource, object));
    let lines: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    assert_eq!(lines, expected);
}

/// A pod with these members in its spec beside a container.
fn pod(more: &Value) -> Value {
    let mut spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    json!({ "spec": spec })
}

/// A pod whose container has these members beside its name and image.
fn with(more: &Value) -> Value {
    let mut pod = pod(&json!({ "volumes": [{ "name": "v", "emptyDir": {} }] }));
    for (name, value) in more.as_object().into_iter().flatten() {
        pod["spec"]["containers"][0][name] = value.clone();
    }
    pod
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn containers_have_names_and_images() {
    check("pods", &pod(&json!({})), &[]);
    check(
        "pods",
        &json!({ "spec": {} }),
        &["spec.containers: Required value"],
    );
    check(
        "pods",
        &json!({ "spec": { "containers": [{}] } }),
        &[
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
        ],
    );
    let name = format!("spec.containers[0].name: Invalid value: \"A\": {LABEL}");
    check("pods", &with(&json!({ "name": "A" })), &[&name]);
    let container = |name: &str| json!({ "name": name, "image": "i" });
    check(
        "pods",
        &json!({ "spec": {
            "containers": [container("a"), container("a")], "initContainers": [container("a")],
        } }),
        &[
            "spec.containers[1].name: Duplicate value: \"a\"",
            "spec.initContainers[0].name: Duplicate value: \"a\"",
        ],
    );
}

#[test]
fn ports_and_variables() {
    check(
        "pods",
        &with(&json!({ "ports": [
            { "containerPort": 0, "protocol": "TCP" },
            { "containerPort": 65_536, "protocol": "IP", "name": "a" },
            { "containerPort": 80, "hostPort": -1, "protocol": "TCP", "name": "a" },
            { "containerPort": 80, "protocol": "TCP", "name": "80" },
        ] })),
        &[
            "spec.containers[0].ports[2].name: Duplicate value: \"a\"",
            "spec.containers[0].ports[0].containerPort: Required value",
            "spec.containers[0].ports[1].containerPort: Invalid value: 65536: must be between 1 \
             and 65535, inclusive",
            "spec.containers[0].ports[1].protocol: Unsupported value: \"IP\": supported values: \
             \"SCTP\", \"TCP\", \"UDP\"",
            "spec.containers[0].ports[2].hostPort: Invalid value: -1: must be between 1 and \
             65535, inclusive",
            "spec.containers[0].ports[3].name: Invalid value: \"80\": must contain at least one \
             letter (a-z)",
        ],
    );
    let key = json!({ "name": "m", "key": "k" });
    check(
        "pods",
        &with(&json!({ "env": [
            { "value": "v" },
            { "name": "a=b" },
            { "name": "a", "value": "v", "valueFrom": { "configMapKeyRef": key } },
            { "name": "b", "valueFrom": {} },
            { "name": "c", "valueFrom": { "secretKeyRef": { "name": "s" } } },
        ] })),
        &[
            "spec.containers[0].env[0].name: Required value",
            "spec.containers[0].env[1].name: Invalid value: \"a=b\": a valid environment variable \
             name must consist only of printable ASCII characters other than '='",
            "spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when \
             `value` is not empty",
            "spec.containers[0].env[3].valueFrom: Invalid value: \"\": must specify one of: \
             `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
            "spec.containers[0].env[4].valueFrom.secretKeyRef.key: Required value",
        ],
    );
    check(
        "pods",
        &with(&json!({ "envFrom": [{}, { "secretRef": { "name": "s" } }] })),
        &[
            "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` \
             or `secretRef`",
        ],
    );
}

#[test]
fn probes_and_resources() {
    check(
        "pods",
        &with(&json!({
            "livenessProbe": { "periodSeconds": -1, "successThreshold": 2 },
            "readinessProbe": { "httpGet": { "path": "/", "port": "http", "scheme": "HTTP" } },
            "startupProbe": {
                "tcpSocket": { "port": 0 }, "exec": { "command": [] },
            },
        })),
        &[
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
            "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater \
             than or equal to 0",
            "spec.containers[0].startupProbe.tcpSocket: Forbidden: may not specify more than 1 \
             handler type",
            "spec.containers[0].startupProbe.exec.command: Required value",
            "spec.containers[0].startupProbe.tcpSocket.port: Invalid value: 0: must be between 1 \
             and 65535, inclusive",
        ],
    );
    check(
        "pods",
        &with(&json!({ "resources": {
            "limits": { "cpu": "1", "example.com/gpu": "1", "disk": "1", "memory": "-1" },
            "requests": { "cpu": "1500m" },
        } })),
        &[
            "spec.containers[0].resources.limits[disk]: Invalid value: \"disk\": must be a \
             standard resource for containers",
            "spec.containers[0].resources.limits[memory]: Invalid value: \"-1\": must be greater \
             than or equal to 0",
            "spec.containers[0].resources.requests: Invalid value: \"1500m\": must be less than \
             or equal to cpu limit of 1",
        ],
    );
}

#[test]
fn volumes_and_mounts() {
    check(
        "pods",
        &pod(&json!({ "volumes": [
            { "name": "a", "emptyDir": {}, "secret": { "secretName": "s" } },
            { "name": "a", "configMap": {} },
            { "name": "b", "persistentVolumeClaim": { "claimName": "" } },
        ] })),
        &[
            "spec.volumes[1].name: Duplicate value: \"a\"",
            "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[1].configMap.name: Required value",
            "spec.volumes[2].persistentVolumeClaim.claimName: Required value",
        ],
    );
    let mounts = json!({ "volumeMounts": [
        { "name": "v", "mountPath": "/a" }, { "name": "w", "mountPath": "/a" }, { "name": "v" },
    ] });
    check(
        "pods",
        &with(&mounts),
        &[
            "spec.containers[0].volumeMounts[1].name: Not found: \"w\"",
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
            "spec.containers[0].volumeMounts[2].mountPath: Required value",
        ],
    );
    check(
        "persistentvolumeclaims",
        &json!({ "spec": {} }),
        &[
            "spec.resources[storage]: Required value",
            "spec.accessModes: Required value: at least 1 access mode is required",
        ],
    );
}

#[test]
fn where_pods_run() {
    let host = format!("spec.hostname: Invalid value: \"a_b\": {LABEL}");
    let account = format!("spec.serviceAccountName: Invalid value: \"A\": {SUBDOMAIN}");
    check(
        "pods",
        &pod(&json!({
            "restartPolicy": "x",
            "serviceAccountName": "A",
            "activeDeadlineSeconds": 0,
            "hostname": "a_b",
            "tolerations": [
                { "operator": "Exists", "value": "v" },
                { "key": "a", "tolerationSeconds": 1 },
                { "value": "a" },
            ],
            "topologySpreadConstraints": [
                { "maxSkew": 0, "whenUnsatisfiable": "x", "topologyKey": "" },
            ],
        })),
        &[
            "spec.restartPolicy: Unsupported value: \"x\": supported values: \"Always\", \
             \"OnFailure\", \"Never\"",
            &account,
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, \
             inclusive",
            &host,
            "spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when \
             `operator` is 'Exists'",
            "spec.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when \
             `tolerationSeconds` is set",
            "spec.tolerations[2].operator: Invalid value: \"\": operator must be Exists when `key` \
             is empty, which means \"match all values and all keys\"",
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than \
             zero",
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"x\": \
             supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
        ],
    );
    let term = |operator: &str, values: &[&str]| json!({ "key": "a", "operator": operator, "values": values });
    let affinity = |term: &Value| {
        let terms = json!([{ "matchExpressions": [term] }]);
        let required = json!({ "nodeSelectorTerms": terms });
        let nodes = json!({ "requiredDuringSchedulingIgnoredDuringExecution": required });
        pod(&json!({ "affinity": { "nodeAffinity": nodes } }))
    };
    check("pods", &affinity(&term("In", &["v"])), &[]);
    let place = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                 nodeSelectorTerms[0].matchExpressions[0]";
    for (term, said) in [
        (
            term("In", &[]),
            "values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            term("Gt", &[]),
            "values: Required value: must be specified single value when `operator` is 'Lt' or \
             'Gt'",
        ),
        (
            term("Exists", &["v"]),
            "values: Forbidden: may not be specified when `operator` is 'Exists' or \
             'DoesNotExist'",
        ),
        (
            term("Is", &["v"]),
            "operator: Invalid value: \"Is\": not a valid selector operator",
        ),
    ] {
        check("pods", &affinity(&term), &[&format!("{place}.{said}")]);
    }
}

#[test]
fn templates_are_held_to_the_rules_of_pods() {
    let mut template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    template["metadata"] = json!({ "labels": { "app": "-" } });
    let label = "a valid label must be an empty string or consist of alphanumeric characters, \
                 '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                 '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    for (plural, way) in [
        ("deployments", "spec.template"),
        ("daemonsets", "spec.template"),
        ("replicasets", "spec.template"),
        ("jobs", "spec.template"),
        ("cronjobs", "spec.jobTemplate.spec.template"),
        ("podtemplates", "template"),
    ] {
        let mut object = json!({});
        object::set_at(&mut object, way, template.clone());
        check(
            plural,
            &object,
            &[
                &format!("{way}.labels: Invalid value: \"-\": {label}"),
                &format!("{way}.spec.containers[0].image: Required value"),
            ],
        );
    }
}

#[test]
fn counts_and_strategies() {
    let deployment = |more: Value| json!({ "spec": more });
    check(
        "deployments",
        &deployment(json!({
            "replicas": -1, "selector": {}, "minReadySeconds": 5, "progressDeadlineSeconds": 5,
            "strategy": { "type": "Recreate", "rollingUpdate": { "maxSurge": 1 } },
        })),
        &[
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is \
             'Recreate'",
        ],
    );
    let rolling = |down: Value, up: Value| {
        let update = json!({ "maxUnavailable": down, "maxSurge": up });
        deployment(json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": update } }))
    };
    check("deployments", &rolling(json!("25%"), json!(0)), &[]);
    let place = "spec.strategy.rollingUpdate.maxUnavailable";
    for (down, up, said) in [
        (
            json!(0),
            json!("0%"),
            "Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            json!("101%"),
            json!(1),
            "Invalid value: \"101%\": must not be greater than 100%",
        ),
        (
            json!(-1),
            json!(1),
            "Invalid value: -1: must be greater than or equal to 0",
        ),
    ] {
        check(
            "deployments",
            &rolling(down, up),
            &[&format!("{place}: {said}")],
        );
    }
}

#[test]
fn budgets_and_other_numbers() {
    check(
        "poddisruptionbudgets",
        &json!({ "spec": { "minAvailable": "half" } }),
        &[
            "spec.minAvailable: Invalid value: \"half\": a valid percent string must be a numeric \
             string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is \
             '[0-9]+%')",
        ],
    );
    let autoscaler = |least: i64, most: i64| {
        json!({ "spec": {
            "minReplicas": least, "maxReplicas": most,
            "scaleTargetRef": { "kind": "Deployment", "name": "a" },
        } })
    };
    check("horizontalpodautoscalers", &autoscaler(1, 2), &[]);
    check(
        "horizontalpodautoscalers",
        &autoscaler(3, 2),
        &["spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
    );
    check(
        "leases",
        &json!({ "spec": { "leaseDurationSeconds": 0, "leaseTransitions": -1 } }),
        &[
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ],
    );
}

#[test]
fn services_have_ports() {
    let service = |spec: Value| json!({ "spec": spec });
    check(
        "services",
        &service(json!({ "type": "ClusterIP" })),
        &["spec.ports: Required value"],
    );
    check(
        "services",
        &service(json!({ "type": "ClusterIP", "clusterIPs": ["None"] })),
        &[],
    );
    check(
        "services",
        &service(json!({ "type": "ExternalName" })),
        &["spec.externalName: Required value"],
    );
    let port = |name: &str, number: u32| json!({ "name": name, "port": number, "protocol": "TCP", "targetPort": number });
    check(
        "services",
        &service(json!({ "type": "ClusterIP", "ports": [port("", 80), port("a", 80)] })),
        &[
            "spec.ports[0].name: Required value",
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\
             \"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
        ],
    );
    check(
        "services",
        &service(json!({
            "type": "Other", "ports": [port("a", 70_000)], "externalTrafficPolicy": "Local",
        })),
        &[
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
             externally-accessible services",
            "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, \
             inclusive",
            "spec.type: Unsupported value: \"Other\": supported values: \"ClusterIP\", \
             \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ],
    );
}

#[test]
fn networks_and_webhooks() {
    check(
        "ingresses",
        &json!({ "spec": {} }),
        &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
    );
    let rule = |path: Value| json!({ "spec": { "rules": [{ "http": { "paths": [path] } }] } });
    check(
        "ingresses",
        &rule(json!({ "path": "a", "pathType": "Prefix", "backend": {} })),
        &[
            "spec.rules[0].http.paths[0].path: Invalid value: \"a\": must be an absolute path",
            "spec.rules[0].http.paths[0].backend: Required value: resource or service backend is \
             required",
        ],
    );
    check(
        "ingresses",
        &rule(json!({ "backend": { "service": { "name": "s", "port": {} } } })),
        &[
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            "spec.rules[0].http.paths[0].backend.service.port: Required value: port name or \
             number is required",
        ],
    );
    check(
        "validatingwebhookconfigurations",
        &json!({ "webhooks": [{
            "name": "a.b", "sideEffects": "Some", "admissionReviewVersions": ["v0"],
            "clientConfig": { "service": { "name": "s" } }, "timeoutSeconds": 31,
        }] }),
        &[
            "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three \
             segments separated by dots",
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v0\"]: must include at least \
             one of v1, v1beta1",
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \
             \"NoneOnDryRun\"",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 \
             and 30 seconds",
            "webhooks[0].clientConfig.service.namespace: Required value: service namespace is \
             required",
        ],
    );
}

#[test]
fn most_kinds_have_nothing_to_check() {
    let plans = plans();
    for plural in ["configmaps", "secrets", "serviceaccounts", "events"] {
        let resource = builtin_resources()
            .iter()
            .find(|resource| resource.plural == plural)
            .expect("the kind is part of the data");
        let name = resource.schema.reference.as_deref().unwrap_or_default();
        assert!(!plans.places.contains_key(name), "{plural}");
    }
}

#[test]
fn a_place_that_is_not_there_is_none() {
    let mut causes = Vec::new();
    let place = plans().places["io.k8s.api.core.v1.Pod"];
    plans().check(place, &json!(1), &Field::Object, &mut causes);
    assert!(causes.is_empty());
}

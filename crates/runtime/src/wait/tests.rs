//! The conditions, object by object.

use super::{Condition, conditions};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, Pod, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Checks a condition against objects, each with these members besides its `metadata`.
#[track_caller]
fn check<K: DeserializeOwned>(condition: &impl Condition<K>, cases: &[(bool, Value)]) {
    assert!(!condition.matches_object(None), "no object at all");
    for (expected, members) in cases {
        let mut object = json!({ "metadata": { "name": "a", "generation": 2 } });
        let added = members.as_object().unwrap().clone();
        object.as_object_mut().unwrap().extend(added);
        let object: K = serde_json::from_value(object).unwrap();
        assert_eq!(
            condition.matches_object(Some(&object)),
            *expected,
            "{members}"
        );
    }
}

#[test]
fn existence() {
    let object: ConfigMap = serde_json::from_value(json!({ "metadata": { "uid": "u" } })).unwrap();
    let object = Some(&object);
    for (uid, deleted) in [("u", false), ("v", true)] {
        assert_eq!(conditions::is_deleted(uid).matches_object(object), deleted);
        let none: Option<&ConfigMap> = None;
        assert!(conditions::is_deleted(uid).matches_object(none));
    }
    assert!(conditions::is_created().matches_object(object));
    assert!(!conditions::is_created::<ConfigMap>().matches_object(None));
}

#[test]
fn combinations() {
    let given = |value: bool| move |_: Option<&ConfigMap>| value;
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(given(a).and(given(b)).matches_object(None), a && b);
        assert_eq!(given(a).or(given(b)).matches_object(None), a || b);
        assert_eq!(given(a).not().matches_object(None), !a);
        let nested = given(a).not().or(given(b).and(given(a)));
        assert_eq!(nested.matches_object(None), !a || b);
    }
}

#[test]
fn custom_resource_definitions() {
    let spec = json!({
        "group": "example.com", "scope": "Namespaced", "versions": [],
        "names": { "kind": "Site", "plural": "sites" },
    });
    let with = |conditions: Value| json!({ "spec": spec, "status": { "conditions": conditions } });
    check::<CustomResourceDefinition>(
        &conditions::is_crd_established(),
        &[
            (false, json!({ "spec": spec })),
            (false, with(json!([]))),
            (
                false,
                with(json!([{ "type": "NamesAccepted", "status": "True" }])),
            ),
            (
                false,
                with(json!([{ "type": "Established", "status": "False" }])),
            ),
            (
                true,
                with(json!([
                    { "type": "NamesAccepted", "status": "True" },
                    { "type": "Established", "status": "True" },
                ])),
            ),
        ],
    );
}

#[test]
fn pods() {
    check::<Pod>(
        &conditions::is_pod_running(),
        &[
            (false, json!({})),
            (false, json!({ "status": {} })),
            (false, json!({ "status": { "phase": "Pending" } })),
            (false, json!({ "status": { "phase": "Succeeded" } })),
            (true, json!({ "status": { "phase": "Running" } })),
        ],
    );
}

#[test]
fn jobs() {
    let with = |type_: &str, status: &str| json!({ "status": { "conditions": [{ "type": type_, "status": status }] } });
    check::<Job>(
        &conditions::is_job_completed(),
        &[
            (false, json!({})),
            (false, json!({ "status": { "succeeded": 1 } })),
            (false, with("SuccessCriteriaMet", "True")),
            (false, with("Failed", "True")),
            (false, with("Complete", "False")),
            (true, with("Complete", "True")),
        ],
    );
}

/// A status from before the latest change of the spec says nothing about it.
#[test]
fn deployments() {
    let with = |seen: i64, status: &str, reason: &str| {
        json!({ "status": {
            "observedGeneration": seen,
            "conditions": [
                { "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable" },
                { "type": "Progressing", "status": status, "reason": reason },
            ],
        }})
    };
    check::<Deployment>(
        &conditions::is_deployment_completed(),
        &[
            (false, json!({})),
            (false, json!({ "status": { "observedGeneration": 2 } })),
            (false, with(2, "True", "ReplicaSetUpdated")),
            (false, with(2, "False", "ProgressDeadlineExceeded")),
            (false, with(1, "True", "NewReplicaSetAvailable")),
            (true, with(2, "True", "NewReplicaSetAvailable")),
            (true, with(3, "True", "NewReplicaSetAvailable")),
        ],
    );
}

#[test]
fn services() {
    let with = |points: Value| {
        json!({
            "spec": { "type": "LoadBalancer" },
            "status": { "loadBalancer": { "ingress": points } },
        })
    };
    check::<Service>(
        &conditions::is_service_loadbalancer_provisioned(),
        &[
            (true, json!({ "spec": { "type": "ClusterIP" } })),
            (true, json!({ "spec": {} })),
            (false, json!({ "spec": { "type": "LoadBalancer" } })),
            (false, with(json!(null))),
            (false, with(json!([]))),
            (false, with(json!([{ "ip": "192.0.2.1" }, {}]))),
            (true, with(json!([{ "ip": "192.0.2.1" }]))),
            (
                true,
                with(json!([{ "hostname": "lb.example.com" }, { "ip": "192.0.2.1" }])),
            ),
        ],
    );
}

#[test]
fn ingresses() {
    let with = |points: Value| json!({ "status": { "loadBalancer": { "ingress": points } } });
    check::<Ingress>(
        &conditions::is_ingress_provisioned(),
        &[
            (false, json!({})),
            (false, json!({ "status": {} })),
            (false, with(json!([]))),
            (false, with(json!([{ "hostname": "lb.example.com" }, {}]))),
            (true, with(json!([{ "hostname": "lb.example.com" }]))),
            (true, with(json!([{ "ip": "192.0.2.1" }]))),
        ],
    );
}

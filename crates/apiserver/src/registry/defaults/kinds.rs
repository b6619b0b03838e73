//! Defaults of kinds that depend on other members of the object.

use serde_json::{Map, Value, json};

use crate::base64;
use crate::object::{self, elements_mut};
use crate::registry::services;
use crate::resource::Resource;

/// Fills in what depends on other members.
pub(super) fn complete(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(&mut object["spec"]),
        ("", "replicationcontrollers") => replication_controller(object),
        ("", "secrets") => fold_string_data(object),
        ("", "services") => services::complete(&mut object["spec"]),
        ("apps", "statefulsets") => name_claims(&mut object["spec"]),
        ("batch", "jobs") => job(object::member_mut(object, "spec")),
        ("networking.k8s.io", "networkpolicies") => policy_types(&mut object["spec"]),
        _ => {}
    }
}

/// A pod requests what it is limited to, and on its node's network its ports are those of the node.
fn pod(spec: &mut Value) {
    let on_node = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for container in elements_mut(spec, list) {
            request_limits(&mut container["resources"]);
            let ports = elements_mut(container, "ports");
            for port in ports.filter(|port| on_node && port["hostPort"].is_null()) {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
}

/// What is limited and not requested is requested up to the limit.
fn request_limits(resources: &mut Value) {
    let Some(limits) = resources["limits"].as_object().cloned() else {
        return;
    };
    let requests = object::member_mut(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// A replication controller is labelled as its pods are, and selects them by that.
fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if !labels.is_object() {
        return;
    }
    if object["spec"]["selector"].is_null() {
        object["spec"]["selector"] = labels.clone();
    }
    if object["metadata"]["labels"].is_null() {
        object["metadata"]["labels"] = labels;
    }
}

/// `stringData` is only a way to write `data`.
fn fold_string_data(secret: &mut Value) {
    let Some(members) = secret.as_object_mut() else {
        return;
    };
    let Some(Value::Object(texts)) = members.remove("stringData") else {
        return;
    };
    for (key, text) in texts {
        if let Some(text) = text.as_str() {
            let encoded = base64::encode(text.as_bytes());
            object::member_mut(secret, "data").insert(key, json!(encoded));
        }
    }
}

/// Claims in a template say what they are.
fn name_claims(spec: &mut Value) {
    for claim in elements_mut(spec, "volumeClaimTemplates") {
        claim["apiVersion"] = json!("v1");
        claim["kind"] = json!("PersistentVolumeClaim");
    }
}

/// A job without numbers runs once; limits for each index and rules for failed pods bring others.
fn job(spec: &mut Map<String, Value>) {
    if !spec.contains_key("parallelism") && !spec.contains_key("completions") {
        spec.insert("completions".to_owned(), json!(1));
    }
    let limit = if spec.contains_key("backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    let replacement = if spec.contains_key("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    for (member, default) in [
        ("backoffLimit", json!(limit)),
        ("podReplacementPolicy", json!(replacement)),
    ] {
        spec.entry(member).or_insert(default);
    }
}

/// A policy is for what comes in, and for what goes out if it has rules for that.
fn policy_types(spec: &mut Value) {
    if !spec["policyTypes"].is_null() {
        return;
    }
    let goes_out = spec["egress"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty());
    spec["policyTypes"] = if goes_out {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(complete: fn(&mut Value), mut spec: Value, expected: &Value) {
        complete(&mut spec);
        assert_eq!(spec, *expected);
    }

    #[test]
    fn jobs() {
        let job = |spec: &mut Value| job(spec.as_object_mut().expect("it is an object"));
        check(
            job,
            json!({}),
            &json!({
                "completions": 1, "backoffLimit": 6, "podReplacementPolicy": "TerminatingOrFailed",
            }),
        );
        check(
            job,
            json!({ "parallelism": 2, "podFailurePolicy": {}, "backoffLimitPerIndex": 1 }),
            &json!({
                "parallelism": 2, "podFailurePolicy": {}, "backoffLimitPerIndex": 1,
                "backoffLimit": i32::MAX, "podReplacementPolicy": "Failed",
            }),
        );
    }

    #[test]
    fn policies() {
        check(
            policy_types,
            json!({ "egress": [] }),
            &json!({ "egress": [], "policyTypes": ["Ingress"] }),
        );
        check(
            policy_types,
            json!({ "egress": [{}] }),
            &json!({ "egress": [{}], "policyTypes": ["Ingress", "Egress"] }),
        );
    }

    #[test]
    fn text_of_secrets_wins_over_their_data() {
        check(
            fold_string_data,
            json!({ "data": { "a": "YQ==", "b": "YQ==" }, "stringData": { "a": "b" } }),
            &json!({ "data": { "a": "Yg==", "b": "YQ==" } }),
        );
    }
}

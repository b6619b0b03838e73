//! The rules for what is in an object beside its metadata.

use serde_json::{Value, json};

use super::Target;
use crate::object;
use crate::resource::Resource;
use crate::status::Cause;

/// The rules that a state of an object of a built-in kind breaks; `old` is the state before an
/// update.
pub(super) fn causes(target: &Target, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let resource = &target.resource;
    match &resource.custom {
        None if resource.is("", "configmaps") || resource.is("", "secrets") => {
            let mut causes = key_causes(object);
            causes.extend(immutable_causes(resource, object, old));
            causes
        }
        None if resource.is("apps", "deployments") => strategy_cause(object).into_iter().collect(),
        None if resource.is("", "pods") && target.subresource.is_none() => {
            old.map(|old| pod_causes(object, old)).unwrap_or_default()
        }
        None if resource.is("policy", "poddisruptionbudgets") => {
            budget_cause(object).into_iter().collect()
        }
        None if resource.plural == "events" => event_causes(resource, object, old),
        Some(_) | None => Vec::new(),
    }
}

/// A deployment that recreates does not roll.
fn strategy_cause(object: &Value) -> Option<Cause> {
    let strategy = &object["spec"]["strategy"];
    let both = strategy["type"] == "Recreate" && !strategy["rollingUpdate"].is_null();
    let why = "may not be specified when strategy `type` is 'Recreate'";
    both.then(|| Cause::forbidden("spec.strategy.rollingUpdate", why))
}

/// Of a pod's spec hardly anything can be changed.
fn pod_causes(pod: &Value, old: &Value) -> Vec<Cause> {
    let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
    for list in ["containers", "initContainers"] {
        if count(pod, list) != count(old, list) {
            let why = "pod updates may not add or remove containers";
            return vec![Cause::forbidden(format!("spec.{list}"), why)];
        }
    }
    if fixed_spec(pod) == fixed_spec(old) {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than \
               `spec.containers[*].image`,`spec.initContainers[*].image`,\
               `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
               tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
               was previously negative)";
    vec![Cause::forbidden("spec", why)]
}

/// A pod's spec without what can be changed.
fn fixed_spec(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(members) = spec.as_object_mut() {
        for member in [
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
        ] {
            members.remove(member);
        }
        for list in ["containers", "initContainers"] {
            let containers = members.get_mut(list).and_then(Value::as_array_mut);
            for container in containers
                .into_iter()
                .flatten()
                .filter_map(Value::as_object_mut)
            {
                container.remove("image");
                container.remove("imagePullPolicy");
            }
        }
    }
    spec
}

/// A budget is stated in one way.
fn budget_cause(object: &Value) -> Option<Cause> {
    let spec = &object["spec"];
    let both = !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null();
    let why = "minAvailable and maxUnavailable cannot be both set";
    both.then(|| Cause::invalid("spec", spec, why))
}

/// Keys of data are names of files.
fn key_causes(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for member in ["data", "binaryData"] {
        for key in object[member]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
        {
            let fits = key
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c));
            if !fits || key.is_empty() {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or \
                           '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
                           validation is '[-._a-zA-Z0-9]+')";
                causes.push(Cause::invalid(format!("{member}[{key}]"), &json!(key), why));
            }
        }
    }
    causes
}

/// What is marked as immutable stays as it is, and so does the type of a Secret.
fn immutable_causes(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let Some(old) = old else { return Vec::new() };
    let mut causes = Vec::new();
    if resource.plural == "secrets" && object["type"] != old["type"] {
        causes.push(Cause::invalid(
            "type",
            &object["type"],
            "field is immutable",
        ));
    }
    if old["immutable"] == true {
        let why = "field is immutable when `immutable` is set";
        for member in ["immutable", "data", "binaryData"] {
            if object[member] != old[member] {
                causes.push(Cause::forbidden(member, why));
            }
        }
    }
    causes
}

fn event_causes(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let about = if resource.group.is_empty() {
        "involvedObject"
    } else {
        "regarding"
    };
    let namespace = &object[about]["namespace"];
    let named = namespace.as_str().unwrap_or_default();
    // What is in no namespace is reported in `default`.
    if named != object::namespace(object)
        && !(named.is_empty() && object::namespace(object) == "default")
    {
        let why = "does not match event.namespace";
        return vec![Cause::invalid(
            "involvedObject.namespace",
            &json!(named),
            why,
        )];
    }
    if resource.group.is_empty() || old.is_some() {
        return Vec::new();
    }
    if !object["eventTime"].is_string() {
        return vec![Cause::required("eventTime", "")];
    }
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    for member in [
        "reportingController",
        "reportingInstance",
        "action",
        "reason",
    ] {
        if text(member).is_empty() {
            return vec![Cause::required(member, "")];
        }
    }
    if !["Normal", "Warning"].contains(&text("type")) {
        let why = format!("has invalid value: {}", text("type"));
        return vec![Cause::invalid("type", &json!(""), &why)];
    }
    Vec::new()
}

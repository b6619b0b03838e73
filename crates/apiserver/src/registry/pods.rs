//! Pods: which of their parts can change, and through which subresource.

mod difference;
mod spec;

use serde_json::{Map, Value, json};

use super::immutable::differs_but;
use crate::object;
use crate::quantity;
use crate::status::Cause;

/// What of a container is requested and limited by class of service.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Lists of containers that a pod starts with.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Members of the spec that have rules of their own.
const CHANGING_IN_SPEC: [&str; 3] = ["activeDeadlineSeconds", "schedulingGates", "tolerations"];

/// The class of service of a pod: what it is sure to get when its node runs short.
pub(super) fn class(pod: &Value) -> &'static str {
    let mut requests_any = false;
    let mut all_equal = true;
    for container in containers(pod) {
        let amount = |kind: &str, name: &str| {
            container["resources"][kind][name]
                .as_str()
                .filter(|amount| quantity::is_positive(amount))
        };
        for name in COUNTED {
            let (request, limit) = (amount("requests", name), amount("limits", name));
            requests_any |= request.is_some() || limit.is_some();
            all_equal &= limit.is_some() && request == limit;
        }
    }
    match (requests_any, all_equal) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    CONTAINERS
        .into_iter()
        .flat_map(|list| object::elements(&pod["spec"], list))
}

/// Takes from the new state of a pod what a subresource may change. False if the subresource is none
/// of those that change a part of the spec.
pub(super) fn take_part(subresource: &str, new: &mut Value, old: &Value) -> bool {
    let mut kept = old.clone();
    match subresource {
        "ephemeralcontainers" => {
            let part = new["spec"]["ephemeralContainers"].take();
            if !part.is_null() {
                kept["spec"]["ephemeralContainers"] = part;
            } else if let Some(spec) = kept["spec"].as_object_mut() {
                spec.remove("ephemeralContainers");
            }
        }
        "resize" => {
            for list in CONTAINERS {
                for container in object::elements_mut(&mut kept["spec"], list) {
                    resize(container, object::elements(&new["spec"], list));
                }
            }
        }
        _ => return false,
    }
    let metadata = object::metadata_mut(&mut kept);
    for member in ["managedFields", "resourceVersion"] {
        match object::metadata_mut(new).remove(member) {
            Some(value) => metadata.insert(member.to_owned(), value),
            None => metadata.remove(member),
        };
    }
    *new = kept;
    true
}

/// Gives a container the resources that the new state of the one with its name has.
fn resize<'a>(container: &mut Value, mut news: impl Iterator<Item = &'a Value>) {
    let Some(new) = news.find(|new| new["name"] == container["name"]) else {
        return;
    };
    let Some(members) = container.as_object_mut() else {
        return;
    };
    for member in ["resources", "resizePolicy"] {
        match new.get(member) {
            Some(value) => members.insert(member.to_owned(), value.clone()),
            None => members.remove(member),
        };
    }
}

/// The rules that a change of a pod breaks.
pub(super) fn causes(subresource: Option<&str>, pod: &Value, old: &Value) -> Vec<Cause> {
    match subresource {
        None => spec_causes(pod, old),
        Some("ephemeralcontainers") => ephemeral_causes(pod, old),
        Some("resize") => resize_causes(pod, old),
        Some(_) => Vec::new(),
    }
}

/// Of a pod's spec hardly anything can be changed.
fn spec_causes(pod: &Value, old: &Value) -> Vec<Cause> {
    let (new, old) = (&pod["spec"], &old["spec"]);
    for list in CONTAINERS {
        if object::elements(new, list).count() != object::elements(old, list).count() {
            let why = "pod updates may not add or remove containers";
            return vec![Cause::forbidden(format!("spec.{list}"), why)];
        }
    }
    let new_gates = new_gates(new, old);
    if !new_gates.is_empty() {
        return new_gates;
    }
    let mut causes: Vec<Cause> = deadline_cause(new, old).into_iter().collect();
    if !tolerates_no_less(new, old) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
    let mut lasting = without_changing(new, old);
    if object::elements(old, "schedulingGates").next().is_some() {
        causes.extend(selector_cause(new, old));
        take(&mut lasting, old, "nodeSelector");
    }
    if lasting == *old {
        return causes;
    }
    let why = "pod updates may not change fields other than \
               `spec.containers[*].image`,`spec.initContainers[*].image`,\
               `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
               tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
               was previously negative)";
    let difference = difference::unified(&spec::lines(old), &spec::lines(&lasting));
    causes.push(Cause::forbidden("spec", &format!("{why}\n{difference}")));
    causes
}

/// The new spec with the old state of all that may change.
fn without_changing(new: &Value, old: &Value) -> Value {
    let mut lasting = new.clone();
    for list in CONTAINERS {
        let containers = object::elements_mut(&mut lasting, list);
        for (container, old) in containers.zip(object::elements(old, list)) {
            take(container, old, "image");
        }
    }
    for member in CHANGING_IN_SPEC {
        take(&mut lasting, old, member);
    }
    let grace = "terminationGracePeriodSeconds";
    if new[grace] == 1 && old[grace].as_i64().is_some_and(|seconds| seconds < 0) {
        take(&mut lasting, old, grace);
    }
    lasting
}

/// Gives an object a member as another has it, or not.
fn take(object: &mut Value, other: &Value, member: &str) {
    if let Some(value) = other.get(member) {
        object[member] = value.clone();
    } else if let Some(members) = object.as_object_mut() {
        members.remove(member);
    }
}

/// While a pod has gates, its nodes can be chosen more closely.
fn selector_cause(new: &Value, old: &Value) -> Option<Cause> {
    let new = &new["nodeSelector"];
    let mut had = old["nodeSelector"].as_object().into_iter().flatten();
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    let lost = had.any(|(name, value)| new[name] != *value);
    lost.then(|| Cause::invalid("spec.nodeSelector", new, why))
}

/// Tolerations can only be added.
fn tolerates_no_less(new: &Value, old: &Value) -> bool {
    object::elements(old, "tolerations").all(|had| {
        object::elements(new, "tolerations")
            .any(|one| !differs_but(Some(one), Some(had), &["tolerationSeconds"]))
    })
}

/// Gates of scheduling can only be taken away.
fn new_gates(new: &Value, old: &Value) -> Vec<Cause> {
    let gates = object::elements(new, "schedulingGates").enumerate();
    let added =
        gates.filter(|(_, gate)| !object::elements(old, "schedulingGates").any(|had| had == *gate));
    added
        .map(|(index, gate)| {
            let name = gate["name"].as_str().unwrap_or_default();
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            Cause::forbidden(format!("spec.schedulingGates[{index}].name"), &why)
        })
        .collect()
}

/// A deadline can be set, and be made earlier.
fn deadline_cause(new: &Value, old: &Value) -> Option<Cause> {
    let field = "activeDeadlineSeconds";
    let (value, had) = (&new[field], old[field].as_i64()?);
    let why = match value.as_i64() {
        Some(seconds) if seconds <= had => return None,
        Some(_) => format!("must be less than or equal to previous value {had}"),
        None => "must not update from a positive integer to nil value".to_owned(),
    };
    Some(Cause::invalid(format!("spec.{field}"), value, &why))
}

/// Containers that were added to look at a pod stay as they are.
fn ephemeral_causes(pod: &Value, old: &Value) -> Vec<Cause> {
    let field = "spec.ephemeralContainers";
    object::elements(&old["spec"], "ephemeralContainers")
        .filter_map(|had| {
            let name = &had["name"];
            let mut news = object::elements(&pod["spec"], "ephemeralContainers");
            let why = match news.find(|new| new["name"] == *name) {
                Some(new) if new == had => return None,
                Some(_) => format!("existing ephemeral containers {name} may not be changed"),
                None => format!("existing ephemeral containers {name} may not be removed"),
            };
            Some(Cause::forbidden(field, &why))
        })
        .collect()
}

/// Only cpu and memory can be resized, and the class of service stays.
fn resize_causes(pod: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let class = class(pod);
    if old["status"]["qosClass"] != class {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", &json!(class), why));
    }
    let others_differ = |new: &Value, old: &Value| {
        ["requests", "limits"].into_iter().any(|kind| {
            let empty = Map::new();
            let (new, old) = (
                new["resources"][kind].as_object().unwrap_or(&empty),
                old["resources"][kind].as_object().unwrap_or(&empty),
            );
            new.keys()
                .chain(old.keys())
                .filter(|name| !COUNTED.contains(&name.as_str()))
                .any(|name| new.get(name) != old.get(name))
        })
    };
    if containers(pod)
        .zip(containers(old))
        .any(|(new, old)| others_differ(new, old))
    {
        let why = "only cpu and memory resources are mutable";
        causes.push(Cause::forbidden("spec", why));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(resources: &[Value]) -> Value {
        let containers: Vec<Value> = resources
            .iter()
            .enumerate()
            .map(|(index, resources)| json!({ "name": index.to_string(), "resources": resources }))
            .collect();
        json!({ "spec": { "containers": containers }, "status": {} })
    }

    #[test]
    fn classes_of_service() {
        let none = json!({});
        let zero = json!({ "requests": { "cpu": "0" } });
        let other = json!({ "limits": { "disk": "1" } });
        let some = json!({ "requests": { "cpu": "1" } });
        let full = json!({
            "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "1", "memory": "1Gi" },
        });
        let less = json!({
            "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "2", "memory": "1Gi" },
        });
        for (resources, expected) in [
            (vec![&none], "BestEffort"),
            (vec![&zero, &other], "BestEffort"),
            (vec![&some], "Burstable"),
            (vec![&full], "Guaranteed"),
            (vec![&full, &full], "Guaranteed"),
            (vec![&full, &none], "Burstable"),
            (vec![&less], "Burstable"),
        ] {
            let resources: Vec<Value> = resources.into_iter().cloned().collect();
            assert_eq!(class(&pod(&resources)), expected, "{resources:?}");
        }
    }

    #[track_caller]
    fn check(old: &Value, new: &Value, field: Option<&str>) {
        let old = json!({ "spec": old });
        let causes = causes(None, &json!({ "spec": new }), &old);
        let found = causes.first().map(|cause| cause.field.as_str());
        assert_eq!(found, field, "{causes:?}");
    }

    #[test]
    fn what_of_a_spec_can_change() {
        let image = |image: &str| json!({ "containers": [{ "name": "c", "image": image }] });
        check(&image("a"), &image("b"), None);
        let named = |name: &str| json!({ "containers": [{ "name": name }] });
        check(&named("a"), &named("b"), Some("spec"));
        check(
            &named("a"),
            &json!({ "containers": [] }),
            Some("spec.containers"),
        );
        let node = |node: &str| json!({ "nodeSelector": { "node": node } });
        check(&node("a"), &node("b"), Some("spec"));
        let tolerations = |keys: &[&str]| {
            let list: Vec<Value> = keys.iter().map(|key| json!({ "key": key })).collect();
            json!({ "tolerations": list })
        };
        check(&tolerations(&["a"]), &tolerations(&["b", "a"]), None);
        let lost = Some("spec.tolerations");
        check(&tolerations(&["a"]), &tolerations(&["b"]), lost);
        let gates = |names: &[&str]| json!({ "schedulingGates": names });
        check(&gates(&["a"]), &gates(&[]), None);
        check(
            &gates(&["a"]),
            &gates(&["a", "b"]),
            Some("spec.schedulingGates[1].name"),
        );
        let grace = |seconds: i64| json!({ "terminationGracePeriodSeconds": seconds });
        check(&grace(-1), &grace(1), None);
        check(&grace(30), &grace(1), Some("spec"));
        let deadline = |seconds: i64| json!({ "activeDeadlineSeconds": seconds });
        check(&json!({}), &deadline(5), None);
        check(&deadline(5), &deadline(4), None);
        check(
            &deadline(5),
            &deadline(6),
            Some("spec.activeDeadlineSeconds"),
        );
        check(&deadline(5), &json!({}), Some("spec.activeDeadlineSeconds"));
    }

    #[test]
    fn a_resize_takes_resources_alone() {
        let old = json!({
            "metadata": { "resourceVersion": "1" },
            "spec": { "containers": [{ "name": "c", "image": "a", "resources": {} }] },
        });
        let mut new = json!({
            "metadata": { "resourceVersion": "1", "labels": { "a": "b" } },
            "spec": {
                "containers": [{ "name": "c", "image": "b", "resources": { "limits": {} } }],
                "nodeName": "n",
            },
        });
        assert!(take_part("resize", &mut new, &old));
        assert_eq!(new["spec"]["containers"][0]["image"], "a");
        assert_eq!(
            new["spec"]["containers"][0]["resources"],
            json!({ "limits": {} })
        );
        assert_eq!(new["spec"]["nodeName"], Value::Null);
        assert_eq!(new["metadata"]["labels"], Value::Null);
    }
}

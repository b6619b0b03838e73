//! Rules for quotas: what can be counted, and of which pods.

use serde_json::{Value, json};

use crate::object;
use crate::quantity;
use crate::registry::forms;
use crate::status::Cause;

/// What a quota can limit, beside what has a domain in front.
const RESOURCES: [&str; 19] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// What is counted in whole numbers.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// What pods ask for.
const OF_PODS: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

const FIXED: &str = "field is immutable";

pub(super) fn causes(quota: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &quota["spec"];
    for (list, amounts) in [
        ("spec.hard", &spec["hard"]),
        ("status.hard", &quota["status"]["hard"]),
        ("status.used", &quota["status"]["used"]),
    ] {
        for (name, amount) in amounts.as_object().into_iter().flatten() {
            amount_causes(&format!("{list}[{name}]"), name, amount, &mut causes);
        }
    }
    scopes(spec, &mut causes);
    if let Some(old) = old.filter(|old| spec["scopes"] != old["spec"]["scopes"]) {
        let mut new: Vec<&Value> = object::elements(spec, "scopes").collect();
        let mut had: Vec<&Value> = object::elements(&old["spec"], "scopes").collect();
        let text = |scope: &&Value| scope.to_string();
        new.sort_by_key(text);
        had.sort_by_key(text);
        if new != had {
            causes.push(Cause::invalid("spec.scopes", &json!(new), FIXED));
        }
    }
    causes
}

fn amount_causes(field: &str, name: &str, amount: &Value, causes: &mut Vec<Cause>) {
    let problems = forms::qualified_name(name);
    let shown = json!(name);
    causes.extend(
        problems
            .iter()
            .map(|why| Cause::invalid(field, &shown, why)),
    );
    let is_huge = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
    if problems.is_empty() && !name.contains('/') && !is_huge && !RESOURCES.contains(&name) {
        for why in [
            "must be a standard resource type or fully qualified",
            "must be a standard resource for quota",
        ] {
            causes.push(Cause::invalid(field, &shown, why));
        }
    }
    let text = amount.as_str().unwrap_or_default();
    let shown = json!(quantity::canonical(text).unwrap_or_default());
    if quantity::is_less(text, "0") {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid(field, &shown, why));
    }
    let is_counted = COUNTED.contains(&name) || name.starts_with("count/");
    if is_counted && !quantity::is_whole(text) {
        causes.push(Cause::invalid(field, &shown, "must be an integer"));
    }
}

fn scopes(spec: &Value, causes: &mut Vec<Cause>) {
    let field = "spec.scopes";
    let all = &spec["scopes"];
    let scopes: Vec<&str> = object::elements(spec, "scopes")
        .filter_map(Value::as_str)
        .collect();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            causes.push(Cause::invalid(field, all, "unsupported scope"));
        }
        let limited = spec["hard"].as_object().into_iter().flatten();
        for (name, _) in limited.filter(|(name, _)| RESOURCES.contains(&name.as_str())) {
            let fits = match *scope {
                "BestEffort" => name == "pods",
                "VolumeAttributesClass" => {
                    ["persistentvolumeclaims", "requests.storage"].contains(&name.as_str())
                }
                scope if SCOPES.contains(&scope) => OF_PODS.contains(&name.as_str()),
                _ => true,
            };
            if !fits {
                let why = "unsupported scope applied to resource";
                causes.push(Cause::invalid(field, all, why));
            }
        }
    }
    for (one, other) in [
        ("BestEffort", "NotBestEffort"),
        ("Terminating", "NotTerminating"),
    ] {
        if scopes.contains(&one) && scopes.contains(&other) {
            causes.push(Cause::invalid(field, all, "conflicting scopes"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &[&str]) {
        let causes = causes(&json!({ "spec": spec }), None);
        let found: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_counted_and_of_which_pods() {
        let fine = json!({ "count/jobs.batch": "1", "example.com/gpu": "1", "cpu": "1500m" });
        check(&json!({ "hard": fine }), &[]);
        check(
            &json!({ "hard": { "count/jobs.batch": "500m" } }),
            &["spec.hard[count/jobs.batch]: Invalid value: \"500m\": must be an integer"],
        );
        check(
            &json!({ "hard": { "cpu": "1" }, "scopes": ["BestEffort", "NotBestEffort"] }),
            &[
                "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: unsupported scope \
                 applied to resource",
                "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
            ],
        );
    }
}

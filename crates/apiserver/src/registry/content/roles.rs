//! Rules for roles and for whom they are given to.

use serde_json::{Value, json};

use crate::object;
use crate::registry::forms;
use crate::resource::Resource;
use crate::status::Cause;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    match resource.plural.as_str() {
        "roles" | "clusterroles" => object::elements(object, "rules")
            .enumerate()
            .flat_map(|(index, rule)| rule_causes(resource.namespaced, index, rule))
            .collect(),
        "rolebindings" | "clusterrolebindings" => {
            let subjects = object::elements(object, "subjects").enumerate();
            let subjects = subjects
                .flat_map(|(index, subject)| subject_causes(resource.namespaced, index, subject));
            role_causes(resource.namespaced, &object["roleRef"])
                .into_iter()
                .chain(subjects)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn rule_causes(namespaced: bool, index: usize, rule: &Value) -> Vec<Cause> {
    let has = |member: &str| object::elements(rule, member).next().is_some();
    let field = |member: &str| format!("rules[{index}].{member}");
    let mut causes = Vec::new();
    if !has("verbs") {
        let why = "verbs must contain at least one value";
        causes.push(Cause::required(field("verbs"), why));
    }
    if has("nonResourceURLs") {
        let urls = &rule["nonResourceURLs"];
        if namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            causes.push(Cause::invalid(field("nonResourceURLs"), urls, why));
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            causes.push(Cause::invalid(field("nonResourceURLs"), urls, why));
        }
        return causes;
    }
    for (member, why) in [
        (
            "apiGroups",
            "resource rules must supply at least one api group",
        ),
        (
            "resources",
            "resource rules must supply at least one resource",
        ),
    ] {
        if !has(member) {
            causes.push(Cause::required(field(member), why));
        }
    }
    causes
}

fn role_causes(namespaced: bool, role: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if role["apiGroup"] != GROUP {
        let group = &role["apiGroup"];
        causes.push(Cause::not_supported("roleRef.apiGroup", group, &[GROUP]));
    }
    let kinds: &[&str] = if namespaced {
        &["ClusterRole", "Role"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.iter().any(|kind| role["kind"] == *kind) {
        causes.push(Cause::not_supported("roleRef.kind", &role["kind"], kinds));
    }
    if role["name"].as_str().is_none_or(str::is_empty) {
        causes.push(Cause::required("roleRef.name", ""));
    }
    causes
}

fn subject_causes(namespaced: bool, index: usize, subject: &Value) -> Vec<Cause> {
    let field = |member: &str| format!("subjects[{index}].{member}");
    let text = |member: &str| subject[member].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    if text("name").is_empty() {
        causes.push(Cause::required(field("name"), ""));
    }
    let group = match text("kind") {
        "ServiceAccount" => {
            let problems = forms::subdomain(text("name"));
            let problems = problems.iter().filter(|_| !text("name").is_empty());
            let cause = |why: &&str| Cause::invalid(field("name"), &json!(text("name")), why);
            causes.extend(problems.map(cause));
            ""
        }
        "User" | "Group" => GROUP,
        kind => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(field("kind"), &json!(kind), &kinds));
            return causes;
        }
    };
    if text("apiGroup") != group {
        let given = json!(text("apiGroup"));
        causes.push(Cause::not_supported(field("apiGroup"), &given, &[group]));
    }
    if group.is_empty() && !namespaced && text("namespace").is_empty() {
        causes.push(Cause::required(field("namespace"), ""));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(causes: &[Cause], fields: &[&str]) {
        let found: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(found, fields);
    }

    #[test]
    fn rules_of_roles() {
        let whole = json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] });
        check(&rule_causes(true, 0, &whole), &[]);
        check(
            &rule_causes(true, 1, &json!({})),
            &["rules[1].verbs", "rules[1].apiGroups", "rules[1].resources"],
        );
        let urls = json!({ "verbs": ["get"], "nonResourceURLs": ["/"] });
        check(&rule_causes(false, 0, &urls), &[]);
        check(&rule_causes(true, 0, &urls), &["rules[0].nonResourceURLs"]);
    }

    #[test]
    fn roles_and_subjects_of_bindings() {
        let role = |kind: &str| json!({ "apiGroup": GROUP, "kind": kind, "name": "a" });
        check(&role_causes(true, &role("Role")), &[]);
        check(&role_causes(false, &role("Role")), &["roleRef.kind"]);
        let subject = |kind: &str| json!({ "kind": kind, "name": "a" });
        check(&subject_causes(true, 0, &subject("ServiceAccount")), &[]);
        check(
            &subject_causes(false, 0, &subject("ServiceAccount")),
            &["subjects[0].namespace"],
        );
        check(
            &subject_causes(true, 0, &subject("User")),
            &["subjects[0].apiGroup"],
        );
        check(
            &subject_causes(true, 0, &subject("x")),
            &["subjects[0].kind"],
        );
    }
}

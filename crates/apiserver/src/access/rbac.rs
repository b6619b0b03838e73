//! What roles and their bindings allow.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Attributes, User};
use crate::object::{elements, name as name_of, namespace as namespace_of};
use crate::storage::{Key, Object, Store};

/// Whether something is allowed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) allowed: bool,
    /// May be empty.
    pub(crate) reason: String,
}

/// A binding that gives the rules of a role to a user.
struct Grant {
    /// The binding, for people.
    binding: String,
    role: Object,
}

/// The group of those who may do everything.
const MASTERS: &str = "system:masters";

const GROUP: &str = "rbac.authorization.k8s.io";

// === impl Ruling ===

impl Ruling {
    pub(crate) fn allowed(reason: String) -> Self {
        let allowed = true;
        Self { allowed, reason }
    }

    pub(crate) fn denied(reason: String) -> Self {
        let allowed = false;
        Self { allowed, reason }
    }
}

/// What the roles say of a request.
pub(super) fn ruling(store: &Store, wanted: &Attributes<'_>) -> Ruling {
    if is_master(wanted.user) {
        return Ruling::allowed(String::new());
    }
    let (grants, missing) = grants(store, wanted.user, wanted.namespace);
    let found = grants
        .iter()
        .find(|grant| elements(&grant.role, "rules").any(|rule| allows(rule, wanted)));
    match found {
        Some(Grant { binding, .. }) => Ruling::allowed(format!("RBAC: allowed by {binding}")),
        None => Ruling::denied(trouble(&missing)),
    }
}

/// All rules for a user in a namespace, in the form of a `SubjectRulesReviewStatus`.
pub(crate) fn rules_of(store: &Store, user: &User, namespace: &str) -> Value {
    let (grants, missing) = grants(store, user, namespace);
    let rules = grants
        .iter()
        .flat_map(|grant| elements(&grant.role, "rules"));
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules {
        if elements(rule, "resources").next().is_some() {
            let mut shown = json!({});
            for member in ["verbs", "apiGroups", "resources", "resourceNames"] {
                if !rule[member].is_null() {
                    shown[member] = rule[member].clone();
                }
            }
            resources.push(shown);
        } else {
            let (verbs, urls) = (&rule["verbs"], &rule["nonResourceURLs"]);
            paths.push(json!({ "verbs": verbs, "nonResourceURLs": urls }));
        }
    }
    let mut status =
        json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false });
    if !missing.is_empty() {
        status["incomplete"] = json!(true);
        status["evaluationError"] = json!(missing.join(", "));
    }
    status
}

/// Those rules that allow something which the user may not do there, each cut down to that.
pub(crate) fn lacking<'a>(
    store: &Store,
    user: &User,
    namespace: &str,
    rules: impl Iterator<Item = &'a Value>,
) -> Vec<Value> {
    if is_master(user) {
        return Vec::new();
    }
    let (grants, _) = grants(store, user, namespace);
    let has = |wanted: &Value| {
        let mut held = grants
            .iter()
            .flat_map(|grant| elements(&grant.role, "rules"));
        held.any(|rule| covers(rule, wanted))
    };
    rules
        .flat_map(single_rules)
        .filter(|rule| !has(rule))
        .collect()
}

fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

/// Why a refusal may be a mistake: bindings name roles that are not there.
fn trouble(missing: &[String]) -> String {
    match missing {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        all => format!("RBAC: [{}]", all.join(", ")),
    }
}

/// What was given to a user: everywhere, and in the namespace if one is named. And the roles that are not there.
fn grants(store: &Store, user: &User, namespace: &str) -> (Vec<Grant>, Vec<String>) {
    let (mut grants, mut missing) = (Vec::new(), Vec::new());
    let mut gather = |plural: &str, scope: Option<&str>| {
        let resource: Arc<str> = format!("{GROUP}/{plural}").into();
        for (_, binding) in store.scan(&resource, scope, store.revision(), None) {
            let mut subjects = elements(&binding, "subjects");
            let Some(subject) = subjects.find(|subject| is_meant(subject, user, &binding)) else {
                continue;
            };
            let (kind, name) = (
                text(&binding["roleRef"], "kind"),
                text(&binding["roleRef"], "name"),
            );
            match role(store, kind, namespace, name) {
                Some(role) => grants.push(Grant {
                    binding: description(&binding, subject),
                    role,
                }),
                None => missing.push(format!(
                    "{}.{GROUP} {name:?} not found",
                    kind.to_ascii_lowercase()
                )),
            }
        }
    };
    gather("clusterrolebindings", None);
    if !namespace.is_empty() {
        gather("rolebindings", Some(namespace));
    }
    (grants, missing)
}

fn role(store: &Store, kind: &str, namespace: &str, name: &str) -> Option<Object> {
    let (plural, namespace) = if kind == "Role" {
        ("roles", namespace)
    } else {
        ("clusterroles", "")
    };
    let resource: Arc<str> = format!("{GROUP}/{plural}").into();
    store.get(&Key::new(&resource, namespace, name))
}

fn is_meant(subject: &Value, user: &User, binding: &Value) -> bool {
    let name = text(subject, "name");
    match text(subject, "kind") {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => user.account() == Some((namespace_of_account(subject, binding), name)),
        _ => false,
    }
}

fn namespace_of_account<'a>(subject: &'a Value, binding: &'a Value) -> &'a str {
    match text(subject, "namespace") {
        "" => namespace_of(binding),
        namespace => namespace,
    }
}

/// As in `RoleBinding "writers/default" of Role "writer" to User "bob"`.
fn description(binding: &Value, subject: &Value) -> String {
    let role = &binding["roleRef"];
    let mut name = text(subject, "name").to_owned();
    let kind = text(subject, "kind");
    if kind == "ServiceAccount" {
        name = format!("{name}/{}", namespace_of_account(subject, binding));
    }
    let (what, of) = match namespace_of(binding) {
        "" => ("ClusterRoleBinding", name_of(binding).to_owned()),
        namespace => ("RoleBinding", format!("{}/{namespace}", name_of(binding))),
    };
    format!(
        "{what} {of:?} of {} {:?} to {kind} {name:?}",
        text(role, "kind"),
        text(role, "name"),
    )
}

/// Whether a rule of a role allows a request.
fn allows(rule: &Value, wanted: &Attributes<'_>) -> bool {
    if !has(rule, "verbs", wanted.verb) {
        return false;
    }
    if wanted.resource.is_empty() {
        return elements(rule, "nonResourceURLs")
            .filter_map(Value::as_str)
            .any(|url| is_url(url, wanted.path));
    }
    has(rule, "apiGroups", wanted.group)
        && has_resource(rule, wanted.resource, wanted.subresource)
        && (elements(rule, "resourceNames").next().is_none()
            || says(rule, "resourceNames", wanted.name))
}

fn has_resource(rule: &Value, resource: &str, subresource: &str) -> bool {
    if subresource.is_empty() {
        return has(rule, "resources", resource);
    }
    says(rule, "resources", "*")
        || says(rule, "resources", &format!("{resource}/{subresource}"))
        || says(rule, "resources", &format!("*/{subresource}"))
}

/// Whether a path is what a rule names: `/healthz`, or all that begins with what stands before `*`.
fn is_url(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == url,
    }
}

/// Whether a list has a text or the star for all.
fn has(rule: &Value, member: &str, wanted: &str) -> bool {
    says(rule, member, "*") || says(rule, member, wanted)
}

fn says(rule: &Value, member: &str, wanted: &str) -> bool {
    elements(rule, member).any(|one| one == wanted)
}

/// A rule as rules with one verb, one group, one resource and one name each.
fn single_rules(rule: &Value) -> Vec<Value> {
    let texts = |member: &str| elements(rule, member).filter_map(Value::as_str);
    let mut singles = Vec::new();
    for verb in texts("verbs") {
        for url in texts("nonResourceURLs") {
            singles.push(json!({ "verbs": [verb], "nonResourceURLs": [url] }));
        }
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                let single =
                    json!({ "verbs": [verb], "apiGroups": [group], "resources": [resource] });
                let names = texts("resourceNames").map(|name| {
                    let mut named = single.clone();
                    named["resourceNames"] = json!([name]);
                    named
                });
                let before = singles.len();
                singles.extend(names);
                if singles.len() == before {
                    singles.push(single);
                }
            }
        }
    }
    singles
}

/// Whether whoever has a rule has a single rule.
fn covers(rule: &Value, single: &Value) -> bool {
    let one = |member: &str| single[member][0].as_str().unwrap_or_default();
    if !has(rule, "verbs", one("verbs")) {
        return false;
    }
    if single["resources"].is_null() {
        let url = one("nonResourceURLs");
        return elements(rule, "nonResourceURLs")
            .filter_map(Value::as_str)
            .any(|held| held == url || is_url(held, url));
    }
    let (resource, subresource) = one("resources")
        .split_once('/')
        .unwrap_or((one("resources"), ""));
    has(rule, "apiGroups", one("apiGroups"))
        && (has_resource(rule, resource, subresource) || says(rule, "resources", one("resources")))
        && (elements(rule, "resourceNames").next().is_none()
            || (!single["resourceNames"].is_null()
                && says(rule, "resourceNames", one("resourceNames"))))
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for `verb group/resource[/subresource] [name]`, or `verb /path`.
    fn check(rule: &Value, wanted: &str, expected: bool) {
        let user = User::new("a");
        let words: Vec<&str> = wanted.split(' ').collect();
        let mut asked = Attributes::of(&user, words[0]);
        if words[1].starts_with('/') {
            asked.path = words[1];
        } else {
            let parts: Vec<&str> = words[1].split('/').collect();
            (asked.group, asked.resource) = (parts[0], parts[1]);
            asked.subresource = parts.get(2).copied().unwrap_or_default();
            asked.name = words.get(2).copied().unwrap_or_default();
        }
        assert_eq!(allows(rule, &asked), expected, "{wanted} by {rule}");
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let rule = |group: &str, resource: &str, verb: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] });
        for (rule, wanted, expected) in [
            (
                rule("apps", "deployments", "get"),
                "get apps/deployments a",
                true,
            ),
            (
                rule("apps", "deployments", "get"),
                "list apps/deployments",
                false,
            ),
            (
                rule("", "deployments", "get"),
                "get apps/deployments",
                false,
            ),
            (
                rule("*", "deployments", "*"),
                "delete apps/deployments",
                true,
            ),
            (
                rule("apps", "deployments", "get"),
                "get apps/deployments/scale",
                false,
            ),
            (
                rule("apps", "deployments/scale", "get"),
                "get apps/deployments/scale",
                true,
            ),
            (
                rule("apps", "deployments/scale", "get"),
                "get apps/deployments",
                false,
            ),
            (
                rule("apps", "*/scale", "get"),
                "get apps/statefulsets/scale",
                true,
            ),
            (
                rule("apps", "*", "get"),
                "get apps/statefulsets/scale",
                true,
            ),
            (rule("apps", "*", "get"), "get /apis", false),
        ] {
            check(&rule, wanted, expected);
        }
    }

    #[test]
    fn names_and_urls() {
        let named = json!({ "apiGroups": ["x"], "resources": ["secrets"], "verbs": ["get", "list"], "resourceNames": ["one"] });
        check(&named, "get x/secrets one", true);
        check(&named, "get x/secrets two", false);
        check(&named, "list x/secrets", false);
        let urls = json!({ "nonResourceURLs": ["/healthz", "/apis/*"], "verbs": ["get"] });
        check(&urls, "get /healthz", true);
        check(&urls, "get /healthz/ping", false);
        check(&urls, "get /apis/apps", true);
        check(&urls, "get /apis", false);
        check(&urls, "post /healthz", false);
    }

    #[test]
    fn who_has_a_rule_has_what_is_in_it() {
        let held = json!({ "apiGroups": ["apps"], "resources": ["*"], "verbs": ["get", "list"] });
        let wanted = json!({ "apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "verbs": ["get", "patch"] });
        let lacking: Vec<Value> = single_rules(&wanted)
            .into_iter()
            .filter(|single| !covers(&held, single))
            .collect();
        let patch = |resource: &str| json!({ "verbs": ["patch"], "apiGroups": ["apps"], "resources": [resource] });
        assert_eq!(lacking, [patch("deployments"), patch("deployments/scale")]);
        // Who may read one object may not read all.
        let one = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"] });
        let all = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] });
        assert!(!covers(&one, &single_rules(&all)[0]));
        assert!(covers(&all, &single_rules(&one)[0]));
    }
}

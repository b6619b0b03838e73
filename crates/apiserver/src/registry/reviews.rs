//! Questions that look like objects: they are answered and not stored.

use serde_json::{Value, json};

use super::{Registry, Target};
use crate::access::{Attributes, Requester, Ruling, User, rules_of};
use crate::storage::Store;

/// The answer to a question, which is its status. None if the resource is no question.
pub(super) fn answer(
    registry: &Registry,
    target: &Target,
    body: &Value,
    requester: &Requester,
) -> Option<Value> {
    let (resource, store) = (&target.resource, &registry.store);
    let spec = &body["spec"];
    let user = &requester.user;
    let answer = match (resource.group.as_str(), resource.plural.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            access(spec, user, requester, store)
        }
        ("authorization.k8s.io", "localsubjectaccessreviews" | "subjectaccessreviews") => {
            let groups = spec["groups"].as_array().into_iter().flatten();
            let mut user = User::new(text(spec, "user"));
            user.groups = groups
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let mut spec = spec.clone();
            if resource.namespaced {
                spec["resourceAttributes"]["namespace"] = json!(target.namespace);
            }
            access(&spec, &user, requester, store)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") if requester.has_roles() => {
            rules_of(store, user, text(spec, "namespace"))
        }
        // Which rules there are, only the authorizer knows.
        ("authorization.k8s.io", "selfsubjectrulesreviews") => json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        }),
        ("authentication.k8s.io", "selfsubjectreviews") => json!({ "userInfo": info(user) }),
        ("authentication.k8s.io", "tokenreviews") => {
            match requester.owner_of(text(spec, "token"), |it| registry.account_of(it)) {
                Some(owner) => json!({ "authenticated": true, "user": info(&owner) }),
                None => json!({ "user": {}, "error": "the token is not known" }),
            }
        }
        _ => return None,
    };
    Some(answer)
}

fn info(user: &User) -> Value {
    json!({ "username": user.name, "groups": user.groups })
}

/// Whether a user may do what a specification says.
fn access(spec: &Value, user: &User, requester: &Requester, store: &Store) -> Value {
    let resource = &spec["resourceAttributes"];
    let attributes = if resource.is_object() {
        Attributes {
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            ..Attributes::of(user, text(resource, "verb"))
        }
    } else {
        let path = &spec["nonResourceAttributes"];
        Attributes {
            path: text(path, "path"),
            ..Attributes::of(user, text(path, "verb"))
        }
    };
    let Ruling { allowed, reason } = requester.ruling(&attributes, store);
    if reason.is_empty() {
        json!({ "allowed": allowed })
    } else {
        json!({ "allowed": allowed, "reason": reason })
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

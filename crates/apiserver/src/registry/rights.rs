//! What a write needs beyond the request itself: the right to create, and to give away rights.

use serde_json::Value;

use super::{Registry, Target, WriteOptions, policy};
use crate::access::{Attributes, Requester, Why, lacking};
use crate::object::{self, elements};
use crate::status::{Status, Subject};
use crate::storage::Key;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Registry {
    /// Nobody gives away what they do not have: whoever writes a role has its rules, or may `escalate`; whoever writes
    /// a binding has the rules of its role, or may `bind` it.
    ///
    /// # Errors
    ///
    /// 403 with the rules that are not had.
    pub(super) fn check_grants(
        &self,
        target: &Target,
        new: &Value,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let (resource, requester) = (&target.resource, &options.requester);
        if resource.group != GROUP || !requester.has_roles() {
            return Ok(());
        }
        let same = |members: &[&str]| {
            old.is_some_and(|old| members.iter().all(|member| old[member] == new[member]))
        };
        let name = object::name(new);
        let rules: Vec<Value> = match resource.plural.as_str() {
            "roles" | "clusterroles" => {
                // Whoever could write what is aggregated could write everything.
                if same(&["rules", "aggregationRule"])
                    || self.may(requester, "escalate", target, &resource.plural, name)
                {
                    return Ok(());
                }
                if new["aggregationRule"].is_null() {
                    elements(new, "rules").cloned().collect()
                } else {
                    policy::everything()
                }
            }
            "rolebindings" | "clusterrolebindings" => {
                let role = &new["roleRef"];
                let role_name = role["name"].as_str().unwrap_or_default();
                let (plural, namespace) = if role["kind"] == "Role" {
                    ("roles", target.namespace.as_str())
                } else {
                    ("clusterroles", "")
                };
                if same(&["roleRef", "subjects"])
                    || self.may(requester, "bind", target, plural, role_name)
                {
                    return Ok(());
                }
                let key = Key::new(&format!("{GROUP}/{plural}").into(), namespace, role_name);
                let Some(role) = self.store.get(&key) else {
                    return Err(Status::not_found(Subject {
                        group: GROUP,
                        kind: plural,
                        name: role_name,
                    }));
                };
                elements(&role, "rules").cloned().collect()
            }
            _ => return Ok(()),
        };
        let missing = lacking(
            &self.store,
            &requester.user,
            &target.namespace,
            rules.iter(),
        );
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.iter().map(shown).collect();
        let why = format!(
            "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held:\n{}",
            requester.user.name,
            requester.user.groups,
            missing.join("\n")
        );
        Err(Status::forbidden(resource.subject(name), &why))
    }

    fn may(
        &self,
        requester: &Requester,
        verb: &str,
        target: &Target,
        resource: &str,
        name: &str,
    ) -> bool {
        let wanted = Attributes {
            group: GROUP,
            version: &target.resource.version,
            resource,
            namespace: &target.namespace,
            name,
            ..Attributes::of(&requester.user, verb)
        };
        requester.ruling(&wanted, &self.store).allowed
    }
}

/// Refuses to create an object to whom only its change is allowed, where a request does either.
///
/// # Errors
///
/// 403.
pub(super) fn may_create(
    registry: &Registry,
    target: &Target,
    options: &WriteOptions,
) -> Result<(), Status> {
    let requester = &options.requester;
    let wanted = Attributes {
        group: &target.resource.group,
        version: &target.resource.version,
        resource: &target.resource.plural,
        namespace: &target.namespace,
        name: &target.name,
        ..Attributes::of(&requester.user, "create")
    };
    requester.need(&wanted, |ruling| ruling(&registry.store))
}

/// Notes what a cluster with `OwnerReferencesPermissionEnforcement` wants: whoever lets an object block the deletion of
/// its owner may update the finalizers of the owner.
pub(super) fn note_owners(
    registry: &Registry,
    target: &Target,
    object: &Value,
    options: &WriteOptions,
) {
    let requester = &options.requester;
    if !requester.is_noted() {
        return;
    }
    for owner in object::owners(object) {
        if owner["blockOwnerDeletion"] != true {
            continue;
        }
        let text = |member: &str| owner[member].as_str().unwrap_or_default();
        let owners = registry.catalog.of_kind(text("apiVersion"), text("kind"));
        let Some(resource) = owners else {
            continue;
        };
        let namespace = if resource.namespaced {
            &*target.namespace
        } else {
            ""
        };
        let wanted = Attributes {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: "finalizers",
            namespace,
            name: text("name"),
            ..Attributes::of(&requester.user, "update")
        };
        requester.note(&wanted, Why::OwnerReference);
    }
}

/// A rule as a cluster's messages show it: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}`.
fn shown(rule: &Value) -> String {
    let members = [
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("resourceNames", "ResourceNames"),
        ("nonResourceURLs", "NonResourceURLs"),
        ("verbs", "Verbs"),
    ];
    let members = members
        .iter()
        .filter(|(member, _)| !rule[*member].is_null())
        .map(|(member, name)| format!("{name}:{}", rule[*member]));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

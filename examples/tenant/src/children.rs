//! The objects that a tenant should have. Pure functions of the tenant.
//!
//! Lists come in an order of their own, whatever the order in the spec is: the same members have the same bindings.

use crate::{Member, MemberKind, Role, Tenant};
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace, ResourceQuota},
    networking::v1::NetworkPolicy,
    rbac::v1::{Role as RbacRole, RoleBinding},
};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// In whose name the operator writes. What it once applied and applies no more is removed.
pub const MANAGER: &str = "tenant";

/// Selects the children of all tenants.
pub const SELECTOR: &str = "app.kubernetes.io/managed-by=tenant";

/// The label by which network policies know the namespaces of a tenant.
pub const TENANT: &str = "demo.homeostat.dev/tenant";

/// All roles that there are.
pub const ROLES: [Role; 2] = [Role::Editor, Role::Viewer];

/// The name of what there is one of in each namespace.
const ONE: &str = "tenant";

/// The names of the namespaces that a tenant should have, in order.
#[must_use]
pub fn namespace_names(tenant: &Tenant) -> BTreeSet<String> {
    let suffixes = tenant.spec.namespaces.iter();
    suffixes
        .map(|suffix| format!("{}-{suffix}", tenant.name_any()))
        .collect()
}

/// A namespace.
#[must_use]
pub fn namespace(tenant: &Tenant, name: &str) -> Namespace {
    let mut namespace: Namespace = child(tenant, None, name, json!({}));
    let labels = namespace.metadata.labels.get_or_insert_default();
    labels.insert(
        "pod-security.kubernetes.io/enforce".into(),
        "baseline".into(),
    );
    namespace
}

/// What all pods of a namespace may use.
#[must_use]
pub fn quota(tenant: &Tenant, namespace: &str) -> ResourceQuota {
    let quota = &tenant.spec.quota;
    let hard = json!({
        "limits.cpu": quota.cpu,
        "limits.memory": quota.memory,
        "pods": quota.pods.to_string(),
    });
    child(
        tenant,
        Some(namespace),
        ONE,
        json!({ "spec": { "hard": hard } }),
    )
}

/// What a container gets that asks for nothing. Without it a quota refuses such containers.
#[must_use]
pub fn limits(tenant: &Tenant, namespace: &str) -> LimitRange {
    let usual = json!({ "cpu": "250m", "memory": "256Mi" });
    let limit = json!({ "type": "Container", "default": usual, "defaultRequest": usual });
    child(
        tenant,
        Some(namespace),
        ONE,
        json!({ "spec": { "limits": [limit] } }),
    )
}

/// Who reaches the pods of a namespace: those of the same tenant, and of the namespaces in the spec.
#[must_use]
pub fn network(tenant: &Tenant, namespace: &str) -> NetworkPolicy {
    let own = json!({ "namespaceSelector": { "matchLabels": { TENANT: tenant.name_any() } } });
    let others: BTreeSet<&String> = tenant.spec.ingress_from.iter().collect();
    let others = others.into_iter().map(|name| {
        json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } } })
    });
    let from: Vec<Value> = std::iter::once(own).chain(others).collect();
    let spec = json!({
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{ "from": from }],
    });
    child(tenant, Some(namespace), ONE, json!({ "spec": spec }))
}

/// What the members with a role may do. None of the rules has to do with the fences, so nobody can lift them.
#[must_use]
pub fn role(tenant: &Tenant, namespace: &str, role: Role) -> RbacRole {
    let look = ["get", "list", "watch"];
    let work = [
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    let grant = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": verbs });
    let plain = [
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "pods/log",
        "services",
    ];
    let rules = match role {
        Role::Editor => json!([
            grant(&[""], &plain, &work),
            grant(&[""], &["secrets", "pods/exec", "pods/portforward"], &work),
            grant(&["apps", "batch"], &["*"], &work),
            grant(&["networking.k8s.io"], &["ingresses"], &work),
            grant(&[""], &["events", "limitranges", "resourcequotas"], &look),
        ]),
        Role::Viewer => json!([
            grant(&[""], &plain, &look),
            grant(&["apps", "batch"], &["*"], &look),
            grant(&["networking.k8s.io"], &["ingresses"], &look),
            grant(&[""], &["events", "limitranges", "resourcequotas"], &look),
        ]),
    };
    child(
        tenant,
        Some(namespace),
        role_name(role),
        json!({ "rules": rules }),
    )
}

/// Who has a role; none if nobody has.
#[must_use]
pub fn binding(tenant: &Tenant, namespace: &str, role: Role) -> Option<RoleBinding> {
    let members: BTreeSet<&Member> = tenant
        .spec
        .members
        .iter()
        .filter(|member| member.role == role)
        .collect();
    if members.is_empty() {
        return None;
    }
    let subjects = members.into_iter().map(|member| {
        let kind = match member.kind {
            MemberKind::User => "User",
            MemberKind::Group => "Group",
        };
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": member.name })
    });
    let content = json!({
        // This can never be changed, so it is not the role of the members that a binding follows.
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": role_name(role),
        },
        "subjects": subjects.collect::<Vec<_>>(),
    });
    Some(child(tenant, Some(namespace), role_name(role), content))
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Editor => "tenant-editor",
        Role::Viewer => "tenant-viewer",
    }
}

/// An object with name and labels. Who owns it is seen to when it is applied.
fn child<K: DeserializeOwned>(
    tenant: &Tenant,
    namespace: Option<&str>,
    name: &str,
    mut content: Value,
) -> K {
    content["metadata"] = json!({
        "name": name,
        "namespace": namespace,
        "labels": { "app.kubernetes.io/managed-by": MANAGER, TENANT: tenant.name_any() },
    });
    serde_json::from_value(content).expect("the manifests in this file fit, as its tests show")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant() -> Tenant {
        serde_saphyr::from_str(crate::SAMPLE).unwrap()
    }

    #[test]
    fn the_order_in_the_spec_makes_no_difference() {
        let (one, mut other) = (tenant(), tenant());
        other.spec.namespaces.reverse();
        other.spec.members.reverse();
        other.spec.ingress_from.reverse();
        assert_eq!(namespace_names(&one), namespace_names(&other));
        assert_eq!(network(&one, "n"), network(&other, "n"));
        for role in ROLES {
            assert_eq!(binding(&one, "n", role), binding(&other, "n", role));
        }
    }

    #[test]
    fn a_role_that_nobody_has_needs_no_binding() {
        let mut tenant = tenant();
        tenant
            .spec
            .members
            .retain(|member| member.role == Role::Editor);
        assert!(binding(&tenant, "n", Role::Editor).is_some());
        assert_eq!(binding(&tenant, "n", Role::Viewer), None);
    }

    /// Whoever can change the fences or the bindings is not fenced in.
    #[test]
    fn nobody_can_lift_the_fences() {
        for which in ROLES {
            for rule in role(&tenant(), "n", which).rules.unwrap() {
                let writes = rule
                    .verbs
                    .iter()
                    .any(|verb| !["get", "list", "watch"].contains(&&**verb));
                for resource in rule.resources.unwrap() {
                    let is_fence = [
                        "limitranges",
                        "resourcequotas",
                        "networkpolicies",
                        "rolebindings",
                        "roles",
                    ];
                    assert!(
                        !writes || !is_fence.contains(&&*resource),
                        "{which:?} may change {resource}"
                    );
                }
            }
        }
    }
}

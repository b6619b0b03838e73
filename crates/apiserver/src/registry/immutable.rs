//! What stays as it was when the object was created, kind by kind.

use serde_json::Value;

use crate::object;
use crate::resource::Resource;
use crate::status::Cause;

/// Where nothing may change, and what whoever tries is told.
enum Rule {
    /// The value at a path; the new one is shown.
    Invalid(&'static str, &'static str),
    /// The value at a path.
    Forbidden(&'static str, &'static str),
    /// All members of the value at a path but these.
    ForbiddenBut(&'static str, &'static [&'static str], &'static str),
}

use Rule::{Forbidden, ForbiddenBut, Invalid};

const FIXED: &str = "field is immutable";

const SELECTOR: &[Rule] = &[Invalid("spec.selector", FIXED)];

const ROLE: &[Rule] = &[Invalid("roleRef", "cannot change roleRef")];

/// The rules of each kind, by group and plural.
const RULES: [(&str, &str, &[Rule]); 19] = [
    ("apps", "controllerrevisions", &[Invalid("data", FIXED)]),
    ("apps", "daemonsets", SELECTOR),
    ("apps", "deployments", SELECTOR),
    ("apps", "replicasets", SELECTOR),
    (
        "apps",
        "statefulsets",
        &[ForbiddenBut(
            "spec",
            &[
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ],
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )],
    ),
    (
        "batch",
        "jobs",
        &[
            Invalid("spec.selector", FIXED),
            Invalid("spec.completionMode", FIXED),
            Invalid("spec.podFailurePolicy", FIXED),
            Invalid("spec.backoffLimitPerIndex", FIXED),
            Invalid("spec.managedBy", FIXED),
            Invalid("spec.successPolicy", FIXED),
        ],
    ),
    (
        "",
        "persistentvolumes",
        &[
            ForbiddenBut(
                "spec",
                &[
                    "accessModes",
                    "capacity",
                    "claimRef",
                    "mountOptions",
                    "nodeAffinity",
                    "persistentVolumeReclaimPolicy",
                    "storageClassName",
                    "volumeAttributesClassName",
                    "volumeMode",
                ],
                "spec.persistentvolumesource is immutable after creation",
            ),
            Invalid("spec.volumeMode", FIXED),
        ],
    ),
    (
        "discovery.k8s.io",
        "endpointslices",
        &[Invalid("addressType", FIXED)],
    ),
    (
        "networking.k8s.io",
        "ingressclasses",
        &[Invalid("spec.controller", FIXED)],
    ),
    (
        "networking.k8s.io",
        "ipaddresses",
        &[Invalid("spec.parentRef", FIXED)],
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings", ROLE),
    ("rbac.authorization.k8s.io", "rolebindings", ROLE),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        &[
            Forbidden("value", "may not be changed in an update."),
            Invalid("preemptionPolicy", FIXED),
        ],
    ),
    (
        "storage.k8s.io",
        "csidrivers",
        &[
            Invalid("spec.attachRequired", FIXED),
            Invalid("spec.volumeLifecycleModes", FIXED),
        ],
    ),
    (
        "storage.k8s.io",
        "csistoragecapacities",
        &[
            Invalid("nodeTopology", FIXED),
            Invalid("storageClassName", FIXED),
        ],
    ),
    (
        "storage.k8s.io",
        "storageclasses",
        &[
            Forbidden("parameters", "updates to parameters are forbidden."),
            Forbidden("provisioner", "updates to provisioner are forbidden."),
            Forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
            Invalid("volumeBindingMode", FIXED),
        ],
    ),
    (
        "storage.k8s.io",
        "volumeattachments",
        &[Invalid("spec", FIXED)],
    ),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        &[
            Forbidden("driverName", "updates to driverName are forbidden."),
            Forbidden("parameters", "updates to parameters are forbidden."),
        ],
    ),
    ("", "secrets", &[Invalid("type", FIXED)]),
];

/// The rules that an update breaks because it changes what stays.
pub(super) fn causes(resource: &Resource, new: &Value, old: &Value) -> Vec<Cause> {
    if resource.is_custom() {
        return Vec::new();
    }
    let own = RULES
        .iter()
        .find(|(group, plural, _)| resource.is(group, plural));
    let rules = own.map_or(&[][..], |(_, _, rules)| rules);
    rules
        .iter()
        .filter_map(|rule| rule.broken(new, old))
        .collect()
}

// === impl Rule ===

impl Rule {
    fn broken(&self, new: &Value, old: &Value) -> Option<Cause> {
        match *self {
            Invalid(path, why) => {
                let value = object::at(new, path);
                let differs = value != object::at(old, path);
                differs.then(|| Cause::invalid(path, value.unwrap_or(&Value::Null), why))
            }
            Forbidden(path, why) => {
                let differs = object::at(new, path) != object::at(old, path);
                differs.then(|| Cause::forbidden(path, why))
            }
            ForbiddenBut(path, others, why) => {
                let differs = differs_but(object::at(new, path), object::at(old, path), others);
                differs.then(|| Cause::forbidden(path, why))
            }
        }
    }
}

/// Whether two objects differ in other members than these.
pub(super) fn differs_but(new: Option<&Value>, old: Option<&Value>, but: &[&str]) -> bool {
    let (Some(new), Some(old)) = (
        new.and_then(Value::as_object),
        old.and_then(Value::as_object),
    ) else {
        return new != old;
    };
    let counts = |name: &&String| !but.contains(&name.as_str());
    new.keys().filter(counts).count() != old.keys().filter(counts).count()
        || new
            .iter()
            .filter(|(name, _)| counts(name))
            .any(|(name, value)| old.get(name) != Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::builtin_resources;

    #[test]
    fn every_rule_is_of_a_kind_that_exists() {
        for (group, plural, _) in &RULES {
            assert!(
                builtin_resources()
                    .iter()
                    .any(|resource| resource.is(group, plural)),
                "{plural}.{group}"
            );
        }
    }

    #[track_caller]
    fn check(plural: &str, old: &Value, new: &Value, fields: &[&str]) {
        let resource = builtin_resources()
            .iter()
            .find(|resource| resource.plural == plural)
            .expect("the kind is part of the data");
        let causes = causes(resource, new, old);
        let found: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(found, fields);
    }

    #[test]
    fn what_stays() {
        let selector = |app: &str| json!({ "spec": { "selector": { "app": app } } });
        check("deployments", &selector("a"), &selector("a"), &[]);
        check(
            "deployments",
            &selector("a"),
            &selector("b"),
            &["spec.selector"],
        );
        let set = |replicas: u32, service: &str| json!({ "spec": { "replicas": replicas, "serviceName": service } });
        check("statefulsets", &set(1, "a"), &set(2, "a"), &[]);
        check("statefulsets", &set(1, "a"), &set(2, "b"), &["spec"]);
        check(
            "statefulsets",
            &set(1, "a"),
            &json!({ "spec": { "replicas": 1 } }),
            &["spec"],
        );
        let class =
            |value: u32, policy: &str| json!({ "value": value, "preemptionPolicy": policy });
        check(
            "priorityclasses",
            &class(1, "Never"),
            &class(2, "Other"),
            &["value", "preemptionPolicy"],
        );
    }
}

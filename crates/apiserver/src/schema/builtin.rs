//! The built-in types, from the data in `data/k8s-schema`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Schema;

/// One file for each group and version, and one with the types that belong to none.
const FILES: [&str; 19] = [
    include_str!("../../data/k8s-schema/core.v1.json"),
    include_str!("../../data/k8s-schema/apps.v1.json"),
    include_str!("../../data/k8s-schema/admissionregistration.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/apiextensions.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/apiregistration.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/authentication.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/authorization.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/autoscaling.v2.json"),
    include_str!("../../data/k8s-schema/autoscaling.v1.json"),
    include_str!("../../data/k8s-schema/batch.v1.json"),
    include_str!("../../data/k8s-schema/coordination.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/discovery.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/events.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/networking.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/policy.v1.json"),
    include_str!("../../data/k8s-schema/rbac.authorization.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/scheduling.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/storage.k8s.io.v1.json"),
    include_str!("../../data/k8s-schema/shared.json"),
];

/// Members that are written as null where there is nothing, beside those that the recorded objects
/// show: no recorded object of these kinds was without, or the types are only parts of a status.
const NULL_WHEN_EMPTY: [(&str, &[&str]); 16] = [
    ("io.k8s.api.rbac.v1.Role", &["rules"]),
    ("io.k8s.api.rbac.v1.ClusterRole", &["rules"]),
    (
        "io.k8s.api.apps.v1.DaemonSetCondition",
        &["lastTransitionTime"],
    ),
    (
        "io.k8s.api.apps.v1.DeploymentCondition",
        &["lastTransitionTime", "lastUpdateTime"],
    ),
    (
        "io.k8s.api.apps.v1.ReplicaSetCondition",
        &["lastTransitionTime"],
    ),
    (
        "io.k8s.api.apps.v1.StatefulSetCondition",
        &["lastTransitionTime"],
    ),
    (
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition",
        &["lastTransitionTime"],
    ),
    ("io.k8s.api.discovery.v1.EndpointSlice", &["endpoints"]),
    (
        "io.k8s.api.batch.v1.JobCondition",
        &["lastProbeTime", "lastTransitionTime"],
    ),
    ("io.k8s.api.core.v1.ContainerStateRunning", &["startedAt"]),
    (
        "io.k8s.api.core.v1.ContainerStateTerminated",
        &["finishedAt", "startedAt"],
    ),
    (
        "io.k8s.api.core.v1.NamespaceCondition",
        &["lastTransitionTime"],
    ),
    (
        "io.k8s.api.core.v1.NodeCondition",
        &["lastHeartbeatTime", "lastTransitionTime"],
    ),
    (
        "io.k8s.api.core.v1.PersistentVolumeClaimCondition",
        &["lastProbeTime", "lastTransitionTime"],
    ),
    (
        "io.k8s.api.core.v1.PodCondition",
        &["lastProbeTime", "lastTransitionTime"],
    ),
    (
        "io.k8s.api.core.v1.ReplicationControllerCondition",
        &["lastTransitionTime"],
    ),
];

/// Texts that are written although they are empty, beside those that the data tells.
const WRITTEN_WHEN_EMPTY: [(&str, &str); 2] = [
    ("io.k8s.api.core.v1.HostPathVolumeSource", "type"),
    ("io.k8s.api.discovery.v1.EndpointPort", "name"),
];

/// References by a name that is left out when it is empty, though the data gives it a default.
const OPTIONAL_NAMES: [&str; 9] = [
    "io.k8s.api.core.v1.ConfigMapEnvSource",
    "io.k8s.api.core.v1.ConfigMapKeySelector",
    "io.k8s.api.core.v1.ConfigMapProjection",
    "io.k8s.api.core.v1.ConfigMapVolumeSource",
    "io.k8s.api.core.v1.LocalObjectReference",
    "io.k8s.api.core.v1.SecretEnvSource",
    "io.k8s.api.core.v1.SecretKeySelector",
    "io.k8s.api.core.v1.SecretProjection",
    "io.k8s.api.networking.v1.ServiceBackendPort",
];

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    resources: Vec<Box<RawValue>>,
    types: BTreeMap<String, Schema>,
}

/// What the facts about a resource say about its type.
#[derive(Deserialize)]
struct Shown {
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default)]
    lifecycle: Lifecycle,
}

#[derive(Deserialize, Default)]
struct Lifecycle {
    #[serde(default)]
    filled: Value,
}

/// The facts about the resources of one group and version, as the data states them.
pub(crate) struct BuiltinGroup {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<Box<RawValue>>,
}

#[derive(Default)]
struct Builtin {
    groups: Vec<BuiltinGroup>,
    types: BTreeMap<String, Schema>,
}

/// The facts about every built-in resource.
pub(crate) fn builtin_groups() -> &'static [BuiltinGroup] {
    &builtin().groups
}

/// A built-in type by its full name.
pub(crate) fn builtin_type(name: &str) -> Option<&'static Schema> {
    builtin().types.get(name)
}

/// Every built-in type by its full name.
pub(crate) fn builtin_types() -> &'static BTreeMap<String, Schema> {
    &builtin().types
}

/// Every built-in type by its full name, as the data states it.
pub(crate) fn builtin_types_raw() -> &'static BTreeMap<String, Value> {
    #[derive(Deserialize)]
    struct RawFile {
        #[serde(default)]
        package: String,
        types: BTreeMap<String, Value>,
    }
    static RAW: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    RAW.get_or_init(|| {
        FILES
            .iter()
            .map(|text| -> RawFile {
                serde_json::from_str(text)
                    .expect("a test reads every embedded file, and they cannot change afterwards")
            })
            .flat_map(|RawFile { package, types }| {
                types
                    .into_iter()
                    .map(move |(name, raw)| (full_name(&package, name), raw))
            })
            .collect()
    })
}

fn full_name(package: &str, name: String) -> String {
    if package.is_empty() {
        name
    } else {
        format!("{package}.{name}")
    }
}

fn builtin() -> &'static Builtin {
    static BUILTIN: OnceLock<Builtin> = OnceLock::new();
    BUILTIN.get_or_init(|| {
        let mut builtin = Builtin::default();
        for text in FILES {
            let file: File = serde_json::from_str(text)
                .expect("a test reads every embedded file, and they cannot change afterwards");
            for (name, mut schema) in file.types {
                mark_required_lists(&mut schema);
                let name = full_name(&file.package, name);
                builtin.types.insert(name, schema);
            }
            builtin.groups.push(BuiltinGroup {
                group: file.group,
                version: file.version,
                resources: file.resources,
            });
        }
        for (name, members) in NULL_WHEN_EMPTY {
            for member in members {
                builtin.mark(name, &serde_json::json!({ (*member): null }));
            }
        }
        for name in OPTIONAL_NAMES {
            let schema = builtin.types.get_mut(name);
            if let Some(field) = schema.and_then(|schema| schema.fields.get_mut("name")) {
                field.omitted_when_empty = true;
            }
        }
        for (name, member) in WRITTEN_WHEN_EMPTY {
            let schema = builtin.types.get_mut(name);
            if let Some(field) = schema.and_then(|schema| schema.fields.get_mut(member)) {
                field.default = Some(Value::from(""));
            }
        }
        let facts = builtin.groups.iter().flat_map(|group| &group.resources);
        let shown: Vec<Shown> = facts
            .map(|facts| {
                serde_json::from_str(facts.get())
                    .expect("a test reads every embedded file, and they cannot change afterwards")
            })
            .collect();
        for Shown {
            type_name,
            lifecycle,
        } in shown
        {
            builtin.mark(&type_name, &lifecycle.filled);
        }
        builtin
    })
}

// === impl Builtin ===

impl Builtin {
    /// Marks the members of a type that objects show as null.
    fn mark(&mut self, type_name: &str, shown: &Value) {
        for (name, value) in shown.as_object().into_iter().flatten() {
            let Some(schema) = self.types.get_mut(type_name) else {
                return;
            };
            let Some(field) = schema.fields.get_mut(name) else {
                continue;
            };
            field.null_when_empty |= value.is_null();
            if let Some(inner) = field.reference.clone() {
                self.mark(&inner, value);
            }
        }
    }
}

/// A list that must be there is written even if it is empty.
fn mark_required_lists(schema: &mut Schema) {
    for name in &schema.required {
        if let Some(field) = schema.fields.get_mut(name) {
            field.null_when_empty |= field.items.is_some() || field.values.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_in_the_data_leads_somewhere() {
        fn check(schema: &Schema) {
            if let Some(name) = &schema.reference {
                assert!(builtin_type(name).is_some(), "{name}");
            }
            let fields = schema.fields.values();
            let inner = schema
                .items
                .as_deref()
                .into_iter()
                .chain(schema.values.as_deref());
            fields.chain(inner).for_each(check);
        }
        builtin().types.values().for_each(check);
    }
}

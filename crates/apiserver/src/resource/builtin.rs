//! The built-in resources, from the data in `data/k8s-schema`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::{Column, Lifecycle, Resource, Subresource};
use crate::schema::Schema;

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

/// Types of two groups that are one thing in storage: the second is stored where the first is.
const STORED_AS: [(&str, &str); 1] = [("events.k8s.io/events", "/events")];

/// Members that are written as null where there is nothing, beside those that the recorded objects
/// show: no recorded object of these kinds was without, or the types are only parts of a status.
const NULL_WHEN_EMPTY: [(&str, &[&str]); 15] = [
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

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    resources: Vec<Facts>,
    types: BTreeMap<String, Schema>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    name: String,
    singular_name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default)]
    subresources: Vec<Subresource>,
    #[serde(default)]
    field_selectors: Vec<String>,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    lifecycle: Lifecycle,
}

struct Builtin {
    resources: Vec<Arc<Resource>>,
    types: BTreeMap<String, Schema>,
}

/// Every built-in resource, those of one group and version together.
pub(crate) fn builtin_resources() -> &'static [Arc<Resource>] {
    &builtin().resources
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
        let mut builtin = Builtin {
            resources: Vec::new(),
            types: BTreeMap::new(),
        };
        for text in FILES {
            let file: File = serde_json::from_str(text)
                .expect("a test reads every embedded file, and they cannot change afterwards");
            let File {
                group,
                version,
                package,
                resources,
                types,
            } = file;
            for (name, mut schema) in types {
                mark_required_lists(&mut schema);
                builtin.types.insert(full_name(&package, name), schema);
            }
            for facts in resources {
                builtin
                    .resources
                    .push(Arc::new(resource(&group, &version, facts)));
            }
        }
        for (name, members) in NULL_WHEN_EMPTY {
            for member in members {
                builtin.mark(name, &serde_json::json!({ (*member): null }));
            }
        }
        for (name, member) in WRITTEN_WHEN_EMPTY {
            let schema = builtin.types.get_mut(name);
            if let Some(field) = schema.and_then(|schema| schema.fields.get_mut(member)) {
                field.default = Some(Value::from(""));
            }
        }
        let filled: Vec<(String, Value)> = builtin
            .resources
            .iter()
            .filter_map(|resource| {
                Some((
                    resource.schema.reference.clone()?,
                    resource.lifecycle.filled.clone(),
                ))
            })
            .collect();
        for (name, filled) in filled {
            builtin.mark(&name, &filled);
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

fn resource(group: &str, version: &str, facts: Facts) -> Resource {
    let own = format!("{group}/{}", facts.name);
    let stored = STORED_AS
        .iter()
        .find(|(name, _)| *name == own)
        .map_or(own.as_str(), |(_, place)| place);
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        storage: Arc::from(stored),
        list_kind: format!("{}List", facts.kind),
        plural: facts.name,
        singular: facts.singular_name,
        kind: facts.kind,
        namespaced: facts.namespaced,
        verbs: facts.verbs,
        short_names: facts.short_names,
        categories: facts.categories,
        subresources: facts.subresources,
        field_selectors: facts.field_selectors,
        columns: facts.columns,
        lifecycle: facts.lifecycle,
        schema: Schema::reference_to(facts.type_name),
        custom: None,
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
        for resource in builtin_resources() {
            check(&resource.schema);
        }
        assert!(
            builtin_resources()
                .iter()
                .any(|resource| resource.is("apps", "deployments"))
        );
    }
}

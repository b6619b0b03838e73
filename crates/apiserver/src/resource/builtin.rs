//! The built-in resources, from the data in `data/k8s-schema`.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::{Column, Lazily, Lifecycle, Resource, Subresource};
use crate::schema::{Schema, builtin_groups};

/// Types of two groups that are one thing in storage: the second is stored where the first is.
const STORED_AS: [(&str, &str); 1] = [("events.k8s.io/events", "/events")];

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

/// Every built-in resource, those of one group and version together.
pub(crate) fn builtin_resources() -> &'static [Arc<Resource>] {
    static RESOURCES: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
    RESOURCES.get_or_init(|| {
        let mut resources = Vec::new();
        for group in builtin_groups() {
            for facts in &group.resources {
                let facts = serde_json::from_str(facts.get())
                    .expect("a test reads every embedded file, and they cannot change afterwards");
                resources.push(Arc::new(resource(&group.group, &group.version, facts)));
            }
        }
        resources
    })
}

/// Whether a kind is built in in a version of a group.
pub(crate) fn is_registered(group: &str, version: &str, kind: &str) -> bool {
    builtin_resources().iter().any(|resource| {
        resource.group == group && resource.version == version && resource.kind == kind
    })
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
        schema: Lazily::new(Box::new(move || Schema::reference_to(facts.type_name))),
        custom: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin_type;

    #[test]
    fn every_resource_has_a_type() {
        for resource in builtin_resources() {
            let name = resource.schema.reference.as_deref().unwrap_or_default();
            assert!(
                builtin_type(name).is_some(),
                "{name} of {}",
                resource.plural
            );
        }
        assert!(
            builtin_resources()
                .iter()
                .any(|resource| resource.is("apps", "deployments"))
        );
    }
}

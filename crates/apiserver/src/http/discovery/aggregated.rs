//! Everything that is served in one document.

use serde_json::{Value, json};

use super::{groups_of, versions_of};
use crate::http::media::{Range, ranges};
use crate::resource::{Catalog, Resource, Subresource};

/// The media type of such a document.
pub(in crate::http) const CONTENT_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a client prefers such a document to the plain one.
pub(in crate::http) fn is_wanted(accept: &str) -> bool {
    let is_aggregated = |range: &Range<'_>| {
        (range.kind, range.group, range.version)
            == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
    };
    let known = ranges(accept)
        .into_iter()
        .find(|range| range.media().is_some() && (range.kind.is_empty() || is_aggregated(range)));
    known.is_some_and(|range| is_aggregated(&range))
}

/// `/api`
pub(in crate::http) fn core(catalog: &Catalog) -> Value {
    list(&[group(catalog, "")])
}

/// `/apis`
pub(in crate::http) fn groups(catalog: &Catalog) -> Value {
    let names = groups_of(catalog).into_iter();
    let groups: Vec<Value> = names.map(|name| group(catalog, name)).collect();
    list(&groups)
}

fn list(items: &[Value]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn group(catalog: &Catalog, name: &str) -> Value {
    let versions: Vec<Value> = versions_of(catalog, name)
        .into_iter()
        .map(|version| {
            let resources: Vec<Value> = catalog
                .served(name, version)
                .into_iter()
                .map(resource)
                .collect();
            json!({ "version": version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({ "name": name })
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    for (member, names) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !names.is_empty() {
            entry[member] = json!(names);
        }
    }
    if !resource.subresources.is_empty() {
        let subresources = resource.subresources.iter();
        let subresources: Vec<Value> = subresources.map(|one| subresource(resource, one)).collect();
        entry["subresources"] = json!(subresources);
    }
    entry
}

fn subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let kind = match (&subresource.group, &subresource.version) {
        (None, None) => response_kind(resource, &subresource.kind),
        (group, version) => json!({
            "group": group.as_deref().unwrap_or_default(),
            "version": version.as_deref().unwrap_or_default(),
            "kind": subresource.kind,
        }),
    };
    json!({
        "subresource": subresource.name,
        "responseKind": kind,
        "verbs": subresource.verbs,
    })
}

/// The kind of what is answered. Built-in ones leave out what the document says anyway.
fn response_kind(resource: &Resource, kind: &str) -> Value {
    let (group, version) = if resource.is_custom() {
        (resource.group.as_str(), resource.version.as_str())
    } else {
        ("", "")
    };
    json!({ "group": group, "version": version, "kind": kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_form_decides() {
        assert!(is_wanted(CONTENT_TYPE));
        assert!(is_wanted(&format!("{CONTENT_TYPE},application/json")));
        assert!(is_wanted(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer"
        ));
        assert!(!is_wanted(&format!("application/json,{CONTENT_TYPE}")));
        assert!(!is_wanted(
            "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"
        ));
        assert!(!is_wanted(""));
        assert!(!is_wanted("application/json, */*"));
    }
}

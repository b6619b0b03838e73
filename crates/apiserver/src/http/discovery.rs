//! What the server serves, for clients that ask.

use serde_json::{Value, json};

use crate::resource::{Catalog, Resource, api_version};

/// The version that the recorded data is of.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.2+homeostat",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// `/api`
pub(super) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "localhost" }],
    })
}

/// `/apis`
pub(super) fn groups(catalog: &Catalog) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for resource in catalog.all() {
        if !resource.group.is_empty() && !names.contains(&resource.group.as_str()) {
            names.push(&resource.group);
        }
    }
    let groups: Vec<Value> = names
        .iter()
        .filter_map(|name| group_members(catalog, name))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/<group>`
pub(super) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let mut group = group_members(catalog, name)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn group_members(catalog: &Catalog, name: &str) -> Option<Value> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in catalog.all().filter(|resource| resource.group == name) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    versions.sort_by_key(|version| priority(version));
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({ "groupVersion": api_version(name, version), "version": version }))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({ "name": name, "versions": versions, "preferredVersion": preferred }))
}

/// Sorts versions as the API does: `v2`, `v1`, `v1beta1`, `v1alpha1`, then what is no version.
fn priority(version: &str) -> (u8, i64, i64, String) {
    let number = |text: &str| text.parse::<i64>().ok();
    let parsed = version.strip_prefix('v').and_then(|rest| {
        if let Some(major) = number(rest) {
            return Some((0, major, 0));
        }
        let (stage, name) = if rest.contains("beta") {
            (1, "beta")
        } else {
            (2, "alpha")
        };
        let (major, minor) = rest.split_once(name)?;
        Some((stage, number(major)?, number(minor)?))
    });
    match parsed {
        Some((stage, major, minor)) => (stage, -major, -minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(super) fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut served: Vec<&Resource> = catalog
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(AsRef::as_ref)
        .collect();
    if served.is_empty() {
        return None;
    }
    served.sort_by(|a, b| a.plural.cmp(&b.plural));
    let entries: Vec<Value> = served.into_iter().flat_map(entries).collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version(group, version),
        "resources": entries,
    }))
}

/// The entry of a resource and those of its subresources.
fn entries(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    for (member, names) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !names.is_empty() {
            own[member] = json!(names);
        }
    }
    let mut entries = vec![own];
    for subresource in &resource.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        });
        for (member, text) in [
            ("group", &subresource.group),
            ("version", &subresource.version),
        ] {
            if let Some(text) = text {
                entry[member] = json!(text);
            }
        }
        entries.push(entry);
    }
    entries
}

//! What the server serves, for clients that ask.

pub(super) mod aggregated;

use serde_json::{Value, json};

use super::media::{MEDIA_TYPES, ranges};
use super::{Answer, Route, openapi};
use crate::fingerprint::fingerprint;
use crate::resource::{Catalog, Resource, api_version, version_priority};
use crate::status::Status;

/// Answers a request about what is served.
pub(super) fn answer(catalog: &Catalog, route: &Route, accept: &str) -> Answer {
    if ranges(accept).iter().all(|range| range.media().is_none()) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}");
        return Status::not_acceptable(message).with_empty_details().into();
    }
    let aggregated = aggregated::is_wanted(accept);
    let whole = |content_type, body| Some(Answer::Document { content_type, body });
    let found = match route {
        Route::CoreVersions if aggregated => {
            whole(aggregated::CONTENT_TYPE, aggregated::core(catalog))
        }
        Route::Groups if aggregated => whole(aggregated::CONTENT_TYPE, aggregated::groups(catalog)),
        Route::CoreVersions => Some(Answer::ok(core_versions())),
        Route::Groups => Some(Answer::ok(groups(catalog))),
        Route::Group(name) => group(catalog, name).map(Answer::ok),
        Route::Resources { group, version } => resources(catalog, group, version).map(Answer::ok),
        // This is how a real server labels its index.
        Route::Descriptions => whole("text/plain; charset=utf-8", openapi::index(catalog)),
        Route::Description { group, version } => openapi::document(catalog, group, version)
            .and_then(|document| whole("application/json", document)),
        Route::Version
        | Route::Health
        | Route::WholeDescription
        | Route::Resource(_)
        | Route::Debug(_)
        | Route::Unknown => None,
    };
    found.unwrap_or_else(|| {
        // Of a group that is built in, every version is the server's to know.
        if let Route::Resources { group, .. } = route
            && (group.is_empty() || Catalog::is_builtin_group(group))
        {
            Status::no_such_resource().into()
        } else {
            Answer::page_not_found()
        }
    })
}

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
fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "localhost" }],
    })
}

/// `/apis`
fn groups(catalog: &Catalog) -> Value {
    let groups: Vec<Value> = groups_of(catalog)
        .iter()
        .filter_map(|name| group_members(catalog, name))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// The names of all groups but the core group.
fn groups_of(catalog: &Catalog) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for resource in catalog.all() {
        if !resource.group.is_empty() && !names.contains(&resource.group.as_str()) {
            names.push(&resource.group);
        }
    }
    names
}

/// `/apis/<group>`
fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let mut group = group_members(catalog, name)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn group_members(catalog: &Catalog, name: &str) -> Option<Value> {
    let versions: Vec<Value> = versions_of(catalog, name)
        .iter()
        .map(|version| json!({ "groupVersion": api_version(name, version), "version": version }))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({ "name": name, "versions": versions, "preferredVersion": preferred }))
}

/// The versions of a group, the preferred one first.
fn versions_of<'a>(catalog: &'a Catalog, group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in catalog.all().filter(|resource| resource.group == group) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    versions.sort_by_key(|version| version_priority(version));
    versions
}

/// `/api/v1`, `/apis/<group>/<version>`
fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let served = catalog.served(group, version);
    if served.is_empty() {
        return None;
    }
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
    // What can be read is stored, under a form that this identifies.
    if resource.verbs.iter().any(|verb| verb == "get") {
        let stored = [&resource.group, &resource.version, &resource.kind];
        own["storageVersionHash"] = json!(fingerprint(stored.map(String::as_str)));
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

//! The forms of names, labels and annotations.

use std::fmt;

use serde_json::{Value, json};

use super::forms;
use crate::resource::Resource;
use crate::status::Cause;

/// All keys and values of an object's annotations together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Kinds whose names are one label.
const LABEL_NAMES: [(&str, &str); 3] = [
    ("", "namespaces"),
    ("", "services"),
    ("apps", "statefulsets"),
];

/// Groups whose objects take finalizers without a domain, as custom objects do.
const ANY_FINALIZERS: [&str; 4] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
];

/// Checks the name of a new object, and what it was generated from.
pub(super) fn name_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    let base = text("generateName");
    // What a service is named after is not looked at.
    if !base.is_empty() && !resource.is("", "services") {
        // The suffix ends what the base may not end with.
        let masked = match base.strip_suffix('-') {
            Some(kept) if !kept.is_empty() => format!("{kept}a"),
            Some(_) | None => base.to_owned(),
        };
        let found = name_problems(resource, &masked);
        causes.extend(found.iter().map(|why| {
            let field = "metadata.generateName";
            Cause::invalid(field, &json!(base), why)
        }));
    }
    let name = text("name");
    let found = name_problems(resource, name);
    causes.extend(
        found
            .iter()
            .map(|why| Cause::invalid("metadata.name", &json!(name), why)),
    );
    causes
}

fn name_problems(resource: &Resource, name: &str) -> Vec<&'static str> {
    let is_label = LABEL_NAMES
        .iter()
        .any(|(group, plural)| resource.is(group, plural));
    let is_segment = resource.group == "rbac.authorization.k8s.io" || resource.plural == "events";
    if is_segment && !resource.is_custom() {
        path_segment_problems(name)
    } else if is_label {
        forms::label(name)
    } else {
        forms::subdomain(name)
    }
}

/// A name that can stand in a path.
fn path_segment_problems(name: &str) -> Vec<&'static str> {
    match name {
        "." => return vec!["may not be '.'"],
        ".." => return vec!["may not be '..'"],
        _ => {}
    }
    let parts = [("/", "may not contain '/'"), ("%", "may not contain '%'")];
    let found = parts.iter().filter(|(part, _)| name.contains(part));
    found.map(|(_, why)| *why).collect()
}

/// Checks the labels of an object.
pub(super) fn label_causes(object: &Value) -> Vec<Cause> {
    label_map_causes("metadata.labels", &object["metadata"]["labels"])
}

/// Checks labels anywhere.
pub(super) fn label_map_causes(field: impl fmt::Display, labels: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        causes.extend(key_causes(&field, key, key));
        let problems = forms::label_value(value.as_str().unwrap_or_default());
        let cause = |why: &&str| Cause::invalid(field.to_string(), value, why);
        causes.extend(problems.iter().map(cause));
    }
    causes
}

/// Checks the annotations of an object.
pub(super) fn annotation_causes(object: &Value) -> Vec<Cause> {
    annotation_map_causes("metadata.annotations", &object["metadata"]["annotations"])
}

/// Checks annotations anywhere.
pub(super) fn annotation_map_causes(field: impl fmt::Display, annotations: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        causes.extend(key_causes(&field, &key.to_lowercase(), key));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATION_BYTES {
        causes.push(Cause::too_long(
            field.to_string(),
            MAX_ANNOTATION_BYTES as u64,
        ));
    }
    causes
}

/// Checks the names of the finalizers of a new object.
pub(super) fn finalizer_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let field = "metadata.finalizers";
    let mut causes = Vec::new();
    for name in crate::object::finalizers(object) {
        causes.extend(key_causes(field, name, name));
    }
    let has = |wanted: &str| crate::object::finalizers(object).any(|one| one == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid(
            field,
            &object["metadata"]["finalizers"],
            why,
        ));
    }
    causes.extend(unqualified_finalizer_causes(resource, object));
    causes
}

/// A built-in kind takes only finalizers that it knows or that have a domain.
pub(super) fn unqualified_finalizer_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    if resource.is_custom()
        || resource.plural == "events"
        || ANY_FINALIZERS.contains(&resource.group.as_str())
    {
        return Vec::new();
    }
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    let finalizers = crate::object::finalizers(object).enumerate();
    let unknown = finalizers.filter(|(_, name)| !name.contains('/') && !standard.contains(name));
    unknown
        .map(|(index, name)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            Cause::invalid(field, &json!(name), why)
        })
        .collect()
}

/// What to warn about finalizers that are added to a custom object.
pub(super) fn finalizer_warnings(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    if !resource.is_custom() {
        return Vec::new();
    }
    let had = |name: &str| {
        let old = old.into_iter().flat_map(crate::object::finalizers);
        old.into_iter().any(|one| one == name)
    };
    let mut added: Vec<&str> = crate::object::finalizers(object)
        .filter(|name| !name.contains('/') && !had(name))
        .filter(|name| !["orphan", "foregroundDeletion"].contains(name))
        .collect();
    added.sort_unstable();
    added.dedup();
    let warning = |name: &&str| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid \
             accidental conflicts with other finalizer writers"
        )
    };
    added.iter().map(warning).collect()
}

/// Checks a qualified name: a domain in front of a slash may be missing.
fn key_causes(field: impl fmt::Display, key: &str, shown: &str) -> Vec<Cause> {
    forms::qualified_name(key)
        .iter()
        .map(|why| Cause::invalid(field.to_string(), &json!(shown), why))
        .collect()
}

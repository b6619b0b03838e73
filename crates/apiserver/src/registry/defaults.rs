//! Defaults of built-in kinds: what the recorded server added to the smallest object of each kind,
//! where the object has not said otherwise, and what its types add wherever they occur.

mod kinds;
mod types;

use serde_json::{Map, Value, json};

use self::types::fill_types;
use crate::object;
use crate::resource::Resource;

/// Members that were added to the smallest object and are no default of the kind, at any depth: they
/// are allocated, put by admission, depend on other members, or come with a member that the smallest
/// object had.
const NOT_DEFAULTS: [(&str, &str, &[&str]); 13] = [
    (
        "",
        "services",
        &[
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
        ],
    ),
    (
        "",
        "pods",
        &["tolerations", "priority", "preemptionPolicy", "qosClass"],
    ),
    ("", "nodes", &["taints"]),
    ("", "persistentvolumeclaims", &["finalizers"]),
    ("", "persistentvolumes", &["finalizers", "hostPath"]),
    ("", "replicationcontrollers", &["labels"]),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["service"],
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        &["service"],
    ),
    ("apiregistration.k8s.io", "apiservices", &["service"]),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        &["targetCPUUtilizationPercentage"],
    ),
    (
        "batch",
        "jobs",
        &["backoffLimit", "completions", "podReplacementPolicy"],
    ),
    ("networking.k8s.io", "networkpolicies", &["policyTypes"]),
    ("storage.k8s.io", "volumeattributesclasses", &["finalizers"]),
];

/// What admission adds to a new object, by the member that it is in.
const PUT_BY_ADMISSION: [(&str, &str, &str, &[&str]); 5] = [
    (
        "",
        "pods",
        "spec",
        &["tolerations", "priority", "preemptionPolicy"],
    ),
    ("", "nodes", "spec", &["taints"]),
    ("", "persistentvolumeclaims", "metadata", &["finalizers"]),
    ("", "persistentvolumes", "metadata", &["finalizers"]),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "metadata",
        &["finalizers"],
    ),
];

/// Lists that are a default as a whole: their elements say nothing about the elements of others.
const WHOLE_LISTS: [&str; 1] = ["metrics"];

/// Fills in the defaults of a built-in kind.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if resource.is_custom() {
        return;
    }
    if resource.is("", "namespaces") {
        label_namespace(object);
        return;
    }
    if resource.is_definition() {
        complete_definition(object);
    }
    kinds::complete(resource, object);
    if resource.is("batch", "jobs") {
        label_as_pods(object);
    }
    fill_types(&resource.schema, object);
    if let Some(filled) = resource.lifecycle.filled.as_object()
        && let Some(members) = object.as_object_mut()
    {
        fill_members(filled, members, not_defaults(resource));
    }
}

/// Fills in the names that a definition may leave out.
pub(super) fn complete_definition(definition: &mut Value) {
    let names = &mut definition["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].as_str().is_none_or(str::is_empty) {
        names["singular"] = json!(kind.to_lowercase());
    }
    if names["listKind"].as_str().is_none_or(str::is_empty) {
        names["listKind"] = json!(format!("{kind}List"));
    }
}

/// A job without labels has those of its pods.
fn label_as_pods(job: &mut Value) {
    let labels = job["spec"]["template"]["metadata"]["labels"].clone();
    let is_empty = |labels: &Value| labels.as_object().is_none_or(Map::is_empty);
    if is_empty(&job["metadata"]["labels"]) && !is_empty(&labels) {
        object::metadata_mut(job).insert("labels".to_owned(), labels);
    }
}

/// Fills in what admission adds to a new object.
pub(super) fn fill_by_admission(resource: &Resource, object: &mut Value) {
    let own = PUT_BY_ADMISSION
        .iter()
        .filter(|(group, plural, ..)| resource.is(group, plural));
    for (_, _, parent, members) in own {
        let filled = &resource.lifecycle.filled[*parent];
        let own = object::member_mut(object, parent);
        for member in *members {
            let added = &filled[*member];
            match own.get_mut(*member) {
                Some(present) => add_elements(present, added),
                None if added.is_null() => {}
                None => {
                    own.insert((*member).to_owned(), added.clone());
                }
            }
        }
    }
}

/// Adds the elements to a list that it does not have, by their key.
fn add_elements(present: &mut Value, added: &Value) {
    let (Some(present), Some(added)) = (present.as_array_mut(), added.as_array()) else {
        return;
    };
    for element in added {
        let has = present.iter().any(|one| match element.get("key") {
            // A toleration without a key tolerates everything.
            Some(key) => one["key"] == *key || one["key"].is_null(),
            None => one == element,
        });
        if !has {
            present.push(element.clone());
        }
    }
}

fn not_defaults(resource: &Resource) -> &'static [&'static str] {
    NOT_DEFAULTS
        .iter()
        .find(|(group, plural, _)| resource.is(group, plural))
        .map_or(&[], |(_, _, members)| members)
}

/// Every namespace can be selected by its name.
pub(super) fn label_namespace(namespace: &mut Value) {
    let name = json!(object::name(namespace));
    if name != "" {
        object::metadata_mut(namespace);
        object::member_mut(&mut namespace["metadata"], "labels")
            .insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Fills in the status of a new object.
pub(super) fn fill_status(resource: &Resource, object: &mut Value) {
    let status = &resource.lifecycle.filled["status"];
    if let Some(members) = status.as_object()
        && !resource.is("", "namespaces")
    {
        fill_members(
            members,
            object::member_mut(object, "status"),
            not_defaults(resource),
        );
    }
}

fn fill_members(filled: &Map<String, Value>, members: &mut Map<String, Value>, not: &[&str]) {
    // Where a member `type` chooses, what belongs to another type is no default.
    let other_type = match (filled.get("type"), members.get("type")) {
        (Some(default), Some(chosen)) => chosen != default,
        (Some(_) | None, _) => false,
    };
    for (name, default) in filled {
        if not.contains(&name.as_str()) || (other_type && default.is_object()) {
            continue;
        }
        let as_whole = WHOLE_LISTS.contains(&name.as_str());
        match members.get_mut(name) {
            Some(_) if as_whole => {}
            Some(value) => fill_value(default, value, not),
            None if as_whole => {
                members.insert(name.clone(), default.clone());
            }
            None => {
                if let Some(default) = whole(default, not) {
                    members.insert(name.clone(), default);
                }
            }
        }
    }
}

fn fill_value(default: &Value, value: &mut Value, not: &[&str]) {
    if let (Some(filled), Some(members)) = (default.as_object(), value.as_object_mut()) {
        fill_members(filled, members, not);
    } else if let (Some(templates), Some(elements)) = (default.as_array(), value.as_array_mut())
        && let Some(template) = templates.iter().find(|template| template.is_object())
    {
        for element in elements {
            fill_value(template, element, not);
        }
    }
}

/// A default as a value of its own: without allocated values, and without lists of which only the
/// elements' defaults are known.
fn whole(default: &Value, not: &[&str]) -> Option<Value> {
    if has_placeholder(default) {
        return None;
    }
    if let Some(members) = default.as_object() {
        let members: Map<String, Value> = members
            .iter()
            .filter(|(name, _)| !not.contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name.clone(), whole(value, not)?)))
            .collect();
        let was_empty = default.as_object().is_some_and(Map::is_empty);
        return (was_empty || !members.is_empty()).then_some(Value::Object(members));
    }
    let partial = |list: &Vec<Value>| list.iter().any(|one| one.is_object() || one.is_null());
    (!default.as_array().is_some_and(partial)).then(|| default.clone())
}

fn has_placeholder(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}

//! Defaults of built-in kinds: what the recorded server added to the smallest object of each kind,
//! where the object has not said otherwise.

use serde_json::{Map, Value, json};

use crate::object;
use crate::resource::Resource;
use crate::schema::Schema;

/// Members of `filled` that are not defaults of a kind: they are allocated, or put by admission, when
/// it is settled who owns what.
const LATE: [(&str, &[&str]); 2] = [
    (
        "services",
        &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
    ),
    ("pods", &["tolerations", "priority", "preemptionPolicy"]),
];

/// Defaults of types that no schema states.
const TYPE_DEFAULTS: [(&str, &[(&str, &str)]); 14] = [
    (
        "core.v1.Container",
        &[
            ("terminationMessagePath", "/dev/termination-log"),
            ("terminationMessagePolicy", "File"),
        ],
    ),
    (
        "core.v1.EphemeralContainer",
        &[
            ("terminationMessagePath", "/dev/termination-log"),
            ("terminationMessagePolicy", "File"),
        ],
    ),
    (
        "core.v1.Probe",
        &[
            ("timeoutSeconds", "1"),
            ("periodSeconds", "10"),
            ("successThreshold", "1"),
            ("failureThreshold", "3"),
        ],
    ),
    (
        "core.v1.HTTPGetAction",
        &[("path", "/"), ("scheme", "HTTP")],
    ),
    ("core.v1.ObjectFieldSelector", &[("apiVersion", "v1")]),
    ("core.v1.SecretVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ConfigMapVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.DownwardAPIVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ProjectedVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.HostPathVolumeSource", &[("type", "")]),
    ("core.v1.EndpointPort", &[("protocol", "TCP")]),
    (
        "discovery.v1.EndpointPort",
        &[("name", ""), ("protocol", "TCP")],
    ),
    ("networking.v1.NetworkPolicyPort", &[("protocol", "TCP")]),
    (
        "rbac.v1.RoleRef",
        &[("apiGroup", "rbac.authorization.k8s.io")],
    ),
];

/// Fills in the defaults of a built-in kind.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if resource.is_custom() {
        return;
    }
    if resource.is("", "namespaces") {
        label_namespace(object);
        return;
    }
    if resource.is("", "secrets") {
        fold_string_data(object);
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        super::definitions::complete(object);
    }
    depend_on_others(resource, object);
    fill_types(&resource.schema, object);
    if resource.is("", "pods") {
        for container in object["spec"]["containers"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            request_limits(&mut container["resources"]);
        }
    }
    if let Some(filled) = resource.lifecycle.filled.as_object()
        && let Some(members) = object.as_object_mut()
    {
        fill_members(filled, members, late(resource));
    }
}

/// Fills in what is put by admission.
pub(super) fn fill_late(resource: &Resource, object: &mut Value) {
    for member in late(resource) {
        let value = &resource.lifecycle.filled["spec"][*member];
        let spec = object::member_mut(object, "spec");
        if !spec.contains_key(*member) && !has_placeholder(value) && !value.is_null() {
            spec.insert((*member).to_owned(), value.clone());
        }
    }
}

fn late(resource: &Resource) -> &'static [&'static str] {
    LATE.iter()
        .find(|(plural, _)| resource.is("", plural))
        .map_or(&[], |(_, members)| members)
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
        fill_members(members, object::member_mut(object, "status"), &[]);
    }
}

fn fill_members(filled: &Map<String, Value>, members: &mut Map<String, Value>, late: &[&str]) {
    // Where a member `type` chooses, what belongs to another type is no default.
    let other_type = match (filled.get("type"), members.get("type")) {
        (Some(default), Some(chosen)) => chosen != default,
        (Some(_) | None, _) => false,
    };
    for (name, default) in filled {
        if late.contains(&name.as_str()) || (other_type && default.is_object()) {
            continue;
        }
        match members.get_mut(name) {
            Some(value) => fill_value(default, value, late),
            None => {
                if let Some(default) = whole(default) {
                    members.insert(name.clone(), default);
                }
            }
        }
    }
}

fn fill_value(default: &Value, value: &mut Value, late: &[&str]) {
    if let (Some(filled), Some(members)) = (default.as_object(), value.as_object_mut()) {
        fill_members(filled, members, late);
    } else if let (Some(templates), Some(elements)) = (default.as_array(), value.as_array_mut())
        && let Some(template) = templates.iter().find(|template| template.is_object())
    {
        for element in elements {
            fill_value(template, element, late);
        }
    }
}

/// A default as a value of its own: without allocated values, and without lists of which only the
/// elements' defaults are known.
fn whole(default: &Value) -> Option<Value> {
    if has_placeholder(default) {
        return None;
    }
    if let Some(members) = default.as_object() {
        let members: Map<String, Value> = members
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), whole(value)?)))
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

/// Defaults that depend on other members of the object.
fn depend_on_others(resource: &Resource, object: &mut Value) {
    if resource.is("", "services")
        && let Some(ports) = object["spec"]["ports"].as_array_mut()
    {
        for port in ports {
            if port["targetPort"].is_null() {
                port["targetPort"] = port["port"].clone();
            }
        }
    }
}

/// Defaults of types, wherever they occur: those that the schema states, and those that only the
/// server's code knows.
fn fill_types(schema: &Schema, value: &mut Value) {
    let resolved = schema.resolved();
    if let Some(items) = &resolved.items {
        for element in value.as_array_mut().into_iter().flatten() {
            fill_types(items, element);
        }
    }
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for (name, field) in &resolved.fields {
        if let Some(value) = members.get_mut(name) {
            fill_types(field, value);
        } else {
            let stated = field.default.clone().filter(|_| field.zero().is_none());
            members.extend(stated.map(|default| (name.clone(), default)));
        }
    }
    let own = schema.reference.as_deref().unwrap_or_default();
    let own = own.rsplit("io.k8s.api.").next().unwrap_or_default();
    if own == "core.v1.Container" || own == "core.v1.EphemeralContainer" {
        pull_policy(value);
    }
    let Some((_, defaults)) = TYPE_DEFAULTS.iter().find(|(name, _)| *name == own) else {
        return;
    };
    for (name, text) in *defaults {
        let default = text
            .parse()
            .map_or_else(|_| json!(text), |number: i64| json!(number));
        let members = value.as_object_mut().into_iter();
        members.for_each(|members| {
            members.entry(*name).or_insert_with(|| default.clone());
        });
    }
}

/// What is limited and not requested is requested up to the limit.
fn request_limits(resources: &mut Value) {
    let Some(limits) = resources["limits"].as_object().cloned() else {
        return;
    };
    let requests = object::member_mut(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// An image without a tag, or with the tag `latest`, is always pulled.
fn pull_policy(container: &mut Value) {
    if !container["imagePullPolicy"].is_null() {
        return;
    }
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let floating =
        !last.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    container["imagePullPolicy"] = json!(if floating { "Always" } else { "IfNotPresent" });
}

/// `stringData` is only a way to write `data`.
fn fold_string_data(secret: &mut Value) {
    let Some(members) = secret.as_object_mut() else {
        return;
    };
    let Some(Value::Object(texts)) = members.remove("stringData") else {
        return;
    };
    for (key, text) in texts {
        if let Some(text) = text.as_str() {
            let encoded = base64(text.as_bytes());
            object::member_mut(secret, "data").insert(key, json!(encoded));
        }
    }
}

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| (group << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let index = (group >> (18 - 6 * place)) & 0x3f;
                text.push(char::from(ALPHABET[index as usize]));
            }
        }
    }
    text
}

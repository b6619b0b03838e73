//! Defaults of built-in kinds: what the recorded server added to the smallest object of each kind,
//! where the object has not said otherwise.

use serde_json::{Map, Value, json};

use crate::object;
use crate::resource::Resource;

/// Members of `filled` that are not defaults: they are allocated, or put by admission.
const ALLOCATED: [&str; 8] = [
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "uid",
    "tolerations",
    "priority",
    "preemptionPolicy",
];

/// Fills in the defaults of a built-in kind.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if resource.is_custom() {
        return;
    }
    if resource.is("", "namespaces") {
        let name = json!(object::name(object));
        object::metadata_mut(object);
        object::member_mut(&mut object["metadata"], "labels")
            .insert("kubernetes.io/metadata.name".to_owned(), name);
        return;
    }
    if resource.is("", "secrets") {
        fold_string_data(object);
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        super::definitions::complete(object);
    }
    depend_on_others(resource, object);
    if let Some(filled) = resource.lifecycle.filled.as_object()
        && let Some(members) = object.as_object_mut()
    {
        fill_members(filled, members);
    }
}

/// Fills in the status of a new object.
pub(super) fn fill_status(resource: &Resource, object: &mut Value) {
    let status = &resource.lifecycle.filled["status"];
    if let Some(members) = status.as_object()
        && !resource.is("", "namespaces")
    {
        fill_members(members, object::member_mut(object, "status"));
    }
}

fn fill_members(filled: &Map<String, Value>, members: &mut Map<String, Value>) {
    for (name, default) in filled {
        if ALLOCATED.contains(&name.as_str()) || has_placeholder(default) {
            continue;
        }
        match members.get_mut(name) {
            Some(value) => fill_value(default, value),
            None if default.is_array()
                && default.as_array().is_some_and(|list| {
                    list.iter()
                        .any(|element| element.is_object() || element.is_null())
                }) => {}
            None => {
                members.insert(name.clone(), default.clone());
            }
        }
    }
}

fn fill_value(default: &Value, value: &mut Value) {
    if let (Some(filled), Some(members)) = (default.as_object(), value.as_object_mut()) {
        fill_members(filled, members);
    } else if let (Some(templates), Some(elements)) = (default.as_array(), value.as_array_mut())
        && let Some(template) = templates.iter().find(|template| template.is_object())
    {
        for element in elements {
            fill_value(template, element);
        }
    }
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
    if resource.is("apps", "deployments") && object["spec"]["strategy"]["type"] == "Recreate" {
        return;
    }
    let template = if resource.is("", "pods") {
        Some("spec")
    } else {
        None
    };
    let spec = match template {
        Some(path) => object.get_mut(path),
        None => object.pointer_mut("/spec/template/spec"),
    };
    if let Some(spec) = spec {
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                pull_policy(container);
            }
        }
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

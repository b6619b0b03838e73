//! The rules for what is in an object beside its metadata.

mod events;
mod field;
mod quotas;
mod roles;
mod shown;
mod slices;
mod types;
mod workloads;

use serde_json::{Value, json};

use super::{Target, definitions, forms, immutable, pods, services};
use crate::base64;
use crate::quantity;
use crate::resource::Resource;
use crate::status::Cause;

/// All values of a config map or a secret together.
const MAX_DATA_BYTES: usize = 1024 * 1024;

/// The rules that a state of an object of a built-in kind breaks; `old` is the state before an
/// update.
pub(super) fn causes(target: &Target, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let resource = &target.resource;
    if resource.is("", "pods") {
        return pod_causes(target, object, old);
    }
    if resource.is_definition() {
        return definitions::causes(object, old);
    }
    if target.subresource.is_some() {
        return Vec::new();
    }
    let mut causes = old.map_or_else(Vec::new, |old| immutable::causes(resource, object, old));
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps" | "secrets") => {
            causes.extend(key_causes(object));
            causes.extend(size_cause(resource, object));
            causes.extend(immutable_causes(object, old));
            causes.extend(typed_secret_causes(object));
        }
        ("", "persistentvolumeclaims") => {
            causes.extend(old.and_then(|old| claim_cause(object, old)));
        }
        ("", "services") => {
            causes.extend(
                old.into_iter()
                    .flat_map(|old| services::causes(object, old)),
            );
        }
        ("apps", "deployments" | "daemonsets" | "replicasets" | "statefulsets") => {
            causes.extend(workloads::lasting(object));
            let kind = match resource.kind.as_str() {
                "Deployment" => "ReplicaSet",
                kind => kind,
            };
            causes.extend(workloads::no_deadline(object, kind));
        }
        ("", "replicationcontrollers") => {
            causes.extend(workloads::no_deadline(object, "ReplicationController"));
        }
        ("", "resourcequotas") => causes.extend(quotas::causes(object, old)),
        ("discovery.k8s.io", "endpointslices") => causes.extend(slices::causes(object)),
        ("batch", "cronjobs") => causes.extend(workloads::cron_job(object)),
        ("batch", "jobs") => causes.extend(workloads::job(object, old)),
        ("rbac.authorization.k8s.io", _) => causes.extend(roles::causes(resource, object)),
        (_, "events") => causes.extend(events::causes(resource, object, old)),
        _ => {}
    }
    causes.extend(types::causes(resource, object));
    causes.extend(types::mount_causes(resource, object));
    causes
}

/// The rules that a pod breaks.
fn pod_causes(target: &Target, pod: &Value, old: Option<&Value>) -> Vec<Cause> {
    let subresource = target.subresource.as_deref();
    let mut causes = Vec::new();
    // Of a status, a binding and the like nothing else is looked at.
    if matches!(subresource, None | Some("ephemeralcontainers" | "resize")) {
        causes.extend(types::causes(&target.resource, pod));
        causes.extend(types::mount_causes(&target.resource, pod));
        causes.extend(types::own_pod_causes(pod));
    }
    if let Some(old) = old {
        causes.extend(pods::causes(subresource, pod, old));
    }
    causes
}

/// What is too much to be kept.
fn size_cause(resource: &Resource, object: &Value) -> Option<Cause> {
    let bytes = |member: &str, decoded: bool| -> usize {
        let values = object[member].as_object().into_iter().flatten();
        let length = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            if decoded {
                base64::decoded_length(text)
            } else {
                text.len()
            }
        };
        values.map(|(_, value)| length(value)).sum()
    };
    let (size, field) = if resource.is("", "secrets") {
        (bytes("data", true), "data")
    } else {
        (bytes("data", false) + bytes("binaryData", true), "[]")
    };
    (size > MAX_DATA_BYTES).then(|| Cause::too_long(field, MAX_DATA_BYTES as u64))
}

/// Keys of data are names of files.
fn key_causes(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for member in ["data", "binaryData"] {
        let keys = object[member].as_object().into_iter().flatten();
        for (key, _) in keys {
            let field = || format!("{member}[{key}]");
            let cause = |why| Cause::invalid(field(), &json!(key), why);
            causes.extend(forms::config_key(key).into_iter().map(cause));
            if member == "data" && object["binaryData"].get(key).is_some() {
                let why = "duplicate of key present in binaryData";
                causes.push(Cause::invalid(field(), &json!(key), why));
            }
        }
    }
    causes
}

/// What is marked as immutable stays as it is.
fn immutable_causes(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return Vec::new();
    };
    let why = "field is immutable when `immutable` is set";
    ["immutable", "data", "binaryData"]
        .into_iter()
        .filter(|member| object[*member] != old[*member])
        .map(|member| Cause::forbidden(member, why))
        .collect()
}

/// The keys that a secret of a type must have.
const SECRET_KEYS: [(&str, &[&str]); 4] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// A secret that says what it is has what belongs to that.
fn typed_secret_causes(secret: &Value) -> Vec<Cause> {
    let kind = secret["type"].as_str().unwrap_or_default();
    let has = |key: &str| secret["data"].get(key).is_some();
    let keys = SECRET_KEYS.iter().find(|(name, _)| *name == kind);
    let (_, mut keys) = keys.copied().unwrap_or_default();
    if kind == "kubernetes.io/basic-auth" && !has("username") && !has("password") {
        keys = &["username", "password"];
    }
    let missing = keys.iter().filter(|key| !has(key));
    let mut causes: Vec<Cause> = missing
        .map(|key| Cause::required(format!("data[{key}]"), ""))
        .collect();
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token"
        && secret["metadata"]["annotations"][account]
            .as_str()
            .is_none_or(str::is_empty)
    {
        causes.push(Cause::required(
            format!("metadata.annotations[{account}]"),
            "",
        ));
    }
    causes
}

/// A claim stays as it is, but for its size and class of attributes once it is bound, and for what is
/// settled when it is.
fn claim_cause(claim: &Value, old: &Value) -> Option<Cause> {
    let (new, old_spec) = (&claim["spec"], &old["spec"]);
    let mut free = vec!["volumeName"];
    if old["status"]["phase"] == "Bound" {
        free.extend(["resources", "volumeAttributesClassName"]);
    }
    if old_spec["storageClassName"].is_null() {
        free.push("storageClassName");
    }
    let volume = &old_spec["volumeName"];
    let moved = !volume.is_null() && new["volumeName"] != *volume;
    let resized = || {
        let size = |spec: &Value, kind: &str| spec["resources"][kind].clone();
        size(new, "limits") != size(old_spec, "limits")
    };
    if moved || resized() || immutable::differs_but(Some(new), Some(old_spec), &free) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        return Some(Cause::forbidden("spec", why));
    }
    let size = |claim: &'_ Value| {
        claim["resources"]["requests"]["storage"]
            .as_str()
            .map(str::to_owned)
    };
    let (size, had) = (size(new)?, size(old_spec)?);
    quantity::is_less(&size, &had).then(|| {
        let why = "field can not be less than status.capacity";
        Cause::forbidden("spec.resources.requests.storage", why)
    })
}

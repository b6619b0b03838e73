//! Pods: what concerns several members of their specs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::Field;
use super::{dns, security};
use crate::object;
use crate::registry::{forms, names};
use crate::status::Cause;

/// What only containers have that go on running.
const OF_RUNNING: [&str; 4] = [
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];

pub(super) fn spec(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    volume_names(spec, field, causes);
    container_names(spec, field, causes);
    first_containers(spec, field, causes);
    host_ports(spec, field, causes);
    gates(spec, field, causes);
    dns::policy(spec, field, causes);
    security::of_hosts(spec, field, causes);
    security::of_systems(spec, field, causes);
}

/// Gates are different ones.
fn gates(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("schedulingGates");
    let mut known = BTreeSet::new();
    for (index, gate) in object::elements(spec, "schedulingGates").enumerate() {
        let name = &gate["name"];
        if !known.insert(name.as_str().unwrap_or_default()) {
            causes.push(Cause::duplicate(list.element(index), name));
        }
    }
}

/// Volumes have different names.
fn volume_names(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("volumes");
    let mut known = BTreeSet::new();
    for (index, volume) in object::elements(spec, "volumes").enumerate() {
        let name = volume["name"].as_str().unwrap_or_default();
        if !name.is_empty() && !known.insert(name) {
            let place = list.element(index);
            causes.push(Cause::duplicate(place.member("name"), &json!(name)));
        }
    }
}

/// Containers of all sorts have different names.
fn container_names(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let mut known = BTreeSet::new();
    for member in ["containers", "initContainers", "ephemeralContainers"] {
        let list = field.member(member);
        for (index, container) in object::elements(spec, member).enumerate() {
            let name = container["name"].as_str().unwrap_or_default();
            if !known.insert(name) {
                let place = list.element(index);
                causes.push(Cause::duplicate(place.member("name"), &json!(name)));
            }
        }
    }
}

/// A container that ends before the others start is not looked at.
fn first_containers(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("initContainers");
    for (index, container) in object::elements(spec, "initContainers").enumerate() {
        let place = list.element(index);
        let policy = &container["restartPolicy"];
        if *policy == "Always" {
            continue;
        }
        for member in OF_RUNNING
            .into_iter()
            .filter(|member| !container[*member].is_null())
        {
            let why = "may not be set for init containers without restartPolicy=Always";
            causes.push(Cause::forbidden(place.member(member), why));
        }
    }
}

/// A port of the node is for one container.
fn host_ports(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("containers");
    let mut known = BTreeSet::new();
    for (index, container) in object::elements(spec, "containers").enumerate() {
        let place = list.element(index);
        let ports = place.member("ports");
        for (index, port) in object::elements(container, "ports").enumerate() {
            let Some(number) = port["hostPort"].as_u64().filter(|number| *number != 0) else {
                continue;
            };
            let text = |member: &str| port[member].as_str().unwrap_or_default();
            let own = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
            let place = ports.element(index);
            if known.contains(&own) {
                causes.push(Cause::duplicate(place.member("hostPort"), &json!(own)));
            }
            known.insert(own);
        }
    }
}

/// Mounted volumes are there.
pub(super) fn mounts(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let volumes = object::elements(spec, "volumes").filter_map(|volume| volume["name"].as_str());
    let known: BTreeSet<&str> = volumes.collect();
    for member in ["containers", "initContainers", "ephemeralContainers"] {
        let list = field.member(member);
        for (index, container) in object::elements(spec, member).enumerate() {
            let place = list.element(index);
            let mounts = place.member("volumeMounts");
            let mut paths = BTreeSet::new();
            for (index, mount) in object::elements(container, "volumeMounts").enumerate() {
                let name = mount["name"].as_str().unwrap_or_default();
                let place = mounts.element(index);
                if name.is_empty() {
                    causes.push(Cause::required(place.member("name"), ""));
                }
                if !known.contains(name) {
                    causes.push(Cause::not_found(place.member("name"), &json!(name)));
                }
                let path = mount["mountPath"].as_str().unwrap_or_default();
                let is_first = paths.insert(path);
                mount_causes(container, mount, is_first, &place, causes);
                propagation(container, mount, &mounts, causes);
            }
            let devices = place.member("volumeDevices");
            for (index, device) in object::elements(container, "volumeDevices").enumerate() {
                let name = device["name"].as_str().unwrap_or_default();
                if !known.contains(name) {
                    let place = devices.element(index);
                    causes.push(Cause::not_found(place.member("name"), &json!(name)));
                }
            }
        }
    }
}

/// Where a volume is mounted, and which part of it.
fn mount_causes(
    container: &Value,
    mount: &Value,
    is_first: bool,
    field: &Field<'_>,
    causes: &mut Vec<Cause>,
) {
    let text = |member: &str| mount[member].as_str().unwrap_or_default();
    let place = field.member("mountPath");
    if text("mountPath").is_empty() {
        causes.push(Cause::required(place, ""));
    }
    if !is_first {
        causes.push(Cause::invalid(
            place,
            &json!(text("mountPath")),
            "must be unique",
        ));
    }
    for device in object::elements(container, "volumeDevices") {
        if !text("name").is_empty() && device["name"] == mount["name"] {
            let why = "must not already exist in volumeDevices";
            causes.push(Cause::invalid(field.member("name"), &mount["name"], why));
        }
        if device["devicePath"] == mount["mountPath"] {
            let why = "must not already exist as a path in volumeDevices";
            causes.push(Cause::invalid(place, &mount["mountPath"], why));
        }
    }
    let place = field.member("subPath");
    security::descending(text("subPath"), &place, causes);
    let place = field.member("subPathExpr");
    if !text("subPath").is_empty() && !text("subPathExpr").is_empty() {
        let why = "subPathExpr and subPath are mutually exclusive";
        causes.push(Cause::invalid(place, &mount["subPathExpr"], why));
    }
    security::descending(text("subPathExpr"), &place, causes);
}

/// Whether others see what is mounted below. The server does not say of which mount it speaks.
fn propagation(container: &Value, mount: &Value, mounts: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = mounts.member("mountPropagation");
    let propagation = &mount["mountPropagation"];
    match propagation.as_str() {
        None | Some("None" | "HostToContainer") => {}
        Some("Bidirectional") => {
            if container["securityContext"]["privileged"] != true {
                let why =
                    "Bidirectional mount propagation is available only to privileged containers";
                causes.push(Cause::forbidden(place, why));
            }
        }
        Some(_) => {
            let known = ["Bidirectional", "HostToContainer", "None"];
            causes.push(Cause::not_supported(place, propagation, &known));
        }
    }
}

/// What is looked at in a pod and not in a template: there, projected tokens are given later.
pub(super) fn own(pod: &Value) -> Vec<Cause> {
    let spec = &pod["spec"];
    if spec["serviceAccountName"]
        .as_str()
        .is_some_and(|name| !name.is_empty())
    {
        return Vec::new();
    }
    let mut causes = Vec::new();
    for (volume, value) in object::elements(spec, "volumes").enumerate() {
        for (source, value) in object::elements(&value["projected"], "sources").enumerate() {
            if !value["serviceAccountToken"].is_null() {
                let field = format!(
                    "spec.volumes[{volume}].projected.sources[{source}].serviceAccountToken"
                );
                let why = "must not be specified when serviceAccountName is not set";
                causes.push(Cause::forbidden(field, why));
            }
        }
    }
    causes
}

/// A template's metadata, which the server looks for where it is not.
pub(super) fn template(template: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    template_metadata(template, field, causes);
    if object::elements(&template["spec"], "ephemeralContainers")
        .next()
        .is_some()
    {
        let place = field.member("spec");
        let why = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(place.member("ephemeralContainers"), why));
    }
}

pub(super) fn template_metadata(template: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let metadata = &template["metadata"];
    causes.extend(names::label_map_causes(
        field.member("labels"),
        &metadata["labels"],
    ));
    causes.extend(names::annotation_map_causes(
        field.member("annotations"),
        &metadata["annotations"],
    ));
}

pub(super) fn toleration(toleration: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let text = |member: &str| toleration[member].as_str().unwrap_or_default();
    let (key, operator, value) = (text("key"), text("operator"), text("value"));
    if !key.is_empty() {
        let cause = |why: &String| Cause::invalid(field.member("key"), &json!(key), why);
        causes.extend(forms::qualified_name(key).iter().map(cause));
    }
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        causes.push(Cause::invalid(
            field.member("operator"),
            &json!(operator),
            why,
        ));
    }
    if !toleration["tolerationSeconds"].is_null() && text("effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(Cause::invalid(
            field.member("effect"),
            &json!(text("effect")),
            why,
        ));
    }
    let why = match operator {
        "" | "Equal" => forms::label_value(value).join(";"),
        "Exists" if value.is_empty() => String::new(),
        "Exists" => "value must be empty when `operator` is 'Exists'".to_owned(),
        other => {
            // The list is longer for whoever knows the newer ones.
            let known = ["Equal", "Exists", "Lt", "Gt"];
            let count = if known.contains(&other) { 4 } else { 2 };
            let place = field.member("operator");
            causes.push(Cause::not_supported(place, &json!(other), &known[..count]));
            return;
        }
    };
    if !why.is_empty() {
        causes.push(Cause::invalid(
            field.member("operator"),
            &json!(value),
            &why,
        ));
    }
}

//! Pods: what concerns several members of their specs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::Field;
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

/// Mounted volumes are there; `claims` are volumes that somebody adds to the pod.
pub(super) fn mounts(spec: &Value, field: &Field<'_>, claims: &[&str], causes: &mut Vec<Cause>) {
    let volumes = object::elements(spec, "volumes").filter_map(|volume| volume["name"].as_str());
    let known: BTreeSet<&str> = volumes.chain(claims.iter().copied()).collect();
    for member in ["containers", "initContainers", "ephemeralContainers"] {
        let list = field.member(member);
        for (index, container) in object::elements(spec, member).enumerate() {
            let place = list.element(index);
            for member in ["volumeMounts", "volumeDevices"] {
                let mounts = place.member(member);
                for (index, mount) in object::elements(container, member).enumerate() {
                    let name = mount["name"].as_str().unwrap_or_default();
                    if !known.contains(name) {
                        let place = mounts.element(index);
                        causes.push(Cause::not_found(place.member("name"), &json!(name)));
                    }
                }
            }
        }
    }
}

/// A template's metadata, which the server looks for where it is not.
pub(super) fn template(template: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let metadata = &template["metadata"];
    causes.extend(names::label_map_causes(
        field.member("labels"),
        &metadata["labels"],
    ));
    causes.extend(names::annotation_map_causes(
        field.member("annotations"),
        &metadata["annotations"],
    ));
    if object::elements(&template["spec"], "ephemeralContainers")
        .next()
        .is_some()
    {
        let place = field.member("spec");
        let why = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(place.member("ephemeralContainers"), why));
    }
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
        "Exists" if !value.is_empty() => {
            "value must be empty when `operator` is 'Exists'".to_owned()
        }
        _ => String::new(),
    };
    if !why.is_empty() {
        causes.push(Cause::invalid(
            field.member("operator"),
            &json!(value),
            &why,
        ));
    }
}

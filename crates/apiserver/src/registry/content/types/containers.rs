//! Containers: what concerns several of their members.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::quantity;
use crate::registry::forms;
use crate::status::Cause;

/// Ways to look at a container or to do something in it, in the order in which they are counted.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// What every container can ask for; other resources have the domain of whoever adds them.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const HUGE_PAGES: &str = "hugepages-";

pub(super) fn container(container: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    port_names(container, field, causes);
    sources(container, field, causes);
    paths(container, field, causes);
    for probe in ["livenessProbe", "startupProbe"] {
        let successes = &container[probe]["successThreshold"];
        if successes.as_i64().is_some_and(|successes| successes != 1) {
            let place = field.member(probe);
            let place = place.member("successThreshold");
            causes.push(Cause::invalid(place, successes, "must be 1"));
        }
    }
    let grace = &container["readinessProbe"]["terminationGracePeriodSeconds"];
    if !grace.is_null() {
        let place = field.member("readinessProbe");
        let place = place.member("terminationGracePeriodSeconds");
        let why = "must not be set for readinessProbes";
        causes.push(Cause::invalid(place, grace, why));
    }
}

/// Ports have different names.
fn port_names(container: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("ports");
    let mut known = BTreeSet::new();
    for (index, port) in object::elements(container, "ports").enumerate() {
        let name = port["name"].as_str().unwrap_or_default();
        let is_name = !name.is_empty() && forms::port_name(name).is_empty();
        if is_name && !known.insert(name) {
            let place = list.element(index);
            causes.push(Cause::duplicate(place.member("name"), &port["name"]));
        }
    }
}

/// Each source of variables is one.
fn sources(container: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("envFrom");
    for source in object::elements(container, "envFrom") {
        let has = |member: &str| !source[member].is_null();
        let why = match (has("configMapRef"), has("secretRef")) {
            (true, true) => "may not have more than one field specified at a time",
            (false, false) => "must specify one of: `configMapRef` or `secretRef`",
            (true, false) | (false, true) => continue,
        };
        causes.push(Cause::invalid(list, &json!(""), why));
    }
}

/// Devices have different paths.
fn paths(container: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("volumeDevices");
    let mut known = BTreeSet::new();
    for (index, device) in object::elements(container, "volumeDevices").enumerate() {
        let path = &device["devicePath"];
        if !known.insert(path.as_str().unwrap_or_default()) {
            let place = list.element(index);
            let why = "must be unique";
            causes.push(Cause::invalid(place.member("devicePath"), path, why));
        }
    }
}

/// The headers of a request have names.
pub(super) fn http_get(action: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("httpHeaders");
    for header in object::elements(action, "httpHeaders") {
        let name = header["name"].as_str().unwrap_or_default();
        let cause = |why| Cause::invalid(place, &json!(name), why);
        causes.extend(forms::header_name(name).into_iter().map(cause));
    }
}

/// The value of a variable comes from one place.
pub(super) fn variable(variable: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let Some(from) = variable["valueFrom"].as_object() else {
        return;
    };
    let has_value = variable["value"]
        .as_str()
        .is_some_and(|value| !value.is_empty());
    let why = match (from.len(), has_value) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        }
        (_, true) => "may not be specified when `value` is not empty",
        (1, false) => return,
        (_, false) => "may not have more than one field specified at a time",
    };
    causes.push(Cause::invalid(field.member("valueFrom"), &json!(""), why));
}

/// A probe or a hook is done in one way.
pub(super) fn handler(handler: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let ways: Vec<&str> = HANDLERS
        .into_iter()
        .filter(|way| !handler[*way].is_null())
        .collect();
    if ways.is_empty() {
        causes.push(Cause::required(*field, "must specify a handler type"));
    }
    for way in ways.iter().skip(1) {
        let why = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(field.member(way), why));
    }
}

/// Nobody asks for less than nothing, or for more than the limit.
pub(super) fn resources(resources: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for kind in ["limits", "requests"] {
        let place = field.member(kind);
        for (name, amount) in resources[kind].as_object().into_iter().flatten() {
            let own = place.key(name);
            let known = RESOURCES.contains(&name.as_str())
                || name.starts_with(HUGE_PAGES)
                || name.contains('/');
            if !known {
                let why = "must be a standard resource for containers";
                causes.push(Cause::invalid(own, &json!(name), why));
            }
            let text = amount.as_str().unwrap_or_default();
            if quantity::is_less(text, "0") {
                let why = "must be greater than or equal to 0";
                causes.push(Cause::invalid(own, amount, why));
            }
            let limit = resources["limits"][name].as_str();
            if kind == "requests"
                && let Some(limit) = limit
                && quantity::is_less(limit, text)
            {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                causes.push(Cause::invalid(place, amount, &why));
            }
        }
    }
}

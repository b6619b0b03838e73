//! Ingresses.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::registry::forms;
use crate::status::Cause;

pub(super) fn ingress(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if object::elements(spec, "rules").next().is_none() && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid(*field, &Value::Null, why));
    }
}

/// The host of a rule is a name.
pub(super) fn rule(rule: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let host = rule["host"].as_str().unwrap_or_default();
    if host.is_empty() {
        return;
    }
    let place = field.member("host");
    if host.parse::<IpAddr>().is_ok() {
        let why = "must be a DNS name, not an IP address";
        causes.push(Cause::invalid(place, &json!(host), why));
        return;
    }
    let cause = |why| Cause::invalid(place, &json!(host), why);
    causes.extend(forms::host(host).into_iter().map(cause));
}

/// The hosts that a certificate is for are names.
pub(super) fn secured(tls: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("hosts");
    for (index, host) in object::elements(tls, "hosts").enumerate() {
        let problems = forms::host(host.as_str().unwrap_or_default());
        let cause = |why| Cause::invalid(place.element(index), host, why);
        causes.extend(problems.into_iter().map(cause));
    }
}

/// What a path may not have inside.
const CLIMBING: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];

/// What a path may not end with.
const CLIMBING_ENDS: [&str; 2] = ["/..", "/."];

pub(super) fn path(path: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let text = path["path"].as_str().unwrap_or_default();
    let place = field.member("path");
    let by_path = path["pathType"] == "Exact" || path["pathType"] == "Prefix";
    let has_path = by_path || (path["pathType"] == "ImplementationSpecific" && !text.is_empty());
    if has_path && !text.starts_with('/') {
        let why = "must be an absolute path";
        causes.push(Cause::invalid(place, &json!(text), why));
    }
    if !by_path || text.is_empty() {
        return;
    }
    for part in CLIMBING.iter().filter(|part| text.contains(**part)) {
        let why = format!("must not contain '{part}'");
        causes.push(Cause::invalid(place, &json!(text), &why));
    }
    for end in CLIMBING_ENDS.iter().filter(|end| text.ends_with(**end)) {
        let why = format!("cannot end with '{end}'");
        causes.push(Cause::invalid(place, &json!(text), &why));
    }
}

/// A backend is a service's port, or something else.
pub(super) fn backend(backend: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_null(), resource.is_null()) {
        (false, false) => {
            let why = "cannot set both resource and service backends";
            causes.push(Cause::invalid(*field, &json!(""), why));
        }
        (true, true) => {
            causes.push(Cause::required(
                *field,
                "resource or service backend is required",
            ));
        }
        (false, true) => {
            let port = &service["port"];
            let has_name = port["name"].as_str().is_some_and(|name| !name.is_empty());
            let has_number = port["number"].as_u64().is_some_and(|number| number != 0);
            let place = field.member("service");
            if has_name && has_number {
                let why = "cannot set both port name & port number";
                causes.push(Cause::invalid(place.member("port"), &json!(""), why));
            } else if !has_name && !has_number {
                let why = "port name or number is required";
                causes.push(Cause::required(place.member("port"), why));
            }
        }
        (true, false) => {}
    }
}

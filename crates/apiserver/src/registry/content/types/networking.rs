//! Ingresses.

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::status::Cause;

pub(super) fn ingress(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if object::elements(spec, "rules").next().is_none() && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid(*field, &Value::Null, why));
    }
}

pub(super) fn path(path: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let text = path["path"].as_str().unwrap_or_default();
    let by_path = path["pathType"] == "Exact" || path["pathType"] == "Prefix";
    if by_path && !text.starts_with('/') {
        let why = "must be an absolute path";
        causes.push(Cause::invalid(field.member("path"), &json!(text), why));
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

//! Network policies: who may talk to whom.

use serde_json::{Value, json};

use super::super::field::Field;
use super::checks::PORT;
use crate::object;
use crate::registry::{addresses, forms};
use crate::status::Cause;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

pub(super) fn spec(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("policyTypes");
    let kinds = ["Ingress", "Egress"];
    if object::elements(spec, "policyTypes").count() > kinds.len() {
        let why = "may not specify more than two policyTypes";
        causes.push(Cause::invalid(place, &spec["policyTypes"], why));
        return;
    }
    for (index, kind) in object::elements(spec, "policyTypes").enumerate() {
        if !kinds.iter().any(|known| kind == known) {
            causes.push(Cause::not_supported(place.element(index), kind, &kinds));
        }
    }
}

/// A port, or all ports up to another one.
pub(super) fn port(port: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let protocol = &port["protocol"];
    if !protocol.is_null() && !PROTOCOLS.iter().any(|known| protocol == known) {
        let place = field.member("protocol");
        causes.push(Cause::not_supported(place, protocol, &PROTOCOLS));
    }
    let (first, last) = (&port["port"], &port["endPort"]);
    let end = field.member("endPort");
    let is_port = |number: i64| (1..=65_535).contains(&number);
    match first {
        Value::String(name) => {
            if !last.is_null() {
                let why = "may not be specified when `port` is non-numeric";
                causes.push(Cause::invalid(end, last, why));
            }
            let cause = |why| Cause::invalid(field.member("port"), first, why);
            causes.extend(forms::port_name(name).into_iter().map(cause));
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            if !is_port(number) {
                causes.push(Cause::invalid(field.member("port"), first, PORT));
            }
            let Some(last) = last.as_i64() else {
                return;
            };
            if last < number {
                let why = "must be greater than or equal to `port`";
                causes.push(Cause::invalid(end, first, why));
            }
            if !is_port(last) {
                causes.push(Cause::invalid(end, &json!(last), PORT));
            }
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            if !last.is_null() {
                let why = "may not be specified when `port` is not specified";
                causes.push(Cause::invalid(end, last, why));
            }
        }
    }
}

/// A peer is a range of addresses, or what selectors find.
pub(super) fn peer(peer: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let has = |member: &str| !peer[member].is_null();
    let selects = has("podSelector") || has("namespaceSelector");
    match (has("ipBlock"), selects) {
        (false, false) => causes.push(Cause::required(*field, "must specify a peer")),
        (true, true) => {
            let why = "may not specify both ipBlock and another peer";
            causes.push(Cause::forbidden(*field, why));
        }
        (true, false) | (false, true) => {}
    }
}

/// A range of addresses without some in it.
pub(super) fn block(block: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let cidr = block["cidr"].as_str().unwrap_or_default();
    let place = field.member("cidr");
    if cidr.is_empty() {
        causes.push(Cause::required(place, ""));
        return;
    }
    let problems = addresses::range(cidr);
    let cause = |why| Cause::invalid(place, &json!(cidr), why);
    causes.extend(problems.into_iter().map(cause));
    let Some(whole) = addresses::Range::new(cidr) else {
        return;
    };
    let place = field.member("except");
    for (index, text) in object::elements(block, "except").enumerate() {
        let range = text.as_str().unwrap_or_default();
        let mut problems = addresses::range(range);
        let is_part = addresses::Range::new(range).is_some_and(|range| whole.is_wider_than(&range));
        if problems.is_empty() && !is_part {
            problems.push("must be a strict subset of `cidr`");
        }
        let cause = |why| Cause::invalid(place.element(index), text, why);
        causes.extend(problems.into_iter().map(cause));
    }
}

//! What makes pods, counts them or protects them.

use serde_json::{Map, Value, json};

use super::super::field::Field;
use super::super::shown::{BUDGET, STATEFUL_STRATEGY};
use super::pods;
use crate::object;
use crate::registry::forms;
use crate::status::Cause;

pub(super) fn daemon_set(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    selects_something(spec, "daemonset", field, causes);
}

pub(super) fn replica_set(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    // The server's word for it, too.
    selects_something(spec, "deployment", field, causes);
}

pub(super) fn deployment(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    selects_something(spec, "deployment", field, causes);
    let (patience, wait) = (&spec["progressDeadlineSeconds"], &spec["minReadySeconds"]);
    if let Some(seconds) = patience.as_i64()
        && seconds <= wait.as_i64().unwrap_or_default()
    {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid(
            field.member("progressDeadlineSeconds"),
            patience,
            why,
        ));
    }
}

pub(super) fn stateful_set(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    selects_something(spec, "statefulset", field, causes);
    pods::template_metadata(&spec["template"], &field.member("template"), causes);
    let policy = &spec["podManagementPolicy"];
    if policy.is_string() && policy != "OrderedReady" && policy != "Parallel" {
        let why = "must be 'OrderedReady' or 'Parallel'";
        causes.push(Cause::invalid(
            field.member("podManagementPolicy"),
            policy,
            why,
        ));
    }
    let kind = &spec["updateStrategy"]["type"];
    if kind.is_string() && kind != "RollingUpdate" && kind != "OnDelete" {
        let why = "must be 'RollingUpdate' or 'OnDelete'";
        causes.push(Cause::invalid_shown(
            field.member("updateStrategy"),
            &STATEFUL_STRATEGY.of(&spec["updateStrategy"]),
            why,
        ));
    }
}

pub(super) fn replication_controller(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if spec["selector"].as_object().is_none_or(Map::is_empty) {
        causes.push(Cause::required(field.member("selector"), ""));
    }
    if spec["template"].is_null() {
        causes.push(Cause::required(field.member("template"), ""));
    }
}

/// A selector of everything would take others' pods.
fn selects_something(spec: &Value, kind: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let selector = &spec["selector"];
    let is_empty = |member: &str| match &selector[member] {
        Value::Object(members) => members.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    if selector.is_object() && is_empty("matchLabels") && is_empty("matchExpressions") {
        let why = format!("empty selector is invalid for {kind}");
        causes.push(Cause::invalid(field.member("selector"), selector, &why));
    }
}

/// A deployment that recreates does not roll.
pub(super) fn strategy(strategy: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    match strategy["type"].as_str().unwrap_or_default() {
        "" | "RollingUpdate" => {}
        "Recreate" => {
            if !strategy["rollingUpdate"].is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(Cause::forbidden(field.member("rollingUpdate"), why));
            }
        }
        _ => {
            let known = ["Recreate", "RollingUpdate"];
            causes.push(Cause::not_supported(*field, strategy, &known));
        }
    }
}

/// Something has to be able to go or to come.
pub(super) fn rolling_update(update: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    amount(update, "maxUnavailable", field, causes);
    amount(update, "maxSurge", field, causes);
    if is_nothing(&update["maxUnavailable"]) && is_nothing(&update["maxSurge"]) {
        let why = "may not be 0 when `maxSurge` is 0";
        let (place, value) = (field.member("maxUnavailable"), &update["maxUnavailable"]);
        causes.push(Cause::invalid(place, value, why));
    }
    not_more_than_all(update, "maxUnavailable", field, causes);
}

/// On a node either the old pod goes first or the new one comes.
pub(super) fn rolling_daemons(update: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for member in ["maxUnavailable", "maxSurge"] {
        amount(update, member, field, causes);
        not_more_than_all(update, member, field, causes);
    }
    let (down, up) = (&update["maxUnavailable"], &update["maxSurge"]);
    match (is_nothing(down), is_nothing(up)) {
        (true, true) => {
            let why = "cannot be 0 when maxSurge is 0";
            causes.push(Cause::required(field.member("maxUnavailable"), why));
        }
        (false, false) => {
            let why = "may not be set when maxUnavailable is non-zero";
            causes.push(Cause::invalid(field.member("maxSurge"), up, why));
        }
        (true, false) | (false, true) => {}
    }
}

fn is_nothing(amount: &Value) -> bool {
    let percent = amount.as_str().and_then(|text| text.strip_suffix('%'));
    amount.is_null() || *amount == 0 || percent.is_some_and(|number| number.parse() == Ok(0))
}

/// A budget is stated in one way.
pub(super) fn budget(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(Cause::invalid_shown(*field, &BUDGET.of(spec), why));
    }
    for member in ["minAvailable", "maxUnavailable"] {
        amount(spec, member, field, causes);
        not_more_than_all(spec, member, field, causes);
    }
}

/// A number of pods, or a part of them.
fn amount(object: &Value, member: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let value = &object[member];
    let why = match value {
        Value::Number(number) => {
            let negative = number.as_i64().is_some_and(|number| number < 0);
            negative.then_some("must be greater than or equal to 0")
        }
        Value::String(text) => forms::percent(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    causes.extend(why.map(|why| Cause::invalid(field.member(member), value, why)));
}

fn not_more_than_all(object: &Value, member: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let value = &object[member];
    let text = value.as_str().filter(|text| forms::percent(text).is_none());
    let digits = text.map(|text| text.trim_end_matches('%').trim_start_matches('0'));
    let too_much =
        |digits: &str| digits.len() > 3 || digits.parse().is_ok_and(|number: u32| number > 100);
    if digits.is_some_and(too_much) {
        let why = "must not be greater than 100%";
        causes.push(Cause::invalid(field.member(member), value, why));
    }
}

pub(super) fn autoscaler(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let least = &spec["minReplicas"];
    if least.as_i64().is_some_and(|least| least < 1) {
        let why = "must be greater than or equal to 1";
        causes.push(Cause::invalid(field.member("minReplicas"), least, why));
    }
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    let place = field.member("maxReplicas");
    if most == 0 {
        let why = "must be set and greater than 0";
        causes.push(Cause::required(place, why));
    } else if most < 0 {
        causes.push(Cause::invalid(
            place,
            &json!(most),
            "must be greater than 0",
        ));
    }
    if least.as_i64().is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(place, &json!(most), why));
    }
    let from_outside = |metric: &Value| metric["type"] == "Object" || metric["type"] == "External";
    if *least == 0 && !object::elements(spec, "metrics").any(from_outside) {
        let why = "must specify at least one Object or External metric to support scaling to zero \
                   replicas";
        causes.push(Cause::forbidden(field.member("metrics"), why));
    }
}

/// How an autoscaler goes up or down.
pub(super) fn scaling_rules(rules: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if object::elements(rules, "policies").next().is_none() {
        let why = "must specify at least one Policy";
        causes.push(Cause::required(field.member("policies"), why));
    }
}

//! Rules for events. They are stricter for those of the new style, which have an `eventTime`, and for
//! those that are written as `events.k8s.io/v1`.

use serde_json::{Value, json};

use super::shown::{EVENT_SOURCE, REFERENCE};
use crate::object;
use crate::registry::forms;
use crate::resource::Resource;
use crate::status::Cause;

/// How many bytes an event may have in its message.
const MESSAGE_BYTES: usize = 1024;

/// How many bytes an event may have in its reason, its action and the name of who reports.
const WORD_BYTES: usize = 128;

const UNSET: &str = "needs to be unset";

/// Members that stay as they are: how the causes name them, and as `events.k8s.io/v1` does. One is
/// looked at twice.
const FIXED: [(&str, &str); 14] = [
    ("involvedObject", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

pub(super) fn causes(resource: &Resource, event: &Value, old: Option<&Value>) -> Vec<Cause> {
    let is_new = !resource.group.is_empty();
    let mut causes = every_event(is_new, event);
    if is_new {
        match old {
            None => new_event(event, &mut causes),
            Some(old) => {
                if event["series"] != old["series"] {
                    series(event, &mut causes);
                }
                causes.extend(
                    FIXED
                        .iter()
                        .filter_map(|member| changed(*member, event, old)),
                );
            }
        }
    }
    causes
}

/// What holds for all events.
fn every_event(is_new: bool, event: &Value) -> Vec<Cause> {
    let (about, note, reporter) = if is_new {
        ("regarding", "note", "reportingController")
    } else {
        ("involvedObject", "message", "reportingComponent")
    };
    let text = |member: &str| event[member].as_str().unwrap_or_default();
    let namespace = object::namespace(event);
    let named = event[about]["namespace"].as_str().unwrap_or_default();
    let has_time = event["eventTime"].is_string();
    // What is in no namespace is reported in `default`.
    let fits = match (has_time, named) {
        (false, "") => namespace == "default",
        (false, named) => named == namespace,
        (true, "") => ["default", "kube-system"].contains(&namespace),
        (true, _) => true,
    };
    let mut causes = Vec::new();
    if !fits {
        let field = "involvedObject.namespace";
        let why = "does not match event.namespace";
        causes.push(Cause::invalid(field, &json!(named), why));
    }
    if !has_time {
        return causes;
    }
    needed(reporter, text(reporter), &mut causes);
    let problems = forms::qualified_name(text(reporter));
    let cause = |why: &String| Cause::invalid(reporter, &json!(text(reporter)), why);
    causes.extend(problems.iter().map(cause));
    for member in ["reportingInstance", "action", "reason"] {
        needed(member, text(member), &mut causes);
        short(member, text(member), WORD_BYTES, &mut causes);
    }
    short("message", text(note), MESSAGE_BYTES, &mut causes);
    causes
}

fn needed(member: &str, text: &str, causes: &mut Vec<Cause>) {
    if text.is_empty() {
        causes.push(Cause::required(member, ""));
    }
}

fn short(member: &str, text: &str, most: usize, causes: &mut Vec<Cause>) {
    if text.len() > most {
        let why = format!("can have at most {most} characters");
        causes.push(Cause::invalid(member, &json!(""), &why));
    }
}

/// What holds for an event that is created as `events.k8s.io/v1`.
fn new_event(event: &Value, causes: &mut Vec<Cause>) {
    series(event, causes);
    if !event["eventTime"].is_string() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        let why = format!("has invalid value: {kind}");
        causes.push(Cause::invalid("type", &json!(""), &why));
    }
    let source = &event["deprecatedSource"];
    let has = |member: &str| source[member].as_str().is_some_and(|text| !text.is_empty());
    let set = [
        (
            "firstTimestamp",
            event["deprecatedFirstTimestamp"].is_string(),
        ),
        (
            "lastTimestamp",
            event["deprecatedLastTimestamp"].is_string(),
        ),
        (
            "count",
            event["deprecatedCount"].as_i64().unwrap_or_default() != 0,
        ),
        ("source", has("component") || has("host")),
    ];
    let set = set.iter().filter(|(_, is_set)| *is_set);
    causes.extend(set.map(|(field, _)| Cause::invalid(*field, &json!(""), UNSET)));
}

/// A series is of several events.
fn series(event: &Value, causes: &mut Vec<Cause>) {
    let series = &event["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        let why = "should be at least 2";
        causes.push(Cause::invalid("series.count", &json!(""), why));
    }
    if !series["lastObservedTime"].is_string() {
        causes.push(Cause::required("series.lastObservedTime", ""));
    }
}

fn changed((field, member): (&'static str, &str), event: &Value, old: &Value) -> Option<Cause> {
    let value = &event[member];
    if *value == old[member] {
        return None;
    }
    let shown = match field {
        "involvedObject" => REFERENCE.of(value),
        "related" if !value.is_null() => REFERENCE.of(value),
        "source" => EVENT_SOURCE.of(value),
        "count" if value.is_null() => "0".to_owned(),
        "related" | "firstTimestamp" | "lastTimestamp" | "eventTime" | "count" => value.to_string(),
        _ if value.is_null() => "\"\"".to_owned(),
        _ => value.to_string(),
    };
    Some(Cause::invalid_shown(field, &shown, "field is immutable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(causes: &[Cause], expected: &[&str]) {
        let found: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        assert_eq!(found, expected);
    }

    fn event(more: &Value) -> Value {
        let mut event = json!({
            "metadata": { "namespace": "n" }, "eventTime": "2026-01-01T00:00:00.000000Z",
            "involvedObject": { "namespace": "n" }, "reportingComponent": "example.com/a",
            "reportingInstance": "i", "action": "Do", "reason": "Done",
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event
    }

    #[test]
    fn bytes_count_not_letters() {
        let of = |text: String| every_event(false, &event(&json!({ "message": text })));
        check(&of("é".repeat(512)), &[]);
        check(
            &of("é".repeat(512) + "x"),
            &["message: Invalid value: \"\": can have at most 1024 characters"],
        );
        check(&of("a".repeat(1024)), &[]);
    }

    #[test]
    fn series_are_of_several() {
        let mut causes = Vec::new();
        series(&json!({ "series": { "count": 1 } }), &mut causes);
        check(
            &causes,
            &[
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
            ],
        );
    }

    #[test]
    fn events_without_a_time_of_their_own_are_told_less() {
        let old = json!({ "metadata": { "namespace": "n" }, "message": "m".repeat(2000) });
        let mut old = old;
        old["involvedObject"] = json!({ "namespace": "n" });
        check(&every_event(false, &old), &[]);
        old["involvedObject"] = json!({});
        check(
            &every_event(false, &old),
            &["involvedObject.namespace: Invalid value: \"\": does not match event.namespace"],
        );
    }
}

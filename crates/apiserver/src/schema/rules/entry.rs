//! What is checked of a rule's entry before anything is compiled.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Reason, field_path};
use crate::status::Cause;

const REASONS: [(&str, Reason); 4] = [
    ("FieldValueDuplicate", Reason::Duplicate),
    ("FieldValueForbidden", Reason::Forbidden),
    ("FieldValueInvalid", Reason::Invalid),
    ("FieldValueRequired", Reason::Required),
];

/// The text of a member of a rule.
pub(super) fn text<'a>(raw: &'a Value, member: &str) -> &'a str {
    raw[member].as_str().unwrap_or_default()
}

fn has_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// What is wrong with a rule as it is written; `schema` is where it stands, and `path` its place.
pub(super) fn problems(schema: &Value, raw: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let own = |member: &str| format!("{path}.{member}");
    let (rule, message) = (text(raw, "rule"), text(raw, "message"));
    let (trimmed_rule, trimmed) = (rule.trim(), message.trim());
    let blank = "must be non-empty if specified";
    let breaks = "must not contain line breaks";
    if trimmed_rule.is_empty() {
        causes.push(Cause::required(own("rule"), "rule is not specified"));
    } else if !message.is_empty() && trimmed.is_empty() {
        causes.push(Cause::invalid(own("message"), &raw["message"], blank));
    } else if has_breaks(trimmed) {
        causes.push(Cause::invalid(own("message"), &raw["message"], breaks));
    } else if has_breaks(trimmed_rule) && trimmed.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        causes.push(Cause::required(own("message"), why));
    }
    let expression = text(raw, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        causes.push(Cause::required(own("messageExpression"), why));
    }
    if reason_of(raw).is_none() {
        let known = REASONS.map(|(name, _)| name);
        causes.push(Cause::not_supported(own("reason"), &raw["reason"], &known));
    }
    let (field_path, shown) = (text(raw, "fieldPath"), &raw["fieldPath"]);
    if field_path.is_empty() {
        return causes;
    }
    let field = own("fieldPath");
    if field_path.trim().is_empty() {
        causes.push(Cause::invalid(&field, shown, blank));
    }
    if has_breaks(field_path) {
        causes.push(Cause::invalid(&field, shown, breaks));
    }
    if field_path::shown(schema, field_path).is_none() {
        causes.push(Cause::invalid(&field, shown, "must be a valid path"));
    }
    causes
}

/// The reason that a rule gives. None for one that there is not.
pub(super) fn reason_of(raw: &Value) -> Option<Reason> {
    let Some(name) = raw["reason"].as_str() else {
        return Some(Reason::Invalid);
    };
    let mut reasons = REASONS.iter();
    let found = reasons.find(|(known, _)| *known == name);
    found.map(|(_, reason)| *reason)
}

/// A rule as causes show it.
pub(super) fn shown(raw: &Value) -> String {
    let text = |member: &str| escaped(text(raw, member));
    let reason = raw["reason"].as_str().map_or("null".to_owned(), escaped);
    let optional = match raw["optionalOldSelf"].as_bool() {
        Some(flag) => flag.to_string(),
        None => "null".to_owned(),
    };
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\
         \"FieldPath\":{},\"OptionalOldSelf\":{optional}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        text("fieldPath"),
    )
}

/// A text as JSON that can stand in HTML, as Go writes it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a text does not fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

use std::sync::Arc;

use kube_cel::cel::objects::{OptionalValue, Value as Seen};
use kube_cel::cel::{Context, ExecutionError};
use serde_json::Value;

use super::functions::{Budget, LIBRARY};
use super::parse::BUDGET;
use super::value::seen;
use super::{Findings, Reason, Rule, Rules};
use crate::status::Cause;

/// The longest message that an expression can make.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

struct Run {
    findings: Findings,
    budget: Arc<Budget>,
}

/// A value and where it stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Value,
    value: &'a Value,
    /// The same value before the update.
    old: Option<&'a Value>,
    field: &'a str,
    root: bool,
}

pub(super) fn check(
    rules: &Rules,
    schema: &Value,
    object: &Value,
    old: Option<&Value>,
    budget: Budget,
) -> Findings {
    let mut run = Run {
        findings: Findings::default(),
        budget: Arc::new(budget),
    };
    let root = Place {
        schema,
        value: object,
        old,
        field: "",
        root: true,
    };
    run.check(rules, root);
    run.findings
}

// === impl Run ===

impl Run {
    fn check(&mut self, rules: &Rules, place: Place<'_>) {
        let Place {
            schema,
            value,
            old,
            field,
            root: _,
        } = place;
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !rules.own.is_empty() {
            self.own(&rules.own, Place { old, ..place });
        }
        for (name, rules) in &rules.properties {
            if let Some(value) = value.get(name) {
                let inner = Place {
                    schema: &schema["properties"][name],
                    value,
                    old: old.and_then(|old| old.get(name)),
                    field: &child(field, name),
                    root: false,
                };
                self.check(rules, inner);
            }
        }
        if let (Some(rules), Some(members)) = (&rules.values, value.as_object()) {
            for (name, value) in members {
                let inner = Place {
                    schema: &schema["additionalProperties"],
                    value,
                    old: old.and_then(|old| old.get(name)),
                    field: &format!("{field}[{name}]"),
                    root: false,
                };
                self.check(rules, inner);
            }
        }
        if let (Some(rules), Some(list)) = (&rules.items, value.as_array()) {
            let unchanged = old == Some(value);
            for (index, element) in list.iter().enumerate() {
                let before = if unchanged {
                    Some(element)
                } else {
                    old.and_then(|old| same_element(schema, element, old))
                };
                let inner = Place {
                    schema: &schema["items"],
                    value: element,
                    old: before,
                    field: &format!("{field}[{index}]"),
                    root: false,
                };
                self.check(rules, inner);
            }
        }
    }

    /// Holds the rules of a value against it.
    fn own(&mut self, rules: &[Rule], place: Place<'_>) {
        let Place {
            schema,
            value,
            old,
            field,
            root,
        } = place;
        let mut context = LIBRARY.new_inner_scope();
        let budget = Seen::Opaque(Arc::clone(&self.budget) as Arc<_>);
        context.add_variable_from_value(BUDGET, budget);
        context.add_variable_from_value("self", seen(schema, value, root));
        let seen_old = old.map(|old| seen(schema, old, root));
        for rule in rules {
            if rule.is_transition && !rule.optional_old && seen_old.is_none() {
                continue;
            }
            let before = match (&seen_old, rule.optional_old) {
                (Some(old), true) => optional(OptionalValue::of(old.clone())),
                (None, true) => optional(OptionalValue::none()),
                (Some(old), false) => old.clone(),
                (None, false) => Seen::Null,
            };
            context.add_variable_from_value("oldSelf", before);
            self.budget.next_rule();
            let Some(cause) = self.cause(rule, &context, value, field) else {
                continue;
            };
            if !rule.is_transition && old == Some(value) {
                let warning = format!("{}: {}", cause.field, cause.message);
                self.findings.warnings.push(warning);
            } else {
                self.findings.causes.push(cause);
            }
        }
    }

    fn cause(
        &self,
        rule: &Rule,
        context: &Context<'_>,
        value: &Value,
        field: &str,
    ) -> Option<Cause> {
        let why = match Seen::resolve(&rule.test, context) {
            Ok(Seen::Bool(true)) => return None,
            Ok(Seen::Bool(false)) => self.message(rule, context),
            Ok(_) => format!("the rule is no bool: {}", rule.source),
            Err(error) => {
                let why = format!("{} evaluating rule: {}", shown(&error), rule.source);
                return Some(cause(Reason::Invalid, rule, value, field, &why));
            }
        };
        Some(cause(rule.reason, rule, value, field, &why))
    }

    /// What is said about a value that breaks a rule.
    fn message(&self, rule: &Rule, context: &Context<'_>) -> String {
        let expression = rule.message_expression.as_ref();
        self.budget.next_rule();
        let made = expression.and_then(|expression| match Seen::resolve(expression, context) {
            Ok(Seen::String(text)) => Some(text.trim().to_owned()),
            Ok(_) | Err(_) => None,
        });
        let fits = |text: &String| {
            !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE_BYTES
        };
        let stated = || rule.message.as_ref().map(|text| text.trim().to_owned());
        made.filter(fits)
            .or_else(|| stated().filter(|text| !text.is_empty()))
            .unwrap_or_else(|| format!("failed rule: {}", rule.source))
    }
}

fn optional(value: OptionalValue) -> Seen {
    Seen::Opaque(Arc::new(value))
}

fn child(field: &str, name: &str) -> String {
    if field.is_empty() {
        name.to_owned()
    } else {
        format!("{field}.{name}")
    }
}

/// The element of the old list that has the same keys.
fn same_element<'a>(schema: &Value, element: &Value, old: &'a Value) -> Option<&'a Value> {
    if schema["x-kubernetes-list-type"] != "map" {
        return None;
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
    let mut keys_of = keys.iter().filter_map(Value::as_str);
    let mut elements = old.as_array()?.iter();
    let keys: Vec<&str> = keys_of.by_ref().collect();
    elements.find(|other| keys.iter().all(|key| other[*key] == element[*key]))
}

/// The cause that a broken rule is. Only single values are shown in it.
fn cause(reason: Reason, rule: &Rule, value: &Value, field: &str, why: &str) -> Cause {
    let place = match format!("{field}{}", rule.path) {
        place if place.is_empty() => "<nil>".to_owned(),
        place => place.trim_start_matches('.').to_owned(),
    };
    let shown = if value.is_object() || value.is_array() {
        String::new()
    } else {
        format!(": {value}")
    };
    match reason {
        Reason::Required => Cause::required(place, why),
        Reason::Forbidden => Cause::forbidden(place, why),
        Reason::Duplicate => Cause {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value{shown}"),
            field: place,
        },
        Reason::Invalid => Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value{shown}: {why}"),
            field: place,
        },
    }
}

/// An error of an evaluation, without the values that it is about.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the others, which may become more, all name whole values"
)]
fn shown(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        _ => "no such overload".to_owned(),
    }
}

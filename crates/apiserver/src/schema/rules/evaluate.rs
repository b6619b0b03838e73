//! Holds rules against objects.

use serde_json::Value as Json;

use super::{Findings, Reason, Rule, Tree};
use crate::cel::evaluate::evaluate;
use crate::cel::fault::Fault;
use crate::cel::program::Program;
use crate::cel::value::Value;
use crate::pattern::Patterns;
use crate::status::Cause;

/// The longest message that an expression can make.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The steps that one expression may take on one value.
const MAX_CALL_STEPS: u64 = 1_000_000;

/// The steps that all rules of a definition may take on one object.
const MAX_OBJECT_STEPS: u64 = 10_000_000;

const OUT_OF_BUDGET: &str =
    "failed due to running out of cost budget, no further validation rules will be run";

struct Run<'p> {
    findings: Findings,
    patterns: &'p Patterns,
    /// The steps that may still be taken.
    left: u64,
    /// Whether what was so before may stay.
    ratchets: bool,
}

/// A value and where it stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Json,
    value: &'a Json,
    /// The same value before the update.
    old: Option<&'a Json>,
    /// Whether it is as it was, or is a part of something that is.
    unchanged: bool,
    field: &'a str,
    root: bool,
}

/// The rules are not held against the rest.
#[derive(Debug)]
struct Stop;

pub(super) fn check(
    tree: &Tree,
    schema: &Json,
    object: &Json,
    old: Option<&Json>,
    patterns: &Patterns,
) -> Findings {
    let mut run = Run::new(patterns);
    // That it stopped is among the findings.
    let _ = run.check(tree, Place::whole(schema, object, old));
    run.findings
}

/// Holds the rules against a default: as what replaces itself, and as what is new.
pub(super) fn check_default(
    tree: &Tree,
    schema: &Json,
    default: &Json,
    patterns: &Patterns,
) -> Findings {
    let mut run = Run::new(patterns);
    run.ratchets = false;
    for old in [Some(default), None] {
        if run.findings.causes.is_empty() {
            let whole = Place::whole(schema, default, old);
            let root = false;
            let _ = run.check(tree, Place { root, ..whole });
        }
    }
    run.findings
}

// === impl Place ===

impl<'a> Place<'a> {
    fn whole(schema: &'a Json, value: &'a Json, old: Option<&'a Json>) -> Self {
        Self {
            schema,
            value,
            old,
            unchanged: old == Some(value),
            field: "",
            root: true,
        }
    }

    /// A part that can be found again in the state before.
    fn part(
        &self,
        schema: &'a Json,
        value: &'a Json,
        old: Option<&'a Json>,
        field: &'a str,
    ) -> Self {
        Self {
            schema,
            value,
            old,
            unchanged: self.unchanged || old == Some(value),
            field,
            root: false,
        }
    }
}

// === impl Run ===

impl<'p> Run<'p> {
    fn new(patterns: &'p Patterns) -> Self {
        Self {
            findings: Findings::default(),
            patterns,
            left: MAX_OBJECT_STEPS,
            ratchets: true,
        }
    }

    fn check(&mut self, tree: &Tree, place: Place<'_>) -> Result<(), Stop> {
        let Place {
            schema,
            value,
            old,
            field,
            ..
        } = place;
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        if !tree.own.is_empty() {
            self.own(&tree.own, Place { old, ..place })?;
        }
        if let (Some(tree), Some(list)) = (&tree.items, value.as_array()) {
            for (index, element) in list.iter().enumerate() {
                let before = old.and_then(|old| same_element(schema, element, old));
                let field = format!("{field}[{index}]");
                self.check(tree, place.part(&schema["items"], element, before, &field))?;
            }
        }
        if let (Some(tree), Some(members)) = (&tree.values, value.as_object()) {
            for (name, value) in members {
                let before = old.and_then(|old| old.get(name));
                let field = format!("{field}[{name}]");
                let schema = &schema["additionalProperties"];
                self.check(tree, place.part(schema, value, before, &field))?;
            }
        }
        for (name, tree) in &tree.properties {
            if let Some(value) = value.get(name) {
                let before = old.and_then(|old| old.get(name));
                let field = child(field, name);
                let schema = &schema["properties"][name];
                self.check(tree, place.part(schema, value, before, &field))?;
            }
        }
        Ok(())
    }

    /// Holds the rules of a value against it.
    fn own(&mut self, rules: &[Rule], place: Place<'_>) -> Result<(), Stop> {
        if self.left == 0 {
            return self.stop(place, &format!("validation {OUT_OF_BUDGET}"));
        }
        let see = |value| Value::of(value, place.schema, place.root);
        let own = match see(place.value) {
            Ok(value) => value,
            Err(fault) => {
                self.fault(&rules[0], place, &fault);
                return Ok(());
            }
        };
        let old = place.old.map(see).transpose();
        let old = old.unwrap_or_default();
        for rule in rules {
            if rule.is_transition && !rule.optional_old && old.is_none() {
                continue;
            }
            let mut variables = vec![("self", own.clone())];
            if rule.is_transition {
                let before = match (&old, rule.optional_old) {
                    (Some(old), true) => Some(Value::some(old.clone())),
                    (None, true) => Some(Value::none()),
                    (old, false) => old.clone(),
                };
                variables.extend(before.map(|old| ("oldSelf", old)));
            }
            match self.evaluate(&rule.test, &variables) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => {
                    let old = old.as_ref().filter(|_| rule.is_transition);
                    let why = self.message(rule, &own, old, place)?;
                    self.broken(rule, place, &why);
                }
                Ok(_) => self.fault(rule, place, &Fault::no_overload()),
                Err(Fault::Cost) => return self.too_expensive(rule, place),
                Err(fault) => self.fault(rule, place, &fault),
            }
        }
        Ok(())
    }

    fn evaluate<'a>(
        &mut self,
        program: &'a Program,
        variables: &[(&'a str, Value<'a>)],
    ) -> Result<Value<'a>, Fault> {
        let limit = self.left.min(MAX_CALL_STEPS);
        let (outcome, steps) = evaluate(program, variables, self.patterns, limit);
        self.left = self.left.saturating_sub(steps);
        outcome
    }

    fn broken(&mut self, rule: &Rule, place: Place<'_>, why: &str) {
        let cause = cause(rule, place.value, place.field, why);
        if self.ratchets && !rule.is_transition && place.unchanged {
            let warning = format!("{}: {}", cause.field, cause.message);
            self.findings.warnings.push(warning);
        } else {
            self.findings.causes.push(cause);
        }
    }

    /// The rule has no value.
    fn fault(&mut self, rule: &Rule, place: Place<'_>, fault: &Fault) {
        let text = fault.to_string();
        let rule = rule.shown();
        let why = if text.starts_with("no such overload") {
            format!(
                "'{text}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {rule}"
            )
        } else {
            format!("{text} evaluating rule: {rule}")
        };
        self.about_type(place, &why);
    }

    /// A cause that shows the type of the value.
    fn about_type(&mut self, place: Place<'_>, why: &str) {
        let kind = place.schema["type"].as_str().unwrap_or_default();
        let field = shown_field(place.field);
        let cause = Cause::invalid(field, &Json::from(kind), why);
        self.findings.causes.push(cause);
    }

    fn stop<T>(&mut self, place: Place<'_>, why: &str) -> Result<T, Stop> {
        self.about_type(place, why);
        Err(Stop)
    }

    fn too_expensive<T>(&mut self, rule: &Rule, place: Place<'_>) -> Result<T, Stop> {
        if self.left == 0 {
            return self.stop(place, &format!("validation {OUT_OF_BUDGET}"));
        }
        let why = format!(
            "'{}': no further validation rules will be run due to call cost exceeds limit for rule: \
             {}",
            Fault::Cost,
            rule.shown()
        );
        self.stop(place, &why)
    }

    /// What is said about a value that breaks a rule.
    fn message(
        &mut self,
        rule: &Rule,
        own: &Value<'_>,
        old: Option<&Value<'_>>,
        place: Place<'_>,
    ) -> Result<String, Stop> {
        let stated = || match &rule.message {
            Some(message) if !message.is_empty() => message.clone(),
            _ => format!("failed rule: {}", rule.source),
        };
        let Some(program) = &rule.message_expression else {
            return Ok(stated());
        };
        let mut variables = vec![("self", own.clone())];
        variables.extend(old.map(|old| ("oldSelf", old.clone())));
        let limit = self.left.min(MAX_CALL_STEPS);
        let (outcome, steps) = evaluate(program, &variables, self.patterns, limit);
        self.left = self.left.saturating_sub(steps);
        match outcome {
            Ok(Value::Text(text)) => {
                let text = text.trim();
                let fits =
                    !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE_BYTES;
                Ok(if fits { text.to_owned() } else { stated() })
            }
            Err(Fault::Cost) if self.left == 0 => self.stop(
                place,
                &format!("messageExpression evaluation {OUT_OF_BUDGET}"),
            ),
            Err(Fault::Cost) => {
                let why = "no further validation rules will be run due to call cost exceeds limit \
                           for messageExpression";
                self.stop(place, why)
            }
            Ok(_) | Err(Fault::Error(_)) => Ok(stated()),
        }
    }
}

// === impl Rule ===

impl Rule {
    /// The rule as messages name it.
    fn shown(&self) -> &str {
        match &self.message {
            Some(message) if !message.is_empty() => message,
            _ => &self.source,
        }
    }
}

fn child(field: &str, name: &str) -> String {
    if field.is_empty() {
        name.to_owned()
    } else {
        format!("{field}.{name}")
    }
}

/// The element of the old list that has the same keys.
fn same_element<'a>(schema: &Json, element: &Json, old: &'a Json) -> Option<&'a Json> {
    if schema["x-kubernetes-list-type"] != "map" {
        return None;
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
    let keys: Vec<&str> = keys.iter().filter_map(Json::as_str).collect();
    let mut elements = old.as_array()?.iter();
    elements.find(|other| keys.iter().all(|key| other[*key] == element[*key]))
}

fn shown_field(field: &str) -> &str {
    match field.trim_start_matches('.') {
        "" => "<nil>",
        field => field,
    }
}

/// The cause that a broken rule is. Only single values are shown in it.
fn cause(rule: &Rule, value: &Json, field: &str, why: &str) -> Cause {
    let field = format!("{field}{}", rule.path);
    let field = shown_field(&field);
    let shown = if value.is_object() || value.is_array() {
        String::new()
    } else {
        format!(": {value}")
    };
    match rule.reason {
        Reason::Required => Cause::required(field, why),
        Reason::Forbidden => Cause::forbidden(field, why),
        Reason::Duplicate => Cause {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value{shown}"),
            field: field.to_owned(),
        },
        Reason::Invalid => Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value{shown}: {why}"),
            field: field.to_owned(),
        },
    }
}

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use super::infer::{self, Inferred, Scope};
use super::kind::{Kind, MAX_OBJECT_BYTES, max_items, max_properties, min_bytes};
use super::parse::{metered, parse};
use super::{Reason, Rule, Rules};
use crate::status::Cause;

/// The steps that one rule may take at most on the largest object that the schema allows.
const MAX_RULE_COST: u64 = 10_000_000;

/// The steps that all rules of a schema together may take at most.
const MAX_SCHEMA_COST: u64 = 100_000_000;

const REASONS: [(&str, Reason); 4] = [
    ("FieldValueInvalid", Reason::Invalid),
    ("FieldValueForbidden", Reason::Forbidden),
    ("FieldValueRequired", Reason::Required),
    ("FieldValueDuplicate", Reason::Duplicate),
];

const TOO_EXPENSIVE: &str = "the rules may take more steps than they are allowed to: make them \
    simpler, or limit the values with maxItems, maxProperties and maxLength";

/// Where in a schema rules are looked for.
#[derive(Debug, Clone)]
struct Place {
    path: String,
    root: bool,
    /// Whether the value can be found again in the state before.
    has_old: bool,
    /// How many such values there are at most in an object.
    count: u64,
}

#[derive(Debug, Default)]
struct Compiler {
    causes: Vec<Cause>,
    cost: u64,
    /// The rules whose cost is a part of it that alone is too much.
    expensive: Vec<String>,
}

pub(super) fn compile(schema: &Value, place: &str) -> (Rules, Vec<Cause>) {
    let mut compiler = Compiler::default();
    let root = Place {
        path: place.to_owned(),
        root: true,
        has_old: true,
        count: 1,
    };
    let rules = compiler.rules(schema, &root);
    let Compiler {
        mut causes,
        cost,
        expensive,
    } = compiler;
    if cost > MAX_SCHEMA_COST {
        let why = "has a part in the cost of all rules, which is too high";
        let parts = expensive.into_iter();
        causes.extend(parts.map(|path| Cause::forbidden(path, why)));
        causes.push(Cause::forbidden(place, TOO_EXPENSIVE));
    }
    (rules, causes)
}

// === impl Compiler ===

impl Compiler {
    fn rules(&mut self, schema: &Value, place: &Place) -> Rules {
        let mut rules = Rules::default();
        let list = schema["x-kubernetes-validations"].as_array();
        for (index, raw) in list.into_iter().flatten().enumerate() {
            let path = format!("{}.x-kubernetes-validations[{index}]", place.path);
            rules.own.extend(self.rule(schema, raw, place, &path));
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let inner = Place {
                path: format!("{}.properties[{name}]", place.path),
                root: false,
                ..place.clone()
            };
            let found = self.rules(schema, &inner);
            if !found.is_empty() {
                rules.properties.insert(name.clone(), found);
            }
        }
        let is_map = schema["x-kubernetes-list-type"] == "map";
        rules.items = self.parts(&schema["items"], place, "items", is_map, max_items(schema));
        let (values, count) = (&schema["additionalProperties"], max_properties(schema));
        rules.values = self.parts(values, place, "additionalProperties", true, count);
        rules
    }

    /// The rules for each of many parts.
    fn parts(
        &mut self,
        schema: &Value,
        place: &Place,
        name: &str,
        can_be_found: bool,
        count: u64,
    ) -> Option<Box<Rules>> {
        if !schema.is_object() {
            return None;
        }
        let most = MAX_OBJECT_BYTES / min_bytes(schema).max(1);
        let inner = Place {
            path: format!("{}.{name}", place.path),
            root: false,
            has_old: place.has_old && can_be_found,
            count: place.count.saturating_mul(count).min(most),
        };
        let found = self.rules(schema, &inner);
        (!found.is_empty()).then(|| Box::new(found))
    }

    fn rule(&mut self, schema: &Value, raw: &Value, place: &Place, path: &str) -> Option<Rule> {
        let before = self.causes.len();
        let member = |name: &str| raw[name].as_str().unwrap_or_default();
        let source = member("rule").trim();
        let own = |member: &str| format!("{path}.{member}");
        if source.is_empty() {
            self.causes.push(Cause::required(own("rule"), ""));
            return None;
        }
        let optional_old = raw["optionalOldSelf"] == true;
        let mut scope = scope_of(schema, place, optional_old);
        let bool_or = |kind: &Kind<'_>| (!kind.can_be_bool()).then_some("a rule must be a bool");
        let test = self.expression(source, raw, &own("rule"), &mut scope, bool_or);
        let (test, cost) = test.unzip();
        let message_source = member("messageExpression").trim();
        let message_expression = if message_source.is_empty() {
            None
        } else {
            let field = own("messageExpression");
            let text_or = |kind: &Kind<'_>| {
                (!kind.can_be_text()).then_some("a messageExpression must be a text")
            };
            self.expression(message_source, raw, &field, &mut scope, text_or)
        };
        let uses_old = |expression: &IdedExpr| expression.references().has_variable("oldSelf");
        let is_transition = test.as_ref().is_some_and(uses_old);
        self.message(raw, source, path);
        if is_transition && !place.has_old {
            let why = "oldSelf cannot be used where elements of lists cannot be found again: in \
                       lists of a type other than map";
            self.causes.push(Cause::invalid(own("rule"), raw, why));
        }
        if optional_old && test.is_some() && !is_transition {
            let why = "must not be set for a rule that does not use oldSelf";
            let value = &raw["optionalOldSelf"];
            self.causes
                .push(Cause::invalid(own("optionalOldSelf"), value, why));
        }
        if let Some(cost) = cost {
            self.charge(cost.saturating_mul(place.count), own("rule"));
        }
        let reason = self.reason(raw, &own("reason"));
        let suffix = self.field_path(schema, raw, &own("fieldPath"));
        if self.causes.len() > before {
            return None;
        }
        Some(Rule {
            test: metered(test?),
            source: source.to_owned(),
            message: raw["message"].as_str().map(str::to_owned),
            message_expression: message_expression.map(|(expression, _)| metered(expression)),
            reason,
            path: suffix,
            is_transition,
            optional_old,
        })
    }

    /// Reads an expression. Answers it with its cost.
    fn expression(
        &mut self,
        source: &str,
        raw: &Value,
        field: &str,
        scope: &mut Scope<'_>,
        problem_of: impl Fn(&Kind<'_>) -> Option<&'static str>,
    ) -> Option<(IdedExpr, u64)> {
        let compiled = parse(source).and_then(|expression| {
            let Inferred { kind, cost } = infer::infer(&expression, scope)?;
            Ok((expression, kind, cost))
        });
        let why = match compiled {
            Ok((expression, kind, cost)) => match problem_of(&kind) {
                None => return Some((expression, cost)),
                Some(why) => why.to_owned(),
            },
            Err(why) => format!("compilation failed: {why}"),
        };
        self.causes.push(Cause::invalid(field, raw, &why));
        None
    }

    fn charge(&mut self, cost: u64, field: String) {
        self.cost = self.cost.saturating_add(cost);
        if cost > MAX_RULE_COST {
            self.causes.push(Cause::forbidden(&field, TOO_EXPENSIVE));
            self.expensive.push(field);
        }
    }

    fn message(&mut self, raw: &Value, source: &str, path: &str) {
        let field = format!("{path}.message");
        match raw["message"].as_str() {
            Some(message) if !message.is_empty() && message.trim().is_empty() => {
                let why = "must not be blank";
                self.causes
                    .push(Cause::invalid(field, &raw["message"], why));
            }
            Some(message) if message.trim().contains('\n') => {
                let why = "must not have line breaks";
                self.causes
                    .push(Cause::invalid(field, &raw["message"], why));
            }
            None | Some("") if source.contains('\n') => {
                let why = "must be given for a rule that has line breaks";
                self.causes.push(Cause::required(field, why));
            }
            None | Some(_) => {}
        }
    }

    fn reason(&mut self, raw: &Value, field: &str) -> Reason {
        let Some(name) = raw["reason"].as_str() else {
            return Reason::Invalid;
        };
        let mut reasons = REASONS.iter();
        if let Some((_, reason)) = reasons.find(|(known, _)| *known == name) {
            return *reason;
        }
        let known = REASONS.map(|(name, _)| name);
        self.causes
            .push(Cause::not_supported(field, &raw["reason"], &known));
        Reason::Invalid
    }

    /// The path that a rule points to, as causes show it.
    fn field_path(&mut self, schema: &Value, raw: &Value, field: &str) -> String {
        let path = raw["fieldPath"].as_str().unwrap_or_default();
        shown_path(schema, path).unwrap_or_else(|| {
            let why = "must be the path of a described member, like .a.b or .a['b']";
            self.causes
                .push(Cause::invalid(field, &raw["fieldPath"], why));
            String::new()
        })
    }
}

/// The variables that a rule can use.
fn scope_of<'a>(schema: &'a Value, place: &Place, optional_old: bool) -> Scope<'a> {
    let own = Kind::of(schema, place.root);
    let old = if optional_old {
        Kind::Optional(Box::new(own.clone()))
    } else {
        own.clone()
    };
    vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)]
}

/// A path from a schema on, as causes show it. None where it leads nowhere.
fn shown_path(mut schema: &Value, path: &str) -> Option<String> {
    let mut shown = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            (name, rest) = after.split_once("']")?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (name, rest) = after.split_at(end);
        }
        if let Some(property) = schema["properties"].get(name) {
            shown.push('.');
            shown.push_str(name);
            schema = property;
        } else {
            schema = schema
                .get("additionalProperties")
                .filter(|values| values.is_object())?;
            shown = format!("{shown}[{name}]");
        }
    }
    Some(shown)
}

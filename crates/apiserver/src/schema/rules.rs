//! Rules in CEL, which definitions state as `x-kubernetes-validations`: compiled once for each
//! definition, and held against objects within a budget of steps.

mod compile;
mod evaluate;
mod functions;
mod infer;
mod kind;
mod parse;
mod stack;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use self::functions::Budget;
use self::stack::with_large_stack;
use crate::status::Cause;

/// The rules for a value and for its parts. Where there are none there is nothing.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    own: Vec<Rule>,
    properties: BTreeMap<String, Rules>,
    /// For the elements of a list.
    items: Option<Box<Rules>>,
    /// For the values of an object with free keys.
    values: Option<Box<Rules>>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    test: IdedExpr,
    /// Its text.
    source: String,
    message: Option<String>,
    message_expression: Option<IdedExpr>,
    reason: Reason,
    /// Where it points to from where it stands: `.a`, `[key]`.
    path: String,
    /// Whether it speaks of the state before.
    is_transition: bool,
    /// Whether it also holds where there was no state before.
    optional_old: bool,
}

/// Why a value that breaks a rule is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// What is wrong with a value.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Findings {
    pub(crate) causes: Vec<Cause>,
    /// What would be a cause if the value had not been so before.
    pub(crate) warnings: Vec<String>,
}

// === impl Rules ===

impl Rules {
    /// The rules of a structural schema, and what is wrong with them. `place` is the path of the
    /// schema in its definition.
    pub(crate) fn compile(schema: &Value, place: &str) -> (Self, Vec<Cause>) {
        if !is_ruled(schema) {
            return (Self::default(), Vec::new());
        }
        let compiled = with_large_stack(|| compile::compile(schema, place));
        compiled.unwrap_or_else(|| {
            let why = "the rules cannot be read";
            (Self::default(), vec![Cause::forbidden(place, why)])
        })
    }

    /// Holds the rules against an object; `old` is its state before an update.
    pub(crate) fn check(&self, schema: &Value, object: &Value, old: Option<&Value>) -> Findings {
        if self.is_empty() {
            return Findings::default();
        }
        let checked =
            with_large_stack(|| evaluate::check(self, schema, object, old, Budget::default()));
        checked.unwrap_or_else(|| {
            let why = "the rules of the definition cannot be evaluated";
            let causes = vec![Cause::invalid("<nil>", &Value::Null, why)];
            Findings {
                causes,
                warnings: Vec::new(),
            }
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            own,
            properties,
            items,
            values,
        } = self;
        own.is_empty() && properties.is_empty() && items.is_none() && values.is_none()
    }
}

/// Whether there are rules anywhere in a schema.
fn is_ruled(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("x-kubernetes-validations") || members.values().any(is_ruled)
        }
        Value::Array(list) => list.iter().any(is_ruled),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

//! Rules in CEL, which definitions state as `x-kubernetes-validations`: checked when a definition is
//! written, compiled when the first object comes, and held against objects within a budget of steps.

mod budget;
mod compile;
mod entry;
mod evaluate;
mod field_path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::cel::program::Program;
use crate::pattern::Patterns;
use crate::stack::with_large_stack;
use crate::status::Cause;

/// The rules of a schema.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Whether the schema has any.
    ruled: bool,
    compiled: OnceLock<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    tree: Tree,
    /// The nodes on the longest way through one of the expressions.
    height: usize,
}

/// The rules for a value and for its parts. Where there are none there is nothing.
#[derive(Debug, Default)]
struct Tree {
    own: Vec<Rule>,
    properties: BTreeMap<String, Tree>,
    /// For the elements of a list.
    items: Option<Box<Tree>>,
    /// For the values of an object with free keys.
    values: Option<Box<Tree>>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    test: Program,
    /// Its text.
    source: String,
    message: Option<String>,
    message_expression: Option<Program>,
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

/// Rules that are deeper than this need more stack than the threads of a server have.
const DEEP: usize = 60;

// === impl Rules ===

impl Rules {
    /// The rules of a structural schema. What is wrong with them was found when the definition was
    /// written.
    pub(crate) fn of(schema: &Value) -> Self {
        Self {
            ruled: is_ruled(schema),
            compiled: OnceLock::new(),
        }
    }

    /// What is wrong with the rules of a structural schema. `place` is the path of the schema in its
    /// definition.
    pub(crate) fn problems(schema: &Value, place: &str) -> Vec<Cause> {
        if !is_ruled(schema) {
            return Vec::new();
        }
        let found = with_large_stack(|| compile::compile(schema, place, true).1);
        found.unwrap_or_else(|| vec![Cause::forbidden(place, "the rules cannot be read")])
    }

    /// Holds the rules against an object; `old` is its state before an update.
    pub(crate) fn check(
        &self,
        schema: &Value,
        object: &Value,
        old: Option<&Value>,
        patterns: &Patterns,
    ) -> Findings {
        if self.is_empty() {
            return Findings::default();
        }
        let Compiled { tree, height } = self.compiled.get_or_init(|| {
            let compiled = with_large_stack(|| compile::compile(schema, "", true).0);
            compiled.unwrap_or_default()
        });
        let check = || evaluate::check(tree, schema, object, old, patterns);
        if *height <= DEEP {
            return check();
        }
        with_large_stack(check).unwrap_or_else(|| {
            let why = "the rules of the definition cannot be evaluated";
            Findings {
                causes: vec![Cause::invalid("<nil>", &Value::Null, why)],
                warnings: Vec::new(),
            }
        })
    }

    /// Holds the rules of a part of a schema against its default. What is found stands within the
    /// default.
    pub(crate) fn check_default(schema: &Value, default: &Value) -> Vec<Cause> {
        if !is_ruled(schema) {
            return Vec::new();
        }
        let check = || {
            let (Compiled { tree, .. }, _) = compile::compile(schema, "", false);
            evaluate::check_default(&tree, schema, default, &Patterns::default())
        };
        with_large_stack(check).unwrap_or_default().causes
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.ruled
    }
}

// === impl Tree ===

impl Tree {
    fn is_empty(&self) -> bool {
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

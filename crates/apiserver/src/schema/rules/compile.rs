//! From the rules of a schema to programs, and what is wrong with them.

use std::sync::Arc;

use serde_json::Value;

use super::budget::Budget;
use super::entry::{self, text};
use super::{Compiled, Reason, Rule, Tree, field_path};
use crate::cel::check::{Checked, check};
use crate::cel::cost;
use crate::cel::declared::{MAX_REQUEST_BYTES, declared, limit};
use crate::cel::parse;
use crate::cel::program::Program;
use crate::cel::types::{Declared, Type};
use crate::status::Cause;

/// Where in a schema rules are looked for.
#[derive(Debug, Clone)]
struct Place<'a> {
    path: String,
    root: bool,
    /// What the schema around it says of the value.
    declared: Option<&'a Declared>,
    /// How many such values there are at most in an object. None if nothing limits that.
    count: Option<u64>,
    /// The list around it whose elements cannot be found again in the state before.
    lost: Option<String>,
}

#[derive(Debug, Default)]
struct Compiler {
    causes: Vec<Cause>,
    budget: Budget,
    height: usize,
}

/// The types that the variables of a rule have, and what their values can be.
struct Scope<'a> {
    node: &'a Declared,
    variables: Vec<(Arc<str>, Type)>,
}

/// The rules of a schema, and what is wrong with them. `root` says whether it describes whole objects.
pub(super) fn compile(schema: &Value, place: &str, root: bool) -> (Compiled, Vec<Cause>) {
    let mut compiler = Compiler::default();
    let declared = declared(schema, root);
    let root = Place {
        path: place.to_owned(),
        root,
        declared: declared.as_ref(),
        count: Some(1),
        lost: None,
    };
    let (tree, _) = compiler.tree(schema, &root);
    let Compiler {
        mut causes,
        budget,
        height,
    } = compiler;
    causes.extend(budget.finish(place));
    (Compiled { tree, height }, causes)
}

// === impl Place ===

impl Place<'_> {
    /// A part of the value, of which there are at most so many in each.
    fn part<'a>(
        &self,
        name: &str,
        declared: Option<&'a Declared>,
        count: Option<u64>,
    ) -> Place<'a> {
        let own = |(one, two): (u64, u64)| one.saturating_mul(two);
        Place {
            path: format!("{}.{name}", self.path),
            root: false,
            declared,
            count: self.count.zip(count).map(own),
            lost: self.lost.clone(),
        }
    }
}

// === impl Compiler ===

impl Compiler {
    /// The rules for a value and its parts, and whether all of them are written as they should be.
    fn tree(&mut self, schema: &Value, place: &Place<'_>) -> (Tree, bool) {
        let mut tree = Tree::default();
        let mut written = true;
        let values = &schema["additionalProperties"];
        let element = place.declared.and_then(|node| node.element.as_deref());
        let count = limit(schema, "maxProperties");
        if values.is_object() {
            let inner = place.part("additionalProperties", element, count);
            tree.values = self.part(values, &inner, &mut written);
        }
        let members = match place.declared.map(|node| &node.kind) {
            Some(Type::Object(object)) => Some(object),
            _ => None,
        };
        // Where keys are free, the described members count as if they were many too.
        let count = if values.is_null() { Some(1) } else { count };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let declared = members.and_then(|object| object.member(name));
            let inner = place.part(&format!("properties[{name}]"), declared, count);
            if let Some(found) = self.part(property, &inner, &mut written) {
                tree.properties.insert(name.clone(), *found);
            }
        }
        let items = &schema["items"];
        if items.is_object() {
            let mut inner = place.part("items", element, limit(schema, "maxItems"));
            if schema["x-kubernetes-list-type"] != "map" && inner.lost.is_none() {
                inner.lost = Some(place.path.clone());
            }
            tree.items = self.part(items, &inner, &mut written);
        }
        if schema["x-kubernetes-validations"].is_array() {
            tree.own = self.own(schema, place, &mut written);
        }
        (tree, written)
    }

    fn part(&mut self, schema: &Value, place: &Place<'_>, written: &mut bool) -> Option<Box<Tree>> {
        let (tree, right) = self.tree(schema, place);
        *written &= right;
        (!tree.is_empty()).then(|| Box::new(tree))
    }

    /// The rules for a value itself.
    fn own(&mut self, schema: &Value, place: &Place<'_>, written: &mut bool) -> Vec<Rule> {
        let list = schema["x-kubernetes-validations"].as_array();
        let list = list.map_or(&[][..], Vec::as_slice);
        let path = |index: usize| format!("{}.x-kubernetes-validations[{index}]", place.path);
        for (index, raw) in list.iter().enumerate() {
            let problems = entry::problems(schema, raw, &path(index));
            *written &= problems.is_empty();
            self.causes.extend(problems);
        }
        if !*written || list.is_empty() {
            return Vec::new();
        }
        let own;
        let node = if let Some(node) = place.declared {
            node
        } else if let Some(node) = declared(schema, place.root) {
            own = node;
            &own
        } else {
            let field = format!("{}.x-kubernetes-validations", place.path);
            let why = "internal error: failed to construct type information for \
                       x-kubernetes-validations rules: unable to convert structural schema to CEL \
                       declarations";
            self.causes.push(Cause {
                reason: "InternalError",
                message: format!("Internal error: {why}"),
                field,
            });
            return Vec::new();
        };
        let mut rules = Vec::new();
        for (index, raw) in list.iter().enumerate() {
            rules.extend(self.rule(schema, raw, place, node, &path(index)));
        }
        rules
    }

    fn rule(
        &mut self,
        schema: &Value,
        raw: &Value,
        place: &Place<'_>,
        node: &Declared,
        path: &str,
    ) -> Option<Rule> {
        let field = format!("{path}.rule");
        let scope = Scope::of(node, raw["optionalOldSelf"] == true);
        let source = text(raw, "rule").trim();
        let test = compiled(source, &scope, &Type::Bool, ["", "cel expression"]);
        let mut is_transition = false;
        let mut message_expression = None;
        let test = match test {
            Err(why) => {
                self.causes.push(invalid_rule(&field, raw, &why));
                None
            }
            Ok((program, cost, mentions_old)) => {
                let count = place
                    .count
                    .unwrap_or(MAX_REQUEST_BYTES / (node.min_bytes + 1));
                let cost = cost.saturating_mul(count);
                self.causes.extend(self.budget.charge(cost, "rule", &field));
                is_transition = mentions_old;
                message_expression = self.message_expression(raw, &scope, path);
                Some(program)
            }
        };
        self.old_state(raw, place, path, is_transition);
        let reason = entry::reason_of(raw).unwrap_or(Reason::Invalid);
        let pointed = field_path::shown(schema, text(raw, "fieldPath"));
        let test = test?;
        let height = message_expression.as_ref().map(Program::height);
        self.height = self
            .height
            .max(test.height())
            .max(height.unwrap_or_default());
        Some(Rule {
            test,
            source: source.to_owned(),
            message: raw["message"].as_str().map(|text| text.trim().to_owned()),
            message_expression,
            reason,
            path: pointed.unwrap_or_default(),
            is_transition,
            optional_old: raw["optionalOldSelf"] == true,
        })
    }

    fn message_expression(
        &mut self,
        raw: &Value,
        scope: &Scope<'_>,
        path: &str,
    ) -> Option<Program> {
        let source = text(raw, "messageExpression").trim();
        if source.is_empty() {
            return None;
        }
        let field = format!("{path}.messageExpression");
        let name = "messageExpression";
        match compiled(source, scope, &Type::Text, ["messageExpression ", name]) {
            Ok((program, cost, _)) => {
                self.causes.extend(self.budget.charge(cost, name, &field));
                Some(program)
            }
            Err(why) => {
                self.causes.push(invalid_rule(&field, raw, &why));
                None
            }
        }
    }

    /// Whether a rule may speak of the state before as it does.
    fn old_state(&mut self, raw: &Value, place: &Place<'_>, path: &str, is_transition: bool) {
        if is_transition && let Some(list) = &place.lost {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            let field = format!("{path}.rule");
            self.causes.push(Cause::invalid(field, &raw["rule"], &why));
        }
        let optional = &raw["optionalOldSelf"];
        if !optional.is_null() && !is_transition {
            let why = "may not be set if oldSelf is not used in rule";
            let field = format!("{path}.optionalOldSelf");
            self.causes.push(Cause::invalid(field, optional, why));
        }
    }
}

// === impl Scope ===

impl<'a> Scope<'a> {
    fn of(node: &'a Declared, optional_old: bool) -> Self {
        let old = if optional_old {
            Type::optional(node.kind.clone())
        } else {
            node.kind.clone()
        };
        Self {
            node,
            variables: vec![
                (Arc::from("self"), node.kind.clone()),
                (Arc::from("oldSelf"), old),
            ],
        }
    }
}

/// Compiles an expression of a type. Answers it with its cost, and whether it speaks of the state
/// before. What is wrong with it begins with the first name, and the expression has the second.
fn compiled(
    source: &str,
    scope: &Scope<'_>,
    wanted: &Type,
    [prefix, name]: [&str; 2],
) -> Result<(Program, u64, bool), String> {
    let checked = parse(source).and_then(|ast| check(source, ast, scope.variables.clone()));
    let checked: Checked = checked.map_err(|why| format!("{prefix}compilation failed: {why}"))?;
    if !checked.root_kind().same(wanted) {
        let kind = if wanted.same(&Type::Bool) {
            "bool"
        } else {
            "string"
        };
        return Err(format!("{name} must evaluate to a {kind}"));
    }
    let cost = cost::estimate(&checked, scope.node);
    let mentions_old = checked.mentions("oldSelf");
    let instantiation = if prefix.is_empty() {
        "program instantiation"
    } else {
        "messageExpression instantiation"
    };
    let program = Program::new(checked).map_err(|why| format!("{instantiation} failed: {why}"))?;
    Ok((program, cost, mentions_old))
}

/// A cause that shows all of a rule.
fn invalid_rule(field: &str, raw: &Value, why: &str) -> Cause {
    Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {}: {why}", entry::shown(raw)),
        field: field.to_owned(),
    }
}

//! The types of an expression and of its parts, and which functions it calls.

mod literals;

use std::slice::from_ref;
use std::sync::Arc;

use super::ast::{Ast, Entry, Literal, Loop, Node, NodeId};
use super::functions::{Overload, named_type, overloads_of};
use super::names::kept_name;
use super::operators;
use super::source::{Issue, shown};
use super::types::{Mapping, Type, most_general};

/// An expression whose types fit.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ast: Ast,
    pub(crate) root: NodeId,
    /// By node.
    types: Vec<Type>,
    /// The ways of a function that a call can mean, by node. More than one where the types of the
    /// arguments are known only when it is evaluated.
    overloads: Vec<Vec<&'static Overload>>,
}

struct Checker {
    ast: Ast,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static Overload>>,
    mapping: Mapping,
    /// The variables that can be used where the checker is; an inner one hides an outer one.
    variables: Vec<(Arc<str>, Type)>,
    issues: Vec<Issue>,
}

/// Checks an expression that may use these variables.
///
/// # Errors
///
/// What is wrong with it, as servers show it.
pub(crate) fn check(
    source: &str,
    ast: Ast,
    variables: Vec<(Arc<str>, Type)>,
) -> Result<Checked, String> {
    let Some(root) = ast.root() else {
        return Err("the expression could not be read".to_owned());
    };
    let mut checker = Checker {
        types: vec![Type::Error; ast.len()],
        overloads: vec![Vec::new(); ast.len()],
        ast,
        mapping: Mapping::default(),
        variables,
        issues: Vec::new(),
    };
    checker.check(root);
    if !checker.issues.is_empty() {
        return Err(shown(source, checker.issues));
    }
    let Checker {
        ast,
        mut types,
        overloads,
        mapping,
        ..
    } = checker;
    for kind in &mut types {
        *kind = mapping.substitute(kind, true);
    }
    let typed = Checked {
        ast,
        root,
        types,
        overloads,
    };
    let issues = literals::issues(&typed);
    if issues.is_empty() {
        Ok(typed)
    } else {
        Err(shown(source, issues))
    }
}

// === impl Checked ===

impl Checked {
    pub(crate) fn kind(&self, id: NodeId) -> &Type {
        &self.types[id.index()]
    }

    pub(crate) fn overloads(&self, id: NodeId) -> &[&'static Overload] {
        &self.overloads[id.index()]
    }

    pub(crate) fn into_ast(self) -> Ast {
        self.ast
    }

    /// The type of the whole expression.
    pub(crate) fn root_kind(&self) -> &Type {
        self.kind(self.root)
    }

    /// Whether a variable is used.
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        let mut nodes = self.ast.nodes();
        nodes.any(|node| matches!(node, Node::Ident(name) if &**name == variable))
    }
}

// === impl Checker ===

impl Checker {
    fn kind(&self, id: NodeId) -> Type {
        self.mapping.substitute(&self.types[id.index()], false)
    }

    fn set(&mut self, id: NodeId, kind: Type) {
        self.types[id.index()] = kind;
    }

    fn issue(&mut self, at: NodeId, message: String) {
        let offset = self.ast.offset(at);
        self.issues.push(Issue { offset, message });
    }

    fn mismatch(&mut self, at: NodeId, expected: &Type, found: &Type) {
        let expected = self.mapping.substitute(expected, true);
        let found = self.mapping.substitute(found, true);
        self.issue(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }

    fn undeclared(&mut self, at: NodeId, name: &str) {
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.issue(at, message);
        self.set(at, Type::Error);
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let mut variables = self.variables.iter().rev();
        let found = variables.find(|(known, _)| &**known == name);
        found
            .map(|(_, kind)| kind.clone())
            .or_else(|| named_type(name))
    }

    fn check(&mut self, id: NodeId) {
        match self.ast.node(id).clone() {
            Node::Literal(literal) => self.set(id, literal_kind(&literal)),
            Node::Ident(name) => match self.lookup(&name) {
                Some(kind) => self.set(id, kind),
                None => self.undeclared(id, &name),
            },
            Node::Select {
                operand,
                field,
                test,
            } => self.select(id, operand, &field, test),
            Node::Call {
                function,
                target,
                args,
            } => self.call(id, &function, target, &args),
            Node::List { elements, optional } => self.list(id, &elements, &optional),
            Node::Map(entries) => self.map(id, &entries),
            Node::Message(name) => self.undeclared(id, &name),
            Node::Loop(inner) => self.looped(id, &inner),
        }
    }

    fn select(&mut self, id: NodeId, operand: NodeId, field: &Arc<str>, test: bool) {
        if !test
            && let Some(name) = self.ast.qualified_name(id)
            && let Some(kind) = self.lookup(&name)
        {
            self.ast.replace(id, Node::Ident(Arc::from(name)));
            self.set(id, kind);
            return;
        }
        let kind = self.field(id, operand, field, false);
        self.set(id, if test { Type::Bool } else { kind });
    }

    fn field(&mut self, id: NodeId, operand: NodeId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_kind = self.kind(operand);
        let (target, was_optional) = match &operand_kind {
            Type::Optional(inner) => (inner.kind.clone(), true),
            other => (other.clone(), false),
        };
        let found = match &target {
            Type::Map(inner) => inner.1.kind.clone(),
            Type::Object(object) => {
                let fields = &object.fields;
                let kept = || fields.get(&kept_name(field)?);
                if let Some(declared) = fields.get(field).or_else(kept) {
                    declared.kind.clone()
                } else {
                    self.issue(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            }
            Type::Param(_) => {
                self.mapping
                    .assign(&[Type::Dyn], std::slice::from_ref(&target));
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.issue(id, message);
                Type::Dyn
            }
        };
        if was_optional || optional {
            Type::optional(found)
        } else {
            found
        }
    }

    fn call(&mut self, id: NodeId, function: &Arc<str>, target: Option<NodeId>, args: &[NodeId]) {
        if &**function == operators::OPTIONAL_SELECT {
            let field = match args.get(1).map(|field| self.ast.node(*field)) {
                Some(Node::Literal(Literal::Text(field))) => Arc::clone(field),
                _ => Arc::from(""),
            };
            self.set(args[1], Type::Text);
            let kind = self.field(id, args[0], &field, true);
            self.set(id, kind);
            return;
        }
        for arg in args {
            self.check(*arg);
        }
        let Some(target) = target else {
            match overloads_of(function) {
                None => self.undeclared(id, function),
                Some(overloads) => self.resolve(id, function, overloads, None, args),
            }
            return;
        };
        if let Some(prefix) = self.ast.qualified_name(target) {
            let name = format!("{prefix}.{function}");
            if let Some(overloads) = overloads_of(&name) {
                let node = Node::Call {
                    function: Arc::from(name.as_str()),
                    target: None,
                    args: args.to_vec(),
                };
                self.ast.replace(id, node);
                self.resolve(id, &name, overloads, None, args);
                return;
            }
        }
        self.check(target);
        match overloads_of(function) {
            None => self.undeclared(id, function),
            Some(overloads) => self.resolve(id, function, overloads, Some(target), args),
        }
    }

    fn resolve(
        &mut self,
        id: NodeId,
        function: &str,
        overloads: &'static [Overload],
        target: Option<NodeId>,
        args: &[NodeId],
    ) {
        if [operators::AND, operators::OR].contains(&function) {
            self.logical(id, overloads, args);
            return;
        }
        let given: Vec<NodeId> = target.iter().chain(args).copied().collect();
        let kinds: Vec<Type> = given.iter().map(|arg| self.kind(*arg)).collect();
        let mut result: Option<Type> = None;
        for overload in overloads {
            if overload.member != target.is_some() || overload.args.len() != kinds.len() {
                continue;
            }
            let first = self.mapping.fresh(overload.params);
            let wanted: Vec<Type> = overload.args.iter().map(|arg| arg.raised(first)).collect();
            if !self.mapping.assign(&kinds, &wanted) {
                continue;
            }
            self.overloads[id.index()].push(overload);
            let found = self
                .mapping
                .substitute(&overload.result.raised(first), false);
            result = Some(match result {
                None => found,
                Some(Type::Dyn) => Type::Dyn,
                Some(before) if found.same(&before) => before,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            self.set(id, result);
            return;
        }
        let shown: Vec<String> = kinds
            .iter()
            .map(|kind| self.mapping.substitute(kind, true).to_string())
            .collect();
        let applied = if target.is_some() {
            format!("{}.({})", shown[0], shown[1..].join(", "))
        } else {
            format!("({})", shown.join(", "))
        };
        let message = format!("found no matching overload for '{function}' applied to '{applied}'");
        self.issue(id, message);
        self.set(id, Type::Error);
    }

    /// `&&` and `||` say which of their terms is wrong.
    fn logical(&mut self, id: NodeId, overloads: &'static [Overload], args: &[NodeId]) {
        let mut right = true;
        for arg in args {
            let kind = self.kind(*arg);
            if !self.mapping.assign(from_ref(&kind), &[Type::Bool]) {
                self.mismatch(*arg, &Type::Bool, &kind);
                right = false;
            }
        }
        self.overloads[id.index()].extend(overloads);
        self.set(id, if right { Type::Bool } else { Type::Error });
    }

    /// What is good for two types. What does not fit together is anything.
    fn joined(&mut self, before: Option<Type>, kind: Type) -> Type {
        let Some(before) = before else { return kind };
        if self.mapping.assign(from_ref(&before), from_ref(&kind)) {
            return most_general(&before, &kind);
        }
        Type::Dyn
    }

    /// The type of a part that may be absent: `?a`.
    fn given(&mut self, id: NodeId, optional: bool) -> Type {
        self.check(id);
        let kind = self.kind(id);
        if !optional {
            return kind;
        }
        match &kind {
            Type::Optional(inner) => inner.kind.clone(),
            kind => {
                if !kind.is_dyn_or_error() {
                    self.mismatch(id, &Type::optional(kind.clone()), kind);
                }
                kind.clone()
            }
        }
    }

    fn list(&mut self, id: NodeId, elements: &[NodeId], optional: &[usize]) {
        let mut joined = None;
        for (index, element) in elements.iter().enumerate() {
            let kind = self.given(*element, optional.contains(&index));
            joined = Some(self.joined(joined, kind));
        }
        let element = joined.unwrap_or_else(|| Type::Param(self.mapping.fresh(1)));
        self.set(id, Type::list(element));
    }

    fn map(&mut self, id: NodeId, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let key = self.kind(entry.key);
            keys = Some(self.joined(keys, key));
            let value = self.given(entry.value, entry.optional);
            values = Some(self.joined(values, value));
        }
        let key = keys.unwrap_or_else(|| Type::Param(self.mapping.fresh(1)));
        let value = values.unwrap_or_else(|| Type::Param(self.mapping.fresh(1)));
        self.set(id, Type::map(key, value));
    }

    fn looped(&mut self, id: NodeId, inner: &Loop) {
        self.check(inner.range);
        let range = self.kind(inner.range);
        self.check(inner.init);
        let accumulated = self.types[inner.init.index()].clone();
        let outside = self.variables.len();
        self.variables
            .push((Arc::clone(&inner.accumulator), accumulated.clone()));
        let within = self.variables.len();
        let (first, second) = self.loop_kinds(inner, &range);
        self.variables.push((Arc::clone(&inner.variable), first));
        if let Some(name) = &inner.second {
            self.variables.push((Arc::clone(name), second));
        }
        self.check(inner.condition);
        self.assert(inner.condition, &Type::Bool);
        self.check(inner.step);
        self.assert(inner.step, &accumulated);
        self.variables.truncate(within);
        self.check(inner.result);
        self.variables.truncate(outside);
        let result = self.kind(inner.result);
        self.set(id, result);
    }

    /// The types of the variables of a loop over such a range.
    fn loop_kinds(&mut self, inner: &Loop, range: &Type) -> (Type, Type) {
        match range {
            Type::List(element) if inner.second.is_some() => (Type::Int, element.kind.clone()),
            Type::List(element) => (element.kind.clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.kind.clone(), entry.1.kind.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping
                    .assign(&[Type::Dyn], std::slice::from_ref(range));
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.issue(inner.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert(&mut self, id: NodeId, wanted: &Type) {
        let kind = self.kind(id);
        let wanted = self.mapping.substitute(wanted, false);
        if !self.mapping.assign(from_ref(&kind), from_ref(&wanted)) {
            self.mismatch(id, &wanted, &kind);
        }
    }
}

fn literal_kind(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::Text,
        Literal::Bytes(_) => Type::Bytes,
    }
}

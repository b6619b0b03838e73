//! How many steps an expression takes at most, as a server estimates it: from the largest values
//! that the schema allows. A server refuses a definition by these numbers, so its oddities are kept,
//! and each is named where it is.

mod amount;
mod functions;
mod path;

use std::sync::Arc;

use self::functions::{Estimate, Operand};
use self::path::{Path, Segment};
use super::ast::{Entry, Literal, Loop, Node, NodeId};
use super::check::Checked;
use super::operators;
use super::types::{Declared, Type};
use super::value::Value;
pub(crate) use amount::Amount;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

/// The keys of a map, which count as if they were empty.
static KEY: Declared = Declared {
    kind: Type::Text,
    max_elements: 0,
    min_bytes: 2,
    element: None,
};

/// The sizes of what a list or a map holds, where they are known from an expression.
#[derive(Debug, Clone, Copy)]
struct Entries {
    list: bool,
    key: Amount,
    value: Amount,
}

/// A variable of a loop.
#[derive(Debug)]
struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<Amount>,
    entries: Option<Entries>,
}

#[derive(Debug)]
struct Estimator<'a> {
    checked: &'a Checked,
    /// What the schema says of the value that the rule stands at.
    node: &'a Declared,
    locals: Vec<Local>,
    /// By node, as far as they are known.
    paths: Vec<Path>,
    sizes: Vec<Option<Amount>>,
    entries: Vec<Option<Entries>>,
}

/// The steps that an expression takes at most for a value of such a schema.
pub(crate) fn estimate(checked: &Checked, node: &Declared) -> u64 {
    let count = checked.ast.len();
    let mut estimator = Estimator {
        checked,
        node,
        locals: Vec::new(),
        paths: (0..count).map(|_| Path::default()).collect(),
        sizes: vec![None; count],
        entries: vec![None; count],
    };
    estimator.cost(checked.root).max
}

/// The steps that a call takes with these arguments.
pub(crate) fn actual(function: &str, overload: &str, member: bool, args: &[Value<'_>]) -> u64 {
    if functions::SCANS.contains(&function)
        && let Some(list @ Value::List(_)) = args.first()
    {
        return functions::walked(list);
    }
    let operands: Vec<Operand<'_>> = args.iter().map(functions::given).collect();
    let (target, args) = if member {
        (operands.first(), operands.get(1..).unwrap_or_default())
    } else {
        (None, &operands[..])
    };
    functions::estimate(function, overload, target, args)
        .cost
        .max
}

/// Whether what a call costs depends on its arguments.
pub(crate) fn varies(function: &str, overload: &str, arity: usize, member: bool) -> bool {
    let operands: Vec<Operand<'_>> = (0..arity).map(|_| functions::unknown()).collect();
    let (target, args) = if member {
        (operands.first(), operands.get(1..).unwrap_or_default())
    } else {
        (None, &operands[..])
    };
    functions::estimate(function, overload, target, args)
        .cost
        .max
        > 1
}

// === impl Estimator ===

impl<'a> Estimator<'a> {
    fn path(&self, id: NodeId) -> &Path {
        &self.paths[id.index()]
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn cost(&mut self, id: NodeId) -> Amount {
        let checked = self.checked;
        match checked.ast.node(id) {
            Node::Literal(_) => Amount::ZERO,
            Node::Ident(name) => {
                let local = self.local(name).map(|local| local.path.clone());
                let root = || Path::root(Arc::clone(name));
                self.paths[id.index()] = local.unwrap_or_else(root);
                Amount::fixed(1)
            }
            Node::Select {
                operand,
                field,
                test,
            } => self.select(id, *operand, field, *test),
            Node::Call {
                function,
                target,
                args,
            } => self.call(id, function, *target, args),
            Node::List { elements, .. } => self.list(id, elements),
            Node::Map(entries) => self.map(id, entries),
            Node::Message(_) => Amount::fixed(MESSAGE_COST),
            Node::Loop(inner) => self.looped(id, inner),
        }
    }

    fn select(&mut self, id: NodeId, operand: NodeId, field: &Arc<str>, test: bool) -> Amount {
        let mut cost = self.cost(operand);
        // To ask whether a member is there is free.
        if test {
            return cost;
        }
        if matches!(self.checked.kind(operand), Type::Map(_) | Type::Object(_)) {
            cost = cost + Amount::fixed(1);
        }
        self.paths[id.index()] = self.path(operand).join(Segment::Field(Arc::clone(field)));
        cost
    }

    fn list(&mut self, id: NodeId, elements: &[NodeId]) -> Amount {
        let mut cost = Amount::fixed(LIST_COST);
        let mut value = None;
        for element in elements {
            cost = cost + self.cost(*element);
            let size = self.size_or_unknown(*element);
            value = Some(size.union(value.unwrap_or(size)));
        }
        self.entries[id.index()] = Some(Entries {
            list: true,
            key: Amount::fixed(1),
            value: value.unwrap_or(Amount::ZERO),
        });
        cost
    }

    fn map(&mut self, id: NodeId, entries: &[Entry]) -> Amount {
        let mut cost = Amount::fixed(MAP_COST);
        let mut sizes = None;
        for entry in entries {
            cost = cost + self.cost(entry.key) + self.cost(entry.value);
            let key = self.size_or_unknown(entry.key);
            let value = self.size_or_unknown(entry.value);
            let (keys, values) = sizes.unwrap_or((key, value));
            sizes = Some((key.union(keys), value.union(values)));
        }
        let (key, value) = sizes.unwrap_or((Amount::ZERO, Amount::ZERO));
        self.entries[id.index()] = Some(Entries {
            list: false,
            key,
            value,
        });
        cost
    }

    /// An argument, as it is once its cost is known.
    fn operand(&mut self, id: NodeId) -> Operand<'a> {
        let checked = self.checked;
        let size = self.size(id);
        let mut path = self.path(id).segments();
        let element = if path.is_empty() {
            None
        } else {
            path.push(Segment::Items);
            self.declared_size(&path)
        };
        let literal = match checked.ast.node(id) {
            Node::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        };
        Operand {
            kind: checked.kind(id),
            size,
            element,
            literal,
        }
    }

    fn call(
        &mut self,
        id: NodeId,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> Amount {
        let checked = self.checked;
        if function == "dyn"
            && let [arg] = args
        {
            let cost = self.cost(*arg);
            self.sizes[id.index()] = self.size(*arg);
            self.entries[id.index()] = self.entries_of(*arg);
            return cost + Amount::fixed(1);
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            operands.push(self.operand(*arg));
        }
        let mut cost = Amount::ZERO;
        let mut receiver = None;
        if let Some(target) = target {
            cost = self.cost(target);
            receiver = Some(self.operand(target));
        }
        let mut own: Option<Amount> = None;
        let mut size: Option<Amount> = None;
        let overloads = checked.overloads(id);
        // Members of optional values have no overload that could be looked up.
        let ids = overloads.iter().map(|overload| overload.id);
        let ids: Vec<&str> = if overloads.is_empty() {
            vec![operators::OPTIONAL_SELECT]
        } else {
            ids.collect()
        };
        for overload in ids {
            let estimate = functions::estimate(function, overload, receiver.as_ref(), &operands);
            let added = self.with_args(id, overload, &estimate, args, &costs);
            own = Some(own.map_or(added, |own| own.union(added)));
            if let Some(found) = estimate.size {
                size = Some(size.map_or(found, |size| size.union(found)));
            }
            match overload {
                "index_list" => {
                    size = self.entries_of(args[0]).map(|entries| entries.value);
                    self.paths[id.index()] = self.path(args[0]).join(Segment::Items);
                }
                "index_map" => {
                    size = self.entries_of(args[0]).map(|entries| entries.value);
                    self.paths[id.index()] = self.path(args[0]).join(Segment::Values);
                }
                _ => {}
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        self.sizes[id.index()] = size;
        cost + own.unwrap_or(Amount::ZERO)
    }

    /// The cost of a call with that of its arguments, some of which it may not look at.
    fn with_args(
        &mut self,
        id: NodeId,
        overload: &str,
        estimate: &Estimate,
        args: &[NodeId],
        costs: &[Amount],
    ) -> Amount {
        match (overload, costs) {
            ("logical_and" | "logical_or", [left, right]) => Amount {
                min: left.min,
                max: (*left + *right).max,
            },
            ("conditional", [condition, first, second]) => {
                self.join_entries(id, args[1], args[2]);
                *condition + first.union(*second)
            }
            _ => {
                if overload.starts_with("add_") && args.len() == 2 {
                    self.join_entries(id, args[0], args[1]);
                }
                let args = costs.iter().fold(Amount::ZERO, |sum, cost| sum + *cost);
                estimate.cost + args
            }
        }
    }

    fn join_entries(&mut self, id: NodeId, one: NodeId, two: NodeId) {
        if let (Some(one), Some(two)) = (self.entries_of(one), self.entries_of(two)) {
            self.entries[id.index()] = Some(Entries {
                list: one.list,
                key: one.key.union(two.key),
                value: one.value.union(two.value),
            });
        }
    }

    fn looped(&mut self, id: NodeId, inner: &Loop) -> Amount {
        if self.is_binding(inner) {
            return self.binding(id, inner);
        }
        let mut cost = self.cost(inner.range) + self.cost(inner.init);
        self.push_accumulator(inner);
        let within = self.locals.len();
        self.push_variables(inner);
        let condition = self.cost(inner.condition);
        let step = self.cost(inner.step);
        self.locals.truncate(within);
        cost = cost + self.cost(inner.result);
        self.locals.truncate(within - 1);
        // Only now: what the body did to shared paths changes what the range is taken for.
        let rounds = self.size_or_unknown(inner.range);
        cost = cost + rounds * (condition + step);
        match self.checked.ast.node(inner.init) {
            Node::Literal(_) => self.sizes[id.index()] = self.size(inner.init),
            Node::List { .. } | Node::Map(_) => {
                self.sizes[id.index()] = Some(rounds);
                self.entries[id.index()] = self.entries_of(inner.step);
            }
            _ => {}
        }
        cost
    }

    /// A loop without rounds, which only gives a value a name.
    fn is_binding(&self, inner: &Loop) -> bool {
        let ast = &self.checked.ast;
        matches!(ast.node(inner.range), Node::List { elements, .. } if elements.is_empty())
            && matches!(
                ast.node(inner.condition),
                Node::Literal(Literal::Bool(false))
            )
    }

    fn binding(&mut self, id: NodeId, inner: &Loop) -> Amount {
        let range = self.cost(inner.range);
        let init = self.cost(inner.init);
        let outside = self.locals.len();
        self.push_accumulator(inner);
        let result = self.cost(inner.result);
        self.locals.truncate(outside);
        self.sizes[id.index()] = self.size(inner.result);
        self.entries[id.index()] = self.entries_of(inner.result);
        range + init + result
    }

    fn push_accumulator(&mut self, inner: &Loop) {
        let local = Local {
            name: Arc::clone(&inner.accumulator),
            path: self.path(inner.init).clone(),
            size: self.size(inner.init),
            entries: self.entries_of(inner.init),
        };
        self.locals.push(local);
    }

    fn push_variables(&mut self, inner: &Loop) {
        let entries = self.entries_of(inner.range);
        let list = match entries {
            Some(entries) => entries.list,
            None => matches!(self.checked.kind(inner.range), Type::List(_)),
        };
        let segments = match (list, inner.second.is_some()) {
            (true, false) => [Segment::Items, Segment::Items],
            (true, true) => [Segment::Indices, Segment::Items],
            (false, _) => [Segment::Keys, Segment::Values],
        };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let first = if list && inner.second.is_none() {
            value
        } else {
            key
        };
        let names = [Some(&inner.variable), inner.second.as_ref()];
        for ((name, segment), size) in names.into_iter().zip(segments).zip([first, value]) {
            let Some(name) = name else { continue };
            let path = self.path(inner.range).join(segment);
            self.locals.push(Local {
                name: Arc::clone(name),
                path,
                size,
                entries: None,
            });
        }
    }

    fn entries_of(&self, id: NodeId) -> Option<Entries> {
        self.entries[id.index()].or_else(|| match self.checked.ast.node(id) {
            Node::Ident(name) => self.local(name)?.entries,
            _ => None,
        })
    }

    fn size_or_unknown(&mut self, id: NodeId) -> Amount {
        self.size(id).unwrap_or(Amount::UNKNOWN)
    }

    /// How large the value of an expression is, if that is known.
    fn size(&mut self, id: NodeId) -> Option<Amount> {
        if let Some(size) = self.sizes[id.index()] {
            return Some(size);
        }
        let checked = self.checked;
        let own = match checked.ast.node(id) {
            Node::Literal(Literal::Text(text)) => Some(text.chars().count()),
            Node::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Node::Literal(_) => Some(1),
            Node::List { elements, .. } => Some(elements.len()),
            Node::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(own) = own {
            return Some(Amount::fixed(own as u64));
        }
        if let Some(size) = self.declared_size(&self.path(id).segments()) {
            self.sizes[id.index()] = Some(size);
            return Some(size);
        }
        let kind = match checked.kind(id) {
            Type::Optional(inner) => &inner.kind,
            kind => kind,
        };
        if kind.is_single() {
            return Some(Amount::fixed(1));
        }
        match checked.ast.node(id) {
            Node::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// What the schema says about the size of what stands at a path.
    fn declared_size(&self, segments: &[Segment]) -> Option<Amount> {
        // The first segment is passed over, whatever it is: each root is taken for `self`.
        let (_, segments) = segments.split_first()?;
        let mut node = self.node;
        for segment in segments {
            node = match segment {
                Segment::Items | Segment::Values => node.element.as_deref()?,
                Segment::Keys if matches!(node.kind, Type::Map(_)) => &KEY,
                Segment::Keys | Segment::Indices => return None,
                Segment::Field(name) => match &node.kind {
                    Type::Object(object) => object.fields.get(&**name)?,
                    _ => return None,
                },
            };
        }
        Some(Amount {
            min: 0,
            max: node.max_elements,
        })
    }
}

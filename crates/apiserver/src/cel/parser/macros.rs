//! Calls that stand for something longer: loops, mostly.

use std::sync::Arc;

use super::Parser;
use crate::cel::ast::{Literal, Loop, Node, NodeId};
use crate::cel::operators::{self, ACCUMULATOR};

const NOT_SIMPLE: &str = "argument must be a simple name";
const NO_NAME: &str = "argument is not an identifier";

/// The variable of a loop that has no rounds: it only names a value.
const UNUSED: &str = "#unused";

/// Macros that copy do not go on in trees that are larger than this.
const MAX_NODES: usize = 200_000;

/// The list that `sortBy` sorts.
const SORTED: &str = "@__sortBy_input__";

/// The parts of a loop that macros differ in.
#[derive(Clone, Copy)]
struct Parts {
    init: NodeId,
    condition: NodeId,
    step: NodeId,
    result: NodeId,
}

/// The variables of a loop.
struct Variables {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

// === impl Parser ===

impl Parser {
    pub(super) fn global_call(&mut self, at: u32, function: &str, args: Vec<NodeId>) -> NodeId {
        if function == "has" && args.len() == 1 {
            if let Node::Select {
                operand,
                field,
                test: false,
            } = self.ast.node(args[0]).clone()
            {
                let test = true;
                return self.ast.add(
                    at,
                    Node::Select {
                        operand,
                        field,
                        test,
                    },
                );
            }
            return self.wrong(args[0], "invalid argument to has() macro");
        }
        self.call(at, function, args)
    }

    pub(super) fn member_call(
        &mut self,
        at: u32,
        function: &str,
        target: NodeId,
        args: Vec<NodeId>,
    ) -> NodeId {
        match (function, args.len()) {
            ("all" | "exists" | "exists_one" | "map" | "filter", 2)
            | ("map" | "all" | "exists" | "existsOne" | "exists_one", 3)
            | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                self.looped(at, function, target, &args)
            }
            ("optMap", 2) => self.opt_map(at, target, &args, false),
            ("optFlatMap", 2) => self.opt_map(at, target, &args, true),
            ("sortBy", 2) => self.sort_by(at, target, &args),
            _ => self.method(at, function, target, args),
        }
    }

    fn method(&mut self, at: u32, function: &str, target: NodeId, args: Vec<NodeId>) -> NodeId {
        let node = Node::Call {
            function: Arc::from(function),
            target: Some(target),
            args,
        };
        self.ast.add(at, node)
    }

    fn wrong(&mut self, at: NodeId, message: &str) -> NodeId {
        let offset = self.ast.offset(at);
        self.issue(offset, message);
        self.nothing(offset)
    }

    fn ident(&mut self, at: u32, name: &str) -> NodeId {
        self.ast.add(at, Node::Ident(Arc::from(name)))
    }

    fn accumulator(&mut self, at: u32) -> NodeId {
        self.ident(at, ACCUMULATOR)
    }

    fn list_of(&mut self, at: u32, elements: Vec<NodeId>) -> NodeId {
        let optional = Vec::new();
        self.ast.add(at, Node::List { elements, optional })
    }

    fn simple_name(&self, arg: NodeId) -> Option<Arc<str>> {
        match self.ast.node(arg) {
            Node::Ident(name) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    /// The variables that the first arguments name. The error is a node that stands for it.
    fn variables(&mut self, function: &str, args: &[NodeId]) -> Result<Variables, NodeId> {
        let single = match (function, args.len()) {
            ("map", _) | (_, 2) => true,
            (_, _) => false,
        };
        let why = if ["map", "filter"].contains(&function) {
            NO_NAME
        } else {
            NOT_SIMPLE
        };
        let Some(first) = self.simple_name(args[0]) else {
            return Err(self.wrong(args[0], why));
        };
        if single {
            return Ok(Variables {
                first,
                second: None,
            });
        }
        let Some(second) = self.simple_name(args[1]) else {
            return Err(self.wrong(args[1], why));
        };
        if first == second {
            let message = format!("duplicate variable name: {first}");
            return Err(self.wrong(args[1], &message));
        }
        let second = Some(second);
        Ok(Variables { first, second })
    }

    fn looped(&mut self, at: u32, function: &str, range: NodeId, args: &[NodeId]) -> NodeId {
        let variables = match self.variables(function, args) {
            Ok(variables) => variables,
            Err(wrong) => return wrong,
        };
        let body = &args[if variables.second.is_some() { 2 } else { 1 }..];
        let parts = match function {
            "all" => self.quantifier(at, true, body[0]),
            "exists" => self.quantifier(at, false, body[0]),
            "exists_one" | "existsOne" => self.one(at, body[0]),
            "transformMap" | "transformMapEntry" => {
                self.map_builder(at, function, &variables, body)
            }
            _ => self.list_builder(at, args[0], body, function == "filter"),
        };
        self.loop_of(at, range, variables, parts)
    }

    fn loop_of(&mut self, at: u32, range: NodeId, variables: Variables, parts: Parts) -> NodeId {
        let Parts {
            init,
            condition,
            step,
            result,
        } = parts;
        let Variables { first, second } = variables;
        let node = Node::Loop(Box::new(Loop {
            range,
            variable: first,
            second,
            accumulator: Arc::from(ACCUMULATOR),
            init,
            condition,
            step,
            result,
        }));
        self.ast.add(at, node)
    }

    fn quantifier(&mut self, at: u32, all: bool, body: NodeId) -> Parts {
        let init = self.literal(at, Literal::Bool(all));
        let mut going = self.accumulator(at);
        if !all {
            going = self.call(at, operators::NOT, vec![going]);
        }
        let condition = self.call(at, operators::NOT_STRICTLY_FALSE, vec![going]);
        let so_far = self.accumulator(at);
        let function = if all { operators::AND } else { operators::OR };
        let step = self.call(at, function, vec![so_far, body]);
        let result = self.accumulator(at);
        Parts {
            init,
            condition,
            step,
            result,
        }
    }

    fn one(&mut self, at: u32, body: NodeId) -> Parts {
        let init = self.literal(at, Literal::Int(0));
        let condition = self.literal(at, Literal::Bool(true));
        let (count, one) = (self.accumulator(at), self.literal(at, Literal::Int(1)));
        let more = self.call(at, operators::ADD, vec![count, one]);
        let same = self.accumulator(at);
        let step = self.call(at, operators::CONDITIONAL, vec![body, more, same]);
        let (count, one) = (self.accumulator(at), self.literal(at, Literal::Int(1)));
        let result = self.call(at, operators::EQUALS, vec![count, one]);
        Parts {
            init,
            condition,
            step,
            result,
        }
    }

    /// `map`, `filter` and `transformList`: a condition may stand before what is added.
    fn list_builder(&mut self, at: u32, element: NodeId, body: &[NodeId], filter: bool) -> Parts {
        let (condition, added) = match body {
            [test] if filter => (Some(*test), element),
            [test, added, ..] => (Some(*test), *added),
            _ => (None, body[0]),
        };
        let init = self.list_of(at, Vec::new());
        let so_far = self.accumulator(at);
        let added = self.list_of(at, vec![added]);
        let step = self.call(at, operators::ADD, vec![so_far, added]);
        self.builder(at, init, condition, step)
    }

    fn map_builder(
        &mut self,
        at: u32,
        function: &str,
        variables: &Variables,
        body: &[NodeId],
    ) -> Parts {
        let (condition, added) = match body {
            [test, added, ..] => (Some(*test), *added),
            _ => (None, body[0]),
        };
        let init = self.ast.add(at, Node::Map(Vec::new()));
        let mut args = vec![self.accumulator(at)];
        if function == "transformMap" {
            args.push(self.ident(at, &variables.first));
        }
        args.push(added);
        let step = self.call(at, operators::MAP_INSERT, args);
        self.builder(at, init, condition, step)
    }

    fn builder(&mut self, at: u32, init: NodeId, test: Option<NodeId>, step: NodeId) -> Parts {
        let condition = self.literal(at, Literal::Bool(true));
        let step = match test {
            None => step,
            Some(test) => {
                let same = self.accumulator(at);
                self.call(at, operators::CONDITIONAL, vec![test, step, same])
            }
        };
        let result = self.accumulator(at);
        Parts {
            init,
            condition,
            step,
            result,
        }
    }

    /// Names a value for an expression.
    fn bound(&mut self, at: u32, name: &str, value: NodeId, body: NodeId) -> NodeId {
        let range = self.list_of(at, Vec::new());
        let condition = self.literal(at, Literal::Bool(false));
        let step = self.ident(at, name);
        let node = Node::Loop(Box::new(Loop {
            range,
            variable: Arc::from(UNUSED),
            second: None,
            accumulator: Arc::from(name),
            init: value,
            condition,
            step,
            result: body,
        }));
        self.ast.add(at, node)
    }

    fn opt_map(&mut self, at: u32, target: NodeId, args: &[NodeId], flat: bool) -> NodeId {
        let Some(name) = self.simple_name(args[0]) else {
            let function = if flat { "optFlatMap" } else { "optMap" };
            let message = format!("{function}() variable name must be a simple identifier");
            return self.wrong(args[0], &message);
        };
        // Each such macro doubles what stands in front of it.
        if self.ast.len() > MAX_NODES {
            return self.wrong(target, "expression is too large");
        }
        let again = self.ast.copy(target);
        let there = self.method(at, "hasValue", target, Vec::new());
        let held = self.method(at, "value", again, Vec::new());
        let mut made = self.bound(at, &name, held, args[1]);
        if !flat {
            made = self.call(at, "optional.of", vec![made]);
        }
        let none = self.call(at, "optional.none", Vec::new());
        self.call(at, operators::CONDITIONAL, vec![there, made, none])
    }

    fn sort_by(&mut self, at: u32, target: NodeId, args: &[NodeId]) -> NodeId {
        if matches!(self.ast.node(target), Node::Literal(_) | Node::Map(_)) {
            let why = "sortBy can only be applied to a list, identifier, comprehension, call or \
                       select expression";
            return self.wrong(target, why);
        }
        let range = self.ident(at, SORTED);
        let keys = self.looped(at, "map", range, args);
        let sorted = self.ident(at, SORTED);
        let made = self.method(at, operators::SORT_BY_KEYS, sorted, vec![keys]);
        self.bound(at, SORTED, target, made)
    }
}

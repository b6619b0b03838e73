//! An expression that can be evaluated.

use super::ast::{Ast, Literal, Node, NodeId};
use super::check::Checked;
use super::library::{Function, function_of};
use super::{cost, operators};
use crate::pattern::Pattern;

/// An expression with what its calls do.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) ast: Ast,
    pub(super) root: NodeId,
    /// By node.
    pub(super) steps: Vec<Step>,
    /// The nodes on the longest way from the root to a leaf.
    height: usize,
}

/// How a node is evaluated, if it is a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    None,
    And,
    Or,
    Conditional,
    NotStrictlyFalse,
    Index,
    OptionalIndex,
    OptionalSelect,
    MapInsert,
    /// Adds to what a loop has gathered.
    Grow(Function),
    Call {
        function: Function,
        /// The way that is called, if its cost depends on the arguments.
        overload: Option<&'static str>,
    },
}

// === impl Program ===

impl Program {
    /// # Errors
    ///
    /// A part that is always the same has no value.
    pub(crate) fn new(checked: Checked) -> Result<Self, String> {
        let count = checked.ast.len();
        let mut steps = vec![Step::None; count];
        let mut heights = vec![0usize; count];
        for (id, node) in checked.ast.ids().zip(checked.ast.nodes()) {
            // The parts of a node come before it.
            let parts = checked.ast.parts(id);
            let height = parts.iter().map(|part| heights[part.index()]).max();
            heights[id.index()] = height.unwrap_or_default() + 1;
            if let Node::Call {
                function,
                target,
                args,
            } = node
            {
                constant_problem(&checked.ast, function, args)?;
                let arity = args.len() + usize::from(target.is_some());
                steps[id.index()] = step(&checked, id, function, arity, target.is_some(), args);
            }
        }
        let root = checked.root;
        Ok(Self {
            height: heights[root.index()],
            ast: checked.into_ast(),
            root,
            steps,
        })
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }
}

fn step(
    checked: &Checked,
    id: NodeId,
    name: &str,
    arity: usize,
    member: bool,
    args: &[NodeId],
) -> Step {
    match name {
        operators::AND => return Step::And,
        operators::OR => return Step::Or,
        operators::CONDITIONAL => return Step::Conditional,
        operators::NOT_STRICTLY_FALSE => return Step::NotStrictlyFalse,
        operators::INDEX => return Step::Index,
        operators::OPTIONAL_INDEX => return Step::OptionalIndex,
        operators::OPTIONAL_SELECT => return Step::OptionalSelect,
        operators::MAP_INSERT => return Step::MapInsert,
        _ => {}
    }
    let Some(function) = function_of(name) else {
        return Step::None;
    };
    let first = args.first().map(|arg| checked.ast.node(*arg));
    let grows = matches!(first, Some(Node::Ident(name)) if &**name == operators::ACCUMULATOR);
    if name == operators::ADD && grows {
        return Step::Grow(function);
    }
    let overloads = checked.overloads(id).iter().map(|overload| overload.id);
    let mut varying = overloads.filter(|overload| cost::varies(name, overload, arity, member));
    Step::Call {
        function,
        overload: varying.next(),
    }
}

/// Patterns that stand in an expression are read once, before anything is evaluated.
fn constant_problem(ast: &Ast, function: &str, args: &[NodeId]) -> Result<(), String> {
    if !["find", "findAll"].contains(&function) {
        return Ok(());
    }
    match args.first().map(|arg| ast.node(*arg)) {
        Some(Node::Literal(Literal::Text(text))) => Pattern::new(text).map(|_| ()),
        _ => Ok(()),
    }
}

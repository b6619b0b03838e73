//! The tree of an expression. The nodes lie in one list, so that a tree is compact, is dropped
//! without recursion, and what a later step finds out about a node lies in a list beside it.

use std::sync::Arc;

/// A node's place in the list of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// An expression.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    nodes: Vec<Node>,
    /// Where in the source each node stands, in characters.
    offsets: Vec<u32>,
    root: Option<NodeId>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: NodeId,
        field: Arc<str>,
        /// `has(a.b)`: only whether it is there.
        test: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<NodeId>,
        args: Vec<NodeId>,
    },
    List {
        elements: Vec<NodeId>,
        /// The places of `[?a]`.
        optional: Vec<usize>,
    },
    Map(Vec<Entry>),
    /// `a.B{}`: there are no such types, but they are read so that the message is right.
    Message(Arc<str>),
    Loop(Box<Loop>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: NodeId,
    pub(crate) value: NodeId,
    pub(crate) optional: bool,
    pub(crate) offset: u32,
}

/// What a macro such as `all` stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    pub(crate) range: NodeId,
    pub(crate) variable: Arc<str>,
    pub(crate) second: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: NodeId,
    pub(crate) condition: NodeId,
    pub(crate) step: NodeId,
    pub(crate) result: NodeId,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

// === impl NodeId ===

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Ast ===

impl Ast {
    pub(crate) fn add(&mut self, offset: u32, node: Node) -> NodeId {
        // A source has at most 100,000 characters, and a macro adds a few nodes for each.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.offsets.push(offset);
        id
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn replace(&mut self, id: NodeId, node: Node) {
        self.nodes[id.index()] = node;
    }

    pub(crate) fn offset(&self, id: NodeId) -> u32 {
        self.offsets[id.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn set_root(&mut self, root: NodeId) {
        self.root = Some(root);
    }

    /// The whole expression. None for a tree that could not be read.
    pub(crate) fn root(&self) -> Option<NodeId> {
        self.root
    }

    /// Adds a second tree that is equal to the one of a node.
    pub(crate) fn copy(&mut self, id: NodeId) -> NodeId {
        let node = match self.node(id).clone() {
            leaf @ (Node::Literal(_) | Node::Ident(_) | Node::Message(_)) => leaf,
            Node::Select {
                operand,
                field,
                test,
            } => Node::Select {
                operand: self.copy(operand),
                field,
                test,
            },
            Node::Call {
                function,
                target,
                args,
            } => Node::Call {
                function,
                target: target.map(|target| self.copy(target)),
                args: args.into_iter().map(|arg| self.copy(arg)).collect(),
            },
            Node::List { elements, optional } => Node::List {
                elements: elements.into_iter().map(|one| self.copy(one)).collect(),
                optional,
            },
            Node::Map(entries) => Node::Map(
                entries
                    .into_iter()
                    .map(|entry| Entry {
                        key: self.copy(entry.key),
                        value: self.copy(entry.value),
                        ..entry
                    })
                    .collect(),
            ),
            Node::Loop(inner) => Node::Loop(Box::new(Loop {
                range: self.copy(inner.range),
                init: self.copy(inner.init),
                condition: self.copy(inner.condition),
                step: self.copy(inner.step),
                result: self.copy(inner.result),
                ..*inner
            })),
        };
        let offset = self.offset(id);
        self.add(offset, node)
    }

    /// The name that an expression is, if it is one: `a.b.c`.
    pub(crate) fn qualified_name(&self, id: NodeId) -> Option<String> {
        match self.node(id) {
            Node::Ident(name) => Some(name.to_string()),
            Node::Select {
                operand,
                field,
                test: false,
            } => {
                let mut name = self.qualified_name(*operand)?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            Node::Literal(_)
            | Node::Select { .. }
            | Node::Call { .. }
            | Node::List { .. }
            | Node::Map(_)
            | Node::Message(_)
            | Node::Loop(_) => None,
        }
    }

    /// Every node, in no order that means something.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        let count = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        (0..count).map(NodeId)
    }

    /// The nodes that a node is made of.
    pub(crate) fn parts(&self, id: NodeId) -> Vec<NodeId> {
        match self.node(id) {
            Node::Literal(_) | Node::Ident(_) | Node::Message(_) => Vec::new(),
            Node::Select { operand, .. } => vec![*operand],
            Node::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
            Node::List { elements, .. } => elements.clone(),
            Node::Map(entries) => {
                let pairs = entries.iter().map(|entry| [entry.key, entry.value]);
                pairs.flatten().collect()
            }
            Node::Loop(inner) => vec![
                inner.range,
                inner.init,
                inner.condition,
                inner.step,
                inner.result,
            ],
        }
    }
}

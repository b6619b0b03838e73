//! What is checked of literals once the types fit.

use super::Checked;
use crate::cel::ast::{Literal, Node, NodeId};
use crate::cel::source::Issue;
use crate::cel::types::Type;
use crate::cel::{format_string, times};
use crate::pattern::Pattern;

/// Calls whose lists can mix types.
const MIXING: &str = "format";

struct Walk<'a> {
    checked: &'a Checked,
    issues: Vec<Issue>,
}

pub(super) fn issues(checked: &Checked) -> Vec<Issue> {
    let mut walk = Walk {
        checked,
        issues: Vec::new(),
    };
    walk.visit(checked.root, false);
    walk.issues
}

// === impl Walk ===

impl Walk<'_> {
    fn issue(&mut self, at: NodeId, message: String) {
        let offset = self.checked.ast.offset(at);
        self.issues.push(Issue { offset, message });
    }

    fn visit(&mut self, id: NodeId, mixing: bool) {
        let checked = self.checked;
        match checked.ast.node(id) {
            Node::Literal(_) | Node::Ident(_) | Node::Message(_) => {}
            Node::Select { operand, .. } => self.visit(*operand, mixing),
            Node::Call {
                function,
                target,
                args,
            } => {
                self.call(function, *target, args);
                let mixing = mixing || &**function == MIXING;
                for inner in target.iter().chain(args) {
                    self.visit(*inner, mixing);
                }
            }
            Node::List { elements, optional } => {
                for inner in elements {
                    self.visit(*inner, mixing);
                }
                if !mixing {
                    let kinds = elements.iter().enumerate().map(|(index, element)| {
                        let kind = checked.kind(*element);
                        (*element, held(kind, optional.contains(&index)))
                    });
                    self.alike(kinds);
                }
            }
            Node::Map(entries) => {
                for entry in entries {
                    self.visit(entry.key, mixing);
                    self.visit(entry.value, mixing);
                }
                if !mixing {
                    let keys = entries
                        .iter()
                        .map(|entry| (entry.key, checked.kind(entry.key)));
                    self.alike(keys);
                    let values = entries.iter().map(|entry| {
                        let kind = checked.kind(entry.value);
                        (entry.value, held(kind, entry.optional))
                    });
                    self.alike(values);
                }
            }
            Node::Loop(inner) => {
                for part in [
                    inner.range,
                    inner.init,
                    inner.condition,
                    inner.step,
                    inner.result,
                ] {
                    self.visit(part, mixing);
                }
            }
        }
    }

    /// Reports the first that has another type than those before it.
    fn alike<'a>(&mut self, mut kinds: impl Iterator<Item = (NodeId, &'a Type)>) {
        let Some((_, wanted)) = kinds.next() else {
            return;
        };
        if let Some((id, kind)) = kinds.find(|(_, kind)| !kind.same(wanted)) {
            self.issue(id, format!("expected type '{wanted}' but found '{kind}'"));
        }
    }

    fn call(&mut self, function: &str, target: Option<NodeId>, args: &[NodeId]) {
        let Some(first) = args.first().copied() else {
            return;
        };
        let text = match self.checked.ast.node(first) {
            Node::Literal(Literal::Text(text)) => Some(text),
            _ => None,
        };
        let wrong = match (function, text) {
            ("duration", Some(text)) => times::duration(text).is_none(),
            ("timestamp", Some(text)) => times::timestamp(text).is_none(),
            ("matches", Some(text)) => Pattern::new(text).is_err(),
            (MIXING, _) => {
                self.format(target, first);
                false
            }
            _ => false,
        };
        if wrong {
            self.issue(first, format!("invalid {function} argument"));
        }
    }

    /// Holds a literal format against the literal list of its arguments.
    fn format(&mut self, target: Option<NodeId>, list: NodeId) {
        let checked = self.checked;
        let Some(Node::Literal(Literal::Text(text))) = target.map(|id| checked.ast.node(id)) else {
            return;
        };
        let Node::List { elements, .. } = checked.ast.node(list) else {
            return;
        };
        let kinds: Vec<&Type> = elements.iter().map(|id| checked.kind(*id)).collect();
        match format_string::problem(text, &kinds) {
            None => {}
            Some(format_string::Problem::Text(why)) => {
                if let Some(target) = target {
                    self.issue(target, why);
                }
            }
            Some(format_string::Problem::Argument(index, why)) => {
                self.issue(elements[index], why);
            }
        }
    }
}

fn held(kind: &Type, optional: bool) -> &Type {
    match kind {
        Type::Optional(inner) if optional => &inner.kind,
        kind => kind,
    }
}

//! Names, literals, lists and maps.

use std::sync::Arc;

use super::literals::positive;
use super::{EXPRESSION_STARTS, KEYWORDS, Parser, RESERVED, Read};
use crate::cel::ast::{Entry, Literal, Node, NodeId};
use crate::cel::lexer::TokenKind;

impl Parser {
    pub(super) fn primary(&mut self) -> Read<NodeId> {
        let token = self.peek().clone();
        let offset = token.offset;
        if let Some(number) = positive(&token.kind) {
            self.next();
            return Ok(self.number_or_issue(offset, number));
        }
        match token.kind {
            TokenKind::Text(text) => {
                self.next();
                Ok(self.literal(offset, Literal::Text(Arc::from(text))))
            }
            TokenKind::Bytes(bytes) => {
                self.next();
                Ok(self.literal(offset, Literal::Bytes(Arc::from(bytes))))
            }
            TokenKind::Ident(word) if word != "in" => {
                self.next();
                self.named(offset, &word)
            }
            TokenKind::Quoted(_) => {
                self.next();
                self.issue(offset, "unsupported syntax: '`'");
                Ok(self.nothing(offset))
            }
            TokenKind::Sign("(") => {
                self.next();
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Sign("[") => {
                self.next();
                self.list(offset)
            }
            TokenKind::Sign("{") => {
                self.next();
                self.map(offset)
            }
            // A dot in front says that the name is a whole one, which every name is here.
            TokenKind::Sign(".") => {
                self.next();
                match self.peek().kind.clone() {
                    TokenKind::Ident(word) if !KEYWORDS.contains(&word.as_str()) => {
                        let offset = self.next().offset;
                        self.named(offset, &word)
                    }
                    _ => self.mismatched("IDENTIFIER"),
                }
            }
            _ => self.no_expression(),
        }
    }

    /// Something else stands where an expression is expected. One word too many is passed.
    fn no_expression(&mut self) -> Read<NodeId> {
        let (found, offset) = (self.shown_token(), self.peek().offset);
        let next = self.tokens.get(self.position + 1);
        let goes_on = next.is_some_and(|token| match &token.kind {
            TokenKind::Sign(sign) => ["[", "{", "(", ".", "-", "!"].contains(sign),
            TokenKind::Ident(word) => word != "in",
            TokenKind::End => false,
            _ => true,
        });
        if !goes_on || self.issues.len() > 1 {
            return self.mismatched(EXPRESSION_STARTS);
        }
        let message =
            format!("Syntax error: extraneous input '{found}' expecting {EXPRESSION_STARTS}");
        self.issue(offset, message);
        self.next();
        self.primary()
    }

    /// A word that was read: a literal, a variable or a function.
    fn named(&mut self, offset: u32, word: &str) -> Read<NodeId> {
        let literal = match word {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            return Ok(self.literal(offset, literal));
        }
        let reserved = RESERVED.contains(&word);
        if reserved {
            self.issue(offset, format!("reserved identifier: {word}"));
        }
        if let Some(open) = self.accept("(") {
            let args = self.arguments(")")?;
            return Ok(if reserved {
                self.nothing(offset)
            } else {
                self.global_call(open, word, args)
            });
        }
        Ok(if reserved {
            self.nothing(offset)
        } else {
            self.ast.add(offset, Node::Ident(Arc::from(word)))
        })
    }

    fn list(&mut self, offset: u32) -> Read<NodeId> {
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        while self.accept("]").is_none() {
            if self.accept("?").is_some() {
                optional.push(elements.len());
            }
            elements.push(self.expression()?);
            if self.accept(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        let node = Node::List { elements, optional };
        Ok(self.ast.add(offset, node))
    }

    fn map(&mut self, offset: u32) -> Read<NodeId> {
        let mut entries = Vec::new();
        while self.accept("}").is_none() {
            let optional = self.accept("?").is_some();
            let key = self.expression()?;
            let offset = self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry {
                key,
                value,
                optional,
                offset,
            });
            if self.accept(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.ast.add(offset, Node::Map(entries)))
    }

    /// The members of a message, which are read and dropped.
    pub(super) fn message_members(&mut self) -> Read<()> {
        while self.accept("}").is_none() {
            self.accept("?");
            if !matches!(self.peek().kind, TokenKind::Ident(_)) {
                return self.mismatched("IDENTIFIER");
            }
            self.next();
            self.expect(":")?;
            self.expression()?;
            if self.accept(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(())
    }
}

//! From the text of an expression to its tree.

mod literals;
mod macros;
mod primary;

use std::sync::Arc;

use self::literals::negative;
use super::ast::{Ast, Literal, Node, NodeId};
use super::lexer::{Token, TokenKind, tokens};
use super::operators;
use super::source::{Issue, shown};

/// Longer expressions are not read.
const MAX_CHARACTERS: usize = 100_000;

/// So deep can expressions of each kind lie within each other.
const MAX_DEPTH: usize = 250;

const EXPRESSION_STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
    NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Words that are no names.
const KEYWORDS: [&str; 4] = ["in", "true", "false", "null"];

/// Words that cannot be the name of a variable or of a function that stands alone.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The operators between two operands: from the loosest to the closest.
const RELATIONS: [(&str, &str); 7] = [
    ("<", operators::LESS),
    ("<=", operators::LESS_EQUALS),
    (">", operators::GREATER),
    (">=", operators::GREATER_EQUALS),
    ("==", operators::EQUALS),
    ("!=", operators::NOT_EQUALS),
    ("in", operators::IN),
];
const SUMS: [(&str, &str); 2] = [("+", operators::ADD), ("-", operators::SUBTRACT)];
const PRODUCTS: [(&str, &str); 3] = [
    ("*", operators::MULTIPLY),
    ("/", operators::DIVIDE),
    ("%", operators::MODULO),
];

/// The reading ends here; what is wrong is among the issues.
#[derive(Debug)]
struct Stop;

type Read<T> = Result<T, Stop>;

/// How deep the reader is in rules of each kind.
#[derive(Debug, Default)]
struct Depths {
    expression: usize,
    relation: usize,
    calculation: usize,
    member: usize,
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
    ast: Ast,
    issues: Vec<Issue>,
    depths: Depths,
}

/// Reads an expression.
///
/// # Errors
///
/// What is wrong with it, as servers show it.
pub(crate) fn parse(source: &str) -> Result<Ast, String> {
    let characters: Vec<char> = source.chars().collect();
    if characters.len() > MAX_CHARACTERS {
        let size = characters.len();
        return Err(unplaced(&format!(
            "expression code point size exceeds limit: size: {size}, limit {MAX_CHARACTERS}"
        )));
    }
    let (tokens, issues) = tokens(&characters);
    let mut parser = Parser {
        tokens,
        position: 0,
        ast: Ast::default(),
        issues,
        depths: Depths::default(),
    };
    let root = parser.expression().and_then(|root| {
        parser.end()?;
        Ok(root)
    });
    let Parser {
        mut ast, issues, ..
    } = parser;
    if let Some(limit) = issues.iter().find(|issue| issue.offset == u32::MAX) {
        return Err(unplaced(&limit.message));
    }
    match root {
        Ok(root) if issues.is_empty() => {
            ast.set_root(root);
            Ok(ast)
        }
        Ok(_) | Err(Stop) => Err(shown(source, issues)),
    }
}

/// What is wrong with all of the expression.
fn unplaced(message: &str) -> String {
    format!("ERROR: <input>:-1:0: {message}")
}

// === impl Parser ===

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, which is never passed.
        &self.tokens[self.position.min(self.tokens.len() - 1)]
    }

    fn peek_sign(&self, sign: &str) -> bool {
        matches!(self.peek().kind, TokenKind::Sign(found) if found == sign)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    /// The place of a sign, which is passed if it is there.
    fn accept(&mut self, sign: &str) -> Option<u32> {
        self.peek_sign(sign).then(|| self.next().offset)
    }

    fn expect(&mut self, sign: &str) -> Read<u32> {
        if let Some(offset) = self.accept(sign) {
            return Ok(offset);
        }
        self.mismatched(&format!("'{sign}'"))
    }

    fn issue(&mut self, offset: u32, message: impl Into<String>) {
        let message = message.into();
        self.issues.push(Issue { offset, message });
    }

    fn mismatched<T>(&mut self, expected: &str) -> Read<T> {
        let found = self.shown_token();
        let offset = self.peek().offset;
        let message = format!("Syntax error: mismatched input '{found}' expecting {expected}");
        self.issue(offset, message);
        Err(Stop)
    }

    fn shown_token(&self) -> String {
        match &self.peek().kind {
            TokenKind::Ident(text)
            | TokenKind::Int(text)
            | TokenKind::Uint(text)
            | TokenKind::Float(text)
            | TokenKind::Text(text)
            | TokenKind::Quoted(text) => text.clone(),
            TokenKind::Bytes(_) => "b''".to_owned(),
            TokenKind::Sign(sign) => (*sign).to_owned(),
            TokenKind::End => "<EOF>".to_owned(),
        }
    }

    fn end(&mut self) -> Read<()> {
        if self.peek().kind == TokenKind::End {
            return Ok(());
        }
        let (found, offset) = (self.shown_token(), self.peek().offset);
        self.next();
        let last = self.peek().kind == TokenKind::End;
        let how = if last { "extraneous" } else { "mismatched" };
        let message = format!("Syntax error: {how} input '{found}' expecting <EOF>");
        self.issue(offset, message);
        Err(Stop)
    }

    fn too_deep<T>(&mut self) -> Read<T> {
        // No place of its own: it is about the whole.
        let message = format!("expression recursion limit exceeded: {MAX_DEPTH}");
        self.issue(u32::MAX, message);
        Err(Stop)
    }

    fn call(&mut self, offset: u32, function: &str, args: Vec<NodeId>) -> NodeId {
        let function = Arc::from(function);
        self.ast.add(
            offset,
            Node::Call {
                function,
                target: None,
                args,
            },
        )
    }

    fn literal(&mut self, offset: u32, literal: Literal) -> NodeId {
        self.ast.add(offset, Node::Literal(literal))
    }

    /// What stands for an expression that is wrong.
    fn nothing(&mut self, offset: u32) -> NodeId {
        self.literal(offset, Literal::Null)
    }

    fn expression(&mut self) -> Read<NodeId> {
        self.depths.expression += 1;
        if self.depths.expression > MAX_DEPTH {
            return self.too_deep();
        }
        let condition = self.alternatives("||")?;
        let read = match self.accept("?") {
            None => condition,
            Some(offset) => {
                let first = self.alternatives("||")?;
                self.expect(":")?;
                let second = self.expression()?;
                let args = vec![condition, first, second];
                self.call(offset, operators::CONDITIONAL, args)
            }
        };
        self.depths.expression -= 1;
        Ok(read)
    }

    /// Terms between `||` or `&&`, as a tree of least depth.
    fn alternatives(&mut self, sign: &'static str) -> Read<NodeId> {
        let (function, outer) = if sign == "||" {
            (operators::OR, true)
        } else {
            (operators::AND, false)
        };
        let (mut terms, mut places) = (Vec::new(), Vec::new());
        loop {
            terms.push(if outer {
                self.alternatives("&&")?
            } else {
                self.relation()?
            });
            match self.accept(sign) {
                Some(offset) => places.push(offset),
                None => return Ok(self.balanced(function, &terms, &places)),
            }
        }
    }

    fn balanced(&mut self, function: &str, terms: &[NodeId], places: &[u32]) -> NodeId {
        if let [term] = terms {
            return *term;
        }
        let middle = places.len() / 2;
        let left = self.balanced(function, &terms[..=middle], &places[..middle]);
        let right = self.balanced(function, &terms[middle + 1..], &places[middle + 1..]);
        self.call(places[middle], function, vec![left, right])
    }

    /// The operator that comes next, if it is one of these.
    fn operator(&self, operators: &[(&str, &'static str)]) -> Option<&'static str> {
        let sign = match &self.peek().kind {
            TokenKind::Sign(sign) => *sign,
            TokenKind::Ident(word) => word.as_str(),
            _ => return None,
        };
        let mut known = operators.iter();
        let found = known.find(|(known, _)| *known == sign);
        found.map(|(_, function)| *function)
    }

    fn relation(&mut self) -> Read<NodeId> {
        let before = self.depths.relation;
        self.depths.relation += 1;
        let mut left = self.sum()?;
        while let Some(function) = self.operator(&RELATIONS) {
            self.depths.relation += 1;
            // The operand on the right is one level deeper.
            if self.depths.relation + 1 > MAX_DEPTH {
                return self.too_deep();
            }
            let offset = self.next().offset;
            let right = self.sum()?;
            left = self.call(offset, function, vec![left, right]);
        }
        self.depths.relation = before;
        Ok(left)
    }

    fn sum(&mut self) -> Read<NodeId> {
        let before = self.depths.calculation;
        self.depths.calculation += 1;
        let mut left = self.product()?;
        while let Some(function) = self.operator(&SUMS) {
            self.deeper_calculation()?;
            let offset = self.next().offset;
            let right = self.product()?;
            left = self.call(offset, function, vec![left, right]);
        }
        self.depths.calculation = before;
        Ok(left)
    }

    fn product(&mut self) -> Read<NodeId> {
        let before = self.depths.calculation;
        let mut left = self.unary()?;
        while let Some(function) = self.operator(&PRODUCTS) {
            self.deeper_calculation()?;
            let offset = self.next().offset;
            let right = self.unary()?;
            left = self.call(offset, function, vec![left, right]);
        }
        self.depths.calculation = before;
        Ok(left)
    }

    fn deeper_calculation(&mut self) -> Read<()> {
        self.depths.calculation += 1;
        if self.depths.calculation + 1 > MAX_DEPTH {
            return self.too_deep();
        }
        Ok(())
    }

    fn unary(&mut self) -> Read<NodeId> {
        for (sign, function) in [("!", operators::NOT), ("-", operators::NEGATE)] {
            let Some(offset) = self.accept(sign) else {
                continue;
            };
            let mut count = 1usize;
            while self.accept(sign).is_some() {
                count += 1;
            }
            if sign == "-"
                && count == 1
                && let Some(literal) = negative(&self.peek().kind)
            {
                self.next();
                let number = self.number_or_issue(offset, literal);
                return self.suffixes(number);
            }
            let operand = self.member()?;
            return Ok(if count.is_multiple_of(2) {
                operand
            } else {
                self.call(offset, function, vec![operand])
            });
        }
        self.member()
    }

    fn number_or_issue(&mut self, offset: u32, literal: Result<Literal, &'static str>) -> NodeId {
        match literal {
            Ok(literal) => self.literal(offset, literal),
            Err(why) => {
                self.issue(offset, why);
                self.nothing(offset)
            }
        }
    }

    fn member(&mut self) -> Read<NodeId> {
        let start = self.primary()?;
        self.suffixes(start)
    }

    /// Members, calls and indices behind a value.
    fn suffixes(&mut self, mut value: NodeId) -> Read<NodeId> {
        let before = self.depths.member;
        self.depths.member += 1;
        loop {
            if self.depths.member > MAX_DEPTH {
                return self.too_deep();
            }
            if self.peek_sign(".") {
                let offset = self.next().offset;
                match self.after_dot(value, offset)? {
                    Some(inner) => value = inner,
                    None => break,
                }
            } else if let Some(offset) = self.accept("[") {
                let optional = self.accept("?").is_some();
                let index = self.expression()?;
                self.expect("]")?;
                let function = if optional {
                    operators::OPTIONAL_INDEX
                } else {
                    operators::INDEX
                };
                value = self.call(offset, function, vec![value, index]);
            } else if self.peek_sign("{")
                && let Some(name) = self.ast.qualified_name(value)
            {
                let offset = self.next().offset;
                self.message_members()?;
                value = self.ast.add(offset, Node::Message(Arc::from(name)));
            } else {
                break;
            }
            self.depths.member += 1;
        }
        self.depths.member = before;
        Ok(value)
    }

    /// What stands behind the dot. None if the dot is all.
    fn after_dot(&mut self, value: NodeId, offset: u32) -> Read<Option<NodeId>> {
        let optional = self.accept("?").is_some();
        let name = match &self.peek().kind {
            TokenKind::Ident(name) if name == "in" => {
                let at = self.peek().offset;
                self.issue(at, "Syntax error: no viable alternative at input '.in'");
                return Ok(None);
            }
            TokenKind::Ident(name) => name.clone(),
            TokenKind::Quoted(_) => {
                let at = self.peek().offset;
                self.issue(at, "unsupported syntax: '`'");
                self.next();
                return Ok(Some(self.nothing(at)));
            }
            _ => return self.mismatched("IDENTIFIER"),
        };
        if KEYWORDS.contains(&name.as_str()) {
            let at = self.peek().offset;
            let message = format!("Syntax error: mismatched input '{name}' expecting IDENTIFIER");
            self.issue(at, message);
        }
        self.next();
        if optional {
            let field = self.literal(offset, Literal::Text(Arc::from(name)));
            let args = vec![value, field];
            return Ok(Some(self.call(offset, operators::OPTIONAL_SELECT, args)));
        }
        if let Some(open) = self.accept("(") {
            let args = self.arguments(")")?;
            return Ok(Some(self.member_call(open, &name, value, args)));
        }
        let node = Node::Select {
            operand: value,
            field: Arc::from(name),
            test: false,
        };
        Ok(Some(self.ast.add(offset, node)))
    }

    fn arguments(&mut self, end: &str) -> Read<Vec<NodeId>> {
        let mut args = Vec::new();
        if self.accept(end).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.accept(",").is_none() {
                self.expect(end)?;
                return Ok(args);
            }
        }
    }
}

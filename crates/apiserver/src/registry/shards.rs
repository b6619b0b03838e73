//! `shardSelector`: objects by ranges of a hash, as Kubernetes 1.36 selects them behind its gate `ShardedListAndWatch`
//! (KEP-5866).

use serde_json::Value;

use crate::cel::ast::{Ast, Literal, Node, NodeId};
use crate::cel::parser;
use crate::object;

/// The operator `||` as a function.
const OR: &str = "_||_";

/// The end of the whole range, which is one more than a hash can be.
const END: &str = "0x10000000000000000";

/// Which part of all objects is meant.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    /// As the client sent it, which is told it.
    text: String,
    field: Field,
    ranges: Vec<Range>,
}

/// What is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Uid,
    Namespace,
}

/// From the first to the last hash, both included.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
}

// === impl Shards ===

impl Shards {
    /// Reads the query parameter.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in the words of a real server.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let source = text.trim();
        if source.is_empty() {
            return Err(
                "empty shard selector is not allowed; omit the parameter for unfiltered lists"
                    .into(),
            );
        }
        let ast = parser::parse(source).map_err(|why| format!("CEL parse error: {why}"))?;
        let root = ast
            .root()
            .ok_or("CEL parse error: there is no expression")?;
        let mut calls = Vec::new();
        // A tree as deep as this one may be is walked without recursion.
        let mut waiting = vec![root];
        while let Some(id) = waiting.pop() {
            let node = ast.node(id);
            let Node::Call { function, args, .. } = node else {
                return Err(format!(
                    "unexpected expression kind {}; expected shardRange() call or || operator",
                    kind(node)
                ));
            };
            match (&**function, args.len()) {
                (OR, 2) => waiting.extend(args.iter().rev()),
                ("shardRange", _) => calls.push(range(&ast, args)?),
                (other, _) => {
                    return Err(format!(
                        "unsupported function {other:?}; only shardRange() and || are allowed"
                    ));
                }
            }
        }
        let field = calls.first().map_or(Field::Uid, |(field, _)| *field);
        if let Some((other, _)) = calls.iter().find(|(other, _)| *other != field) {
            return Err(format!(
                "all shard ranges must use the same field, got {:?} and {:?}",
                field.path(),
                other.path()
            ));
        }
        Ok(Self {
            text: text.to_owned(),
            field,
            ranges: calls.into_iter().map(|(_, range)| range).collect(),
        })
    }

    /// The selector as it came.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether an object belongs to it.
    pub(crate) fn take(&self, object: &Value) -> bool {
        let hash = hash(match self.field {
            Field::Uid => object::uid(object),
            Field::Namespace => object::namespace(object),
        });
        self.ranges
            .iter()
            .any(|range| range.first <= hash && hash <= range.last)
    }
}

// === impl Field ===

impl Field {
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// The arguments of a call of `shardRange`.
fn range(ast: &Ast, args: &[NodeId]) -> Result<(Field, Range), String> {
    let [field, start, end] = args else {
        return Err(format!(
            "shardRange() requires exactly 3 arguments, got {}",
            args.len()
        ));
    };
    let path = path(ast, *field).map_err(|why| format!("shardRange() first argument: {why}"))?;
    let known = [Field::Uid, Field::Namespace];
    let field = known.into_iter().find(|known| known.path() == path);
    let field = field.ok_or_else(|| {
        format!(
            "unsupported field path {path:?}; supported: object.metadata.uid, \
             object.metadata.namespace"
        )
    })?;
    let (start, end) = (bound(ast, *start, "hexStart")?, bound(ast, *end, "hexEnd")?);
    // One more than a hash can be fits here.
    let number = |text: &str| u128::from_str_radix(text.trim_start_matches("0x"), 16);
    let (Ok(first), Ok(behind)) = (number(&start), number(&end)) else {
        return Err(format!("{start} and {end} are no hexadecimal numbers"));
    };
    let (Ok(first), Ok(last)) = (
        u64::try_from(first),
        u64::try_from(behind.saturating_sub(1)),
    ) else {
        return Err(format!(
            "shard range start {start} must be less than end {end}"
        ));
    };
    if u128::from(first) >= behind {
        return Err(format!(
            "shard range start {start} must be less than end {end}"
        ));
    }
    Ok((field, Range { first, last }))
}

/// The path that a chain of members stands for.
fn path(ast: &Ast, mut id: NodeId) -> Result<String, String> {
    let mut names = Vec::new();
    loop {
        let node = ast.node(id);
        if let Node::Ident(name) = node {
            names.push(&**name);
            names.reverse();
            return Ok(names.join("."));
        }
        let Node::Select { operand, field, .. } = node else {
            return Err(format!(
                "expected field path (e.g. object.metadata.uid), got expression kind {}",
                kind(node)
            ));
        };
        names.push(&**field);
        id = *operand;
    }
}

/// A bound of a range, as it is written.
fn bound(ast: &Ast, id: NodeId, name: &str) -> Result<String, String> {
    let node = ast.node(id);
    let Node::Literal(literal) = node else {
        return Err(format!(
            "{name} must be a string literal (e.g. '0xff'), got expression kind {}",
            kind(node)
        ));
    };
    let Literal::Text(text) = literal else {
        return Err(format!(
            "{name} must be a string literal, got {}",
            match literal {
                Literal::Bool(_) => "bool",
                Literal::Int(_) => "int64",
                Literal::Uint(_) => "uint64",
                Literal::Double(_) => "float64",
                Literal::Bytes(_) => "[]uint8",
                Literal::Null | Literal::Text(_) => "structpb.NullValue",
            }
        ));
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if digits.len() > 17 {
        return Err(format!(
            "{name}: hex value too long ({} chars, max 17): {digits:?}",
            digits.len()
        ));
    }
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if let Some(wrong) = digits.chars().find(|c| !is_digit(*c)) {
        let wrong = wrong.to_string();
        return Err(format!(
            "{name}: invalid hex character {wrong:?} in {text:?}"
        ));
    }
    match digits.len() {
        17 if **text != *END => Err(format!(
            "{name}: 17-digit hex value must be '{END}' (2^64), got {text:?}"
        )),
        16 | 17 => Ok(text.to_string()),
        _ => Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \
             \"0x{digits:0>16}\"?)"
        )),
    }
}

/// The number by which cel-go names what an expression is.
fn kind(node: &Node) -> u8 {
    match node {
        Node::Call { .. } => 1,
        Node::Loop(_) => 2,
        Node::Ident(_) => 3,
        Node::List { .. } => 4,
        Node::Literal(_) => 5,
        Node::Map(_) => 6,
        Node::Select { .. } => 7,
        Node::Message(_) => 8,
    }
}

/// FNV-1a with 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{Shards, hash};
    use serde_json::json;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the page of its authors.
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn ranges_are_taken_together() {
        let text = "shardRange(object.metadata.uid, '0x8000000000000000', '0xa000000000000000') \
                    || shardRange(object.metadata.uid,'0xc000000000000000','0x10000000000000000')";
        let shards = Shards::parse(text).expect("it is one");
        assert_eq!(shards.text(), text);
        // Their hashes begin with af, 85 and cb.
        let takes = |uid: &str| shards.take(&json!({ "metadata": { "uid": uid } }));
        assert_eq!(
            ["a", "foobar", ""].map(takes),
            [false, true, true],
            "{shards:?}"
        );
        let text =
            "shardRange(object.metadata.namespace, '0x8000000000000000', '0xa000000000000000')";
        let shards = Shards::parse(text).expect("it is one");
        assert!(shards.take(&json!({ "metadata": { "namespace": "foobar", "uid": "a" } })));
    }

    #[test]
    fn what_is_wrong_with_a_bound_is_said() {
        let uid = "object.metadata.uid";
        assert_said(&[
            (" ".to_owned(), "empty shard selector is not allowed"),
            (
                format!("shardRange({uid}, '0x0', '0x8000000000000000')"),
                "did you mean \"0x0000000000000000\"?",
            ),
            (
                format!("shardRange({uid}, '0000000000000000', '0x80')"),
                "must have '0x' prefix",
            ),
            (
                format!("shardRange({uid}, '0x', '0x80')"),
                "required after '0x'",
            ),
            (
                format!("shardRange({uid}, '0x000000000000000000', '0x80')"),
                "too long (18 chars, max 17)",
            ),
            (
                format!("shardRange({uid}, '0x0g', '0x80')"),
                "invalid hex character \"g\"",
            ),
            (
                format!("shardRange({uid}, '0x0000000000000000', '0x10000000000000001')"),
                "must be '0x10000000000000000'",
            ),
            (
                format!("shardRange({uid}, '0x8000000000000000', '0x8000000000000000')"),
                "must be less than end",
            ),
            (
                format!("shardRange({uid}, '0x10000000000000000', '0x10000000000000000')"),
                "must be less than end",
            ),
            (
                format!("shardRange({uid}, '0x8000000000000000', '0x0000000000000000')"),
                "must be less than end",
            ),
        ]);
    }

    #[test]
    fn what_is_wrong_with_the_rest_is_said() {
        let uid = "object.metadata.uid";
        let full = "'0x0000000000000000', '0x8000000000000000'";
        assert_said(&[
            (
                format!("shardRange({uid}, 0, 8)"),
                "must be a string literal, got int64",
            ),
            (
                format!("shardRange({uid}, hex(0), '0x8')"),
                "got expression kind 1",
            ),
            (
                format!("shardRange({uid}, '0x0')"),
                "exactly 3 arguments, got 2",
            ),
            (
                format!("shardRange(object.metadata.name, {full})"),
                "unsupported field path \"object.metadata.name\"",
            ),
            (
                format!("shardRange(1, {full})"),
                "first argument: expected field path",
            ),
            (
                format!("other({uid}, {full})"),
                "unsupported function \"other\"",
            ),
            (
                format!("shardRange({uid}, {full}) && shardRange({uid}, {full})"),
                "unsupported function \"_&&_\"",
            ),
            (
                format!(
                    "shardRange({uid}, {full}) || shardRange(object.metadata.namespace, {full})"
                ),
                "must use the same field",
            ),
            ("object".into(), "unexpected expression kind 3"),
            ("shardRange(".into(), "CEL parse error"),
        ]);
    }

    fn assert_said(wrong: &[(String, &str)]) {
        for (text, why) in wrong {
            let said = Shards::parse(text).map(|_| ()).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}

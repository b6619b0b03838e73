use crate::cel::ast::Literal;
use crate::cel::lexer::TokenKind;

const BAD_INT: &str = "invalid int literal";
const BAD_UINT: &str = "invalid uint literal";
const BAD_DOUBLE: &str = "invalid double literal";

/// The number that a word is. None if it is no number.
pub(super) fn positive(kind: &TokenKind) -> Option<Result<Literal, &'static str>> {
    signed(kind, "")
}

/// The number that a word is behind a minus. None if it is no number that can be negative.
pub(super) fn negative(kind: &TokenKind) -> Option<Result<Literal, &'static str>> {
    match kind {
        TokenKind::Uint(_) => None,
        _ => signed(kind, "-"),
    }
}

fn signed(kind: &TokenKind, sign: &str) -> Option<Result<Literal, &'static str>> {
    Some(match kind {
        TokenKind::Int(text) => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
                None => format!("{sign}{text}").parse(),
            };
            number.map(Literal::Int).map_err(|_| BAD_INT)
        }
        TokenKind::Uint(text) => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            number.map(Literal::Uint).map_err(|_| BAD_UINT)
        }
        TokenKind::Float(text) => {
            let number: Option<f64> = format!("{sign}{text}").parse().ok();
            let number = number.filter(|number| number.is_finite());
            number.map(Literal::Double).ok_or(BAD_DOUBLE)
        }
        TokenKind::Ident(_)
        | TokenKind::Text(_)
        | TokenKind::Bytes(_)
        | TokenKind::Sign(_)
        | TokenKind::Quoted(_)
        | TokenKind::End => return None,
    })
}

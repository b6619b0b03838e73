//! The format strings of `'..%s..'.format([..])`.

use super::types::Type;

/// What a format string is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Clause { kind: char, precision: Option<u32> },
}

/// What is wrong with a format string or with one of its arguments.
#[derive(Debug)]
pub(crate) enum Problem {
    Text(String),
    Argument(usize, String),
}

/// More digits behind the point are not written.
const MAX_PRECISION: u32 = 1000;

/// The pieces of a format string.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut characters = format.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            text.push('%');
            continue;
        }
        let mut precision = None;
        if characters.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let number = digits
                .parse()
                .ok()
                .filter(|number| *number <= MAX_PRECISION);
            let wrong = || {
                "could not parse formatting clause: error while parsing precision: unable to parse \
                 precision"
                    .to_owned()
            };
            precision = Some(number.ok_or_else(wrong)?);
        }
        let Some(kind) = characters.next() else {
            return Err("unexpected end of string".to_owned());
        };
        if !"sdfebxXo".contains(kind) {
            return Err(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{kind}\""
            ));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Clause { kind, precision });
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Holds a format string against the types of its arguments.
pub(crate) fn problem(format: &str, kinds: &[&Type]) -> Option<Problem> {
    let pieces = match pieces(format) {
        Ok(pieces) => pieces,
        Err(why) => return Some(Problem::Text(why)),
    };
    let mut clauses = 0;
    for piece in pieces {
        let Piece::Clause { kind, .. } = piece else {
            continue;
        };
        let Some(given) = kinds.get(clauses) else {
            let why = format!("index {clauses} out of range");
            return Some(Problem::Text(why));
        };
        if let Some(wanted) = wanted_of(kind).filter(|_| !fits(kind, given)) {
            let why = format!("error during formatting: {wanted}, was given {given}");
            return Some(Problem::Argument(clauses, why));
        }
        clauses += 1;
    }
    (clauses < kinds.len()).then(|| {
        let given = kinds.len();
        Problem::Text(format!(
            "too many arguments supplied to string.format (expected {clauses}, got {given})"
        ))
    })
}

/// What a clause can be used on.
pub(crate) fn wanted_of(kind: char) -> Option<&'static str> {
    Some(match kind {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        'o' => "octal clause can only be used on integers",
        _ => return None,
    })
}

/// Whether a value of a type can be good for a clause.
fn fits(clause: char, kind: &Type) -> bool {
    match kind {
        Type::Dyn | Type::Error | Type::Param(_) | Type::Int | Type::Uint => true,
        Type::Double => matches!(clause, 'd' | 'f' | 'e'),
        Type::Bool => clause == 'b',
        Type::Text | Type::Bytes => matches!(clause, 'x' | 'X'),
        _ => false,
    }
}

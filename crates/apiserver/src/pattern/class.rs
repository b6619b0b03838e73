//! Sets of characters.

use super::fault::{Read, before, fault};
use super::unicode::{Table, table_of};

/// The last character before those that no text can have, and the first after them.
const LAST_BEFORE_SURROGATES: u32 = 0xD7FF;
const FIRST_AFTER_SURROGATES: u32 = 0xE000;

const MAX_CODE: u32 = 0x0010_FFFF;

const ESCAPE: &str = "invalid escape sequence";

/// What `\d` and its like stand for: ASCII only.
const PERL_CLASSES: [(char, &str); 3] =
    [('d', "0-9"), ('s', r"\t\n\x0C\r\x20"), ('w', "0-9A-Za-z_")];

/// What `[:alpha:]` and its like stand for.
const POSIX_CLASSES: [(&str, &str); 14] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t\x20"),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", "0-9"),
    ("graph", "!-~"),
    ("lower", "a-z"),
    ("print", r"\x20-~"),
    ("punct", r"!-/:-@\x5B-\x60\x7B-~"),
    ("space", r"\t\n\x0B\x0C\r\x20"),
    ("upper", "A-Z"),
    ("word", "0-9A-Za-z_"),
    ("xdigit", "0-9A-Fa-f"),
];

/// A set of characters, translated.
#[derive(Debug, Default)]
pub(super) struct Class {
    /// What stands in the brackets.
    parts: String,
    negated: bool,
}

/// A character so that it means nothing else.
pub(super) fn shown(c: char) -> String {
    if c.is_ascii_alphanumeric() {
        c.to_string()
    } else {
        format!(r"\x{{{:X}}}", u32::from(c))
    }
}

/// Reads a set in brackets. Answers it with what follows.
pub(super) fn read(here: &str) -> Read<(Class, &str)> {
    let mut rest = &here[1..];
    let mut class = Class::default();
    if let Some(inner) = rest.strip_prefix('^') {
        class.negated = true;
        rest = inner;
    }
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some(after) = posix(rest, &mut class)? {
            rest = after;
            continue;
        }
        if let Some((inner, after)) = escaped_class(rest, table_of)? {
            class.include(&inner);
            rest = after;
            continue;
        }
        let start = rest;
        let (low, after) = character(rest, here)?;
        rest = after;
        let mut high = low;
        if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
            (high, rest) = character(&rest[1..], here)?;
            if high < low {
                return fault("invalid character class range", before(start, rest));
            }
        }
        class.add(low, high);
    }
    Ok((class, &rest[1..]))
}

/// A character in a set, as its number.
fn character<'a>(text: &'a str, whole: &str) -> Read<(u32, &'a str)> {
    match text.chars().next() {
        None => fault("missing closing ]", whole),
        Some('\\') => escaped(text),
        Some(c) => Ok((u32::from(c), &text[c.len_utf8()..])),
    }
}

/// Adds a named set such as `[:alpha:]`. Answers what follows, if it is one.
fn posix<'a>(text: &'a str, class: &mut Class) -> Read<Option<&'a str>> {
    let Some(inner) = text.strip_prefix("[:") else {
        return Ok(None);
    };
    let Some(length) = inner.find(":]") else {
        return Ok(None);
    };
    let (name, rest) = (&inner[..length], &inner[length + 2..]);
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let mut known = POSIX_CLASSES.iter();
    let Some((_, parts)) = known.find(|(known, _)| *known == name) else {
        return fault("invalid character class range", before(text, rest));
    };
    class.include(&Class {
        parts: (*parts).to_owned(),
        negated,
    });
    Ok(Some(rest))
}

/// Reads `\d` and its like, and `\p{..}`. Answers the set with what follows, if it is one.
pub(super) fn escaped_class(
    text: &str,
    table_of: fn(&str) -> Option<Table>,
) -> Read<Option<(Class, &str)>> {
    let Some(kind) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(None);
    };
    let negated = kind.is_ascii_uppercase();
    let mut perl = PERL_CLASSES.iter();
    if let Some((_, parts)) = perl.find(|(known, _)| *known == kind.to_ascii_lowercase()) {
        let parts = (*parts).to_owned();
        return Ok(Some((Class { parts, negated }, &text[2..])));
    }
    if !matches!(kind, 'p' | 'P') {
        return Ok(None);
    }
    let after = &text[2..];
    let (name, rest) = match after.strip_prefix('{') {
        Some(inner) => match inner.split_once('}') {
            Some(split) => split,
            None => return fault("invalid character class range", text),
        },
        None => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let Some(table) = table_of(name) else {
        return fault("invalid character class range", before(text, rest));
    };
    let parts = table.shown();
    Ok(Some((Class { parts, negated }, rest)))
}

/// Reads an escaped character. Answers its number with what follows.
pub(super) fn escaped(text: &str) -> Read<(u32, &str)> {
    let mut rest = &text[1..];
    let Some(c) = rest.chars().next() else {
        return fault("trailing backslash at end of expression", "");
    };
    rest = &rest[c.len_utf8()..];
    let octal = |text: &str| text.starts_with(|c: char| ('0'..='7').contains(&c));
    let code = match c {
        'a' => 0x07,
        'f' => 0x0C,
        'n' => 0x0A,
        'r' => 0x0D,
        't' => 0x09,
        'v' => 0x0B,
        '0'..='7' if c == '0' || octal(rest) => {
            let mut code = u32::from(c) - u32::from('0');
            for _ in 0..2 {
                let digit = rest.chars().next().and_then(|c| c.to_digit(8));
                let Some(digit) = digit else { break };
                code = code * 8 + digit;
                rest = &rest[1..];
            }
            code
        }
        'x' => return hexadecimal(text, rest),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => u32::from(c),
        _ => return fault(ESCAPE, before(text, rest)),
    };
    Ok((code, rest))
}

fn hexadecimal<'a>(text: &'a str, mut rest: &'a str) -> Read<(u32, &'a str)> {
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        let (mut code, mut digits) = (0u32, 0);
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if c == '}' && digits > 0 {
                return Ok((code, rest));
            }
            let Some(digit) = c.to_digit(16) else { break };
            code = code * 16 + digit;
            digits += 1;
            if code > MAX_CODE {
                break;
            }
        }
        return fault(ESCAPE, before(text, rest));
    }
    let mut code = 0;
    let mut right = !rest.is_empty();
    for _ in 0..2 {
        let Some(c) = rest.chars().next() else {
            right = false;
            break;
        };
        rest = &rest[c.len_utf8()..];
        match c.to_digit(16) {
            Some(digit) => code = code * 16 + digit,
            None => right = false,
        }
    }
    if right {
        Ok((code, rest))
    } else {
        fault(ESCAPE, before(text, rest))
    }
}

// === impl Class ===

impl Class {
    /// Adds the characters of these numbers. Those that no text can have are left out.
    pub(super) fn add(&mut self, low: u32, high: u32) {
        self.add_characters(low, high.min(LAST_BEFORE_SURROGATES));
        self.add_characters(low.max(FIRST_AFTER_SURROGATES), high);
    }

    fn add_characters(&mut self, low: u32, high: u32) {
        if let (true, Some(low), Some(high)) =
            (low <= high, char::from_u32(low), char::from_u32(high))
        {
            self.parts.push_str(&shown(low));
            if low != high {
                self.parts.push('-');
                self.parts.push_str(&shown(high));
            }
        }
    }

    fn include(&mut self, other: &Self) {
        if other.negated {
            self.parts.push_str(&other.text());
        } else {
            self.parts.push_str(&other.parts);
        }
    }

    /// The set as an expression of its own.
    pub(super) fn text(&self) -> String {
        let Self { parts, negated } = self;
        match (parts.is_empty(), negated) {
            // Nothing, and everything.
            (true, false) => r"[^\x{0}-\x{10FFFF}]".to_owned(),
            (true, true) => r"[\x{0}-\x{10FFFF}]".to_owned(),
            (false, false) => format!("[{parts}]"),
            (false, true) => format!("[^{parts}]"),
        }
    }
}

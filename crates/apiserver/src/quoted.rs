//! Texts in quotes, as Go writes them.

use std::fmt::Write;

/// A text in quotes with what cannot be printed escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                written.push('\\');
                written.push(c);
            }
            '\u{7}' => written.push_str("\\a"),
            '\u{8}' => written.push_str("\\b"),
            '\u{c}' => written.push_str("\\f"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\u{b}' => written.push_str("\\v"),
            c if c.is_ascii_control() => {
                // Writing to a text does not fail.
                let _ = write!(written, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control() || (c.is_whitespace() && c != ' ') || c == '\u{feff}' => {
                let _ = write!(written, "\\u{:04x}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed() {
        assert_eq!(quoted("a\"\\\t\n\u{1}é"), r#""a\"\\\t\n\x01é""#);
        assert_eq!(quoted("\u{85}\u{a0}"), r#""\u0085\u00a0""#);
    }
}

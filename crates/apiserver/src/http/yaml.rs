//! Answers in YAML, as a Go server writes them: block style, members sorted.

use std::fmt::Write as _;

use serde_json::Value;

/// A document.
pub(super) fn document(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let pad = "  ".repeat(indent);
    if let Some(members) = value.as_object().filter(|members| !members.is_empty()) {
        for (name, value) in members {
            text.push_str(&pad);
            text.push_str(&scalar(&Value::String(name.clone())));
            text.push(':');
            after_key(value, indent, text);
        }
    } else if let Some(list) = value.as_array().filter(|list| !list.is_empty()) {
        for element in list {
            let mut inner = String::new();
            block(element, indent + 1, &mut inner);
            let inner = inner.get(pad.len() + 2..).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(text, "{pad}- {inner}");
        }
    } else {
        let _ = writeln!(text, "{pad}{}", scalar(value));
    }
}

fn after_key(value: &Value, indent: usize, text: &mut String) {
    let is_block = value.as_object().is_some_and(|members| !members.is_empty())
        || value.as_array().is_some_and(|list| !list.is_empty());
    if is_block {
        text.push('\n');
        // The elements of a list stand under its name without an indent.
        block(
            value,
            if value.is_array() { indent } else { indent + 1 },
            text,
        );
    } else {
        text.push(' ');
        text.push_str(&scalar(value));
        text.push('\n');
    }
}

/// A value on one line. Texts that could be read as something else are quoted.
fn scalar(value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return value.to_string();
    };
    let reserved = [
        "true", "false", "null", "yes", "no", "on", "off", "y", "n", "~",
    ];
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_alphabetic() || "_/.".contains(c))
        && !reserved.contains(&text.to_lowercase().as_str())
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !text.chars().any(char::is_control);
    if plain {
        text.to_owned()
    } else {
        value.to_string()
    }
}

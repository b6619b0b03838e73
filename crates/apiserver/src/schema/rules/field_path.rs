//! The paths that rules point to: `.a.b`, `['a'].b`.

use serde_json::Value;

/// A path from a schema on, as causes show it. None where it leads nowhere.
pub(super) fn shown(mut schema: &Value, path: &str) -> Option<String> {
    let mut shown = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        (name, rest) = match rest.strip_prefix("['") {
            Some(after) => quoted(after)?,
            None => plain(rest.strip_prefix('.')?)?,
        };
        if let Some(property) = schema["properties"].get(&name) {
            shown.push('.');
            shown.push_str(&name);
            schema = property;
        } else {
            let values = &schema["additionalProperties"];
            schema = Some(values).filter(|values| values.is_object())?;
            shown = format!("{shown}[{name}]");
        }
    }
    Some(shown)
}

fn plain(text: &str) -> Option<(String, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

/// A name in quotes, which may have escaped characters. Answers it with what follows the bracket.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((place, c)) = characters.next() {
        match c {
            '\'' => return Some((name, text[place..].strip_prefix("']")?)),
            '\\' => name.push(match characters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}

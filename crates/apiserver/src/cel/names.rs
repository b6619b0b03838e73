//! The names that members of objects have in expressions.

/// Words that the grammar knows.
const WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
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

/// Words that may stand behind a dot as they are.
const GRAMMAR: [&str; 4] = ["true", "false", "null", "in"];

const ESCAPES: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

/// The name of a member in expressions. None for a member that they cannot name.
pub(crate) fn field_name(name: &str) -> Option<String> {
    if WORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut characters = name.chars();
    let first = characters.next()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    if first.is_ascii_digit() || !allowed(first) || !characters.all(allowed) {
        return None;
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let mut known = ESCAPES.iter();
        if let Some((text, escape)) = known.find(|(text, _)| rest.starts_with(text)) {
            escaped.push_str(escape);
            rest = &rest[text.len()..];
        } else {
            escaped.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(escaped)
}

/// The name under which a member is kept that an expression names: reserved words may also stand
/// as they are.
pub(crate) fn kept_name(field: &str) -> Option<String> {
    let reserved = WORDS.contains(&field) && !GRAMMAR.contains(&field);
    reserved.then(|| format!("__{field}__"))
}

/// The member that a name in an expression means.
pub(crate) fn member_name(field: &str) -> String {
    if !field.contains("__") {
        return field.to_owned();
    }
    let word = field
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| WORDS.contains(word)) {
        return word.to_owned();
    }
    let mut name = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(c) = rest.chars().next() {
        let mut escapes = ESCAPES.iter();
        if let Some((text, escape)) = escapes.find(|(_, escape)| rest.starts_with(escape)) {
            name.push_str(text);
            rest = &rest[escape.len()..];
        } else {
            name.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    name
}

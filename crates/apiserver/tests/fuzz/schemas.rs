//! Definitions with patterns, formats and rules in CEL, put together from parts that mean something.

use serde_json::{Map, Value, json};

use crate::input::Input;

/// Parts of expressions.
const WORDS: [&str; 96] = [
    "self",
    "self.text",
    "self.number",
    "self.double",
    "self.flag",
    "self.list",
    "self.map",
    "self.any",
    "self.time",
    "self.bytes",
    "self.?text",
    "self.?other",
    "oldSelf",
    "oldSelf.text",
    "x",
    "k",
    "v",
    "true",
    "false",
    "null",
    "0",
    "1",
    "-1",
    "2u",
    "1.5",
    "1e300",
    "9223372036854775807",
    "'a'",
    "''",
    "'1h'",
    "'2026-01-01T00:00:00Z'",
    "'10.0.0.0/8'",
    "'::1'",
    "'http://[::1]:80/a?b=c'",
    "'1Gi'",
    "'1.2.3'",
    "b'a'",
    "r'\\d'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ":",
    "?",
    ".",
    "[?0]",
    "[0]",
    "['a']",
    " && ",
    " || ",
    "!",
    " == ",
    " != ",
    " < ",
    " in ",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " ? ",
    " : ",
    ".size()",
    ".all(x, ",
    ".exists(k, v, ",
    ".exists_one(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".transformMap(k, v, ",
    ".sortBy(x, ",
    "has(",
    ".orValue(",
    ".optMap(x, ",
    ".hasValue()",
    ".matches(",
    ".find(",
    ".findAll(",
    ".split(",
    ".join()",
    ".replace(",
    ".format([",
    "])",
    "string(",
    "int(",
    "duration(",
    "timestamp(",
    "ip(",
    "cidr(",
    ".containsIP(",
    "url(",
    "quantity(",
    "semver(",
    ".distinct().sort().reverse()",
];

/// Parts of regular expressions.
const PATTERN_WORDS: [&str; 40] = [
    "a",
    "b",
    "0",
    "-",
    "^",
    "$",
    ".",
    "*",
    "+",
    "?",
    "??",
    "{2}",
    "{0,9}",
    "{1000}",
    "{,2}",
    "|",
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?P<n>",
    "(?s-m)",
    "[",
    "]",
    "[^",
    "a-z",
    "[:alpha:]",
    "&&",
    "\\d",
    "\\W",
    "\\b",
    "\\pL",
    "\\p{Greek}",
    "\\P{^Lu}",
    "\\Q",
    "\\E",
    "\\x{10ffff}",
    "\\077",
    "\\",
];

const FORMATS: [&str; 12] = [
    "",
    "date-time",
    "duration",
    "byte",
    "ipv4",
    "cidr",
    "email",
    "uri",
    "uuid",
    "hostname",
    "k8s-short-name",
    "unknown",
];

/// Texts for the members that have formats and patterns.
const TEXTS: [&str; 12] = [
    "a",
    "",
    "ab0-",
    "\u{212a}é",
    "2026-01-01T00:00:00Z",
    "3 weeks",
    "YQ==",
    "::ffff:1.2.3.4",
    "10.0.0.0/33",
    "a@b",
    "http://[fe80::1%25en0]/",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// The schema of a spec, and rules for it.
pub(crate) fn schema(input: &mut Input<'_>) -> Value {
    let mut text = json!({ "type": "string" });
    text["pattern"] = json!(phrase(input, &PATTERN_WORDS, 9));
    text["format"] = json!(input.one_of(&FORMATS));
    limit(input, &mut text, "maxLength");
    let mut list = json!({ "type": "array", "items": text });
    limit(input, &mut list, "maxItems");
    let mut map = json!({ "type": "object", "additionalProperties": text });
    limit(input, &mut map, "maxProperties");
    let rules: Vec<Value> = (0..=input.below(2)).map(|_| rule(input)).collect();
    json!({
        "type": "object",
        "properties": {
            "text": text,
            "number": { "type": "integer", "format": input.one_of(&["int32", "int64"]) },
            "double": { "type": "number", "nullable": true },
            "flag": { "type": "boolean", "default": true },
            "list": list,
            "map": map,
            "any": { "x-kubernetes-int-or-string": true },
            "time": { "type": "string", "format": input.one_of(&["date-time", "date", "duration"]) },
            "bytes": { "type": "string", "format": "byte" },
        },
        "x-kubernetes-validations": rules,
    })
}

fn limit(input: &mut Input<'_>, schema: &mut Value, keyword: &str) {
    if let Some(limit) = input.one_of(&[Some(9), Some(1000), None]) {
        schema[keyword] = json!(limit);
    }
}

fn rule(input: &mut Input<'_>) -> Value {
    let mut rule = json!({ "rule": phrase(input, &WORDS, 16) });
    match input.below(4) {
        0 => rule["message"] = json!(input.text()),
        1 => rule["messageExpression"] = json!(phrase(input, &WORDS, 8)),
        2 => rule["fieldPath"] = json!(input.one_of(&[".text", ".map['a']", ".map.b", "", "x"])),
        _ => rule["optionalOldSelf"] = json!(true),
    }
    rule
}

/// Parts one behind the other, now and then with any text between them.
fn phrase(input: &mut Input<'_>, words: &[&'static str], most: usize) -> String {
    let mut phrase = String::new();
    for _ in 0..=input.below(most) {
        match input.below(24) {
            0 => phrase += &input.text(),
            _ => phrase += input.one_of(words),
        }
    }
    phrase
}

/// A spec that the schema allows, or nearly.
pub(crate) fn spec(input: &mut Input<'_>) -> Value {
    let mut spec = Map::new();
    for name in [
        "text", "number", "double", "flag", "list", "map", "any", "time", "bytes",
    ] {
        let text = input.one_of(&TEXTS);
        let value = match (name, input.below(6)) {
            (_, 0) => continue,
            (_, 1) => input.json(2),
            ("number" | "double", _) => json!(input.below(256)),
            ("flag", _) => json!(true),
            ("list", _) => (0..input.below(6))
                .map(|_| json!(input.one_of(&TEXTS)))
                .collect(),
            ("map", _) => json!({ "a": text, "b-c": text }),
            _ => json!(text),
        };
        spec.insert(name.to_owned(), value);
    }
    Value::Object(spec)
}

//! Label and field selectors.

use serde_json::Value;

use crate::object;
use crate::resource::Resource;
use crate::status::Status;

/// Which objects are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone)]
struct LabelTerm {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone)]
enum LabelTest {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone)]
struct FieldTerm {
    path: String,
    equal: bool,
    value: String,
}

// === impl Selection ===

impl Selection {
    /// Reads the two query parameters.
    ///
    /// # Errors
    ///
    /// 400 for what cannot be parsed, and for fields that the resource does not select by.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = parse_labels(labels)
            .map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))?;
        let fields = parse_fields(fields)?;
        for term in &fields {
            if !resource.field_selectors.contains(&term.path) {
                return Err(unsupported(resource, &term.path));
            }
        }
        Ok(Self { labels, fields })
    }

    /// Leaves out objects of other names.
    pub(crate) fn only_name(&mut self, name: &str) {
        let path = "metadata.name".to_owned();
        self.fields.push(FieldTerm {
            path,
            equal: true,
            value: name.to_owned(),
        });
    }

    /// Whether nothing is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, resource: &Resource, object: &Value) -> bool {
        self.labels.iter().all(|term| term.matches(object))
            && self.fields.iter().all(|term| {
                let value = field(resource, object, &term.path);
                (value == term.value) == term.equal
            })
    }
}

/// Kinds that only select by name and namespace say so.
fn unsupported(resource: &Resource, path: &str) -> Status {
    let known = ["metadata.name", "metadata.namespace"];
    let only_these = resource
        .field_selectors
        .iter()
        .all(|one| known.contains(&one.as_str()));
    Status::bad_request(if only_these && !resource.is_custom() {
        format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        )
    } else {
        format!("field label not supported: {path}")
    })
}

/// The text of a field; what is not there is the empty text.
fn field(resource: &Resource, object: &Value, path: &str) -> String {
    let value = match path {
        // Names that stand for other paths.
        "source" if resource.is("", "events") => object::at(object, "source.component"),
        _ => object::at(object, path),
    };
    let Some(value) = value else {
        return if resource.is("", "pods") && path == "spec.hostNetwork" {
            "false".to_owned()
        } else {
            String::new()
        };
    };
    match (value.as_str(), value.is_null()) {
        (Some(text), _) => text.to_owned(),
        (None, true) => String::new(),
        (None, false) => value.to_string(),
    }
}

// === impl LabelTerm ===

impl LabelTerm {
    fn matches(&self, object: &Value) -> bool {
        let value = object::label(object, &self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            LabelTest::Exists => value.is_some(),
            LabelTest::Absent => value.is_none(),
            LabelTest::In(values) => {
                value.is_some_and(|value| values.iter().any(|one| one == value))
            }
            LabelTest::NotIn(values) => {
                value.is_none_or(|value| values.iter().all(|one| one != value))
            }
            LabelTest::Greater(bound) => number().is_some_and(|number| number > *bound),
            LabelTest::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn parse_fields(text: &str) -> Result<Vec<FieldTerm>, Status> {
    let mut terms = Vec::new();
    for part in split_unescaped(text)
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
            (path, false, value)
        } else if let Some((path, value)) = part.split_once("==") {
            (path, true, value)
        } else if let Some((path, value)) = part.split_once('=') {
            (path, true, value)
        } else {
            return Err(Status::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{part}'"
            )));
        };
        let value = value
            .replace("\\,", ",")
            .replace("\\=", "=")
            .replace("\\\\", "\\");
        terms.push(FieldTerm {
            path: path.to_owned(),
            equal,
            value,
        });
    }
    Ok(terms)
}

/// Splits at commas that no backslash stands before.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        if c == ',' && !escaped {
            parts.push(&text[start..index]);
            start = index + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// A token of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

/// Reads a label selector by tokens, one ahead.
struct Reader {
    tokens: Vec<Token>,
    next: usize,
}

/// Signs, longer ones before those that they begin with.
const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", "<", ">"];

fn parse_labels(text: &str) -> Result<Vec<LabelTerm>, String> {
    let mut reader = Reader {
        tokens: tokens(text),
        next: 0,
    };
    let mut terms = Vec::new();
    if *reader.peek() == Token::End {
        return Ok(terms);
    }
    loop {
        terms.push(reader.term()?);
        match reader.take() {
            Token::End => return Ok(terms),
            Token::Sign(",") if *reader.peek() != Token::End => {}
            Token::Sign(",") => return Err("found '', expected: identifier after ','".to_owned()),
            other => {
                return Err(format!(
                    "found '{}', expected: ',' or 'end of string'",
                    other.text()
                ));
            }
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest
                .find(|c: char| c.is_whitespace() || "=!,()<>".contains(c))
                .unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens.push(Token::End);
    tokens
}

// === impl Token ===

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

// === impl Reader ===

impl Reader {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn word(&mut self) -> Result<String, String> {
        match self.take() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn term(&mut self) -> Result<LabelTerm, String> {
        if *self.peek() == Token::Sign("!") {
            self.take();
            return Ok(LabelTerm {
                key: self.word()?,
                test: LabelTest::Absent,
            });
        }
        let key = match self.take() {
            Token::Word(word) => word,
            other => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or ','",
                    other.text()
                ));
            }
        };
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(LabelTerm {
                key,
                test: LabelTest::Exists,
            });
        }
        let operator = self.take();
        let test = match operator.text() {
            "=" | "==" => LabelTest::In(vec![self.exact_value()?]),
            "!=" => LabelTest::NotIn(vec![self.exact_value()?]),
            "in" => LabelTest::In(self.values()?),
            "notin" => LabelTest::NotIn(self.values()?),
            ">" | "gt" => LabelTest::Greater(self.number()?),
            "<" | "lt" => LabelTest::Less(self.number()?),
            other => {
                return Err(format!(
                    "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                ));
            }
        };
        Ok(LabelTerm { key, test })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Sign(",") => Ok(String::new()),
            Token::Word(_) | Token::Sign(_) => self.word(),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            format!("values[0]: Invalid value: {word:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(word) => values.push(word),
                Token::Sign(")") => {
                    values.push(String::new());
                    return Ok(values);
                }
                Token::Sign(",") => {
                    values.push(String::new());
                    continue;
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        other.text()
                    ));
                }
            }
            match self.take() {
                Token::Sign(",") => {}
                Token::Sign(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}

/// A label selector as scale shows it: `a=b,c in (d,e)`. Takes both the map of an old kind and the
/// selector with `matchLabels`.
pub(super) fn printed(selector: &Value) -> String {
    let labels = if selector["matchLabels"].is_object() || selector["matchExpressions"].is_array() {
        &selector["matchLabels"]
    } else {
        selector
    };
    let mut parts: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    for expression in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let list = values.join(",");
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({list})"),
            Some("NotIn") => format!("{key} notin ({list})"),
            Some("DoesNotExist") => format!("!{key}"),
            Some(_) | None => key.to_owned(),
        });
    }
    parts.sort();
    parts.join(",")
}

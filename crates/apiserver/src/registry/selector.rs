//! Label and field selectors.

use serde_json::Value;

use super::shards::Shards;
use crate::object;
use crate::resource::Resource;
use crate::status::Status;
use crate::storage::Object;

/// Which objects are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
    shards: Option<Shards>,
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
        let labels = parse_labels(labels).map_err(Status::bad_request)?;
        let fields = parse_fields(fields)?;
        for term in &fields {
            if !resource.field_selectors.contains(&term.path) {
                return Err(unsupported(resource, &term.path));
            }
        }
        Ok(Self {
            labels,
            fields,
            shards: None,
        })
    }

    /// Leaves out what does not belong to these shards.
    ///
    /// # Errors
    ///
    /// 400 for what cannot be parsed.
    pub(crate) fn of_shards(&mut self, text: &str) -> Result<(), Status> {
        let shards = Shards::parse(text);
        let why = |why| format!("invalid shardSelector: {why}");
        self.shards = Some(shards.map_err(why).map_err(Status::bad_request)?);
        Ok(())
    }

    /// The shards that are left, as the client named them.
    pub(crate) fn shards(&self) -> Option<&str> {
        self.shards.as_ref().map(Shards::text)
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
        self.labels.is_empty() && self.fields.is_empty() && self.shards.is_none()
    }

    /// Whether an object is selected. It is not decoded where all are.
    pub(crate) fn takes(&self, resource: &Resource, object: &Object) -> bool {
        self.is_everything() || self.matches(resource, object)
    }

    pub(crate) fn matches(&self, resource: &Resource, object: &Value) -> bool {
        let shards = self.shards.as_ref();
        shards.is_none_or(|shards| shards.take(object))
            && self.labels.iter().all(|term| term.matches(object))
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

/// Reads a label selector by words and signs, one ahead. The empty word stands for the end.
struct Reader {
    tokens: Vec<String>,
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
    match reader.peek() {
        "" => return Ok(terms),
        token if begins_term(token) => {}
        token => {
            return Err(format!(
                "found '{token}', expected: !, identifier, or 'end of string'"
            ));
        }
    }
    loop {
        let term = reader.term();
        terms.push(term.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match reader.take().as_str() {
            "" => return Ok(terms),
            "," if !begins_term(reader.peek()) => {
                let token = reader.peek();
                return Err(format!("found '{token}', expected: identifier after ','"));
            }
            "," => {}
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let end = sign.map_or_else(
            || {
                let stops = |c: char| c.is_whitespace() || "=!,()<>".contains(c);
                rest.find(stops).unwrap_or(rest.len())
            },
            |sign| sign.len(),
        );
        let (token, after) = rest.split_at(end);
        tokens.push(token.to_owned());
        rest = after.trim_start();
    }
    tokens
}

fn begins_term(token: &str) -> bool {
    token == "!" || is_word(token)
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !SIGNS.contains(&token)
}

// === impl Reader ===

impl Reader {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.next += 1;
        token
    }

    fn word(&mut self) -> Result<String, String> {
        let token = self.take();
        if is_word(&token) {
            Ok(token)
        } else {
            Err(format!("found '{token}', expected: identifier"))
        }
    }

    fn term(&mut self) -> Result<LabelTerm, String> {
        if self.peek() == "!" {
            self.take();
            return Ok(LabelTerm {
                key: self.word()?,
                test: LabelTest::Absent,
            });
        }
        let key = self.take();
        if !is_word(&key) {
            return Err(format!("found '{key}', expected: !, identifier, or ','"));
        }
        if ["", ","].contains(&self.peek()) {
            return Ok(LabelTerm {
                key,
                test: LabelTest::Exists,
            });
        }
        let test = match self.take().as_str() {
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
        if ["", ","].contains(&self.peek()) {
            Ok(String::new())
        } else {
            self.word()
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {word:?}: for 'Gt', 'Lt' operators, the value must be an \
                 integer"
            )
        })
    }

    /// The values in brackets. Between two commas stands the empty one.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            let value = if is_word(self.peek()) {
                self.take()
            } else {
                String::new()
            };
            values.push(value);
            match self.take().as_str() {
                "," => {}
                ")" => return Ok(values),
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
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

/// Whether a label selector with `matchLabels` and `matchExpressions` selects an object. An absent one
/// selects nothing, an empty one everything.
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let labels = selector["matchLabels"].as_object();
    let equal = labels
        .into_iter()
        .flatten()
        .all(|(key, value)| object::label(object, key) == value.as_str());
    equal
        && object::elements(selector, "matchExpressions").all(|expression| {
            let key = expression["key"].as_str().unwrap_or_default();
            let value = object::label(object, key);
            let listed = || object::elements(expression, "values").any(|one| one.as_str() == value);
            match expression["operator"].as_str() {
                Some("In") => value.is_some() && listed(),
                Some("NotIn") => value.is_none() || !listed(),
                Some("Exists") => value.is_some(),
                Some("DoesNotExist") => value.is_none(),
                Some(_) | None => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors() {
        let object = json!({ "metadata": { "labels": { "app": "a" } } });
        let expression = |key: &str, operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        for (selector, expected) in [
            (Value::Null, false),
            (json!({}), true),
            (json!({ "matchLabels": { "app": "a" } }), true),
            (json!({ "matchLabels": { "app": "b" } }), false),
            (expression("app", "In", &["a", "b"]), true),
            (expression("app", "In", &["b"]), false),
            (expression("no", "In", &["b"]), false),
            (expression("app", "NotIn", &["b"]), true),
            (expression("app", "NotIn", &["a"]), false),
            (expression("no", "NotIn", &["a"]), true),
            (expression("app", "Exists", &[]), true),
            (expression("no", "DoesNotExist", &[]), true),
            (expression("app", "DoesNotExist", &[]), false),
        ] {
            assert_eq!(selects(&selector, &object), expected, "{selector}");
        }
    }
}

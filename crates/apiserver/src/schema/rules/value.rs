//! Objects as rules see them.

use std::sync::Arc;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime, TimeDelta};
use kube_cel::cel::Value as Seen;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};

use crate::base64;
use crate::schema::validate::duration_nanoseconds;

/// Words that cannot be the name of a member in an expression.
const RESERVED: [&str; 21] = [
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

/// The name under which rules see a described member.
pub(super) fn property_name(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// A value with the types that its schema gives it; the root always has a type of its own.
pub(super) fn seen(schema: &Value, value: &Value, root: bool) -> Seen {
    match value {
        Value::Null => Seen::Null,
        Value::Bool(flag) => Seen::Bool(*flag),
        Value::Number(number) => seen_number(schema, number),
        Value::String(text) => seen_text(schema, text),
        Value::Array(list) => {
            let items = &schema["items"];
            let list = list.iter().map(|element| seen(items, element, false));
            Seen::List(Arc::new(list.collect()))
        }
        Value::Object(members) => {
            let values = &schema["additionalProperties"];
            let free_keys = values.is_object() || *values == true;
            let typed = root || schema["x-kubernetes-embedded-resource"] == true;
            let members = members.iter().map(|(name, value)| {
                if free_keys {
                    return (Key::from(name.as_str()), seen(values, value, false));
                }
                let value = if typed && name == "metadata" {
                    seen_metadata(value)
                } else {
                    seen(&schema["properties"][name], value, false)
                };
                (Key::from(property_name(name)), value)
            });
            Seen::Map(Map {
                map: Arc::new(members.collect()),
            })
        }
    }
}

/// Of metadata only the names can be seen.
fn seen_metadata(metadata: &Value) -> Seen {
    let names = ["name", "generateName"].into_iter().filter_map(|name| {
        let value = metadata.get(name)?.as_str()?;
        Some((Key::from(name), text(value)))
    });
    Seen::Map(Map {
        map: Arc::new(names.collect()),
    })
}

fn text(text: &str) -> Seen {
    Seen::String(Arc::new(text.to_owned()))
}

fn seen_number(schema: &Value, number: &Number) -> Seen {
    let double = || Seen::Float(number.as_f64().unwrap_or(f64::NAN));
    if schema["type"] == "number" {
        return double();
    }
    number
        .as_i64()
        .map(Seen::Int)
        .or_else(|| number.as_u64().map(Seen::UInt))
        .unwrap_or_else(double)
}

fn seen_text(schema: &Value, raw: &str) -> Seen {
    if schema["x-kubernetes-int-or-string"] == true {
        return text(raw);
    }
    let special = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => DateTime::parse_from_rfc3339(raw).ok().map(Seen::Timestamp),
        "date" => date(raw).map(Seen::Timestamp),
        "duration" => {
            let nanoseconds = duration_nanoseconds(raw);
            nanoseconds.map(|nanoseconds| Seen::Duration(TimeDelta::nanoseconds(nanoseconds)))
        }
        "byte" => base64::decode(raw).map(|bytes| Seen::Bytes(Arc::new(bytes))),
        _ => None,
    };
    special.unwrap_or_else(|| text(raw))
}

fn date(raw: &str) -> Option<DateTime<FixedOffset>> {
    let day: NaiveDate = raw.parse().ok()?;
    Some(day.and_time(NaiveTime::MIN).and_utc().fixed_offset())
}

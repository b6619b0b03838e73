//! The values of expressions. What comes from an object is read where it lies: nothing is copied
//! before it is needed.

mod equal;
mod list;
mod map;
mod object;
mod text;

use std::net::IpAddr;
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::Value as Json;

pub(crate) use self::equal::{compare, equal};
pub(crate) use self::list::List;
pub(crate) use self::map::{Key, Map};
pub(crate) use self::object::Object;
pub(crate) use self::text::Text;
use super::fault::Fault;
use super::semver::Semver;
use super::times;
use super::types::Opaque;
use super::url::Url;
use crate::base64;

/// A value; what it borrows are objects, schemas and expressions.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    Object(Object<'a>),
    Optional(Option<Rc<Value<'a>>>),
    /// The name of a type.
    Type(&'a str),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Quantity(Amount),
    Semver(Rc<Semver>),
    Format(&'static str),
}

/// A range of addresses. The address need not be the first of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

/// An amount of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    /// In billionths.
    pub(crate) nanos: i128,
    /// Whether it was written without a fraction: what is written as `1000m` is no whole number.
    pub(crate) whole: bool,
}

pub(crate) type Outcome<'a> = Result<Value<'a>, Fault>;

// === impl Value ===

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(crate) fn list(elements: Vec<Self>) -> Self {
        Self::List(List::made(elements))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn none() -> Self {
        Self::Optional(None)
    }

    /// What an object's part is to rules: its schema gives it a type.
    pub(crate) fn of(value: &'a Json, schema: &'a Json, root: bool) -> Outcome<'a> {
        Ok(match value {
            Json::Null => Self::Null,
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) => Self::of_number(number, schema),
            Json::String(text) => return Self::of_text(text, schema),
            Json::Array(elements) => Self::List(List::of(elements, schema)),
            Json::Object(members) if schema["additionalProperties"].is_object() => {
                Self::Map(Map::of(members, &schema["additionalProperties"]))
            }
            Json::Object(members) => Self::Object(Object::of(members, schema, root)),
        })
    }

    /// A part of a list or a map: only what may be null can be.
    fn of_part(value: &'a Json, schema: &'a Json) -> Outcome<'a> {
        if value.is_null() && !schema.is_null() && schema["nullable"] != true {
            let why = "invalid data, got null for schema with nullable=false";
            return Err(Fault::new(why));
        }
        Self::of(value, schema, false)
    }

    fn of_number(number: &serde_json::Number, schema: &Json) -> Self {
        let is_double = schema["type"] == "number";
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a whole number is meant, which was checked before"
        )]
        match (number.as_i64(), number.as_f64()) {
            (Some(number), _) if !is_double => Self::Int(number),
            (_, Some(number)) if schema["type"] == "integer" => Self::Int(number as i64),
            (_, number) => Self::Double(number.unwrap_or_default()),
        }
    }

    fn of_text(text: &'a str, schema: &Json) -> Outcome<'a> {
        let plain = Self::Text(Text::Kept(text));
        if schema["x-kubernetes-int-or-string"] == true {
            return Ok(plain);
        }
        let (name, read) = match schema["format"].as_str() {
            Some("byte") => {
                let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=\r\n".contains(&byte);
                let bytes = match text.bytes().position(|byte| !known(byte)) {
                    None => base64::decode_url(text.trim_end_matches('=')),
                    Some(_) => None,
                };
                let place = text.bytes().position(|byte| !known(byte));
                let why = || {
                    Fault::new(format!(
                        "Invalid byte formatted string {text}: illegal base64 data at input byte {}",
                        place.unwrap_or_default()
                    ))
                };
                return Ok(Self::Bytes(Rc::from(bytes.ok_or_else(why)?)));
            }
            Some("duration") => ("duration", times::schema_duration(text).map(Self::Duration)),
            Some("date") => ("date", times::date(text).map(Self::Timestamp)),
            Some("date-time") => (
                "date-time",
                times::schema_timestamp(text).map(Self::Timestamp),
            ),
            _ => return Ok(plain),
        };
        read.ok_or_else(|| Fault::new(format!("Invalid {name} formatted string {text}")))
    }

    /// The name of its type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(_) => "object",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Ip(_) => Opaque::Ip.name(),
            Self::Cidr(_) => Opaque::Cidr.name(),
            Self::Url(_) => Opaque::Url.name(),
            Self::Quantity(_) => Opaque::Quantity.name(),
            Self::Semver(_) => Opaque::Semver.name(),
            Self::Format(_) => Opaque::Format.name(),
        }
    }

    /// How many characters, elements or entries it has. What is one thing has one.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::Text(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Object(object) => object.len(),
            Self::Optional(Some(held)) => return held.size(),
            Self::Cidr(cidr) => return u64::from(cidr.bits) / 8,
            Self::Url(url) => url.text.len(),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::Optional(None)
            | Self::Type(_)
            | Self::Ip(_)
            | Self::Quantity(_)
            | Self::Semver(_)
            | Self::Format(_) => 1,
        };
        size as u64
    }

    /// Whether it is what a value of its type is when nothing was said.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(flag) => !flag,
            Self::Int(number) | Self::Duration(number) => *number == 0,
            Self::Uint(number) => *number == 0,
            Self::Double(number) => *number == 0.0,
            Self::Text(_) | Self::Bytes(_) | Self::List(_) | Self::Map(_) | Self::Object(_) => {
                self.size() == 0
            }
            Self::Optional(held) => held.is_none(),
            Self::Timestamp(_)
            | Self::Type(_)
            | Self::Ip(_)
            | Self::Cidr(_)
            | Self::Url(_)
            | Self::Quantity(_)
            | Self::Semver(_)
            | Self::Format(_) => false,
        }
    }
}

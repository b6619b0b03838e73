//! What is known about a value before it is there: its type, and how large it can get.

use serde_json::Value;

use super::value::property_name;

/// No object is larger than this, so no part of one is.
pub(super) const MAX_OBJECT_BYTES: u64 = 3 * 1024 * 1024;

/// Room for the keyword `"":,` around the shortest member of an object.
const MIN_MEMBER_BYTES: u64 = 6;

/// The type of an expression, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    /// Anything.
    Any,
    Null,
    Bool,
    Int,
    Double,
    Bytes,
    Duration,
    Time,
    /// The type of a value, as `type()` tells it.
    Type,
    /// With at most so many characters.
    Text(u64),
    List {
        items: Box<Kind<'a>>,
        max: u64,
    },
    Map {
        values: Box<Kind<'a>>,
        max: u64,
    },
    /// With the members that a schema describes.
    Object {
        schema: &'a Value,
        /// Whether it also has apiVersion, kind and metadata.
        typed: bool,
    },
    /// Of metadata only the names can be seen.
    Metadata,
    Optional(Box<Kind<'a>>),
}

// === impl Kind ===

impl<'a> Kind<'a> {
    /// The values that a structural schema describes; those of the root always have a type.
    pub(super) fn of(schema: &'a Value, root: bool) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::Any;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Self::Bool,
            "integer" => Self::Int,
            "number" => Self::Double,
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Time,
                _ => Self::Text(max_text(schema)),
            },
            "array" => Self::List {
                items: Box::new(Self::of(&schema["items"], false)),
                max: max_items(schema),
            },
            "object" => Self::of_object(schema, root),
            _ => Self::Any,
        }
    }

    fn of_object(schema: &'a Value, root: bool) -> Self {
        let values = &schema["additionalProperties"];
        if values.is_object() || *values == true {
            return Self::Map {
                values: Box::new(Self::of(values, false)),
                max: max_properties(schema),
            };
        }
        let typed = root || schema["x-kubernetes-embedded-resource"] == true;
        let described = schema["properties"].is_object();
        if !described && !typed && schema["x-kubernetes-preserve-unknown-fields"] == true {
            return Self::Any;
        }
        Self::Object { schema, typed }
    }

    /// The type of a member. None if there is no such member.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        match self {
            Self::Any | Self::Optional(_) => Some(Self::Any),
            Self::Map { values, .. } => Some(Self::clone(values)),
            Self::Metadata => ["name", "generateName"]
                .contains(&name)
                .then_some(Self::Text(253)),
            Self::Object { schema, typed } => {
                if *typed && ["apiVersion", "kind"].contains(&name) {
                    return Some(Self::Text(253));
                }
                if *typed && name == "metadata" {
                    return Some(Self::Metadata);
                }
                let mut properties = schema["properties"].as_object().into_iter().flatten();
                let found = properties.find(|(property, _)| property_name(property) == name);
                match found {
                    Some((_, schema)) => Some(Self::of(schema, false)),
                    None if schema["x-kubernetes-preserve-unknown-fields"] == true => {
                        Some(Self::Any)
                    }
                    None => None,
                }
            }
            Self::Null
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Bytes
            | Self::Duration
            | Self::Time
            | Self::Type
            | Self::Text(_)
            | Self::List { .. } => None,
        }
    }

    /// What a loop over the value sees, and how often at most. None if there is no such loop.
    pub(super) fn elements(&self) -> Option<(Self, u64)> {
        match self {
            Self::List { items, max } => Some((Self::clone(items), *max)),
            Self::Map { max, .. } => Some((Self::Text(MAX_OBJECT_BYTES), *max)),
            Self::Any => Some((Self::Any, MAX_OBJECT_BYTES / MIN_MEMBER_BYTES)),
            Self::Object { .. } | Self::Metadata => Some((Self::Text(253), 256)),
            Self::Null
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Bytes
            | Self::Duration
            | Self::Time
            | Self::Type
            | Self::Text(_)
            | Self::Optional(_) => None,
        }
    }

    /// How many steps it takes at most to look at all of the value.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Text(max) => max / 10,
            Self::List { max, .. } | Self::Map { max, .. } => *max,
            Self::Bytes => MAX_OBJECT_BYTES / 10,
            Self::Any
            | Self::Null
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Duration
            | Self::Time
            | Self::Type
            | Self::Object { .. }
            | Self::Metadata
            | Self::Optional(_) => 1,
        }
    }

    /// Whether a value of this type can be one of the other.
    pub(super) fn fits(&self, other: &Self) -> bool {
        matches!(self, Self::Any | Self::Null)
            || matches!(other, Self::Any | Self::Null)
            || std::mem::discriminant(self) == std::mem::discriminant(other)
            || (self.is_map() && other.is_map())
    }

    /// Maps, objects and literals of either look the same.
    fn is_map(&self) -> bool {
        matches!(
            self,
            Self::Map { .. } | Self::Object { .. } | Self::Metadata
        )
    }

    pub(super) fn can_be_bool(&self) -> bool {
        matches!(self, Self::Bool | Self::Any)
    }

    pub(super) fn can_be_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Any)
    }

    /// What an optional value holds.
    pub(super) fn held(&self) -> Self {
        if let Self::Optional(held) = self {
            Self::clone(held)
        } else {
            Self::Any
        }
    }

    /// What stands at an index or a key. None for a value that has neither.
    pub(super) fn indexed(&self) -> Option<Self> {
        match self {
            Self::List { items, .. } => Some(Self::clone(items)),
            Self::Map { values, .. } => Some(Self::clone(values)),
            Self::Any | Self::Object { .. } | Self::Metadata | Self::Optional(_) => Some(Self::Any),
            Self::Null
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Bytes
            | Self::Duration
            | Self::Time
            | Self::Type
            | Self::Text(_) => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    /// The type's name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Any => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Time => "timestamp",
            Self::Type => "type",
            Self::Text(_) => "string",
            Self::List { .. } => "list",
            Self::Map { .. } => "map",
            Self::Object { .. } | Self::Metadata => "object",
            Self::Optional(_) => "optional",
        }
    }
}

/// The longest text that a schema allows.
fn max_text(schema: &Value) -> u64 {
    let longest = |list: &Vec<Value>| {
        let lengths = list.iter().filter_map(Value::as_str).map(str::len);
        lengths.max().unwrap_or_default() as u64
    };
    schema["maxLength"]
        .as_u64()
        .or_else(|| schema["enum"].as_array().map(longest))
        .unwrap_or(MAX_OBJECT_BYTES)
        .min(MAX_OBJECT_BYTES)
}

/// How many elements a list can have.
pub(super) fn max_items(schema: &Value) -> u64 {
    let most = MAX_OBJECT_BYTES / (min_bytes(&schema["items"]) + 1);
    schema["maxItems"].as_u64().unwrap_or(most).min(most)
}

/// How many members an object with free keys can have.
pub(super) fn max_properties(schema: &Value) -> u64 {
    let least = min_bytes(&schema["additionalProperties"]);
    let most = MAX_OBJECT_BYTES / (least + MIN_MEMBER_BYTES);
    schema["maxProperties"].as_u64().unwrap_or(most).min(most)
}

/// The bytes of the shortest value that a schema allows, as JSON.
pub(super) fn min_bytes(schema: &Value) -> u64 {
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => 4,
        "string" => 2 + schema["minLength"].as_u64().unwrap_or_default(),
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let members = required.filter_map(Value::as_str).map(|name| {
                let least = min_bytes(&schema["properties"][name]);
                MIN_MEMBER_BYTES + name.len() as u64 + least
            });
            2 + members.sum::<u64>()
        }
        "array" => 2,
        _ => 1,
    }
}

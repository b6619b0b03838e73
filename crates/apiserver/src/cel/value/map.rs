use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use serde_json::{Map as Members, Value as Json};

use super::equal::same;
use super::{Outcome, Text, Value};

/// A map.
#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Kept {
        members: &'a Members<String, Json>,
        /// What the values are.
        schema: &'a Json,
    },
    Made(Rc<BTreeMap<Key, (Value<'a>, Value<'a>)>>),
}

/// What can be a key. Numbers are the same key whatever their type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    Text(Rc<str>),
}

// === impl Key ===

impl Key {
    /// None for a value that cannot be a key.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it has no fraction, and what is too large is no key that there is"
        )]
        match value {
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            Value::Int(number) => Some(Self::Number(i128::from(*number))),
            Value::Uint(number) => Some(Self::Number(i128::from(*number))),
            Value::Double(number) if number.fract() == 0.0 => Some(Self::Number(*number as i128)),
            Value::Text(text) => Some(Self::Text(Rc::from(&**text))),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

// === impl Map ===

impl<'a> Map<'a> {
    pub(super) fn of(members: &'a Members<String, Json>, schema: &'a Json) -> Self {
        Self::Kept { members, schema }
    }

    pub(crate) fn made(entries: BTreeMap<Key, (Value<'a>, Value<'a>)>) -> Self {
        Self::Made(Rc::new(entries))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Kept { members, .. } => members.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &Value<'_>) -> Option<Outcome<'a>> {
        match (self, key) {
            (Self::Kept { members, schema }, Value::Text(key)) => {
                Some(Value::of_part(members.get(&**key)?, schema))
            }
            (Self::Kept { .. }, _) => None,
            (Self::Made(entries), key) => {
                let (_, value) = entries.get(&Key::of(key)?)?;
                Some(Ok(value.clone()))
            }
        }
    }

    /// The entries with the values that they have, or why not.
    pub(crate) fn entries(&self) -> Vec<(Value<'a>, Outcome<'a>)> {
        match self {
            Self::Kept { members, schema } => members
                .iter()
                .map(|(key, value)| {
                    let key = Value::Text(Text::Kept(key));
                    (key, Value::of_part(value, schema))
                })
                .collect(),
            Self::Made(entries) => entries
                .values()
                .map(|(key, value)| (key.clone(), Ok(value.clone())))
                .collect(),
        }
    }

    /// The entries for a map that gets more of them. A map that nobody else has is not copied.
    ///
    /// # Errors
    ///
    /// A value is none.
    pub(crate) fn into_entries(
        self,
    ) -> Result<BTreeMap<Key, (Value<'a>, Value<'a>)>, super::Fault> {
        match self {
            Self::Made(entries) => {
                Ok(Rc::try_unwrap(entries).unwrap_or_else(|shared| (*shared).clone()))
            }
            kept @ Self::Kept { .. } => {
                let mut entries = BTreeMap::new();
                for (key, value) in kept.entries() {
                    if let Some(own) = Key::of(&key) {
                        entries.insert(own, (key, value?));
                    }
                }
                Ok(entries)
            }
        }
    }

    pub(super) fn equals(&self, other: &Self, left: &mut u32) -> bool {
        self.len() == other.len()
            && self.entries().into_iter().all(|(key, value)| {
                let other = other.get(&key);
                matches!((value, other), (Ok(value), Some(Ok(other))) if same(&value, &other, left))
            })
    }
}

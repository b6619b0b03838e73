//! Placeholders: values that differ from run to run.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What placeholders stand for, by `kind:number`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bindings {
    values: BTreeMap<String, String>,
}

/// A text with placeholders, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder {
        kind: Kind,
        name: String,
        number: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Uid,
    Version,
    ListVersion,
    Time,
    Tick,
    Microtime,
    Generated,
    Continue,
    Address,
    Port,
    Age,
    Hash,
    Any,
}

const KINDS: [(&str, Kind); 13] = [
    ("uid", Kind::Uid),
    ("rv", Kind::Version),
    ("lrv", Kind::ListVersion),
    ("time", Kind::Time),
    ("tick", Kind::Tick),
    ("microtime", Kind::Microtime),
    ("gen", Kind::Generated),
    ("continue", Kind::Continue),
    ("ip", Kind::Address),
    ("port", Kind::Port),
    ("age", Kind::Age),
    ("hash", Kind::Hash),
    ("any", Kind::Any),
];

// === impl Kind ===

impl Kind {
    fn fits(self, text: &str) -> bool {
        let like = |pattern: &str| {
            text.len() == pattern.len()
                && text
                    .chars()
                    .zip(pattern.chars())
                    .all(|(c, wanted)| match wanted {
                        '0' => c.is_ascii_digit(),
                        'x' => c.is_ascii_digit() || ('a'..='f').contains(&c),
                        other => c == other,
                    })
        };
        let all = |fits: fn(char) -> bool| !text.is_empty() && text.chars().all(fits);
        match self {
            Self::Uid => like("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
            Self::Version | Self::ListVersion => {
                all(|c| c.is_ascii_digit()) && !text.starts_with('0')
            }
            Self::Time | Self::Tick => like("0000-00-00T00:00:00Z"),
            Self::Microtime => like("0000-00-00T00:00:00.000000Z"),
            Self::Generated => {
                text.len() == 5 && all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
            }
            Self::Continue => all(|c| c.is_ascii_alphanumeric() || "-_=.~".contains(c)),
            Self::Address => text.parse::<std::net::Ipv4Addr>().is_ok(),
            Self::Port => all(|c| c.is_ascii_digit()),
            Self::Age => all(|c| c.is_ascii_digit() || "smhdy".contains(c)),
            Self::Hash => all(|c| c.is_ascii_alphanumeric() || "_=-".contains(c)),
            Self::Any => true,
        }
    }
}

// === impl Bindings ===

impl Bindings {
    /// Whether a text fits a recorded one. Binds placeholders that it meets for the first time; after
    /// a failure the bindings are as before.
    pub(crate) fn text_fits(&mut self, recorded: &str, found: &str) -> bool {
        let before = self.clone();
        let fits = self.parts_fit(&parts(recorded), found);
        if !fits {
            *self = before;
        }
        fits
    }

    /// Whether a value fits a recorded text that is a placeholder alone.
    pub(crate) fn value_fits(&mut self, recorded: &str, found: &Value) -> bool {
        match &parts(recorded)[..] {
            [
                Part::Placeholder {
                    kind: Kind::Any, ..
                },
            ] => true,
            [
                Part::Placeholder {
                    kind: Kind::Port, ..
                },
            ] if found.is_u64() => self.text_fits(recorded, &found.to_string()),
            _ => false,
        }
    }

    fn parts_fit(&mut self, parts: &[Part], found: &str) -> bool {
        let Some((first, rest)) = parts.split_first() else {
            return found.is_empty();
        };
        match first {
            Part::Text(text) => found
                .strip_prefix(text.as_str())
                .is_some_and(|found| self.parts_fit(rest, found)),
            Part::Placeholder { kind, name, number } => {
                let ends = found
                    .char_indices()
                    .map(|(index, _)| index)
                    .chain([found.len()]);
                let ends: Vec<usize> = ends.collect();
                ends.into_iter().rev().any(|end| {
                    let (value, after) = found.split_at(end);
                    let before = self.clone();
                    let fits = kind.fits(value)
                        && self.bind(*kind, name, *number, value)
                        && self.parts_fit(rest, after);
                    if !fits {
                        *self = before;
                    }
                    fits
                })
            }
        }
    }

    fn bind(&mut self, kind: Kind, name: &str, number: Option<u32>, value: &str) -> bool {
        let Some(number) = number else { return true };
        let key = format!("{name}:{number}");
        if let Some(bound) = self.values.get(&key) {
            return bound == value;
        }
        let in_order = self.values.iter().all(|(other, bound)| {
            let Some((other_name, other_number)) = other.split_once(':') else {
                return true;
            };
            let Ok(other_number) = other_number.parse::<u32>() else {
                return true;
            };
            if other_name != name {
                return true;
            }
            let (low, high) = if other_number < number {
                (bound.as_str(), value)
            } else {
                (value, bound.as_str())
            };
            match kind {
                Kind::Version => integer(low) < integer(high),
                Kind::ListVersion => integer(low) <= integer(high),
                Kind::Tick => low < high,
                Kind::Uid
                | Kind::Time
                | Kind::Microtime
                | Kind::Generated
                | Kind::Continue
                | Kind::Address
                | Kind::Port
                | Kind::Age
                | Kind::Hash
                | Kind::Any => true,
            }
        });
        if in_order {
            self.values.insert(key, value.to_owned());
        }
        in_order
    }

    /// A text of a request with what its placeholders stand for.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        parts(text)
            .into_iter()
            .map(|part| match part {
                Part::Text(text) => Ok(text),
                Part::Placeholder { name, number, .. } => {
                    let key = format!("{name}:{}", number.unwrap_or_default());
                    self.values
                        .get(&key)
                        .cloned()
                        .ok_or(format!("nothing is bound to {key}"))
                }
            })
            .collect()
    }

    /// A value of a request with what its placeholders stand for.
    pub(crate) fn fill_value(&self, value: &Value) -> Result<Value, String> {
        if let Some(text) = value.as_str() {
            let filled = self.fill(text)?;
            let port = matches!(
                &parts(text)[..],
                [Part::Placeholder {
                    kind: Kind::Port,
                    ..
                }]
            );
            return Ok(match filled.parse::<u64>() {
                Ok(number) if port => json!(number),
                Ok(_) | Err(_) => json!(filled),
            });
        }
        if let Some(list) = value.as_array() {
            return list.iter().map(|value| self.fill_value(value)).collect();
        }
        if let Some(members) = value.as_object() {
            return members
                .iter()
                .map(|(name, value)| Ok((self.fill(name)?, self.fill_value(value)?)))
                .collect();
        }
        Ok(value.clone())
    }
}

/// A revision as a number; the form was checked, and none has more than 19 digits.
fn integer(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((placeholder, length)) = placeholder(rest) {
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(placeholder);
            rest = &rest[length..];
        } else if let Some(c) = rest.chars().next() {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if !plain.is_empty() || parts.is_empty() {
        parts.push(Part::Text(plain));
    }
    parts
}

/// The placeholder that a text starts with, and its length.
fn placeholder(text: &str) -> Option<(Part, usize)> {
    let inner = text.strip_prefix("${")?;
    let (inner, _) = inner.split_once('}')?;
    let (name, number) = match inner.split_once(':') {
        Some((name, number)) => (name, Some(number.parse().ok()?)),
        None => (inner, None),
    };
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == name)?;
    let part = Part::Placeholder {
        kind: *kind,
        name: name.to_owned(),
        number,
    };
    Some((part, inner.len() + 3))
}

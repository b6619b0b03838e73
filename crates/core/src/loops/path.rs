//! Places in an object.

use serde_json::Value;
use std::fmt;

/// A place in an object, as in `.spec.containers[name="app"].env`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Segment>);

/// A step on the way to a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A member of a map.
    Member(String),
    /// The element of a list that has these members, each with its value as JSON text.
    Keyed(Vec<(String, String)>),
    /// An element of a list by its position, counted from 0.
    Index(usize),
}

// === impl Path ===

impl Path {
    /// The steps, from the object on.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The place that one step leads to from here.
    #[must_use]
    pub(super) fn then(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    #[must_use]
    pub(super) fn member(&self, name: &str) -> Self {
        self.then(Segment::Member(name.to_owned()))
    }

    /// The innermost place that holds both.
    #[must_use]
    pub(super) fn common(&self, other: &Self) -> Self {
        let both = self.0.iter().zip(&other.0);
        let same = both.take_while(|(one, other)| one == other);
        Self(same.map(|(segment, _)| segment.clone()).collect())
    }

    /// The innermost element of a list on the way; `None` if there is none.
    pub(super) fn list(&self) -> Option<Self> {
        let element = |segment: &Segment| match segment {
            Segment::Member(_) => false,
            Segment::Keyed(_) | Segment::Index(_) => true,
        };
        let at = self.0.iter().rposition(element)?;
        Some(Self(self.0[..=at].to_vec()))
    }

    /// What stands there in `object`; `None` if nothing or `null` does.
    pub(super) fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let mut value = object;
        for segment in &self.0 {
            value = match segment {
                Segment::Member(name) => value.as_object()?.get(name)?,
                Segment::Keyed(keys) => {
                    let mut elements = value.as_array()?.iter();
                    elements.find(|element| has(element, keys))?
                }
                Segment::Index(index) => value.as_array()?.get(*index)?,
            };
        }
        (!value.is_null()).then_some(value)
    }
}

/// Whether an element goes by these keys. In a request, those that have defaults may be left out.
pub(super) fn has(element: &Value, keys: &[(String, String)]) -> bool {
    let told = |(name, text): &(String, String)| Some(reads(element.get(name)?, text));
    let mut told = keys.iter().filter_map(told).peekable();
    told.peek().is_some() && told.all(|same| same)
}

/// Whether `text` is the JSON text of a value.
pub(super) fn reads(value: &Value, text: &str) -> bool {
    let written = value.to_string();
    written == text
}

/// Members that are no plain names stand in brackets: `.metadata.annotations["example.com/at"]`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the whole object");
        }
        for segment in &self.0 {
            match segment {
                Segment::Member(name) if is_plain(name) => write!(f, ".{name}")?,
                Segment::Member(name) => write!(f, "[{name:?}]")?,
                Segment::Keyed(keys) => {
                    f.write_str("[")?;
                    for (at, (name, text)) in keys.iter().enumerate() {
                        let comma = if at == 0 { "" } else { "," };
                        // A text that is a plain name needs no quotes.
                        let bare = text
                            .strip_prefix('"')
                            .and_then(|text| text.strip_suffix('"'));
                        let text = bare.filter(|bare| is_plain(bare)).unwrap_or(text);
                        write!(f, "{comma}{name}={text}")?;
                    }
                    f.write_str("]")?;
                }
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(plain)
}

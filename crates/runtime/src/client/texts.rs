//! What names a write, in one piece of memory: every write has about ten texts, and each is short.

use std::ops::Range;

/// A text that belongs to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Group,
    Version,
    Resource,
    Namespace,
    Name,
    Subresource,
    FieldManager,
    Kind,
    Uid,
    ResourceVersion,
    /// In JSON: hardly anybody asks.
    Labels,
}

const PARTS: usize = Part::Labels as usize + 1;

/// The texts of a write; each may be missing.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    text: String,
    /// Where each part is in the text.
    places: [Place; PARTS],
}

#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    end: u32,
}

impl Texts {
    /// The parts that are found in `text`, with room for as many more bytes.
    pub(super) fn within(text: &str, more: usize) -> Self {
        let mut own = String::with_capacity(text.len() + more);
        own.push_str(text);
        Self {
            text: own,
            places: [Place::NOWHERE; PARTS],
        }
    }

    pub(super) fn get(&self, part: Part) -> Option<&str> {
        let Place { start, end } = self.places[part as usize];
        self.text.get(start as usize..end as usize)
    }

    /// Says where a part is in the text.
    pub(super) fn place(&mut self, part: Part, range: Range<usize>) {
        self.places[part as usize] = Place::of(&range).unwrap_or(Place::NOWHERE);
    }

    /// Adds a part, or takes another text for it; nothing is done if it is that already.
    pub(super) fn set(&mut self, part: Part, value: &str) {
        if self.get(part) == Some(value) {
            return;
        }
        let start = self.text.len();
        self.text.push_str(value);
        self.place(part, start..self.text.len());
    }
}

impl Place {
    /// Of a text that is missing: no range begins behind its end.
    const NOWHERE: Self = Self { start: 1, end: 0 };

    fn of(range: &Range<usize>) -> Option<Self> {
        Some(Self {
            start: range.start.try_into().ok()?,
            end: range.end.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Texts};

    #[test]
    fn parts_stand_in_one_text() {
        let mut texts = Texts::within("/api/v1/nodes/a", 9);
        texts.place(Part::Group, 4..4);
        texts.place(Part::Version, 5..7);
        texts.set(Part::Version, "v1");
        texts.set(Part::Kind, "Node");
        assert_eq!(texts.text, "/api/v1/nodes/aNode");
        assert_eq!(texts.get(Part::Group), Some(""));
        assert_eq!(texts.get(Part::Version), Some("v1"));
        assert_eq!(texts.get(Part::Kind), Some("Node"));
        assert_eq!(texts.get(Part::Labels), None);
        texts.set(Part::Kind, "Other");
        assert_eq!(texts.get(Part::Kind), Some("Other"));
    }
}

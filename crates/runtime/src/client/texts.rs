//! What names a write, in one piece of memory: every write has about ten texts, and each is short.

use std::{borrow::Cow, ops::Range};

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
    /// The parts that are found in `text`.
    pub(super) fn within(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            places: [Place::NOWHERE; PARTS],
        }
    }

    pub(super) fn get(&self, part: Part) -> Option<&str> {
        self.text.get(self.places[part as usize].range())
    }

    /// Says where a part is in the text.
    pub(super) fn place(&mut self, part: Part, range: Range<usize>) {
        self.places[part as usize] = Place::of(&range).unwrap_or(Place::NOWHERE);
    }

    /// Adds a part, or takes another text for it.
    pub(super) fn set(&mut self, part: Part, value: &str) {
        let start = self.text.len();
        self.text.push_str(value);
        self.place(part, start..self.text.len());
    }

    /// Adds parts, or takes other texts for them; `None` if they are no texts.
    pub(super) fn with(mut self, parts: &[(Part, Option<Cow<'_, [u8]>>)]) -> Option<Self> {
        let known = parts
            .iter()
            .filter_map(|(part, value)| Some((*part, value.as_deref()?)));
        let more: usize = known.clone().map(|(_, value)| value.len()).sum();
        // Histories keep it for long, so it has no more room than it needs.
        let mut text = Vec::with_capacity(self.text.len() + more);
        text.extend_from_slice(self.text.as_bytes());
        for (part, value) in known {
            if text.get(self.places[part as usize].range()) == Some(value) {
                continue;
            }
            let start = text.len();
            text.extend_from_slice(value);
            self.place(part, start..text.len());
        }
        // All at once: that is cheaper.
        self.text = String::from_utf8(text).ok()?;
        Some(self)
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

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Texts};
    use std::borrow::Cow;

    #[test]
    fn parts_stand_in_one_text() {
        let mut texts = Texts::within("/api/v1/nodes/a");
        texts.place(Part::Group, 4..4);
        texts.place(Part::Version, 5..7);
        texts.set(Part::FieldManager, "me");
        let with = |parts: &[(Part, &'static [u8])]| {
            let parts = parts
                .iter()
                .map(|(part, text)| (*part, Some(Cow::Borrowed(*text))));
            texts.clone().with(&parts.collect::<Vec<_>>())
        };
        let more = with(&[(Part::Version, b"v1"), (Part::Kind, b"Node")]).unwrap();
        assert_eq!(more.text, "/api/v1/nodes/ameNode");
        assert_eq!(more.get(Part::Group), Some(""));
        assert_eq!(more.get(Part::Version), Some("v1"));
        assert_eq!(more.get(Part::FieldManager), Some("me"));
        assert_eq!(more.get(Part::Kind), Some("Node"));
        assert_eq!(more.get(Part::Labels), None);
        let other = with(&[(Part::FieldManager, b"you")]).unwrap();
        assert_eq!(other.get(Part::FieldManager), Some("you"));
        assert!(with(&[(Part::Kind, b"\xff")]).is_none());
    }
}

//! Where in a document a value is.

use std::fmt;

/// Each level knows the one around it. So it costs nothing to go down, and the text of a path is made only for what
/// is told about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A part of a document whose path is known as text; empty for the document itself.
    At(&'a str),
    /// As in `spec.name`.
    Member(&'a Place<'a>, &'a str),
    /// As in `labels[key]`.
    Key(&'a Place<'a>, &'a str),
    /// As in `containers[0]`.
    Element(&'a Place<'a>, usize),
}

// === impl Place ===

impl Place<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::At(path) => path.is_empty(),
            Self::Member(around, name) => name.is_empty() && around.is_empty(),
            Self::Key(..) | Self::Element(..) => false,
        }
    }
}

/// As in `spec.containers[0].name`.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(path) => f.write_str(path),
            Self::Member(around, name) if around.is_empty() => f.write_str(name),
            Self::Member(around, name) => write!(f, "{around}.{name}"),
            Self::Key(around, key) => write!(f, "{around}[{key}]"),
            Self::Element(around, index) => write!(f, "{around}[{index}]"),
        }
    }
}

impl From<&Place<'_>> for String {
    fn from(place: &Place<'_>) -> Self {
        place.to_string()
    }
}

impl From<Place<'_>> for String {
    fn from(place: Place<'_>) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn the_text_of_a_path() {
        let document = Place::At("");
        let spec = Place::Member(&document, "spec");
        let labels = Place::Member(&spec, "labels");
        let list = Place::Member(&spec, "list");
        let second = Place::Element(&list, 1);
        for (place, text) in [
            (document, ""),
            (spec, "spec"),
            (Place::Key(&labels, "a.b/c"), "spec.labels[a.b/c]"),
            (second, "spec.list[1]"),
            (Place::Member(&second, "name"), "spec.list[1].name"),
            (Place::Element(&second, 0), "spec.list[1][0]"),
            (Place::Element(&document, 0), "[0]"),
            (Place::Member(&Place::At("status"), "x"), "status.x"),
            (Place::Member(&Place::Member(&document, ""), "x"), "x"),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}

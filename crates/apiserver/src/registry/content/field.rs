//! Where in an object a rule is broken.

use std::fmt;

/// The place of a value in its object. It is written only when somebody has to be told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field<'a> {
    Object,
    Member(&'a Field<'a>, &'a str),
    Element(&'a Field<'a>, usize),
    Key(&'a Field<'a>, &'a str),
}

// === impl Field ===

impl Field<'_> {
    pub(super) fn member<'b>(&'b self, name: &'b str) -> Field<'b> {
        Field::Member(self, name)
    }

    pub(super) fn element(&self, index: usize) -> Field<'_> {
        Field::Element(self, index)
    }

    pub(super) fn key<'b>(&'b self, key: &'b str) -> Field<'b> {
        Field::Key(self, key)
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Object => Ok(()),
            Field::Member(Field::Object, name) => f.write_str(name),
            Field::Member(parent, name) => write!(f, "{parent}.{name}"),
            Field::Element(parent, index) => write!(f, "{parent}[{index}]"),
            Field::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

impl From<Field<'_>> for String {
    fn from(field: Field<'_>) -> Self {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_the_server_does() {
        let spec = Field::Object.member("spec");
        let list = spec.member("containers");
        let limits = list.element(0);
        let limits = limits.member("limits");
        assert_eq!(
            limits.key("cpu").to_string(),
            "spec.containers[0].limits[cpu]"
        );
    }
}

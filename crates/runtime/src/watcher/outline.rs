//! What can be told of an object without decoding it.

use crate::scan::Members;
use rustc_hash::FxHasher;
use std::{borrow::Cow, fmt, hash::Hasher, ops::Range, str};

/// Which object a text is about, and in which version. Everything is borrowed from the text.
#[derive(Debug, Default)]
pub(crate) struct Outline<'a> {
    /// Empty for an object of the cluster.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: Option<&'a str>,
    pub(crate) resource_version: Option<&'a str>,
    /// Where `metadata.managedFields` stand, with the comma that goes with them.
    pub(super) managed_fields: Option<Range<usize>>,
}

/// What somebody wants of an object, as far as its metadata tell: equal for two versions of which nobody has changed
/// the spec, the labels, the annotations or the finalizers, and neither of which is being deleted if the other is
/// not. `None` for kinds without a generation, whose versions all differ.
pub(crate) type Desired = Option<u64>;

/// How the objects of a watch are read.
pub(crate) struct Reading {
    /// Whether `metadata.managedFields` are decoded.
    pub(crate) managed_fields: bool,
    pub(crate) known: Option<Known>,
}

/// What is to be decoded of an object.
#[derive(Debug)]
pub(super) enum Outlined {
    /// Nothing: it is known as it is.
    Known,
    Whole,
    /// All but this part of its text.
    Without(Range<usize>),
}

/// Takes in that a list shows a version of an object. True if that is nothing new, so that nobody wants to have it.
pub(crate) type Known = Box<dyn Fn(&Outline<'_>) -> bool + Send + Sync>;

// === impl Outline ===

impl<'a> Outline<'a> {
    /// The outline of an object; `None` if the text is not what servers of Kubernetes write, which says nothing of
    /// whether it can be decoded.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        let mut members = Members::of(text);
        while let Some(name) = members.name() {
            if name == b"metadata" {
                let mut metadata = Members::of(members.rest());
                return Self::of_metadata(text, &mut metadata, |_, _| {});
            }
            members.value()?;
        }
        None
    }

    /// The same for a text that is an object from its beginning to its end, and what is wanted of the object.
    pub(crate) fn of_whole(text: &'a [u8]) -> Option<(Self, Desired)> {
        let mut members = Members::of(text);
        let mut found = None;
        while let Some(name) = members.name() {
            if name != b"metadata" {
                members.value()?;
                continue;
            }
            let mut metadata = Members::of(members.rest());
            let mut has_generation = false;
            let mut hasher = FxHasher::default();
            let outline = Self::of_metadata(text, &mut metadata, |name, value| {
                has_generation |= name == b"generation";
                hasher.write(name);
                // Of a deletion only counts that it was asked for.
                hasher.write(if name == b"deletionTimestamp" {
                    b""
                } else {
                    value
                });
            })?;
            members.leave(&metadata)?;
            found = Some((outline, has_generation.then(|| hasher.finish())));
        }
        let ends = members.is_complete() && members.rest().trim_ascii().is_empty();
        found.filter(|_| ends)
    }

    /// Steps through metadata to their end, and shows those members that tell what is wanted.
    fn of_metadata(
        text: &'a [u8],
        members: &mut Members<'a>,
        mut desired: impl FnMut(&[u8], &[u8]),
    ) -> Option<Self> {
        let at = |rest: &[u8]| text.len() - rest.len();
        let mut outline = Self::default();
        loop {
            let before = at(members.rest());
            let Some(name) = members.name() else {
                return members.is_complete().then_some(outline);
            };
            match name {
                b"generation" | b"deletionTimestamp" | b"labels" | b"annotations"
                | b"finalizers" => desired(name, members.value()?),
                b"managedFields" => {
                    members.skip_managed_fields()?;
                    outline.managed_fields = Some(whole_member(text, before, at(members.rest())));
                }
                b"name" => outline.name = plain(members.value()?)?,
                b"namespace" => outline.namespace = plain(members.value()?)?,
                b"uid" => {
                    let uid = members.value()?;
                    desired(name, uid);
                    outline.uid = Some(plain(uid)?);
                }
                b"resourceVersion" => outline.resource_version = Some(plain(members.value()?)?),
                _ => drop(members.value()?),
            }
        }
    }
}

/// A text without a part of it.
pub(super) fn without(text: &[u8], range: Range<usize>) -> Vec<u8> {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    [before.unwrap_or_default(), after.unwrap_or_default()].concat()
}

/// Where a member stands, with the comma before it or, if it is the first one, behind it.
fn whole_member(text: &[u8], before: usize, after: usize) -> Range<usize> {
    let first_of = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        let at = at + spaces.count();
        (at, text.get(at))
    };
    match (first_of(before), first_of(after)) {
        ((start, Some(b',')), _) => start..after,
        ((start, _), (end, Some(b','))) => start..end + 1,
        ((start, _), _) => start..after,
    }
}

/// A text in JSON in which nothing is escaped.
fn plain(value: &[u8]) -> Option<&str> {
    let inside = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    str::from_utf8(inside)
        .ok()
        .filter(|text| !text.contains('\\'))
}

// === impl Reading ===

impl Reading {
    /// All of every object.
    pub(super) fn all() -> Self {
        Self {
            managed_fields: true,
            known: None,
        }
    }

    /// What is to be decoded of an object of a list.
    pub(super) fn outline(&self, text: &[u8]) -> Outlined {
        if self.managed_fields && self.known.is_none() {
            return Outlined::Whole;
        }
        let Some(outline) = Outline::of(text) else {
            return Outlined::Whole;
        };
        if self.known.as_ref().is_some_and(|known| known(&outline)) {
            return Outlined::Known;
        }
        match outline.managed_fields.filter(|_| !self.managed_fields) {
            Some(range) => Outlined::Without(range),
            None => Outlined::Whole,
        }
    }

    /// The part of an object that is to be decoded.
    pub(super) fn part<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let outline = if self.managed_fields {
            None
        } else {
            Outline::of(text)
        };
        match outline.and_then(|outline| outline.managed_fields) {
            Some(range) => without(text, range).into(),
            None => text.into(),
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("managed_fields", &self.managed_fields)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Outline, without};
    use serde_json::{Value, json};

    /// The outline tells what is in the metadata, and nothing but the managed fields is left out, however the members
    /// are ordered and however they are written.
    #[test]
    fn managed_fields_are_left_out() {
        let fields =
            json!([{ "manager": "a", "fieldsV1": { "f:spec": { "k:{\"name\":\"x\"}": {} } } }]);
        let members = [
            ("name", json!("web")),
            ("namespace", json!("default")),
            ("uid", json!("u-1")),
            ("resourceVersion", json!("17")),
            ("annotations", json!({ "managedFields": "[{}],\"x" })),
        ];
        for place in 0..=members.len() {
            for rotation in 0..members.len() {
                let mut all: Vec<(&str, Value)> = members.clone().into();
                all.rotate_left(rotation);
                all.insert(place, ("managedFields", fields.clone()));
                for space in ["", " ", "\n  "] {
                    let written: Vec<String> = all
                        .iter()
                        .map(|(name, value)| format!("\"{name}\"{space}:{space}{value}"))
                        .collect();
                    let metadata = written.join(&format!("{space},{space}"));
                    let text = format!(
                        "{{\"kind\":{space}\"Site\",\"metadata\":{space}{{{space}{metadata}{space}}}{space},\"spec\":{{\"managedFields\":[1]}}}}"
                    );
                    let outline = Outline::of(text.as_bytes()).unwrap();
                    assert_eq!((outline.namespace, outline.name), ("default", "web"));
                    assert_eq!(
                        (outline.uid, outline.resource_version),
                        (Some("u-1"), Some("17"))
                    );
                    let slim = without(text.as_bytes(), outline.managed_fields.unwrap());
                    let slim: Value = serde_json::from_slice(&slim).unwrap_or_else(|error| {
                        panic!("{error}: {}", String::from_utf8_lossy(&slim))
                    });
                    let mut expected: Value = serde_json::from_str(&text).unwrap();
                    let metadata = expected["metadata"].as_object_mut().unwrap();
                    assert!(metadata.remove("managedFields").is_some());
                    assert_eq!(slim, expected);
                }
            }
        }
    }

    #[test]
    fn alone_in_the_metadata() {
        let text = br#"{"metadata":{ "managedFields":[{"fieldsV1":{}}] }}"#;
        let range = Outline::of(text).unwrap().managed_fields.unwrap();
        let slim = without(text, range);
        assert_eq!(
            serde_json::from_slice::<Value>(&slim).unwrap(),
            json!({ "metadata": {} })
        );
    }

    #[test]
    fn what_is_no_such_object() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"metadata":1}"#,
            r#"{"metadata":{"name":1}}"#,
            r#"{"metadata":{"name":"a\u0062"}}"#,
            r#"{"metadata":{"name":"a""#,
            r#"{"metadata":{"managedFields":[{"#,
        ] {
            assert!(Outline::of(text.as_bytes()).is_none(), "{text}");
        }
    }
}

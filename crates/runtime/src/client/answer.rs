//! What the answer to a write tells.
//!
//! Answers are read from their beginning, and only as far as what matters: an object's kind and
//! metadata come before its contents. Of these and of the metadata, what does not matter is stepped over.

use super::texts::Part;
use crate::scan::{Elements, Members};
use memchr::memchr;
use std::borrow::Cow;

/// The objects of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    /// That of a write of one object. A delete at once is answered by a `Status`, whose details are
    /// taken for it.
    pub(super) object: Option<Header<'a>>,
    /// Those that went with a collection.
    pub(super) items: Vec<Header<'a>>,
}

/// What identifies a version of an object, each in JSON.
#[derive(Debug, Default)]
pub(super) struct Header<'a> {
    /// Stands beside the metadata; unknown for what a `Status` tells of.
    kind: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    namespace: Option<&'a [u8]>,
    uid: Option<&'a [u8]>,
    resource_version: Option<&'a [u8]>,
    labels: Option<&'a [u8]>,
    deletion_timestamp: Option<&'a [u8]>,
    deletion_grace_period_seconds: Option<&'a [u8]>,
    finalizers: Option<&'a [u8]>,
}

// === impl Answer ===

impl<'a> Answer<'a> {
    /// Reads an answer; `None` if it is none that a server of Kubernetes gives.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        let mut members = Members::of(body);
        let (mut kind, mut metadata): (Option<&[u8]>, _) = (None, None);
        // What is not an object may say so only after what it tells.
        let (mut details, mut items) = (None, None);
        while let Some(name) = members.name() {
            if name == b"metadata"
                && let Some(kind) = kind.filter(|kind| is_object(kind))
            {
                return Some(Self::of_object(kind, members.rest()));
            }
            let value = members.value()?;
            match name {
                b"kind" => kind = Some(value),
                b"metadata" => metadata = Some(value),
                b"details" => details = Some(value),
                b"items" => items = Some(value),
                _ => {}
            }
            if let (Some(metadata), Some(kind)) = (metadata, kind.filter(|kind| is_object(kind))) {
                return Some(Self::of_object(kind, metadata));
            }
        }
        if !members.is_complete() {
            return None;
        }
        Some(if kind == Some(STATUS) {
            Self {
                object: details.map(Header::of),
                items: Vec::new(),
            }
        } else {
            let items = Elements::of(items.unwrap_or_default());
            Self {
                object: None,
                items: items.map(Header::of_item).collect(),
            }
        })
    }

    fn of_object(kind: &'a [u8], metadata: &'a [u8]) -> Self {
        Self {
            object: Some(Header {
                kind: Some(kind),
                ..Header::of(metadata)
            }),
            items: Vec::new(),
        }
    }
}

const STATUS: &[u8] = b"\"Status\"";

fn is_object(kind: &[u8]) -> bool {
    !matches!(kind, b"\"\"" | STATUS) && kind.starts_with(b"\"") && !kind.ends_with(b"List\"")
}

// === impl Header ===

impl<'a> Header<'a> {
    /// From `metadata`, or from the details of a `Status`, which name some of the same. (What they
    /// call `kind` is a name in paths.)
    fn of(text: &'a [u8]) -> Self {
        let mut header = Self::default();
        let mut members = Members::of(text);
        while let Some(name) = members.name() {
            if name == b"managedFields" {
                members.skip_managed_fields();
                continue;
            }
            let Some(value) = members.value() else { break };
            let place = match name {
                b"name" => &mut header.name,
                b"namespace" => &mut header.namespace,
                b"uid" => &mut header.uid,
                b"resourceVersion" => &mut header.resource_version,
                b"labels" => &mut header.labels,
                b"deletionTimestamp" => &mut header.deletion_timestamp,
                b"deletionGracePeriodSeconds" => &mut header.deletion_grace_period_seconds,
                b"finalizers" => &mut header.finalizers,
                _ => continue,
            };
            *place = (value != b"null").then_some(value);
        }
        header
    }

    fn of_item(text: &'a [u8]) -> Self {
        let mut members = Members::of(text);
        let metadata = members.find(|(name, _)| *name == b"metadata");
        metadata.map_or_else(Self::default, |(_, value)| Self::of(value))
    }

    pub(super) fn has_version(&self) -> bool {
        self.resource_version.is_some()
    }

    /// Whether an object in this state is gone: nothing holds back its deletion any more.
    pub(super) fn is_gone(&self) -> bool {
        let finalizers = Elements::of(self.finalizers.unwrap_or_default()).count();
        let is_due = matches!(self.deletion_grace_period_seconds, None | Some(b"0"));
        self.deletion_timestamp.is_some() && finalizers == 0 && is_due
    }

    /// What it tells.
    pub(super) fn parts(&self) -> [(Part, Option<Cow<'a, [u8]>>); 6] {
        [
            (Part::Kind, self.kind.and_then(string)),
            (Part::Name, self.name.and_then(string)),
            (Part::Namespace, self.namespace.and_then(string)),
            (Part::Uid, self.uid.and_then(string)),
            (
                Part::ResourceVersion,
                self.resource_version.and_then(string),
            ),
            (Part::Labels, self.labels.map(Cow::Borrowed)),
        ]
    }
}

/// A string, perhaps not in UTF-8; `None` for anything else.
fn string(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let plain = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr(b'\\', plain).is_some() {
        let decoded: String = serde_json::from_slice(value).ok()?;
        return Some(Cow::Owned(decoded.into()));
    }
    Some(Cow::Borrowed(plain))
}

#[cfg(test)]
mod tests {
    use super::{
        super::texts::{Part, Texts},
        Answer, Header,
    };

    /// What the header tells of these parts.
    fn told<const N: usize>(header: &Header<'_>, parts: [Part; N]) -> [Option<String>; N] {
        let texts = Texts::within("").with(&header.parts()).unwrap();
        parts.map(|part| texts.get(part).map(str::to_owned))
    }

    fn known<const N: usize>(texts: [&str; N]) -> [Option<String>; N] {
        texts.map(|text| Some(text.to_owned()))
    }

    #[test]
    fn an_object_is_read_up_to_its_metadata() {
        let body = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u",
            "resourceVersion":"7","labels":{"x":"y"},"managedFields":[{"manager":"m"}]},"spec":{"broken"#;
        let object = Answer::read(body).unwrap().object.unwrap();
        let parts = [
            Part::Kind,
            Part::Name,
            Part::Namespace,
            Part::Uid,
            Part::ResourceVersion,
            Part::Labels,
        ];
        let expected = known(["Pod", "a", "b", "u", "7", r#"{"x":"y"}"#]);
        assert_eq!(told(&object, parts), expected);
        assert!(!object.is_gone());
    }

    #[test]
    fn a_status_names_what_is_gone() {
        // In Go's order, and in that of the alphabet.
        for body in [
            r#"{"kind":"Status","metadata":{},"details":{"name":"a","kind":"pods","uid":"u"}}"#,
            r#"{"details":{"kind":"pods","name":"a","uid":"u"},"kind":"Status","metadata":{}}"#,
        ] {
            check_status(body);
        }
    }

    #[track_caller]
    fn check_status(body: &str) {
        let object = Answer::read(body.as_bytes()).unwrap().object.unwrap();
        assert_eq!(told(&object, [Part::Name, Part::Uid]), known(["a", "u"]));
        assert!(!object.has_version());
        assert_eq!(told(&object, [Part::Kind]), [None]);
    }

    #[test]
    fn names_are_decoded() {
        let body = r#"{"kind":"X","metadata":{"name":"a\u0062\"","uid":7,"resourceVersion":null}}"#;
        let object = Answer::read(body.as_bytes()).unwrap().object.unwrap();
        assert_eq!(told(&object, [Part::Name]), known(["ab\""]));
        let parts = [Part::Uid, Part::ResourceVersion];
        assert_eq!(told(&object, parts), [None, None]);
    }

    #[test]
    fn a_list_names_all_that_is_gone() {
        let body = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},
            "items":[{"metadata":{"name":"a","uid":"u"}},{"metadata":{"name":"b"}}]}"#;
        let answer = Answer::read(body).unwrap();
        assert!(answer.object.is_none());
        let names: Vec<_> = answer
            .items
            .iter()
            .flat_map(|item| told(item, [Part::Name]))
            .collect();
        assert_eq!(names, known(["a", "b"]));
    }

    #[test]
    fn what_holds_back_a_deletion_keeps_the_object() {
        let is_gone = |rest: &str| {
            let body = format!(
                r#"{{"kind":"Pod","metadata":{{"deletionTimestamp":"2026-01-01T00:00:00Z"{rest}}}}}"#
            );
            Answer::read(body.as_bytes())
                .unwrap()
                .object
                .unwrap()
                .is_gone()
        };
        assert!(is_gone(""));
        assert!(is_gone(
            r#","finalizers":[],"deletionGracePeriodSeconds":0"#
        ));
        assert!(!is_gone(r#","finalizers":["x"]"#));
        assert!(!is_gone(r#","deletionGracePeriodSeconds":30"#));
    }

    #[test]
    fn what_is_no_answer_tells_nothing() {
        assert!(Answer::read(b"").is_none());
        assert!(Answer::read(b"gone").is_none());
        assert!(Answer::read(b"[]").is_none());
        assert!(Answer::read(b"{}").unwrap().object.is_none());
    }
}

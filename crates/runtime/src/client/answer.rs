//! What the answer to a write tells.
//!
//! Answers are read from their beginning, and only as far as what matters: an object's kind and
//! metadata come before its contents. Of these and of the metadata, what does not matter is stepped over.

use super::scan::{Elements, Members};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The objects of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// That of a write of one object. A delete at once is answered by a `Status`, whose details are
    /// taken for it.
    pub(super) object: Option<Header>,
    /// Those that went with a collection.
    pub(super) items: Vec<Header>,
}

/// What identifies a version of an object.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Stands beside the metadata; unknown for what a `Status` tells of.
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) labels: Labels,
    has_deletion_timestamp: bool,
    deletion_grace_period_seconds: Option<i64>,
    has_finalizers: bool,
}

/// The labels of an object, in JSON: hardly anybody asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(Option<Box<[u8]>>);

// === impl Answer ===

impl Answer {
    /// Reads an answer; `None` if it is none that a server of Kubernetes gives.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut members = Members::of(body);
        let (mut kind, mut metadata) = (String::new(), None);
        // What is not an object may say so only after what it tells.
        let (mut details, mut items) = (None, None);
        while let Some(name) = members.name() {
            let is_object = |kind: &str| !matches!(kind, "" | "Status") && !kind.ends_with("List");
            if name == b"metadata" && is_object(&kind) {
                return Some(Self::of_object(kind, members.rest()));
            }
            let value = members.value()?;
            match name {
                b"kind" => kind = string(value)?,
                b"metadata" => metadata = Some(value),
                b"details" => details = Some(value),
                b"items" => items = Some(value),
                _ => {}
            }
            if let Some(metadata) = metadata.filter(|_| is_object(&kind)) {
                return Some(Self::of_object(kind, metadata));
            }
        }
        if !members.is_complete() {
            return None;
        }
        Some(if kind == "Status" {
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

    fn of_object(kind: String, metadata: &[u8]) -> Self {
        Self {
            object: Some(Header {
                kind: Some(kind),
                ..Header::of(metadata)
            }),
            items: Vec::new(),
        }
    }
}

// === impl Header ===

impl Header {
    /// From `metadata`, or from the details of a `Status`, which name some of the same. (What they
    /// call `kind` is a name in paths.)
    fn of(text: &[u8]) -> Self {
        let mut header = Self::default();
        let mut members = Members::of(text);
        while let Some(name) = members.name() {
            if name == b"managedFields" {
                members.skip_managed_fields();
                continue;
            }
            let Some(value) = members.value() else { break };
            match name {
                b"name" => header.name = string(value),
                b"namespace" => header.namespace = string(value),
                b"uid" => header.uid = string(value),
                b"resourceVersion" => header.resource_version = string(value),
                b"labels" => header.labels = Labels::of(value),
                b"deletionTimestamp" => header.has_deletion_timestamp = value != b"null",
                b"deletionGracePeriodSeconds" => {
                    header.deletion_grace_period_seconds = decode(value);
                }
                b"finalizers" => header.has_finalizers = Elements::of(value).next().is_some(),
                _ => {}
            }
        }
        header
    }

    fn of_item(text: &[u8]) -> Self {
        let mut members = Members::of(text);
        let metadata = members.find(|(name, _)| *name == b"metadata");
        metadata.map_or_else(Self::default, |(_, value)| Self::of(value))
    }

    /// Whether an object in this state is gone: nothing holds back its deletion any more.
    pub(super) fn is_gone(&self) -> bool {
        self.has_deletion_timestamp
            && !self.has_finalizers
            && self.deletion_grace_period_seconds.unwrap_or(0) == 0
    }
}

// === impl Labels ===

impl Labels {
    fn of(value: &[u8]) -> Self {
        Self(Some(value.into()))
    }

    pub(crate) fn decode(&self) -> BTreeMap<String, String> {
        self.0.as_deref().and_then(decode).unwrap_or_default()
    }
}

/// A string; `None` for anything else.
fn string(value: &[u8]) -> Option<String> {
    let plain = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', plain).is_some() {
        return decode(value);
    }
    str::from_utf8(plain).ok().map(str::to_owned)
}

/// A value; `None` also for null.
fn decode<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    serde_json::from_slice::<Option<T>>(value).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn an_object_is_read_up_to_its_metadata() {
        let body = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u",
            "resourceVersion":"7","labels":{"x":"y"},"managedFields":[{"manager":"m"}]},"spec":{"broken"#;
        let object = Answer::read(body).unwrap().object.unwrap();
        assert_eq!(object.name.as_deref(), Some("a"));
        assert_eq!(object.namespace.as_deref(), Some("b"));
        assert_eq!(object.uid.as_deref(), Some("u"));
        assert_eq!(object.resource_version.as_deref(), Some("7"));
        assert_eq!(object.labels.decode()["x"], "y");
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
        assert_eq!(
            (object.name.as_deref(), object.uid.as_deref()),
            (Some("a"), Some("u"))
        );
        assert_eq!(object.resource_version, None);
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
            .map(|item| item.name.as_deref())
            .collect();
        assert_eq!(names, [Some("a"), Some("b")]);
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

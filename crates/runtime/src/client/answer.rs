//! What the answer to a write tells.
//!
//! Answers are read from their beginning, and only as far as what matters: an object's kind and
//! metadata come before its contents. No value of the contents is ever decoded.

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt};

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
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Header {
    /// Stands beside the metadata; unknown for what a `Status` tells of.
    #[serde(skip)]
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<IgnoredAny>>,
}

/// Only what a `Status` says of its object.
#[derive(Deserialize)]
struct Details {
    name: Option<String>,
    uid: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: Header,
}

/// Reads into an answer until all that matters is there.
struct Reader<'a> {
    answer: &'a mut Answer,
    /// Whether the reading has stopped before the end, which is no failure.
    enough: &'a mut bool,
}

// === impl Answer ===

impl Answer {
    /// Reads an answer; `None` if it is none that a server of Kubernetes gives.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let (mut answer, mut enough) = (Self::default(), false);
        let reader = Reader {
            answer: &mut answer,
            enough: &mut enough,
        };
        let read = serde_json::Deserializer::from_slice(body).deserialize_map(reader);
        (read.is_ok() || enough).then_some(answer)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { answer, enough } = self;
        let (mut kind, mut metadata) = (String::new(), None);
        // What is not an object may say so only after what it tells.
        let (mut details, mut items) = (None, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "kind" => kind = map.next_value()?,
                "metadata" => metadata = Some(map.next_value::<Header>()?),
                "details" => details = Some(map.next_value::<&RawValue>()?),
                "items" => items = Some(map.next_value::<&RawValue>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            let is_object = !kind.is_empty() && kind != "Status" && !kind.ends_with("List");
            if is_object && let Some(metadata) = metadata.take() {
                answer.object = Some(Header {
                    kind: Some(kind),
                    ..metadata
                });
                *enough = true;
                return Err(de::Error::custom("enough"));
            }
        }
        if kind == "Status" {
            let details = details.and_then(|raw| serde_json::from_str::<Details>(raw.get()).ok());
            answer.object = details.map(|Details { name, uid }| Header {
                name,
                uid,
                ..Header::default()
            });
        } else if let Some(items) = items {
            let items = serde_json::from_str::<Vec<Item>>(items.get()).unwrap_or_default();
            answer.items = items.into_iter().map(|item| item.metadata).collect();
        }
        Ok(())
    }
}

// === impl Header ===

impl Header {
    /// Whether an object in this state is gone: nothing holds back its deletion any more.
    pub(super) fn is_gone(&self) -> bool {
        self.deletion_timestamp.is_some()
            && self.finalizers.as_ref().is_none_or(Vec::is_empty)
            && self.deletion_grace_period_seconds.unwrap_or(0) == 0
    }
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
        assert_eq!(object.labels.as_ref().unwrap()["x"], "y");
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

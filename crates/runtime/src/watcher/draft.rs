//! Objects of a watch that need not be decoded yet.

use super::{
    decode::{self, Decoded, Text},
    driver::undecodable,
    error::Error,
    outline::{Outline, Reading, without},
    source::Target,
};
use crate::reflector::{Header, ObjectKey};
use homeostat_core::watch::Phase;
use kube::Resource;
use serde::de::DeserializeOwned;

/// An object as a watch delivers it.
#[derive(Debug)]
pub(crate) enum Draft<K> {
    /// Of a list, or one whose text has to be read to know what it is about.
    Whole(K),
    /// Of an event. It may be overtaken by the next one before anybody reads it.
    Unread(Unread),
}

/// An object as text, and what is known of it without decoding it.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) key: ObjectKey,
    pub(crate) header: Header,
    /// What is to be decoded.
    pub(crate) text: Box<[u8]>,
}

// === impl Draft ===

impl<K> Text for Draft<K>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    fn is_of_any_kind() -> bool {
        K::is_of_any_kind()
    }

    fn listed(text: &[u8]) -> Decoded<Self> {
        K::listed(text).map(Self::Whole)
    }

    fn told(text: &[u8], reading: &Reading, listing: bool) -> Decoded<Self> {
        let unread = (!listing).then(|| Unread::of(text, reading)).flatten();
        match unread {
            Some(unread) => Ok(Self::Unread(unread)),
            None => K::told(text, reading, listing).map(Self::Whole),
        }
    }

    fn names(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Whole(obj) => obj.names(),
            Self::Unread(unread) => {
                let (namespace, name) = (unread.key.namespace(), unread.key.name());
                (Some(namespace).filter(|it| !it.is_empty()), Some(name))
            }
        }
    }

    fn version(&self) -> Option<&str> {
        match self {
            Self::Whole(obj) => obj.version(),
            Self::Unread(unread) => Some(unread.header.version()),
        }
    }
}

impl<K: DeserializeOwned> Draft<K> {
    /// The object itself, of an event that says whether it was deleted.
    pub(crate) fn into_whole(self, target: &Target, deleted: bool) -> Result<K, Error> {
        match self {
            Self::Whole(obj) => Ok(obj),
            Self::Unread(unread) => read(&unread.text, target, deleted),
        }
    }
}

// === impl Unread ===

impl Unread {
    /// What can be told of a text without decoding it; `None` if that is not enough.
    fn of(text: &[u8], reading: &Reading) -> Option<Self> {
        let (outline, desired) = Outline::of_whole(text)?;
        let Outline {
            namespace,
            name,
            uid,
            resource_version,
            managed_fields,
        } = outline;
        let version = resource_version.filter(|version| !version.is_empty())?;
        // A copy that is as long as it has to be: the text is part of a larger one, which would stay with it.
        let text = match managed_fields.filter(|_| !reading.managed_fields) {
            Some(range) => without(text, range).into(),
            None => text.into(),
        };
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        (!name.is_empty()).then(|| Self {
            key: ObjectKey::new(namespace, name),
            header: Header::new(uid, version, desired),
            text,
        })
    }
}

/// Decodes the object of an event.
pub(crate) fn read<K: DeserializeOwned>(
    text: &[u8],
    target: &Target,
    deleted: bool,
) -> Result<K, Error> {
    decode::object(text).map_err(|unfit| undecodable(target, *unfit, Phase::Watch, deleted))
}

#[cfg(test)]
mod tests {
    use super::{Draft, Reading, Text, read};
    use crate::{predicate::changes_desired_state, watcher::Target};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn slim() -> Reading {
        Reading {
            managed_fields: false,
            known: None,
        }
    }

    fn told(text: &str, listing: bool) -> Option<Draft<Pod>> {
        Draft::told(text.as_bytes(), &slim(), listing).ok()
    }

    fn pod(changes: &Value) -> Value {
        let mut pod = json!({
            "kind": "Pod",
            "metadata": {
                "annotations": { "a": "{\"x\":[1]}" }, "finalizers": ["f"], "generation": 3,
                "labels": { "app": "web" },
                "managedFields": [{ "manager": "m", "fieldsV1": { "f:spec": {} } }],
                "name": "web", "namespace": "default", "resourceVersion": "17", "uid": "u-1",
            },
            "spec": { "containers": [], "nodeName": "n" },
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            if value.is_null() {
                pod["metadata"].as_object_mut().unwrap().remove(name);
            } else {
                pod["metadata"][name] = value.clone();
            }
        }
        pod
    }

    fn target() -> Target {
        Target::new("/api/v1/pods", None)
    }

    #[test]
    fn an_event_is_known_by_its_metadata_and_decoded_later() {
        let text = pod(&json!({})).to_string();
        let Some(Draft::Unread(unread)) = told(&text, false) else {
            panic!("{text}");
        };
        assert_eq!(unread.key.to_string(), "default/web");
        let header = &unread.header;
        assert_eq!((header.uid(), header.version()), (Some("u-1"), "17"));
        let obj: Pod = read(&unread.text, &target(), false).unwrap();
        let mut whole: Pod = serde_json::from_str(&text).unwrap();
        whole.metadata.managed_fields = None;
        assert_eq!(obj, whole);
    }

    #[test]
    fn what_cannot_be_known_that_way_is_decoded_at_once() {
        let text = pod(&json!({})).to_string();
        assert!(
            matches!(told(&text, true), Some(Draft::Whole(_))),
            "of a list"
        );
        let escaped = text.replace("\"web\",\"namespace\"", "\"w\\u0065b\",\"namespace\"");
        let Some(Draft::Whole(obj)) = told(&escaped, false) else {
            panic!("{escaped}");
        };
        assert_eq!(obj.metadata.name.as_deref(), Some("web"));
        for end in 0..text.len() {
            assert!(told(&text[..end], false).is_none(), "{}", &text[..end]);
        }
        for behind in ["}", ",", "{}", ",\"x\":1"] {
            assert!(
                told(&format!("{text}{behind}"), false).is_none(),
                "{behind}"
            );
        }
        assert!(told(&format!(" {text}\n "), false).is_some());
    }

    /// Two versions that were not read are compared as their objects would be.
    #[test]
    fn what_is_wanted_is_compared_without_decoding() {
        let changes = [
            json!({ "resourceVersion": "18" }),
            json!({ "generation": 4 }),
            json!({ "labels": { "app": "db" } }),
            json!({ "labels": null }),
            json!({ "annotations": { "a": "{\"x\":[2]}" } }),
            json!({ "finalizers": ["f", "g"] }),
            json!({ "uid": "u-2" }),
            json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }),
            json!({ "deletionTimestamp": "2026-01-01T00:00:09Z" }),
            json!({ "managedFields": null }),
            json!({ "generation": null }),
        ];
        for old in &changes {
            for new in &changes {
                let [old, new] = [old, new].map(|changes| pod(changes).to_string());
                let objects = [&old, &new].map(|text| serde_json::from_str::<Pod>(text).unwrap());
                let desired = [&old, &new].map(|text| match told(text, false) {
                    Some(Draft::Unread(unread)) => unread.header.desired(),
                    other => panic!("{other:?}"),
                });
                // Those without a generation all differ if their versions do, which is what versions are for.
                let same_version =
                    objects[0].metadata.resource_version == objects[1].metadata.resource_version;
                if desired[0].is_none() && same_version {
                    continue;
                }
                assert_eq!(
                    desired[0].is_none() || desired[0] != desired[1],
                    changes_desired_state(&objects[0], &objects[1]) || desired[1].is_none(),
                    "{old} {new}"
                );
            }
        }
    }
}

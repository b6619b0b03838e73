//! What is known of one write.

use super::{
    answer::Header,
    request::{Target, Verb},
    texts::{Part, Texts},
};
use crate::reflector::ObjectKey;
use homeostat_core::loops::Sight;
use std::{collections::BTreeMap, fmt};

/// A write that a reconcile has made, and that the server has accepted.
#[derive(Clone)]
pub struct Write {
    verb: Verb,
    /// The number of its answer in its run.
    answer: usize,
    /// Those of the request, completed by the answer.
    texts: Texts,
    /// The version as a number, as they are compared.
    number: Option<u64>,
    changed: Option<bool>,
    gone: bool,
    /// How it looked, if its run is observed.
    sight: Option<Box<Sight>>,
}

/// What is known of objects besides the writes of a run.
pub(crate) trait Known: Send + Sync {
    /// A version up to which all objects of a kind are known, so that a write from now on is later if it
    /// changes anything.
    fn reached(&self, group: &str, resource: &str) -> Option<u64>;
}

// === impl Write ===

impl Write {
    /// What came of a write; `None` if the answer is none that a server of Kubernetes gives. `reached` is the
    /// version that a change after the request is later than.
    pub(super) fn new(
        target: Target,
        answer: usize,
        reached: Option<u64>,
        object: &Header<'_>,
    ) -> Option<Self> {
        let Target { verb, texts } = target;
        // A delete that is answered by something else than the marked object has happened at once.
        let deleted = verb == Verb::Delete && texts.get(Part::Subresource).is_none();
        let gone = object.is_gone() || (deleted && !object.has_version());
        let texts = texts.with(&object.parts())?;
        let version = texts.get(Part::ResourceVersion);
        let number = version.and_then(|version| version.parse().ok());
        let changed = if deleted || (verb == Verb::Create && version.is_some()) {
            Some(true)
        } else {
            // A version that was there before the write is no change.
            reached.and_then(|reached| number.map(|number: u64| number > reached))
        };
        Some(Self {
            verb,
            answer,
            texts,
            number,
            changed,
            gone,
            sight: None,
        })
    }

    /// What was asked for.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The group of the kind; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.texts.get(Part::Group).unwrap_or_default()
    }

    /// The version of the kind that was written in.
    #[must_use]
    pub fn version(&self) -> &str {
        self.texts.get(Part::Version).unwrap_or_default()
    }

    /// The name of the kind in paths, as `deployments`.
    #[must_use]
    pub fn resource(&self) -> &str {
        self.texts.get(Part::Resource).unwrap_or_default()
    }

    /// The kind of the object, as `Deployment`, if the answer tells it.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.texts.get(Part::Kind)
    }

    /// The part of the object that was written, as `status`; `None` for the object itself.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.texts.get(Part::Subresource)
    }

    /// Where the object is; `None` for an object of the cluster.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.texts.get(Part::Namespace)
    }

    /// The name of the object, as the server has completed it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.texts.get(Part::Name).unwrap_or_default()
    }

    /// The object's `metadata.uid`, as far as the answer tells it.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.texts.get(Part::Uid)
    }

    /// The name that the server knows the writer by: the `fieldManager` of the request, or else the
    /// beginning of its user agent.
    #[must_use]
    pub fn field_manager(&self) -> Option<&str> {
        self.texts.get(Part::FieldManager)
    }

    /// The object's `metadata.resourceVersion` after the write. A delete at once has none.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        self.texts.get(Part::ResourceVersion)
    }

    /// Whether the write has changed the object.
    ///
    /// `Some(false)` is certain: the object came back in a version that was there before the request.
    /// `Some(true)` is certain for what was created or deleted. Of anything else it says that the version is
    /// later than all that the controller's caches of this kind had seen before, or that an earlier write of the
    /// same run had led to; what somebody else has changed shortly before cannot be told apart. `None` if no
    /// cache tells.
    #[must_use]
    pub fn changed(&self) -> Option<bool> {
        self.changed
    }

    /// Whether the object is gone with this write.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// The version as a number, as they are compared.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    pub(super) fn answer(&self) -> usize {
        self.answer
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.texts.get(Part::Labels);
        let labels = labels.and_then(|labels| serde_json::from_str(labels).ok());
        labels.unwrap_or_default()
    }

    pub(super) fn set_sight(&mut self, sight: Sight) {
        self.sight = Some(Box::new(sight));
    }

    pub(crate) fn take_sight(&mut self) -> Option<Box<Sight>> {
        self.sight.take()
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Write");
        debug
            .field("verb", &self.verb)
            .field("group", &self.group())
            .field("version", &self.version())
            .field("resource", &self.resource())
            .field("kind", &self.kind())
            .field("subresource", &self.subresource())
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("uid", &self.uid())
            .field("field_manager", &self.field_manager())
            .field("resource_version", &self.resource_version())
            .field("changed", &self.changed)
            .field("gone", &self.gone)
            .finish_non_exhaustive()
    }
}

/// For people: `patch configmaps default/settings to 1234`.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource())?;
        if !self.group().is_empty() {
            write!(f, ".{}", self.group())?;
        }
        if let Some(subresource) = self.subresource() {
            write!(f, "/{subresource}")?;
        }
        match self.namespace() {
            Some(namespace) => write!(f, " {namespace}/{}", self.name())?,
            None => write!(f, " {}", self.name())?,
        }
        if let Some(version) = self.resource_version() {
            write!(f, " to {version}")?;
        }
        if self.changed == Some(false) {
            f.write_str(" (unchanged)")?;
        }
        Ok(())
    }
}

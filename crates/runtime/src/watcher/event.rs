//! What a watch delivers.

use kube::ResourceExt;
use std::fmt;

/// What happened to an object, or to the list of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<K> {
    /// An object was added or modified.
    Apply(K),
    /// An object was deleted; this is its last state.
    Delete(K),
    /// A list begins. If one was under way it is void.
    Init,
    /// An object is part of the list.
    InitApply(K),
    /// The list is complete: what it did not mention does not exist.
    InitDone,
}

// === impl Event ===

impl<K> Event<K> {
    /// Changes the object of this event, if it has one.
    #[must_use]
    pub fn modify(mut self, mut f: impl FnMut(&mut K)) -> Self {
        match &mut self {
            Self::Apply(object) | Self::Delete(object) | Self::InitApply(object) => f(object),
            Self::Init | Self::InitDone => {}
        }
        self
    }
}

/// Written with the name of the object, as in `Apply(default/web)`.
impl<K: ResourceExt> fmt::Display for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, object) = match self {
            Self::Apply(object) => ("Apply", object),
            Self::Delete(object) => ("Delete", object),
            Self::InitApply(object) => ("InitApply", object),
            Self::Init => return f.write_str("Init"),
            Self::InitDone => return f.write_str("InitDone"),
        };
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        match &meta.namespace {
            Some(namespace) => write!(f, "{word}({namespace}/{name})"),
            None => write!(f, "{word}({name})"),
        }
    }
}

//! What the server serves: the facts about each resource, as data.

mod builtin;
mod catalog;
mod column;
mod custom;
mod json_path;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::builtin::{builtin_resources, is_registered};
pub(crate) use self::catalog::Catalog;
pub(crate) use self::column::Column;
pub(crate) use self::custom::from_definition;
pub(crate) use self::json_path::JsonPath;
use crate::pattern::Patterns;
use crate::schema::{Rules, Schema};
use crate::status::Subject;

/// What is made when it is first needed. Of most definitions nobody ever uses an object, and what they
/// say takes many times the memory of their text when it is taken apart.
pub(crate) type Lazily<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) field_selectors: Vec<String>,
    /// How people see its objects.
    pub(crate) columns: Vec<Column>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) schema: Lazily<Schema>,
    /// Where its objects are stored: every version of a resource has the same.
    pub(crate) storage: Arc<str>,
    pub(crate) custom: Option<Custom>,
}

/// What only custom resources have.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) scale: Option<ScalePaths>,
    /// The version in which objects are stored.
    pub(crate) storage_version: String,
    /// The schema of that version, if it is another one.
    pub(crate) storage_schema: Option<Lazily<Schema>>,
    /// The schema as the definition states it.
    pub(crate) structural: Lazily<Value>,
    /// Another one for each schema.
    pub(crate) fingerprint: String,
    /// The patterns of its schema and of its rules.
    pub(crate) patterns: Patterns,
    /// The rules that it states.
    pub(crate) rules: Rules,
    /// Whether there is a default anywhere in it.
    pub(crate) has_defaults: bool,
    /// Whether an object of it was seen already.
    seen: AtomicBool,
    /// Whether the definition is being deleted: then nothing can be created.
    pub(crate) terminating: bool,
    /// What to tell the users of a deprecated version.
    pub(crate) deprecation: Option<String>,
}

/// Where a custom resource keeps what the scale subresource shows.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
    /// Where the kind is of another group.
    #[serde(default)]
    pub(crate) group: Option<String>,
    #[serde(default)]
    pub(crate) version: Option<String>,
}

/// How objects of a resource behave when they are created, changed and deleted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Lifecycle {
    /// Whether objects have a generation.
    pub(crate) generation: bool,
    /// Which changes raise it.
    pub(crate) generation_raised_by: Vec<Part>,
    /// Whether a PUT without a resourceVersion overwrites.
    #[serde(rename = "updateWithoutResourceVersion")]
    pub(crate) unconditional_update: bool,
    /// Whether a PUT of a missing object creates it.
    pub(crate) create_by_put: bool,
    pub(crate) delete_answers: DeleteAnswer,
    /// What the server adds to the smallest valid object.
    pub(crate) filled: Value,
}

/// A part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    Labels,
    Annotations,
    Finalizers,
    /// Everything outside of metadata and status.
    Spec,
}

/// What DELETE answers when the object is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(crate) enum DeleteAnswer {
    #[default]
    Status,
    #[serde(rename = "object")]
    Object,
}

/// Resources of the core group that are deprecated.
const DEPRECATED: [(&str, &str); 2] = [
    (
        "componentstatuses",
        "v1 ComponentStatus is deprecated in v1.19+",
    ),
    (
        "endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

// === impl Custom ===

impl Custom {
    /// Whether this is asked for the first time: what the definition says of objects is not compiled yet.
    pub(crate) fn is_first(&self) -> bool {
        !self.seen.swap(true, Ordering::Relaxed)
    }
}

// === impl Resource ===

impl Resource {
    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Names the resource in a failure.
    pub(crate) fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject {
            group: &self.group,
            kind: &self.plural,
            name,
        }
    }

    /// Names the kind in a failure.
    pub(crate) fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        // An Event is checked in the form in which it is stored, which is of the core group.
        let stored_in_core = self.storage.starts_with('/');
        let group = if stored_in_core {
            ""
        } else {
            self.group.as_str()
        };
        Subject {
            group,
            kind: &self.kind,
            name,
        }
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Whether the status can only be written through its own subresource.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// What to tell the users of a deprecated version.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match &self.custom {
            Some(custom) => custom.deprecation.as_deref(),
            None => DEPRECATED
                .iter()
                .find(|(plural, _)| self.is("", plural))
                .map(|(_, why)| *why),
        }
    }

    /// Whether its objects define custom resources.
    pub(crate) fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }
}

/// `v1`, `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The group of an apiVersion.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Sorts versions as the API does: `v2`, `v1`, `v1beta1`, `v1alpha1`, then what is no version.
pub(crate) fn version_priority(version: &str) -> (u8, i64, i64, String) {
    let number = |text: &str| text.parse::<i64>().ok();
    let parsed = version.strip_prefix('v').and_then(|rest| {
        if let Some(major) = number(rest) {
            return Some((0, major, 0));
        }
        let (stage, name) = if rest.contains("beta") {
            (1, "beta")
        } else {
            (2, "alpha")
        };
        let (major, minor) = rest.split_once(name)?;
        Some((stage, number(major)?, number(minor)?))
    });
    match parsed {
        Some((stage, major, minor)) => (stage, -major, -minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

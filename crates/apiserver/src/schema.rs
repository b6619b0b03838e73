//! What is known about the shape of objects: of built-in kinds from recorded data, of custom kinds
//! from their definitions. One form for both, so that pruning, field sets, merging and patching
//! have one rule each.

mod builtin;
mod decode;
mod rules;
mod structural;
mod validate;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::builtin::{builtin_groups, builtin_type, builtin_types, builtin_types_raw};
pub(crate) use self::decode::{
    blank_builtin, decode_applied, decode_builtin, decode_custom, finish_builtin, prune_custom,
};
pub(crate) use self::rules::{Findings, Rules};
pub(crate) use self::structural::{from_structural, structural_problems};
pub(crate) use self::validate::{duplicates, is_known_format, validate};

/// The shape of a value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each stands for one keyword of a schema"
)]
pub(crate) struct Schema {
    /// The full name of another built-in type that describes the value.
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    /// What the reference leads to, once that was asked.
    #[serde(skip)]
    referenced: OnceLock<Option<&'static Schema>>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    pub(crate) format: Option<String>,
    /// Members of an object.
    pub(crate) fields: BTreeMap<String, Schema>,
    pub(crate) required: Vec<String>,
    /// The elements of a list.
    pub(crate) items: Option<Box<Schema>>,
    /// The values of an object with free keys.
    pub(crate) values: Option<Box<Schema>>,
    pub(crate) default: Option<Value>,
    /// Built-in kinds: the texts that a value or the elements of a list can be.
    #[serde(rename = "enum")]
    pub(crate) one_of: Vec<String>,
    list_type: Option<ListType>,
    pub(crate) list_map_keys: Vec<String>,
    map_type: Option<MapType>,
    pub(crate) patch_strategy: Option<String>,
    pub(crate) patch_merge_key: Option<String>,
    /// Built-in kinds: the member is always written, as null where there is nothing.
    #[serde(skip)]
    pub(crate) null_when_empty: bool,
    /// Built-in kinds: the member is left out when it is empty, though it has a default.
    #[serde(skip)]
    pub(crate) omitted_when_empty: bool,
    /// Custom kinds: members that are not described are kept.
    #[serde(skip)]
    pub(crate) preserve_unknown: bool,
    /// Custom kinds: null is a value.
    #[serde(skip)]
    pub(crate) nullable: bool,
    /// Custom kinds: the value is an object with apiVersion, kind and metadata of its own.
    #[serde(skip)]
    pub(crate) embedded: bool,
}

/// `type` in a schema: one name or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum TypeName {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MapType {
    Atomic,
    Granular,
}

/// How a list's elements are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind<'a> {
    /// The list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By the value of these members.
    Map(&'a [String]),
}

// === impl Schema ===

impl Schema {
    /// The schema of whatever has this built-in type.
    pub(crate) fn reference_to(name: String) -> Self {
        Self {
            reference: Some(name),
            ..Self::default()
        }
    }

    /// The schema of every object's metadata.
    pub(crate) fn object_meta() -> Self {
        Self::reference_to("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".to_owned())
    }

    /// The schema that a reference stands for, or this one.
    pub(crate) fn resolved(&self) -> &Self {
        match &self.reference {
            Some(name) => {
                let find = || builtin_type(name);
                self.referenced.get_or_init(find).unwrap_or(self)
            }
            None => self,
        }
    }

    /// The schema of a member of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let resolved = self.resolved();
        resolved.fields.get(name).or(resolved.values.as_deref())
    }

    /// What a member of a built-in kind is when nothing was said, if it is written then.
    pub(crate) fn zero(&self) -> Option<Value> {
        if self.null_when_empty {
            return Some(Value::Null);
        }
        let default = self.default.as_ref().filter(|_| !self.omitted_when_empty)?;
        let zero = default.as_object().is_some_and(serde_json::Map::is_empty)
            || default == ""
            || default == 0
            || default == false;
        zero.then(|| default.clone())
    }

    /// Whether the value is an object with named members.
    pub(crate) fn is_struct(&self) -> bool {
        !self.resolved().fields.is_empty()
    }

    /// Whether the value is an object with free keys.
    pub(crate) fn is_map(&self) -> bool {
        let resolved = self.resolved();
        resolved.fields.is_empty() && resolved.values.is_some()
    }

    /// Whether server-side apply takes the object as one value.
    pub(crate) fn is_atomic_map(&self) -> bool {
        let own = self.map_type.or(self.resolved().map_type);
        own == Some(MapType::Atomic)
    }

    pub(crate) fn list_kind(&self) -> ListKind<'_> {
        let resolved = self.resolved();
        match self.list_type.or(resolved.list_type) {
            Some(ListType::Set) => ListKind::Set,
            Some(ListType::Map) => ListKind::Map(if self.list_map_keys.is_empty() {
                &resolved.list_map_keys
            } else {
                &self.list_map_keys
            }),
            // The recorded data names lists without a listType whose patches merge.
            None if self.merges_patches() => match &self.patch_merge_key {
                Some(key) => ListKind::Map(std::slice::from_ref(key)),
                None => ListKind::Set,
            },
            Some(ListType::Atomic) | None => ListKind::Atomic,
        }
    }

    /// Whether a strategic merge patch merges the list's elements instead of replacing the list.
    pub(crate) fn merges_patches(&self) -> bool {
        self.patch_strategy_is("merge")
    }

    pub(crate) fn patch_strategy_is(&self, strategy: &str) -> bool {
        self.patch_strategy
            .as_deref()
            .is_some_and(|strategies| strategies.split(',').any(|one| one == strategy))
    }

    /// Whether anything is said about the JSON type of values.
    pub(crate) fn has_types(&self) -> bool {
        self.resolved().kind.is_some()
    }

    /// Whether values of this JSON type are expected.
    pub(crate) fn has_type(&self, name: &str) -> bool {
        match &self.resolved().kind {
            Some(TypeName::One(one)) => one == name,
            Some(TypeName::Several(several)) => several.iter().any(|one| one == name),
            None => false,
        }
    }

    /// The value that stands for an absent key of a list's element.
    pub(crate) fn key_default(&self, key: &str) -> Option<&Value> {
        self.resolved().fields.get(key)?.default.as_ref()
    }

    pub(super) fn set_list_type(&mut self, name: Option<&str>) {
        self.list_type = match name {
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map),
            Some(_) => Some(ListType::Atomic),
            None => None,
        };
    }

    pub(super) fn set_atomic_map(&mut self, atomic: bool) {
        self.map_type = atomic.then_some(MapType::Atomic);
    }
}

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::storage::Object;

use super::{Resource, builtin_resources, from_definition, group_of};

/// The resources that are served now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    /// Those of each definition, by its name.
    custom: BTreeMap<String, Vec<Arc<Resource>>>,
}

impl Catalog {
    /// Every resource in every version: built-in ones first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        builtin_resources()
            .iter()
            .chain(self.custom.values().flatten())
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let matches = |resource: &&Arc<Resource>| {
            resource.group == group && resource.version == version && resource.plural == plural
        };
        let custom = self
            .custom
            .get(&format!("{plural}.{group}"))
            .into_iter()
            .flatten();
        custom.chain(builtin_resources()).find(matches)
    }

    /// Every resource of a group and version, by name.
    pub(crate) fn served(&self, group: &str, version: &str) -> Vec<&Resource> {
        let all = self.all().map(AsRef::as_ref);
        let mut served: Vec<&Resource> = all
            .filter(|resource| resource.group == group && resource.version == version)
            .collect();
        served.sort_by(|a, b| a.plural.cmp(&b.plural));
        served
    }

    /// The resource of a kind, in any version.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let group = group_of(api_version);
        self.all()
            .find(|resource| resource.group == group && resource.kind == kind)
    }

    /// A resource in any version, by where its objects are stored.
    pub(crate) fn stored_at(&self, storage: &str) -> Option<&Arc<Resource>> {
        self.all().find(|resource| *resource.storage == *storage)
    }

    /// Whether the group is one of the built-in ones.
    pub(crate) fn is_builtin_group(group: &str) -> bool {
        builtin_resources()
            .iter()
            .any(|resource| resource.group == group)
    }

    /// Serves what a definition says now.
    pub(crate) fn define(&mut self, definition: &Object) {
        let resources = from_definition(definition)
            .into_iter()
            .map(Arc::new)
            .collect();
        self.custom
            .insert(crate::object::name(definition).to_owned(), resources);
    }

    /// Serves nothing of a definition any more.
    pub(crate) fn undefine(&mut self, name: &str) {
        self.custom.remove(name);
    }
}

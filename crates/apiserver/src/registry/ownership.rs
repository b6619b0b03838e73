//! Keeping track of who owns which fields.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Registry, Target, WriteOptions, accept};
use crate::managed::{self, Context, Managers, Reach, Writer};
use crate::object;
use crate::schema::prune_custom;

/// The managers that an object names.
pub(super) fn of(object: &Value) -> Managers {
    Managers::read(&object["metadata"]["managedFields"])
}

/// The managers to start from in an update: those that the client sent back, or else the stored
/// ones. A list of one empty entry clears them.
pub(super) fn of_update(target: &Target, new: &Value, old: &Value) -> Managers {
    let sent = &new["metadata"]["managedFields"];
    if target.subresource.is_some() {
        return of(old);
    }
    if *sent == json!([{}]) {
        return Managers::default();
    }
    let sent = Managers::read(sent);
    if sent.is_empty() { of(old) } else { sent }
}

/// Writes the managers into an object.
pub(super) fn set(object: &mut Value, managers: &Managers) {
    let metadata = object::metadata_mut(object);
    if managers.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), managers.write());
    }
}

/// An object without its managers.
pub(super) fn without(object: &Value) -> Value {
    let mut object = object.clone();
    object::metadata_mut(&mut object).remove("managedFields");
    object
}

/// Which fields a request can write.
pub(super) fn reach(target: &Target) -> Reach<'static> {
    match target.subresource.as_deref() {
        None if target.resource.has_status() => Reach::AllBut("status"),
        Some("status") if target.resource.is_custom() => Reach::Only("status"),
        Some("status") => Reach::MetadataAnd("status"),
        None | Some(_) => Reach::Everything,
    }
}

impl Registry {
    /// The managers after a write.
    pub(super) fn track(
        &self,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
        managers: Managers,
        options: &WriteOptions,
    ) -> Managers {
        if self.is_beyond_versions(target, new, &managers) {
            return Managers::default();
        }
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let api_version = target.resource.api_version();
        let writer = Writer::update(&options.manager, &api_version, subresource);
        let now = self.now();
        let context = Context {
            schema: &target.resource.schema,
            reach: reach(target),
            writer: &writer,
            // The recorded server gives entries of a scale no time.
            now: (subresource != "scale").then_some(now.as_str()),
        };
        let is_new = old.is_none();
        if is_new && managed::is_unreadable(&target.resource.schema, new) {
            return Managers::default();
        }
        let nothing = || Cow::Owned(accept::nothing(&target.resource));
        let old = old.map_or_else(nothing, Cow::Borrowed);
        managed::update(context, &old, is_new, new, managers)
    }

    /// Whether a custom object has members that are not known in a version in which one of its
    /// managers wrote. The recorded server then cannot compare, and forgets all managers.
    fn is_beyond_versions(&self, target: &Target, object: &Value, managers: &Managers) -> bool {
        let resource = &target.resource;
        let own = resource.api_version();
        let others = managers.api_versions().filter(|version| *version != own);
        resource.is_custom()
            && others
                .filter_map(|other| other.split_once('/'))
                .filter_map(|(group, version)| self.catalog.find(group, version, &resource.plural))
                .any(|other| {
                    let mut object = object.clone();
                    !prune_custom(&mut object, &other.schema).unknown.is_empty()
                })
    }
}

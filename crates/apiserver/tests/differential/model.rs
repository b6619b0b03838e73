//! The rules of the API machinery for simple objects. Nothing here is shared with the server.

use std::collections::BTreeMap;

use crate::step::{Change, Content, Kind, Precondition, Step, Verb, Version};

/// All objects, and all that ever happened to them.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) objects: BTreeMap<(Kind, &'static str), Object>,
    pub(crate) events: Vec<Event>,
    /// The number of the latest write.
    revision: u64,
    uids: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) name: &'static str,
    /// The how manieth object ever it is.
    pub(crate) uid: u64,
    /// The write that it comes from.
    pub(crate) revision: u64,
    pub(crate) generation: Option<u64>,
    pub(crate) deleting: bool,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// `None` for one that was created.
    pub(crate) before: Option<Object>,
    /// What the event shows. Its revision is that of the event.
    pub(crate) object: Object,
    pub(crate) deleted: bool,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An error, with its reason.
    Error(u16, &'static str),
    /// The object. It has a version unless nothing was stored.
    Object(u16, Object),
    /// A success, of whose body nothing is said.
    Success,
}

const NOT_FOUND: Answer = Answer::Error(404, "NotFound");
const CONFLICT: Answer = Answer::Error(409, "Conflict");
const INVALID: Answer = Answer::Error(422, "Invalid");

// === impl Model ===

impl Model {
    pub(crate) fn step(&mut self, step: &Step) -> Answer {
        let Step {
            kind,
            name,
            dry_run,
            verb,
        } = step;
        let key = (*kind, *name);
        match verb {
            Verb::Get => self.existing(key, |_, object| Answer::Object(200, object)),
            Verb::Create { content, versioned } => self.create(key, content, *versioned, *dry_run),
            Verb::Put {
                precondition,
                content,
                status,
            } => self.put(key, *precondition, content, *status, *dry_run),
            Verb::Merge {
                version,
                change,
                status,
            } => self.merge(key, *version, change, *status, *dry_run),
            Verb::Test { expected, value } => self.existing(key, |model, old| {
                if old.content.value != Some(*expected) {
                    return INVALID;
                }
                let mut new = old.clone();
                new.content.value = Some(*value);
                model.update(*kind, old, new, *dry_run)
            }),
            Verb::Delete { precondition } => self.existing(key, |model, old| {
                if fails(*precondition) {
                    return CONFLICT;
                }
                model.delete(*kind, old, *dry_run)
            }),
            Verb::DeleteAll { labelled } => {
                let all = self.objects.range((*kind, "")..).map(|(key, _)| *key);
                let keys: Vec<_> = all.filter(|key| key.0 == *kind).collect();
                for key in keys {
                    let old = self.objects[&key].clone();
                    if !labelled || old.content.label == Some(1) {
                        self.delete(*kind, old, *dry_run);
                    }
                }
                Answer::Success
            }
        }
    }

    fn existing(
        &mut self,
        key: (Kind, &'static str),
        then: impl FnOnce(&mut Self, Object) -> Answer,
    ) -> Answer {
        match self.objects.get(&key).cloned() {
            Some(object) => then(self, object),
            None => NOT_FOUND,
        }
    }

    fn create(
        &mut self,
        key: (Kind, &'static str),
        content: &Content,
        versioned: bool,
        dry_run: bool,
    ) -> Answer {
        let (kind, name) = key;
        // What is not stored is never compared with the version that it must not have.
        if versioned && !dry_run {
            return Answer::Error(500, "");
        }
        if self.objects.contains_key(&key) {
            return Answer::Error(409, "AlreadyExists");
        }
        let mut object = Object {
            name,
            uid: self.uids + 1,
            revision: self.revision + 1,
            generation: (kind != Kind::Map).then_some(1),
            deleting: false,
            content: content.clone(),
        };
        if kind != Kind::Plain {
            object.content.status = None;
        }
        if !dry_run {
            self.uids += 1;
            self.store(kind, None, object.clone());
        }
        Answer::Object(201, object)
    }

    fn put(
        &mut self,
        key: (Kind, &'static str),
        precondition: Precondition,
        content: &Content,
        status: bool,
        dry_run: bool,
    ) -> Answer {
        let (kind, _) = key;
        if status && kind != Kind::Thing {
            return NOT_FOUND;
        }
        self.existing(key, |model, old| {
            if fails(precondition) {
                return CONFLICT;
            }
            let versioned = precondition == Precondition::Version(Version::Current);
            if kind != Kind::Map && !versioned {
                return INVALID;
            }
            let mut new = old.clone();
            new.content = within(kind, status, &old.content, content.clone());
            model.update(kind, old, new, dry_run)
        })
    }

    fn merge(
        &mut self,
        key: (Kind, &'static str),
        version: Version,
        change: &Change,
        status: bool,
        dry_run: bool,
    ) -> Answer {
        let (kind, _) = key;
        if status && kind != Kind::Thing {
            return NOT_FOUND;
        }
        self.existing(key, |model, old| {
            if version == Version::Stale {
                return CONFLICT;
            }
            let mut content = old.content.clone();
            content.label = change.label.of(content.label);
            content.value = change.value.of(content.value);
            content.status = change.status.of(content.status);
            if let Some(finalizers) = &change.finalizers {
                content.finalizers.clone_from(finalizers);
            }
            let mut new = old.clone();
            new.content = within(kind, status, &old.content, content);
            model.update(kind, old, new, dry_run)
        })
    }

    /// Stores a new state of an object, if it is one.
    fn update(&mut self, kind: Kind, old: Object, mut new: Object, dry_run: bool) -> Answer {
        if new == old {
            return Answer::Object(200, old);
        }
        let added = |finalizer| !old.content.finalizers.contains(finalizer);
        if old.deleting && new.content.finalizers.iter().any(added) {
            return INVALID;
        }
        let was_spec = (old.content.value, old.content.status);
        let is_spec = (new.content.value, new.content.status);
        let changed = match kind {
            Kind::Map => false,
            Kind::Thing => was_spec.0 != is_spec.0,
            Kind::Plain => was_spec != is_spec,
        };
        if changed {
            new.generation = new.generation.map(|generation| generation + 1);
        }
        if old.deleting && new.content.finalizers.is_empty() {
            if !dry_run {
                self.remove(kind, old);
            }
            return Answer::Success;
        }
        new.revision = self.revision + 1;
        if !dry_run {
            self.store(kind, Some(old), new.clone());
        }
        Answer::Object(200, new)
    }

    fn delete(&mut self, kind: Kind, old: Object, dry_run: bool) -> Answer {
        if old.content.finalizers.is_empty() {
            if !dry_run {
                self.remove(kind, old);
            }
            return Answer::Success;
        }
        if old.deleting {
            return Answer::Object(200, old);
        }
        let new = Object {
            deleting: true,
            generation: old.generation.map(|generation| generation + 1),
            revision: self.revision + 1,
            ..old.clone()
        };
        if !dry_run {
            self.store(kind, Some(old), new.clone());
        }
        Answer::Object(200, new)
    }

    fn store(&mut self, kind: Kind, before: Option<Object>, object: Object) {
        self.revision += 1;
        self.objects.insert((kind, object.name), object.clone());
        self.events.push(Event {
            kind,
            before,
            object,
            deleted: false,
        });
    }

    /// The event shows the object as it was stored last.
    fn remove(&mut self, kind: Kind, old: Object) {
        self.revision += 1;
        self.objects.remove(&(kind, old.name));
        let revision = self.revision;
        self.events.push(Event {
            kind,
            before: Some(old.clone()),
            object: Object { revision, ..old },
            deleted: true,
        });
    }

    /// What a watch of a kind shows, of all objects or of those whose label is 1: the type of each
    /// event, and its object. Who leaves the selection is shown as it was in it.
    pub(crate) fn seen(&self, kind: Kind, labelled: bool) -> Vec<(&'static str, Object)> {
        let is_in = |object: &Object| !labelled || object.content.label == Some(1);
        let of_kind = self.events.iter().filter(|event| event.kind == kind);
        of_kind
            .filter_map(|event| {
                let object = &event.object;
                let was = event.before.as_ref().filter(|before| is_in(before));
                match (was, is_in(object) && !event.deleted) {
                    (None, true) => Some(("ADDED", object.clone())),
                    (Some(_), true) => Some(("MODIFIED", object.clone())),
                    (Some(before), false) => {
                        let revision = object.revision;
                        let before = before.clone();
                        Some(("DELETED", Object { revision, ..before }))
                    }
                    (None, false) => None,
                }
            })
            .collect()
    }
}

/// Whether an object that is there is another than the one that is meant.
fn fails(precondition: Precondition) -> bool {
    match precondition {
        Precondition::Version(Version::Stale) | Precondition::WrongUid => true,
        Precondition::Version(Version::Unsaid | Version::Current) | Precondition::RightUid => false,
    }
}

/// What an endpoint takes of what was sent, and what it keeps of what was there.
fn within(kind: Kind, status: bool, old: &Content, new: Content) -> Content {
    match (kind, status) {
        (Kind::Plain, _) => new,
        (Kind::Map | Kind::Thing, false) => Content {
            status: old.status,
            ..new
        },
        (Kind::Map | Kind::Thing, true) => Content {
            status: new.status,
            ..old.clone()
        },
    }
}

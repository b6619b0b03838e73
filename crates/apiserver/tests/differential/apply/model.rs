//! The rules for objects of one kind whose fields have owners.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fields::{Element, Field, Fields, Path, path};
use super::managers::{Causes, Manager, Managers, Operation};
use super::step::{Step, Verb, Version};

/// All objects, and all that ever happened to them.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) objects: BTreeMap<&'static str, Object>,
    pub(crate) events: Vec<(&'static str, Object)>,
    /// In seconds since the beginning.
    pub(crate) now: u64,
    /// The number of the latest write.
    revision: u64,
    uids: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) name: &'static str,
    /// The how manieth object ever it is.
    pub(crate) uid: u64,
    /// The write that it comes from.
    pub(crate) revision: u64,
    pub(crate) generation: u64,
    pub(crate) fields: Fields,
    pub(crate) managers: Managers,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An error, with its reason.
    Error(u16, &'static str),
    /// Others own fields that an apply would change.
    Conflicts(Causes),
    Object(u16, Object),
    /// A success, of whose body nothing is said.
    Success,
}

const NOT_FOUND: Answer = Answer::Error(404, "NotFound");
const CONFLICT: Answer = Answer::Error(409, "Conflict");
const INVALID: Answer = Answer::Error(422, "Invalid");

// === impl Object ===

impl Object {
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.fields.0.contains_key(&deletion()[0])
    }

    fn finalizers(&self) -> &[Element] {
        match self.fields.0.get(&path(&["metadata", "finalizers"])) {
            Some(Field::List(finalizers)) => finalizers,
            _ => &[],
        }
    }

    /// All beside metadata and status.
    fn desired(&self) -> Value {
        self.fields.to_json_at(&path(&["spec"]))
    }
}

/// What is in an object that is being deleted. The server sets it, and yet it can be owned.
fn deletion() -> [Path; 2] {
    ["deletionTimestamp", "deletionGracePeriodSeconds"].map(|member| path(&["metadata", member]))
}

// === impl Model ===

impl Model {
    pub(crate) fn step(&mut self, step: &Step) -> Answer {
        self.now += u64::from(step.late);
        let known = self.objects.get(step.name).cloned();
        let named = |body: &Value| {
            let mut body = body.clone();
            body["metadata"]["name"] = json!(step.name);
            Fields::of(&body)
        };
        match (&step.verb, known) {
            (
                Verb::Apply {
                    config,
                    force,
                    version,
                },
                known,
            ) => self.apply(step, &named(config), *force, *version, known),
            (Verb::Create { .. }, Some(_)) => Answer::Error(409, "AlreadyExists"),
            (Verb::Create { body }, None) => {
                let fields = named(body).settled();
                let mut managers = Managers::default();
                // Nobody creates through the status.
                let writer = Manager {
                    status: false,
                    ..writer(step, Operation::Update)
                };
                managers.update(&writer, &Fields::default(), &fields, self.now);
                self.create(step, fields, managers)
            }
            (_, None) => NOT_FOUND,
            (
                Verb::Put {
                    body,
                    version,
                    reset,
                },
                Some(old),
            ) => match version {
                Version::Unsaid => INVALID,
                Version::Stale => CONFLICT,
                Version::Current => self.update(step, old, named(body), *reset),
            },
            (Verb::Merge { patch, reset }, Some(old)) => {
                let mut new = old.fields.to_json();
                merge(&mut new, patch);
                self.update(step, old, Fields::of(&new), *reset)
            }
            (Verb::Delete, Some(old)) => self.delete(step, old),
        }
    }

    fn update(&mut self, step: &Step, old: Object, new: Fields, reset: bool) -> Answer {
        let new = new.settled();
        let mut managers = old.managers.clone();
        if reset && !step.status {
            managers = Managers::default();
        }
        // What nobody ever owned stays so until it is applied.
        if !managers.0.is_empty() {
            let writer = writer(step, Operation::Update);
            managers.update(&writer, &old.fields, &new, self.now);
        }
        self.commit(step, old, new, managers)
    }

    fn apply(
        &mut self,
        step: &Step,
        config: &Fields,
        force: bool,
        version: Version,
        known: Option<Object>,
    ) -> Answer {
        if step.status && known.is_none() {
            return NOT_FOUND;
        }
        if config.is_untyped() {
            return Answer::Error(500, "");
        }
        let (live, mut managers) = match &known {
            Some(old) => (old.fields.clone(), old.managers.clone()),
            None => (Fields::of(&json!({})), Managers::default()),
        };
        let writer = writer(step, Operation::Apply);
        let applied = managers.apply(&writer, &live, config, force, self.now);
        let new = match applied {
            Ok(new) => new.unwrap_or(live).settled(),
            Err(causes) => return Answer::Conflicts(causes),
        };
        match known {
            None => self.create(step, new, managers),
            Some(_) if version == Version::Stale => CONFLICT,
            Some(old) => self.commit(step, old, new, managers),
        }
    }

    fn create(&mut self, step: &Step, mut fields: Fields, managers: Managers) -> Answer {
        fields.take("status", &Fields::default());
        let object = Object {
            name: step.name,
            uid: self.uids + 1,
            revision: self.revision + 1,
            generation: 1,
            fields,
            managers,
        };
        if !step.dry_run {
            self.uids += 1;
            self.store("ADDED", object.clone());
        }
        Answer::Object(201, object)
    }

    /// Stores a new state of an object, if it is one.
    fn commit(
        &mut self,
        step: &Step,
        old: Object,
        mut fields: Fields,
        managers: Managers,
    ) -> Answer {
        let kept: &[&str] = if step.status {
            &["metadata", "spec"]
        } else {
            &["status"]
        };
        for member in kept {
            fields.take(member, &old.fields);
        }
        for member in deletion() {
            fields.0.remove(&member);
            let field = old.fields.0.get(&member).cloned();
            fields.0.extend(field.map(|field| (member, field)));
        }
        let mut new = Object {
            fields,
            managers,
            ..old.clone()
        };
        let added = |finalizer| !old.finalizers().contains(finalizer);
        if old.is_being_deleted() && new.finalizers().iter().any(added) {
            return INVALID;
        }
        if new.desired() != old.desired() {
            new.generation += 1;
        }
        if old.is_being_deleted() && new.finalizers().is_empty() {
            if !step.dry_run {
                self.remove(old);
            }
            return Answer::Success;
        }
        if new.fields == old.fields && new.managers.is_same(&old.managers) {
            return Answer::Object(200, old);
        }
        new.revision = self.revision + 1;
        if !step.dry_run {
            self.store("MODIFIED", new.clone());
        }
        Answer::Object(200, new)
    }

    fn delete(&mut self, step: &Step, old: Object) -> Answer {
        if old.finalizers().is_empty() {
            if !step.dry_run {
                self.remove(old);
            }
            return Answer::Success;
        }
        if old.is_being_deleted() {
            return Answer::Object(200, old);
        }
        let mut new = old;
        new.generation += 1;
        new.revision = self.revision + 1;
        for member in deletion() {
            new.fields.0.insert(member, Field::Whole(json!("set")));
        }
        if !step.dry_run {
            self.store("MODIFIED", new.clone());
        }
        Answer::Object(200, new)
    }

    fn store(&mut self, event: &'static str, object: Object) {
        self.revision += 1;
        self.objects.insert(object.name, object.clone());
        self.events.push((event, object));
    }

    /// The event shows the object as it was stored last.
    fn remove(&mut self, old: Object) {
        self.revision += 1;
        self.objects.remove(old.name);
        let revision = self.revision;
        self.events.push(("DELETED", Object { revision, ..old }));
    }
}

fn writer(step: &Step, operation: Operation) -> Manager {
    Manager {
        operation,
        name: step.manager,
        status: step.status,
    }
}

fn merge(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        value.clone_from(patch);
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, patch) in patch {
        if patch.is_null() {
            value.as_object_mut().expect("it was made one").remove(name);
        } else {
            merge(&mut value[name], patch);
        }
    }
}

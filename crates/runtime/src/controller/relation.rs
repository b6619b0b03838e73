//! Which objects have to do with which objects of the controller.
//!
//! Of a related object nothing is kept but whom it concerned. That is enough to wake them when the
//! object vanishes while nobody looked, and it costs no copy of the object.

use super::source::{self, Signal};
use crate::{
    reflector::{Lookup, ObjectKey, store::take_in_error},
    watcher::{self, Event},
};
use homeostat_core::{
    cache::{Cache, Change, Versioned},
    queue::Priority,
};
use kube::Resource;
use std::{borrow::Cow, sync::Arc};

/// The related objects of one watch, and whom each concerns.
pub(super) struct Relations<Child: Resource> {
    dyntype: Child::DynamicType,
    cache: Cache<ObjectKey, Relation>,
    changes: Vec<Change<ObjectKey, Relation>>,
}

/// Whom one version of a related object concerns.
#[derive(Clone)]
struct Relation {
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    concerns: Arc<[ObjectKey]>,
}

// === impl Relations ===

impl<Child> Relations<Child>
where
    Child: Resource,
    Child::DynamicType: Clone,
{
    pub(super) fn new(dyntype: Child::DynamicType) -> Self {
        Self {
            dyntype,
            cache: Cache::default(),
            changes: Vec::new(),
        }
    }

    /// Takes in an event and tells who is to be reconciled because of it: whom the object concerns
    /// now, and whom it concerned before.
    pub(super) fn take_in(
        &mut self,
        event: Event<Child>,
        relate: &impl Fn(Child) -> Vec<ObjectKey>,
    ) -> Vec<Signal> {
        let priority = source::priority(self.cache.is_synced());
        let listed = matches!(event, Event::InitDone);
        let relation = |child: Child| (ObjectKey::of(&child), Relation::new(child, relate));
        match event {
            Event::Apply(child) => {
                let (key, relation) = relation(child);
                self.cache.apply(key, relation, &mut self.changes);
            }
            Event::Delete(child) => {
                let (key, relation) = relation(child);
                self.cache.delete(key, relation, &mut self.changes);
            }
            Event::Init => self.cache.begin(),
            Event::InitApply(child) => {
                let (key, relation) = relation(child);
                self.cache.stage(key, relation);
            }
            Event::InitDone => self.cache.commit(&mut self.changes),
        }
        let mut signals = self.announce(priority);
        signals.extend(listed.then_some(Signal::Synced));
        signals
    }

    /// Takes in that the watch failed, and tells who is to be reconciled because of it.
    pub(super) fn take_in_error(&mut self, error: watcher::Error) -> Vec<Signal> {
        take_in_error(&mut self.cache, &error, &mut self.changes);
        let mut signals = self.announce(Priority::Normal);
        signals.push(source::failed(error));
        signals
    }

    fn announce(&mut self, priority: Priority) -> Vec<Signal> {
        let Self {
            dyntype, changes, ..
        } = self;
        let mut signals = Vec::new();
        for change in changes.drain(..) {
            announce::<Child>(dyntype, change, priority, &mut signals);
        }
        signals
    }
}

fn announce<Child>(
    dyntype: &Child::DynamicType,
    change: Change<ObjectKey, Relation>,
    priority: Priority,
    signals: &mut Vec<Signal>,
) where
    Child: Resource,
    Child::DynamicType: Clone,
{
    let (key, relation) = match change {
        Change::Added { key, new } => (key, new),
        Change::Modified { key, old, new }
        | Change::Deleted {
            key,
            old,
            last: new,
        } => (key, new.and_before(&old)),
    };
    source::concern::<Child>(&key, dyntype, &relation.concerns, priority, signals);
}

// === impl Relation ===

impl Relation {
    fn new<Child: Resource>(child: Child, relate: &impl Fn(Child) -> Vec<ObjectKey>) -> Self {
        Self {
            uid: Lookup::uid(&child).map(Into::into),
            resource_version: Lookup::resource_version(&child).map(Into::into),
            concerns: relate(child).into(),
        }
    }

    /// This relation, with those whom the object concerned before.
    fn and_before(self, before: &Self) -> Self {
        let missing = |key: &&ObjectKey| !self.concerns.contains(key);
        let mut before = before.concerns.iter().filter(missing).cloned().peekable();
        if before.peek().is_none() {
            return self;
        }
        Self {
            concerns: self.concerns.iter().cloned().chain(before).collect(),
            ..self
        }
    }
}

impl Versioned for Relation {
    fn uid(&self) -> Option<Cow<'_, str>> {
        self.uid.as_deref().map(Cow::Borrowed)
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.resource_version.as_deref().map(Cow::Borrowed)
    }
}

//! Which objects have to do with which objects of the controller.
//!
//! Of a related object nothing is kept but whom it concerned. That is enough to wake them when the
//! object vanishes while nobody looked, and it costs no copy of the object.

use super::{
    cover::{Cover, View},
    reason::News,
    source::{self, EventVersion, Happened, Signal, Source},
};
use crate::{
    reflector::{Lookup, ObjectKey, store::take_in_error},
    watcher::{self, Event, Observation},
};
use futures::{StreamExt, stream};
use homeostat_core::{
    cache::{Cache, Change, Versioned},
    queue::Priority,
};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{
    borrow::Cow,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The related objects of one watch, and whom each concerns.
pub(super) struct Relations<Child: Resource> {
    dyntype: Child::DynamicType,
    /// One task writes; the controller asks now and then.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
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

/// What a watch of related objects is about.
pub(super) struct Related<Child: Resource, F> {
    pub(super) relations: Arc<Relations<Child>>,
    pub(super) relate: F,
    pub(super) cover: Cover,
    pub(super) label: String,
}

// === impl Source ===

impl Source {
    /// A watch of such objects.
    pub(super) fn of_relations<Child>(
        api: Api<Child>,
        config: watcher::Config,
        relations: Arc<Relations<Child>>,
        relate: impl Fn(Child) -> Vec<ObjectKey> + Send + 'static,
        (label, cover): (String, Cover),
    ) -> Self
    where
        Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::DynamicType: Clone,
    {
        let observations = watcher::observe(api, config, cover.progress.clone());
        let signals = observations.flat_map(move |observation| {
            stream::iter(match observation {
                Observation::Opened => vec![Signal::Recovered],
                Observation::Item(Err(error)) => relations.take_in_error(error),
                Observation::Item(Ok(event)) => relations.take_in(event, &relate),
            })
        });
        Self {
            label,
            syncs: true,
            cover: Some(cover),
            store: None,
            asks: true,
            signals: signals.boxed(),
        }
    }
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
            state: Mutex::default(),
        }
    }

    /// Takes in an event and tells who is to be reconciled because of it: whom the object concerns
    /// now, and whom it concerned before.
    pub(super) fn take_in(
        &self,
        event: Event<Child>,
        relate: &impl Fn(Child) -> Vec<ObjectKey>,
    ) -> Vec<Signal> {
        let listed = matches!(event, Event::InitDone);
        // A mapper of the user's must not run under the lock.
        let relation = |child: Child| (ObjectKey::of(&child), Relation::new(child, relate));
        let event = match event {
            Event::Apply(child) => Event::Apply(relation(child)),
            Event::Delete(child) => Event::Delete(relation(child)),
            Event::InitApply(child) => Event::InitApply(relation(child)),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        };
        let mut state = self.lock();
        let State { cache, changes } = &mut *state;
        let priority = source::priority(cache.is_synced());
        match event {
            Event::Apply((key, relation)) => cache.apply(key, relation, changes),
            Event::Delete((key, relation)) => cache.delete(key, relation, changes),
            Event::Init => cache.begin(),
            Event::InitApply((key, relation)) => cache.stage(key, relation),
            Event::InitDone => cache.commit(changes),
        }
        let mut signals = self.announce(&mut state, priority, !listed);
        signals.extend(listed.then_some(Signal::Synced));
        signals
    }

    /// Takes in that the watch failed, and tells who is to be reconciled because of it.
    pub(super) fn take_in_error(&self, error: watcher::Error) -> Vec<Signal> {
        let mut state = self.lock();
        let State { cache, changes } = &mut *state;
        take_in_error(cache, &error, changes);
        let mut signals = self.announce(&mut state, Priority::Normal, false);
        signals.push(source::failed(error));
        signals
    }

    /// Who is to be reconciled because of the changes; `single` tells that a watch told them one by
    /// one.
    fn announce(&self, state: &mut State, priority: Priority, single: bool) -> Vec<Signal> {
        let mut signals = Vec::new();
        for change in state.changes.drain(..) {
            let event = Some(Happened {
                desired: false,
                version: event_version(&change, single),
                news: News::Changed,
            });
            announce::<Child>(&self.dyntype, change, (priority, event), &mut signals);
        }
        signals
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Child> View for Relations<Child>
where
    Child: Resource,
    Child::DynamicType: Send + Sync,
{
    fn version(&self, key: &ObjectKey) -> Option<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let relation = state.cache.get(key)?;
        Some(relation.number().unwrap_or(0))
    }

    fn shows(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cache.get(key).is_some_and(|relation| {
            let shown = relation.uid.as_deref();
            uid.is_none() || shown.is_none() || shown == uid
        })
    }
}

fn event_version(change: &Change<ObjectKey, Relation>, single: bool) -> EventVersion {
    let told = if single {
        EventVersion::Step
    } else {
        EventVersion::Listed
    };
    match change {
        Change::Added { new, .. } | Change::Modified { new, .. } => {
            new.number().map_or(EventVersion::Unknown, told)
        }
        Change::Deleted { last, .. } => match &last.uid {
            Some(uid) => EventVersion::Gone(uid.clone(), last.number().filter(|_| single)),
            None => EventVersion::Unknown,
        },
    }
}

fn announce<Child>(
    dyntype: &Child::DynamicType,
    change: Change<ObjectKey, Relation>,
    told: (Priority, Option<Happened>),
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
    source::concern::<Child>(&key, dyntype, &relation.concerns, told, signals);
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

    fn number(&self) -> Option<u64> {
        self.resource_version.as_deref()?.parse().ok()
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

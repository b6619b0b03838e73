//! Sources that have not started: whether a watch is shared with others is known when they do.

use super::{
    relation::{Related, Relations},
    shared::Joint,
    source::{self, Filter, Input, Primary, Source, filtered},
};
use crate::{
    progress::Progress,
    reflector::{ObjectKey, Store},
    watcher::{self, Origin},
};
use futures::StreamExt;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash, sync::Arc};

/// A source that has not started: what it follows is known when it does.
pub(super) struct Draft {
    /// See [`Source::label`].
    pub(super) label: String,
    /// See [`Source::syncs`].
    pub(super) syncs: bool,
    start: Box<dyn FnOnce(&Joint) -> Source + Send>,
}

/// The sources of a controller's own kind.
pub(super) fn of_own_kind<K>(
    primary: Input<K>,
    filter: Option<Filter<K>>,
    managed_fields: bool,
    store: &Store<K>,
    dyntype: &K::DynamicType,
) -> Vec<Draft>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    match primary {
        Input::Watch(primary) => vec![primary.draft(filter, managed_fields)],
        Input::Stream(objects) => {
            let objects = filtered(objects, filter);
            vec![
                Source::of_store(store.clone()).into(),
                Source::of_objects::<K, _>(objects, dyntype).into(),
            ]
        }
        Input::SharedStream(objects) => {
            let objects = filtered(objects, filter).map(Ok);
            vec![
                Source::of_store(store.clone()).into(),
                Source::of_objects::<K, _>(objects, dyntype).into(),
            ]
        }
    }
}

/// A watch of objects that those of the controller own.
pub(super) fn owned<K, Child>(
    api: Api<Child>,
    config: watcher::Config,
    dyntype: Child::DynamicType,
    owner_type: K::DynamicType,
) -> Draft
where
    K: Resource,
    Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    Child::DynamicType: Clone,
{
    let owners = source::owners::<K, Child>(owner_type);
    Draft::of_related_watch(api, config, dyntype, move |child| owners(&child))
}

// === impl Draft ===

impl Draft {
    /// A watch that `start` begins, or joins if there is an equal one.
    pub(super) fn of_watch<K: Resource>(
        api: &Api<K>,
        config: &watcher::Config,
        start: impl FnOnce(&Joint) -> Source + Send + 'static,
    ) -> Self {
        Self {
            label: Origin::new(watcher::target(api), config).to_string(),
            syncs: true,
            start: Box::new(start),
        }
    }

    pub(super) fn start(self, joint: &Joint) -> Source {
        (self.start)(joint)
    }
}

impl From<Source> for Draft {
    fn from(source: Source) -> Self {
        Self {
            label: source.label.clone(),
            syncs: source.syncs,
            start: Box::new(|_| source),
        }
    }
}

impl Draft {
    /// A watch of objects that have to do with those of the controller. `relate` names the latter.
    pub(super) fn of_related_watch<Child>(
        api: Api<Child>,
        config: watcher::Config,
        dyntype: Child::DynamicType,
        relate: impl Fn(Child) -> Vec<ObjectKey> + Send + 'static,
    ) -> Self
    where
        Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::DynamicType: Clone,
    {
        let (target, selection) = (api.clone(), config.clone());
        Self::of_watch(&target, &selection, move |joint| {
            let relations = Arc::new(Relations::<Child>::new(dyntype));
            let progress = Progress::default();
            let (label, cover) = source::watched(&api, &config, relations.clone(), progress);
            match &joint.watches {
                Some(watches) => {
                    let related = Related {
                        relations,
                        relate,
                        cover,
                        label,
                    };
                    watches.related(&api, &config, related, joint)
                }
                None => Source::of_relations(api, config, relations, relate, (label, cover)),
            }
        })
    }
}

// === impl Primary ===

impl<K> Primary<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Fills the store and triggers each object that changed in a way that matters.
    fn draft(self, filter: Option<Filter<K>>, managed_fields: bool) -> Draft {
        let (api, config) = (self.api.clone(), self.config.clone());
        Draft::of_watch(&api, &config, move |joint| match &joint.watches {
            Some(watches) => watches.primary(self, filter, managed_fields, joint),
            None => self.source(filter, managed_fields, &joint.covers),
        })
    }
}

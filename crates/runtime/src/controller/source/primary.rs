//! The source of the controller's own kind: it fills the store that reconcilers read.

use super::{Filter, Primary, Signal, Source, failed, priority, signal, watched};
use crate::{
    controller::cover::Covers,
    reflector::{
        Decode, ObjectKey, Store,
        store::{ObjectChange, Writer},
    },
    watcher::{self, Draft, Event, Heard, Observation, Origin, Target, Unread},
};
use futures::{Stream, StreamExt, channel::mpsc, stream};
use homeostat_core::queue::Priority;
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash, sync::Arc};

/// What the source takes in.
enum Told<K> {
    Observed(Observation<Draft<K>>),
    /// Somebody wanted to read an object that cannot be decoded.
    Unreadable(watcher::Error),
}

/// Fills the store, and says what that means for the controller.
struct Keeping<K: Resource + Clone + 'static>
where
    K::DynamicType: Eq + Hash,
{
    writer: Writer<K>,
    filter: Option<Filter<K>>,
    covers: Arc<Covers>,
    target: Arc<Target>,
    decode: Arc<Decode<K>>,
    synced: bool,
}

// === impl Primary ===

impl<K> Primary<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Fills the store and triggers each object that changed in a way that matters.
    pub(in crate::controller) fn source(
        self,
        filter: Option<Filter<K>>,
        managed_fields: bool,
        covers: &Arc<Covers>,
    ) -> Source {
        let Self {
            api,
            config,
            mut writer,
        } = self;
        let origin = Origin::new(watcher::target(&api), &config);
        writer.hear(Heard::One(Arc::new(origin)));
        let store = writer.as_reader();
        let status = Arc::clone(store.status());
        let progress = store.progress();
        let reading = watcher::Reading {
            managed_fields,
            known: Some(known(store.clone())),
        };
        let (label, cover) = watched(&api, &config, Arc::new(store), progress.clone());
        let target = Arc::new(watcher::target(&api));
        let (decode, unreadable) = decoding(Arc::clone(&target));
        let mut keeping = Keeping {
            writer,
            filter,
            covers: Arc::clone(covers),
            target,
            decode,
            synced: false,
        };
        let observations = watcher::observe_drafts(api, config, progress, reading);
        let told = stream::select(
            observations.map(Told::Observed),
            unreadable.map(Told::Unreadable),
        );
        let signals = told.flat_map(move |told| stream::iter(keeping.take_in(told)));
        Source {
            label,
            syncs: true,
            cover: Some(cover),
            store: Some(status),
            asks: true,
            signals: signals.boxed(),
        }
    }
}

// === impl Keeping ===

impl<K> Keeping<K>
where
    K: Resource + Clone + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn take_in(&mut self, told: Told<K>) -> Vec<Signal> {
        match told {
            Told::Observed(Observation::Opened) => {
                self.writer.works();
                vec![Signal::Recovered]
            }
            Told::Observed(Observation::Item(Ok(event))) => self.take_in_event(event),
            Told::Observed(Observation::Item(Err(error))) => self.take_in_error(error),
            Told::Unreadable(error) => {
                let mut signals = Vec::new();
                if let watcher::Error::Undecodable(object) = &error {
                    let key = ObjectKey::new(object.namespace.as_deref(), &object.name);
                    let changes = self.writer.forget_unreadable(&key);
                    signals.extend(changes.filter_map(plain_signal));
                }
                signals.push(failed(error));
                signals
            }
        }
    }

    fn take_in_error(&mut self, error: watcher::Error) -> Vec<Signal> {
        let filter = self.filter.as_deref();
        let changes = self.writer.take_in_error(&error);
        let mut signals: Vec<_> = changes
            .filter_map(|change| signal(change, filter, Priority::Normal, false))
            .collect();
        signals.push(failed(error));
        signals
    }

    fn take_in_event(&mut self, event: Event<Draft<K>>) -> Vec<Signal> {
        let listed = matches!(event, Event::InitDone);
        let priority = priority(self.synced);
        // Whoever compares objects, or follows the store, reads every one.
        let reads_all = self.filter.is_some() || self.writer.wants_objects();
        let changes = if !reads_all && let Event::Apply(Draft::Unread(unread)) = event {
            let Unread { key, header, text } = unread;
            let decode = Arc::clone(&self.decode);
            self.writer.take_in_unread(key, header, text, decode)
        } else {
            match whole(event, &self.target) {
                Ok(event) => self.writer.take_in(event),
                Err(error) => return self.take_in_error(error),
            }
        };
        let filter = self.filter.as_deref();
        let covers = &self.covers;
        let is_of_use =
            |signal: &Signal| !matches!(signal, Signal::Passed(_)) || !covers.are_tracked();
        let changes = changes
            .filter_map(|change| signal(change, filter, priority, !listed))
            .filter(is_of_use);
        self.synced |= listed;
        // First that all objects are there, so that those which have run need not wait for those which have not come.
        let synced = listed.then_some(Signal::Synced);
        synced.into_iter().chain(changes).collect()
    }
}

/// The signal for a change that no filter has a say in.
fn plain_signal<K: Resource>(change: ObjectChange<K>) -> Option<Signal> {
    signal(change, None, Priority::Normal, false)
}

/// What decodes objects when they are first read, and what cannot be decoded.
fn decoding<K: DeserializeOwned>(
    target: Arc<Target>,
) -> (Arc<Decode<K>>, impl Stream<Item = watcher::Error> + Send) {
    let (report, reported) = mpsc::unbounded();
    let decode = move |text: &[u8]| match watcher::read(text, &target, false) {
        Ok(obj) => Some(obj),
        Err(error) => {
            // Without the source nobody is left to hear of it.
            let _ = report.unbounded_send(error);
            None
        }
    };
    (Arc::new(decode), reported)
}

/// The event with its object decoded.
fn whole<K: DeserializeOwned>(
    event: Event<Draft<K>>,
    target: &Target,
) -> Result<Event<K>, watcher::Error> {
    Ok(match event {
        Event::Apply(obj) => Event::Apply(obj.into_whole(target, false)?),
        Event::Delete(obj) => Event::Delete(obj.into_whole(target, true)?),
        Event::Init => Event::Init,
        Event::InitApply(obj) => Event::InitApply(obj.into_whole(target, false)?),
        Event::InitDone => Event::InitDone,
    })
}

/// Whether a store has what a list shows, so that it need not be decoded again.
fn known<K>(store: Store<K>) -> watcher::Known
where
    K: Resource + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    Box::new(move |outline| {
        let (uid, version) = (outline.uid, outline.resource_version);
        match (uid, version) {
            (Some(uid), Some(version)) => {
                store.confirm(outline.namespace, outline.name, uid, version)
            }
            (None, _) | (_, None) => false,
        }
    })
}

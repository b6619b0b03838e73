//! What a controller starts with.

use super::{
    Config, Controller,
    cover::Covers,
    desk::Asker,
    draft::{self, Draft},
    driver::Setup,
    intake::Intake,
    service::{About, Service, Surroundings},
    shared::{Joint, Watches},
};
use crate::{reflector::Registry, sharding::Account};
use futures::StreamExt;
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash, sync::Arc};
use tokio::sync::Notify;

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Starts the sources and puts together what the controller is driven with.
    pub(super) fn start(self) -> Setup<K, Intake> {
        let Self {
            primary,
            filter,
            store,
            dyntype,
            config,
            sources,
            mut stops,
            readiness,
            histories,
            recorder,
            identity,
            pauses,
            joining: (_, joining),
        } = self;
        let recorder = recorder.recorder(identity.as_ref());
        let config = Config { identity, ..config };
        let covers = Arc::<Covers>::default();
        let mut all = draft::of_own_kind(primary, filter, config.managed_fields, &store, &dyntype);
        all.extend(sources);
        let (asker, questions) = Asker::new();
        let surroundings = Surroundings::enter(|| About {
            kind: K::kind(&dyntype).into_owned(),
            readiness: readiness.clone(),
            histories: histories.clone(),
            asker,
        });
        if let Some(surroundings) = &surroundings {
            stops.push(surroundings.stops().boxed());
            all.extend(surroundings.watches.awaited().into_iter().map(Draft::from));
        }
        for (number, source) in all.iter().enumerate() {
            readiness.join(number, source.label.clone(), source.syncs);
        }
        let unsynced = (0..all.len()).collect();
        let watches = surroundings.as_ref().map(|one| one.watches.clone());
        let back: Arc<Notify> = watches.as_ref().map(Watches::back).unwrap_or_default();
        let registry = Arc::<Registry>::default();
        let leading = surroundings.as_ref().and_then(|one| one.leading.as_ref());
        let account = leading.and_then(|leading| leading.account.as_ref());
        let joint = Joint {
            shares: account.map(Account::shares),
            covers: Arc::clone(&covers),
            registry: Arc::clone(&registry),
            watches,
        };
        Setup {
            store,
            dyntype,
            config,
            unsynced,
            intake: Intake::start(all, joining, questions, pauses, joint, Arc::clone(&back)),
            back,
            covers,
            registry,
            stops,
            readiness,
            histories,
            recorder,
            service: surroundings.and_then(|one| one.leading).map(Service::new),
        }
    }
}

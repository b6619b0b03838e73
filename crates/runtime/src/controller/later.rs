//! What can still be said of a controller after its condition or its finalizer was named: the same as before.

use super::{Config, Controller, Finalized, Handle, Readiness, StatusConditions};
use crate::{
    Predicate,
    reflector::{ObjectRef, Store},
    utils::Backoff,
    watcher,
};
use futures::Stream;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash};

macro_rules! like_before {
    ($type:ty, $($controller:ident).+) => {
        impl<K> $type
        where
            K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
            K::DynamicType: Eq + Hash + Clone,
        {
            /// As [`Controller::filter`].
            #[must_use]
            pub fn filter(self, predicate: impl Predicate<K> + Send + 'static) -> Self {
                self.changed(|controller| controller.filter(predicate))
            }

            /// As [`Controller::with_config`].
            #[must_use]
            pub fn with_config(self, config: Config) -> Self {
                self.changed(|controller| controller.with_config(config))
            }

            /// As [`Controller::trigger_backoff`].
            #[must_use]
            pub fn trigger_backoff(self, backoff: impl Backoff + 'static) -> Self {
                self.changed(|controller| controller.trigger_backoff(backoff))
            }

            /// As [`Controller::handle`].
            #[must_use]
            pub fn handle(&self) -> Handle<K> {
                self.$($controller).+.handle()
            }

            /// As [`Controller::store`].
            #[must_use]
            pub fn store(&self) -> Store<K> {
                self.$($controller).+.store()
            }

            /// As [`Controller::readiness`].
            #[must_use]
            pub fn readiness(&self) -> Readiness {
                self.$($controller).+.readiness()
            }

            /// As [`Controller::owns`].
            #[must_use]
            pub fn owns<Child>(self, api: Api<Child>, wc: watcher::Config) -> Self
            where
                Child: Clone + Resource<DynamicType = ()> + DeserializeOwned + Debug + Send + 'static,
            {
                self.changed(|controller| controller.owns(api, wc))
            }

            /// As [`Controller::owns_with`].
            #[must_use]
            pub fn owns_with<Child>(
                self,
                api: Api<Child>,
                dyntype: Child::DynamicType,
                wc: watcher::Config,
            ) -> Self
            where
                Child: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
                Child::DynamicType: Debug + Eq + Hash + Clone,
            {
                self.changed(|controller| controller.owns_with(api, dyntype, wc))
            }

            /// As [`Controller::owns_stream`].
            #[must_use]
            pub fn owns_stream<Child>(
                self,
                trigger: impl Stream<Item = watcher::Result<Child>> + Send + 'static,
            ) -> Self
            where
                Child: Resource<DynamicType = ()> + Send + 'static,
            {
                self.changed(|controller| controller.owns_stream(trigger))
            }

            /// As [`Controller::watches`].
            #[must_use]
            pub fn watches<Other, I>(
                self,
                api: Api<Other>,
                wc: watcher::Config,
                mapper: impl Fn(Other) -> I + Sync + Send + 'static,
            ) -> Self
            where
                Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
                Other::DynamicType: Default + Debug + Clone + Eq + Hash,
                I: 'static + IntoIterator<Item = ObjectRef<K>>,
                I::IntoIter: Send,
            {
                self.changed(|controller| controller.watches(api, wc, mapper))
            }

            /// As [`Controller::watches_with`].
            #[must_use]
            pub fn watches_with<Other, I>(
                self,
                api: Api<Other>,
                dyntype: Other::DynamicType,
                wc: watcher::Config,
                mapper: impl Fn(Other) -> I + Sync + Send + 'static,
            ) -> Self
            where
                Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
                Other::DynamicType: Debug + Clone + Eq + Hash,
                I: 'static + IntoIterator<Item = ObjectRef<K>>,
                I::IntoIter: Send,
            {
                self.changed(|controller| controller.watches_with(api, dyntype, wc, mapper))
            }

            /// As [`Controller::watches_stream`].
            #[must_use]
            pub fn watches_stream<Other, I>(
                self,
                trigger: impl Stream<Item = watcher::Result<Other>> + Send + 'static,
                mapper: impl Fn(Other) -> I + Sync + Send + 'static,
            ) -> Self
            where
                Other: Resource + Send + 'static,
                Other::DynamicType: Default + Debug + Clone,
                I: 'static + IntoIterator<Item = ObjectRef<K>>,
                I::IntoIter: Send,
            {
                self.changed(|controller| controller.watches_stream(trigger, mapper))
            }

            /// As [`Controller::reconcile_all_on`].
            #[must_use]
            pub fn reconcile_all_on(
                self,
                trigger: impl Stream<Item = ()> + Send + 'static,
            ) -> Self {
                self.changed(|controller| controller.reconcile_all_on(trigger))
            }

            /// As [`Controller::reconcile_on`].
            #[must_use]
            pub fn reconcile_on(
                self,
                trigger: impl Stream<Item = ObjectRef<K>> + Send + 'static,
            ) -> Self {
                self.changed(|controller| controller.reconcile_on(trigger))
            }

            /// As [`Controller::graceful_shutdown_on`].
            #[must_use]
            pub fn graceful_shutdown_on(
                self,
                trigger: impl Future<Output = ()> + Send + 'static,
            ) -> Self {
                self.changed(|controller| controller.graceful_shutdown_on(trigger))
            }

            /// As [`Controller::shutdown_on_signal`].
            #[must_use]
            pub fn shutdown_on_signal(self) -> Self {
                self.changed(Controller::shutdown_on_signal)
            }

            fn changed(mut self, change: impl FnOnce(Controller<K>) -> Controller<K>) -> Self {
                self.$($controller).+ = change(self.$($controller).+);
                self
            }
        }
    };
}

like_before!(StatusConditions<K>, controller);
like_before!(Finalized<Controller<K>>, runner);
like_before!(Finalized<StatusConditions<K>>, runner.controller);

//! What a controller does with what it knows of its reconciles' writes.

use super::{Controller, source::Source, teller::Teller};
use crate::{Identity, events::Recorder, reflector::Store, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash};

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Who tells of reconcile loops with a Kubernetes event on their object: [`loops`](crate::loops).
    ///
    /// By default it is a reporter with the [name](Self::named) of the program, with the client that watches
    /// the controller's own kind; a controller of a stream has none.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Teller::Given(recorder);
        self
    }

    /// Gives the program a name, as `site-operator`: the field manager of what runs of this controller write
    /// without naming one, and the reporter of its events. See [`Identity`].
    ///
    /// With [`Tracked::named`](crate::client::Tracked::named) the client has a name already, and this is only
    /// needed if controllers of one program are to go by different names.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.identity = Some(Identity::new(name));
        self
    }

    /// Names a store that reconcilers read, filled by a watch of `api` with `wc`: an object's next run
    /// waits until the store has seen what the last one wrote
    /// ([`Config::wait_for_writes`](super::Config::wait_for_writes)). Nothing is reconciled because of it, and the store has to be
    /// ready before anything is.
    ///
    /// Most programs do not need this: the controller notices which stores its runs [read](Store#in-reconcilers), and
    /// what fills them. It is good for a store that is filled in a way of your own, so that nobody can tell which objects
    /// belong in it, and it spares the very first run that would read the store too early.
    ///
    /// ```
    /// use futures::{StreamExt, future};
    /// use homeostat::{Controller, WatchStreamExt, reflector, watcher};
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use kube::{Api, Client};
    ///
    /// fn build(client: Client) -> Controller<ConfigMap> {
    ///     let (pods, config) = (Api::<Pod>::all(client.clone()), watcher::Config::default());
    ///     let (store, writer) = reflector::store();
    ///     let watch = watcher(pods.clone(), config.clone()).reflect(writer).touched_objects();
    ///     Controller::new(Api::all(client), watcher::Config::default())
    ///         .owns_stream(watch)
    ///         .reads(&store, &pods, &config)
    /// }
    /// ```
    #[must_use]
    pub fn reads<T>(self, store: &Store<T>, api: &Api<T>, wc: &watcher::Config) -> Self
    where
        T: Resource + Send + Sync + 'static,
        T::DynamicType: Eq + Hash + Send + Sync,
    {
        self.source(Source::of_read_store(store, api, wc))
    }
}

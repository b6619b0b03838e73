//! Runs a reconciler for each object of a kind whenever something about it may have changed.

mod action;
mod applier;
mod config;
mod counts;
mod cover;
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "people ask over HTTP")
)]
mod desk;
mod draft;
mod driver;
mod error;
mod finalizer;
mod handle;
mod history;
mod intake;
mod later;
mod meter;
mod readiness;
mod ready_condition;
mod reason;
mod recent;
mod relation;
mod scope;
mod service;
mod shared;
mod source;
mod start;
mod teller;
mod tracking;
mod trigger;
mod unreachable;

use self::{
    draft::Draft,
    driver::{Driver, Hooks},
    history::Histories,
    intake::Pauses,
    service::Stop,
    source::{Filter, Input, Primary, Signal, Source},
    teller::Teller,
};
use crate::{
    Identity, Predicate,
    reflector::{ObjectRef, Store, store::Writer},
    task::InTasks,
    utils::Backoff,
    watcher,
};
use futures::{
    FutureExt, Stream, StreamExt, TryFuture,
    stream::{self, SelectAll},
};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{
    fmt::{self, Debug},
    hash::Hash,
    sync::Arc,
};
use tokio::sync::mpsc;

#[cfg(feature = "server")]
pub(crate) use self::desk::{Desk, KeyStatus, Overview};
pub use self::{
    action::Action,
    applier::applier,
    config::Config,
    counts::Counts,
    error::{Error, RunnerError},
    finalizer::Finalized,
    handle::Handle,
    history::{CacheWait, Explanation, Next, PastRun},
    readiness::{Readiness, SourceStatus, StuckRun},
    ready_condition::StatusConditions,
    reason::{ReconcileReason, ReconcileRequest},
    trigger::{trigger_owners, trigger_self, trigger_with},
};
#[cfg(feature = "metrics")]
pub(crate) use self::{
    meter::{BOUNDS, Ended, Failure, REASONS},
    shared::Tallied,
};
pub(crate) use self::{
    service::{About, Leading, Stage, Surroundings, managed},
    shared::Watches,
};

/// Runs a reconciler for each object of a kind whenever something about it may have changed.
///
/// # Flow
///
/// ```
/// use futures::StreamExt;
/// use homeostat::{Action, Controller, error_policy, watcher};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use kube::{Api, Client};
/// use std::sync::Arc;
///
/// struct Context {
///     client: Client,
/// }
///
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
///     // Look at the present state, compare, and write what differs.
///     Ok(Action::await_change())
/// }
///
/// async fn run(client: Client) {
///     let ctx = Arc::new(Context { client: client.clone() });
///     Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
///         .owns(Api::<Deployment>::all(client), watcher::Config::default())
///         .shutdown_on_signal()
///         .run(reconcile, error_policy::backoff, ctx)
///         .for_each(|result| async move {
///             if let Err(error) = result {
///                 eprintln!("{error}");
///             }
///         })
///         .await;
/// }
/// ```
///
/// # Guarantees
///
/// - An object is never reconciled twice at the same time. Whatever happens during a run leads to
///   one more run after it.
/// - No wake-up is lost: after the last change of an object, or of one that it owns, it is
///   reconciled with a state that includes the change.
/// - Nothing runs before the caches of all watches are complete; a watch that fails meanwhile is no
///   longer waited for. Stores are waited for until they are complete, however long their watches fail: the
///   controller's own, those whose streams it follows, and from the first read on every other one that the
///   reconciler reads. A run that was the first to read a store, and too early, does no harm and is repeated:
///   see [`Store`](Store#in-reconcilers).
/// - Each watch fails and recovers by itself. Its errors are items of the stream, and the stream
///   goes on.
/// - An object that is gone when its turn comes is not reconciled, and that is no error.
/// - An object that failed is run early by what others do: at once by a request
///   ([`reconcile_on`](Self::reconcile_on) and the like) and by a change of its desired state (its generation,
///   labels, annotations, finalizers, the mark of its deletion, or another object under its name); at once and
///   then [spaced](Config::early) by a change of a related object. What its own runs write does not run it. The
///   same holds after an error that waits for a change.
///
/// # Logs
///
/// At level `info` the log tells of a controller's life: that it started and with which watches, that its caches are
/// complete, which watch fails and that it works again, and the steps of its end. At `debug` it tells of each run, in the
/// span `reconciling object`: outcome, duration, requests, writes, and when the next one is due. kube's client tells of
/// requests that fail on its own, at `error`; a filter like `info,kube_client=off` leaves that out.
///
/// # Caveats
///
/// Runs are started when the stream of [`run`](Self::run) is polled. Watches, caches and runs that
/// were started go on between polls, but a reader that takes long for each item delays the start
/// of other runs; let it hand items over instead.
pub struct Controller<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    /// What is known of the controller's own kind, until it runs.
    primary: Input<K>,
    filter: Option<Filter<K>>,
    store: Store<K>,
    dyntype: K::DynamicType,
    config: Config,
    /// All sources but the first.
    sources: Vec<Draft>,
    stops: SelectAll<stream::BoxStream<'static, Stop>>,
    readiness: Readiness,
    histories: Histories,
    recorder: Teller,
    identity: Option<Identity>,
    pauses: Option<Pauses>,
    /// How sources join; the controller itself must not keep the second end of it open.
    joining: (mpsc::UnboundedSender<Draft>, mpsc::UnboundedReceiver<Draft>),
}

// === impl Controller ===

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// A controller for the objects that `main_api` and `wc` select.
    #[must_use]
    pub fn new(main_api: Api<K>, wc: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(main_api, wc, K::DynamicType::default())
    }

    /// A controller for objects of a type known at run time.
    #[must_use]
    pub fn new_with(main_api: Api<K>, wc: watcher::Config, dyntype: K::DynamicType) -> Self {
        let writer = Writer::new(dyntype.clone());
        let store = writer.as_reader();
        let client = main_api.clone().into_client();
        let primary = Primary {
            api: main_api,
            config: wc,
            writer,
        };
        Self {
            recorder: Teller::With(client),
            ..Self::with_input(Input::Watch(Box::new(primary)), store, dyntype)
        }
    }

    /// A controller for the objects of a stream that was [reflected](crate::WatchStreamExt::reflect) into
    /// the store `reader`.
    ///
    /// ```
    /// use futures::StreamExt;
    /// use homeostat::{
    ///     Action, Controller, Predicate, WatchStreamExt, error_policy, predicates, reflector, watcher,
    /// };
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube::Api;
    /// use std::sync::Arc;
    ///
    /// async fn reconcile(_: Arc<Deployment>, _: Arc<()>) -> Result<Action, kube::Error> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// async fn run(api: Api<Deployment>) {
    ///     let (reader, writer) = reflector::store();
    ///     let stream = watcher(api, watcher::Config::default())
    ///         .default_backoff()
    ///         .reflect(writer)
    ///         .applied_objects()
    ///         .predicate_filter(predicates::generation.combine(predicates::finalizers));
    ///     Controller::for_stream(stream, reader)
    ///         .run(reconcile, error_policy::backoff, Arc::new(()))
    ///         .for_each(|_| futures::future::ready(()))
    ///         .await;
    /// }
    /// ```
    #[must_use]
    pub fn for_stream(
        trigger: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
        reader: Store<K>,
    ) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_stream_with(trigger, reader, K::DynamicType::default())
    }

    /// The same as [`for_stream`](Self::for_stream), for a type known at run time.
    #[must_use]
    pub fn for_stream_with(
        trigger: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
        reader: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        Self::with_input(Input::Stream(trigger.boxed()), reader, dyntype)
    }

    /// A controller for the objects of a stream that a [store](Store) hands out to several
    /// readers: [`Store::subscribe`], or a `ReflectHandle`.
    ///
    /// ```
    /// use futures::StreamExt;
    /// use homeostat::{Action, Controller, WatchStreamExt, error_policy, reflector, watcher};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube::Api;
    /// use std::sync::Arc;
    ///
    /// async fn reconcile(_: Arc<Deployment>, _: Arc<()>) -> Result<Action, kube::Error> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// async fn run(api: Api<Deployment>) {
    ///     let (reader, writer) = reflector::store();
    ///     let watch = watcher(api, watcher::Config::default()).reflect(writer);
    ///     let first = Controller::for_shared_stream(reader.subscribe(), reader.clone())
    ///         .shutdown_on_signal()
    ///         .run(reconcile, error_policy::backoff, Arc::new(()));
    ///     let second = Controller::for_shared_stream(reader.subscribe(), reader)
    ///         .shutdown_on_signal()
    ///         .run(reconcile, error_policy::backoff, Arc::new(()));
    ///     let controllers = futures::future::join(
    ///         first.for_each(|_| std::future::ready(())),
    ///         second.for_each(|_| std::future::ready(())),
    ///     );
    ///     // The controllers end at a signal. The watch has no end of its own, so it ends with them.
    ///     tokio::select! {
    ///         _ = controllers => {}
    ///         () = watch.for_each(|_| std::future::ready(())) => {}
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn for_shared_stream(
        trigger: impl Stream<Item = Arc<K>> + Send + 'static,
        reader: Store<K>,
    ) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_shared_stream_with(trigger, reader, K::DynamicType::default())
    }

    /// The same as [`for_shared_stream`](Self::for_shared_stream), for a type known at run time.
    #[must_use]
    pub fn for_shared_stream_with(
        trigger: impl Stream<Item = Arc<K>> + Send + 'static,
        reader: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        Self::with_input(Input::SharedStream(trigger.boxed()), reader, dyntype)
    }

    fn with_input(primary: Input<K>, store: Store<K>, dyntype: K::DynamicType) -> Self {
        Self {
            primary,
            filter: None,
            store,
            dyntype,
            config: Config::default(),
            sources: Vec::new(),
            stops: SelectAll::new(),
            readiness: Readiness::default(),
            histories: Histories::default(),
            recorder: Teller::Nobody,
            identity: None,
            pauses: None,
            joining: mpsc::unbounded_channel(),
        }
    }

    /// Reconciles an object of the controller's own kind only if its change matters by `predicate`.
    ///
    /// The state before is compared with the state now. Whatever the predicate, an object passes
    /// that is new, that was deleted and created again, that is marked for deletion, or whose
    /// finalizers changed. Requeues, related objects and the like are not filtered.
    ///
    /// Called twice, both predicates count: a change passes if either lets it pass.
    ///
    /// ```
    /// use homeostat::{Controller, Predicate, predicates, watcher};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube::Api;
    ///
    /// fn build(api: Api<Deployment>) -> Controller<Deployment> {
    ///     Controller::new(api, watcher::Config::default())
    ///         .filter(predicates::generation.combine(predicates::annotations))
    /// }
    /// ```
    #[must_use]
    pub fn filter(mut self, predicate: impl Predicate<K> + Send + 'static) -> Self {
        self.filter = Some(match self.filter.take() {
            None => Box::new(predicate),
            Some(before) => {
                let before = move |obj: &K| before.hash_property(obj);
                Box::new(before.combine(predicate))
            }
        });
        self
    }

    /// Sets limits and delays.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// How long each watch and stream is left alone after it failed.
    ///
    /// Watches pace themselves, and both pauses count from the failure, so this only makes them
    /// longer. All share the sequence; each waits by itself. A success of any starts it over. A
    /// backoff that gives up is a pause of five minutes: nothing is given up.
    #[must_use]
    pub fn trigger_backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.pauses = Some(Pauses::new(backoff));
        self
    }

    /// Tells what happened to an object, and adds watches to the controller, while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle<K> {
        let histories = self.histories.clone();
        Handle::new(self.joining.0.clone(), histories, self.dyntype.clone())
    }

    /// The store of the controller's own kind, for reading in the reconciler or elsewhere.
    #[must_use]
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Tells whether the controller is ready and what it waits for, while it runs.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Watches objects that are owned by those of the controller: when one is created, changed or
    /// deleted, each owner of the controller's kind in its `metadata.ownerReferences` is reconciled.
    ///
    /// An owner that was named before a change is reconciled too, and a deletion that happened
    /// while the watch was down is noticed at the next list. The version in an owner reference does
    /// not count, only group and kind.
    #[must_use]
    pub fn owns<Child>(self, api: Api<Child>, wc: watcher::Config) -> Self
    where
        Child: Clone + Resource<DynamicType = ()> + DeserializeOwned + Debug + Send + 'static,
    {
        self.owns_with(api, (), wc)
    }

    /// The same as [`owns`](Self::owns), for a type known at run time.
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
        let owner_type = self.dyntype.clone();
        self.source(draft::owned::<K, Child>(api, wc, dyntype, owner_type))
    }

    /// The same as [`owns`](Self::owns), for objects that a stream delivers.
    ///
    /// Use [`reflect`](crate::WatchStreamExt::reflect) and then
    /// [`touched_objects`](crate::WatchStreamExt::touched_objects), so that the stream
    /// delivers deleted objects too. Without `reflect` it does so only while its watch is open: what
    /// is deleted in a gap is missing in the next list, nobody compares that list with the one before, and the owner
    /// is not reconciled. The log warns of such a stream once. [`owns`](Self::owns) needs no such care.
    ///
    /// ```
    /// use homeostat::{Controller, WatchStreamExt, reflector, watcher};
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use kube::{Api, Client};
    ///
    /// fn build(client: Client) -> Controller<Deployment> {
    ///     let (_maps, writer) = reflector::store();
    ///     let maps = watcher(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
    ///         .default_backoff()
    ///         .reflect(writer)
    ///         .touched_objects();
    ///     Controller::new(Api::all(client), watcher::Config::default()).owns_stream(maps)
    /// }
    /// ```
    #[must_use]
    pub fn owns_stream<Child>(
        self,
        trigger: impl Stream<Item = watcher::Result<Child>> + Send + 'static,
    ) -> Self
    where
        Child: Resource<DynamicType = ()> + Send + 'static,
    {
        self.owns_stream_with(trigger, ())
    }

    /// The same as [`owns_stream`](Self::owns_stream), for a type known at run time.
    #[must_use]
    pub fn owns_stream_with<Child>(
        self,
        trigger: impl Stream<Item = watcher::Result<Child>> + Send + 'static,
        dyntype: Child::DynamicType,
    ) -> Self
    where
        Child: Resource + Send + 'static,
        Child::DynamicType: Debug + Eq + Hash + Clone,
    {
        let owners = source::owners::<K, Child>(self.dyntype.clone());
        let relate = move |child: Child| owners(&child);
        self.source(Source::of_related::<Child, Child>(trigger, dyntype, relate))
    }

    /// The same as [`owns`](Self::owns), for objects of a store that others read too: see
    /// [`Store::subscribe`]. Deleted objects wake their owners.
    ///
    /// ```
    /// use homeostat::{Controller, reflector::Store, watcher};
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use kube::Api;
    ///
    /// /// `maps` is filled elsewhere, and other controllers may follow it as well.
    /// fn controller(api: Api<Deployment>, maps: &Store<ConfigMap>) -> Controller<Deployment> {
    ///     Controller::new(api, watcher::Config::default()).owns_shared_stream(maps.subscribe())
    /// }
    /// ```
    #[must_use]
    pub fn owns_shared_stream<Child>(
        self,
        trigger: impl Stream<Item = Arc<Child>> + Send + 'static,
    ) -> Self
    where
        Child: Resource<DynamicType = ()> + Send + 'static,
    {
        self.owns_shared_stream_with(trigger, ())
    }

    /// The same as [`owns_shared_stream`](Self::owns_shared_stream), for a type known at run time.
    #[must_use]
    pub fn owns_shared_stream_with<Child>(
        self,
        trigger: impl Stream<Item = Arc<Child>> + Send + 'static,
        dyntype: Child::DynamicType,
    ) -> Self
    where
        Child: Resource + Send + 'static,
        Child::DynamicType: Debug + Eq + Hash + Clone,
    {
        let owners = source::owners::<K, Child>(self.dyntype.clone());
        let relate = move |child: Arc<Child>| owners(&child);
        let trigger = trigger.map(Ok);
        self.source(Source::of_related::<Child, _>(trigger, dyntype, relate))
    }

    /// Watches objects that have to do with those of the controller: when one is created, changed
    /// or deleted, those that `mapper` names are reconciled.
    ///
    /// `mapper` is called once for each version of an object. Those that it named for the version
    /// before are reconciled too. For an object whose deletion the watch missed, those that it
    /// named last are.
    ///
    /// ```
    /// use homeostat::{Controller, reflector::ObjectRef, watcher};
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
    /// use kube::{Api, Client, ResourceExt};
    ///
    /// /// A Secret names the Deployment that it is for in a label.
    /// fn controller(client: Client) -> Controller<Deployment> {
    ///     let all = watcher::Config::default;
    ///     Controller::new(Api::all(client.clone()), all()).watches(
    ///         Api::<Secret>::all(client),
    ///         all().labels("example.com/for"),
    ///         |secret| {
    ///             let name = secret.labels().get("example.com/for")?;
    ///             Some(ObjectRef::new(name).within(&secret.namespace()?))
    ///         },
    ///     )
    /// }
    /// ```
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
        self.watches_with(api, Other::DynamicType::default(), wc, mapper)
    }

    /// The same as [`watches`](Self::watches), for a type known at run time.
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
        let relate = move |other| source::keys(mapper(other));
        self.source(Draft::of_related_watch(api, wc, dyntype, relate))
    }

    /// The same as [`watches`](Self::watches), for objects that a stream delivers.
    ///
    /// Use [`reflect`](crate::WatchStreamExt::reflect) and then
    /// [`touched_objects`](crate::WatchStreamExt::touched_objects), so that the stream
    /// delivers deleted objects too: see [`owns_stream`](Self::owns_stream).
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
        self.watches_stream_with(trigger, mapper, Other::DynamicType::default())
    }

    /// The same as [`watches_stream`](Self::watches_stream), for a type known at run time.
    #[must_use]
    pub fn watches_stream_with<Other, I>(
        self,
        trigger: impl Stream<Item = watcher::Result<Other>> + Send + 'static,
        mapper: impl Fn(Other) -> I + Sync + Send + 'static,
        dyntype: Other::DynamicType,
    ) -> Self
    where
        Other: Resource + Send + 'static,
        Other::DynamicType: Debug + Clone,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
        I::IntoIter: Send,
    {
        let relate = move |other: Other| source::keys(mapper(other));
        self.source(Source::of_related::<Other, _>(trigger, dyntype, relate))
    }

    /// The same as [`watches`](Self::watches), for objects of a store that others read too: see
    /// [`Store::subscribe`].
    #[must_use]
    pub fn watches_shared_stream<Other, I>(
        self,
        trigger: impl Stream<Item = Arc<Other>> + Send + 'static,
        mapper: impl Fn(Arc<Other>) -> I + Sync + Send + 'static,
    ) -> Self
    where
        Other: Resource + Send + 'static,
        Other::DynamicType: Default + Debug + Clone,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
        I::IntoIter: Send,
    {
        self.watches_shared_stream_with(trigger, mapper, Other::DynamicType::default())
    }

    /// The same as [`watches_shared_stream`](Self::watches_shared_stream), for a type known at run
    /// time.
    #[must_use]
    pub fn watches_shared_stream_with<Other, I>(
        self,
        trigger: impl Stream<Item = Arc<Other>> + Send + 'static,
        mapper: impl Fn(Arc<Other>) -> I + Sync + Send + 'static,
        dyntype: Other::DynamicType,
    ) -> Self
    where
        Other: Resource + Send + 'static,
        Other::DynamicType: Debug + Clone,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
        I::IntoIter: Send,
    {
        let relate = move |other: Arc<Other>| source::keys(mapper(other));
        let trigger = trigger.map(Ok);
        self.source(Source::of_related::<Other, _>(trigger, dyntype, relate))
    }

    /// Reconciles all objects whenever `trigger` yields, after those for which there is a more
    /// special reason.
    ///
    /// For changes that concern all of them, as of a configuration file.
    #[must_use]
    pub fn reconcile_all_on(self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self {
        let signals = trigger.map(|()| Signal::TriggerAll);
        self.source(Source::of_signals("reconcile_all_on", signals))
    }

    /// Reconciles each object that `trigger` names.
    #[must_use]
    pub fn reconcile_on(self, trigger: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        let signals = trigger.map(|reference| source::requested(&reference));
        self.source(Source::of_signals("reconcile_on", signals))
    }

    /// Stops when `trigger` completes: nothing more is started, runs end, and then the stream ends.
    ///
    /// With [`Config::shutdown_timeout`], what runs longer is cancelled, and an item of the stream
    /// says so. What waited in the queue is found again by the first list after the next start;
    /// delays of objects that backed off are not kept.
    #[must_use]
    pub fn graceful_shutdown_on(
        mut self,
        trigger: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let stop = trigger.map(|()| Stop::Gracefully).into_stream();
        self.stops.push(stop.boxed());
        self
    }

    /// Stops at SIGINT (Ctrl+C) or SIGTERM like [`graceful_shutdown_on`](Self::graceful_shutdown_on),
    /// and at a second signal at once, dropping what runs.
    #[must_use]
    pub fn shutdown_on_signal(mut self) -> Self {
        let first = crate::signal::received().map(|()| Stop::Gracefully);
        let second = crate::signal::received().map(|()| Stop::Now);
        let both = stream::once(first).chain(stream::once(second));
        self.stops.push(both.boxed());
        self
    }

    fn source(mut self, source: impl Into<Draft>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Runs the controller: the stream must be polled for anything to happen, in a tokio runtime.
    ///
    /// `reconciler` makes the world be as the object wants it, and says when to look again. It must
    /// not depend on why it is called: events merge, repeat and get lost. The reason stands in the
    /// tracing span `reconciling object` (fields `object.ref` and `object.reason`).
    ///
    /// `error_policy` says when an object is tried again after an error.
    /// [`error_policy::backoff`](crate::error_policy::backoff) suits most.
    ///
    /// `context` holds everything that the reconciler needs besides the object: clients,
    /// configuration, metrics. Tests hand in others.
    ///
    /// The items tell of each run and of each failure of a watch. No item is the last one until the
    /// controller was told to stop.
    pub fn run<ReconcilerFut, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, watcher::Error>>>
    where
        K::DynamicType: Debug + Unpin,
        ReconcilerFut: TryFuture<Ok = Action> + Send + 'static,
        ReconcilerFut::Error: std::error::Error + Send + 'static,
    {
        let hooks = Hooks {
            reconciler,
            error_policy,
            context,
        };
        // Sources are started at the first poll, which happens in a runtime.
        let driver = async move { Driver::new(self.start(), InTasks, hooks) };
        stream::once(driver).flat_map(Driver::into_stream)
    }
}

impl<K> Debug for Controller<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources = self.sources.iter().map(|source| &source.label);
        f.debug_struct("Controller")
            .field("kind", &K::kind(&self.dyntype))
            .field("config", &self.config)
            .field("sources", &sources.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

//! A controller whose objects are cleaned up after: two functions and a name.

use super::{Action, Controller, Error, StatusConditions};
use crate::{
    Classify,
    finalizer::{self, Work},
    reflector::ObjectRef,
    target::Target,
    watcher,
};
use futures::{FutureExt, Stream, TryFuture, TryFutureExt, future::Either};
use kube::{Client, Resource, core::request};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug},
    future::ready,
    hash::Hash,
    sync::Arc,
};

/// A controller that cleans up after its objects; see [`Controller::finalizer`].
///
/// `R` is what runs the reconciler: the [`Controller`], or one with [`StatusConditions`].
pub struct Finalized<R> {
    pub(super) runner: R,
    name: String,
    client: Option<Client>,
}

/// The finalizer of one controller.
struct Keeper<K: Resource> {
    name: String,
    client: Option<Client>,
    dyntype: K::DynamicType,
}

// === impl Controller ===

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Holds each object back from being gone until it was cleaned up after, with a finalizer of this
    /// name, as `example.com/dns-record`. [`run`](Finalized::run) then takes two functions: one that makes
    /// the world as an object wants it, and one that undoes that.
    ///
    /// ```
    /// use futures::StreamExt;
    /// use homeostat::{Action, Controller, error_policy, watcher};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::Api;
    /// use std::sync::Arc;
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> {
    ///     // Make a DNS record.
    ///     Ok(Action::await_change())
    /// }
    ///
    /// async fn clean_up(map: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> {
    ///     // Remove it. It may be gone already, or have never been there.
    ///     Ok(Action::await_change())
    /// }
    ///
    /// async fn run(api: Api<ConfigMap>) {
    ///     Controller::new(api, watcher::Config::default())
    ///         .finalizer("example.com/dns-record")
    ///         .run(reconcile, clean_up, error_policy::backoff, Arc::new(()))
    ///         .for_each(|_| std::future::ready(()))
    ///         .await;
    /// }
    /// ```
    ///
    /// # Guarantees
    ///
    /// - The finalizer is there before the object is first reconciled, so whatever that does is undone.
    /// - An object that is being deleted is never reconciled, and never gets the finalizer: it is cleaned
    ///   up after if it has it, and left alone if not.
    /// - The finalizer is removed after the clean-up returned [`Action::await_change`], and not before.
    ///   One that has to wait returns [`Action::requeue`] or [`Action::backoff`], and is called again.
    /// - A clean-up that fails is tried again, even if the error policy says to wait for a change: nobody
    ///   changes an object that is being deleted.
    /// - The rest is as with [`finalizer()`](crate::finalizer::finalizer()), which does the work.
    ///
    /// Children that name their owner need none of this: the server deletes them by itself.
    ///
    /// # Caveats
    ///
    /// An object cannot go while this program does not run. When a namespace is deleted, its objects are
    /// cleaned up after like any others, but everything in it is deleted at the same time and nothing can be
    /// created any more. So a clean-up should need nothing of its own namespace, and take what is gone for
    /// done. A reconcile that comes too late and is refused to create something (403,
    /// `NamespaceTerminating`) is a [permanent](crate::ErrorClass::Permanent) error: with
    /// [`error_policy::classified`](crate::error_policy::classified) it is not tried again.
    #[must_use]
    pub fn finalizer(self, name: impl Into<String>) -> Finalized<Self> {
        let client = self.primary.client();
        Finalized {
            runner: self,
            name: name.into(),
            client,
        }
    }
}

// === impl StatusConditions ===

impl<K> StatusConditions<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Serialize + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Cleans up after objects as [`Controller::finalizer`] does. The condition tells of failures of
    /// the clean-up and of the finalizer, too.
    ///
    /// ```
    /// # use futures::StreamExt;
    /// # use homeostat::{Action, Controller, error_policy, watcher};
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kube::Api;
    /// # use std::sync::Arc;
    /// # async fn reconcile(_: Arc<Deployment>, _: Arc<()>) -> Result<Action, kube::Error> {
    /// #     Ok(Action::await_change())
    /// # }
    /// # async fn clean_up(_: Arc<Deployment>, _: Arc<()>) -> Result<Action, kube::Error> {
    /// #     Ok(Action::await_change())
    /// # }
    /// # async fn run(api: Api<Deployment>) {
    /// Controller::new(api, watcher::Config::default())
    ///     .status_conditions("Reconciled")
    ///     .finalizer("example.com/dns-record")
    ///     .run(reconcile, clean_up, error_policy::classified, Arc::new(()))
    ///     .for_each(|_| std::future::ready(()))
    ///     .await;
    /// # }
    /// ```
    #[must_use]
    pub fn finalizer(mut self, name: impl Into<String>) -> Finalized<Self> {
        let name = name.into();
        // Only to add it is no success that the condition should tell of.
        self.finalizer = Some(name.clone());
        Finalized {
            client: self.client.clone(),
            runner: self,
            name,
        }
    }
}

// === impl Finalized ===

impl<R> Finalized<R> {
    /// Edits finalizers with this client instead of the one that the objects are watched with. A
    /// controller that gets its objects from a stream knows of no client, and needs this: without one
    /// every run fails.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }
}

impl<K> Finalized<Controller<K>>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Keeps a condition as [`Controller::status_conditions`] does. It tells of failures of the clean-up and of the
    /// finalizer, too.
    #[must_use]
    pub fn status_conditions(self, type_: impl Into<String>) -> Finalized<StatusConditions<K>>
    where
        K: Serialize,
    {
        let Self {
            runner,
            name,
            client,
        } = self;
        let runner = runner.status_conditions(type_).finalizer(name);
        Finalized { client, ..runner }
    }

    /// Runs the controller; see [`Controller::run`]. `reconciler` is called for objects that are there
    /// to stay, `cleanup` for those that are being deleted.
    pub fn run<ReconcilerFut, CleanupFut, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        cleanup: impl FnMut(Arc<K>, Arc<Ctx>) -> CleanupFut,
        error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, watcher::Error>>>
    where
        K::DynamicType: Debug + Unpin,
        ReconcilerFut: TryFuture<Ok = Action> + Send + 'static,
        ReconcilerFut::Error: std::error::Error + From<kube::Error> + Send + 'static,
        CleanupFut: TryFuture<Ok = Action, Error = ReconcilerFut::Error> + Send + 'static,
    {
        let keeper = Keeper::new(self.name, self.client, self.runner.dyntype.clone());
        let reconciler = keeper.guard(reconciler, cleanup);
        self.runner
            .run(reconciler, persistent(error_policy), context)
    }
}

impl<K> Finalized<StatusConditions<K>>
where
    K: Clone + Resource + DeserializeOwned + Debug + Serialize + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Runs the controller; see [`StatusConditions::run`]. `reconciler` is called for objects that are
    /// there to stay, `cleanup` for those that are being deleted.
    pub fn run<ReconcilerFut, CleanupFut, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        cleanup: impl FnMut(Arc<K>, Arc<Ctx>) -> CleanupFut,
        error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, watcher::Error>>>
    where
        K::DynamicType: Debug + Unpin,
        ReconcilerFut: TryFuture<Ok = Action> + Send + 'static,
        ReconcilerFut::Error: std::error::Error + Classify + From<kube::Error> + Send + 'static,
        CleanupFut: TryFuture<Ok = Action, Error = ReconcilerFut::Error> + Send + 'static,
    {
        let dyntype = self.runner.controller.dyntype.clone();
        let keeper = Keeper::new(self.name, self.client, dyntype);
        let reconciler = keeper.guard(reconciler, cleanup);
        self.runner
            .run(reconciler, persistent(error_policy), context)
    }
}

impl<R: Debug> Debug for Finalized<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finalized")
            .field("runner", &self.runner)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

// === impl Keeper ===

impl<K> Keeper<K>
where
    K: Resource,
{
    fn new(name: String, client: Option<Client>, dyntype: K::DynamicType) -> Self {
        Self {
            name,
            client,
            dyntype,
        }
    }

    /// One reconciler made of two, of which the finalizer decides which is called.
    fn guard<ReconcilerFut, CleanupFut, Ctx, E>(
        self,
        mut reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        mut cleanup: impl FnMut(Arc<K>, Arc<Ctx>) -> CleanupFut,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> futures::future::BoxFuture<'static, Result<Action, E>>
    where
        ReconcilerFut: TryFuture<Ok = Action, Error = E> + Send + 'static,
        CleanupFut: TryFuture<Ok = Action, Error = E> + Send + 'static,
        E: std::error::Error + From<kube::Error> + Send + 'static,
    {
        move |obj, context| {
            let Some(client) = self.client.clone() else {
                let why = "there is no client for the finalizer: name one with Finalized::client";
                return ready(Err(invalid(why.to_owned()).into())).boxed();
            };
            let target = Target::new(client, &self.dyntype, &*obj);
            let meta = obj.meta().clone();
            let work = Work::of(&meta, &self.name, |is_cleanup| {
                if is_cleanup {
                    Either::Left(TryFutureExt::into_future(cleanup(obj, context)))
                } else {
                    Either::Right(TryFutureExt::into_future(reconciler(obj, context)))
                }
            });
            let name = self.name.clone();
            async move { work?.done(&target, &name, &meta).await }
                .map_err(plain)
                .boxed()
        }
    }
}

/// The error of the reconciler, whatever it failed in.
fn plain<E>(error: finalizer::Error<E>) -> E
where
    E: std::error::Error + From<kube::Error>,
{
    match error {
        finalizer::Error::ApplyFailed(error) | finalizer::Error::CleanupFailed(error) => error,
        finalizer::Error::AddFinalizer(error) | finalizer::Error::RemoveFinalizer(error) => {
            error.into()
        }
        error @ (finalizer::Error::UnnamedObject | finalizer::Error::InvalidFinalizer) => {
            invalid(error.to_string()).into()
        }
    }
}

fn invalid(why: String) -> kube::Error {
    kube::Error::BuildRequest(request::Error::Validation(why))
}

/// The error policy, which never gives up an object that is being deleted.
fn persistent<K: Resource, E, Ctx>(
    error_policy: impl Fn(Arc<K>, &E, Arc<Ctx>) -> Action,
) -> impl Fn(Arc<K>, &E, Arc<Ctx>) -> Action {
    move |obj, error, context| {
        let leaving = obj.meta().deletion_timestamp.is_some();
        match error_policy(obj, error, context) {
            action if leaving && action.is_await_change() => Action::backoff(),
            action => action,
        }
    }
}

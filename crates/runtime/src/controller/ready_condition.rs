//! A condition that the runtime keeps: whether the last reconcile of an object went well.

mod writer;

use self::writer::{Rest, Writer};
use super::{Action, Controller, Error};
use crate::{
    Classify, ErrorClass,
    client::check_run,
    conditions::{NewCondition, Status},
    readable,
    reflector::ObjectRef,
    task::{Completion, Guarded, catch},
    watcher,
};
use futures::{Stream, StreamExt, TryFuture, TryFutureExt, future::Either};
use kube::{Client, Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug, Display},
    future::ready,
    hash::Hash,
    sync::Arc,
    time::Duration,
};

/// A controller that keeps a condition in the status of its objects; see
/// [`Controller::status_conditions`].
pub struct StatusConditions<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    pub(super) controller: Controller<K>,
    type_: String,
    pub(super) client: Option<Client>,
    /// The finalizer without which an object is not reconciled.
    pub(super) finalizer: Option<String>,
}

/// How a run ended that did not end well.
#[derive(Debug)]
enum Ending<E> {
    Failed(E),
    Panicked(String),
    TimedOut(Duration),
}

/// A run that did not end well.
#[derive(Debug)]
struct Failure<E> {
    ending: Ending<E>,
    /// What is left to be done about the condition.
    rest: Rest,
}

// === impl Controller ===

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Keeps a condition of this type in `status.conditions` of each object, and says in it how the last
    /// reconcile went. What else a controller can be told can be told before or after this.
    ///
    /// Give it a name that is true, as `Reconciled` or `Synced`. That a reconcile went well does not mean
    /// that what it asked for is there: whether an object is `Ready` follows from the state of its children,
    /// and your reconciler [computes](crate::conditions::set) it.
    ///
    /// | the reconcile | status | reason | message |
    /// |---|---|---|---|
    /// | succeeded | `True` | `Reconciled` | always the same |
    /// | failed, and is [permanent](ErrorClass::Permanent) | `False` | that of the error | that of the error |
    /// | failed otherwise | `Unknown` | [that of the error](Classify::reason), or `BackingOff` | that of the error |
    /// | panicked, or took too long | `Unknown` | `BackingOff` | what happened |
    /// | returned [`Action::backoff`] | `Unknown` | `BackingOff` | always the same |
    /// | failed with a [conflict](ErrorClass::Conflict) or returned [`Action::soon`] | stays | | |
    /// | succeeded for an object that is being deleted | stays | | |
    ///
    /// ```
    /// use futures::StreamExt;
    /// use homeostat::{Action, Classify, Controller, error_policy, watcher};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube::Api;
    /// use std::sync::Arc;
    ///
    /// #[derive(Debug, thiserror::Error, Classify)]
    /// enum Error {
    ///     #[error("Kubernetes API error: {0}")]
    ///     KubeApi(#[from] kube::Error),
    ///     #[error("missing spec field: {0}")]
    ///     #[classify(permanent, reason = "InvalidSpec")]
    ///     MissingField(String),
    ///     #[error("the inventory does not answer")]
    ///     #[classify(transient, reason = "InventoryDown")]
    ///     Inventory,
    /// }
    ///
    /// async fn reconcile(_: Arc<Deployment>, _: Arc<()>) -> Result<Action, Error> {
    ///     Err(Error::MissingField("host".into()))
    /// }
    ///
    /// async fn run(api: Api<Deployment>) {
    ///     Controller::new(api, watcher::Config::default())
    ///         .status_conditions("Reconciled")
    ///         .run(reconcile, error_policy::classified, Arc::new(()))
    ///         .for_each(|_| std::future::ready(()))
    ///         .await;
    /// }
    /// ```
    ///
    /// # Guarantees
    ///
    /// - Nothing is written while nothing changes. Each reason is written at most once for each generation of
    ///   the object until a reconcile succeeds, whatever the message is, however often it is tried, and also if
    ///   two reasons take turns. A reason that was told before, or another message, is only written when it has
    ///   been the only one for five minutes. Successes between failures are told at once, and with growing
    ///   pauses (up to five minutes) if they are too many; the object then runs once more to tell the last one.
    /// - Messages hold what the server says of an error of the API, and not what kube writes for debugging;
    ///   see [`readable`](crate::readable()).
    /// - `observedGeneration` is the generation of the object that the reconcile was given.
    /// - Other conditions stay, whoever writes them at the same time.
    /// - The condition is written at the end of the run, so no two are written for an object at a time.
    ///   That takes ten seconds at most, and only as much of the
    ///   [concurrency](super::Config::concurrency) as any run.
    /// - If it could not be written for the time being, the object is run again after its backoff,
    ///   whatever the reconciler or the policy said.
    /// - A kind that has no status subresource, or no conditions in its definition or in its Rust type, is
    ///   warned of once, and then its objects are left alone. If the server refuses to write for another reason, as a permission
    ///   that is missing, that is warned of once and tried again with the next run.
    ///
    /// # Assumptions
    ///
    /// - The list holds conditions as the conventions of the API have them
    ///   (`k8s_openapi`'s `Condition`), and nobody else writes the one of this type.
    /// - The program may get the objects and patch their `status`.
    ///
    /// # Caveats
    ///
    /// A reconciler that writes all of `status.conditions` anew takes this condition away each time;
    /// [`status::patch`](crate::status::patch) does not.
    #[must_use]
    pub fn status_conditions(self, type_: impl Into<String>) -> StatusConditions<K> {
        let client = self.primary.client();
        StatusConditions {
            controller: self,
            type_: type_.into(),
            client,
            finalizer: None,
        }
    }
}

// === impl StatusConditions ===

impl<K> StatusConditions<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Serialize + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Writes with this client instead of the one that the objects are watched with. A controller
    /// that gets its objects from a stream knows of no client, and needs this.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Runs the controller; see [`Controller::run`]. The error has to know how it is answered, so
    /// that the condition can say it.
    pub fn run<ReconcilerFut, Ctx>(
        self,
        mut reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, watcher::Error>>>
    where
        K::DynamicType: Debug + Unpin,
        ReconcilerFut: TryFuture<Ok = Action> + Send + 'static,
        ReconcilerFut::Error: std::error::Error + Classify + Send + 'static,
    {
        let Self {
            mut controller,
            type_,
            client,
            finalizer,
        } = self;
        // A run that takes too long is ended in here, where its end can still be told.
        let timeout = controller.config.reconcile_timeout.take();
        let writer = Writer::new(
            client,
            type_,
            controller.store(),
            controller.dyntype.clone(),
        );
        let writer = Arc::new(writer);

        let reconciler = move |obj: Arc<K>, context| {
            let writer = Arc::clone(&writer);
            let held = finalizer
                .as_ref()
                .is_none_or(|name| obj.finalizers().contains(name));
            let run = match catch(|| reconciler(Arc::clone(&obj), context)) {
                Ok(run) => Either::Left(Guarded::new(TryFutureExt::into_future(run), timeout)),
                Err(panic) => Either::Right(ready(Completion::Panicked(panic))),
            };
            async move {
                let completion = run.await;
                // Without the finalizer there was no reconcile yet that could have succeeded.
                let told = held || !matches!(completion, Completion::Returned(Ok(_)));
                // A run that has read an incomplete store does not count.
                let told = told && check_run().is_ok();
                let finding = finding(&completion, &*obj).filter(|_| told);
                let rest = match finding {
                    Some(finding) => writer.write(&obj, finding).await,
                    None => Rest::Nothing,
                };
                concluded(completion, rest)
            }
        };
        let policy = move |obj, failure: &Failure<ReconcilerFut::Error>, context| {
            let action = match &failure.ending {
                Ending::Failed(error) => error_policy(obj, error, context),
                Ending::Panicked(_) | Ending::TimedOut(_) => Action::backoff(),
            };
            postponed(action, failure.rest)
        };
        let items = controller.run(reconciler, policy, context);
        items.map(|item| item.map_err(restored))
    }
}

/// What there is to say of an object after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    status: Status,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

/// What a run tells of an object; `None` if the condition stays as it is.
fn finding<K, E>(completion: &Completion<Result<Action, E>>, obj: &K) -> Option<Finding>
where
    K: Resource,
    E: Classify + Display,
{
    let meta = obj.meta();
    let backing_off = |message: String| (Status::Unknown, "BackingOff".into(), message);
    let (status, reason, message) = match completion {
        Completion::Returned(Ok(action)) if action.is_soon() => return None,
        Completion::Returned(Ok(action)) if action.is_backoff() => {
            backing_off("The object is not as wanted yet; it is tried again.".to_owned())
        }
        // It is on its way out, and nobody waits for it to be ready.
        Completion::Returned(Ok(_)) if meta.deletion_timestamp.is_some() => return None,
        Completion::Returned(Ok(_)) => {
            let message = "The last reconcile succeeded.".to_owned();
            (Status::True, "Reconciled".into(), message)
        }
        Completion::Returned(Err(error)) => {
            let message = readable(error).to_string();
            match (error.classify(), error.reason()) {
                (ErrorClass::Conflict, _) => return None,
                (ErrorClass::Permanent { reason }, _) => (Status::False, reason, message),
                (ErrorClass::Transient | ErrorClass::Throttled { .. }, Some(reason)) => {
                    (Status::Unknown, reason, message)
                }
                (ErrorClass::Transient | ErrorClass::Throttled { .. }, None) => {
                    backing_off(message)
                }
            }
        }
        // It has no fence of its own, and if it had, whoever leads would write the condition.
        Completion::Deposed => return None,
        Completion::Panicked(panic) => backing_off(format!("The reconcile panicked: {panic}")),
        Completion::TimedOut(limit) => {
            backing_off(format!("The reconcile did not end within {limit:?}."))
        }
    };
    Some(Finding {
        status,
        reason: reason.into_owned(),
        message,
        observed_generation: meta.generation,
    })
}

/// How the run ends for the controller, now that the condition was dealt with.
fn concluded<E>(
    completion: Completion<Result<Action, E>>,
    rest: Rest,
) -> Result<Action, Failure<E>> {
    let ending = match completion {
        Completion::Returned(Ok(action)) => return Ok(postponed(action, rest)),
        Completion::Returned(Err(error)) => Ending::Failed(error),
        Completion::Panicked(panic) => Ending::Panicked(panic),
        Completion::TimedOut(limit) => Ending::TimedOut(limit),
        Completion::Deposed => Ending::Panicked("leadership was lost".into()),
    };
    Err(Failure { ending, rest })
}

/// The action that was asked for, or another one that comes to what is left to be done about the condition.
fn postponed(action: Action, rest: Rest) -> Action {
    match rest {
        _ if action.is_backoff() => action,
        Rest::Nothing => action,
        Rest::Unwritten => Action::backoff(),
        // What runs by itself comes by again.
        Rest::Later(_) if !action.is_await_change() => action,
        Rest::Later(time) => Action::requeue(time),
    }
}

/// The error as it is without this.
fn restored<E>(error: Error<Failure<E>, watcher::Error>) -> Error<E, watcher::Error> {
    match error {
        Error::ReconcilerFailed(Failure { ending, .. }, object) => match ending {
            Ending::Failed(error) => Error::ReconcilerFailed(error, object),
            Ending::Panicked(panic) => Error::ReconcilerPanicked(panic, object),
            Ending::TimedOut(limit) => Error::ReconcileTimeout(limit, object),
        },
        Error::ObjectNotFound(object) => Error::ObjectNotFound(object),
        Error::QueueError(error) => Error::QueueError(error),
        Error::RunnerError(error) => Error::RunnerError(error),
        Error::ReconcilerPanicked(panic, object) => Error::ReconcilerPanicked(panic, object),
        Error::ReconcileTimeout(limit, object) => Error::ReconcileTimeout(limit, object),
        Error::ReconcileCancelled(object) => Error::ReconcileCancelled(object),
    }
}

impl<K> Debug for StatusConditions<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusConditions")
            .field("controller", &self.controller)
            .field("type", &self.type_)
            .finish_non_exhaustive()
    }
}

// === impl Finding ===

impl Finding {
    fn condition(&self, type_: &str) -> NewCondition {
        let Self {
            status,
            reason,
            message,
            observed_generation,
        } = self;
        NewCondition::new(type_, *status, reason)
            .message(message)
            .observed_generation(*observed_generation)
    }
}

// === impl Failure ===

impl<E: Display> Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ending {
            Ending::Failed(error) => Display::fmt(error, f),
            Ending::Panicked(panic) => write!(f, "panicked: {panic}"),
            Ending::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Failure<E> {}

#[cfg(test)]
mod tests;

//! A finalizer: nothing of an object's outside is left behind when the object is deleted.

use crate::{Action, client, readable, target::Target};
use futures::{TryFuture, TryFutureExt};
use homeostat_core::finalizer::{Edit, Held, Plan, Refusal, Verdict, is_valid_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{error::Error as StdError, fmt::Debug, sync::Arc};

/// What an object asks for.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// The object is there to stay: make the world as it says.
    ///
    /// This comes over and over, so it should do nothing when nothing is to be done.
    Apply(Arc<K>),
    /// The object is being deleted: undo what [`Apply`](Event::Apply) did.
    ///
    /// This can come more than once too, and for an object that was never applied.
    Cleanup(Arc<K>),
}

/// What can go wrong in [`finalizer`].
#[derive(Debug, thiserror::Error)]
pub enum Error<ReconcileErr>
where
    ReconcileErr: StdError + 'static,
{
    /// The reconciler failed to apply the object.
    #[error("failed to apply object: {0}")]
    ApplyFailed(#[source] ReconcileErr),
    /// The reconciler failed to clean up. The finalizer stays.
    #[error("failed to clean up object: {0}")]
    CleanupFailed(#[source] ReconcileErr),
    /// The finalizer could not be added, so nothing was applied.
    #[error("failed to add finalizer: {}", readable(.0))]
    AddFinalizer(#[source] kube::Error),
    /// The object is cleaned up, but the finalizer could not be removed.
    #[error("failed to remove finalizer: {}", readable(.0))]
    RemoveFinalizer(#[source] kube::Error),
    /// The object has no `metadata.name`, so it cannot come from a server.
    #[error("object has no name")]
    UnnamedObject,
    /// No server takes this name for a finalizer. It should look like `example.com/cleanup`.
    #[error(
        "finalizer name is invalid: it must be a domain, `/` and up to 63 letters, digits, `-`, `_` or `.`"
    )]
    InvalidFinalizer,
}

/// How an edit of the finalizers ended, if the server answered as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edited {
    /// The list is as it should be.
    Done,
    /// There is no list to edit any more.
    Moot,
}

/// How often an edit is made anew when others edit the same list at the same time. Of any number of
/// edits at the same time one succeeds, so this is how many others there may be.
const ATTEMPTS: u32 = 8;

/// Reconciles an object so that it is always cleaned up after.
///
/// ```
/// use homeostat::{Action, finalizer::{Event, finalizer}};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client, ResourceExt};
/// use std::{sync::Arc, time::Duration};
///
/// # struct Context { client: Client }
/// # async fn ensure_record(_: &str) -> Result<(), Error> { Ok(()) }
/// # async fn remove_record(_: &str) -> Result<(), Error> { Ok(()) }
/// #[derive(Debug, thiserror::Error)]
/// enum Error {
///     #[error("the provider of DNS does not answer")]
///     Provider,
///     #[error("{0}")]
///     Finalizer(#[source] Box<homeostat::finalizer::Error<Error>>),
/// }
///
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, Error> {
///     let namespace = map.namespace().unwrap_or_default();
///     let maps = Api::<ConfigMap>::namespaced(ctx.client.clone(), &namespace);
///     finalizer(&maps, "example.com/dns-record", map, |event| async {
///         match event {
///             Event::Apply(map) => {
///                 ensure_record(&map.name_any()).await?;
///                 Ok(Action::requeue(Duration::from_secs(300)))
///             }
///             Event::Cleanup(map) => {
///                 remove_record(&map.name_any()).await?;
///                 Ok(Action::await_change())
///             }
///         }
///     })
///     .await
///     .map_err(|error| Error::Finalizer(Box::new(error)))
/// }
/// ```
///
/// # Flow
///
/// | the object is | without the finalizer      | with it                                      |
/// |---------------|----------------------------|----------------------------------------------|
/// | there to stay | it is added, nothing else  | `reconcile` is called with [`Event::Apply`]   |
/// | being deleted | nothing is left to be done | `reconcile` is called with [`Event::Cleanup`] |
///
/// `Cleanup` is over when it returns [`Action::await_change`]: then the finalizer is removed, and the
/// server lets the object go. Whoever has to wait for something returns [`Action::requeue`] or
/// [`Action::backoff`]: the finalizer stays, and `Cleanup` comes again. (In kube every `Ok` removes
/// the finalizer.)
///
/// # Guarantees
///
/// - `Apply` only comes after the server has confirmed the finalizer, so whatever it does is undone;
///   and it never comes for an object that was seen being deleted.
/// - After the finalizer was added, which is [`Action::await_change`], `Apply` follows, whatever is
///   filtered: the change of the finalizers passes the filters of this crate, and for other filters the
///   controller runs the object again in a second.
/// - The finalizers of others stay, whoever edits them at the same time: an edit holds for the list
///   that it was made from and for this very object. If the list has changed, it is read and edited
///   anew, in the same call.
/// - An object that is gone when its finalizer is to be removed, and a finalizer that somebody else
///   has removed, is success. So is an object that is gone, or being deleted, when the finalizer is
///   to be added. Another object that took the name in between is left alone.
///
/// # Assumptions
///
/// - `api` is for the object's own namespace; not `Api::all` for objects that have one.
/// - The reconciler may get and patch the object.
/// - Nobody else uses the same name on these objects. Change it and you orphan the old one: whoever
///   does that has to remove the old one too.
///
/// # Caveats
///
/// An object cannot go while this program does not run, and a namespace cannot go before its
/// objects. In a namespace that is being deleted nothing can be created, so `Cleanup` should need
/// nothing of its own there; it may also find what it needs deleted before it.
///
/// # Errors
///
/// [`Error::ApplyFailed`] and [`Error::CleanupFailed`] carry the error of `reconcile`. For the others
/// see [`Error`]; it is safe to call this again after any of them.
pub async fn finalizer<K, ReconcileFut>(
    api: &Api<K>,
    finalizer_name: &str,
    obj: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> ReconcileFut,
) -> Result<Action, Error<ReconcileFut::Error>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    ReconcileFut: TryFuture<Ok = Action>,
    ReconcileFut::Error: StdError + 'static,
{
    let target = Target::in_api(api, &*obj);
    let meta = obj.meta().clone();
    let work = Work::of(&meta, finalizer_name, |is_cleanup| {
        let event = if is_cleanup {
            Event::Cleanup
        } else {
            Event::Apply
        };
        TryFutureExt::into_future(reconcile(event(obj)))
    })?;
    work.done(&target, finalizer_name, &meta).await
}

/// What is to be done with an object, and the run of the reconciler if that is called for it.
pub(crate) enum Work<Run> {
    Add,
    Apply(Run),
    Cleanup(Run),
    Nothing,
}

// === impl Work ===

impl<Run> Work<Run> {
    /// Decides what is to be done with an object. `reconcile` is told whether it is to clean up; it is
    /// called here and now, though its future may run elsewhere.
    pub(crate) fn of<E>(
        meta: &ObjectMeta,
        finalizer: &str,
        reconcile: impl FnOnce(bool) -> Run,
    ) -> Result<Self, Error<E>>
    where
        E: StdError + 'static,
    {
        if meta.name.is_none() {
            return Err(Error::UnnamedObject);
        }
        if !is_valid_name(finalizer) {
            return Err(Error::InvalidFinalizer);
        }
        Ok(match held(meta).plan(finalizer) {
            Plan::Add => Self::Add,
            Plan::Apply => Self::Apply(reconcile(false)),
            Plan::Cleanup => Self::Cleanup(reconcile(true)),
            Plan::Nothing => Self::Nothing,
        })
    }

    /// Does it. `meta` is the latest that is known of the object.
    pub(crate) async fn done<E>(
        self,
        target: &Target,
        finalizer: &str,
        meta: &ObjectMeta,
    ) -> Result<Action, Error<E>>
    where
        Run: Future<Output = Result<Action, E>>,
        E: StdError + 'static,
    {
        match self {
            Self::Add => match edit(target, Edit::Add, finalizer, meta).await {
                Ok(edited) => {
                    if edited == Edited::Done
                        && let Some(run) = client::Run::current()
                    {
                        run.ask_for_another();
                    }
                    Ok(Action::await_change())
                }
                Err(error) => Err(Error::AddFinalizer(error)),
            },
            Self::Apply(run) => run.await.map_err(Error::ApplyFailed),
            Self::Cleanup(run) => {
                let action = run.await.map_err(Error::CleanupFailed)?;
                if action.is_await_change() {
                    edit(target, Edit::Remove, finalizer, meta)
                        .await
                        .map_err(Error::RemoveFinalizer)?;
                }
                Ok(action)
            }
            Self::Nothing => Ok(Action::await_change()),
        }
    }
}

/// Edits the finalizers of an object of which `meta` was the latest known.
async fn edit(
    target: &Target,
    edit: Edit,
    finalizer: &str,
    meta: &ObjectMeta,
) -> Result<Edited, kube::Error> {
    let mut before = meta.clone();
    let mut attempt = 1;
    loop {
        let operations = operations(edit, finalizer, held(&before));
        let Err(error) = target.json_patch(&operations).await else {
            return Ok(Edited::Done);
        };
        let kube::Error::Api(status) = &error else {
            return Err(error);
        };
        let refusal = if status.is_not_found() || status.code == 410 {
            return Ok(Edited::Moot);
        } else if status.is_conflict() {
            Refusal::Conflict
        } else if status.is_invalid() {
            Refusal::Invalid
        } else {
            return Err(error);
        };
        let now = target.metadata().await?;
        match edit.refused(finalizer, refusal, held(&before), now.as_ref().map(held)) {
            Verdict::Done => return Ok(Edited::Done),
            Verdict::Moot => return Ok(Edited::Moot),
            Verdict::Again if attempt < ATTEMPTS => {
                attempt += 1;
                before = now.unwrap_or(before);
            }
            Verdict::Again | Verdict::Refused => return Err(error),
        }
    }
}

fn held(meta: &ObjectMeta) -> Held<'_> {
    Held {
        uid: meta.uid.as_deref(),
        deleting: meta.deletion_timestamp.is_some(),
        finalizers: meta.finalizers.as_deref().unwrap_or_default(),
    }
}

/// The JSON patch for an edit. What it was made from is tested first, so that it is carried out as a
/// whole or not at all.
fn operations(edit: Edit, finalizer: &str, before: Held<'_>) -> Value {
    let test = |path: &str, value: Value| json!({ "op": "test", "path": path, "value": value });
    let mut operations = Vec::new();
    operations.extend(before.uid.map(|uid| test("/metadata/uid", uid.into())));
    match edit {
        Edit::Add => {
            // A server does not keep an empty list, and tests what is not there as null.
            let list = match before.finalizers {
                [] => Value::Null,
                finalizers => finalizers.into(),
            };
            let names = before.finalizers.iter().map(String::as_str);
            let edited: Value = names.chain([finalizer]).collect();
            operations.push(test("/metadata/finalizers", list));
            operations.push(json!({
                "op": "add", "path": "/metadata/finalizers", "value": edited,
            }));
        }
        Edit::Remove => {
            for place in before.places(finalizer) {
                let path = format!("/metadata/finalizers/{place}");
                operations.push(test(&path, finalizer.into()));
                operations.push(json!({ "op": "remove", "path": path }));
            }
        }
    }
    operations.into()
}

#[cfg(test)]
mod tests;

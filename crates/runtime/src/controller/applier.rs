//! A controller without its own watches.

use super::{
    Action, Config, Error, ReconcileRequest,
    cover::{Cover, Covers},
    driver::{Driver, Hooks, Setup},
    history::Histories,
    readiness::Readiness,
    source::{self, Signal},
};
use crate::{
    reflector::{ObjectRef, Registry, Store},
    task::InPlace,
};
use futures::{Stream, StreamExt, TryFuture, TryStream, TryStreamExt, stream, stream::SelectAll};
use homeostat_core::queue::Priority;
use kube::Resource;
use std::{fmt::Debug, hash::Hash, sync::Arc};

/// Runs a reconciler for each object that `queue` asks for, with its state in `store`.
///
/// This is what a [`Controller`](super::Controller) does with its triggers, for those who make
/// their own. What [`Controller`](super::Controller) says of scheduling holds here too. The
/// reconciler's futures are driven by whoever polls the stream, and need not be `Send`.
///
/// A run waits for `store` to have seen what the last run of the object wrote to the object itself
/// ([`Config::wait_for_writes`]), and so do the other stores that the reconciler [reads](Store#in-reconcilers).
/// Requests do not say which version they are about, so none is known to come of an own write:
/// [`Config::ignore_own_writes`] has no effect, and a loop of such requests looks like requests by others. A fight is
/// seen.
///
/// The stream ends when `queue` has ended and all that it asked for has run. Then nobody waits for a requeue, whatever
/// reconcilers and the policy ask for. Until then the reader of the stream gets its turn now and then, also while
/// reconcilers ask to run again at once.
#[expect(clippy::type_complexity, reason = "users know the type from kube")]
pub fn applier<K, QueueStream, ReconcilerFut, Ctx>(
    reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
    error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
    context: Arc<Ctx>,
    store: Store<K>,
    queue: QueueStream,
    config: Config,
) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, QueueStream::Error>>>
where
    K: Clone + Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin,
    ReconcilerFut: TryFuture<Ok = Action> + Unpin,
    ReconcilerFut::Error: std::error::Error + 'static,
    QueueStream: TryStream,
    QueueStream::Ok: Into<ReconcileRequest<K>>,
    QueueStream::Error: std::error::Error + 'static,
{
    let hooks = Hooks {
        reconciler,
        error_policy,
        context,
    };
    let requests = queue.into_stream().map(|request| match request {
        Ok(request) => {
            let ReconcileRequest { obj_ref, reason } = request.into();
            source::trigger(&obj_ref, reason, Priority::Normal)
        }
        Err(error) => Signal::Failed(error),
    });
    let ready = source::store_ready(store.clone());
    let intake = stream::select(stream::once(ready), requests).map(|signal| (0, signal));
    let registry = Registry::default();
    registry.know(store.status());
    let covers = Covers::of(Cover::of_local_store(&store));
    let setup = Setup {
        dyntype: store.dyntype().clone(),
        store,
        config,
        intake: Box::pin(intake),
        unsynced: [0].into(),
        covers: Arc::new(covers),
        back: Arc::default(),
        registry: Arc::new(registry),
        stops: SelectAll::new(),
        readiness: Readiness::default(),
        histories: Histories::default(),
        recorder: None,
        service: None,
    };
    // The clock starts at the first poll, which happens in a runtime.
    stream::once(async move { Driver::new(setup, InPlace, hooks) }).flat_map(Driver::into_stream)
}

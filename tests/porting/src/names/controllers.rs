//! `controller`.

use super::{
    DynamicObject, Pod, clone,
    controller::{self, Action, Config, Controller, ReconcileReason, ReconcileRequest},
    debug, default, display, error, full_eq, hash, into,
    reflector::{ObjectRef, Store, store},
    runtime::applier,
    send, utils, watcher,
};
use futures::{Stream, TryFuture, TryStream};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{
    borrow::Borrow, error::Error as StdError, fmt::Debug, hash::Hash, sync::Arc, time::Duration,
};

const REQUEUE: Action = Action::requeue(Duration::ZERO);
const AWAIT: Action = Action::await_change();

fn config() -> Config {
    let debounce: fn(Config, Duration) -> Config = Config::debounce;
    let concurrency: fn(Config, u16) -> Config = Config::concurrency;
    concurrency(debounce(Config::default(), Duration::ZERO), 0)
}

/// A user's own type around a controller.
struct Holder<K>
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash,
{
    controller: Controller<K>,
}

fn new<K>(api: Api<K>, wc: watcher::Config) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    Controller::new(api, wc)
}

fn new_with<K>(api: Api<K>, wc: watcher::Config, dyntype: K::DynamicType) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    Controller::new_with(api, wc, dyntype)
}

fn for_stream<K>(
    stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
    shared: impl Stream<Item = Arc<K>> + Send + 'static,
    reader: Store<K>,
) -> [Controller<K>; 2]
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    [
        Controller::for_stream(stream, reader.clone()),
        Controller::for_shared_stream(shared, reader),
    ]
}

fn for_stream_with<K>(
    stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
    shared: impl Stream<Item = Arc<K>> + Send + 'static,
    reader: Store<K>,
    dyntype: K::DynamicType,
) -> [Controller<K>; 2]
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    [
        Controller::for_stream_with(stream, reader.clone(), dyntype.clone()),
        Controller::for_shared_stream_with(shared, reader, dyntype),
    ]
}

fn owns<K, Child>(controller: Controller<K>, api: Api<Child>, wc: watcher::Config) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Clone + Resource<DynamicType = ()> + DeserializeOwned + Debug + Send + 'static,
{
    controller.owns(api, wc)
}

fn owns_with<K, Child>(
    controller: Controller<K>,
    api: Api<Child>,
    dyntype: Child::DynamicType,
    wc: watcher::Config,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Child::DynamicType: Debug + Eq + Hash + Clone,
{
    controller.owns_with(api, dyntype, wc)
}

fn owns_stream<K, Child>(
    controller: Controller<K>,
    stream: impl Stream<Item = Result<Child, watcher::Error>> + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Resource<DynamicType = ()> + Send + 'static,
{
    controller.owns_stream(stream)
}

fn owns_stream_with<K, Child>(
    controller: Controller<K>,
    stream: impl Stream<Item = Result<Child, watcher::Error>> + Send + 'static,
    dyntype: Child::DynamicType,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Resource + Send + 'static,
    Child::DynamicType: Debug + Eq + Hash + Clone,
{
    controller.owns_stream_with(stream, dyntype)
}

fn owns_shared_stream<K, Child>(
    controller: Controller<K>,
    stream: impl Stream<Item = Arc<Child>> + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Resource<DynamicType = ()> + Send + 'static,
{
    controller.owns_shared_stream(stream)
}

fn owns_shared_stream_with<K, Child>(
    controller: Controller<K>,
    stream: impl Stream<Item = Arc<Child>> + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Child: Resource<DynamicType = ()> + Send + 'static,
{
    controller.owns_shared_stream_with(stream, ())
}

fn watches<K, Other, I>(
    controller: Controller<K>,
    api: Api<Other>,
    mapper: impl Fn(Other) -> I + Sync + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Default + Debug + Clone + Eq + Hash,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches(api, watcher::Config::default(), mapper)
}

fn watches_with<K, Other, I>(
    controller: Controller<K>,
    api: Api<Other>,
    dyntype: Other::DynamicType,
    mapper: impl Fn(Other) -> I + Sync + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Debug + Clone + Eq + Hash,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches_with(api, dyntype, watcher::Config::default(), mapper)
}

fn watches_stream<K, Other, I>(
    controller: Controller<K>,
    stream: impl Stream<Item = Result<Other, watcher::Error>> + Send + 'static,
    mapper: impl Fn(Other) -> I + Sync + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Default + Debug + Clone,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches_stream(stream, mapper)
}

fn watches_stream_with<K, Other, I>(
    controller: Controller<K>,
    stream: impl Stream<Item = Result<Other, watcher::Error>> + Send + 'static,
    mapper: impl Fn(Other) -> I + Sync + Send + 'static,
    dyntype: Other::DynamicType,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Debug + Clone,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches_stream_with(stream, mapper, dyntype)
}

fn watches_shared_stream<K, Other, I>(
    controller: Controller<K>,
    stream: impl Stream<Item = Arc<Other>> + Send + 'static,
    mapper: impl Fn(Arc<Other>) -> I + Sync + Send + 'static,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Default + Debug + Clone,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches_shared_stream(stream, mapper)
}

fn watches_shared_stream_with<K, Other, I>(
    controller: Controller<K>,
    stream: impl Stream<Item = Arc<Other>> + Send + 'static,
    mapper: impl Fn(Arc<Other>) -> I + Sync + Send + 'static,
    dyntype: Other::DynamicType,
) -> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
    Other::DynamicType: Debug + Clone,
    I: 'static + IntoIterator<Item = ObjectRef<K>>,
    I::IntoIter: Send,
{
    controller.watches_shared_stream_with(stream, mapper, dyntype)
}

fn settings<K>(
    controller: Controller<K>,
    backoff: impl utils::Backoff + 'static,
    all: impl Stream<Item = ()> + Send + 'static,
    some: impl Stream<Item = ObjectRef<K>> + Send + 'static,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) -> (Store<K>, Controller<K>)
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let store = controller.store();
    let controller = controller
        .with_config(config())
        .trigger_backoff(backoff)
        .reconcile_all_on(all)
        .reconcile_on(some)
        .graceful_shutdown_on(stop)
        .shutdown_on_signal();
    (store, controller)
}

fn run<K, F, Ctx>(
    controller: Controller<K>,
    reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
    error_policy: impl Fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action,
    context: Arc<Ctx>,
) -> impl Stream<Item = Result<(ObjectRef<K>, Action), controller::Error<F::Error, watcher::Error>>>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin,
    F: TryFuture<Ok = Action> + Send + 'static,
    F::Error: StdError + Send + 'static,
{
    controller.run(reconciler, error_policy, context)
}

#[expect(clippy::type_complexity, reason = "it is the type that is tested")]
fn apply<K, Queue, F, Ctx>(
    reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> F,
    error_policy: impl Fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action,
    context: Arc<Ctx>,
    store: Store<K>,
    queue: Queue,
) -> impl Stream<Item = Result<(ObjectRef<K>, Action), controller::Error<F::Error, Queue::Error>>>
where
    K: Clone + Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin,
    F: TryFuture<Ok = Action> + Unpin,
    F::Error: StdError + 'static,
    Queue: TryStream,
    Queue::Ok: Into<ReconcileRequest<K>>,
    Queue::Error: StdError + 'static,
{
    let (reconciler, config) = (reconciler, config());
    applier(reconciler, error_policy, context, store, queue, config)
}

fn errors<E: 'static, Q: 'static>(
    failed: E,
    watch: Q,
    lost: store::WriterDropped,
    reference: Box<ObjectRef<DynamicObject>>,
) -> [controller::Error<E, Q>; 4] {
    use controller::Error::{ObjectNotFound, QueueError, ReconcilerFailed, RunnerError};
    [
        ObjectNotFound(reference.clone()),
        ReconcilerFailed(failed, reference),
        QueueError(watch),
        RunnerError(controller::RunnerError::Readiness(lost)),
    ]
}

fn triggers<T, K, I, S>(
    stream: S,
    mapper: impl Fn(T) -> I,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>>
where
    S: TryStream<Ok = T>,
    I: IntoIterator,
    I::Item: Into<ReconcileRequest<K>>,
    K: Resource,
{
    controller::trigger_with(stream, mapper)
}

fn trigger_self<K, S>(
    stream: S,
    dyntype: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>>
where
    S: TryStream,
    S::Ok: Borrow<K>,
    K: Resource,
    K::DynamicType: Clone,
{
    controller::trigger_self(stream, dyntype)
}

fn trigger_owners<Owner, S>(
    stream: S,
    owner: Owner::DynamicType,
    child: <S::Ok as Resource>::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<Owner>, S::Error>>
where
    S: TryStream,
    S::Ok: Resource,
    <S::Ok as Resource>::DynamicType: Clone,
    Owner: Resource,
    Owner::DynamicType: Clone,
{
    controller::trigger_owners(stream, owner, child)
}

fn request<K: Resource>(obj_ref: ObjectRef<K>) -> ReconcileRequest<K> {
    let reason = ReconcileReason::Custom {
        reason: String::new(),
    };
    ReconcileRequest { obj_ref, reason }
}

fn reasons(reason: ReconcileReason) -> Option<Box<ObjectRef<DynamicObject>>> {
    match reason {
        ReconcileReason::Unknown
        | ReconcileReason::ObjectUpdated
        | ReconcileReason::ReconcilerRequestedRetry
        | ReconcileReason::ErrorPolicyRequestedRetry
        | ReconcileReason::BulkReconcile
        | ReconcileReason::Custom { reason: _ } => None,
        ReconcileReason::RelatedObjectUpdated { obj_ref } => Some(obj_ref),
    }
}

fn of_controllers<K>()
where
    K: Resource,
    K::DynamicType: Eq + Hash + Clone + Debug,
{
    clone::<Action>();
    debug::<Action>();
    full_eq::<Action>();
    clone::<Config>();
    debug::<Config>();
    default::<Config>();
    send::<Controller<Pod>>();
    error::<controller::Error<kube::Error, watcher::Error>>();
    error::<controller::RunnerError>();
    into::<ObjectRef<K>, ReconcileRequest<K>>();
    clone::<ReconcileRequest<K>>();
    debug::<ReconcileRequest<K>>();
    full_eq::<ReconcileRequest<K>>();
    hash::<ReconcileRequest<K>>();
    clone::<ReconcileReason>();
    debug::<ReconcileReason>();
    display::<ReconcileReason>();
}

//! What the types can do without any more bounds than kube's ask: auto traits of types, streams and
//! futures, implementations, and lifetimes.
//!
//! Each function has the weakest bounds with which it compiles for kube. One that compiles for kube alone
//! is a bound that is stricter here.

use super::{
    Api, CustomResourceDefinition, Deployment, DeserializeOwned, Display, DynamicObject, Ingress,
    Job, Pod, Resource, Selector, Serialize, Service, StdError, backoff, clone,
    controller::{self, Action, Config, Controller, ReconcileReason, ReconcileRequest},
    debug, default, display, eq, error, events, full_eq, hash, into,
    reflector::{self, Lookup, ObjectRef, ObjectRefExtra, ReflectHandle, Store, store},
    runtime::{self, Predicate, PredicateConfig, WatchStreamExt, applier, predicates},
    scheduler::{self, ScheduleRequest, Scheduler},
    send, sync,
    utils::{
        Backoff, CancelableJoinHandle, EventDecode, EventModify, PredicateFilter, Reflect,
        ResetTimerBackoff, StreamBackoff,
    },
    wait::{self, Condition},
    watcher::{self, DefaultBackoff, Event, ExponentialBackoff, InitialListStrategy, ListSemantic},
};
use futures::{Stream, TryFuture, TryStream};
use kube::ResourceExt;
use std::{fmt::Debug, hash::Hash, pin::Pin, sync::Arc};

fn unpin<T: Unpin>() {}
fn forever<T: 'static>() {}

fn everywhere<T: Send + Sync + Unpin>() {}

// === watcher ===

fn events_of_all<K: Clone + Debug>() {
    clone::<Event<K>>();
    debug::<Event<K>>();
}

fn events_are_shown<K: ResourceExt>() {
    display::<Event<K>>();
}

fn events_are_sent<K: Send>() {
    send::<Event<K>>();
}

fn events_are_shared<K: Sync>() {
    sync::<Event<K>>();
}

fn events_move<K: Unpin>() {
    unpin::<Event<K>>();
}

/// Also of what is borrowed and no object.
fn borrowed<'a>(event: Event<&'a str>) -> Event<&'a str> {
    event.modify(|text: &mut &'a str| *text = text.trim())
}

fn plain_types_of_watches() {
    everywhere::<watcher::Error>();
    forever::<watcher::Error>();
    everywhere::<watcher::Config>();
    everywhere::<ListSemantic>();
    everywhere::<InitialListStrategy>();
    everywhere::<ExponentialBackoff>();
    everywhere::<DefaultBackoff>();
    eq::<ListSemantic>();
    eq::<InitialListStrategy>();
}

fn a_result_of_another_error<T, E>(result: Result<T, E>) -> watcher::Result<T, E> {
    result
}

/// The name is borrowed for the call alone.
fn watch_named<K>(api: Api<K>) -> impl Stream<Item = watcher::Result<Option<K>>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let name = String::from("a");
    watcher::watch_object(api, &name)
}

// === utils ===

fn decoded<K, S>(stream: EventDecode<S>) -> impl Stream<Item = watcher::Result<K>>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    stream
}

fn names<K, S>(stream: S) -> impl Stream<Item = watcher::Result<String>>
where
    K: Resource,
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    use futures::TryStreamExt as _;
    stream.touched_objects().map_ok(|obj| obj.name_any())
}

fn changed<K, S, F>(stream: EventModify<S, F>) -> impl Stream<Item = watcher::Result<Event<K>>>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
    F: FnMut(&mut K),
{
    stream
}

fn kept<K, S, P>(stream: PredicateFilter<S, K, P>) -> impl Stream<Item = watcher::Result<K>>
where
    S: Stream<Item = watcher::Result<K>>,
    K: Resource,
    P: Predicate<K>,
{
    stream
}

fn reflecting<K, S>(stream: Reflect<S, K>) -> impl Stream<Item = watcher::Result<Event<K>>>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
    K: Resource + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    stream
}

fn backed_off<S, B>(stream: StreamBackoff<S, B>) -> impl Stream<Item = Result<S::Ok, S::Error>>
where
    S: TryStream,
    B: Backoff,
{
    stream
}

fn boxed_backoffs<B: Backoff + ?Sized>() {
    backoff::<Box<B>>();
}

fn started_over<B: Backoff + ?Sized>(backoff: &mut B) {
    backoff.reset();
}

fn timed_backoffs<B: Backoff>() {
    backoff::<ResetTimerBackoff<B>>();
    everywhere::<ResetTimerBackoff<B>>();
}

fn adapters_are_sent<S: Send, F: Send, B: Send>() {
    send::<EventDecode<S>>();
    send::<EventModify<S, F>>();
    send::<StreamBackoff<S, B>>();
}

fn adapters_are_shared<S: Sync, F: Sync, B: Sync>() {
    sync::<EventDecode<S>>();
    sync::<EventModify<S, F>>();
    sync::<StreamBackoff<S, B>>();
}

fn adapters_move<S: Unpin, F>() {
    unpin::<EventDecode<S>>();
    unpin::<EventModify<S, F>>();
}

fn filters_are_sent<S: Send, K: Resource + Send, P: Predicate<K> + Send>() {
    send::<PredicateFilter<S, K, P>>();
}

fn filters_are_shared<S: Sync, K: Resource + Sync, P: Predicate<K> + Sync>() {
    sync::<PredicateFilter<S, K, P>>();
}

fn filters_move<S: Unpin, K: Resource + Unpin, P: Predicate<K>>() {
    unpin::<PredicateFilter<S, K, P>>();
}

fn reflections_are_sent<S, K>()
where
    S: Send,
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    send::<Reflect<S, K>>();
}

fn reflections_are_shared<S, K>()
where
    S: Sync,
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    sync::<Reflect<S, K>>();
}

fn reflections_move<S, K>()
where
    S: Unpin,
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin,
{
    unpin::<Reflect<S, K>>();
}

fn shared_reflections<S, K>(
    stream: S,
    writer: store::Writer<K>,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    S: Stream<Item = watcher::Result<Event<K>>> + Send,
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    stream.reflect_shared(writer)
}

/// All methods of the trait, called as functions with their type parameters.
fn spelled_out<K, S, P, F, B>(
    stream: S,
    writer: [store::Writer<K>; 2],
    predicate: P,
    modify: F,
    backoff: B,
) where
    S: Stream<Item = watcher::Result<Event<K>>> + Clone,
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
    P: Predicate<K> + 'static,
    F: FnMut(&mut K),
    B: Backoff,
{
    let [one, other] = writer;
    let _ = WatchStreamExt::default_backoff(stream.clone());
    let _ = stream.clone().backoff::<B>(backoff);
    let _ = stream.clone().touched_objects::<K>();
    let _ = stream.clone().modify::<F, K>(modify);
    let _ = stream.clone().reflect::<K>(one);
    let _ = stream.clone().reflect_shared::<K>(other);
    let _ = predicate_filter!(stream.applied_objects::<K>(), predicate);
}

/// A trait of a user's, with methods of the same names as some that are not kube's.
trait MoreOfStreams: Stream + Sized {
    fn only_names<K>(self) -> impl Stream<Item = Option<String>>
    where
        Self: Stream<Item = watcher::Result<Event<K>>>,
        K: ResourceExt,
    {
        use futures::StreamExt as _;
        self.applied_objects()
            .map(|item| item.ok().map(|obj| obj.name_any()))
    }
}

impl<S: Stream> MoreOfStreams for S {}

fn predicates_of_functions<K, F: Fn(&K) -> Option<u64>>(function: F) -> impl Predicate<K> {
    function
}

fn predicates_in_boxes<K>(predicate: &dyn Predicate<K>, obj: &K) -> Option<u64> {
    predicate.hash_property(obj)
}

fn predicates_together<K, A, B, C>(a: A, b: B, c: C) -> impl Predicate<K>
where
    A: Predicate<K>,
    B: Predicate<K>,
    C: Predicate<K>,
{
    a.combine::<B>(b).fallback::<C>(c)
}

/// `generation` as a value of the type of functions.
fn predicates_are_functions<K: Resource>() -> [fn(&K) -> Option<u64>; 5] {
    [
        predicates::generation,
        predicates::resource_version,
        predicates::labels,
        predicates::annotations,
        predicates::finalizers,
    ]
}

fn plain_types_of_utils() {
    everywhere::<PredicateConfig>();
    forever::<PredicateConfig>();
}

fn handles<T: Send>() {
    everywhere::<CancelableJoinHandle<T>>();
}

fn joined<T>(handle: CancelableJoinHandle<T>) -> impl Future<Output = T> {
    handle
}

// === reflector ===

fn references_are_values<K: Lookup + ?Sized>()
where
    K::DynamicType: Clone + Debug + Eq + Hash,
{
    clone::<ObjectRef<K>>();
    debug::<ObjectRef<K>>();
    full_eq::<ObjectRef<K>>();
    hash::<ObjectRef<K>>();
}

fn references_are_compared<K: Lookup + ?Sized>()
where
    K::DynamicType: PartialEq,
{
    eq::<ObjectRef<K>>();
}

fn references_are_shown<K: Lookup>() {
    display::<ObjectRef<K>>();
    into::<ObjectRef<K>, super::ObjectReference>();
}

fn references_are_made<K: Lookup>()
where
    K::DynamicType: Default,
{
    into::<&K, ObjectRef<K>>();
}

/// Whatever the kind, only the description of the kind is in a reference.
fn references_are_anywhere<K: Lookup + ?Sized>()
where
    K::DynamicType: Send + Sync + Unpin,
{
    everywhere::<ObjectRef<K>>();
}

fn reference_of_what_is_unsized<K: Lookup + ?Sized>(
    obj: &K,
    dyntype: K::DynamicType,
) -> ObjectRef<K> {
    obj.to_object_ref(dyntype)
}

fn reference_parts<K: Lookup>(
    name: &str,
    obj: &K,
    dyntypes: [K::DynamicType; 2],
) -> [ObjectRef<K>; 2] {
    let [one, other] = dyntypes;
    [
        ObjectRef::new_with(name, one).within("a"),
        ObjectRef::from_obj_with(obj, other),
    ]
}

fn reference_of_another_kind<K: Lookup, L: Lookup>(
    reference: ObjectRef<K>,
    dyntype: L::DynamicType,
) -> ObjectRef<L> {
    reference.into_kind_unchecked::<L>(dyntype)
}

fn reference_of_any_kind<K: Lookup>(reference: ObjectRef<K>) -> ObjectRef<DynamicObject> {
    reference.erase()
}

fn stores_are_cloned<K: Lookup + 'static>()
where
    K::DynamicType: Hash + Eq,
{
    clone::<Store<K>>();
}

fn stores_are_shown<K: Lookup + Debug + 'static>()
where
    K::DynamicType: Hash + Eq + Debug,
{
    debug::<Store<K>>();
}

fn stores_are_anywhere<K: Lookup + Send + Sync + 'static>()
where
    K::DynamicType: Hash + Eq + Send + Sync,
{
    send::<Store<K>>();
    sync::<Store<K>>();
}

fn stores_move<K: Lookup + 'static>()
where
    K::DynamicType: Hash + Eq,
{
    unpin::<Store<K>>();
}

fn waiting_for_a_store<K>(
    store: &Store<K>,
) -> impl Future<Output = Result<(), store::WriterDropped>> + Send
where
    K: Lookup + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    store.wait_until_ready()
}

fn found<K, P>(store: &Store<K>, [one, other]: [P; 2]) -> (Option<Arc<K>>, Vec<Arc<K>>)
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
    P: Fn(&K) -> bool,
{
    (store.find::<P>(one), store.state_filter::<P>(other))
}

fn selected<K>(store: &Store<K>, selector: &Selector) -> Vec<Arc<K>>
where
    K: Lookup + Clone + ResourceExt,
    <K as Lookup>::DynamicType: Eq + Hash + Clone,
{
    store.state_filter_selector(selector)
}

fn writers<K>(buf_size: usize, dyntype: K::DynamicType) -> [store::Writer<K>; 2]
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    [
        store::Writer::new(dyntype.clone()),
        store::Writer::new_shared(buf_size, dyntype),
    ]
}

fn default_writers<K>()
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Default + Eq + Hash + Clone,
{
    default::<store::Writer<K>>();
}

fn writers_are_shown<K>()
where
    K: Lookup + Clone + Debug + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug,
{
    debug::<store::Writer<K>>();
}

fn writers_are_anywhere<K>()
where
    K: Lookup + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    send::<store::Writer<K>>();
    sync::<store::Writer<K>>();
}

fn writers_move<K>()
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin,
{
    unpin::<store::Writer<K>>();
}

fn written<K>(
    writer: &mut store::Writer<K>,
    event: &Event<K>,
) -> (Store<K>, Option<ReflectHandle<K>>)
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    writer.apply_watcher_event(event);
    (writer.as_reader(), writer.subscribe())
}

fn handles_are_cloned<K>(handle: &ReflectHandle<K>) -> (ReflectHandle<K>, Store<K>)
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    (handle.clone(), handle.reader())
}

fn handles_are_streams<K>(handle: ReflectHandle<K>) -> impl Stream<Item = Arc<K>> + Unpin
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    handle
}

fn handles_are_anywhere<K>()
where
    K: Lookup + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    send::<ReflectHandle<K>>();
    sync::<ReflectHandle<K>>();
}

fn reflected<K, W>(writer: store::Writer<K>, stream: W) -> impl Stream<Item = W::Item> + Send
where
    K: Lookup + Clone + Send + Sync,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
    W: Stream<Item = watcher::Result<Event<K>>> + Send,
{
    reflector::reflector::<K, W>(writer, stream)
}

fn plain_types_of_reflectors() {
    everywhere::<ObjectRefExtra>();
    everywhere::<store::WriterDropped>();
    forever::<store::WriterDropped>();
}

// === wait ===

fn conditions_of_functions<K, F: Fn(Option<&K>) -> bool>(function: F) -> impl Condition<K> {
    function
}

fn conditions_in_boxes<K>(condition: &dyn Condition<K>, obj: Option<&K>) -> bool {
    condition.matches_object(obj)
}

fn conditions_together<K, A, B, C>(a: A, b: B, c: C) -> impl Condition<K>
where
    A: Condition<K>,
    B: Condition<K>,
    C: Condition<K>,
{
    let these: wait::conditions::Or<wait::conditions::And<A, B>, wait::conditions::Not<C>> =
        a.and::<B>(b).or(c.not());
    these
}

fn conditions_are_anywhere<'a, K: Resource + 'a>(
    uid: &'a str,
) -> [Box<dyn Condition<K> + Send + Sync + Unpin + 'a>; 2] {
    [
        Box::new(wait::conditions::is_deleted::<K>(uid)),
        Box::new(wait::conditions::is_created::<K>()),
    ]
}

fn builtin_conditions_are_anywhere() {
    fn of<K>(_: impl Condition<K> + Send + Sync + Unpin + 'static) {}
    use wait::conditions as these;
    of::<CustomResourceDefinition>(these::is_crd_established());
    of::<Pod>(these::is_pod_running());
    of::<Job>(these::is_job_completed());
    of::<Deployment>(these::is_deployment_completed());
    of::<Service>(these::is_service_loadbalancer_provisioned());
    of::<Ingress>(these::is_ingress_provisioned());
    everywhere::<wait::Error>();
    everywhere::<wait::delete::Error>();
}

fn combined_conditions<A: Copy + Debug + Eq>() {
    use wait::conditions::{And, Not, Or};
    super::copy::<Not<A>>();
    super::copy::<And<A, A>>();
    super::copy::<Or<A, A>>();
    debug::<Not<A>>();
    debug::<And<A, A>>();
    debug::<Or<A, A>>();
    full_eq::<Not<A>>();
    full_eq::<And<A, A>>();
    full_eq::<Or<A, A>>();
}

fn awaited<K>(
    api: Api<K>,
    name: &str,
    condition: impl Condition<K> + Send + Sync,
) -> impl Future<Output = Result<Option<K>, wait::Error>> + Send
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    wait::await_condition(api, name, condition)
}

fn deleted<K>(
    api: Api<K>,
    name: &str,
    params: &kube::api::DeleteParams,
) -> impl Future<Output = Result<(), wait::delete::Error>> + Send
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    wait::delete::delete_and_finalize::<K>(api, name, params)
}

// === events ===

fn published<'a>(
    recorder: &'a events::Recorder,
    event: &'a events::Event,
    about: &'a super::ObjectReference,
) -> impl Future<Output = Result<(), kube::Error>> + Send + 'a {
    recorder.publish(event, about)
}

fn plain_types_of_events() {
    everywhere::<events::Event>();
    everywhere::<events::EventType>();
    everywhere::<events::Recorder>();
    everywhere::<events::Reporter>();
}

// === finalizer ===

fn finalized<K, F>(
    api: &Api<K>,
    name: &str,
    obj: Arc<K>,
    reconcile: impl FnOnce(runtime::finalizer::Event<K>) -> F + Send,
) -> impl Future<Output = Result<Action, runtime::finalizer::Error<F::Error>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + Sync,
    F: TryFuture<Ok = Action> + Send,
    F::Error: StdError + Send + 'static,
{
    runtime::finalizer::finalizer(api, name, obj, reconcile)
}

async fn finalized_here<K, F>(
    api: &Api<K>,
    name: &str,
    obj: Arc<K>,
    reconcile: impl FnOnce(runtime::finalizer::Event<K>) -> F,
) -> Result<Action, runtime::finalizer::Error<F::Error>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    F: TryFuture<Ok = Action>,
    F::Error: StdError + 'static,
{
    runtime::finalizer(api, name, obj, reconcile).await
}

fn errors_of_finalizers<E: StdError + 'static>() {
    error::<runtime::finalizer::Error<E>>();
}

fn errors_of_finalizers_are_anywhere<E: StdError + Send + Sync + Unpin + 'static>() {
    everywhere::<runtime::finalizer::Error<E>>();
}

fn events_of_finalizers<K: Send + Sync>() {
    everywhere::<runtime::finalizer::Event<K>>();
}

// === scheduler ===

fn scheduled<T, S>(scheduler: Scheduler<T, S>) -> impl Stream<Item = T>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    scheduler
}

fn held<T, S>(scheduler: scheduler::Hold<'_, T, S>) -> impl Stream<Item = T>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    scheduler
}

fn held_unless<T, S, C>(scheduler: scheduler::HoldUnless<'_, T, S, C>) -> impl Stream<Item = T>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
    C: Fn(&T) -> bool + Unpin,
{
    scheduler
}

fn hold_some<T, S, C>(
    scheduler: Pin<&mut Scheduler<T, S>>,
    can_take: C,
) -> scheduler::HoldUnless<'_, T, S, C>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
    C: Fn(&T) -> bool,
{
    scheduler.hold_unless::<C>(can_take)
}

fn schedulers<T, S>([one, other]: [S; 2]) -> [Scheduler<T, S>; 2]
where
    T: Eq + Hash + Clone,
    S: Stream<Item = ScheduleRequest<T>>,
{
    let debounce = std::time::Duration::ZERO;
    [
        runtime::scheduler::<T, S>(one),
        scheduler::debounced_scheduler::<T, S>(other, debounce),
    ]
}

fn schedulers_are_sent<T: Send, S: Stream + Send, C: Send>() {
    send::<Scheduler<T, S>>();
    send::<scheduler::Hold<'_, T, S>>();
    send::<scheduler::HoldUnless<'_, T, S, C>>();
}

fn schedulers_are_shared<T: Sync, S: Stream + Sync, C: Sync>() {
    sync::<Scheduler<T, S>>();
    sync::<scheduler::Hold<'_, T, S>>();
    sync::<scheduler::HoldUnless<'_, T, S, C>>();
}

fn schedulers_move<T, S: Stream + Unpin, C: Unpin>() {
    unpin::<Scheduler<T, S>>();
    unpin::<scheduler::Hold<'_, T, S>>();
    unpin::<scheduler::HoldUnless<'_, T, S, C>>();
}

fn requests_are_anywhere<T: Send + Sync + Unpin>() {
    everywhere::<ScheduleRequest<T>>();
}

fn requests_are_shown<T: Debug>() {
    debug::<ScheduleRequest<T>>();
}

// === controller ===

fn requests_of_controllers<K: Resource>()
where
    K::DynamicType: Clone + Debug + Eq + Hash,
{
    clone::<ReconcileRequest<K>>();
    debug::<ReconcileRequest<K>>();
    full_eq::<ReconcileRequest<K>>();
    hash::<ReconcileRequest<K>>();
}

fn requests_of_controllers_are_anywhere<K: Resource>()
where
    K::DynamicType: Send + Sync + Unpin,
{
    everywhere::<ReconcileRequest<K>>();
    into::<ObjectRef<K>, ReconcileRequest<K>>();
}

fn errors_are_errors<E: StdError + 'static, Q: StdError + 'static>() {
    error::<controller::Error<E, Q>>();
}

fn errors_are_debugged<E: Debug + 'static, Q: Debug + 'static>() {
    debug::<controller::Error<E, Q>>();
}

fn errors_are_shown<E: Display + 'static, Q: Display + 'static>() {
    display::<controller::Error<E, Q>>();
}

fn errors_are_sent<E: Send + 'static, Q: Send + 'static>() {
    send::<controller::Error<E, Q>>();
}

fn errors_are_shared<E: Sync + 'static, Q: Sync + 'static>() {
    sync::<controller::Error<E, Q>>();
}

fn errors_move<E: Unpin + 'static, Q: Unpin + 'static>() {
    unpin::<controller::Error<E, Q>>();
}

/// There is one reason, and the compiler knows it.
fn the_only_reason(error: controller::RunnerError) -> store::WriterDropped {
    let controller::RunnerError::Readiness(lost) = error;
    lost
}

fn plain_types_of_controllers() {
    everywhere::<Action>();
    everywhere::<Config>();
    everywhere::<ReconcileReason>();
    everywhere::<controller::RunnerError>();
}

fn controllers_are_sent<K>()
where
    K: Clone + Resource + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Send + Sync,
{
    send::<Controller<K>>();
}

fn controllers_move<K>()
where
    K: Clone + Resource + Debug + 'static,
    K::DynamicType: Eq + Hash + Unpin,
{
    unpin::<Controller<K>>();
}

/// What `tokio::spawn` asks for, but for `'static`.
fn sent_run<K, R, P, F, Ctx>(
    controller: Controller<K>,
    reconciler: R,
    error_policy: P,
    context: Arc<Ctx>,
) -> impl Stream<Item = Result<(ObjectRef<K>, Action), controller::Error<F::Error, watcher::Error>>> + Send
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin + Send + Sync,
    R: FnMut(Arc<K>, Arc<Ctx>) -> F + Send,
    P: Fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action + Send + Sync,
    Ctx: Send + Sync,
    F: TryFuture<Ok = Action> + Send + 'static,
    F::Error: StdError + Send + 'static,
{
    controller.run(reconciler, error_policy, context)
}

fn run_with_its_types<K, F, Ctx>(
    controller: Controller<K>,
    reconciler: fn(Arc<K>, Arc<Ctx>) -> F,
    error_policy: fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action,
    context: Arc<Ctx>,
) where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin,
    F: TryFuture<Ok = Action> + Send + 'static,
    F::Error: StdError + Send + 'static,
{
    drop(controller.run::<F, Ctx>(reconciler, error_policy, context));
}

#[expect(clippy::type_complexity, reason = "it is the type that is tested")]
fn sent_applier<K, Queue, R, P, F, Ctx>(
    reconciler: R,
    error_policy: P,
    context: Arc<Ctx>,
    store: Store<K>,
    queue: Queue,
) -> impl Stream<Item = Result<(ObjectRef<K>, Action), controller::Error<F::Error, Queue::Error>>> + Send
where
    K: Clone + Resource + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
    R: FnMut(Arc<K>, Arc<Ctx>) -> F + Send,
    P: Fn(Arc<K>, &F::Error, Arc<Ctx>) -> Action + Send + Sync,
    Ctx: Send + Sync,
    F: TryFuture<Ok = Action> + Unpin + Send,
    F::Error: StdError + Send + 'static,
    Queue: TryStream + Send,
    Queue::Ok: Into<ReconcileRequest<K>> + Send,
    Queue::Error: StdError + Send + 'static,
{
    applier(
        reconciler,
        error_policy,
        context,
        store,
        queue,
        Config::default(),
    )
}

fn sent_triggers<T, K, I, S>(
    stream: S,
    mapper: impl Fn(T) -> I + Send,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>> + Send
where
    S: TryStream<Ok = T> + Send,
    I: IntoIterator,
    I::IntoIter: Send,
    I::Item: Into<ReconcileRequest<K>>,
    K: Resource,
    S::Error: Send,
    T: Send,
{
    controller::trigger_with(stream, mapper)
}

fn moving_triggers<T, K, I, S>(
    stream: S,
    mapper: impl Fn(T) -> I,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>> + Unpin
where
    S: TryStream<Ok = T> + Unpin,
    I: IntoIterator,
    I::Item: Into<ReconcileRequest<K>>,
    K: Resource,
{
    controller::trigger_with(stream, mapper)
}

fn sent_triggers_of_itself<K, S>(
    stream: S,
    dyntype: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>> + Send
where
    S: TryStream<Ok = K> + Send,
    S::Error: Send,
    K: Resource + Send,
    K::DynamicType: Clone + Send,
{
    controller::trigger_self::<K, S>(stream, dyntype)
}

fn sent_triggers_of_owners<Owner, S>(
    stream: S,
    owner: Owner::DynamicType,
    child: <S::Ok as Resource>::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<Owner>, S::Error>> + Send
where
    S: TryStream + Send,
    S::Ok: Resource + Send,
    S::Error: Send,
    <S::Ok as Resource>::DynamicType: Clone + Send,
    Owner: Resource,
    Owner::DynamicType: Clone + Send,
{
    controller::trigger_owners::<Owner, S>(stream, owner, child)
}

fn constant_actions() -> impl Display {
    const ACTIONS: [Action; 2] = [
        Action::await_change(),
        Action::requeue(std::time::Duration::from_secs(1)),
    ];
    format!("{ACTIONS:?}")
}

//! Names everything that `kube::runtime` 5 has, with its bounds: what is missing does not compile.
//!
//! Each function here stands for users' code that is generic as far as kube lets it be. Nothing of it
//! runs.

#![expect(dead_code, reason = "that it compiles is what is tested")]

use super::runtime::{
    self, controller, events, reflector, scheduler, scheduler::Scheduler, utils, wait, watcher,
};
use futures::Stream;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ObjectReference, Pod, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, Resource, core::DynamicObject, core::Selector};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    error::Error as StdError,
    fmt::{Debug, Display},
    hash::Hash,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

mod bounds;
mod controllers;
mod reflectors;
mod streams;

/// What stands at the root.
mod root {
    #[expect(
        unused_imports,
        deprecated,
        reason = "that the names are there is what is tested"
    )]
    use super::runtime::{
        Config, Controller, Predicate, PredicateConfig, WatchStreamExt, applier,
        conditions::{
            And, Condition, Not, Or, is_crd_established, is_created, is_deleted,
            is_deployment_completed, is_ingress_provisioned, is_job_completed, is_pod_running,
            is_service_loadbalancer_provisioned,
        },
        controller, events, finalizer, metadata_watcher, predicates, reflector, scheduler, utils,
        wait, watcher,
    };
}

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn clone<T: Clone>() {}
fn copy<T: Copy>() {}
fn debug<T: Debug>() {}
fn display<T: Display>() {}
fn default<T: Default>() {}
fn error<T: StdError>() {}
fn eq<T: PartialEq>() {}
fn full_eq<T: Eq>() {}
fn hash<T: Hash>() {}
fn into<T: Into<U>, U>() {}
fn backoff<T: utils::Backoff>() {}
fn delays<T: Iterator<Item = Duration>>() {}
fn from_backon<T: From<backon::ExponentialBuilder>>() {}

// === events ===

fn event() -> events::Event {
    events::Event {
        type_: events::EventType::Normal,
        reason: String::new(),
        note: None::<String>,
        action: String::new(),
        secondary: None::<ObjectReference>,
    }
}

fn event_types(type_: events::EventType) -> &'static str {
    match type_ {
        events::EventType::Normal => "Normal",
        events::EventType::Warning => "Warning",
    }
}

fn reporter() -> events::Reporter {
    events::Reporter {
        controller: String::new(),
        instance: None::<String>,
    }
}

async fn recorder(client: Client, about: &ObjectReference) -> Result<(), kube::Error> {
    let new: fn(Client, events::Reporter) -> events::Recorder = events::Recorder::new;
    let recorder = new(client, "name".into());
    recorder.clone().publish(&event(), about).await
}

fn of_events() {
    into::<&str, events::Reporter>();
    into::<String, events::Reporter>();
    clone::<events::Recorder>();
    send::<events::Recorder>();
    sync::<events::Recorder>();
    clone::<events::Reporter>();
    debug::<events::Reporter>();
    full_eq::<events::Reporter>();
    hash::<events::Reporter>();
    copy::<events::EventType>();
    debug::<events::EventType>();
    full_eq::<events::EventType>();
    hash::<events::EventType>();
}

// === finalizer ===

async fn finalize<K, F, E>(
    api: &Api<K>,
    name: &str,
    obj: Arc<K>,
    reconcile: impl FnOnce(runtime::finalizer::Event<K>) -> F,
) -> Result<controller::Action, runtime::finalizer::Error<E>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    F: Future<Output = Result<controller::Action, E>>,
    E: StdError + 'static,
{
    use runtime::finalizer::Error::{
        AddFinalizer, ApplyFailed, CleanupFailed, InvalidFinalizer, RemoveFinalizer, UnnamedObject,
    };
    let result = runtime::finalizer::finalizer(api, name, obj, reconcile).await;
    result.map_err(|error| match error {
        ApplyFailed(error) => ApplyFailed(error),
        CleanupFailed(error) => CleanupFailed(error),
        AddFinalizer(error) => AddFinalizer(error),
        RemoveFinalizer(error) => RemoveFinalizer(error),
        UnnamedObject => UnnamedObject,
        InvalidFinalizer => InvalidFinalizer,
    })
}

fn finalizer_event<K>(event: runtime::finalizer::Event<K>) -> Arc<K> {
    match event {
        runtime::finalizer::Event::Apply(obj) | runtime::finalizer::Event::Cleanup(obj) => obj,
    }
}

fn of_finalizers() {
    error::<runtime::finalizer::Error<kube::Error>>();
    send::<runtime::finalizer::Error<kube::Error>>();
}

// === wait ===

async fn await_condition<K>(
    api: Api<K>,
    name: &str,
    cond: impl wait::Condition<K>,
) -> Result<Option<K>, wait::Error>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    wait::await_condition(api, name, cond).await
}

fn probe_failed(error: watcher::Error) -> wait::Error {
    wait::Error::ProbeFailed(error)
}

/// A condition that is no function.
struct Never;

impl<K> wait::conditions::Condition<K> for Never {
    fn matches_object(&self, _: Option<&K>) -> bool {
        false
    }
}

fn conditions<'a, K: Resource + 'a>(uid: &'a str) -> impl wait::Condition<K> + 'a {
    use wait::{Condition, conditions as these};
    let and: these::And<Never, Never> = Condition::<K>::and(Never, Never);
    let or: these::Or<Never, these::And<Never, Never>> = Condition::<K>::or(Never, and);
    let not: these::Not<Never> = Condition::<K>::not(Never);
    let either = these::is_deleted::<K>(uid).or(these::is_created::<K>());
    Condition::<K>::or(either, Condition::<K>::and(or, not))
}

fn builtin_conditions() {
    fn of<K>(_: impl wait::Condition<K>) {}
    use wait::conditions as these;
    of::<CustomResourceDefinition>(these::is_crd_established());
    of::<Pod>(these::is_pod_running());
    of::<Job>(these::is_job_completed());
    of::<Deployment>(these::is_deployment_completed());
    of::<Service>(these::is_service_loadbalancer_provisioned());
    of::<Ingress>(these::is_ingress_provisioned());
}

async fn delete<K>(api: Api<K>, name: &str) -> Result<(), wait::delete::Error>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    use wait::delete::Error::{Await, Delete, NoUid};
    let params = kube::api::DeleteParams::default();
    let result = wait::delete::delete_and_finalize(api, name, &params).await;
    result.map_err(|error| match error {
        NoUid => NoUid,
        Delete(error) => Delete(error),
        Await(error) => Await(error),
    })
}

fn of_waits() {
    error::<wait::Error>();
    error::<wait::delete::Error>();
    copy::<wait::conditions::Not<()>>();
    copy::<wait::conditions::And<(), ()>>();
    copy::<wait::conditions::Or<(), ()>>();
    debug::<wait::conditions::Not<()>>();
    full_eq::<wait::conditions::Not<()>>();
    full_eq::<wait::conditions::And<(), ()>>();
    full_eq::<wait::conditions::Or<(), ()>>();
}

// === scheduler ===

fn schedule<T, S>(requests: S, debounce: Duration) -> [Scheduler<T, S>; 2]
where
    T: Eq + Hash + Clone,
    S: Stream<Item = scheduler::ScheduleRequest<T>> + Clone,
{
    let plain = scheduler::scheduler(requests.clone());
    [plain, scheduler::debounced_scheduler(requests, debounce)]
}

fn hold<T, S>(scheduler: Pin<&mut Scheduler<T, S>>) -> scheduler::Hold<'_, T, S>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = scheduler::ScheduleRequest<T>>,
{
    scheduler.hold()
}

fn hold_unless<T, S, C: Fn(&T) -> bool>(
    scheduler: Pin<&mut Scheduler<T, S>>,
    can_take: C,
) -> scheduler::HoldUnless<'_, T, S, C>
where
    T: Eq + Hash + Clone,
    S: Stream<Item = scheduler::ScheduleRequest<T>>,
{
    scheduler.hold_unless(can_take)
}

fn request<T>(message: T) -> scheduler::ScheduleRequest<T> {
    let run_at = tokio::time::Instant::now();
    scheduler::ScheduleRequest { message, run_at }
}

fn of_schedulers() {
    debug::<scheduler::ScheduleRequest<()>>();
}

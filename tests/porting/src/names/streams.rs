//! `watcher` and `utils`.

use super::{
    Selector, backoff, clone, copy, debug, default, delays, display, eq, error, from_backon,
    reflector::store::Writer,
    runtime::{self, Predicate, PredicateConfig, WatchStreamExt, predicates},
    send,
    utils::{
        self, Backoff, CancelableJoinHandle, EventDecode, EventModify, PredicateFilter, Reflect,
        ResetTimerBackoff, StreamBackoff,
    },
    watcher::{
        self, Config, DefaultBackoff, Error, Event, ExponentialBackoff, InitialListStrategy,
        ListSemantic,
    },
};
use crate::cluster::config_map;
use futures::{Stream, TryStream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Resource, ResourceExt,
    core::{PartialObjectMeta, Status},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, hash::Hash, time::Duration};
use tokio::runtime::Handle;

// === watcher ===

fn watch<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static>(
    api: Api<K>,
    config: Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send {
    runtime::watcher(api, config)
}

#[expect(deprecated, reason = "it is there for those who have not moved on")]
fn watch_metadata<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static>(
    api: Api<K>,
    config: Config,
) -> impl Stream<Item = watcher::Result<Event<PartialObjectMeta<K>>>> + Send {
    watcher::metadata_watcher(api, config)
}

fn watch_object<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static>(
    api: Api<K>,
    name: &str,
) -> impl Stream<Item = watcher::Result<Option<K>>> + Send + use<K> {
    watcher::watch_object(api, name)
}

fn errors([list, start, watch]: [kube::Error; 3], status: Box<Status>) -> [Error; 5] {
    [
        Error::InitialListFailed(list),
        Error::WatchStartFailed(start),
        Error::WatchFailed(watch),
        Error::WatchError(status),
        Error::NoResourceVersion,
    ]
}

fn object<K>(event: Event<K>, modify: impl FnMut(&mut K)) -> Option<K> {
    match event.modify(modify) {
        Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) => Some(object),
        Event::Init | Event::InitDone => None,
    }
}

fn configs(selector: &Selector) -> [Config; 2] {
    let config = Config::default()
        .timeout(1)
        .fields("a=b")
        .labels("a=b")
        .labels_from(selector)
        .list_semantic(ListSemantic::Any)
        .any_semantic()
        .disable_bookmarks()
        .page_size(1)
        .streaming_lists();
    let parts = Config {
        label_selector: None::<String>,
        field_selector: None::<String>,
        timeout: None::<u32>,
        list_semantic: ListSemantic::MostRecent,
        initial_list_strategy: InitialListStrategy::ListWatch,
        page_size: None::<u32>,
        bookmarks: true,
    };
    [config, parts]
}

#[test]
fn the_defaults_of_a_watch() {
    let Config {
        label_selector,
        field_selector,
        timeout,
        list_semantic,
        initial_list_strategy,
        page_size,
        bookmarks,
    } = Config::default();
    assert_eq!(
        (label_selector, field_selector, timeout),
        (None, None, None)
    );
    assert_eq!(list_semantic, ListSemantic::MostRecent);
    assert_eq!(initial_list_strategy, InitialListStrategy::ListWatch);
    assert_eq!((page_size, bookmarks), (Some(500), true));
    let streaming = Config::default().streaming_lists().initial_list_strategy;
    assert_eq!(streaming, InitialListStrategy::StreamingList);
}

fn of_watchers<K: ResourceExt + Clone + Debug>() {
    error::<Error>();
    send::<Error>();
    clone::<Event<K>>();
    debug::<Event<K>>();
    display::<Event<K>>();
    clone::<Config>();
    debug::<Config>();
    default::<Config>();
    eq::<Config>();
    clone::<ListSemantic>();
    debug::<ListSemantic>();
    default::<ListSemantic>();
    clone::<InitialListStrategy>();
    debug::<InitialListStrategy>();
    default::<InitialListStrategy>();
    backoff::<ExponentialBackoff>();
    delays::<ExponentialBackoff>();
    from_backon::<ExponentialBackoff>();
    backoff::<DefaultBackoff>();
    delays::<DefaultBackoff>();
    default::<DefaultBackoff>();
}

// === utils ===

fn default_backoff<S: TryStream>(stream: S) -> StreamBackoff<S, DefaultBackoff> {
    stream.default_backoff()
}

fn own_backoffs<S, B>(stream: S, backoff: &B) -> [StreamBackoff<S, ResetTimerBackoff<Box<B>>>; 2]
where
    S: TryStream + Clone,
    B: Backoff + Clone,
{
    let own = || ResetTimerBackoff::new(Box::new(backoff.clone()), Duration::from_secs(1));
    [
        stream.clone().backoff(own()),
        StreamBackoff::new(stream, own()),
    ]
}

fn objects<K, S>(stream: S) -> [EventDecode<S>; 2]
where
    S: Stream<Item = Result<Event<K>, Error>> + Clone,
{
    [stream.clone().applied_objects(), stream.touched_objects()]
}

fn modified<K, S, F>(stream: S, modify: F) -> EventModify<S, F>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    F: FnMut(&mut K),
{
    stream.modify(modify)
}

fn reflected<K, S>(stream: S, writer: Writer<K>) -> Reflect<S, K>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    stream.reflect(writer)
}

fn shared<K, S>(stream: S, writer: Writer<K>) -> impl Stream<Item = S::Item>
where
    S: Stream<Item = watcher::Result<Event<K>>>,
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    stream.reflect_shared(writer)
}

fn filtered<K, S, P>(stream: S, predicate: P) -> PredicateFilter<S, K, P>
where
    S: Stream<Item = Result<K, Error>>,
    K: Resource + 'static,
    P: Predicate<K> + 'static,
{
    predicate_filter!(stream, predicate)
}

fn all_predicates<K: Resource>() -> impl Predicate<K> {
    use utils::predicates as same;
    predicates::generation::<K>
        .combine(predicates::resource_version::<K>)
        .combine(predicates::labels::<K>.fallback(predicates::annotations::<K>))
        .combine(same::finalizers::<K>)
}

fn predicate_config() -> PredicateConfig {
    let ttl: fn(utils::PredicateConfig, Duration) -> PredicateConfig = PredicateConfig::ttl;
    ttl(PredicateConfig::default(), Duration::ZERO)
}

/// A predicate that is no function.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size;

impl utils::Predicate<ConfigMap> for Size {
    fn hash_property(&self, map: &ConfigMap) -> Option<u64> {
        map.data
            .as_ref()
            .and_then(|data| data.len().try_into().ok())
    }
}

#[test]
fn predicates_are_values() {
    let both = Size.combine(Size.fallback(Size));
    let again = both;
    assert!(both == again);
    let (one, two) = (config_map("a", &[("k", "v")]), config_map("a", &[]));
    assert_eq!(again.hash_property(&one), both.hash_property(&one));
    assert_ne!(both.hash_property(&one), both.hash_property(&two));
    assert_eq!(both.hash_property(&ConfigMap::default()), None);
}

fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    handle: &Handle,
) -> impl Future<Output = T> {
    CancelableJoinHandle::spawn(future, handle)
}

fn of_streams() {
    type Events = futures::stream::BoxStream<'static, watcher::Result<Event<Pod>>>;
    clone::<PredicateConfig>();
    debug::<PredicateConfig>();
    default::<PredicateConfig>();
    send::<EventDecode<Events>>();
    send::<Reflect<Events, Pod>>();
    send::<StreamBackoff<Events, DefaultBackoff>>();
    send::<CancelableJoinHandle<()>>();
    backoff::<ResetTimerBackoff<DefaultBackoff>>();
    delays::<ResetTimerBackoff<DefaultBackoff>>();
    backoff::<Box<dyn Backoff>>();
    copy::<Size>();
}

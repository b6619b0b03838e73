//! A reliable stream of what happens to the objects of a kind.
//!
//! [`watcher()`] lists a collection and then watches it, for ever. It recovers from everything by
//! itself: broken and silent connections, expired versions, an overloaded server, a kind that is
//! not served yet. What the user should know of is an `Err` item; the stream goes on after it.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use homeostat::{WatchStreamExt, watcher};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::{Api, ResourceExt};
//!
//! # async fn follow(client: kube::Client) -> Result<(), watcher::Error> {
//! let pods = Api::<Pod>::default_namespaced(client);
//! watcher(pods, watcher::Config::default().labels("app=web"))
//!     .applied_objects()
//!     .try_for_each(|pod| async move {
//!         println!("{}", pod.name_any());
//!         Ok(())
//!     })
//!     .await
//! # }
//! ```
//!
//! # Flow
//!
//! The initial list is [`Event::Init`], an [`Event::InitApply`] for each object, and
//! [`Event::InitDone`]. Then each change is an [`Event::Apply`] or [`Event::Delete`]. When the
//! server can no longer say what has changed since, or a list breaks off, there is another list,
//! with another `Init`. What a map collects between `Init` and `InitDone`, and by the events after
//! that, is the state of the collection.
//!
//! # Guarantees
//!
//! - Nothing is missing from the map and nothing stays in it that is gone, whatever fails between.
//! - The list is streamed by servers that can (`sendInitialEvents`) and comes in pages from those
//!   that cannot. Nothing has to be configured.
//! - One object that cannot be decoded is one [`Error::Undecodable`], with its name and the path in
//!   it; all others are delivered.
//! - Every error says what was asked for, of which kind and where.
//! - Each stream paces itself (800 ms after a failure, doubling to 30 s, and up to half of that by
//!   chance), also when the server closes watches at once. An adapter like
//!   [`default_backoff`](crate::WatchStreamExt::default_backoff) adds nothing to that: both count
//!   from the failure. The pause is forgotten after 30 s without trouble.
//! - What the server sends is never logged and never part of an error, but for the message of a
//!   `Status`. An object is decoded once and never cloned.
//!
//! # Assumptions
//!
//! The stream is polled. Nothing runs while it is not, and no time is lost: a pause that is over
//! when the stream is polled again is no pause.
//!
//! # Caveats
//!
//! A line of a watch is at most 64 MiB long, which is more than a server stores for any object.
//! With [`Config::any_semantic`], and for lists that take longer than the server remembers, a list
//! comes in one answer and is in memory as a whole while it is delivered.

mod backoff;
mod config;
mod decode;
mod draft;
mod driver;
mod error;
mod event;
mod lines;
mod origin;
mod outline;
mod part;
mod size;
mod source;
#[cfg(test)]
mod tests;

pub use self::{
    backoff::{DefaultBackoff, ExponentialBackoff},
    config::{Config, InitialListStrategy, ListSemantic},
    error::{Error, Undecodable},
    event::Event,
};

pub(crate) use self::{
    draft::{Draft, Unread, read},
    driver::Observation,
    origin::{Heard, Origin, hear},
    outline::{Known, Reading},
    part::{Part, Server},
    size::measured,
    source::Target,
};
use self::{driver::Driver, source::Source};
use crate::progress::Progress;
use futures::{Stream, StreamExt};
use kube::{Api, Resource, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, future, sync::Arc};

/// What a watch stream yields.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Lists and watches the objects of `api`. See the [module](self) for what the stream guarantees.
///
/// `Api<PartialObjectMeta<K>>` transfers only the metadata of the objects.
///
/// ```
/// use futures::{StreamExt, TryStreamExt};
/// use homeostat::{WatchStreamExt, watcher};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, ResourceExt};
///
/// async fn follow(maps: Api<ConfigMap>) -> Result<(), watcher::Error> {
///     let mut changed = watcher(maps, watcher::Config::default())
///         .default_backoff()
///         .applied_objects()
///         .boxed();
///     while let Some(map) = changed.try_next().await? {
///         println!("{} was created or changed", map.name_any());
///     }
///     Ok(())
/// }
/// ```
pub fn watcher<K>(
    api: Api<K>,
    watcher_config: Config,
) -> impl Stream<Item = Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let machine = watcher_config.machine();
    let origin = origin(&api, &watcher_config);
    Driver::new(Source::new(api, watcher_config), origin, machine).into_stream()
}

/// The same as [`watcher()`], and when a watch is open. `progress` is told how far whoever follows has
/// come, each time that everything up to there was handed out.
pub(crate) fn observe<K>(
    api: Api<K>,
    watcher_config: Config,
    progress: Progress,
) -> impl Stream<Item = Observation<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let machine = watcher_config.machine();
    let origin = origin(&api, &watcher_config);
    let driver = Driver::new(Source::new(api, watcher_config), origin, machine);
    driver.telling(progress).observe()
}

/// The same as [`observe`], of a part of the objects if the server can select it. A list tells whether it has.
pub(crate) fn observe_part<K>(
    api: Api<K>,
    watcher_config: Config,
    progress: Progress,
    part: Part,
) -> impl Stream<Item = Observation<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    // A list that is streamed says nothing of parts.
    let watcher_config = Config {
        initial_list_strategy: InitialListStrategy::Paged,
        ..watcher_config
    };
    let machine = watcher_config.machine();
    let origin = origin(&api, &watcher_config);
    let source = Source::new(api, watcher_config).of_part(part);
    Driver::new(source, origin, machine)
        .telling(progress)
        .observe()
}

/// The same as [`observe`], with objects that are read in another way, and of events only as far as is needed to tell
/// which object they are about.
pub(crate) fn observe_drafts<K>(
    api: Api<K>,
    watcher_config: Config,
    progress: Progress,
    reading: Reading,
) -> impl Stream<Item = Observation<Draft<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let machine = watcher_config.machine();
    let origin = origin(&api, &watcher_config);
    let driver = Driver::new(Source::new(api, watcher_config), origin, machine);
    driver.telling(progress).reading(reading).observe()
}

/// What `api` gives access to. For people it is `deployments.apps in all namespaces`.
pub(crate) fn target<K: Resource>(api: &Api<K>) -> Target {
    Target::new(api.resource_url(), api.namespace())
}

fn origin<K: Resource>(api: &Api<K>, config: &Config) -> Arc<Origin> {
    Arc::new(Origin::new(target(api), config))
}

/// Lists and watches the metadata of the objects of `api`.
#[deprecated(note = "use `watcher` with an `Api<PartialObjectMeta<K>>`")]
pub fn metadata_watcher<K>(
    api: Api<K>,
    watcher_config: Config,
) -> impl Stream<Item = Result<Event<PartialObjectMeta<K>>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let machine = watcher_config.machine();
    let origin = origin(&api, &watcher_config);
    let source = Source::new(api, watcher_config).of_metadata();
    Driver::new(source, origin, machine).into_stream()
}

/// Watches one object by name: `Some` with its state, at first and after each change, and `None`
/// when there is no such object, at first or any more.
pub fn watch_object<K>(
    api: Api<K>,
    name: &str,
) -> impl Stream<Item = Result<Option<K>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let mut listed = false;
    watcher(api, config).filter_map(move |event| {
        let state = match event {
            Ok(Event::Init) => {
                listed = false;
                None
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                listed = true;
                Some(Ok(Some(object)))
            }
            Ok(Event::InitDone) => (!listed).then_some(Ok(None)),
            Ok(Event::Delete(_)) => Some(Ok(None)),
            Err(Error::Undecodable(object)) if object.deleted => Some(Ok(None)),
            Err(error) => {
                // Such an object is there, though nobody can say what it looks like.
                listed |= matches!(error, Error::Undecodable(_));
                Some(Err(error))
            }
        };
        future::ready(state)
    })
}

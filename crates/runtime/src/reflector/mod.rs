//! A cache of objects that a watch keeps up to date.

mod entries;
mod index;
mod key;
mod mailbox;
mod object_ref;
mod reads;
mod shared;
mod snapshot;
mod status;
pub mod store;
mod subscriber;
mod unread;
mod versions;

use crate::{utils::Reflect, watcher};
use futures::Stream;
use std::hash::Hash;

pub use self::{
    index::Index,
    object_ref::{Lookup, ObjectRef, ObjectRefExtra},
    store::{Store, store, store_shared},
    subscriber::ReflectHandle,
};
pub(crate) use self::{
    key::ObjectKey,
    object_ref::names_kind,
    reads::{Read, Reader, Registry, reading, reading_now},
    status::{Bell, Condition, Status},
    unread::{Decode, Header},
    versions::Versions,
};

/// Writes everything that `stream` delivers into a store, and passes it on.
///
/// The same as [`WatchStreamExt::reflect`](crate::WatchStreamExt::reflect), whose guarantees hold
/// here too. The store is only as current as the stream is polled.
///
/// ```
/// use futures::{StreamExt, future};
/// use homeostat::{WatchStreamExt, reflector, watcher};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
///
/// async fn count_config_maps(api: Api<ConfigMap>) {
///     let (reader, writer) = reflector::store::<ConfigMap>();
///     let stream = reflector(writer, watcher(api, watcher::Config::default()).default_backoff());
///     tokio::spawn(stream.for_each(|_| future::ready(())));
///     if reader.wait_until_ready().await.is_ok() {
///         println!("{} config maps", reader.len());
///     }
/// }
/// ```
pub fn reflector<K, W>(writer: store::Writer<K>, stream: W) -> impl Stream<Item = W::Item>
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
    W: Stream<Item = watcher::Result<watcher::Event<K>>>,
{
    Reflect::new(stream, writer)
}

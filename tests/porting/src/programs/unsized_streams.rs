//! A trait of the user's on top of `WatchStreamExt`, for streams of any size.

use super::runtime::{WatchStreamExt, watcher};
use crate::cluster::{Cluster, config_map, create};
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use std::pin::Pin;

type Events<K> = watcher::Result<watcher::Event<K>>;

/// What an operator's library adds.
trait NamedStreamExt: WatchStreamExt {
    fn names<K>(self) -> BoxStream<'static, watcher::Result<String>>
    where
        Self: Stream<Item = Events<K>> + Sized + Send + 'static,
        K: ResourceExt + Send + 'static,
    {
        self.default_backoff()
            .touched_objects()
            .map_ok(|object| object.name_any())
            .boxed()
    }
}

impl<S: ?Sized + Stream> NamedStreamExt for S {}

fn is_watch_stream<S: ?Sized + WatchStreamExt>() -> &'static str {
    std::any::type_name::<S>()
}

#[tokio::test(start_paused = true)]
async fn streams_behind_pointers() {
    let cluster = Cluster::start();
    for name in ["a", "b"] {
        create(&cluster.api::<ConfigMap>(), &config_map(name, &[])).await;
    }
    let maps = || watcher(cluster.api::<ConfigMap>(), watcher::Config::default());
    let pinned: Pin<Box<dyn Stream<Item = Events<ConfigMap>> + Send>> = Box::pin(maps());
    let streams = [maps().names(), pinned.names(), maps().boxed().names()];
    for stream in streams {
        let names: Vec<String> = stream.take(2).try_collect().await.expect("all is well");
        assert_eq!(names, ["a", "b"]);
    }
    assert!(is_watch_stream::<dyn Stream<Item = Events<ConfigMap>>>().contains("dyn"));
}

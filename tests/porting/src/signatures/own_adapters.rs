//! A library of adapters of the user's own, on kube's traits: generic over everything, with methods that kube does
//! not have and that are named as somebody may well name them.

use super::runtime::{WatchStreamExt, reflector::Lookup, watcher};
use crate::cluster::config_map;
use futures::{Stream, StreamExt, TryStreamExt, future::ready, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use watcher::Event;

/// Streams of events that are not streams of kube's alone.
trait Adapters: Stream + Sized {
    /// The objects that are deleted.
    fn deleted_objects<K>(self) -> impl Stream<Item = watcher::Result<K>>
    where
        Self: Stream<Item = watcher::Result<Event<K>>>,
    {
        self.try_filter_map(|event| {
            ready(Ok(match event {
                Event::Delete(obj) => Some(obj),
                Event::Apply(_) | Event::Init | Event::InitApply(_) | Event::InitDone => None,
            }))
        })
    }

    /// What happens, with the names alone.
    fn changes<K: Lookup>(self) -> impl Stream<Item = String>
    where
        Self: Stream<Item = watcher::Result<Event<K>>>,
    {
        self.touched_objects().filter_map(|item| {
            let obj = item.ok();
            ready(obj.and_then(|obj| Some(obj.name()?.into_owned())))
        })
    }
}

impl<S: Stream> Adapters for S {}

/// Nothing is asked of the objects but what is used.
fn labels<K: ResourceExt>(
    stream: impl Stream<Item = watcher::Result<Event<K>>>,
) -> impl Stream<Item = watcher::Result<usize>> {
    stream
        .modify(|obj: &mut K| drop(obj.labels_mut().remove("x")))
        .applied_objects()
        .map_ok(|obj| obj.labels().len())
}

fn events() -> impl Stream<Item = watcher::Result<Event<ConfigMap>>> {
    let mut map = config_map("b", &[]);
    map.labels_mut().insert("x".into(), String::new());
    map.labels_mut().insert("y".into(), String::new());
    stream::iter([
        Ok(Event::Apply(config_map("a", &[]))),
        Ok(Event::Delete(config_map("a", &[]))),
        Ok(Event::Apply(map)),
    ])
}

#[tokio::test]
async fn adapters_of_ones_own_stand_beside_those_of_kube() {
    let deleted: Vec<_> = events().deleted_objects().collect().await;
    assert_eq!(deleted.len(), 1);
    let changes: Vec<_> = events().changes().collect().await;
    assert_eq!(changes, ["a", "a", "b"]);
    let labels: Vec<_> = labels(events())
        .map_ok(|count| count.to_string())
        .collect()
        .await;
    assert_eq!(labels.into_iter().flatten().collect::<Vec<_>>(), ["0", "1"]);
}

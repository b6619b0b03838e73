//! An operator on filtered streams, with the types of the streams in its own types.

use super::runtime::{
    self, Controller, PredicateConfig, WatchStreamExt,
    controller::Action,
    predicates,
    reflector::{self, Store},
    utils::{self, EventDecode, PredicateFilter, Reflect},
    watcher,
};
use crate::{
    cluster::{Cluster, an_hour, config_map, create, during, from, merge},
    journal::Journal,
};
use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use std::{sync::Arc, time::Duration};

type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;
type Generation<K> = fn(&K) -> Option<u64>;
/// What a struct of the user's holds.
type Objects<K> = PredicateFilter<EventDecode<Reflect<Events<K>, K>>, K, Generation<K>>;

struct Source {
    objects: Objects<ConfigMap>,
    reader: Store<ConfigMap>,
}

fn source(maps: Api<ConfigMap>) -> Source {
    let (reader, writer) = reflector::store();
    let objects = runtime::watcher(maps, watcher::Config::default())
        .boxed()
        .reflect(writer)
        .applied_objects()
        .predicate_filter::<ConfigMap, Generation<ConfigMap>>(data, PredicateConfig::default());
    Source { objects, reader }
}

/// Of maps the server counts no generation.
fn data(map: &ConfigMap) -> Option<u64> {
    let data = map.data.as_ref()?;
    u64::try_from(data.len()).ok()
}

/// A library of the user's, generic as kube is.
fn changed<K, S>(stream: S, ttl: Duration) -> impl Stream<Item = watcher::Result<K>>
where
    K: Resource + 'static,
    S: Stream<Item = watcher::Result<watcher::Event<K>>>,
{
    let config = PredicateConfig::default().ttl(ttl);
    utils::WatchStreamExt::touched_objects(stream).predicate_filter(predicates::labels, config)
}

async fn run(client: Client, output: Journal) {
    let Source { objects, reader } = source(Api::default_namespaced(client.clone()));
    let secrets = Api::<Secret>::default_namespaced(client);
    let secrets = runtime::watcher(secrets, watcher::Config::default()).default_backoff();
    let reconcile = async |map: Arc<ConfigMap>, output: Arc<Journal>| {
        output.say(map.name_any());
        Ok::<_, kube::Error>(Action::await_change())
    };
    Controller::for_stream(objects, reader)
        .owns_stream(changed(secrets, Duration::from_secs(7200)))
        .run(
            reconcile,
            |_, _, _| Action::await_change(),
            Arc::new(output),
        )
        .for_each(async |_| {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_filters_hide_wakes_nobody() {
    let cluster = Cluster::start();
    let (maps, secrets) = (cluster.api::<ConfigMap>(), cluster.api::<Secret>());
    let output = Journal::default();
    let owner = create(&maps, &config_map("a", &[("k", "v")])).await;
    during(run(cluster.program(), output.clone()), async {
        output.until_count(1).await;
        // The same number of entries.
        merge(&maps, "a", json!({ "data": { "k": "w" } })).await;
        an_hour().await;
        assert_eq!(output.take(), ["a"]);
        merge(&maps, "a", json!({ "data": { "l": "w" } })).await;
        an_hour().await;
        assert_eq!(output.take(), ["a"]);

        let owner = owner.owner_ref(&()).expect("it comes from a server");
        let secret = json!({ "metadata": { "name": "s", "ownerReferences": [owner] } });
        create(&secrets, &from::<Secret>(secret)).await;
        an_hour().await;
        assert_eq!(output.take(), ["a"]);
        merge(&secrets, "s", json!({ "stringData": { "x": "y" } })).await;
        an_hour().await;
        assert!(output.take().is_empty());
        merge(
            &secrets,
            "s",
            json!({ "metadata": { "labels": { "x": "y" } } }),
        )
        .await;
        an_hour().await;
        assert_eq!(output.take(), ["a"]);
    })
    .await;
}

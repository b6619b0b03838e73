//! Two watchers side by side: one that lists in pages, and one whose list is streamed.

use super::runtime::{reflector, watcher};
use crate::cluster::{Cluster, config_map, create, delete, during};
use futures::{StreamExt, stream};
use homeostat_apiserver::{Request, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

async fn run(client: Client, maps: reflector::store::Writer<ConfigMap>) {
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let paged = watcher::Config::default().page_size(2);
    let streamed = watcher::Config::default().streaming_lists();
    let maps = reflector(maps, watcher(Api::default_namespaced(client), paged));
    let secrets = watcher(secrets, streamed);
    let both = stream::select(maps.map(|_| ()), secrets.map(|_| ()));
    both.for_each(async |()| {}).await;
}

#[tokio::test(start_paused = true)]
async fn each_lists_in_its_way() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    for name in ["a", "b", "c", "d", "e"] {
        create(&maps, &config_map(name, &[])).await;
        let secret = crate::cluster::from::<Secret>(json!({ "metadata": { "name": name } }));
        create(&cluster.api::<Secret>(), &secret).await;
    }
    let (reader, writer) = reflector::store();
    during(run(cluster.program(), writer), async {
        reader
            .wait_until_ready()
            .await
            .expect("the writer is there");
        let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        delete(&maps, "c").await;
        crate::cluster::an_hour().await;
        assert_eq!(reader.len(), 4);
    })
    .await;

    let first = |resource: &str| {
        let requests = cluster.requests();
        let of_it = requests.into_iter().filter(|it| it.resource == resource);
        of_it.take(4).collect::<Vec<Request>>()
    };
    let value = |request: &Request, name: &str| {
        let mut query = request.query.iter();
        let found = query.find(|(parameter, _)| parameter == name);
        found.map(|(_, value)| value.clone())
    };
    let pages: Vec<_> = first("configmaps")
        .iter()
        .map(|request| (request.verb, value(request, "limit")))
        .collect();
    let page = || (Verb::List, Some("2".to_owned()));
    assert_eq!(pages, [page(), page(), page(), (Verb::Watch, None)]);
    let streamed = &first("secrets")[0];
    assert_eq!(streamed.verb, Verb::Watch);
    assert_eq!(
        value(streamed, "sendInitialEvents").as_deref(),
        Some("true")
    );
}

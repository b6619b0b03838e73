//! A watcher against a server with a script, which expects a list first.

use super::runtime::{WatchStreamExt, watcher};
use crate::scripted::Scripted;
use futures::{StreamExt, TryStreamExt};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn pages_are_asked_for_one_by_one() {
    let page = |names: &[&str], token: &str| {
        let items: Vec<_> = names
            .iter()
            .map(|name| json!({ "metadata": { "name": name, "namespace": "default" } }))
            .collect();
        let metadata = json!({ "resourceVersion": "10", "continue": token });
        json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items })
    };
    let first = format!("{MAPS}?&limit=2");
    let server = Scripted::default()
        .expect(Method::GET, &first, 200, page(&["a", "b"], "next"))
        .expect(
            Method::GET,
            &format!("{first}&continue=next"),
            200,
            page(&["c"], ""),
        );
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let names: Vec<String> = watcher(maps, watcher::Config::default().page_size(2))
        .applied_objects()
        .map_ok(|map| map.name_any())
        .take(3)
        .try_collect()
        .await
        .expect("the server answers");
    assert_eq!(names, ["a", "b", "c"]);
    server.finished();
}

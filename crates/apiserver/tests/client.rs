//! The server as a typed client sees it, in process and under paused time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
struct SiteStatus {
    ready: i32,
}

async fn serve_sites(client: &Client) -> Api<Site> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &Site::crd())
        .await
        .expect("a server without definitions takes this one");
    Api::default_namespaced(client.clone())
}

fn site(name: &str, replicas: i32) -> Site {
    Site::new(
        name,
        SiteSpec {
            replicas,
            note: None,
        },
    )
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap {
        data: Some([("k".into(), value.into())].into()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map
}

fn code(error: &kube::Error) -> u16 {
    let kube::Error::Api(status) = error else {
        return 0;
    };
    status.code
}

/// G70: generation, creation time, uid, a status of its own, and deletion with finalizers.
#[tokio::test(start_paused = true)]
async fn custom_objects_live_through_spec_status_and_finalizers() {
    let server = ApiServer::builder().build();
    let sites = serve_sites(&server.client()).await;

    let created = sites
        .create(&PostParams::default(), &site("a", 1))
        .await
        .unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let exists = sites
        .create(&PostParams::default(), &site("a", 1))
        .await
        .unwrap_err();
    assert_eq!(code(&exists), 409);

    let merge = Patch::Merge(
        json!({ "spec": { "replicas": 2 }, "metadata": { "finalizers": ["x.io/y"] } }),
    );
    let patched = sites
        .patch("a", &PatchParams::default(), &merge)
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    let again = sites
        .patch("a", &PatchParams::default(), &merge)
        .await
        .unwrap();
    assert_eq!(
        again.resource_version(),
        patched.resource_version(),
        "nothing changed"
    );

    let status = Patch::Merge(json!({ "status": { "ready": 2 }, "spec": { "replicas": 9 } }));
    let ready = sites
        .patch_status("a", &PatchParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(ready.status, Some(SiteStatus { ready: 2 }));
    assert_eq!(
        (ready.metadata.generation, ready.spec.replicas),
        (Some(2), 2)
    );

    let stale = sites
        .replace("a", &PostParams::default(), &created)
        .await
        .unwrap_err();
    assert_eq!(code(&stale), 409);

    sites
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .expect("it is held");
    let held = sites.get("a").await.unwrap();
    assert_eq!(held.metadata.generation, Some(3));
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    sites
        .patch("a", &PatchParams::default(), &release)
        .await
        .unwrap();
    assert!(sites.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_every_change_once_and_in_order() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let mut watch = maps
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();

    maps.create(&PostParams::default(), &config_map("b", "1"))
        .await
        .unwrap();
    let merge = Patch::Merge(json!({ "data": { "k": "2" } }));
    maps.patch("a", &PatchParams::default(), &merge)
        .await
        .unwrap();
    maps.delete("b", &DeleteParams::default()).await.unwrap();

    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = watch.try_next().await.unwrap().unwrap();
        seen.push(match &event {
            WatchEvent::Added(map) => format!("+{}", map.name_any()),
            WatchEvent::Modified(map) => format!("~{}", map.name_any()),
            WatchEvent::Deleted(map) => format!("-{}", map.name_any()),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => format!("{event:?}"),
        });
    }
    assert_eq!(seen, ["+b", "~a", "-b"]);

    server.compact();
    let mut expired = maps
        .watch(&WatchParams::default(), "1")
        .await
        .unwrap()
        .boxed();
    let event = expired.try_next().await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
    assert!(expired.try_next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn dependents_are_collected_when_their_owner_is_gone() {
    let server = ApiServer::builder().build();
    let client = server.client();
    let sites = serve_sites(&client).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let owner = sites
        .create(&PostParams::default(), &site("a", 1))
        .await
        .unwrap();
    let mut child = config_map("child", "1");
    child
        .owner_references_mut()
        .push(kube::Resource::controller_owner_ref(&owner, &()).unwrap());
    maps.create(&PostParams::default(), &child).await.unwrap();
    maps.create(&PostParams::default(), &config_map("other", "1"))
        .await
        .unwrap();

    sites.delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let left: Vec<String> = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(left, ["other"]);
}

#[tokio::test(start_paused = true)]
async fn garbage_collection_can_be_held_back() {
    let server = ApiServer::builder().garbage_collection(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let owner = maps
        .create(&PostParams::default(), &config_map("owner", "1"))
        .await
        .unwrap();
    let mut child = config_map("child", "1");
    child
        .owner_references_mut()
        .push(kube::Resource::owner_ref(&owner, &()).unwrap());
    maps.create(&PostParams::default(), &child).await.unwrap();
    maps.delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        2
    );

    assert!(server.step_garbage_collection(), "the child goes");
    assert!(server.step_garbage_collection(), "then the owner");
    assert!(!server.step_garbage_collection());
    assert!(
        maps.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_and_goes() {
    let server = ApiServer::builder().build();
    let client = server.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("work".to_owned());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "work");
    let missing: Api<ConfigMap> = Api::namespaced(server.client(), "nowhere");
    let no_namespace = missing
        .create(&PostParams::default(), &config_map("a", "1"))
        .await;
    assert_eq!(code(&no_namespace.unwrap_err()), 404);
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();

    namespaces
        .delete("work", &DeleteParams::default())
        .await
        .unwrap();
    let refused = maps
        .create(&PostParams::default(), &config_map("b", "1"))
        .await
        .unwrap_err();
    assert_eq!(code(&refused), 403);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(namespaces.get_opt("work").await.unwrap().is_none());
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

/// G70: defaults.
#[tokio::test(start_paused = true)]
async fn built_in_kinds_get_their_defaults() {
    let server = ApiServer::builder().workloads(true).build();
    let client = server.client();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "nginx:1" }] },
            },
        },
    }))
    .unwrap();
    let created = deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let spec = created.spec.unwrap();
    assert_eq!(spec.replicas, Some(1));
    let container = &spec.template.spec.unwrap().containers[0];
    assert_eq!(container.image_pull_policy.as_deref(), Some("IfNotPresent"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = deployments.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (status.available_replicas, status.observed_generation),
        (Some(1), Some(1))
    );

    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": { "ports": [{ "port": 80 }], "selector": { "app": "web" } },
    }))
    .unwrap();
    let service = services
        .create(&PostParams::default(), &service)
        .await
        .unwrap();
    assert!(service.spec.unwrap().cluster_ip.unwrap().starts_with("10."));

    let secrets: Api<Secret> = Api::default_namespaced(client);
    let mut secret = Secret {
        string_data: Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
        ..Secret::default()
    };
    secret.metadata.name = Some("s".to_owned());
    let secret = secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    assert_eq!(secret.data.unwrap()["k"].0, b"v");
}

#[tokio::test(start_paused = true)]
async fn faults_meet_the_requests_that_their_rule_names() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();

    let rule = Rule::any().verb(Verb::List).resource("configmaps").times(1);
    let fault = server.faults().inject(rule, Fault::Forbidden);
    assert_eq!(
        code(&maps.list(&ListParams::default()).await.unwrap_err()),
        403
    );
    assert!(maps.list(&ListParams::default()).await.is_ok());
    assert_eq!(fault.hits(), 1);
    drop(fault);

    let conflict = server
        .faults()
        .inject(Rule::any().verb(Verb::Patch), Fault::Conflict);
    let merge = Patch::Merge(json!({ "data": { "k": "2" } }));
    assert_eq!(
        code(
            &maps
                .patch("a", &PatchParams::default(), &merge)
                .await
                .unwrap_err()
        ),
        409
    );
    drop(conflict);
    assert!(
        maps.patch("a", &PatchParams::default(), &merge)
            .await
            .is_ok()
    );

    let refuse = server.faults().inject(Rule::any(), Fault::Refuse);
    assert!(matches!(maps.get("a").await, Err(kube::Error::Service(_))));
    drop(refuse);

    let corrupt = server
        .faults()
        .inject(Rule::any().name("a"), Fault::corrupt_labels());
    assert!(matches!(
        maps.list(&ListParams::default()).await,
        Err(kube::Error::SerdeError(_))
    ));
    drop(corrupt);
}

/// Bookmarks come every minute, and shortly before the end.
#[tokio::test(start_paused = true)]
async fn a_watch_says_how_far_it_has_come_before_it_ends() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    for (timeout, expected) in [(2, vec![]), (10, vec![8]), (100, vec![60, 98])] {
        let params = WatchParams::default().timeout(timeout);
        let start = tokio::time::Instant::now();
        let mut events = maps.watch(&params, "1").await.unwrap().boxed();
        let mut seen = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            assert!(matches!(event, WatchEvent::Bookmark(_)), "{event:?}");
            seen.push(start.elapsed().as_secs());
        }
        assert_eq!(seen, expected);
        assert_eq!(start.elapsed().as_secs(), u64::from(timeout));
    }
}

/// What a client takes for a failure may have been done.
#[tokio::test(start_paused = true)]
async fn faults_keep_the_answer_to_what_was_done() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let creation = Rule::any().verb(Verb::Create);
    let late = server.faults().inject(creation, Fault::LateTimeout);
    let create = |name: &'static str| {
        let (maps, map) = (maps.clone(), config_map(name, "1"));
        async move { maps.create(&PostParams::default(), &map).await.unwrap_err() }
    };
    assert_eq!(code(&create("a").await), 504);
    assert!(maps.get("a").await.is_ok());
    drop(late);
    assert_eq!(code(&create("a").await), 409);

    let deletion = Rule::any().verb(Verb::Delete).times(1);
    let lost = server.faults().inject(deletion, Fault::LostAnswer);
    let params = DeleteParams::default();
    let deleted = maps.delete("a", &params).await;
    assert!(matches!(deleted, Err(kube::Error::Service(_))));
    assert_eq!(lost.hits(), 1);
    let deleted = maps.delete("a", &params).await;
    assert_eq!(code(&deleted.unwrap_err()), 404);
    let log = server.requests().all();
    let deletions = log.iter().filter(|one| one.verb == Verb::Delete);
    let seen: Vec<_> = deletions.map(|one| (one.status, one.changed)).collect();
    assert_eq!(seen, [(None, true), (Some(404), false)]);
}

#[tokio::test(start_paused = true)]
async fn faults_delay_requests_swallow_them_and_close_watches() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();

    let delay = server
        .faults()
        .inject(Rule::any(), Fault::Delay(Duration::from_secs(5)));
    let before = tokio::time::Instant::now();
    maps.get("a").await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    drop(delay);

    let hang = server
        .faults()
        .inject(Rule::any().verb(Verb::Get), Fault::Hang);
    assert!(
        tokio::time::timeout(Duration::from_secs(99), maps.get("a"))
            .await
            .is_err()
    );
    drop(hang);

    let close = server
        .faults()
        .inject(Rule::any().verb(Verb::Watch).times(1), Fault::CloseWatch);
    let mut closed = maps
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    assert!(closed.try_next().await.unwrap().is_none());
    drop(close);
    let mut open = maps
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    assert!(matches!(
        open.try_next().await.unwrap(),
        Some(WatchEvent::Added(_))
    ));
    server.faults().drop_watches();
    assert!(open.try_next().await.unwrap().is_none());
}

/// G70: what changes nothing leaves the version as it is.
#[tokio::test(start_paused = true)]
async fn the_log_tells_which_requests_changed_something() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let merge = Patch::Merge(json!({ "data": { "k": "1" } }));
    maps.patch("a", &PatchParams::default(), &merge)
        .await
        .unwrap();
    maps.get("a").await.unwrap();
    let log = server.requests().take();
    let seen: Vec<_> = log
        .iter()
        .map(|request| (request.verb, request.changed))
        .collect();
    assert_eq!(
        seen,
        [
            (Verb::Create, true),
            (Verb::Patch, false),
            (Verb::Get, false)
        ]
    );
    assert_eq!(log[1].name, "a");
    assert_eq!(log[1].status, Some(200));
    assert_eq!(server.requests().writes(), 0, "the log was taken");
}

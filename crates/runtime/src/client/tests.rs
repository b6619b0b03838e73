use super::{Noted, Run, Settings, Tracked, in_run, noting_requests, requests_noted, write::Known};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    client::ClientBuilder,
};
use serde_json::json;
use std::{future::Future, sync::Arc};

/// Somebody who knows everything up to a version.
struct Knowing(u64);

impl Known for Knowing {
    fn reached(&self, _: &str, _: &str) -> Option<u64> {
        Some(self.0)
    }
}

fn client(server: &ApiServer) -> Client {
    ClientBuilder::new(server.service(), "default")
        .with_layer(&Tracked)
        .build()
}

/// What a run has written when `f` is done, for people.
async fn written<F: Future<Output = ()>>(f: F) -> Vec<String> {
    let run = Arc::new(Run::default());
    in_run(Arc::clone(&run), f).await;
    run.take_writes().iter().map(ToString::to_string).collect()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "a": "b" } } })).unwrap()
}

fn data(value: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "data": { "value": value } }))
}

#[tokio::test(start_paused = true)]
async fn a_run_knows_its_writes() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let first = server.revision() + 1;
    let writes = written(async {
        let created = maps
            .create(&PostParams::default(), &map("a"))
            .await
            .unwrap();
        maps.get("a").await.unwrap();
        maps.patch("a", &PatchParams::apply("me"), &data("1"))
            .await
            .unwrap();
        maps.replace(
            "a",
            &PostParams::default(),
            &ConfigMap {
                data: None,
                metadata: kube::api::ObjectMeta {
                    resource_version: None,
                    ..created.metadata
                },
                ..ConfigMap::default()
            },
        )
        .await
        .unwrap();
        maps.delete("a", &DeleteParams::default()).await.unwrap();
    })
    .await;
    let expected = [
        format!("create configmaps default/a to {first}"),
        format!("patch configmaps default/a to {}", first + 1),
        format!("update configmaps default/a to {}", first + 2),
        "delete configmaps default/a".into(),
    ];
    assert_eq!(writes, expected);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_the_server_makes_is_known() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let mut child = map("x");
    child.metadata.name = None;
    child.metadata.generate_name = Some("child-".into());
    let run = Arc::new(Run::default());
    let created = in_run(
        Arc::clone(&run),
        maps.create(&PostParams::default(), &child),
    )
    .await
    .unwrap();
    let [write] = &run.take_writes()[..] else {
        panic!("one write")
    };
    let metadata = created.metadata;
    assert_eq!(Some(write.name()), metadata.name.as_deref());
    assert_eq!(write.kind(), Some("ConfigMap"));
    assert_eq!(write.uid(), metadata.uid.as_deref());
    assert_eq!(
        write.resource_version(),
        metadata.resource_version.as_deref()
    );
    assert_eq!(write.labels(), metadata.labels.unwrap());
    assert_eq!(write.changed(), Some(true));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_write_of_an_object_is_not_recorded() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap();
    let run = Arc::new(Run::default());
    in_run(Arc::clone(&run), async {
        maps.get("a").await.unwrap();
        maps.list(&ListParams::default()).await.unwrap();
        maps.patch("a", &PatchParams::default().dry_run(), &data("1"))
            .await
            .unwrap();
        maps.patch("missing", &PatchParams::default(), &data("1"))
            .await
            .unwrap_err();
    })
    .await;
    assert!(run.take_writes().is_empty());
    assert_eq!(
        (run.requests(), run.reads()),
        (4, 3),
        "the write that failed is a request"
    );
    assert!(run.has_written());

    // Outside of a run nothing is recorded at all.
    maps.patch("a", &PatchParams::default(), &data("2"))
        .await
        .unwrap();
    assert_eq!((run.requests(), run.take_writes().len()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_watch_passes_as_it_comes() {
    use futures::TryStreamExt;
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let run = Arc::new(Run::default());
    in_run(Arc::clone(&run), async {
        let events = maps.watch(&WatchParams::default(), "0").await.unwrap();
        let mut events = std::pin::pin!(events);
        maps.create(&PostParams::default(), &map("a"))
            .await
            .unwrap();
        assert!(
            events.try_next().await.unwrap().is_some(),
            "the watch goes on for minutes"
        );
    })
    .await;
    assert_eq!((run.requests(), run.take_writes().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_run_are_part_of_it() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let write = |name: &'static str| {
        let maps = maps.clone();
        async move {
            maps.create(&PostParams::default(), &map(name))
                .await
                .unwrap();
        }
    };
    let first = server.revision() + 1;
    let (ours, others) = (write("ours"), write("others"));
    let writes = written(async {
        crate::spawn(ours).await.unwrap();
        tokio::spawn(others).await.unwrap();
    })
    .await;
    assert_eq!(
        writes,
        [format!("create configmaps default/ours to {first}")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_object_by_object() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &map(name))
            .await
            .unwrap();
    }
    let run = Arc::new(Run::default());
    in_run(Arc::clone(&run), async {
        let (all, how) = (ListParams::default(), DeleteParams::default());
        drop(maps.delete_collection(&how, &all).await.unwrap());
    })
    .await;
    let names: Vec<String> = run
        .take_writes()
        .iter()
        .map(|write| write.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_cluster_has_no_namespace() {
    let server = ApiServer::builder().build();
    let namespaces: Api<Namespace> = Api::all(client(&server));
    let run = Arc::new(Run::default());
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let params = PatchParams::default();
    let write = namespaces.patch("default", &params, &patch);
    in_run(Arc::clone(&run), write).await.unwrap();
    let [write] = &run.take_writes()[..] else {
        panic!("one write")
    };
    assert_eq!((write.name(), write.namespace()), ("default", None));
}

#[tokio::test(start_paused = true)]
async fn whether_a_write_has_changed_something_is_known_as_far_as_the_version_before_is() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let created = maps
        .create(&PostParams::default(), &map("a"))
        .await
        .unwrap();
    let version: u64 = created.metadata.resource_version.unwrap().parse().unwrap();
    let changes = async |known: Option<Knowing>, values: &[&str]| {
        let run = Arc::new(match known {
            Some(known) => Run::new(Arc::new(known), false, Arc::default()),
            None => Run::default(),
        });
        in_run(Arc::clone(&run), async {
            for value in values {
                maps.patch("a", &PatchParams::default(), &data(value))
                    .await
                    .unwrap();
            }
        })
        .await;
        run.take_writes()
            .iter()
            .map(super::Write::changed)
            .collect::<Vec<_>>()
    };
    // Nobody knows the version before the first write; that of the second is the first one's.
    assert_eq!(
        changes(None, &["1", "1", "2"]).await,
        [None, Some(false), Some(true)]
    );
    // All that had happened until then was seen.
    assert_eq!(
        changes(Some(Knowing(version + 2)), &["2", "3"]).await,
        [Some(false), Some(true)]
    );
}

#[tokio::test(start_paused = true)]
async fn any_client_can_be_wrapped() {
    let server = ApiServer::builder().build();
    let client = Tracked::wrap(server.client_in("default"));
    assert_eq!(client.default_namespace(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let first = server.revision() + 1;
    let writes = written(async {
        maps.create(&PostParams::default(), &map("a"))
            .await
            .unwrap();
    })
    .await;
    assert_eq!(writes, [format!("create configmaps default/a to {first}")]);
}

#[tokio::test(start_paused = true)]
async fn failures_reach_the_caller_as_they_are() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let refusing = server
        .faults()
        .inject(Rule::any().verb(Verb::Create), Fault::Refuse);
    let writes = written(async {
        let error = maps
            .create(&PostParams::default(), &map("a"))
            .await
            .unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
        drop(refusing);
        maps.create(&PostParams::default(), &map("a"))
            .await
            .unwrap();
        let error = maps
            .create(&PostParams::default(), &map("a"))
            .await
            .unwrap_err();
        assert!(matches!(error, kube::Error::Api(status) if status.is_already_exists()));
    })
    .await;
    assert_eq!(writes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_can_tell_whether_its_client_is_tracked() {
    let server = ApiServer::builder().build();
    let settled = ClientBuilder::new(server.service(), "default")
        .with_layer(&Settings::default())
        .build();
    for (client, known) in [
        (client(&server), Noted::Tracked),
        (Tracked::wrap(server.client()), Noted::Tracked),
        (settled, Noted::Settled),
        (server.client(), Noted::Nothing),
    ] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        noting_requests(async {
            maps.list(&ListParams::default()).await.unwrap();
            assert_eq!(requests_noted(), known);
        })
        .await;
    }
}

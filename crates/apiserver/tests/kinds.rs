//! What built-in kinds do beside being stored: pods, services and service accounts as a typed client
//! sees them.

use std::time::Duration;

use homeostat_apiserver::{ApiServer, TokioClock};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

fn code(error: &kube::Error) -> u16 {
    let kube::Error::Api(status) = error else {
        return 0;
    };
    status.code
}

/// What the first cause of an answer says.
fn cause(error: &kube::Error) -> &str {
    let kube::Error::Api(status) = error else {
        return "";
    };
    let causes = status.details.as_ref().map(|details| &*details.causes);
    causes
        .and_then(<[_]>::first)
        .map_or("", |cause| &cause.message)
}

#[tokio::test(start_paused = true)]
async fn pods_run_are_evicted_and_end() {
    let server = ApiServer::builder().workloads(true).build();
    let client = server.client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client);
    let pod = |name: &str| -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "app": "a" } },
            "spec": { "containers": [{ "name": "c", "image": "i" }], "nodeName": "n" },
        }))
        .unwrap()
    };
    let post = PostParams::default();
    pods.create(&post, &pod("p")).await.unwrap();
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } },
    }))
    .unwrap();
    budgets.create(&post, &budget).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let status = pods.get("p").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.2"));
    let container = &status.container_statuses.unwrap()[0];
    assert!(container.ready && container.state.as_ref().unwrap().running.is_some());

    let refused = pods.evict("p", &EvictParams::default()).await.unwrap_err();
    assert_eq!(code(&refused), 429);
    assert!(cause(&refused).contains("needs 1 healthy pods and has 1"));
    pods.create(&post, &pod("q")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = budgets.get("b").await.unwrap().status.unwrap();
    assert_eq!(
        (
            status.current_healthy,
            status.desired_healthy,
            status.expected_pods
        ),
        (Some(2), Some(1), Some(2))
    );
    pods.evict("p", &EvictParams::default()).await.unwrap();
    let noted = budgets.get("b").await.unwrap().status.unwrap();
    assert_eq!(noted.disruptions_allowed, Some(0));
    assert!(noted.disrupted_pods.unwrap().contains_key("p"));
    // It has time to end, and takes none.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(pods.get_opt("p").await.unwrap().is_none());
    let status = budgets.get("b").await.unwrap().status.unwrap();
    assert_eq!(
        (status.expected_pods, status.disrupted_pods),
        (Some(1), None)
    );
    let allowed = &status.conditions.unwrap()[0];
    assert_eq!(
        (&*allowed.type_, &*allowed.status, &*allowed.reason),
        ("DisruptionAllowed", "False", "InsufficientPods")
    );
}

#[tokio::test(start_paused = true)]
async fn service_accounts_get_tokens() {
    let server = ApiServer::builder().clock(TokioClock::default()).build();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let request: TokenRequest = serde_json::from_value(json!({
        "metadata": {}, "spec": { "audiences": ["vault"], "expirationSeconds": 600 },
    }))
    .unwrap();
    let missing = accounts
        .create_token_request("a", &PostParams::default(), &request)
        .await
        .unwrap_err();
    assert_eq!(code(&missing), 404);
    let account: ServiceAccount =
        serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let answer = accounts
        .create_token_request("a", &PostParams::default(), &request)
        .await
        .unwrap();
    let status = answer.status.unwrap();
    assert_eq!(status.token.unwrap().split('.').count(), 3);
    assert_eq!(
        status.expiration_timestamp.unwrap().0.to_string(),
        "2026-01-01T00:10:00Z"
    );
    assert_eq!(answer.spec.unwrap().audiences.unwrap(), ["vault"]);
}

#[tokio::test(start_paused = true)]
async fn services_get_ports_on_nodes_that_no_other_has() {
    let server = ApiServer::builder().build();
    let services: Api<Service> = Api::default_namespaced(server.client());
    let service = |name: &str, spec: Value| -> Service {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    let ports = json!([
        { "port": 80, "name": "a" }, { "port": 81, "name": "b", "nodePort": 30_080 },
    ]);
    let first = service("a", json!({ "type": "NodePort", "ports": ports }));
    let created = services
        .create(&PostParams::default(), &first)
        .await
        .unwrap();
    let spec = created.spec.unwrap();
    assert_eq!(spec.external_traffic_policy.as_deref(), Some("Cluster"));
    let given = spec.ports.unwrap()[0].node_port.unwrap();
    assert!((30_000..=32_767).contains(&given));

    // What a change leaves out is kept, and goes with the type that needs it.
    let patch = |spec: Value| Patch::Merge(json!({ "spec": spec }));
    let params = PatchParams::default();
    let kept = patch(json!({ "ports": [{ "port": 80 }] }));
    let kept = services.patch("a", &params, &kept).await.unwrap();
    assert_eq!(kept.spec.unwrap().ports.unwrap()[0].node_port, Some(given));
    for (port, expected) in [(given, 422), (80, 422)] {
        let ports = json!([{ "port": 80, "nodePort": port }]);
        let other = service("b", json!({ "type": "NodePort", "ports": ports }));
        let refused = services.create(&PostParams::default(), &other).await;
        assert_eq!(code(&refused.unwrap_err()), expected);
    }
    let inner = patch(json!({ "type": "ClusterIP" }));
    let inner = services.patch("a", &params, &inner).await.unwrap();
    let spec = inner.spec.unwrap();
    assert_eq!(spec.ports.unwrap()[0].node_port, None);
    assert_eq!(spec.external_traffic_policy, None);
    assert!(spec.cluster_ip.is_some());
    let outer = patch(json!({ "type": "ExternalName", "externalName": "example.com" }));
    let outer = services.patch("a", &params, &outer).await.unwrap();
    assert_eq!(outer.spec.unwrap().cluster_ip, None);
}

/// The lines in which an answer says what is wrong.
fn lines<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> Vec<String> {
    let status = match answer {
        Err(kube::Error::Api(status)) => status,
        other => return vec![format!("{other:?}")],
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = status
        .details
        .map_or_else(Vec::new, |details| details.causes);
    let line = |cause: &kube::core::response::StatusCause| {
        format!("{} {}: {}", cause.reason, cause.field, cause.message)
    };
    causes.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_refuses_is_refused() {
    let server = ApiServer::builder().build();
    let deployments: Api<Deployment> = Api::default_namespaced(server.client());
    let deployment = |container: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" },
            "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": {
                    "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [container] },
                },
            },
        })
    };
    let blank = "FieldValueRequired spec.template.spec.containers[0].image: Required value";
    let faulty = deployment(json!({ "name": "c" }));
    let apply = PatchParams::apply("test");
    // However it comes.
    let typed: Deployment = serde_json::from_value(faulty.clone()).unwrap();
    let created = deployments.create(&PostParams::default(), &typed).await;
    assert_eq!(lines(created), [blank]);
    let applied = deployments.patch("a", &apply, &Patch::Apply(&faulty)).await;
    assert_eq!(lines(applied), [blank]);

    let whole = deployment(json!({ "name": "c", "image": "i" }));
    deployments
        .patch("a", &apply, &Patch::Apply(&whole))
        .await
        .unwrap();
    let port = json!({ "name": "c", "ports": [{ "containerPort": 70_000 }] });
    let patch = json!({ "spec": { "template": { "spec": { "containers": [port] } } } });
    let patched = deployments
        .patch("a", &PatchParams::default(), &Patch::Strategic(&patch))
        .await;
    assert_eq!(
        lines(patched),
        [
            "FieldValueInvalid spec.template.spec.containers[0].ports[0].containerPort: Invalid \
             value: 70000: must be between 1 and 65535, inclusive"
        ]
    );
    // The status is looked at by nobody, and a scale is only a number.
    let status = json!({ "status": { "replicas": 1 } });
    deployments
        .patch_status("a", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn data_and_finalizers_that_are_refused() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let secrets: Api<Secret> = Api::default_namespaced(server.client());
    let post = PostParams::default();
    let map = |data: Value| -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "data": data })).unwrap()
    };
    let half = "x".repeat(512 * 1024);
    let full = map(json!({ "a": half, "b": half }));
    maps.create(&post, &full).await.unwrap();
    let more = json!({ "data": { "c": "x" } });
    let patched = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(&more))
        .await;
    let too_long = "Too long: may not be more than 1048576 bytes";
    assert_eq!(
        lines(patched),
        [format!("FieldValueTooLong []: {too_long}")]
    );
    // Of a secret the bytes count that its text stands for.
    let secret = |size: usize| -> Secret {
        let data = json!({ "a": "AAAA".repeat(size / 3) });
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "data": data })).unwrap()
    };
    let refused = secrets.create(&post, &secret(1024 * 1024 + 3)).await;
    assert_eq!(
        lines(refused),
        [format!("FieldValueTooLong data: {too_long}")]
    );
    secrets.create(&post, &secret(1024 * 1024)).await.unwrap();

    let plain = json!({ "metadata": { "finalizers": ["plain"] } });
    let patched = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(&plain))
        .await;
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    // Twice, as the recording `create/finalizer-faults-repeat` has it: metadata are looked through by two checks.
    let line = format!("FieldValueInvalid metadata.finalizers[0]: Invalid value: \"plain\": {why}");
    assert_eq!(lines(patched), [line.clone(), line]);
    let generated: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "generateName": "A-" } })).unwrap();
    let refused = lines(maps.create(&post, &generated).await);
    let fields: Vec<&str> = refused
        .iter()
        .filter_map(|line| line.split([' ', ':']).nth(1))
        .collect();
    assert_eq!(fields, ["metadata.generateName", "metadata.name"]);
}

/// Events are kept for an hour after they were last written.
#[tokio::test(start_paused = true)]
async fn events_are_forgotten() {
    let server = ApiServer::builder().build();
    let events: Api<Event> = Api::default_namespaced(server.client());
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let post = PostParams::default();
    let event = |name: &str| -> Event {
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" },
        }))
        .unwrap()
    };
    for name in ["a", "b"] {
        events.create(&post, &event(name)).await.unwrap();
    }
    let half = Duration::from_secs(30 * 60);
    tokio::time::sleep(half).await;
    let again = Patch::Merge(json!({ "count": 2 }));
    events
        .patch("b", &PatchParams::default(), &again)
        .await
        .unwrap();
    tokio::time::sleep(half).await;
    for (number, left) in [(1, vec!["b"]), (2, vec![])] {
        let map: ConfigMap =
            serde_json::from_value(json!({ "metadata": { "name": number.to_string() } })).unwrap();
        maps.create(&post, &map).await.unwrap();
        tokio::time::sleep(half).await;
        let list = events.list(&ListParams::default()).await.unwrap();
        let names: Vec<String> = list.items.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, left);
    }
}

/// What was written before the history was forgotten is looked at all the same.
#[tokio::test(start_paused = true)]
async fn actors_that_have_missed_something_look_at_everything() {
    let server = ApiServer::builder().build();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    }))
    .unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    server.compact();
    assert!(server.step_workloads());
    while server.step_workloads() {}
    let status = pods.get("p").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
}

//! The files with which the operator is deployed.

use super::{
    DEADLINE, kubeconfig_of,
    operator::{Operator, get, until_ok},
};
use homeostat::wait::{await_condition_within, conditions::is_deleted};
use homeostat_apiserver::{ApiServer, Attributes, Decision, Request};
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Container, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
        ValidationDirective,
    },
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};
use website::{Website, status::READY};

const NAMESPACE: &str = "website-system";

/// Who the operator is there.
const OPERATOR: &str = "system:serviceaccount:website-system:website-operator";

fn read(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn documents(file: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&read(file)).unwrap()
}

/// The files that `kubectl apply -k` applies, in order.
fn manifests() -> Vec<Value> {
    let kustomization: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    let files = kustomization["resources"].as_array().unwrap();
    let files = files.iter().map(|file| file.as_str().unwrap());
    files.flat_map(documents).collect()
}

/// The one object of this kind among the manifests.
fn the<K: DeserializeOwned>(kind: &str) -> K {
    let mut found = manifests();
    found.retain(|object| object["kind"] == kind);
    assert_eq!(found.len(), 1, "{kind}");
    serde_json::from_value(found.remove(0)).unwrap()
}

/// Applies an object, and fails if a field is not known.
async fn apply(client: &Client, object: &Value) {
    let mut kind = object["apiVersion"].as_str().unwrap().split('/');
    let (version, group) = (kind.next_back().unwrap(), kind.next().unwrap_or_default());
    let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
    let name = object["metadata"]["name"].as_str().unwrap();
    let (resource, capabilities): (ApiResource, _) = pinned_kind(client, &kind).await.unwrap();
    let api: Api<DynamicObject> = match (&capabilities.scope, &object["metadata"]["namespace"]) {
        (Scope::Namespaced, Value::String(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (Scope::Cluster, Value::Null) => Api::all_with(client.clone(), &resource),
        (scope, namespace) => panic!("{name}: {scope:?} and in {namespace}"),
    };
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("kubectl")
    };
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[tokio::test]
async fn the_manifests_can_be_applied_and_their_pods_come_up() {
    let server = ApiServer::builder().workloads(true).build();
    let client = server.client();
    for object in manifests() {
        apply(&client, &object).await;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let up = |it: Option<&Deployment>| {
        let status = it.and_then(|it| it.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(2)
    };
    await_condition_within(deployments, "website-operator", up, DEADLINE)
        .await
        .unwrap();

    // What names another object names one that is there.
    let account: ServiceAccount = the("ServiceAccount");
    let deployment: Deployment = the("Deployment");
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.service_account_name, account.metadata.name);
    let (everywhere, here): (ClusterRoleBinding, RoleBinding) =
        (the("ClusterRoleBinding"), the("RoleBinding"));
    let (roles, role): (ClusterRole, Role) = (the("ClusterRole"), the("Role"));
    assert_eq!(Some(everywhere.role_ref.name), roles.metadata.name);
    assert_eq!(Some(here.role_ref.name), role.metadata.name);
    for subject in [everywhere.subjects, here.subjects]
        .into_iter()
        .flatten()
        .flatten()
    {
        assert_eq!(subject.kind, "ServiceAccount");
        assert_eq!(
            (Some(subject.name), subject.namespace),
            (
                account.metadata.name.clone(),
                account.metadata.namespace.clone()
            )
        );
    }
    // What is not applied with the others fits them, too.
    let monitor = documents("deploy/podmonitor.yaml").remove(0);
    let labels = &monitor["spec"]["selector"]["matchLabels"];
    let selector = deployment_selector();
    assert_eq!(*labels, json!(selector));
    let ports: Vec<_> = container()
        .ports
        .unwrap()
        .into_iter()
        .filter_map(|port| port.name)
        .collect();
    assert_eq!(
        monitor["spec"]["podMetricsEndpoints"][0]["port"],
        json!(ports[0])
    );
}

fn deployment_selector() -> Value {
    let deployment: Deployment = the("Deployment");
    json!(deployment.spec.unwrap().selector.match_labels.unwrap())
}

fn container() -> Container {
    let deployment: Deployment = the("Deployment");
    deployment
        .spec
        .unwrap()
        .template
        .spec
        .unwrap()
        .containers
        .remove(0)
}

/// Resource and verb of everything that the operator has asked for, as `secrets get`.
type Asked = Arc<Mutex<BTreeSet<String>>>;

/// All that the manifests allow, in the same form.
fn allowed() -> BTreeSet<String> {
    let (roles, role): (ClusterRole, Role) = (the("ClusterRole"), the("Role"));
    let all = roles.rules.unwrap().into_iter().chain(role.rules.unwrap());
    all.flat_map(pairs).collect()
}

fn pairs(rule: PolicyRule) -> Vec<String> {
    let resources = rule.resources.unwrap_or_default().into_iter();
    let pairs = resources.flat_map(|resource| {
        let verbs = rule.verbs.iter();
        verbs.map(move |verb| format!("{resource} {verb}"))
    });
    pairs.collect()
}

fn note(asked: &Asked, wanted: &Attributes<'_>) {
    if wanted.user.name != OPERATOR || wanted.resource.is_empty() {
        return;
    }
    let slash = if wanted.subresource.is_empty() {
        ""
    } else {
        "/"
    };
    let (resource, subresource) = (wanted.resource, wanted.subresource);
    let pair = format!("{resource}{slash}{subresource} {}", wanted.verb);
    asked.lock().unwrap().insert(pair);
}

async fn until_ready(sites: &Api<Website>, generation: i64) {
    let ready = move |site: Option<&Website>| {
        let ready = site.and_then(|site| site.status.as_ref()?.condition(READY));
        ready.is_some_and(|ready| {
            ready.status == "True" && ready.observed_generation == Some(generation)
        })
    };
    await_condition_within(sites.clone(), "blog", ready, DEADLINE)
        .await
        .unwrap();
}

/// The arguments of the manifest, but a free port of the loopback interface.
fn arguments() -> Vec<String> {
    let args = container().args.unwrap().into_iter();
    args.map(|arg| arg.replace("0.0.0.0:8080", "127.0.0.1:0"))
        .collect()
}

/// A site comes, changes, loses a child, and goes.
async fn live(client: &Client) {
    let sites: Api<Website> = Api::default_namespaced(client.clone());
    let site: Website = serde_saphyr::from_str(website::SAMPLE).unwrap();
    sites.create(&PostParams::default(), &site).await.unwrap();
    until_ready(&sites, 1).await;
    let more = Patch::Merge(json!({ "spec": { "html": "<p>New" } }));
    let changed = sites
        .patch("blog", &PatchParams::default(), &more)
        .await
        .unwrap();
    until_ready(&sites, changed.metadata.generation.unwrap()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let uid = maps.get("blog").await.unwrap().uid().unwrap();
    maps.delete("blog", &DeleteParams::default()).await.unwrap();
    let back =
        move |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid().as_ref() != Some(&uid));
    await_condition_within(maps, "blog", back, DEADLINE)
        .await
        .unwrap();
    let uid = sites.get("blog").await.unwrap().uid().unwrap();
    sites
        .delete("blog", &DeleteParams::default())
        .await
        .unwrap();
    await_condition_within(sites, "blog", is_deleted(&uid), DEADLINE)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_rules_are_enough_and_each_is_needed() {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let server = ApiServer::builder()
        .workloads(true)
        .rbac(true)
        .authorizer(move |wanted: &Attributes<'_>| {
            note(&noted, wanted);
            Decision::Allow
        })
        .build();
    let client = server.client();
    for object in manifests() {
        apply(&client, &object).await;
    }
    let token = server.service_account_token(NAMESPACE, "website-operator");
    let listening = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kubeconfig_of(&token.unwrap(), "deploy.kubeconfig", listening.address());
    let args = arguments();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut operator = Operator::start(&config, &args);
    let address = operator.address().await;

    // The probes of the manifest.
    let container = container();
    for probe in [container.liveness_probe, container.readiness_probe] {
        let path = probe.unwrap().http_get.unwrap().path.unwrap();
        until_ok(address, &path).await;
    }
    let (status, scraped) = get(address, "/metrics").await;
    assert_eq!(status, 200, "{scraped}");

    live(&client).await;
    operator.signal("TERM").await;
    let (status, said) = operator.ended().await;
    assert!(status.success(), "{status}: {said}");
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let lease = leases.get("website").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "it is given up"
    );

    let refused = server.requests().all();
    let refused = refused.iter().filter(|request| request.status == Some(403));
    assert_eq!(refused.collect::<Vec<_>>(), Vec::<&Request>::new());
    let asked = asked.lock().unwrap();
    let unused: BTreeSet<_> = allowed().difference(&asked).cloned().collect();
    let expected = [
        // For clusters that cannot stream lists.
        "configmaps list",
        "deployments list",
        "secrets list",
        "services list",
        // Only where the cluster has OwnerReferencesPermissionEnforcement.
        "websites/finalizers update",
    ];
    let expected = expected.into_iter().map(String::from).collect();
    assert_eq!(unused, expected);
}

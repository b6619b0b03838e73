//! The whole operator on the embedded server, under paused time.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

use futures::StreamExt;
use homeostat::{
    client::Tracked,
    conditions,
    wait::{await_condition_within, conditions::is_deleted},
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace, ResourceQuota},
        rbac::v1::RoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tenant::{Context, Tenant, status::READY};
use tokio::{task::JoinHandle, time::sleep};

const MINUTE: Duration = Duration::from_secs(60);

/// A cluster, with the operator in it.
struct World {
    server: ApiServer,
    client: Client,
    operator: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::builder().build();
        let client = server.client();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = Tenant::crd();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let established = conditions::is_crd_established();
        await_condition_within(definitions, &definition.name_any(), established, MINUTE)
            .await
            .unwrap();
        let operated = Tracked::wrap(server.client());
        let runs = tenant::controller(Arc::new(Context::new(operated)));
        let operator = tokio::spawn(runs.for_each(|_| std::future::ready(())));
        Self {
            server,
            client,
            operator,
        }
    }

    fn tenants(&self) -> Api<Tenant> {
        Api::all(self.client.clone())
    }

    fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    async fn create(&self, name: &str, namespaces: &[&str]) -> Tenant {
        let mut tenant: Tenant = serde_saphyr::from_str(tenant::SAMPLE).unwrap();
        tenant.metadata.name = Some(name.into());
        tenant.spec.namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
        self.tenants()
            .create(&PostParams::default(), &tenant)
            .await
            .unwrap()
    }

    async fn change(&self, name: &str, spec: Value) -> Tenant {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.tenants()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Waits until the condition `Ready` has this reason, in the present generation.
    async fn until(&self, name: &str, reason: &str) -> Tenant {
        let wanted = |tenant: Option<&Tenant>| {
            let status = |tenant: &Tenant| tenant.status.clone().unwrap_or_default();
            tenant.is_some_and(|tenant| {
                let status = status(tenant);
                status.observed_generation == tenant.metadata.generation
                    && conditions::get(&status.conditions, READY)
                        .is_some_and(|one| one.reason == reason)
            })
        };
        let found = await_condition_within(self.tenants(), name, wanted, 10 * MINUTE).await;
        match found {
            Ok(tenant) => tenant.unwrap(),
            Err(error) => {
                let status = self.tenants().get(name).await.unwrap().status;
                panic!("{name} is never {reason}: {error}; {status:?}")
            }
        }
    }

    async fn gone<K>(&self, api: Api<K>, object: &K)
    where
        K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
    {
        let deleted = is_deleted(object.meta().uid.as_deref().unwrap());
        await_condition_within(api, &object.name_any(), deleted, 10 * MINUTE)
            .await
            .unwrap();
    }

    /// The subjects of a binding, as `kind/name`; none if it is not there.
    async fn members(&self, namespace: &str, binding: &str) -> Option<Vec<String>> {
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        let found = bindings.get_opt(binding).await.unwrap()?;
        let subjects = found.subjects.unwrap_or_default().into_iter();
        Some(
            subjects
                .map(|subject| format!("{}/{}", subject.kind, subject.name))
                .collect(),
        )
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_gets_its_namespaces_and_rests() {
    let world = World::new().await;
    world.create("acme", &["prod", "dev"]).await;
    let tenant = world.until("acme", "Enclosed").await;
    assert_eq!(tenant.status.unwrap().namespaces, ["acme-dev", "acme-prod"]);
    for namespace in ["acme-dev", "acme-prod"] {
        assert_eq!(
            world.members(namespace, "tenant-editor").await,
            Some(names(&["User/alice"]))
        );
        assert_eq!(
            world.members(namespace, "tenant-viewer").await,
            Some(names(&["Group/acme-auditors"]))
        );
        let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), namespace);
        let hard = quotas
            .get("tenant")
            .await
            .unwrap()
            .spec
            .unwrap()
            .hard
            .unwrap();
        assert_eq!(hard["pods"].0, "20");
    }
    let writes = world.server.requests().writes();
    sleep(60 * MINUTE).await;
    assert_eq!(world.server.requests().writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn members_come_and_go() {
    let world = World::new().await;
    world.create("acme", &["dev"]).await;
    world.until("acme", "Enclosed").await;
    let members =
        json!([{ "name": "carol", "role": "editor" }, { "name": "bob", "role": "editor" }]);
    world.change("acme", json!({ "members": members })).await;
    world.until("acme", "Enclosed").await;
    assert_eq!(
        world.members("acme-dev", "tenant-editor").await,
        Some(names(&["User/bob", "User/carol"]))
    );
    assert_eq!(world.members("acme-dev", "tenant-viewer").await, None);
    // Another order is no other list.
    let writes = world.server.requests().writes();
    let members =
        json!([{ "name": "bob", "role": "editor" }, { "name": "carol", "role": "editor" }]);
    world.change("acme", json!({ "members": members })).await;
    world.until("acme", "Enclosed").await;
    sleep(MINUTE).await;
    let own = world.server.requests().writes() - writes;
    assert_eq!(
        own, 3,
        "the change, and the two conditions that tell its generation"
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_change_in_the_fences_is_put_right() {
    let world = World::new().await;
    world.create("acme", &["dev"]).await;
    world.until("acme", "Enclosed").await;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), "acme-dev");
    let more = Patch::Merge(json!({ "spec": { "hard": { "pods": "1000" } } }));
    quotas
        .patch("tenant", &PatchParams::default(), &more)
        .await
        .unwrap();
    sleep(MINUTE).await;
    assert_eq!(
        quotas
            .get("tenant")
            .await
            .unwrap()
            .spec
            .unwrap()
            .hard
            .unwrap()["pods"]
            .0,
        "20"
    );
    quotas
        .delete("tenant", &DeleteParams::default())
        .await
        .unwrap();
    sleep(MINUTE).await;
    assert!(quotas.get_opt("tenant").await.unwrap().is_some());
    // What we say nothing about is not ours.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "cost-center": "7" } } }));
    world
        .namespaces()
        .patch("acme-dev", &PatchParams::default(), &label)
        .await
        .unwrap();
    sleep(MINUTE).await;
    assert_eq!(
        world.namespaces().get("acme-dev").await.unwrap().labels()["cost-center"],
        "7"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_wanted_any_more_goes_with_what_is_in_it() {
    let world = World::new().await;
    world.create("acme", &["dev", "prod"]).await;
    world.until("acme", "Enclosed").await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "acme-prod");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("theirs".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let prod = world.namespaces().get("acme-prod").await.unwrap();
    world.change("acme", json!({ "namespaces": ["dev"] })).await;
    world.gone(world.namespaces(), &prod).await;
    assert!(maps.get_opt("theirs").await.unwrap().is_none());
    let tenant = world.until("acme", "Enclosed").await;
    assert_eq!(tenant.status.unwrap().namespaces, ["acme-dev"]);
    // It can come back, as another one.
    world
        .change("acme", json!({ "namespaces": ["dev", "prod"] }))
        .await;
    world.until("acme", "Enclosed").await;
    assert_ne!(
        world.namespaces().get("acme-prod").await.unwrap().uid(),
        prod.uid()
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_somebody_else_is_left_alone() {
    let world = World::new().await;
    let theirs = Namespace {
        metadata: ObjectMeta {
            name: Some("acme-prod".into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    world
        .namespaces()
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    let theirs = world.namespaces().get("acme-prod").await.unwrap();
    world.create("acme", &["dev", "prod"]).await;
    let tenant = world.until("acme", "NamespaceTaken").await;
    assert_eq!(tenant.status.unwrap().namespaces, ["acme-dev"]);
    sleep(60 * MINUTE).await;
    let now = world.namespaces().get("acme-prod").await.unwrap();
    assert_eq!(now.resource_version(), theirs.resource_version());
    assert_eq!(world.members("acme-prod", "tenant-editor").await, None);
    // When it is gone, the name is free.
    world
        .namespaces()
        .delete("acme-prod", &DeleteParams::default())
        .await
        .unwrap();
    world.until("acme", "Enclosed").await;
    assert_eq!(
        world.members("acme-prod", "tenant-editor").await,
        Some(names(&["User/alice"]))
    );
}

/// Two tenants can ask for one name.
#[tokio::test(start_paused = true)]
async fn the_first_of_two_tenants_has_a_namespace() {
    let world = World::new().await;
    world.create("a", &["b-c"]).await;
    world.until("a", "Enclosed").await;
    let other = world.create("a-b", &["c"]).await;
    world.until("a-b", "NamespaceTaken").await;
    world
        .tenants()
        .delete("a-b", &DeleteParams::default())
        .await
        .unwrap();
    world.gone(world.tenants(), &other).await;
    sleep(MINUTE).await;
    assert_eq!(
        world.members("a-b-c", "tenant-editor").await,
        Some(names(&["User/alice"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_tenant_goes_after_its_namespaces() {
    let world = World::new().await;
    let tenant = world.create("acme", &["dev", "prod"]).await;
    world.until("acme", "Enclosed").await;
    // Something holds the namespace.
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "acme-prod");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("held".into()),
            finalizers: Some(vec!["example.com/held".into()]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    world
        .tenants()
        .delete("acme", &DeleteParams::default())
        .await
        .unwrap();
    sleep(10 * MINUTE).await;
    assert!(
        world.tenants().get_opt("acme").await.unwrap().is_some(),
        "it waits"
    );
    assert_eq!(
        world.members("acme-prod", "tenant-editor").await,
        None,
        "nobody comes in"
    );
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &free)
        .await
        .unwrap();
    world.gone(world.tenants(), &tenant).await;
    let left = world
        .namespaces()
        .list(&ListParams::default().labels(tenant::children::SELECTOR))
        .await
        .unwrap();
    assert!(left.items.is_empty());
}

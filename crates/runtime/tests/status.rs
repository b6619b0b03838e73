//! The status of an object, written to the embedded server when it says something new.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use homeostat::{
    Classify, ErrorClass,
    conditions::{self, NewCondition},
    status,
};
use homeostat_apiserver::{ApiServer, Request, Verb};
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition},
    jiff::Timestamp,
};
use kube::{
    Api, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    host: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

struct World {
    server: ApiServer,
    sites: Api<Site>,
}

impl World {
    /// A server with one site, whose name is `a`.
    async fn new() -> (Self, Site) {
        let server = ApiServer::builder().build();
        let client = server.client();
        // Conditions are a map by type, as everywhere.
        let mut definition = serde_json::to_value(Site::crd()).unwrap();
        let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        let conditions = format!("{properties}/conditions");
        let conditions = definition.pointer_mut(&conditions).unwrap();
        conditions["x-kubernetes-list-type"] = json!("map");
        conditions["x-kubernetes-list-map-keys"] = json!(["type"]);
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let world = Self {
            sites: Api::default_namespaced(client),
            server,
        };
        let site = world.create().await;
        drop(world.server.requests().take());
        (world, site)
    }

    async fn create(&self) -> Site {
        let spec = SiteSpec { host: "h".into() };
        let site = Site::new("a", spec);
        self.sites
            .create(&PostParams::default(), &site)
            .await
            .unwrap()
    }

    /// Somebody else says this of the site.
    async fn says(&self, status: Value) -> Site {
        let patch = Patch::Merge(json!({ "status": status }));
        let params = PatchParams::default();
        let site = self.sites.patch_status("a", &params, &patch).await.unwrap();
        drop(self.server.requests().take());
        site
    }

    /// The requests since the last look, as `patch` or `patch 409`.
    fn requests(&self) -> Vec<String> {
        let told = |request: Request| {
            let verb = format!("{:?}", request.verb).to_lowercase();
            match request.status {
                Some(200) => verb,
                status => format!("{verb} {}", status.unwrap_or_default()),
            }
        };
        self.server
            .requests()
            .take()
            .into_iter()
            .map(told)
            .collect()
    }
}

fn status(url: &str) -> SiteStatus {
    SiteStatus {
        url: Some(url.into()),
        ..SiteStatus::default()
    }
}

/// `Ready=True`, or the like, since a second of the epoch.
fn condition(type_: &str, holds: bool, since: i64) -> Condition {
    let mut list = Vec::new();
    let new = NewCondition::new(type_, holds, "Because").message("so");
    conditions::set(&mut list, new, Timestamp::from_second(since).unwrap());
    list.remove(0)
}

fn types(site: &Site) -> Vec<String> {
    let status = site.status.iter();
    let conditions = status.flat_map(|status| &status.conditions);
    conditions
        .map(|condition| condition.type_.clone())
        .collect()
}

/// T51: what is there already is not written; B26: neither is what only looks different.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_differs() {
    let (world, site) = World::new().await;
    let mut desired = status("https://h");
    desired.addresses = vec!["10.0.0.1".into(), "10.0.0.2".into()];
    desired.conditions = vec![condition("B", true, 5), condition("A", false, 5)];
    assert!(status::patch(&world.sites, &site, &desired).await.unwrap());
    assert_eq!(world.requests(), ["patch"]);
    assert_eq!(world.server.requests().writes(), 0, "the log was taken");

    let site = world.sites.get("a").await.unwrap();
    let stored = site.status.clone().unwrap();
    assert_eq!(types(&site), ["A", "B"]);
    world.requests();
    let mut other_order = stored.clone();
    other_order.conditions.reverse();
    let mut other_times = stored.clone();
    other_times.conditions = vec![condition("A", false, 9), condition("B", true, 9)];
    let mut fewer_conditions = stored.clone();
    fewer_conditions.conditions.clear();
    for same in [stored.clone(), other_order, other_times, fewer_conditions] {
        assert!(
            !status::patch(&world.sites, &site, &same).await.unwrap(),
            "{same:?}"
        );
    }
    let with_null = json!({ "url": "https://h", "addresses": stored.addresses, "note": null });
    assert!(
        !status::patch(&world.sites, &site, &with_null)
            .await
            .unwrap()
    );
    assert_eq!(world.requests(), [""; 0]);

    // A positive control: the order of a list that is none of these counts.
    let mut reversed = stored;
    reversed.addresses.reverse();
    assert!(status::patch(&world.sites, &site, &reversed).await.unwrap());
    assert_eq!(world.requests(), ["patch"]);
}

/// What is not desired any more is removed, what the type does not know stays.
#[tokio::test(start_paused = true)]
async fn the_status_is_what_is_desired() {
    let (world, site) = World::new().await;
    let mut desired = status("https://h");
    desired.addresses = vec!["10.0.0.1".into()];
    status::patch(&world.sites, &site, &desired).await.unwrap();
    let site = world.sites.get("a").await.unwrap();
    desired.addresses.clear();
    assert!(status::patch(&world.sites, &site, &desired).await.unwrap());
    let site = world.sites.get("a").await.unwrap();
    assert_eq!(site.status, Some(desired));
    assert_eq!(site.metadata.generation, Some(1));
}

/// H9: lists that came from a map or a set, in an order that changes.
#[tokio::test(start_paused = true)]
async fn lists_without_an_order() {
    let (world, site) = World::new().await;
    let writer = status::Writer::new().set("/addresses");
    for pass in 0..10 {
        let mut desired = status("https://h");
        desired.addresses = ["1", "2", "3"].map(Into::into).into();
        desired.addresses.rotate_left(pass % 3);
        let site = world.sites.get("a").await.unwrap();
        let wrote = writer.patch(&world.sites, &site, &desired).await.unwrap();
        assert_eq!(wrote, pass == 0);
    }
    drop(site);
    let patches = world
        .server
        .requests()
        .count(|request| request.verb == Verb::Patch);
    assert_eq!(patches, 1);
}

/// B26: another notation of the same quantity.
#[tokio::test(start_paused = true)]
async fn quantities_of_built_in_kinds() {
    let (world, _) = World::new().await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(world.server.client());
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let claim = serde_json::from_value(claim).unwrap();
    claims.create(&PostParams::default(), &claim).await.unwrap();
    let of = |capacity: &str| PersistentVolumeClaimStatus {
        phase: Some("Pending".into()),
        capacity: Some([("storage".to_owned(), Quantity(capacity.into()))].into()),
        ..PersistentVolumeClaimStatus::default()
    };
    let writer = status::Writer::new().quantity("/capacity/*");
    for (capacity, wrote) in [
        ("1Gi", true),
        ("1024Mi", false),
        ("1G", true),
        ("1e9", false),
    ] {
        let claim = claims.get("data").await.unwrap();
        let answer = writer.patch(&claims, &claim, &of(capacity)).await.unwrap();
        assert_eq!(answer, wrote, "{capacity}");
    }
    // Nobody has said that these are quantities.
    let claim = claims.get("data").await.unwrap();
    assert!(status::patch(&claims, &claim, &of("1e9")).await.unwrap());
}

/// H4, H5: whoever says all conditions anew in each pass writes once.
#[tokio::test(start_paused = true)]
async fn times_of_conditions_stay() {
    let (world, _) = World::new().await;
    for pass in 0..5 {
        let site = world.sites.get("a").await.unwrap();
        let mut desired = status("https://h");
        desired.conditions = vec![condition("Ready", true, 100 + pass)];
        let wrote = status::patch(&world.sites, &site, &desired).await.unwrap();
        assert_eq!(wrote, pass == 0);
    }
    let site = world.sites.get("a").await.unwrap();
    let ready = &site.status.as_ref().unwrap().conditions[0];
    assert_eq!(
        ready.last_transition_time.0,
        Timestamp::from_second(100).unwrap()
    );
    // The status flips, and the time with it.
    let mut desired = site.status.clone().unwrap();
    desired.conditions = vec![condition("Ready", false, 200)];
    assert!(status::patch(&world.sites, &site, &desired).await.unwrap());
    let site = world.sites.get("a").await.unwrap();
    assert_eq!(site.status, Some(desired));
}

/// F6, D2: what others write to the same list is not lost, even if it came since the object was read.
#[tokio::test(start_paused = true)]
async fn conditions_of_others_stay() {
    let (world, old) = World::new().await;
    world
        .says(json!({ "conditions": [condition("Other", true, 1)] }))
        .await;
    let mut desired = status("https://h");
    desired.conditions = vec![condition("Mine", true, 2)];
    assert!(status::patch(&world.sites, &old, &desired).await.unwrap());
    assert_eq!(world.requests(), ["patch 409", "get", "patch"]);
    let site = world.sites.get("a").await.unwrap();
    assert_eq!(types(&site), ["Mine", "Other"]);
    assert_eq!(site.status.unwrap().url.as_deref(), Some("https://h"));

    // Another field is no reason to lose them either.
    world.requests();
    let url = json!({ "url": "https://other" });
    assert!(status::patch(&world.sites, &old, &url).await.unwrap());
    assert_eq!(world.requests(), ["patch 409", "get", "patch"]);

    // What is there by now is not written.
    desired.url = Some("https://other".into());
    assert!(!status::patch(&world.sites, &old, &desired).await.unwrap());
    assert_eq!(world.requests(), ["patch 409", "get"]);
}

/// S1: another object that took the name is left alone, and the next run will see it.
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name() {
    let (world, old) = World::new().await;
    world
        .sites
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let new = world.create().await;
    assert_ne!(new.uid(), old.uid());
    let mut with_conditions = status("https://h");
    with_conditions.conditions = vec![condition("Ready", true, 1)];
    let sites = &world.sites;
    for error in [
        status::patch(sites, &old, &status("https://h")).await,
        status::patch(sites, &old, &with_conditions).await,
        status::apply(sites, &old, &status("https://h"), "me").await,
    ] {
        assert_eq!(error.unwrap_err().classify(), ErrorClass::Conflict);
    }
    assert_eq!(sites.get("a").await.unwrap().status, None);
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_written() {
    let (world, site) = World::new().await;
    let unnamed = Site::new("", site.spec.clone());
    let error = status::patch(&world.sites, &unnamed, &status("x")).await;
    assert!(
        matches!(error, Err(kube::Error::BuildRequest(_))),
        "{error:?}"
    );

    let resource = ApiResource::erase::<Site>(&());
    let untyped: Api<DynamicObject> =
        Api::default_namespaced_with(world.server.client(), &resource);
    let mut object = DynamicObject::new("a", &resource);
    object.types = None;
    let error = status::apply(&untyped, &object, &status("x"), "me").await;
    assert!(
        matches!(error, Err(kube::Error::BuildRequest(_))),
        "{error:?}"
    );

    world
        .sites
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    world.requests();
    let error = status::patch(&world.sites, &site, &status("x"))
        .await
        .unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 404));
    assert_eq!(world.requests(), ["patch 404"]);
}

/// Objects whose type is known at run time only.
#[tokio::test(start_paused = true)]
async fn dynamic_objects() {
    let (world, _) = World::new().await;
    let resource = ApiResource::erase::<Site>(&());
    let sites: Api<DynamicObject> = Api::default_namespaced_with(world.server.client(), &resource);
    for (desired, wrote) in [
        (json!({ "url": "x" }), true),
        (json!({ "url": "x" }), false),
        (json!({}), true),
        (json!({ "url": null }), false),
    ] {
        let site = sites.get("a").await.unwrap();
        let answer = status::patch(&sites, &site, &desired).await.unwrap();
        assert_eq!(answer, wrote, "{desired}");
    }
}

// === Apply ===

/// T51: an apply is sent if it changes the status or who owns what of it, and only then.
#[tokio::test(start_paused = true)]
async fn an_apply_is_sent_when_it_changes_something() {
    let (world, _) = World::new().await;
    let mut full = status("https://h");
    full.conditions = vec![condition("Mine", true, 1)];
    let mut later = full.clone();
    later.conditions = vec![condition("Mine", true, 9)];
    let less = SiteStatus {
        url: None,
        ..full.clone()
    };
    for (desired, sent) in [
        (&full, true),
        (&full, false),
        // A time that should not have changed.
        (&later, false),
        // What it does not say any more is removed.
        (&less, true),
        (&less, false),
        (&full, true),
        (&full, false),
    ] {
        let site = world.sites.get("a").await.unwrap();
        world.requests();
        let answer = status::apply(&world.sites, &site, desired, "me")
            .await
            .unwrap();
        assert_eq!(answer, sent, "{desired:?}");
        assert_eq!(world.requests().len(), usize::from(sent));
    }
    assert_eq!(world.sites.get("a").await.unwrap().status, Some(full));
}

/// A3, F2: what others say stays, and what they change of ours is taken back.
#[tokio::test(start_paused = true)]
async fn an_apply_next_to_others() {
    let (world, site) = World::new().await;
    let mut desired = status("https://h");
    desired.conditions = vec![condition("Mine", true, 1)];
    status::apply(&world.sites, &site, &desired, "me")
        .await
        .unwrap();
    let mut theirs = status("https://theirs");
    theirs.addresses = vec!["10.0.0.1".into()];
    theirs.conditions = vec![condition("Other", true, 1)];
    let site = world.sites.get("a").await.unwrap();
    status::apply(&world.sites, &site, &theirs, "they")
        .await
        .unwrap();

    for sent in [true, false] {
        let site = world.sites.get("a").await.unwrap();
        let answer = status::apply(&world.sites, &site, &desired, "me")
            .await
            .unwrap();
        assert_eq!(answer, sent);
    }
    let site = world.sites.get("a").await.unwrap();
    assert_eq!(types(&site), ["Mine", "Other"]);
    let status = site.status.unwrap();
    assert_eq!(status.url.as_deref(), Some("https://h"));
    assert_eq!(status.addresses, ["10.0.0.1"]);
}

/// Without managed fields nobody knows what is owned, so all that is there has to be ours.
#[tokio::test(start_paused = true)]
async fn an_apply_without_managed_fields() {
    let (world, site) = World::new().await;
    let desired = status("https://h");
    status::apply(&world.sites, &site, &desired, "me")
        .await
        .unwrap();
    let without = |mut site: Site| {
        site.meta_mut().managed_fields = None;
        site
    };
    let site = without(world.sites.get("a").await.unwrap());
    assert!(
        !status::apply(&world.sites, &site, &desired, "me")
            .await
            .unwrap()
    );
    let site = without(world.says(json!({ "addresses": ["10.0.0.1"] })).await);
    assert!(
        status::apply(&world.sites, &site, &desired, "me")
            .await
            .unwrap()
    );
    assert_eq!(
        world.server.requests().writes(),
        0,
        "the server saw that nothing changed"
    );
}

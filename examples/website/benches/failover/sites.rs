//! The sites, and whether they are as they should be.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, ObjectMeta, PostParams},
};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, sleep};
use website::{RECONCILED, Theme, Website, WebsiteSpec, children::SELECTOR};

/// How many there are.
pub(crate) const SITES: usize = 200;

pub(crate) fn name(number: usize) -> String {
    format!("site-{number}")
}

/// Creates the definition, the namespace of the operator, and the sites.
pub(crate) async fn create(client: &Client, namespace: &str) {
    let params = PostParams::default();
    let definitions = Api::all(client.clone());
    definitions.create(&params, &website::crd()).await.unwrap();
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(namespace.into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    Api::all(client.clone())
        .create(&params, &namespace)
        .await
        .unwrap();
    let sites: Api<Website> = Api::default_namespaced(client.clone());
    for number in 0..SITES {
        let spec = WebsiteSpec {
            host: format!("{}.example.com", name(number)),
            html: "<p>Empty".into(),
            replicas: 1,
            theme: Theme::default(),
        };
        let site = Website::new(&name(number), spec);
        sites.create(&params, &site).await.unwrap();
    }
}

/// Waits until all sites are as they should be, but not longer than `limit`, and says how many are not.
pub(crate) async fn until_settled(client: &Client, limit: Duration) -> usize {
    let end = Instant::now() + limit;
    loop {
        let lacking = lacking(client).await;
        if lacking == 0 || Instant::now() >= end {
            return lacking;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn lacking(client: &Client) -> usize {
    let sites: Api<Website> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let sites = sites.list(&ListParams::default()).await.unwrap();
    let maps = maps
        .list(&ListParams::default().labels(SELECTOR))
        .await
        .unwrap();
    let pages = maps
        .into_iter()
        .map(|map| (map.name_any(), map.data.unwrap_or_default()));
    let pages: BTreeMap<_, _> = pages.collect();
    let is_well = |site: &Website| {
        let told = site
            .status
            .as_ref()
            .and_then(|status| status.condition(RECONCILED));
        let serves = pages
            .get(&site.name_any())
            .and_then(|page| page.get("index.html"));
        told.is_some_and(|told| {
            told.status == "True" && told.observed_generation == site.metadata.generation
        }) && serves.is_some_and(|page| page.ends_with(&format!("\n{}\n", site.spec.html)))
    };
    let well = sites.iter().filter(|site| is_well(site)).count();
    SITES - well
}

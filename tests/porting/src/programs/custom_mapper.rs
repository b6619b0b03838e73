//! A controller whose objects name a template, which belongs to nobody.

use super::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use crate::cluster::{
    Cluster, an_hour, config_map, create, delete, during, entry, merge, serve, until,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus"
)]
struct PageSpec {
    template: String,
    title: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
struct PageStatus {
    text: String,
}

async fn reconcile(page: Arc<Page>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = page.namespace().unwrap_or_default();
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let template = maps.get_opt(&page.spec.template).await?;
    let text = template
        .and_then(|map| entry(&map, "text").map(|text| text.replace("TITLE", &page.spec.title)))
        .unwrap_or_else(|| format!("there is no template {}", page.spec.template));
    let status = PageStatus { text };
    if page.status.as_ref() != Some(&status) {
        let pages = Api::<Page>::namespaced(Client::clone(&client), &namespace);
        let patch = Patch::Merge(json!({ "status": status }));
        pages
            .patch_status(&page.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let pages = Api::<Page>::all(client.clone());
    let maps = Api::<ConfigMap>::all(client.clone());
    let controller = Controller::new(pages, watcher::Config::default());
    let store = controller.store();
    let pages_with = move |map: ConfigMap| {
        let uses = |page: &&Arc<Page>| {
            page.spec.template == map.name_any() && page.namespace() == map.namespace()
        };
        let pages = store.state();
        let concerned = pages.iter().filter(uses);
        concerned
            .map(|page| ObjectRef::from_obj(&**page))
            .collect::<Vec<_>>()
    };
    controller
        .watches(maps, watcher::Config::default(), pages_with)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(10)),
            Arc::new(client),
        )
        .for_each(|_| async {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_template_concerns_the_pages_that_name_it() {
    let cluster = Cluster::start();
    serve::<Page>(&cluster).await;
    let (pages, maps) = (cluster.api::<Page>(), cluster.api::<ConfigMap>());
    let page = |template: &str, title: &str| PageSpec {
        template: template.into(),
        title: title.into(),
    };
    create(&maps, &config_map("plain", &[("text", "TITLE")])).await;
    create(&pages, &Page::new("a", page("plain", "A"))).await;
    create(&pages, &Page::new("b", page("loud", "B"))).await;
    let shows = |text: &'static str| {
        move |page: &Page| {
            page.status
                .as_ref()
                .is_some_and(|status| status.text == text)
        }
    };

    during(run(cluster.program()), async {
        until(&pages, "a", shows("A")).await;
        until(&pages, "b", shows("there is no template loud")).await;
        an_hour().await;
        cluster.take_writes();

        create(&maps, &config_map("loud", &[("text", "TITLE!!!")])).await;
        until(&pages, "b", shows("B!!!")).await;
        merge(&maps, "loud", json!({ "data": { "text": "TITLE!" } })).await;
        until(&pages, "b", shows("B!")).await;
        delete(&maps, "loud").await;
        until(&pages, "b", shows("there is no template loud")).await;
        an_hour().await;
        assert_eq!(cluster.take_writes(), ["patch pages default/b/status"; 3]);

        merge(&maps, "plain", json!({ "data": { "text": "- TITLE -" } })).await;
        until(&pages, "a", shows("- A -")).await;
        assert_eq!(cluster.take_writes(), ["patch pages default/a/status"]);
    })
    .await;
}

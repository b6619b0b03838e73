//! A controller that renders a config map for each `Greeting` and keeps it as it was rendered.

use super::runtime::{
    controller::{Action, Controller},
    watcher,
};
use crate::cluster::{
    Cluster, an_hour, create, delete, during, entry, merge, serve, until, until_gone,
};
use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, CustomResource, Resource, ResourceExt, api::PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    word: String,
    names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the greeting comes from no server")]
    Homeless,
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

struct Context {
    client: Client,
}

fn render(greeting: &Greeting) -> Result<ConfigMap, Error> {
    let lines = greeting
        .spec
        .names
        .iter()
        .map(|name| format!("{}, {name}!", greeting.spec.word));
    let mut map = ConfigMap {
        data: Some([("text".to_owned(), lines.collect::<Vec<_>>().join("\n"))].into()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(greeting.name_any());
    let owner = greeting.controller_owner_ref(&()).ok_or(Error::Homeless)?;
    map.metadata.owner_references = Some(vec![owner]);
    Ok(map)
}

async fn reconcile(greeting: Arc<Greeting>, ctx: Arc<Context>) -> Result<Action, Error> {
    let namespace = greeting.namespace().ok_or(Error::Homeless)?;
    let maps = Api::<ConfigMap>::namespaced(ctx.client.clone(), &namespace);
    let mut wanted = render(&greeting)?;
    let name = wanted.name_any();
    match maps.get_opt(&name).await? {
        None => {
            maps.create(&PostParams::default(), &wanted).await?;
        }
        Some(found) if found.data != wanted.data => {
            wanted.metadata.resource_version = found.resource_version();
            maps.replace(&name, &PostParams::default(), &wanted).await?;
        }
        Some(_) => {}
    }
    Ok(Action::await_change())
}

fn on_error(_: Arc<Greeting>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

async fn run(client: Client) {
    let greetings = Api::<Greeting>::all(client.clone());
    let maps = Api::<ConfigMap>::all(client.clone());
    Controller::new(greetings, watcher::Config::default())
        .owns(maps, watcher::Config::default())
        .run(reconcile, on_error, Arc::new(Context { client }))
        .for_each(|_| future::ready(()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn config_maps_stay_as_rendered() {
    let cluster = Cluster::start();
    serve::<Greeting>(&cluster).await;
    let (greetings, maps) = (cluster.api::<Greeting>(), cluster.api::<ConfigMap>());
    let text = |text: &'static str| move |map: &ConfigMap| entry(map, "text") == Some(text);

    during(run(cluster.program()), async {
        let spec = GreetingSpec {
            word: "Hello".into(),
            names: vec!["Ann".into(), "Bo".into()],
        };
        create(&greetings, &Greeting::new("hello", spec)).await;
        let map = until(&maps, "hello", text("Hello, Ann!\nHello, Bo!")).await;
        assert_eq!(map.owner_references()[0].kind, "Greeting");
        assert_eq!(map.owner_references()[0].controller, Some(true));

        let change = json!({ "spec": { "names": ["Cy"] } });
        merge(&greetings, "hello", change).await;
        until(&maps, "hello", text("Hello, Cy!")).await;

        merge(&maps, "hello", json!({ "data": { "text": "Go away!" } })).await;
        until(&maps, "hello", text("Hello, Cy!")).await;

        delete(&maps, "hello").await;
        until(&maps, "hello", text("Hello, Cy!")).await;

        delete(&greetings, "hello").await;
        until_gone(&maps, "hello").await;
        an_hour().await;
    })
    .await;

    let expected = [
        "create configmaps default",
        "update configmaps default/hello",
        "update configmaps default/hello",
        "create configmaps default",
    ];
    assert_eq!(cluster.take_writes(), expected);
}

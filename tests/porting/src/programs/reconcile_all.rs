//! A controller with settings of its own; when they change, all objects are looked at again.

use super::runtime::{Controller, controller::Action, watcher};
use crate::cluster::{Cluster, an_hour, config_map, create, during, label, until};
use futures::{StreamExt, channel::mpsc, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Clone, Default)]
struct Settings(Arc<Mutex<String>>);

impl Settings {
    fn set(&self, team: &str) {
        team.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn team(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct Context {
    settings: Settings,
    api: Api<ConfigMap>,
}

/// Labels a map with the team. This never fails: what did not work is done at the next reload.
async fn assign(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, Infallible> {
    let team = ctx.settings.team();
    if label(&*map, "team") != Some(team.as_str()) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "team": team } } }));
        let params = PatchParams::default();
        let _ = ctx.api.patch(&map.name_any(), &params, &patch).await;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, settings: Settings, reloads: mpsc::Receiver<()>) {
    let api = Api::<ConfigMap>::default_namespaced(client);
    Controller::new(api.clone(), watcher::Config::default())
        .reconcile_all_on(reloads)
        .run(
            assign,
            |_, never, _| match *never {},
            Arc::new(Context { settings, api }),
        )
        .for_each(|_| future::ready(()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reload_reaches_every_object() {
    let cluster = Cluster::start();
    let api = cluster.api::<ConfigMap>();
    let names = ["a", "b", "c"];
    for name in names {
        create(&api, &config_map(name, &[])).await;
    }
    let settings = Settings::default();
    settings.set("red");
    let (mut reload, reloads) = mpsc::channel(1);
    let team = |team: &'static str| move |map: &ConfigMap| label(map, "team") == Some(team);

    during(run(cluster.program(), settings.clone(), reloads), async {
        for name in names {
            until(&api, name, team("red")).await;
        }
        settings.set("blue");
        cluster.take_writes();
        an_hour().await;
        assert!(cluster.take_writes().is_empty(), "nobody has said so");

        reload.try_send(()).expect("the controller listens");
        for name in names {
            until(&api, name, team("blue")).await;
        }
        an_hour().await;
        let mut writes = cluster.take_writes();
        writes.sort();
        let expected = names.map(|name| format!("patch configmaps default/{name}"));
        assert_eq!(writes, expected);

        // The controller goes on when nobody can reload any more.
        drop(reload);
        create(&api, &config_map("d", &[])).await;
        until(&api, "d", team("blue")).await;
    })
    .await;
}

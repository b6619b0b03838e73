//! The page of a manager with 5,000 objects in a browser: `cargo xtask ci browser` runs it.

#![allow(
    clippy::unwrap_used,
    reason = "an error here fails the test, which is all it can do"
)]

use futures::stream;
use homeostat::{
    Action, Controller, Manager,
    manager::{Server, Unit},
    watcher,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::PostParams};
use std::{env, path::PathBuf, sync::Arc, time::Duration};
use tokio::{process::Command, task::yield_now};

const OBJECTS: usize = 5_000;
const TOKEN: &str = "a-token-for-the-browser";

/// Fails for one of its objects, and tries again after an hour.
async fn reconcile(map: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, std::io::Error> {
    if map.name_any() == "map-4321" {
        return Err(std::io::Error::other("the disk is full"));
    }
    Ok(Action::await_change())
}

fn in_an_hour(_: Arc<ConfigMap>, _: &std::io::Error, _: Arc<()>) -> Action {
    Action::requeue(Duration::from_secs(3600))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_on_call_finds_the_stuck_object_and_runs_it() {
    let given = |name: &str| env::var_os(name).map(PathBuf::from);
    let (Some(modules), Some(shots)) = (given("BROWSER_MODULES"), given("BROWSER_SHOTS")) else {
        panic!("run it with `cargo xtask ci browser`, which installs what it needs");
    };
    let api = ApiServer::builder().build();
    let maps = Api::<ConfigMap>::default_namespaced(api.client());
    for number in 0..OBJECTS {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{number}"));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let all = Api::<ConfigMap>::all(api.client());
    let controller = Controller::new(all, watcher::Config::default());
    let unit = Unit::new(controller.run(reconcile, in_an_hour, Arc::new(())));
    let server = Server::on(([127, 0, 0, 1], 0).into()).token(TOKEN);
    let manager = Manager::new(api.client()).add(unit).serve(server);
    let handle = manager.handle();
    let manager = tokio::spawn(manager.stop_on(stream::pending()).run());
    let address = loop {
        match handle.address() {
            Some(address) => break address,
            None => yield_now().await,
        }
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/page.cjs");
    let output = Command::new("node")
        .args([script, &format!("http://{address}"), TOKEN])
        .arg(shots)
        .env("NODE_PATH", modules)
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    manager.abort();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "passed",
        "{told}"
    );
}

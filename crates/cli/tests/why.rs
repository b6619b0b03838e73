//! `homeostat why` against an operator that runs in this process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::stream;
use homeostat::{
    Action, Controller, Manager,
    manager::{Handle, Server, Unit},
    watcher,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use std::{net::SocketAddr, process::Output, sync::Arc, time::Duration};
use tokio::{process::Command, task::yield_now};

/// An operator that fails for the map `bad` and tries it again after an hour.
async fn operator() -> (Handle, SocketAddr) {
    let api = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(api.client());
    for name in ["good", "bad"] {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let reconcile = |map: Arc<ConfigMap>, _: Arc<()>| async move {
        if map.name_any() == "bad" {
            return Err(std::io::Error::other("the disk is full"));
        }
        Ok(Action::await_change())
    };
    let policy = |_: Arc<ConfigMap>, _: &std::io::Error, _: Arc<()>| {
        Action::requeue(Duration::from_secs(3600))
    };
    let all = Api::<ConfigMap>::all(api.client());
    let controller = Controller::new(all, watcher::Config::default());
    let controller = Unit::new(controller.run(reconcile, policy, Arc::new(())));
    let manager = Manager::new(api.client())
        .add(controller.named("maps"))
        .serve(Server::on(([127, 0, 0, 1], 0).into()))
        .stop_on(stream::pending());
    let handle = manager.handle();
    tokio::spawn(manager.run());
    let failures = |handle: &Handle| {
        let units = handle.status().units;
        units
            .iter()
            .filter_map(|unit| unit.counts)
            .map(|counts| counts.failures)
            .sum::<u64>()
    };
    while failures(&handle) == 0 || !handle.status().ready {
        yield_now().await;
    }
    let address = handle.address().unwrap();
    (handle, address)
}

async fn why(address: SocketAddr, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_homeostat"))
        .arg("why")
        .args(arguments)
        .arg("--server")
        .arg(format!("http://{address}"))
        .output()
        .await
        .unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_what_an_object_waits_for() {
    let (_handle, address) = operator().await;

    let output = why(address, &["configmap/bad"]).await;
    let text = said(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.starts_with("ConfigMap default/bad: backs off, next run in 60 min, failed once\n"),
        "{text}"
    );
    for part in [
        "last error: the disk is full\n",
        "what to do: remove the cause of the error",
        "failed: the disk is full",
    ] {
        assert!(text.contains(part), "{text}");
    }

    let output = why(address, &["maps/good"]).await;
    let text = said(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.starts_with("ConfigMap default/good: at rest\n"),
        "{text}"
    );

    let output = why(address, &["ConfigMaps/bad", "--json"]).await;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["error"], "the disk is full");

    for (arguments, expected) in [
        (
            &["configmap/nothing"] as &[_],
            "homeostat why: the cache of maps has no object default/nothing\n",
        ),
        (
            &["pod/web"],
            "is called pod or reconciles this kind; it has: maps\n",
        ),
        (
            &["configmap/bad", "--cluster"],
            "homeostat why: the cache of maps has no object bad\n",
        ),
    ] {
        let output = why(address, arguments).await;
        let text = said(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.ends_with(expected), "{text}");
    }
    let output = why(address, &["bad"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output.stderr).contains("write KIND/NAME"),
        "{output:?}"
    );
}

#[tokio::test]
async fn nobody_there_is_told_with_what_to_do() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let output = why(address, &["configmap/bad"]).await;
    let text = said(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("Connection refused") && text.contains("kubectl port-forward"),
        "{text}"
    );
}

//! Clients in another language, over HTTP: the Python client, and an operator that is written with
//! kopf. Both are unchanged programs that know nothing of this server.
//!
//! They run where a Python with the packages of `tests/python/requirements.txt` is: the one that
//! `HOMEOSTAT_PYTHON` names, or `python3`. In CI they have to run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so by a panic"
)]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::StreamExt;
use homeostat_apiserver::{ApiServer, Listening};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::process::Command;

/// A Python that has what the programs need; none where it is not.
async fn python() -> Option<PathBuf> {
    let named = std::env::var_os("HOMEOSTAT_PYTHON");
    let python = PathBuf::from(named.clone().unwrap_or_else(|| "python3".into()));
    let import = Command::new(&python)
        .args(["-c", "import kopf, kubernetes"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = import.await.is_ok_and(|status| status.success());
    let required = named.is_some() || std::env::var_os("CI").is_some();
    assert!(
        found || !required,
        "{} lacks the packages of tests/python/requirements.txt",
        python.display()
    );
    found.then_some(python)
}

/// A server that listens, its kubeconfig, and a client of the test's own.
async fn serve(name: &str) -> (Listening, PathBuf, Client) {
    let server = ApiServer::builder().build();
    let client = server.client();
    let address = ([127, 0, 0, 1], 0).into();
    let listening = server.serve(address).await.unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("config");
    std::fs::write(&kubeconfig, listening.kubeconfig()).unwrap();
    (listening, kubeconfig, client)
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(name)
}

#[tokio::test]
async fn the_python_client() {
    let Some(python) = python().await else { return };
    let (listening, kubeconfig, _) = serve("python-client").await;
    let run = Command::new(python)
        .arg(program("client.py"))
        .arg(&kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = run.await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    listening.stop().await;
}

/// Follows an object until it is as wanted, or gone where that is wanted.
async fn until(api: &Api<DynamicObject>, name: &str, done: impl Fn(Option<&Value>) -> bool) {
    let params = WatchParams::default()
        .fields(&format!("metadata.name={name}"))
        .timeout(60);
    let events = api.watch(&params, "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    let mut last = None;
    while let Some(event) = events.next().await {
        let is_done = match event.unwrap() {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let object = serde_json::to_value(object).unwrap();
                let is_done = done(Some(&object));
                last = Some(object);
                is_done
            }
            WatchEvent::Deleted(_) => done(None),
            WatchEvent::Bookmark(_) => false,
            WatchEvent::Error(error) => panic!("{error:?}"),
        };
        if is_done {
            return;
        }
    }
    panic!("{name} does not become what it should within 60 s; it is {last:#?}");
}

/// What the operator's kind is, made known to the server, and an API for it.
async fn claims(client: &Client) -> Api<DynamicObject> {
    let resource = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}/{version}"),
        kind: kind.into(),
        plural: plural.into(),
    };
    let definitions = resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let body = serde_json::from_value(definition()).unwrap();
    definitions
        .create(&PostParams::default(), &body)
        .await
        .unwrap();
    let claims = resource("kopf.example.com", "v1", "Claim", "claims");
    Api::default_namespaced_with(client.clone(), &claims)
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "claims.kopf.example.com" },
        "spec": {
            "group": "kopf.example.com",
            "scope": "Namespaced",
            "names": { "kind": "Claim", "plural": "claims", "singular": "claim" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": { "type": "object", "properties": { "size": { "type": "string" } } },
                        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    },
                } },
            }],
        },
    })
}

#[tokio::test]
async fn an_operator_with_kopf() {
    let Some(python) = python().await else { return };
    let (listening, kubeconfig, client) = serve("kopf").await;
    let claims = claims(&client).await;
    let operator = Command::new(python)
        .args(["-m", "kopf", "run", "--namespace", "default"])
        .arg(program("claims.py"))
        .env("KUBECONFIG", &kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();

    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let size = async || maps.get("a").await.unwrap().data.unwrap()["size"].clone();
    let claim = json!({
        "apiVersion": "kopf.example.com/v1",
        "kind": "Claim",
        "metadata": { "name": "a" },
        "spec": { "size": "1G" },
    });
    let claim = serde_json::from_value(claim).unwrap();
    claims.create(&PostParams::default(), &claim).await.unwrap();
    until(&claims, "a", |claim| {
        claim.and_then(|claim| claim.pointer("/status/create/map")) == Some(&json!("a"))
    })
    .await;
    assert_eq!(size().await, "1G");
    let owners = maps
        .get("a")
        .await
        .unwrap()
        .metadata
        .owner_references
        .unwrap();
    assert_eq!(owners[0].kind, "Claim");

    // The handler of the field is done when what kopf handled last says so.
    let patch = Patch::Merge(json!({ "spec": { "size": "2G" } }));
    claims
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    until(&claims, "a", |claim| {
        let handled = "/metadata/annotations/kopf.zalando.org~1last-handled-configuration";
        let handled = claim.and_then(|claim| claim.pointer(handled)?.as_str());
        handled.is_some_and(|handled| handled.contains("2G"))
    })
    .await;
    assert_eq!(size().await, "2G");

    // Its finalizer goes when the handler was there, and the child goes with its owner.
    claims.delete("a", &DeleteParams::default()).await.unwrap();
    until(&claims, "a", |claim| claim.is_none()).await;
    drop(operator);
    listening.stop().await;
}

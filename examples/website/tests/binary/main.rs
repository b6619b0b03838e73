//! The program: what it tells the person who starts it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod deploy;
mod monitoring;
mod operator;
mod signals;

use homeostat::wait::await_condition_within;
use homeostat_apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::Command,
    time::timeout,
};
use website::{Website, status::READY};

/// Longer than any machine needs.
const DEADLINE: Duration = Duration::from_secs(60);

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_website"));
    // Neither the cluster of whoever runs the tests, nor the one in which they run.
    for name in [
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "RUST_LOG",
        "HTTP_PROXY",
        "http_proxy",
    ] {
        command.env_remove(name);
    }
    command
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .kill_on_drop(true);
    command
}

fn kubeconfig(name: &str, server: SocketAddr) -> PathBuf {
    kubeconfig_of("", name, server)
}

/// The same for a user with a token.
fn kubeconfig_of(token: &str, name: &str, server: SocketAddr) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: c, cluster: {{server: \"http://{server}\"}}}}]\n\
         users: [{{name: u, user: {{token: \"{token}\"}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u, namespace: website-system}}}}]\n\
         current-context: x\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[tokio::test]
async fn it_prints_the_definition() {
    let output = program().arg("--crd").output().await.unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, include_bytes!("../../crd.yaml"));
}

#[tokio::test]
async fn without_a_kubeconfig_it_says_what_to_set() {
    let missing = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("missing.kubeconfig");
    let output = program().env("KUBECONFIG", missing).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.starts_with("website: no cluster to work in: "),
        "{text}"
    );
    assert!(text.contains("Set KUBECONFIG"), "{text}");
}

#[tokio::test]
async fn a_server_that_is_down_is_named() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let config = kubeconfig("down.kubeconfig", address);
    let output = program().env("KUBECONFIG", config).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let expected = format!("website: cannot reach http://{address}/: Connection refused");
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("Is the cluster running?"), "{text}");
}

/// Over HTTP, as with a cluster: first without the definition, then with it.
#[tokio::test]
async fn it_waits_for_the_definition_and_then_works() {
    let server = ApiServer::builder().workloads(true).build();
    let listening = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kubeconfig("up.kubeconfig", listening.address());
    let mut child = program()
        .env("KUBECONFIG", config)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut told = String::new();
    while !told.contains("waiting for it") {
        let line = timeout(DEADLINE, lines.next_line()).await;
        told += &line.unwrap().unwrap().unwrap();
    }
    assert!(
        told.contains("website --crd | kubectl apply -f -"),
        "{told}"
    );

    let client = server.client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &website::crd())
        .await
        .unwrap();
    let established = homeostat::conditions::is_crd_established();
    await_condition_within(
        definitions,
        "websites.demo.homeostat.dev",
        established,
        DEADLINE,
    )
    .await
    .unwrap();
    let site: Website = serde_saphyr::from_str(include_str!("../../site.yaml")).unwrap();
    let sites: Api<Website> = Api::default_namespaced(client);
    sites.create(&PostParams::default(), &site).await.unwrap();
    let ready = |site: Option<&Website>| {
        let status = site.and_then(|site| site.status.as_ref());
        status
            .and_then(|status| status.condition(READY))
            .is_some_and(|ready| ready.status == "True")
    };
    await_condition_within(sites, "blog", ready, DEADLINE)
        .await
        .unwrap();
    child.kill().await.unwrap();
}

//! How the program ends when it is told to.

use super::{kubeconfig, operator::Operator};
use homeostat_apiserver::{ApiServer, Fault, Listening, Rule, Verb};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, api::PostParams};
use std::{path::PathBuf, time::Duration};
use tokio::time::Instant;
use website::Website;

/// A server with a site that nobody has reconciled yet.
async fn server(name: &str) -> (ApiServer, Listening, PathBuf) {
    let server = ApiServer::builder().build();
    let client = server.client();
    let params = PostParams::default();
    let definitions = Api::all(client.clone());
    definitions.create(&params, &website::crd()).await.unwrap();
    let site: Website = serde_saphyr::from_str(website::SAMPLE).unwrap();
    let sites: Api<Website> = Api::default_namespaced(client);
    sites.create(&params, &site).await.unwrap();
    let listening = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kubeconfig(name, listening.address());
    (server, listening, config)
}

const SERVE: [&str; 1] = ["--serve=127.0.0.1:0"];

#[tokio::test]
async fn before_its_caches_are_complete_it_ends_at_once() {
    let (server, _listening, config) = server("unsynced.kubeconfig").await;
    let silent = server.faults().inject(Rule::any(), Fault::Hang);
    let mut operator = Operator::start(&config, &SERVE);
    operator.address().await;
    while silent.hits() == 0 {
        tokio::task::yield_now().await;
    }
    let told = Instant::now();
    operator.signal("TERM").await;
    let (status, said) = operator.ended().await;
    assert!(status.success(), "{status}: {said}");
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
}

#[tokio::test]
async fn a_run_that_is_under_way_ends_and_no_other_begins() {
    let (server, _listening, config) = server("draining.kubeconfig").await;
    // The run waits in its second write, and has a third one to make.
    let rule = Rule::any().verb(Verb::Patch).resource("deployments");
    let slow = server
        .faults()
        .inject(rule, Fault::Delay(Duration::from_secs(1)));
    let operator = Operator::start(&config, &SERVE);
    while slow.hits() == 0 {
        tokio::task::yield_now().await;
    }
    operator.signal("TERM").await;
    let (status, said) = operator.ended().await;
    assert!(status.success(), "{status}: {said}");
    let services: Api<Service> = Api::default_namespaced(server.client());
    assert!(
        services.get_opt("blog").await.unwrap().is_some(),
        "the run went on to its end"
    );
    assert_eq!(slow.hits(), 1, "and there was no other");
}

#[tokio::test]
async fn a_second_signal_aborts() {
    let (server, _listening, config) = server("aborting.kubeconfig").await;
    let rule = Rule::any().verb(Verb::Patch).resource("deployments");
    let stuck = server.faults().inject(rule, Fault::Hang);
    let mut operator = Operator::start(&config, &SERVE);
    while stuck.hits() == 0 {
        tokio::task::yield_now().await;
    }
    operator.signal("TERM").await;
    operator.until("manager stops").await;
    let told = Instant::now();
    operator.signal("TERM").await;
    let (status, said) = operator.ended().await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("second request to stop"), "{said}");
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
}

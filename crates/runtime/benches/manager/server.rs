//! The server process.

use homeostat_apiserver::ApiServer;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::{self, BufRead},
};

/// Serves so many config maps and secrets. It prints its address, and for each line of its input what it was asked for
/// since the one before: how often which verb and resource.
pub(crate) async fn run(counts: &[&str]) {
    let [maps, secrets] = [0, 1].map(|place: usize| counts[place].parse::<usize>().unwrap());
    let server = ApiServer::builder().build();
    let params = PostParams::default();
    let api = Api::default_namespaced(server.client());
    for number in 0..maps {
        let map = ConfigMap {
            metadata: named(number),
            data: Some(BTreeMap::from([("number".into(), number.to_string())])),
            ..ConfigMap::default()
        };
        api.create(&params, &map).await.unwrap();
    }
    let api = Api::default_namespaced(server.client());
    for number in 0..secrets {
        let secret = Secret {
            metadata: named(number),
            data: Some(BTreeMap::from([("key".into(), ByteString(vec![7; 1000]))])),
            ..Secret::default()
        };
        api.create(&params, &secret).await.unwrap();
    }
    drop(server.requests().take());
    let listening = server.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
    println!("{}", listening.address());
    let asked = || {
        io::stdin()
            .lock()
            .lines()
            .next()
            .is_some_and(|line| line.is_ok())
    };
    while tokio::task::spawn_blocking(asked).await.unwrap() {
        let mut counts = BTreeMap::<String, usize>::new();
        for request in server.requests().take() {
            let verb = format!("{:?}", request.verb).to_lowercase();
            *counts
                .entry(format!("{verb} {}", request.resource))
                .or_default() += 1;
        }
        println!("{}", json!(counts));
    }
}

fn named(number: usize) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("object-{number}")),
        ..ObjectMeta::default()
    }
}

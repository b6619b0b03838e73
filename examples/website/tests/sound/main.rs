//! The checker's verdict on the operator.

mod mutations;

use homeostat::client::Tracked;
use homeostat_testing::Scenario;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::sync::Arc;
use website::{Config, Context, Website, dns::InMemoryDns};

fn context(client: Client, dns: Arc<InMemoryDns>) -> Arc<Context> {
    let client = Tracked::wrap(client);
    Arc::new(Context::new(client, dns, Config::default()))
}

/// The operator that is checked.
fn operator() -> Scenario<InMemoryDns> {
    Scenario::with_external(InMemoryDns::default).controller_with(|client, dns| {
        let ctx = context(client, dns);
        website::controller(website::watches(&ctx), ctx)
    })
}

/// What its users do: a site, a change of its page, and one more pod.
fn with_users(operator: Scenario<InMemoryDns>) -> Scenario<InMemoryDns> {
    operator
        .crd::<Website>()
        .ledger(|dns| json!(dns.owner_of("blog.example.com")))
        .workloads(true)
        .given(&website::SAMPLE.replace("  namespace: default\n", ""))
        .step("another page", |client| {
            patch(client, json!({ "html": "<p>New" }))
        })
        .step("more pods", |client| {
            patch(client, json!({ "replicas": 3 }))
        })
}

async fn patch(client: Client, spec: Value) -> kube::Result<()> {
    let sites: Api<Website> = Api::default_namespaced(client);
    let patch = Patch::Merge(json!({ "spec": spec }));
    sites
        .patch("blog", &PatchParams::default(), &patch)
        .await
        .map(drop)
}

#[test]
fn it_converges_whatever_happens() {
    let report = with_users(operator()).check();
    println!("{report}");
    report.assert_sound();
}

//! The checker's verdict on the operator.

use homeostat::client::Tracked;
use homeostat_testing::Scenario;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::sync::Arc;
use website::{Config, Context, Website, dns::InMemoryDns};

/// A site, a change of its page, and one more pod.
fn scenario() -> Scenario<InMemoryDns> {
    Scenario::with_external(InMemoryDns::default)
        .crd::<Website>()
        .controller_with(|client, dns| {
            let client = Tracked::wrap(client);
            let ctx = Arc::new(Context::new(client, dns, Config::default()));
            website::controller(website::watches(&ctx), ctx)
        })
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

async fn patch(client: kube::Client, spec: Value) -> kube::Result<()> {
    let sites: Api<Website> = Api::default_namespaced(client);
    let patch = Patch::Merge(json!({ "spec": spec }));
    sites
        .patch("blog", &PatchParams::default(), &patch)
        .await
        .map(drop)
}

#[test]
fn it_converges_whatever_happens() {
    let report = scenario().check();
    println!("{report}");
    report.assert_sound();
}

//! The checker's verdict on the operator.

mod mutations;

use homeostat::client::Tracked;
use homeostat_testing::{Scenario, State};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tenant::{Context, SAMPLE, Tenant};

/// A namespace of somebody else with a name that a tenant could ask for.
const FOREIGN: &str =
    "{ apiVersion: v1, kind: Namespace, metadata: { name: acme-legacy, labels: { team: x } } }";

fn context(client: Client) -> Arc<Context> {
    Arc::new(Context::new(Tracked::wrap(client)))
}

/// The operator that is checked.
fn operator() -> Scenario {
    Scenario::new().controller(|client| tenant::controller(context(client)))
}

/// What its users do: members and namespaces come and go, and a tenant asks for a namespace that is somebody else's.
fn with_users(operator: Scenario) -> Scenario {
    operator
        .crd::<Tenant>()
        .existing(FOREIGN)
        .given(SAMPLE)
        .step("members come and go", |client| {
            patch(
                client,
                json!({ "members": [
                { "name": "bob", "role": "editor" }, { "name": "alice", "role": "editor" },
            ] }),
            )
        })
        .step(
            "a namespace goes, and one is asked for that is taken",
            |client| {
                patch(
                    client,
                    json!({ "namespaces": ["legacy", "dev"], "quota": { "pods": 5 } }),
                )
            },
        )
        .invariant("nobody is in a namespace without fences", fences_stand)
        .transition(
            "what belongs to others stays as it is",
            others_are_left_alone,
        )
}

async fn patch(client: Client, spec: Value) -> kube::Result<()> {
    let tenants: Api<Tenant> = Api::all(client);
    let patch = Patch::Merge(json!({ "spec": spec }));
    tenants
        .patch("acme", &PatchParams::default(), &patch)
        .await
        .map(drop)
}

fn is_owned(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["kind"] == "Tenant"))
}

fn fences_stand(state: &State) -> Result<(), String> {
    let bindings = state
        .objects()
        .filter(|(id, _)| id.resource.starts_with("rolebindings."));
    for (id, binding) in bindings.filter(|(_, binding)| is_owned(binding)) {
        let namespace = &id.namespace;
        let home = state.get("namespaces", "", namespace);
        if home.is_none_or(|home| home["metadata"]["deletionTimestamp"].is_string()) {
            continue;
        }
        for fence in [
            "resourcequotas",
            "limitranges",
            "networkpolicies.networking.k8s.io",
        ] {
            if state.get(fence, namespace, "tenant").is_none() {
                return Err(format!(
                    "{namespace} has no {fence}, and lets in {}",
                    binding["subjects"]
                ));
            }
        }
    }
    Ok(())
}

fn others_are_left_alone(before: &State, after: &State) -> Result<(), String> {
    let namespaces = before
        .objects()
        .filter(|(id, _)| id.resource == "namespaces");
    for (id, namespace) in namespaces.filter(|(_, namespace)| !is_owned(namespace)) {
        if after.get("namespaces", "", &id.name) != Some(namespace) {
            return Err(format!("{} is changed", id.name));
        }
    }
    let inside = after
        .objects()
        .filter(|(id, _)| id.namespace == "acme-legacy");
    match inside.into_iter().find(|(_, object)| is_owned(object)) {
        Some((id, _)) => Err(format!("{id} is made where it does not belong")),
        None => Ok(()),
    }
}

/// How many plans are run each time. All of them, which are some hundred:
/// `HOMEOSTAT_BUDGET=2000 cargo test -p tenant --test sound it_converges`.
const BUDGET: usize = 40;

#[test]
fn it_converges_whatever_happens() {
    let report = with_users(operator()).budget(BUDGET).check();
    println!("{report}");
    report.assert_sound();
}

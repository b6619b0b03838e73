//! The checker's verdict on the operator.

mod mutations;

use database::{Context, Database};
use homeostat::client::Tracked;
use homeostat_testing::{Scenario, State};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The class of the volumes.
const STORAGE_CLASS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: standard }
provisioner: example.com/volumes
allowVolumeExpansion: true
";

/// The checker lets days pass, and each would have a backup, as it should be. So this one has one a month.
const GIVEN: &str = "
apiVersion: demo.homeostat.dev/v1
kind: Database
metadata: { name: orders }
spec: { storage: 10Gi, storageClass: standard, backup: { everyHours: 720 } }
";

fn context(client: Client) -> Arc<Context> {
    Arc::new(Context::new(Tracked::wrap(client)))
}

/// The operator that is checked.
fn operator() -> Scenario {
    Scenario::new().controller(|client| database::controller(context(client)))
}

/// What its users do: a database that grows, gets another member and loses it, and whose owner once asks for less than
/// there is.
fn with_users(operator: Scenario) -> Scenario {
    operator
        .crd::<Database>()
        .workloads(true)
        // Nobody can take the deletion of a claim back, and it goes when its pod does.
        .expendable("persistentvolumeclaims")
        .existing(STORAGE_CLASS)
        .given(GIVEN)
        .step("larger, and one more", |client| {
            patch(client, json!({ "storage": "20Gi", "replicas": 2 }))
        })
        .step("smaller", |client| {
            patch(client, json!({ "storage": "5Gi" }))
        })
        .step("larger after all, and one less", |client| {
            patch(client, json!({ "storage": "20Gi", "replicas": 1 }))
        })
        .transition("the password stays", password_stays)
        .transition("a volume goes only after its backup", volumes_are_backed_up)
        .transition(
            "a database goes only after its backup",
            databases_are_backed_up,
        )
        .transition("no volume shrinks", volumes_do_not_shrink)
}

async fn patch(client: Client, spec: Value) -> kube::Result<()> {
    let databases: Api<Database> = Api::default_namespaced(client);
    let patch = Patch::Merge(json!({ "spec": spec }));
    databases
        .patch("orders", &PatchParams::default(), &patch)
        .await
        .map(drop)
}

fn database(state: &State) -> Option<&Value> {
    state.get("databases.demo.homeostat.dev", "check", "orders")
}

fn claims(state: &State) -> impl Iterator<Item = (&str, &Value)> {
    let claims = state
        .objects()
        .filter(|(id, _)| id.resource == "persistentvolumeclaims");
    claims.map(|(id, claim)| (id.name.as_str(), claim))
}

fn has_succeeded(state: &State, job: &str) -> bool {
    let job = state.get("jobs.batch", "check", job);
    let conditions = job.and_then(|job| job["status"]["conditions"].as_array());
    let is_complete = |one: &Value| one["type"] == "Complete" && one["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(is_complete))
}

fn password_stays(before: &State, after: &State) -> Result<(), String> {
    let secret =
        |state: &State| Some(state.get("secrets", "check", "orders-login")?["data"].clone());
    match (secret(before), secret(after)) {
        (Some(old), Some(new)) if old != new => Err("it is another one".to_owned()),
        (Some(_), None) if database(after).is_some() => Err("it is gone".to_owned()),
        _ => Ok(()),
    }
}

fn volumes_are_backed_up(before: &State, after: &State) -> Result<(), String> {
    if database(after).is_none() {
        return Ok(());
    }
    let is_going = |claim: &Value| claim["metadata"]["deletionTimestamp"].is_string();
    for (name, _) in claims(before).filter(|(_, claim)| !is_going(claim)) {
        let now = after.get("persistentvolumeclaims", "check", name);
        let number = name.rsplit('-').next().unwrap_or_default();
        let backup = format!("orders-backup-before-removal-{number}");
        if now.is_none_or(is_going) && !has_succeeded(before, &backup) {
            return Err(format!("{name} goes without one"));
        }
        let pod = before.get("pods", "check", &format!("orders-{number}"));
        if now.is_none_or(is_going) && pod.is_some() {
            return Err(format!("{name} goes while its pod is there"));
        }
    }
    Ok(())
}

fn databases_are_backed_up(before: &State, after: &State) -> Result<(), String> {
    let gone = database(before).is_some() && database(after).is_none();
    let had_volumes = claims(before).next().is_some();
    if gone && had_volumes && !has_succeeded(before, "orders-backup-before-deletion") {
        return Err("it goes without one".to_owned());
    }
    Ok(())
}

fn volumes_do_not_shrink(before: &State, after: &State) -> Result<(), String> {
    for (name, claim) in claims(before) {
        let size = |claim: &Value| {
            let size = claim["spec"]["resources"]["requests"]["storage"].as_str();
            size.and_then(|size| size.trim_end_matches("Gi").parse::<u32>().ok())
        };
        let now = after.get("persistentvolumeclaims", "check", name);
        let is_same = |now: &&Value| now["spec"]["volumeName"] == claim["spec"]["volumeName"];
        if let Some(now) = now.filter(is_same)
            && size(now) < size(claim)
        {
            return Err(format!("{name} shrinks"));
        }
    }
    Ok(())
}

/// How many plans are run each time. All of them, which are some hundred:
/// `HOMEOSTAT_BUDGET=2000 cargo test -p database --test sound it_converges`.
const BUDGET: usize = 40;

#[test]
fn it_converges_whatever_happens() {
    let report = with_users(operator()).budget(BUDGET).check();
    println!("{report}");
    report.assert_sound();
}

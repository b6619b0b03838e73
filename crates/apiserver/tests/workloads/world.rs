//! A server with workloads, and what tests do with it.

use std::time::Duration;

use homeostat_apiserver::{ApiServer, TokioClock};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) server: ApiServer,
    client: kube::Client,
}

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        let server = ApiServer::builder()
            .workloads(true)
            .clock(TokioClock::default())
            .build();
        let client = server.client();
        Self { server, client }
    }

    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ControllerRevision" => {
                ("apps", "v1")
            }
            "Job" | "CronJob" => ("batch", "v1"),
            _ => ("", "v1"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if ["Node", "PersistentVolume"].contains(&kind) {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::default_namespaced_with(self.client.clone(), &resource)
        }
    }

    pub(crate) async fn create(&self, kind: &str, name: &str, spec: Value) -> Value {
        let metadata = json!({ "name": name });
        self.create_with(kind, metadata, spec).await
    }

    pub(crate) async fn create_with(&self, kind: &str, metadata: Value, spec: Value) -> Value {
        let mut object = json!({});
        object["metadata"] = metadata;
        object["spec"] = spec;
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created = self.api(kind).create(&PostParams::default(), &object).await;
        json!(created.unwrap())
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        self.api(kind).patch(name, &params, &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str, params: &DeleteParams) {
        self.api(kind).delete(name, params).await.unwrap();
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        json!(self.api(kind).get(name).await.unwrap())
    }

    /// All objects of a kind by name.
    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default()).await.unwrap();
        list.items.iter().map(|object| json!(object)).collect()
    }

    pub(crate) async fn names(&self, kind: &str) -> Vec<String> {
        let list = self.list(kind).await;
        list.iter()
            .map(|one| one["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Lets everything happen that is due.
    pub(crate) async fn settle(&self) {
        self.pass(0).await;
    }

    /// Lets so many seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        let rest = Duration::from_millis(20);
        tokio::time::sleep(Duration::from_secs(seconds) + rest).await;
    }
}

/// A template whose pods have this label.
pub(crate) fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "c", "image": image }] },
    })
}

/// Status and reason of a condition.
pub(crate) fn condition(object: &Value, kind: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == kind);
    let text = |member: &str| {
        let text = found.and_then(|one| one[member].as_str());
        text.unwrap_or_default().to_owned()
    };
    (text("status"), text("reason"))
}

#[track_caller]
pub(crate) fn assert_condition(object: &Value, kind: &str, status: &str, reason: &str) {
    let expected = (status.to_owned(), reason.to_owned());
    assert_eq!(condition(object, kind), expected, "{object:#}");
}

/// The numbers at these members of the status; 0 where there is none.
pub(crate) fn numbers<const N: usize>(object: &Value, members: [&str; N]) -> [i64; N] {
    members.map(|member| object["status"][member].as_i64().unwrap_or_default())
}

/// Whether an object is owned by exactly this one, which looks after it.
#[track_caller]
pub(crate) fn assert_owner(object: &Value, kind: &str, name: &str) {
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "{owners:?}");
    let owner = &owners[0];
    assert_eq!(
        (
            &owner["kind"],
            &owner["name"],
            &owner["controller"],
            &owner["blockOwnerDeletion"]
        ),
        (&json!(kind), &json!(name), &json!(true), &json!(true))
    );
}

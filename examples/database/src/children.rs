//! The objects that a database should have. Pure functions of the database.
//!
//! Names follow from the name of the database, so that a reconcile that is interrupted and begins anew finds what it made
//! before. Nothing in here depends on the time or on chance: the password comes from outside, and is made once.

use crate::Database;
use homeostat::children::name;
use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, Secret, Service},
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// In whose name the operator writes. What it once applied and applies no more is removed.
pub const MANAGER: &str = "database";

/// Selects the children of all databases.
pub const SELECTOR: &str = "app.kubernetes.io/managed-by=database";

/// Where the data is.
const DATA: &str = "data";

/// The password. It is made once.
#[must_use]
pub fn login(db: &Database, password: &str) -> Secret {
    let content = json!({ "stringData": { "username": "postgres", "password": password } });
    child(db, &login_name(db), content)
}

/// One address for each member.
#[must_use]
pub fn service(db: &Database) -> Service {
    let spec = json!({
        "clusterIP": "None",
        "selector": labels(db),
        "ports": [{ "name": "postgres", "port": 5432, "targetPort": "postgres", "protocol": "TCP" }],
    });
    child(db, &db.name_any(), json!({ "spec": spec }))
}

/// The members. How many there are is not always what the user wants: a member whose volume is to go stays until there
/// is a backup.
#[must_use]
pub fn members(db: &Database, replicas: i32) -> StatefulSet {
    let container = json!({
        "name": "postgres",
        "image": format!("postgres:{}", db.spec.version),
        "ports": [{ "name": "postgres", "containerPort": 5432, "protocol": "TCP" }],
        "env": [{
            "name": "POSTGRES_PASSWORD",
            "valueFrom": { "secretKeyRef": { "name": login_name(db), "key": "password" } },
        }],
        "volumeMounts": [{ "name": DATA, "mountPath": "/var/lib/postgresql" }],
        "readinessProbe": { "exec": { "command": ["pg_isready", "--username=postgres"] } },
    });
    // Nobody can change this template once the set is there, so nothing that may change is in it. The size in particular
    // is not: the operator makes the claims itself, before the pods, and lets them grow. A claim that the set makes all the
    // same, because somebody has deleted the one that was there, grows like any other.
    let template = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": DATA, "labels": labels(db) },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": db.spec.storage_class,
            "volumeMode": "Filesystem",
        },
        "status": { "phase": "Pending" },
    });
    let spec = json!({
        "replicas": replicas,
        "serviceName": db.name_any(),
        "selector": { "matchLabels": labels(db) },
        "template": {
            "metadata": { "labels": labels(db) },
            "spec": { "containers": [container] },
        },
        "volumeClaimTemplates": [template],
    });
    child(db, &db.name_any(), json!({ "spec": spec }))
}

/// The claim of a member's volume. The stateful set expects it under this name.
#[must_use]
pub fn claim(db: &Database, ordinal: i32, size: &Quantity) -> PersistentVolumeClaim {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": size } },
        "storageClassName": db.spec.storage_class,
    });
    let name = format!("{DATA}-{}", member_name(db, ordinal));
    child(db, &name, json!({ "spec": spec }))
}

/// The number of the member whose volume has this name.
#[must_use]
pub fn ordinal(db: &Database, claim: &str) -> Option<i32> {
    let number = claim.strip_prefix(&format!("{DATA}-{}-", db.name_any()))?;
    number.parse().ok()
}

/// The name of a member's pod.
#[must_use]
pub fn member_name(db: &Database, ordinal: i32) -> String {
    format!("{}-{ordinal}", db.name_any())
}

/// The name of the Secret with the password.
#[must_use]
pub fn login_name(db: &Database) -> String {
    name(&db.name_any(), "login")
}

/// Selects the children of one database.
#[must_use]
pub fn selector(db: &Database) -> String {
    format!("{SELECTOR},app.kubernetes.io/instance={}", db.name_any())
}

/// An object with name and labels. In which namespace it is and who owns it is seen to when it is applied.
pub(crate) fn child<K: DeserializeOwned>(db: &Database, name: &str, mut content: Value) -> K {
    content["metadata"]["name"] = json!(name);
    content["metadata"]["labels"] = labels(db);
    serde_json::from_value(content).expect("the manifests of this crate fit, as its tests show")
}

/// These select pods, and the selector of a stateful set can never be changed: nothing that may change belongs in here.
fn labels(db: &Database) -> Value {
    json!({
        "app.kubernetes.io/name": "database",
        "app.kubernetes.io/instance": db.name_any(),
        "app.kubernetes.io/managed-by": MANAGER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can never be changed in a stateful set stays the same whatever the user changes.
    #[test]
    fn what_cannot_be_changed_does_not_change() {
        let before: Database = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        let mut after = before.clone();
        after.spec.version = "18".into();
        after.spec.replicas = 5;
        after.spec.storage = Quantity("20Gi".into());
        let fixed = |db: &Database| {
            let spec = members(db, db.spec.replicas).spec.unwrap();
            (
                spec.selector,
                spec.volume_claim_templates,
                spec.service_name,
            )
        };
        assert_ne!(members(&before, 2), members(&after, 5));
        assert_eq!(fixed(&before), fixed(&after));
    }

    #[test]
    fn a_claim_tells_its_member() {
        let db: Database = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        let name = claim(&db, 3, &db.spec.storage).name_any();
        assert_eq!(name, "data-orders-3");
        assert_eq!(ordinal(&db, &name), Some(3));
        assert_eq!(ordinal(&db, "data-orders-archive-3"), None);
    }
}

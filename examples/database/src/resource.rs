//! The custom resource: what users write, and what they read back.

use k8s_openapi::{
    apimachinery::pkg::api::resource::Quantity,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Whatever the schema can check is checked by the schema: the API server then refuses the object, and its author sees why
// at once. The name is that of pods and labels, which take fewer letters than other names. (This is no documentation
// comment, because those are the descriptions in the schema, which `kubectl explain` shows to users.)
/// What a user asks for.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.homeostat.dev",
    version = "v1",
    kind = "Database",
    namespaced,
    status = "DatabaseStatus",
    shortname = "db",
    derive = "PartialEq",
    doc = "A PostgreSQL server with volumes and backups.",
    validation = Rule::new("size(self.metadata.name) <= 40").message("the name has at most 40 letters"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name is made of lower-case letters, digits and dashes, and begins with a letter"),
    validation = Rule::new(
        "has(self.spec.storageClass) == has(oldSelf.spec.storageClass) && \
         (!has(self.spec.storageClass) || self.spec.storageClass == oldSelf.spec.storageClass)"
    )
    .message("spec.storageClass cannot be changed"),
    printcolumn(name = "Members", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".status.storage"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Last backup", type_ = "date", json_path = ".status.lastBackup")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// The major version of the server.
    #[serde(default = "default_version")]
    #[schemars(regex(pattern = r"^[1-9][0-9]?$"))]
    pub version: String,
    /// How many members there are. Each has a volume of its own.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,
    /// The size of each volume, such as `10Gi`. It can grow, and never shrinks.
    #[schemars(schema_with = "size_schema")]
    pub storage: Quantity,
    /// The class of the volumes; that of the cluster by default. It has to allow volumes to grow, and cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// When backups are made, and how many are kept.
    #[serde(default)]
    pub backup: Backup,
}

/// When backups are made, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backup {
    /// The time from one backup to the next, in hours. The first is made as soon as the database is ready.
    #[schemars(range(min = 1, max = 8760))]
    pub every_hours: i32,
    /// How many backups that succeeded are kept.
    #[schemars(range(min = 1, max = 100))]
    pub keep: i32,
    /// Whether a last backup is made when the database is deleted. The database stays until it has succeeded.
    pub on_deletion: bool,
}

// There is no time in here that moves by itself, such as that of the latest reconcile: a status that differs after each run
// would be written after each run.
/// What the operator tells the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// How many members serve.
    pub ready_replicas: Option<i32>,
    /// The size that all volumes have.
    pub storage: Option<Quantity>,
    /// For which time the latest backup that succeeded was made.
    pub last_backup: Option<Time>,
    /// `Ready`: all members serve the wanted version. `Scaled`: there are no more members than wanted. `Resized`: all
    /// volumes have the wanted size. `BackedUp`: the latest backup has succeeded. `Reconciled`: the last reconcile went
    /// well.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

fn default_version() -> String {
    "17".into()
}

const fn default_replicas() -> i32 {
    1
}

/// A quantity in the few forms that people write sizes in.
fn size_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "pattern": "^[1-9][0-9]{0,5}(Mi|Gi|Ti)$" })
}

/// The definition of the custom resource, for `kubectl apply -f -`.
///
/// # Errors
///
/// When it cannot be written as YAML, which no definition is known to cause.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(&Database::crd())
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            every_hours: 24,
            keep: 7,
            on_deletion: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_with_the_definition_is_the_generated_one() {
        assert_eq!(
            crd_yaml().unwrap(),
            include_str!("../crd.yaml"),
            "write it anew: cargo run -p database -- --crd > examples/database/crd.yaml"
        );
    }

    #[test]
    fn the_sample_is_a_database() {
        let database: Database = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        assert_eq!(database.spec.backup, Backup::default());
        assert_eq!(database.status, None);
    }
}

//! The custom resource: what users write, and what they read back.

use k8s_openapi::{
    apimachinery::pkg::api::resource::Quantity, apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Whatever the schema can check is checked by the schema. (This is no documentation comment, because those are the
// descriptions in the schema, which `kubectl explain` shows to users.)
/// What an administrator of the cluster gives a tenant.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.homeostat.dev",
    version = "v1",
    kind = "Tenant",
    status = "TenantStatus",
    derive = "PartialEq",
    doc = "Somebody who has namespaces of the cluster, with members and limits.",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,28}[a-z0-9])?$')").message(
        "the name has at most 30 lower-case letters, digits and dashes, and begins with a letter"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// The last parts of the names of the namespaces: `dev` of the tenant `acme` is `acme-dev`. A namespace that is not
    /// in this list any more is deleted, with everything in it.
    #[schemars(
        length(max = 50),
        inner(regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub namespaces: Vec<String>,
    /// Who may work in them.
    #[serde(default)]
    #[schemars(
        length(max = 500),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "name"])
    )]
    pub members: Vec<Member>,
    /// What each namespace may use at most.
    #[serde(default)]
    pub quota: Quota,
    /// Namespaces of others whose pods may reach those of the tenant, such as that of an ingress controller.
    #[serde(default)]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub ingress_from: Vec<String>,
}

/// Somebody who may work in the namespaces of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Whether it is one person or all of a group.
    #[serde(default)]
    pub kind: MemberKind,
    /// The name that the cluster's authentication gives.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What they may do.
    pub role: Role,
}

/// Whether a member is one person or all of a group.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MemberKind {
    /// One person.
    #[default]
    User,
    /// All of a group.
    Group,
}

/// What a member may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Work with everything but the fences.
    Editor,
    /// Look at everything but Secrets.
    Viewer,
}

/// What a namespace may use at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quota {
    /// Processors, as all containers together ask for.
    #[schemars(schema_with = "quantity_schema")]
    pub cpu: Quantity,
    /// The same for memory.
    #[schemars(schema_with = "quantity_schema")]
    pub memory: Quantity,
    /// How many pods there are.
    #[schemars(range(min = 0))]
    pub pods: i32,
}

/// What the operator tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// The namespaces that the tenant has.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
    /// `Ready` says whether the tenant has all its namespaces, `Reconciled` whether the last reconcile went well, and if
    /// not, why.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A quantity in the few forms that people write limits in.
fn quantity_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "pattern": "^[0-9]{1,9}(m|Mi|Gi|Ti)?$" })
}

/// The definition of the custom resource, for `kubectl apply -f -`.
///
/// # Errors
///
/// When it cannot be written as YAML, which no definition is known to cause.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(&Tenant::crd())
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            cpu: Quantity("2".into()),
            memory: Quantity("4Gi".into()),
            pods: 10,
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
            "write it anew: cargo run -p tenant -- --crd > examples/tenant/crd.yaml"
        );
    }

    #[test]
    fn the_sample_is_a_tenant() {
        let tenant: Tenant = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        assert_eq!(tenant.spec.members[0].kind, MemberKind::User);
        assert_eq!(tenant.status, None);
    }
}

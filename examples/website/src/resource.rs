//! The custom resource: what users write, and what they read back.

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Whatever the schema can check is checked by the schema: the API server then refuses the object, and
// its author sees why at once. `validate` has the rest. (This is no documentation comment, because
// those are the descriptions in the schema, which `kubectl explain` shows to users.)
/// What a user asks for.
#[expect(
    clippy::duplicated_attributes,
    reason = "several columns have the same type, and clippy takes them for one"
)]
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.homeostat.dev",
    version = "v1",
    kind = "Website",
    namespaced,
    status = "WebsiteStatus",
    shortname = "site",
    derive = "PartialEq",
    doc = "A page, served by pods behind a service, under a host name.",
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reconciled",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Reconciled")].reason"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    /// The name under which the site is reached, as `blog.example.com`.
    pub host: String,
    /// The page: what goes into the body of its HTML.
    #[schemars(length(max = 100_000))]
    pub html: String,
    /// How many pods serve the page.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The colours of the page.
    #[serde(default)]
    pub theme: Theme,
}

/// The colours of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Theme {
    /// Dark on light.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

// There is no time in here that moves by itself, as that of the latest reconcile: a status that differs
// after each run would be written after each run.
/// What the operator tells the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Where the site is reached.
    pub url: Option<String>,
    /// How many pods can serve the page.
    pub ready_replicas: Option<i32>,
    /// `Ready` says whether the pods serve the newest page, `Reconciled` whether the last reconcile went well, and
    /// if not, why.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

const fn default_replicas() -> i32 {
    1
}

/// The definition of the custom resource.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    Website::crd()
}

/// The definition of the custom resource, for `kubectl apply -f -`.
///
/// # Errors
///
/// When it cannot be written as YAML, which no definition is known to cause.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(&crd())
}

impl WebsiteStatus {
    /// The condition of this type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_with_the_definition_is_the_generated_one() {
        let generated = crd_yaml().unwrap();
        assert_eq!(
            generated,
            include_str!("../crd.yaml"),
            "write it anew: cargo run -p website -- --crd > examples/website/crd.yaml"
        );
        let read: CustomResourceDefinition = serde_saphyr::from_str(&generated).unwrap();
        assert_eq!(read, crd());
    }

    #[test]
    fn the_sample_is_a_website_with_defaults() {
        let site: Website = serde_saphyr::from_str(include_str!("../site.yaml")).unwrap();
        assert_eq!(site.metadata.name.as_deref(), Some("blog"));
        assert_eq!(site.spec.theme, Theme::Light);
        assert_eq!(site.status, None);
    }
}

//! Writing the status of an object, if it says something new.
//!
//! ```no_run
//! use homeostat::{clock, conditions::{self, NewCondition}, status};
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use kube::{Api, CustomResource};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
//! #[kube(status = "SiteStatus")]
//! struct SiteSpec {
//!     host: String,
//! }
//!
//! #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
//! struct SiteStatus {
//!     url: Option<String>,
//!     #[serde(default)]
//!     conditions: Vec<Condition>,
//! }
//!
//! async fn observe(sites: &Api<Site>, site: &Site, served: bool) -> Result<bool, kube::Error> {
//!     let mut desired = SiteStatus {
//!         url: Some(format!("https://{}", site.spec.host)),
//!         ..SiteStatus::default()
//!     };
//!     let serving = NewCondition::new("Serving", served, "Probed");
//!     conditions::set(&mut desired.conditions, serving, clock::now());
//!
//!     // Sends nothing if the status says this already, in whatever order.
//!     status::patch(sites, site, &desired).await
//! }
//! ```

mod write;

pub(crate) use self::write::merge;

use crate::target::Target;
use homeostat_core::compare::Shape;
use kube::{Api, Resource};
use serde::Serialize;
use serde_json::Value;

/// Makes the status of an object be `desired`, with a merge patch. Returns whether a request was sent;
/// none is if nothing differs.
///
/// `desired` is the whole status as far as this program knows it: what stands in `obj` and not in
/// `desired` is removed. What the type of `obj` does not know stays.
///
/// # Guarantees
///
/// - What the server makes no difference between is equal: null and absent, the order of
///   conditions. [`Writer`] knows more of it. Absent, `""`, `[]` and `{}` do differ, because custom
///   resources keep them apart.
/// - A condition whose status is the same keeps its `lastTransitionTime`, whatever `desired` says.
/// - Conditions of types that `desired` does not name stay: others write theirs to the same list. To
///   take one back, set it to [`Unknown`](crate::conditions::Status::Unknown).
/// - What others write at the same time is not lost, and another object that took the name is left
///   alone. The patch holds for the version of `obj`. If that is not the latest, the object is read
///   and the patch made anew; if it is another object, that is an error, a conflict.
///
/// # Assumptions
///
/// `api` is for the object's own namespace; not `Api::all` for objects that have one. The program may
/// get the object and patch its `status`.
///
/// # Errors
///
/// Those of the API. 404 means that the object is gone, or that its kind has no status subresource.
///
/// # Examples
///
/// ```
/// use homeostat::status;
/// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
/// use kube::Api;
///
/// /// Whether there was something to write.
/// async fn tell(api: &Api<Deployment>, web: &Deployment, ready: i32) -> Result<bool, kube::Error> {
///     let mut desired: DeploymentStatus = web.status.clone().unwrap_or_default();
///     desired.ready_replicas = Some(ready);
///     status::patch(api, web, &desired).await
/// }
/// ```
pub async fn patch<K, S>(api: &Api<K>, obj: &K, desired: &S) -> Result<bool, kube::Error>
where
    K: Resource + Clone + Serialize,
    S: Serialize + ?Sized,
{
    Writer::new().patch(api, obj, desired).await
}

/// Applies `desired` to the status of an object, as `field_manager`, by server-side apply. Returns
/// whether a request was sent; none is if nothing differs.
///
/// `desired` is what this manager says. What others say stays, what this manager said before and does
/// not say any more is removed, and what others own is taken over (`force`).
///
/// # Guarantees
///
/// What is equal and what becomes of times is as with [`patch`].
///
/// # Assumptions
///
/// - In the definition of the kind the list of conditions is a map by `type`
///   (`x-kubernetes-list-type: map`). Otherwise it belongs to one manager as a whole.
/// - `obj` comes with its `managedFields`. A controller keeps them if told
///   ([`Config::managed_fields`](crate::Config::managed_fields)). Without them nobody can see what this
///   manager owns, and an apply is sent whenever the status is not exactly `desired`.
///
/// For `api` see [`patch`].
///
/// # Errors
///
/// See [`patch`]; besides, the object has to say its `apiVersion` and `kind`.
pub async fn apply<K, S>(
    api: &Api<K>,
    obj: &K,
    desired: &S,
    field_manager: &str,
) -> Result<bool, kube::Error>
where
    K: Resource + Clone + Serialize,
    S: Serialize + ?Sized,
{
    Writer::new().apply(api, obj, desired, field_manager).await
}

/// [`patch`] and [`apply`] for a status of which more is known than JSON says: which lists are maps
/// or sets, and which texts are quantities.
///
/// A path leads from the status to a place in it: names of members with `/` before each, and `*` for
/// any member of a map or any element of a list, as in `/pools/*/addresses`. Conditions are known.
///
/// ```no_run
/// use homeostat::status;
/// use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
/// use kube::Api;
///
/// async fn resized(
///     claims: &Api<PersistentVolumeClaim>,
///     claim: &PersistentVolumeClaim,
///     desired: &PersistentVolumeClaimStatus,
/// ) -> Result<bool, kube::Error> {
///     let writer = status::Writer::new().quantity("/capacity/*").set("/accessModes");
///     writer.patch(claims, claim, desired).await
/// }
/// ```
#[derive(Debug, Clone)]
#[must_use = "it only writes when told to"]
pub struct Writer {
    shape: Shape,
}

// === impl Writer ===

impl Writer {
    /// Nothing is known but the conditions.
    pub fn new() -> Self {
        let shape = Shape::of_status();
        Self { shape }
    }

    /// The list at `path` is a map: these members tell its elements apart, and their order does not
    /// count. Where that does not hold, it does.
    pub fn list_map<S: Into<String>>(self, path: &str, keys: impl IntoIterator<Item = S>) -> Self {
        let shape = self.shape.list_map(path, keys);
        Self { shape }
    }

    /// The list at `path` is a set of scalars: their order does not count.
    pub fn set(self, path: &str) -> Self {
        let shape = self.shape.set(path);
        Self { shape }
    }

    /// What stands at `path` is a quantity: `1000m` is `1` and `1Gi` is `1024Mi`. What cannot be read
    /// as one is compared as it is.
    ///
    /// The server only rewrites quantities of built-in kinds. In a custom resource the text stays as
    /// it was written; say so there if another notation is not worth a write.
    pub fn quantity(self, path: &str) -> Self {
        let shape = self.shape.quantity(path);
        Self { shape }
    }

    /// See [`patch`].
    ///
    /// # Errors
    ///
    /// See [`patch`].
    pub async fn patch<K, S>(&self, api: &Api<K>, obj: &K, desired: &S) -> Result<bool, kube::Error>
    where
        K: Resource + Clone + Serialize,
        S: Serialize + ?Sized,
    {
        let (live, desired) = (json(obj)?, json(desired)?);
        let desired = |live: &Value| write::completed(live, desired.clone());
        let answer = merge(&Target::in_api(api, obj), &self.shape, live, desired).await?;
        Ok(answer.is_some())
    }

    /// See [`apply`].
    ///
    /// # Errors
    ///
    /// See [`patch`].
    pub async fn apply<K, S>(
        &self,
        api: &Api<K>,
        obj: &K,
        desired: &S,
        field_manager: &str,
    ) -> Result<bool, kube::Error>
    where
        K: Resource + Clone + Serialize,
        S: Serialize + ?Sized,
    {
        let (live, desired) = (json(obj)?, json(desired)?);
        let target = Target::in_api(api, obj);
        let answer = write::apply(&target, field_manager, &self.shape, live, &desired).await?;
        Ok(answer.is_some())
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Value, kube::Error> {
    serde_json::to_value(value).map_err(kube::Error::SerdeError)
}

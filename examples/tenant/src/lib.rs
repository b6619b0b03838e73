//! A sample operator that gives each tenant of a cluster namespaces of its own.
//!
//! A [`Tenant`] is a list of namespaces, a list of members, and limits. In each namespace the operator puts up fences (a
//! quota, default limits, a network policy) and then lets the members in (two roles and their bindings). Members and
//! namespaces come and go.
//!
//! Three rules guard what belongs to others:
//!
//! - A namespace that is there already is never taken over, not even if nobody owns it. The status says that it is taken.
//! - Nothing is deleted because of its name or labels, but only what this very tenant owns, by its uid.
//! - When a tenant goes, its members are let out first, and then its namespaces go. The tenant stays until they are gone.
//!
//! # Where to look for what
//!
//! - [`resource`]: what users write, and what they read back
//! - [`children`]: the objects that a tenant should have. Pure functions of the tenant.
//! - [`status`]: what to tell the user
//! - [`reconcile()`]: what is done, step by step

pub mod children;
mod context;
mod error;
pub mod reconcile;
pub mod resource;
pub mod status;

pub use self::{
    context::Context,
    error::Error,
    reconcile::{FINALIZER, RECONCILED, clean_up, reconcile},
    resource::{Member, MemberKind, Quota, Role, Tenant, TenantSpec, TenantStatus},
};

use futures::Stream;
use homeostat::{Action, Controller, error_policy, reflector::ObjectRef, watcher};
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace, ResourceQuota},
    networking::v1::NetworkPolicy,
    rbac::v1::{Role as RbacRole, RoleBinding},
};
use kube::Api;
use std::sync::Arc;

/// A tenant to try the operator with, as YAML.
pub const SAMPLE: &str = include_str!("../tenant.yaml");

/// What the controller tells of one run, or of a watch that failed.
pub type Run =
    Result<(ObjectRef<Tenant>, Action), homeostat::controller::Error<Error, watcher::Error>>;

/// Everything that makes a tenant be reconciled: itself, and whatever happens to one of its children.
#[must_use]
pub fn watches(ctx: &Context) -> Controller<Tenant> {
    let client = &ctx.client;
    let all = watcher::Config::default;
    // The cluster may have a million of each. Only those with our label are read and kept.
    let ours = || all().labels(children::SELECTOR);
    Controller::new(Api::<Tenant>::all(client.clone()), all())
        .owns(Api::<Namespace>::all(client.clone()), ours())
        .owns(Api::<ResourceQuota>::all(client.clone()), ours())
        .owns(Api::<LimitRange>::all(client.clone()), ours())
        .owns(Api::<NetworkPolicy>::all(client.clone()), ours())
        .owns(Api::<RbacRole>::all(client.clone()), ours())
        .owns(Api::<RoleBinding>::all(client.clone()), ours())
}

/// The operator as a stream that tells of each run. It works as long as the stream is polled.
pub fn controller(ctx: Arc<Context>) -> impl Stream<Item = Run> {
    watches(&ctx)
        .status_conditions(RECONCILED)
        .finalizer(FINALIZER)
        .run(reconcile, clean_up, error_policy::classified, ctx)
}

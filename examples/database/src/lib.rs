//! A sample operator that looks after data, where a mistake cannot be taken back.
//!
//! A [`Database`] is a version, a number of members and a size. The operator makes it so: a stateful set with a volume
//! for each member, a service, and a password. It makes backups by a schedule and keeps the last of them.
//!
//! What it does to volumes is guarded:
//!
//! - A volume grows. It never shrinks: a smaller size is refused in the status, and everything else goes on.
//! - A volume is only deleted when a backup has succeeded that was made for this purpose, and when no pod uses it.
//! - A database is only deleted after a last backup, unless its owner wants none.
//!
//! # Where to look for what
//!
//! What the operator decides is plain functions of plain values:
//!
//! - [`resource`]: what users write, and what they read back
//! - [`children`]: the objects that a database should have
//! - [`volumes`]: how large the volumes are to be, and which of them is not needed any more
//! - [`backup`]: which backups are due, and which are kept
//! - [`status`]: what to tell the user
//!
//! What it does is in [`reconcile()`], step by step.

pub mod backup;
pub mod children;
mod context;
mod error;
pub mod quantity;
pub mod reconcile;
pub mod resource;
pub mod status;
pub mod volumes;

pub use self::{
    context::Context,
    error::Error,
    reconcile::{FINALIZER, RECONCILED, clean_up, reconcile},
    resource::{Backup, Database, DatabaseSpec, DatabaseStatus},
};

use futures::Stream;
use homeostat::{Action, Controller, error_policy, reflector::ObjectRef, watcher};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Secret, Service},
};
use kube::Api;
use std::sync::Arc;

/// A database to try the operator with, as YAML.
pub const SAMPLE: &str = include_str!("../database.yaml");

/// What the controller tells of one run, or of a watch that failed.
pub type Run =
    Result<(ObjectRef<Database>, Action), homeostat::controller::Error<Error, watcher::Error>>;

/// Everything that makes a database be reconciled: itself, and whatever happens to one of its children.
#[must_use]
pub fn watches(ctx: &Context) -> Controller<Database> {
    let client = &ctx.client;
    let all = watcher::Config::default;
    // The cluster may have a million Secrets. Only those with our label are read and kept.
    let ours = || all().labels(children::SELECTOR);
    Controller::new(Api::<Database>::all(client.clone()), all())
        .owns(Api::<Secret>::all(client.clone()), ours())
        .owns(Api::<Service>::all(client.clone()), ours())
        .owns(Api::<PersistentVolumeClaim>::all(client.clone()), ours())
        .owns(Api::<StatefulSet>::all(client.clone()), ours())
        .owns(Api::<Job>::all(client.clone()), ours())
}

/// The operator as a stream that tells of each run. It works as long as the stream is polled.
pub fn controller(ctx: Arc<Context>) -> impl Stream<Item = Run> {
    watches(&ctx)
        .status_conditions(RECONCILED)
        .finalizer(FINALIZER)
        .run(reconcile, clean_up, error_policy::classified, ctx)
}

//! A sample operator, small enough to read in one sitting and complete enough to copy.
//!
//! A [`Website`] is a page and a host name. The operator makes it so: a config map with the page, a
//! deployment that serves it, a service in front, a secret token for previews, which is made once, and a record in
//! the [`dns`], which is no object of Kubernetes and therefore needs a finalizer.
//!
//! # Where to look for what
//!
//! What the operator decides is plain functions of plain values, with tests next to them:
//!
//! - [`resource`]: what users write, and what they read back
//! - [`validate`]: which specs nobody can make so
//! - [`children`]: the objects that a site should have
//! - [`status`]: what to tell the user
//!
//! What it does is in two files: [`reconcile()`] says what should be there, and this one when.
//! What it needs from outside is the [`Context`]; tests and the demo hand in another one.

pub mod children;
mod context;
pub mod dns;
mod error;
mod reconcile;
pub mod resource;
pub mod status;
pub mod validate;

pub use self::{
    context::{Config, Context, Metrics},
    error::{Error, error_policy},
    reconcile::{FINALIZER, RECONCILED, clean_up, reconcile},
    resource::{Theme, Website, WebsiteSpec, WebsiteStatus, crd, crd_yaml},
};

use futures::Stream;
use homeostat::{
    Action, Controller, Manager,
    manager::{Server, Unit},
    reflector::ObjectRef,
    watcher,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::Api;
use std::sync::Arc;

/// What the controller is called in its metrics and in `/readyz`.
pub const NAME: &str = "website";

/// A website to try the operator with, as YAML.
pub const SAMPLE: &str = include_str!("../site.yaml");

/// What the controller tells of one run, or of a watch that failed.
pub type Run =
    Result<(ObjectRef<Website>, Action), homeostat::controller::Error<Error, watcher::Error>>;

/// Everything that makes a site be reconciled.
///
/// The demo adds triggers of its own to it; the operator itself needs no more.
#[must_use]
pub fn watches(ctx: &Context) -> Controller<Website> {
    let client = &ctx.client;
    // The cluster may have a million config maps. Only those with our label are read and kept.
    let ours = watcher::Config::default().labels(children::SELECTOR);
    Controller::new(
        Api::<Website>::all(client.clone()),
        watcher::Config::default(),
    )
    // There is no filter on the generation here, because the reconciler compares the status: only the event of a status tells of one that somebody else has
    // written, or that is there although the answer to our write was lost. A run that has seen it puts it right.
    // Whatever happens to a child wakes the site that owns it: a change by somebody else, its
    // deletion, and the deployment's progress.
    .owns(Api::<ConfigMap>::all(client.clone()), ours.clone())
    .owns(Api::<Deployment>::all(client.clone()), ours.clone())
    .owns(Api::<Secret>::all(client.clone()), ours.clone())
    .owns(Api::<Service>::all(client.clone()), ours)
    .with_config(ctx.config.controller.clone())
}

/// The operator as a stream that tells of each run. It works as long as the stream is polled.
pub fn controller(watches: Controller<Website>, ctx: Arc<Context>) -> impl Stream<Item = Run> {
    watches
        .status_conditions(RECONCILED)
        .finalizer(FINALIZER)
        .run(reconcile, clean_up, error_policy, ctx)
}

/// The operator as a program: the controller, and its probes and metrics if there is a server for them.
///
/// Add [`leader_election`](Manager::leader_election) to run it in several replicas.
#[must_use = "nothing happens before `run`"]
pub fn manager(ctx: &Arc<Context>, server: Option<Server>) -> Manager {
    let sites = controller(watches(ctx), Arc::clone(ctx));
    let manager = Manager::new(ctx.client.clone()).add(Unit::new(sites).named(NAME));
    match server {
        Some(server) => manager.serve(server.metrics(ctx.metrics.registry())),
        None => manager,
    }
}

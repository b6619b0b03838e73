//! Say what should be there, and tell how it went.
//!
//! Nothing in here asks why it was called or what it did last time. Whatever state it finds, after a
//! crash in the middle, after somebody's edits, after a week without running, it takes the same steps,
//! and what is as it should be is left alone. Called a hundred times, it writes once.

use crate::{
    Context, Error, Website,
    children::{MANAGER, deployment, page, preview, service},
    status::{self, Observed},
    validate,
};
use homeostat::{Action, children, clock, status::patch};
use kube::{Api, ResourceExt};
use std::sync::Arc;

/// The finalizer holds a site back until its DNS record is removed. Its children need none: they name
/// their owner, and Kubernetes deletes them by itself.
pub const FINALIZER: &str = "demo.homeostat.dev/dns";

/// The condition that the controller keeps: whether the last reconcile went well, and if not, why. It says nothing of
/// the pods; that is [`READY`](status::READY), which [`reconcile`] computes.
pub const RECONCILED: &str = "Reconciled";

/// Makes one site be as its spec wants it.
///
/// # Errors
///
/// The first thing that was in the way. The controller shows it in the condition [`RECONCILED`];
/// [`error_policy`](crate::error_policy) says when to try again.
pub async fn reconcile(site: Arc<Website>, ctx: Arc<Context>) -> Result<Action, Error> {
    ctx.metrics.reconciles.inc();
    apply(&site, &ctx).await
}

/// Cleans up what Kubernetes does not. This may run more than once, and for a site that was never
/// applied.
///
/// # Errors
///
/// As with [`reconcile`]. The site stays until this succeeds.
pub async fn clean_up(site: Arc<Website>, ctx: Arc<Context>) -> Result<Action, Error> {
    ctx.metrics.reconciles.inc();
    ctx.dns.keep(uid(&site)?, None).await?;
    // Done: now the finalizer is removed, and the site goes.
    Ok(Action::await_change())
}

async fn apply(site: &Website, ctx: &Context) -> Result<Action, Error> {
    validate::site(site, &ctx.config.domain)?;
    // What others write into our fields is taken back. All other fields are left alone.
    let children = children::Set::new(&ctx.client, site, MANAGER).force();
    // The page comes first, so that pods which need it find it. That is all the order means: each
    // child is looked at by itself, and a crash in between leaves nothing behind that the next run
    // would not see.
    let page = children.apply(page(site)).await?;
    let deployment = children.apply(deployment(site)).await?;
    let service = children.apply(service(site)).await?;
    // A token must stay as it was made, so this one is only used if there is none yet.
    children
        .create(preview(site, &(ctx.config.make_token)()))
        .await?;
    ctx.dns.keep(uid(site)?, Some(&site.spec.host)).await?;
    let leaving = page.is_leaving() || deployment.is_leaving() || service.is_leaving();
    let observed = Observed {
        deployment: &deployment,
        leaving,
    };
    write_status(site, ctx, &observed).await?;
    // Children wake us when something happens to them. The DNS does not, so look from time to time.
    Ok(Action::requeue(ctx.config.resync))
}

/// Writes the status if there is something new to tell.
async fn write_status(site: &Website, ctx: &Context, observed: &Observed<'_>) -> Result<(), Error> {
    let namespace = site.namespace().unwrap_or_default();
    let sites: Api<Website> = Api::namespaced(ctx.client.clone(), &namespace);
    let desired = status::desired(site, observed, clock::now());
    match patch(&sites, site, &desired).await {
        // The site went while we worked for it. There is nobody left to tell.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

fn uid(site: &Website) -> Result<&str, Error> {
    site.metadata.uid.as_deref().ok_or(Error::NoUid)
}

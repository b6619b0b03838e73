//! Look, compare, write what differs.
//!
//! Nothing in here asks why it was called or what it did last time. Whatever state it finds, after a
//! crash in the middle, after somebody's edits, after a week without running, it takes the same steps,
//! and it leaves alone what is as it should be. Called a hundred times, it writes once.

use crate::{
    Context, Error, Website,
    children::{Children, MANAGER},
    difference::{self, Step},
    status::{self, Observed},
    validate,
};
use homeostat::{
    Action,
    finalizer::{Event, finalizer},
};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

/// The finalizer holds a site back until its DNS record is removed. Its children need none: they name
/// their owner, and Kubernetes deletes them by itself.
pub const FINALIZER: &str = "demo.homeostat.dev/dns";

/// Makes one site be as its spec wants it, or cleans up after it.
///
/// # Errors
///
/// The first thing that was in the way. It is shown in the status of the site as far as it says
/// something to its author; [`error_policy`](crate::error_policy) says when to try again.
pub async fn reconcile(site: Arc<Website>, ctx: Arc<Context>) -> Result<Action, Error> {
    ctx.metrics.count_reconcile();
    let api: Api<Website> = api_of(&*site, &ctx);
    let ctx = &*ctx;
    // The order is everything: the finalizer is written before the first record is, so there is never
    // a record without one, and it is removed after the last record is gone.
    let result = finalizer(&api, FINALIZER, Arc::clone(&site), |event| async move {
        match event {
            Event::Apply(site) => apply(&site, ctx).await,
            Event::Cleanup(site) => clean_up(&site, ctx).await,
        }
    })
    .await
    .map_err(Error::from);
    if let Err(error) = &result
        && let Some((reason, message)) = error.condition()
    {
        let message = &message;
        // If this fails too, it is what has to be tried again: a permanent error that nobody can see
        // would wait for ever.
        write_status(&site, ctx, &Observed::Failed { reason, message }).await?;
    }
    result
}

async fn apply(site: &Website, ctx: &Context) -> Result<Action, Error> {
    validate::site(site, &ctx.config.domain)?;
    let Children {
        page,
        deployment,
        service,
    } = Children::of(site);
    // The page comes first, so that pods which need it find it. That is all the order means: each
    // child is compared by itself, and a crash in between leaves nothing behind that the next run
    // would not see.
    let page = ensure(&page, ctx).await?;
    let deployment = ensure(&deployment, ctx).await?;
    let service = ensure(&service, ctx).await?;
    register_host(site, ctx).await?;

    let leaving = [page.meta(), deployment.meta(), service.meta()]
        .iter()
        .any(|child| child.deletion_timestamp.is_some());
    let observed = Observed::Applied {
        deployment: &deployment,
        leaving,
    };
    write_status(site, ctx, &observed).await?;
    // Children wake us when something happens to them. The DNS does not, so look from time to time.
    Ok(Action::requeue(ctx.config.resync))
}

/// Makes a child be as desired. Returns it as it is now.
async fn ensure<K>(desired: &K, ctx: &Context) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned + k8s_openapi::Resource,
{
    let api: Api<K> = api_of(desired, ctx);
    let name = desired.name_any();
    let live = api.get_opt(&name).await?;
    match (difference::step(live.as_ref(), desired, K::KIND)?, live) {
        (Step::Keep | Step::AwaitDeletion, Some(live)) => Ok(live),
        // Server-side apply creates the object if need be, takes back the fields that somebody else
        // changed, and leaves alone all fields that are not ours.
        (Step::Apply, _) | (Step::Keep | Step::AwaitDeletion, None) => {
            let params = PatchParams::apply(MANAGER).force();
            Ok(api.patch(&name, &params, &Patch::Apply(desired)).await?)
        }
    }
}

/// Makes the DNS have the site's host, and no other host of it: it may have had another one before.
async fn register_host(site: &Website, ctx: &Context) -> Result<(), Error> {
    let (uid, wanted) = (uid(site)?, &site.spec.host);
    let hosts = ctx.dns.hosts(uid).await?;
    if !hosts.contains(wanted) {
        ctx.dns.register(wanted, uid).await?;
    }
    for former in hosts.iter().filter(|host| *host != wanted) {
        ctx.dns.unregister(former, uid).await?;
    }
    Ok(())
}

/// Cleans up what Kubernetes does not. This may run more than once, and for a site that was never
/// applied; what is to be removed is what the DNS says is there, not what the spec says.
async fn clean_up(site: &Website, ctx: &Context) -> Result<Action, Error> {
    let uid = uid(site)?;
    for host in ctx.dns.hosts(uid).await? {
        ctx.dns.unregister(&host, uid).await?;
    }
    // Done: now the finalizer is removed, and the site goes.
    Ok(Action::await_change())
}

/// Writes the status if there is something new to tell.
async fn write_status(site: &Website, ctx: &Context, observed: &Observed<'_>) -> Result<(), Error> {
    let desired = status::desired(site, observed, Timestamp::now());
    if site.status.as_ref() == Some(&desired) {
        return Ok(());
    }
    let api: Api<Website> = api_of(site, ctx);
    let patch = Patch::Merge(json!({ "status": desired }));
    let params = PatchParams {
        field_manager: Some(MANAGER.into()),
        ..PatchParams::default()
    };
    match api.patch_status(&site.name_any(), &params, &patch).await {
        Ok(_) => Ok(()),
        // The site went while we worked for it. There is nobody left to tell.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn uid(site: &Website) -> Result<&str, Error> {
    let uid = site.metadata.uid.as_deref();
    uid.ok_or_else(|| Error::Malformed("the website has no uid".into()))
}

/// The API for objects in the namespace of `obj`.
fn api_of<K, O>(obj: &O, ctx: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    O: Resource,
{
    let namespace = obj.namespace();
    // Objects of these kinds that come from a server always have one.
    Api::namespaced(ctx.client.clone(), namespace.as_deref().unwrap_or_default())
}

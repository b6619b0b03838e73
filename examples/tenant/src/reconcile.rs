//! The steps of a reconcile.
//!
//! Each step looks at what is there and writes what differs. None asks what an earlier run did: after a crash in the middle,
//! somebody's edits or a week without running, the same steps lead to the same end.

use crate::{
    Context, Error, Tenant,
    children::{
        MANAGER, ROLES, SELECTOR, binding, limits, namespace, namespace_names, network, quota, role,
    },
    status::{self, Place},
};
use homeostat::{
    Action,
    children::{self, Set},
    clock,
    status::patch,
};
use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use std::{collections::BTreeMap, sync::Arc};

/// The finalizer holds a tenant back until its namespaces are gone.
pub const FINALIZER: &str = "demo.homeostat.dev/namespaces";

/// The condition that the controller keeps: whether the last reconcile went well, and if not, why.
pub const RECONCILED: &str = "Reconciled";

/// Makes one tenant be as its spec wants it.
///
/// # Errors
///
/// The first thing that was in the way. The controller shows it in the condition [`RECONCILED`].
pub async fn reconcile(tenant: Arc<Tenant>, ctx: Arc<Context>) -> Result<Action, Error> {
    let Some(tenant) = present(&tenant, &ctx).await? else {
        return Ok(Action::await_change());
    };
    // What others write into our fields is taken back. All other fields are left alone.
    let children = Set::new(&ctx.client, &tenant, MANAGER).force();
    let mut places = BTreeMap::new();
    for name in namespace_names(&tenant) {
        let place = ensure_namespace(&children, &tenant, &name).await?;
        if place == Place::Ours {
            // The fences are up before anybody comes in.
            fence(&children, &tenant, &name).await?;
            admit(&children, &tenant, &name).await?;
        }
        places.insert(name, place);
    }
    remove_surplus(&children).await?;
    write_status(&tenant, &ctx, &places).await?;
    Ok(next_look(&ctx, &places))
}

/// Lets the members out, deletes the namespaces, and waits until they are gone.
///
/// The garbage collector would delete them as well, but in any order, and the tenant would be gone before them: another one
/// of its name would find them half deleted.
///
/// # Errors
///
/// As with [`reconcile`]. The tenant stays until this succeeds.
pub async fn clean_up(tenant: Arc<Tenant>, ctx: Arc<Context>) -> Result<Action, Error> {
    // A set that was asked for nothing: all is surplus.
    remove_surplus(&Set::new(&ctx.client, &*tenant, MANAGER)).await?;
    if remaining(&tenant, &ctx).await? > 0 {
        return Ok(Action::requeue(ctx.poll));
    }
    Ok(Action::await_change())
}

/// The tenant as the server has it now; none if it is being deleted or gone, or another one of its name is there.
///
/// The cache may be behind, after a restart in particular, and a namespace that is deleted because of an old list does not
/// come back.
///
/// # Errors
///
/// The server does not say.
pub async fn present(tenant: &Tenant, ctx: &Context) -> Result<Option<Tenant>, Error> {
    let tenants: Api<Tenant> = Api::all(ctx.client.clone());
    let live = tenants.get_opt(&tenant.name_any()).await?;
    let is_same = |live: &Tenant| live.uid() == tenant.uid();
    Ok(live.filter(|live| is_same(live) && live.metadata.deletion_timestamp.is_none()))
}

/// Makes a namespace if there is none of this name.
///
/// # Errors
///
/// It could not be made. One that is somebody else's is no error.
pub async fn ensure_namespace(children: &Set, tenant: &Tenant, name: &str) -> Result<Place, Error> {
    // The server decides whether there is one. To apply it at once would adopt a namespace that nobody owns.
    let there = match children.create(namespace(tenant, name)).await {
        Ok(there) => there,
        Err(children::Error::Taken { .. } | children::Error::Leaving { .. }) => {
            return Ok(Place::Taken);
        }
        Err(error) => return Err(error.into()),
    };
    if there.is_leaving() {
        return Ok(Place::Leaving);
    }
    if !is_owned(tenant, &*there) {
        return Ok(Place::Taken);
    }
    // It is ours, and its labels are as they should be.
    children.apply(namespace(tenant, name)).await?;
    Ok(Place::Ours)
}

/// Limits what a namespace uses, and who reaches it.
///
/// # Errors
///
/// A child could not be applied.
pub async fn fence(children: &Set, tenant: &Tenant, namespace: &str) -> Result<(), Error> {
    children.apply(quota(tenant, namespace)).await?;
    children.apply(limits(tenant, namespace)).await?;
    children.apply(network(tenant, namespace)).await?;
    Ok(())
}

/// Lets the members into a namespace.
///
/// # Errors
///
/// A child could not be applied.
pub async fn admit(children: &Set, tenant: &Tenant, namespace: &str) -> Result<(), Error> {
    for which in ROLES {
        children.apply(role(tenant, namespace, which)).await?;
        if let Some(binding) = binding(tenant, namespace, which) {
            children.apply(binding).await?;
        }
    }
    Ok(())
}

/// Removes what the tenant has and should not have any more, in this order: first nobody comes in any more, then the
/// namespaces go. The fences go with their namespaces, so that they stand until the last pod is gone.
///
/// # Errors
///
/// Something could not be listed or deleted.
pub async fn remove_surplus(children: &Set) -> Result<(), Error> {
    children.prune::<RoleBinding>().await?;
    children.prune::<Role>().await?;
    children.prune::<Namespace>().await?;
    Ok(())
}

/// How many namespaces of a tenant there are, those that are being deleted included.
///
/// # Errors
///
/// The server does not say.
pub async fn remaining(tenant: &Tenant, ctx: &Context) -> Result<usize, Error> {
    let namespaces: Api<Namespace> = Api::all(ctx.client.clone());
    let ours = ListParams::default().labels(SELECTOR);
    let ours = namespaces.list_metadata(&ours).await?;
    Ok(ours
        .iter()
        .filter(|namespace| is_owned(tenant, *namespace))
        .count())
}

/// Writes the status if there is something new to tell.
///
/// # Errors
///
/// The server does not take it.
pub async fn write_status(
    tenant: &Tenant,
    ctx: &Context,
    places: &BTreeMap<String, Place>,
) -> Result<(), Error> {
    let tenants: Api<Tenant> = Api::all(ctx.client.clone());
    let desired = status::desired(tenant, places, clock::now());
    match patch(&tenants, tenant, &desired).await {
        // The tenant went while we worked for it. There is nobody left to tell.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

/// When to look again without being told of a change: children wake us, and namespaces of others do not.
#[must_use]
pub fn next_look(ctx: &Context, places: &BTreeMap<String, Place>) -> Action {
    if places.values().any(|place| *place == Place::Taken) {
        Action::requeue(ctx.poll)
    } else {
        Action::await_change()
    }
}

/// Whether a tenant controls an object.
fn is_owned<K: Resource>(tenant: &Tenant, object: &K) -> bool {
    let owners = object.meta().owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.any(|owner| Some(&owner.uid) == tenant.metadata.uid.as_ref())
}

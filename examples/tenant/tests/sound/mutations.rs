//! Mistakes that operators of namespaces were seen to have, built into this one. The checker finds each of them.
//!
//! A mutant is the sequence of steps of [`tenant::reconcile()`] with one step done wrongly.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each mistake changes one step and no other"
)]

use crate::{context, with_users};
use homeostat::{Action, children::Set, error_policy};
use homeostat_testing::Scenario;
use k8s_openapi::api::{
    core::v1::{Namespace, ResourceQuota},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
#[expect(
    clippy::disallowed_types,
    reason = "its order is a mistake of a mutant"
)]
use std::collections::HashMap;
use std::{collections::BTreeMap, sync::Arc};
use tenant::{
    Context, Error, FINALIZER, RECONCILED, Tenant,
    children::{MANAGER, ROLES, binding, namespace, namespace_names, quota, role},
    clean_up,
    reconcile::{admit, ensure_namespace, fence, next_look, present, remove_surplus, write_status},
    status::Place,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    Adopts,
    PrunesByName,
    HashOrder,
    MembersBeforeFences,
    BindingsStay,
    CreatesIfNoStatus,
    ReplacesWhole,
    NeverLetsGo,
    BindingsWithoutOwner,
    RemovesAllFinalizers,
}

/// Each mistake, the plans that show it, and the detector that tells of it.
const MUTATIONS: [(Mistake, &str, &str, &str); 10] = [
    (
        Mistake::Adopts,
        "LOOP",
        "INVARIANT",
        "a namespace that nobody owns is taken over",
    ),
    (
        Mistake::PrunesByName,
        "LOOP",
        "INVARIANT",
        "namespaces are deleted by the beginning of their name",
    ),
    (
        Mistake::HashOrder,
        "LOOP",
        "LOOP",
        "members come in the order of a hash map",
    ),
    (
        Mistake::MembersBeforeFences,
        "LOOP",
        "INVARIANT",
        "members come in before the fences are up",
    ),
    (
        Mistake::BindingsStay,
        "PATH",
        "PATH",
        "a role that nobody has any more keeps its binding",
    ),
    (
        Mistake::CreatesIfNoStatus,
        "CRASH",
        "CRASH",
        "a quota that is there already is an error",
    ),
    (
        Mistake::ReplacesWhole,
        "FIGHT",
        "FIGHT",
        "a namespace is replaced, with what others wrote into it",
    ),
    (
        Mistake::NeverLetsGo,
        "STUCK",
        "STUCK",
        "the finalizer is never removed",
    ),
    (
        Mistake::BindingsWithoutOwner,
        "STUCK",
        "STUCK",
        "bindings name no owner",
    ),
    (
        Mistake::RemovesAllFinalizers,
        "FIGHT",
        "FIGHT",
        "the finalizers of others are removed",
    ),
];

/// The most plans that are run for a mistake.
const BUDGET: usize = 8;

fn mutant(mistake: Mistake) -> Scenario {
    let operator = Scenario::new().controller(move |client| {
        let ctx = context(client);
        tenant::watches(&ctx)
            .status_conditions(RECONCILED)
            .finalizer(FINALIZER)
            .run(
                move |tenant, ctx| reconcile(mistake, tenant, ctx),
                move |tenant, ctx| finish(mistake, tenant, ctx),
                error_policy::classified,
                ctx,
            )
    });
    with_users(operator)
}

async fn reconcile(
    mistake: Mistake,
    cached: Arc<Tenant>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    let Some(tenant) = present(&cached, &ctx).await? else {
        return Ok(Action::await_change());
    };
    let children = Set::new(&ctx.client, &tenant, MANAGER).force();
    let mut places = BTreeMap::new();
    for name in namespace_names(&tenant) {
        let place = match mistake {
            Mistake::Adopts => {
                children.apply(namespace(&tenant, &name)).await?;
                Place::Ours
            }
            Mistake::ReplacesWhole => replace(&children, &tenant, &ctx, &name).await?,
            _ => ensure_namespace(&children, &tenant, &name).await?,
        };
        if place == Place::Ours {
            if mistake == Mistake::MembersBeforeFences {
                admit(&children, &tenant, &name).await?;
            }
            if mistake == Mistake::CreatesIfNoStatus && is_new(&tenant) {
                create_quota(&tenant, &ctx, &name).await?;
            }
            fence(&children, &tenant, &name).await?;
            match mistake {
                Mistake::HashOrder => admit_in_any_order(&children, &tenant, &name).await?,
                Mistake::BindingsWithoutOwner => {
                    admit_without_owner(&children, &tenant, &ctx, &name).await?;
                }
                _ => admit(&children, &tenant, &name).await?,
            }
        }
        places.insert(name, place);
    }
    match mistake {
        Mistake::BindingsStay => drop(children.prune::<Namespace>().await?),
        Mistake::PrunesByName => prune_by_name(&tenant, &ctx).await?,
        _ => remove_surplus(&children).await?,
    }
    write_status(&tenant, &ctx, &places).await?;
    Ok(next_look(&ctx, &places))
}

async fn finish(mistake: Mistake, tenant: Arc<Tenant>, ctx: Arc<Context>) -> Result<Action, Error> {
    let action = clean_up(Arc::clone(&tenant), Arc::clone(&ctx)).await?;
    match mistake {
        Mistake::NeverLetsGo => Ok(Action::requeue(ctx.poll)),
        Mistake::RemovesAllFinalizers if action.is_await_change() => {
            let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            let tenants: Api<Tenant> = Api::all(ctx.client.clone());
            tenants
                .patch(&tenant.name_any(), &PatchParams::default(), &none)
                .await?;
            Ok(action)
        }
        _ => Ok(action),
    }
}

/// Writes what we want over what is there.
async fn replace(
    children: &Set,
    tenant: &Tenant,
    ctx: &Context,
    name: &str,
) -> Result<Place, Error> {
    let place = ensure_namespace(children, tenant, name).await?;
    let namespaces: Api<Namespace> = Api::all(ctx.client.clone());
    if place == Place::Ours
        && let Some(live) = namespaces.get_opt(name).await?
        && live.metadata.annotations.is_some()
    {
        let mut wanted = live;
        wanted.metadata.annotations = None;
        wanted.metadata.labels = namespace(tenant, name).metadata.labels;
        namespaces
            .replace(name, &PostParams::default(), &wanted)
            .await?;
    }
    Ok(place)
}

/// What somebody makes who takes the labels for the owner.
async fn prune_by_name(tenant: &Tenant, ctx: &Context) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(ctx.client.clone());
    let wanted = namespace_names(tenant);
    let prefix = format!("{}-", tenant.name_any());
    for name in namespaces
        .list_metadata(&ListParams::default())
        .await?
        .iter()
        .map(ResourceExt::name_any)
    {
        if name.starts_with(&prefix) && !wanted.contains(&name) {
            namespaces.delete(&name, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

/// Whether no reconcile has come to its end yet.
fn is_new(tenant: &Tenant) -> bool {
    let status = tenant.status.as_ref();
    status.is_none_or(|status| status.observed_generation.is_none())
}

async fn create_quota(tenant: &Tenant, ctx: &Context, namespace: &str) -> Result<(), Error> {
    let quotas: Api<ResourceQuota> = Api::namespaced(ctx.client.clone(), namespace);
    let mut quota = quota(tenant, namespace);
    quota.metadata.owner_references = tenant.controller_owner_ref(&()).map(|owner| vec![owner]);
    quotas.create(&PostParams::default(), &quota).await?;
    Ok(())
}

async fn admit_in_any_order(children: &Set, tenant: &Tenant, namespace: &str) -> Result<(), Error> {
    for which in ROLES {
        children.apply(role(tenant, namespace, which)).await?;
        if let Some(mut binding) = binding(tenant, namespace, which) {
            let subjects = binding.subjects.take().unwrap_or_default();
            #[expect(clippy::disallowed_types, reason = "its order is the mistake")]
            let by_name: HashMap<String, _> = subjects
                .into_iter()
                .map(|subject| (subject.name.clone(), subject))
                .collect();
            binding.subjects = Some(by_name.into_values().collect());
            children.apply(binding).await?;
        }
    }
    Ok(())
}

async fn admit_without_owner(
    children: &Set,
    tenant: &Tenant,
    ctx: &Context,
    namespace: &str,
) -> Result<(), Error> {
    let bindings: Api<RoleBinding> = Api::namespaced(ctx.client.clone(), namespace);
    for which in ROLES {
        children.apply(role(tenant, namespace, which)).await?;
        if let Some(binding) = binding(tenant, namespace, which) {
            let params = PatchParams::apply(MANAGER).force();
            bindings
                .patch(&binding.name_any(), &params, &Patch::Apply(&binding))
                .await?;
        }
    }
    Ok(())
}

#[test]
fn each_mistake_is_caught() {
    let mut caught = 0;
    for (mistake, plans, detector, what) in MUTATIONS {
        let found = mutant(mistake).only(plans).budget(BUDGET).catches(detector);
        match found {
            Ok(()) => caught += 1,
            Err(report) => println!("{mistake:?} is not caught by {detector}:\n{report}"),
        }
        println!("{detector:10} {what}");
    }
    println!("caught {caught} of {}", MUTATIONS.len());
    assert_eq!(caught, MUTATIONS.len());
}

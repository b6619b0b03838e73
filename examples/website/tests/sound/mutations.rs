//! Mistakes that operators were seen to have, built into this one. The checker finds each of them.
//!
//! A mutant takes the steps of [`website::reconcile()`], with one of them done wrongly.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each mistake changes one step and no other"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::{context, with_users};
use homeostat::{
    Action,
    children::{Applied, Set},
    clock, error_policy,
};
use homeostat_testing::Scenario;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, EnvVar, Service},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
#[expect(
    clippy::disallowed_types,
    reason = "its order is a mistake of a mutant"
)]
use std::collections::HashMap;
use std::sync::Arc;
use website::{
    Context, Error, FINALIZER, RECONCILED, Website,
    children::{MANAGER, deployment, page, preview, service},
    clean_up,
    dns::InMemoryDns,
    status::{self, Observed},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    TokenInEachRun,
    ReplacesWhole,
    WithoutOwner,
    TimeInStatus,
    ForgetsDns,
    CreatesIfNoStatus,
    HashOrder,
    RandomName,
    RemovesAllFinalizers,
    PageIsMadeOnce,
}

/// Each mistake, and the detector that tells of it.
const MUTATIONS: [(Mistake, &str, &str); 10] = [
    (
        Mistake::TokenInEachRun,
        "LOOP",
        "a token is generated without looking",
    ),
    (
        Mistake::ReplacesWhole,
        "FIGHT",
        "a config map is replaced, with what others wrote into it",
    ),
    (Mistake::WithoutOwner, "STUCK", "a child names no owner"),
    (
        Mistake::TimeInStatus,
        "IDEM",
        "the status tells the time of the run",
    ),
    (
        Mistake::ForgetsDns,
        "STUCK",
        "the clean-up forgets what is outside of the cluster",
    ),
    (
        Mistake::CreatesIfNoStatus,
        "CRASH",
        "a child that is there already is an error",
    ),
    (
        Mistake::HashOrder,
        "LOOP",
        "variables come in the order of a hash map",
    ),
    (Mistake::RandomName, "CRASH", "a child gets a random name"),
    (
        Mistake::RemovesAllFinalizers,
        "FIGHT",
        "the finalizers of others are removed",
    ),
    (
        Mistake::PageIsMadeOnce,
        "PATH",
        "a change of the page does not reach its child",
    ),
];

/// The most plans that are run for a mistake.
const BUDGET: usize = 8;

fn mutant(mistake: Mistake) -> Scenario<InMemoryDns> {
    let operator =
        Scenario::with_external(InMemoryDns::default).controller_with(move |client, dns| {
            let ctx = context(client, dns);
            website::watches(&ctx)
                .status_conditions(RECONCILED)
                .finalizer(FINALIZER)
                .run(
                    move |site, ctx| reconcile(mistake, site, ctx),
                    move |site, ctx| finish(mistake, site, ctx),
                    error_policy::classified,
                    ctx,
                )
        });
    with_users(operator)
}

async fn reconcile(
    mistake: Mistake,
    site: Arc<Website>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    let (site, ctx) = (&*site, &*ctx);
    website::validate::site(site, &ctx.config.domain)?;
    let children = Set::new(&ctx.client, site, MANAGER).force();
    let token = preview(site, &(ctx.config.make_token)());
    let is_new = site.status.as_ref().is_none_or(|told| told.url.is_none());
    if is_new && [Mistake::CreatesIfNoStatus, Mistake::RandomName].contains(&mistake) {
        let mut page = page(site);
        page.metadata.owner_references = site.controller_owner_ref(&()).map(|owner| vec![owner]);
        if mistake == Mistake::RandomName {
            page.metadata.name = None;
            page.metadata.generate_name = Some("page-".into());
        }
        api::<ConfigMap>(site, ctx)
            .create(&PostParams::default(), &page)
            .await?;
    }
    match mistake {
        Mistake::PageIsMadeOnce => drop(children.create(page(site)).await?),
        Mistake::ReplacesWhole => replace_page(&children, site, ctx).await?,
        _ => drop(children.apply(page(site)).await?),
    }
    let mut pods = deployment(site);
    if mistake == Mistake::HashOrder {
        set_variables(&mut pods);
    }
    let deployment = children.apply(pods).await?;
    if mistake == Mistake::WithoutOwner {
        let params = PatchParams::apply(MANAGER).force();
        let service = service(site);
        api::<Service>(site, ctx)
            .patch(&site.name_any(), &params, &Patch::Apply(&service))
            .await?;
    } else {
        children.apply(service(site)).await?;
    }
    if mistake == Mistake::TokenInEachRun {
        children.apply(token).await?;
    } else {
        children.create(token).await?;
    }
    ctx.dns
        .keep(
            site.metadata.uid.as_deref().ok_or(Error::NoUid)?,
            Some(&site.spec.host),
        )
        .await?;
    write_status(mistake, site, ctx, &deployment).await?;
    Ok(Action::await_change())
}

async fn finish(mistake: Mistake, site: Arc<Website>, ctx: Arc<Context>) -> Result<Action, Error> {
    match mistake {
        Mistake::ForgetsDns => Ok(Action::await_change()),
        Mistake::RemovesAllFinalizers => {
            clean_up(Arc::clone(&site), Arc::clone(&ctx)).await?;
            let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            let sites: Api<Website> = api(&site, &ctx);
            sites
                .patch(&site.name_any(), &PatchParams::default(), &none)
                .await?;
            Ok(Action::await_change())
        }
        _ => clean_up(site, ctx).await,
    }
}

async fn replace_page(children: &Set, site: &Website, ctx: &Context) -> Result<(), Error> {
    let live = children.create(page(site)).await?;
    let mut wanted = page(site);
    if live.data != wanted.data || live.metadata.annotations.is_some() {
        // Without a version: whatever was there is overwritten.
        wanted
            .metadata
            .owner_references
            .clone_from(&live.metadata.owner_references);
        api::<ConfigMap>(site, ctx)
            .replace(&site.name_any(), &PostParams::default(), &wanted)
            .await?;
    }
    Ok(())
}

fn set_variables(pods: &mut Deployment) {
    let spec = pods
        .spec
        .as_mut()
        .and_then(|spec| spec.template.spec.as_mut())
        .unwrap();
    let names = ["HOST", "LANG", "THEME", "TZ", "WORKERS"];
    #[expect(clippy::disallowed_types, reason = "its order is the mistake")]
    let variables: HashMap<&str, &str> = names.into_iter().map(|name| (name, "x")).collect();
    let variables = variables.into_iter().map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    });
    spec.containers[0].env = Some(variables.collect());
}

async fn write_status(
    mistake: Mistake,
    site: &Website,
    ctx: &Context,
    deployment: &Applied<Deployment>,
) -> Result<(), Error> {
    let observed = Observed {
        deployment,
        leaving: deployment.is_leaving(),
    };
    let mut desired = status::desired(site, &observed, clock::now());
    if mistake == Mistake::TimeInStatus {
        desired.url = Some(format!("http://{}/?{}", site.spec.host, clock::now()));
    }
    homeostat::status::patch(&api::<Website>(site, ctx), site, &desired).await?;
    Ok(())
}

fn api<K>(site: &Website, ctx: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(ctx.client.clone(), &site.namespace().unwrap_or_default())
}

#[test]
fn each_mistake_is_caught() {
    let mut caught = 0;
    for (mistake, detector, what) in MUTATIONS {
        let found = mutant(mistake).budget(BUDGET).catches(detector);
        match found {
            Ok(()) => caught += 1,
            Err(report) => println!("{mistake:?} is not caught by {detector}:\n{report}"),
        }
        println!("{detector:10} {what}");
    }
    println!("caught {caught} of {}", MUTATIONS.len());
    assert_eq!(caught, MUTATIONS.len());
}

//! The story, as a list of steps.

use super::{journal::FIRST_DELAY, narrator::Who, stage::Stage};
use crate::failure::text;
use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use serde_json::json;
use std::time::Duration;
use website::{RECONCILED, Website};

/// A step of the story.
struct Step {
    title: &'static str,
    /// What there is to see.
    about: &'static str,
    play: for<'a> fn(&'a Stage) -> BoxFuture<'a, Result<(), String>>,
}

/// What the forced reconciles at the end did; or what did not happen.
pub(super) type Outcome = Result<Forced, String>;

/// What the forced reconciles at the end did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Forced {
    pub(super) runs: usize,
    pub(super) writes: usize,
}

/// The second site of the story: one that the first is not.
fn second(stage: &Stage) -> &'static str {
    if stage.site.name_any() == "shop" {
        "market"
    } else {
        "shop"
    }
}

/// How many reconciles are forced at the end.
const FORCED: usize = 100;

const STEPS: &[Step] = &[
    Step {
        title: "A site appears",
        about: "The operator makes what the site needs, and tells when it serves.",
        play: |stage| appears(stage).boxed(),
    },
    Step {
        title: "Its spec changes",
        about: "Only what differs is written.",
        play: |stage| changes(stage).boxed(),
    },
    Step {
        title: "The DNS provider does not answer for a second site",
        about: "That site backs off, longer each time. The first site does not notice.",
        play: |stage| outage(stage).boxed(),
    },
    Step {
        title: "A spec that nobody can make true",
        about: "A permanent error becomes a condition, and waits for a change instead of trying again.",
        play: |stage| invalid(stage).boxed(),
    },
    Step {
        title: "Somebody deletes a child",
        about: "The operator makes it anew, and the pods follow.",
        play: |stage| child_deleted(stage).boxed(),
    },
    Step {
        title: "The second site is deleted",
        about: "Its finalizer holds it until its DNS record is gone; then the children follow.",
        play: |stage| site_deleted(stage).boxed(),
    },
    Step {
        title: "The replica that leads is killed",
        about: "Another one stands by with warm caches. It goes on when the lease of the first is over.",
        play: |stage| handed_over(stage).boxed(),
    },
];

/// Plays all steps, and then forces reconciles where nothing is left to do.
pub(super) async fn play(stage: &Stage) -> Outcome {
    for (number, step) in (1..).zip(STEPS) {
        stage.narrator.chapter(number, step.title, step.about);
        let played = async {
            (step.play)(stage).await?;
            stage.until_told().await
        };
        let problem = |problem| format!("step {number}, {:?}: {problem}", step.title);
        played.await.map_err(problem)?;
    }
    let title = "Nothing is left to do";
    let about = "A hundred forced reconciles look at everything, and write nothing.";
    stage.narrator.chapter(STEPS.len() + 1, title, about);
    force(stage).await
}

async fn appears(stage: &Stage) -> Result<(), String> {
    let name = stage.site.name_any();
    stage.apply(&stage.site).await?;
    stage.until_serving(&name).await
}

async fn changes(stage: &Stage) -> Result<(), String> {
    let name = stage.site.name_any();
    let replicas = match stage.site.spec.replicas {
        many if many > 5 => many - 1,
        few => few + 1,
    };
    stage.say(format!("set spec.replicas of {name} to {replicas}"));
    stage.change(&name, json!({ "replicas": replicas })).await?;
    stage.until_serving(&name).await?;
    rolled_out(stage, &name).await
}

async fn outage(stage: &Stage) -> Result<(), String> {
    let shop = second(stage);
    let name = stage.site.name_any();
    let provider = format!("eu.{}", stage.ctx.config.domain);
    stage.dns.start_outage(&provider);
    stage.say(format!("took the provider of {provider} down"));
    let mut site = Website::new(shop, stage.site.spec.clone());
    site.spec.host = format!("{shop}.{provider}");
    site.metadata.namespace = stage.site.namespace();
    stage.apply(&site).await?;
    let failures = stage.runs(shop).failed;
    let what = "four failures of the second site";
    stage
        .until_runs(shop, what, |runs| runs.failed >= failures + 4)
        .await?;

    let before = stage.runs(&name);
    stage.say(format!("changed the page of {name} meanwhile"));
    stage
        .change(&name, json!({ "html": "<h1>Still here</h1>" }))
        .await?;
    stage.until_serving(&name).await?;
    if stage.runs(&name).failed != before.failed {
        return Err(format!("the outage of {shop} must not concern {name}"));
    }
    let what = "a fifth failure of the second site";
    stage
        .until_runs(shop, what, |runs| runs.failed >= failures + 5)
        .await?;
    stage.dns.end_outage();
    stage.say(format!(
        "brought the provider of {provider} back; the next attempt found it so"
    ));
    stage.until_serving(shop).await
}

async fn invalid(stage: &Stage) -> Result<(), String> {
    let shop = second(stage);
    let good = stage
        .sites()
        .get(shop)
        .await
        .map_err(|error| text(&error))?
        .spec
        .host;
    let bad = "shop.in.another.domain";
    stage.say(format!("set spec.host of {shop} to {bad}"));
    stage.change(shop, json!({ "host": bad })).await?;
    stage
        .until_condition(shop, RECONCILED, "InvalidSpec")
        .await?;

    // Its own write to the status wakes the operator once more; after that nothing does. The time is
    // long enough for three attempts, if there were any.
    settle(stage, shop).await?;
    let before = stage.runs(shop);
    let quiet = FIRST_DELAY * 8;
    tokio::time::sleep(quiet).await;
    let runs = stage.runs(shop);
    if runs != before {
        return Err(format!(
            "a permanent error must wait, but it was tried again: {before:?}, then {runs:?}"
        ));
    }
    stage.say(format!(
        "saw that for {quiet:?} nothing was tried again, and set it back to {good}"
    ));
    stage.change(shop, json!({ "host": good })).await?;
    stage.until_serving(shop).await
}

async fn child_deleted(stage: &Stage) -> Result<(), String> {
    let name = stage.site.name_any();
    let api = stage.api::<Deployment>();
    let before = api.get(&name).await.map_err(|error| text(&error))?;
    let uid = before.uid().unwrap_or_default();
    stage.say(format!("deleted Deployment {name}"));
    delete(&before, &api).await?;
    let recreated =
        move |it: Option<&Deployment>| it.is_some_and(|it| it.uid().as_ref() != Some(&uid));
    let what = format!("the return of Deployment {name}");
    stage.until::<Deployment>(&name, &what, recreated).await?;
    rolled_out(stage, &name).await?;
    stage.until_serving(&name).await
}

/// Waits until all pods of a deployment are there.
async fn rolled_out(stage: &Stage, name: &str) -> Result<(), String> {
    let wanted = |it: &Deployment| it.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = |it: &Deployment| it.status.as_ref().and_then(|status| status.ready_replicas);
    let all =
        move |it: Option<&Deployment>| it.is_some_and(|it| ready(it).unwrap_or(0) == wanted(it));
    let what = format!("the roll-out of Deployment {name}");
    stage.until::<Deployment>(name, &what, all).await?;
    Ok(())
}

async fn site_deleted(stage: &Stage) -> Result<(), String> {
    let shop = second(stage);
    let site = stage
        .sites()
        .get(shop)
        .await
        .map_err(|error| text(&error))?;
    stage.say(format!("deleted Website {shop}"));
    delete(&site, &stage.sites()).await?;
    stage
        .until_gone::<Website>(shop, &site.uid().unwrap_or_default())
        .await?;
    if let Some(owner) = stage.dns.owner_of(&site.spec.host) {
        return Err(format!(
            "the DNS record of {} outlived its site {owner}",
            site.spec.host
        ));
    }
    for child in [
        stage
            .until::<ConfigMap>(shop, "the end of its ConfigMap", gone)
            .await
            .err(),
        stage
            .until::<Deployment>(shop, "the end of its Deployment", gone)
            .await
            .err(),
        stage
            .until::<Service>(shop, "the end of its Service", gone)
            .await
            .err(),
    ] {
        child.map_or(Ok(()), Err)?;
    }
    Ok(())
}

async fn handed_over(stage: &Stage) -> Result<(), String> {
    let name = stage.site.name_any();
    stage.say("killed replica one, without a word to anybody");
    let before = stage.writes();
    let took = stage.hand_over().await?.as_secs_f64();
    settle(stage, &name).await?;
    let writes = stage.writes() - before;
    stage.narrator.tell(
        Who::Operator,
        format!("replica two leads, after {took:.1} s; it looked at everything, and made {writes} writes"),
    );
    if writes > 0 {
        return Err(format!(
            "a hand-over must write nothing, and made {writes} writes"
        ));
    }
    stage.say(format!("changed the page of {name}"));
    let page = json!({ "html": "<h1>Another leader</h1>" });
    stage.change(&name, page).await?;
    stage.until_serving(&name).await?;
    rolled_out(stage, &name).await
}

fn gone<K>(obj: Option<&K>) -> bool {
    obj.is_none()
}

/// Deletes just this object, and no other that takes its name meanwhile.
async fn delete<K>(obj: &K, api: &kube::Api<K>) -> Result<(), String>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: obj.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let name = obj.name_any();
    api.delete(&name, &params)
        .await
        .map_err(|error| format!("the server refuses to delete {name}: {}", text(&error)))?;
    Ok(())
}

async fn force(stage: &Stage) -> Outcome {
    let name = stage.site.name_any();
    settle(stage, &name).await?;
    let (start, writes) = (stage.runs(&name).all, stage.writes());
    for run in 1..=FORCED {
        stage.force(&name)?;
        let what = format!("forced reconcile {run}");
        stage
            .until_runs(&name, &what, |runs| runs.all >= start + run)
            .await?;
    }
    let forced = Forced {
        runs: stage.runs(&name).all - start,
        writes: stage.writes() - writes,
    };
    stage.say(format!(
        "forced {} reconciles, and counted {} writes",
        forced.runs, forced.writes
    ));
    Ok(forced)
}

/// Waits until the last events have arrived and their reconciles have ended.
async fn settle(stage: &Stage, name: &str) -> Result<(), String> {
    const QUIET: Duration = Duration::from_millis(300);
    for _ in 0..20 {
        let before = stage.runs(name);
        tokio::time::sleep(QUIET).await;
        if stage.runs(name) == before {
            return Ok(());
        }
    }
    Err(format!(
        "{name} is reconciled on and on: {:?}",
        stage.runs(name)
    ))
}

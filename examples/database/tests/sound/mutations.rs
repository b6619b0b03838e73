//! Mistakes that operators of databases were seen to have, built into this one. The checker finds each of them.
//!
//! A mutant is the sequence of steps of [`database::reconcile()`] with one step done wrongly.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each mistake changes one step and no other"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::{context, with_users};
use database::{
    Context, Database, Error, FINALIZER, RECONCILED, backup,
    children::{MANAGER, login, member_name, members, selector, service},
    clean_up,
    reconcile::{
        back_up, ensure_login, ensure_volumes, find_volumes, next_look, plan_removal, present,
        remove_volume, write_status,
    },
    status::{self, Observed, is_ready},
    volumes::{Removal, Volumes},
};
use homeostat::{Action, Controller, children::Set, clock, error_policy, watcher};
use homeostat_testing::Scenario;
use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Secret},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    PasswordInEachRun,
    PasswordIfNoStatus,
    VolumeBeforeBackup,
    VolumeUnderItsPod,
    SizeInTemplate,
    SecretsNotWatched,
    BackupsCounted,
    TimeInStatus,
    LastBackupNotAwaited,
    RemovesAllFinalizers,
}

/// Each mistake, the plans that show it, and the detector that tells of it.
const MUTATIONS: [(Mistake, &str, &str, &str); 10] = [
    (
        Mistake::PasswordInEachRun,
        "LOOP",
        "INVARIANT",
        "a password is generated without looking",
    ),
    (
        Mistake::PasswordIfNoStatus,
        "CRASH",
        "CRASH",
        "a Secret that is there already is an error",
    ),
    (
        Mistake::VolumeBeforeBackup,
        "LOOP",
        "INVARIANT",
        "a volume is deleted without a backup",
    ),
    (
        Mistake::VolumeUnderItsPod,
        "LOOP",
        "INVARIANT",
        "a volume is deleted while its pod runs",
    ),
    (
        Mistake::SizeInTemplate,
        "PATH",
        "PATH",
        "a field that cannot be changed follows the spec",
    ),
    (
        Mistake::SecretsNotWatched,
        "STUCK",
        "STUCK",
        "nobody notices that the password is gone",
    ),
    (
        Mistake::BackupsCounted,
        "CRASH",
        "CRASH",
        "backups are numbered by how many there are",
    ),
    (
        Mistake::TimeInStatus,
        "IDEM",
        "IDEM",
        "the status tells the time of the run",
    ),
    (
        Mistake::LastBackupNotAwaited,
        "LOOP",
        "INVARIANT",
        "the finalizer goes before the backup is made",
    ),
    (
        Mistake::RemovesAllFinalizers,
        "FIGHT",
        "FIGHT",
        "the finalizers of others are removed",
    ),
];

/// The most plans that are run for a mistake.
const BUDGET: usize = 16;

fn mutant(mistake: Mistake) -> Scenario {
    let operator = Scenario::new().controller(move |client| {
        let ctx = context(client);
        let watches = match mistake {
            Mistake::SecretsNotWatched => watches_but_secrets(&ctx),
            _ => database::watches(&ctx),
        };
        watches
            .status_conditions(RECONCILED)
            .finalizer(FINALIZER)
            .run(
                move |db, ctx| reconcile(mistake, db, ctx),
                move |db, ctx| finish(mistake, db, ctx),
                error_policy::classified,
                ctx,
            )
    });
    with_users(operator)
}

fn watches_but_secrets(ctx: &Context) -> Controller<Database> {
    let client = &ctx.client;
    let all = watcher::Config::default;
    Controller::new(Api::<Database>::all(client.clone()), all())
        .owns(Api::<PersistentVolumeClaim>::all(client.clone()), all())
        .owns(Api::<StatefulSet>::all(client.clone()), all())
        .owns(Api::<Job>::all(client.clone()), all())
}

async fn reconcile(
    mistake: Mistake,
    cached: Arc<Database>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    let db = present(&cached, &ctx).await?;
    let Some(db) = db.filter(|db| db.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::await_change());
    };
    let children = Set::new(&ctx.client, &db, MANAGER).force();
    match mistake {
        Mistake::PasswordInEachRun => {
            children.apply(login(&db, &(ctx.make_password)())).await?;
        }
        Mistake::PasswordIfNoStatus => make_password_once(&db, &ctx).await?,
        _ => ensure_login(&children, &db, &ctx).await?,
    }
    children.apply(service(&db)).await?;
    let volumes = find_volumes(&db, &ctx).await?;
    let surplus = volumes.surplus(&db).map(|(ordinal, _)| ordinal);
    let removal = match (mistake, surplus) {
        (Mistake::VolumeBeforeBackup, Some(ordinal)) => Removal::BackedUp(ordinal),
        _ => plan_removal(&children, &db, &ctx, &volumes).await?,
    };
    ensure_volumes(&children, &db, &volumes).await?;
    let mut wanted = members(&db, removal.members(&db));
    if mistake == Mistake::SizeInTemplate {
        size_in_template(&mut wanted, &volumes, &db);
    }
    let members = children.apply(wanted).await?;
    if let Removal::BackedUp(ordinal) = removal {
        match mistake {
            Mistake::VolumeUnderItsPod => delete_now(&db, &ctx, ordinal).await?,
            _ => remove_volume(&db, &ctx, &volumes, ordinal).await?,
        }
    }
    let backups = match mistake {
        Mistake::BackupsCounted => count_backups(&children, &db, &ctx, &members).await?,
        _ => back_up(&children, &db, &ctx, &members).await?,
    };
    let observed = Observed {
        members: &members,
        volumes: &volumes,
        removal,
        backups: &backups,
    };
    if mistake == Mistake::TimeInStatus {
        let mut told = status::desired(&db, &observed, clock::now());
        told.last_backup = Some(Time(clock::now()));
        homeostat::status::patch(&api::<Database>(&db, &ctx), &db, &told).await?;
    } else {
        write_status(&db, &ctx, &observed).await?;
    }
    Ok(next_look(&db, &ctx, removal))
}

async fn finish(mistake: Mistake, db: Arc<Database>, ctx: Arc<Context>) -> Result<Action, Error> {
    match mistake {
        Mistake::LastBackupNotAwaited => {
            // The Job is asked for, and nobody waits for it.
            let _not_awaited = clean_up(db, ctx).await?;
            Ok(Action::await_change())
        }
        Mistake::RemovesAllFinalizers => {
            let action = clean_up(Arc::clone(&db), Arc::clone(&ctx)).await?;
            if action.is_await_change() {
                let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                let databases: Api<Database> = api(&db, &ctx);
                databases
                    .patch(&db.name_any(), &PatchParams::default(), &none)
                    .await?;
            }
            Ok(action)
        }
        _ => clean_up(db, ctx).await,
    }
}

async fn make_password_once(db: &Database, ctx: &Context) -> Result<(), Error> {
    if db
        .status
        .as_ref()
        .is_none_or(|status| status.observed_generation.is_none())
    {
        let mut secret = login(db, &(ctx.make_password)());
        secret.metadata.owner_references =
            Some(vec![kube::Resource::controller_owner_ref(db, &()).unwrap()]);
        api::<Secret>(db, ctx)
            .create(&PostParams::default(), &secret)
            .await?;
    }
    Ok(())
}

fn size_in_template(set: &mut StatefulSet, volumes: &Volumes, db: &Database) {
    let spec = set.spec.as_mut().unwrap();
    let template = &mut spec.volume_claim_templates.as_mut().unwrap()[0];
    let resources = template.spec.as_mut().unwrap().resources.as_mut().unwrap();
    let requests = resources.requests.as_mut().unwrap();
    requests.insert("storage".into(), volumes.size(db).clone());
}

async fn delete_now(db: &Database, ctx: &Context, ordinal: i32) -> Result<(), Error> {
    let claim = format!("data-{}", member_name(db, ordinal));
    api::<PersistentVolumeClaim>(db, ctx)
        .delete(&claim, &DeleteParams::default())
        .await?;
    Ok(())
}

/// Makes the next backup when the status tells of none for this time.
async fn count_backups(
    children: &Set,
    db: &Database,
    ctx: &Context,
    members: &StatefulSet,
) -> Result<backup::Backups, Error> {
    let due = backup::due(db, clock::now());
    let jobs = api::<Job>(db, ctx)
        .list(&ListParams::default().labels(&selector(db)))
        .await?;
    let told = db
        .status
        .as_ref()
        .and_then(|status| status.last_backup.as_ref());
    let is_told = told.is_some_and(|told| told.0 >= due);
    for job in &jobs {
        children.keep(job)?;
    }
    if is_ready(members) && !is_told {
        let mut job = backup::job(db, backup::Purpose::Schedule(due));
        job.metadata.name = Some(format!("{}-backup-{}", db.name_any(), jobs.items.len() + 1));
        children.create(job).await?;
    }
    let scheduled = jobs
        .into_iter()
        .filter(|job| !job.name_any().contains("before"));
    Ok(backup::Backups::new(scheduled.collect()))
}

fn api<K>(db: &Database, ctx: &Context) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(ctx.client.clone(), &db.namespace().unwrap_or_default())
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

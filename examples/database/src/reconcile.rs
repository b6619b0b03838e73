//! The steps of a reconcile.
//!
//! Each step looks at what is there and writes what differs. None asks what an earlier run did: after a crash in the middle,
//! somebody's edits or a week without running, the same steps lead to the same end.

use crate::{
    Context, Database, Error,
    backup::{self, Backups, Outcome, Purpose},
    children::{MANAGER, login, member_name, members, selector, service},
    status::{self, Observed, is_ready},
    volumes::{Removal, Volumes},
};
use homeostat::{Action, Classify, ErrorClass, children::Set, status::patch};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Pod},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, sync::Arc};

/// The finalizer holds a database back until its last backup is made.
pub const FINALIZER: &str = "demo.homeostat.dev/backup";

/// The condition that the controller keeps: whether the last reconcile went well, and if not, why.
pub const RECONCILED: &str = "Reconciled";

/// Makes one database be as its spec wants it.
///
/// # Errors
///
/// The first thing that was in the way. The controller shows it in the condition [`RECONCILED`].
pub async fn reconcile(db: Arc<Database>, ctx: Arc<Context>) -> Result<Action, Error> {
    let Some(db) = present(&db, &ctx).await? else {
        return Ok(Action::await_change());
    };
    if db.metadata.deletion_timestamp.is_some() {
        // The watch will tell, and then the clean-up runs.
        return Ok(Action::await_change());
    }
    // What others write into our fields is taken back. All other fields are left alone.
    let children = Set::new(&ctx.client, &db, MANAGER).force();
    ensure_login(&children, &db, &ctx).await?;
    children.apply(service(&db)).await?;
    let volumes = find_volumes(&db, &ctx).await?;
    let removal = plan_removal(&children, &db, &ctx, &volumes).await?;
    // Volumes come before pods, so that each pod finds one of the right size.
    ensure_volumes(&children, &db, &volumes).await?;
    let members = children.apply(members(&db, removal.members(&db))).await?;
    if let Removal::BackedUp(ordinal) = removal {
        remove_volume(&db, &ctx, &volumes, ordinal).await?;
    }
    let backups = back_up(&children, &db, &ctx, &members).await?;
    let observed = Observed {
        members: &members,
        volumes: &volumes,
        removal,
        backups: &backups,
    };
    write_status(&db, &ctx, &observed).await?;
    Ok(next_look(&db, &ctx, removal))
}

/// Makes the last backup, if there is something to back up and its owner wants it.
///
/// # Errors
///
/// As with [`reconcile`]. The database stays until this succeeds.
pub async fn clean_up(db: Arc<Database>, ctx: Arc<Context>) -> Result<Action, Error> {
    let Some(db) = present(&db, &ctx).await? else {
        return Ok(Action::await_change());
    };
    if !db.spec.backup.on_deletion || find_volumes(&db, &ctx).await?.is_empty() {
        return Ok(Action::await_change());
    }
    let children = Set::new(&ctx.client, &db, MANAGER).for_cleanup();
    match attempt(&children, &db, &ctx, Purpose::Deletion).await {
        // Done: now the finalizer is removed, the database goes, and the volumes with it.
        Ok(Outcome::Succeeded) => Ok(Action::await_change()),
        Ok(Outcome::Running) => Ok(Action::requeue(ctx.poll)),
        Ok(Outcome::Failed(_)) => Err(Error::FinalBackup),
        // Somebody has deleted the whole namespace. Nothing can be made in it any more, and to hold it back forever would
        // save no data.
        Err(error) if error.classify() == ErrorClass::permanent("NamespaceTerminating") => {
            Ok(Action::await_change())
        }
        Err(error) => Err(error),
    }
}

/// The database as the server has it now; none if it is gone, or another one of its name is there.
///
/// The cache may be behind, after a restart in particular. It would be enough for what can be put right later. But a
/// member that goes because of an old number of replicas costs a restart of the database at best.
///
/// # Errors
///
/// The server does not say.
pub async fn present(db: &Database, ctx: &Context) -> Result<Option<Database>, Error> {
    let live = api::<Database>(db, ctx).get_opt(&db.name_any()).await?;
    Ok(live.filter(|live| live.uid() == db.uid()))
}

/// Makes the password if there is none. It is never changed: the server decides whether there is one, and not a cache,
/// which may be empty or old.
///
/// # Errors
///
/// The Secret could not be made.
pub async fn ensure_login(children: &Set, db: &Database, ctx: &Context) -> Result<(), Error> {
    children.create(login(db, &(ctx.make_password)())).await?;
    Ok(())
}

/// The volumes that are there.
///
/// # Errors
///
/// The server does not say. To go on without knowing would be to take all volumes for missing.
pub async fn find_volumes(db: &Database, ctx: &Context) -> Result<Volumes, Error> {
    let ours = ListParams::default().labels(&selector(db));
    let claims = api::<PersistentVolumeClaim>(db, ctx).list(&ours).await?;
    let claims = claims.into_iter().filter(|claim| !is_of_another(db, claim));
    Ok(Volumes::new(db, claims.collect()))
}

/// Makes the volumes of all members, and lets them grow.
///
/// # Errors
///
/// A claim could not be applied.
pub async fn ensure_volumes(children: &Set, db: &Database, volumes: &Volumes) -> Result<(), Error> {
    for ordinal in 0..db.spec.replicas {
        children.apply(volumes.claim(db, ordinal)).await?;
    }
    Ok(())
}

/// Whether there is a volume too many, and how far its removal has come. Makes the backup that has to come first.
///
/// # Errors
///
/// The Job could not be made.
pub async fn plan_removal(
    children: &Set,
    db: &Database,
    ctx: &Context,
    volumes: &Volumes,
) -> Result<Removal, Error> {
    let Some((ordinal, claim)) = volumes.surplus(db) else {
        return Ok(Removal::Nothing);
    };
    let outcome = attempt(children, db, ctx, Purpose::Removal(ordinal, claim)).await?;
    Ok(match outcome {
        Outcome::Running => Removal::AwaitingBackup(ordinal),
        Outcome::Failed(_) => Removal::BackupFailed(ordinal),
        Outcome::Succeeded => Removal::BackedUp(ordinal),
    })
}

/// Deletes a volume for which there is a backup, when the pod that used it is gone.
///
/// # Errors
///
/// The server does not say whether it is gone, or the claim has changed meanwhile.
pub async fn remove_volume(
    db: &Database,
    ctx: &Context,
    volumes: &Volumes,
    ordinal: i32,
) -> Result<(), Error> {
    let pods = api::<Pod>(db, ctx);
    let pod = pods.get_metadata_opt(&member_name(db, ordinal)).await?;
    match volumes.surplus(db) {
        Some((_, claim)) if pod.is_none() => delete(db, ctx, claim).await,
        Some(_) | None => Ok(()),
    }
}

/// Makes the backup that is due if the database is ready, and removes those that are not kept.
///
/// # Errors
///
/// A Job could not be made or removed.
pub async fn back_up(
    children: &Set,
    db: &Database,
    ctx: &Context,
    members: &StatefulSet,
) -> Result<Backups, Error> {
    if is_ready(members) {
        let due = backup::due(db, (ctx.now)());
        children
            .create(backup::job(db, Purpose::Schedule(due)))
            .await?;
    }
    let ours = ListParams::default().labels(&selector(db));
    let jobs = api::<Job>(db, ctx).list(&ours).await?;
    let jobs = jobs.into_iter().filter(|job| is_owned(db, job));
    let backups = Backups::new(jobs.collect());
    for job in backups.kept(db.spec.backup.keep) {
        children.keep(job)?;
    }
    // This includes the Job of a removal that is over.
    children.prune::<Job>().await?;
    Ok(backups)
}

/// Writes the status if there is something new to tell.
///
/// # Errors
///
/// The server does not take it.
pub async fn write_status(
    db: &Database,
    ctx: &Context,
    observed: &Observed<'_>,
) -> Result<(), Error> {
    let desired = status::desired(db, observed, (ctx.now)());
    match patch(&api::<Database>(db, ctx), db, &desired).await {
        // The database went while we worked for it. There is nobody left to tell.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

/// When to look again without being told of a change: children wake us, and time does not.
#[must_use]
pub fn next_look(db: &Database, ctx: &Context, removal: Removal) -> Action {
    let next = backup::until_next(db, (ctx.now)());
    Action::requeue(match removal {
        Removal::Nothing => next,
        Removal::AwaitingBackup(_) | Removal::BackupFailed(_) | Removal::BackedUp(_) => {
            ctx.poll.min(next)
        }
    })
}

/// Makes a backup that something waits for. One that has failed is made again after a while.
async fn attempt(
    children: &Set,
    db: &Database,
    ctx: &Context,
    purpose: Purpose<'_>,
) -> Result<Outcome, Error> {
    let job = children.create(backup::job(db, purpose)).await?;
    if !is_owned(db, &*job) {
        return Err(Error::Foreign(job.name_any()));
    }
    let outcome = backup::outcome(&job);
    let is_stale = match outcome {
        Outcome::Failed(at) => (ctx.now)().duration_since(at).unsigned_abs() >= ctx.retry,
        Outcome::Running | Outcome::Succeeded => false,
    };
    // One that was made for an earlier volume of this member says nothing about this one.
    if is_stale || !backup::is_for(&job, purpose) {
        delete(db, ctx, &*job).await?;
        return Ok(Outcome::Running);
    }
    Ok(outcome)
}

/// Deletes a child that is still as we have seen it.
async fn delete<K>(db: &Database, ctx: &Context, object: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned,
{
    if object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: object.uid(),
        resource_version: object.resource_version(),
    });
    match api::<K>(db, ctx).delete(&object.name_any(), &params).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}

/// Whether a database controls an object.
fn is_owned<K: Resource>(db: &Database, object: &K) -> bool {
    let owners = object.meta().owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.any(|owner| Some(&owner.uid) == db.metadata.uid.as_ref())
}

/// Whether somebody else controls it.
fn is_of_another<K: Resource>(db: &Database, object: &K) -> bool {
    let mut owners = object.meta().owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true)) && !is_owned(db, object)
}

/// The objects of a kind in the namespace of a database.
fn api<K>(db: &Database, ctx: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(ctx.client.clone(), &db.namespace().unwrap_or_default())
}

//! What to tell the user. Pure functions of the database and of what the reconciler observed.

use crate::{
    Database, DatabaseStatus,
    backup::{Backups, Outcome},
    volumes::{Removal, Sizes, Volumes},
};
use homeostat::conditions::{self, NewCondition};
use k8s_openapi::{
    api::apps::v1::StatefulSet, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp,
};

/// The condition that says whether all members serve the wanted version.
pub const READY: &str = "Ready";
/// The condition that says whether there are no more members than wanted.
pub const SCALED: &str = "Scaled";
/// The condition that says whether all volumes have the wanted size.
pub const RESIZED: &str = "Resized";
/// The condition that says whether the latest backup has succeeded.
pub const BACKED_UP: &str = "BackedUp";

/// What a reconcile observed.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The members.
    pub members: &'a StatefulSet,
    /// Their volumes.
    pub volumes: &'a Volumes,
    /// What is done about a volume that is not needed any more.
    pub removal: Removal,
    /// The scheduled backups.
    pub backups: &'a Backups,
}

/// The status that a database should have. It is the present one if there is nothing new to tell.
#[must_use]
pub fn desired(db: &Database, observed: &Observed<'_>, now: Timestamp) -> DatabaseStatus {
    let generation = db.metadata.generation;
    let mut status = db.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let live = observed.members.status.as_ref();
    status.ready_replicas = Some(live.and_then(|live| live.ready_replicas).unwrap_or(0));
    status.storage = observed.volumes.capacity(db);
    status.last_backup = observed.backups.latest().map(Time);
    for condition in [
        ready(observed.members),
        scaled(db, observed.removal),
        resized(db, observed.volumes),
        backed_up(observed.backups),
    ] {
        let condition = condition.observed_generation(generation);
        conditions::set(&mut status.conditions, condition, now);
    }
    status
}

fn ready(members: &StatefulSet) -> NewCondition {
    if is_ready(members) {
        NewCondition::new(READY, true, "Available").message("All members serve")
    } else {
        NewCondition::new(READY, false, "Progressing").message("Members are being rolled out")
    }
}

fn scaled(db: &Database, removal: Removal) -> NewCondition {
    let told =
        |reason: &str, message: String| NewCondition::new(SCALED, false, reason).message(&message);
    match removal {
        Removal::Nothing => {
            let message = format!("{} members are wanted", db.spec.replicas);
            NewCondition::new(SCALED, true, "AsWanted").message(&message)
        }
        Removal::AwaitingBackup(ordinal) => told(
            "BackingUp",
            format!("Member {ordinal} goes when a backup is made"),
        ),
        Removal::BackupFailed(ordinal) => {
            let message = format!("Member {ordinal} stays, because the backup has failed");
            told("BackupFailed", message)
        }
        Removal::BackedUp(ordinal) => told(
            "RemovingMember",
            format!("Member {ordinal} and its volume are being removed"),
        ),
    }
}

fn resized(db: &Database, volumes: &Volumes) -> NewCondition {
    let told =
        |reason: &str, message: &str| NewCondition::new(RESIZED, false, reason).message(message);
    match volumes.sizes(db) {
        Sizes::Right => {
            NewCondition::new(RESIZED, true, "AsWanted").message("All volumes have the wanted size")
        }
        Sizes::Growing => told("Growing", "Volumes are being made larger"),
        Sizes::AwaitingPod => told(
            "AwaitingPod",
            "File systems grow when the pods of their volumes run",
        ),
        Sizes::TooLarge(size) => {
            let wanted = &db.spec.storage.0;
            let message = format!(
                "Volumes have {} and cannot shrink to {wanted}: set spec.storage to {} or more",
                size.0, size.0
            );
            told("ShrinkRefused", &message)
        }
    }
}

fn backed_up(backups: &Backups) -> NewCondition {
    match backups.last_outcome() {
        Some(Outcome::Succeeded) => {
            NewCondition::new(BACKED_UP, true, "Succeeded").message("The latest backup succeeded")
        }
        Some(Outcome::Failed(_)) => {
            NewCondition::new(BACKED_UP, false, "Failed").message("The latest backup has failed")
        }
        Some(Outcome::Running) | None => {
            NewCondition::new(BACKED_UP, false, "Pending").message("There is no backup yet")
        }
    }
}

/// Whether all members that the set wants run its newest template. A set whose status is about an earlier generation says
/// nothing about this one.
#[must_use]
pub fn is_ready(members: &StatefulSet) -> bool {
    let (Some(spec), Some(status)) = (&members.spec, &members.status) else {
        return false;
    };
    let wanted = spec.replicas.unwrap_or(1);
    let counts = [status.updated_replicas, status.ready_replicas];
    status.observed_generation >= members.metadata.generation
        && status.replicas == wanted
        && counts.iter().all(|count| count.unwrap_or(0) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn readiness_is_that_of_the_newest_template() {
        for (observed, [all, updated, ready], expected) in [
            (1, [2, 2, 2], true),
            (2, [2, 2, 2], true),
            (0, [2, 2, 2], false),
            (1, [3, 2, 2], false),
            (1, [2, 1, 2], false),
            (1, [2, 2, 1], false),
        ] {
            let members: StatefulSet = serde_json::from_value(json!({
                "metadata": { "generation": 1 },
                "spec": { "replicas": 2, "selector": {}, "template": {}, "serviceName": "x" },
                "status": {
                    "observedGeneration": observed, "replicas": all,
                    "updatedReplicas": updated, "readyReplicas": ready,
                },
            }))
            .unwrap();
            assert_eq!(is_ready(&members), expected, "{:?}", members.status);
        }
        assert!(!is_ready(&StatefulSet::default()));
    }
}

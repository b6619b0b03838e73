//! Which backups are due, and which are kept. Pure functions of the database, of the time, and of the Jobs that are there.
//!
//! A backup is a Job. Its name follows from what it is for, so that nothing is made twice however often a reconcile is
//! interrupted: the scheduled ones are called by their time, as those of cron jobs are.

use crate::{Database, children};
use homeostat::children::name;
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::PersistentVolumeClaim},
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;

/// The annotation of a Job that says what it is for.
const FOR: &str = "demo.homeostat.dev/backup-for";

/// What a backup is for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// The schedule, at this time.
    Schedule(Timestamp),
    /// The volume of this member is about to be deleted.
    Removal(i32, &'a PersistentVolumeClaim),
    /// The database is about to be deleted.
    Deletion,
}

/// What has come of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    Running,
    /// It is there.
    Succeeded,
    /// It has failed for good, at this time.
    Failed(Timestamp),
}

/// The scheduled backups of a database, the latest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Backups(Vec<(Timestamp, Job)>);

/// The time for which a backup is due: the latest one of the schedule.
///
/// The schedule follows from the length of its interval alone, so it is the same after every restart.
#[must_use]
pub fn due(db: &Database, now: Timestamp) -> Timestamp {
    let interval = interval(db).as_secs();
    let seconds = now.as_second().div_euclid(interval) * interval;
    Timestamp::from_second(seconds).unwrap_or(now)
}

/// How long it is until the next one is due.
#[must_use]
pub fn until_next(db: &Database, now: Timestamp) -> Duration {
    let next = due(db, now) + interval(db);
    next.duration_since(now).unsigned_abs()
}

fn interval(db: &Database) -> SignedDuration {
    SignedDuration::from_hours(i64::from(db.spec.backup.every_hours.max(1)))
}

/// The Job that makes a backup.
#[must_use]
pub fn job(db: &Database, purpose: Purpose<'_>) -> Job {
    let role = match purpose {
        Purpose::Schedule(time) => format!("backup-{}", time.as_second() / 60),
        Purpose::Removal(ordinal, _) => format!("backup-before-removal-{ordinal}"),
        Purpose::Deletion => "backup-before-deletion".to_owned(),
    };
    let name = name(&db.name_any(), &role);
    let secret =
        |key: &str| json!({ "secretKeyRef": { "name": children::login_name(db), "key": key } });
    let target = format!("s3://backups/{}/{name}", db.namespace().unwrap_or_default());
    let container = json!({
        "name": "backup",
        "image": format!("example.com/postgres-backup:{}", db.spec.version),
        "env": [
            { "name": "PGHOST", "value": db.name_any() },
            { "name": "PGUSER", "valueFrom": secret("username") },
            { "name": "PGPASSWORD", "valueFrom": secret("password") },
            { "name": "TARGET", "value": target },
        ],
    });
    let spec = json!({
        "backoffLimit": 2,
        "activeDeadlineSeconds": 3600,
        // Its pods have no labels of ours, which would make them members.
        "template": { "spec": { "restartPolicy": "Never", "containers": [container] } },
    });
    let metadata = json!({ "annotations": { FOR: purpose.text() } });
    children::child(db, &name, json!({ "metadata": metadata, "spec": spec }))
}

/// What has come of a Job.
#[must_use]
pub fn outcome(job: &Job) -> Outcome {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut over = conditions
        .into_iter()
        .flatten()
        .filter(|one| one.status == "True");
    over.find_map(|condition| match condition.type_.as_str() {
        "Complete" => Some(Outcome::Succeeded),
        "Failed" => {
            let at = condition.last_transition_time.as_ref();
            Some(Outcome::Failed(at.map_or(Timestamp::UNIX_EPOCH, |at| at.0)))
        }
        _ => None,
    })
    .unwrap_or(Outcome::Running)
}

/// Whether a Job was made for this purpose. One of the same name may have been made for another volume.
#[must_use]
pub fn is_for(job: &Job, purpose: Purpose<'_>) -> bool {
    job.annotations().get(FOR) == Some(&purpose.text())
}

// === impl Purpose ===

impl Purpose<'_> {
    fn text(&self) -> String {
        match self {
            Self::Schedule(time) => time.to_string(),
            Self::Removal(_, claim) => claim.uid().unwrap_or_default(),
            Self::Deletion => "deletion".to_owned(),
        }
    }
}

// === impl Backups ===

impl Backups {
    /// Takes the scheduled backups out of all Jobs of a database.
    #[must_use]
    pub fn new(jobs: Vec<Job>) -> Self {
        let timed = jobs.into_iter().filter_map(|job| {
            let time = job.annotations().get(FOR)?.parse().ok()?;
            Some((time, job))
        });
        let mut timed: Vec<(Timestamp, Job)> = timed.collect();
        timed.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        Self(timed)
    }

    /// Those that stay if `keep` that succeeded are to be kept: no failure ever pushes out a backup that is there.
    pub fn kept(&self, keep: i32) -> impl Iterator<Item = &Job> {
        let mut succeeded = 0;
        self.0.iter().map(|(_, job)| job).take_while(move |job| {
            let is_kept = succeeded < keep;
            succeeded += i32::from(outcome(job) == Outcome::Succeeded);
            is_kept
        })
    }

    /// The time of the latest that succeeded.
    #[must_use]
    pub fn latest(&self) -> Option<Timestamp> {
        let mut backups = self.0.iter();
        let (time, _) = backups.find(|(_, job)| outcome(job) == Outcome::Succeeded)?;
        Some(*time)
    }

    /// What has come of the latest that has ended.
    #[must_use]
    pub fn last_outcome(&self) -> Option<Outcome> {
        let mut outcomes = self.0.iter().map(|(_, job)| outcome(job));
        outcomes.find(|outcome| *outcome != Outcome::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        serde_saphyr::from_str(crate::SAMPLE).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_backup_is_due_each_day() {
        let db = database();
        for (now, expected, left) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 86_400),
            ("2026-01-01T23:59:59Z", "2026-01-01T00:00:00Z", 1),
            ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", 86_400),
        ] {
            assert_eq!(due(&db, at(now)), at(expected), "{now}");
            assert_eq!(until_next(&db, at(now)), Duration::from_secs(left), "{now}");
        }
    }

    #[test]
    fn names_follow_from_what_a_backup_is_for() {
        let db = database();
        let name = |purpose| job(&db, purpose).name_any();
        let day = Purpose::Schedule(at("2026-01-01T00:00:00Z"));
        assert_eq!(name(day), "orders-backup-29453760");
        assert_eq!(name(Purpose::Deletion), "orders-backup-before-deletion");
        let mut claim = children::claim(&db, 2, &db.spec.storage);
        claim.metadata.uid = Some("one".into());
        let before = job(&db, Purpose::Removal(2, &claim));
        assert_eq!(before.name_any(), "orders-backup-before-removal-2");
        assert!(is_for(&before, Purpose::Removal(2, &claim)));
        claim.metadata.uid = Some("another".into());
        assert!(!is_for(&before, Purpose::Removal(2, &claim)));
    }

    /// `+` has succeeded, `-` has failed, `.` runs; the latest first.
    #[test]
    fn failures_push_out_nothing() {
        let db = database();
        for (backups, keep, kept, last) in [
            ("", 2, 0, None),
            (".", 2, 1, None),
            ("+++", 2, 2, Some(true)),
            (".+++", 2, 3, Some(true)),
            ("--+++", 2, 4, Some(false)),
            ("+--+-+", 2, 4, Some(true)),
            ("-----", 2, 5, Some(false)),
        ] {
            let jobs = backups.chars().enumerate().map(|(age, outcome)| {
                let day = 30 - i64::try_from(age).unwrap();
                let time = Timestamp::from_second(day * 86_400).unwrap();
                let mut job = job(&db, Purpose::Schedule(time));
                let type_ = match outcome {
                    '+' => Some("Complete"),
                    '-' => Some("Failed"),
                    _ => None,
                };
                let condition = |type_| json!({ "type": type_, "status": "True" });
                let conditions: Vec<_> = type_.into_iter().map(condition).collect();
                job.status = serde_json::from_value(json!({ "conditions": conditions })).unwrap();
                job
            });
            let mut jobs: Vec<Job> = jobs.collect();
            // The server lists them by name.
            jobs.reverse();
            let found = Backups::new(jobs);
            assert_eq!(found.kept(keep).count(), kept, "{backups}");
            let succeeded = found
                .last_outcome()
                .map(|outcome| outcome == Outcome::Succeeded);
            assert_eq!(succeeded, last, "{backups}");
        }
    }
}

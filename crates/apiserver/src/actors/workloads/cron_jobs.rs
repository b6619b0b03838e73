//! `CronJob`s: a job whenever the server's clock comes to the schedule.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pods::{condition, controller_reference, number, time};
use super::step::{Around, CRON_JOB, JOB, Plan, Step, Subject};
use crate::environment::seconds;
use crate::object;
use crate::registry::Schedule;
use crate::storage::Object;

/// Where a job says for which time it was made.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What a cron job does about its jobs.
pub(super) fn plan(cron_job: &Value, around: &Around<'_>) -> Plan {
    let jobs = around.own;
    let mut status = status(cron_job, jobs);
    if object::is_being_deleted(cron_job) {
        let steps = Step::status(CRON_JOB, cron_job, status);
        return Plan::of(steps.into_iter().collect());
    }
    let mut steps = forget(cron_job, jobs);
    let text = |member: &str| cron_job["spec"][member].as_str();
    let zone = text("timeZone").unwrap_or("UTC");
    let schedule = Schedule::parse(text("schedule").unwrap_or_default(), zone);
    let suspended = cron_job["spec"]["suspend"] == true;
    let Some(schedule) = schedule.filter(|_| !suspended) else {
        steps.extend(Step::status(CRON_JOB, cron_job, status));
        return Plan::of(steps);
    };
    if let Some(due) = due(cron_job, &schedule, around.now) {
        let name = format!("{}-{}", object::name(cron_job), due.as_second() / 60);
        let active = jobs
            .iter()
            .filter(|job| !is_finished(job) && !object::is_being_deleted(job));
        let active: Vec<&Object> = active.collect();
        let policy = cron_job["spec"]["concurrencyPolicy"].as_str();
        let is_made = jobs.iter().any(|job| object::name(job) == name);
        let waits = policy == Some("Forbid") && !active.is_empty();
        if !is_made && !waits {
            if policy == Some("Replace") {
                let replaced = active.iter();
                steps.extend(replaced.map(|job| Step::Delete(JOB, Subject::of(job))));
            }
            steps.push(Step::Create(JOB, job(cron_job, &name, due)));
        }
        if is_made || !waits {
            status["lastScheduleTime"] = json!(seconds(due));
        }
    }
    steps.extend(Step::status(CRON_JOB, cron_job, status));
    Plan {
        steps,
        wake: since(cron_job).and_then(|since| schedule.next(since, around.now)),
    }
}

/// From when on the schedule counts.
fn since(cron_job: &Value) -> Option<Timestamp> {
    let last = time(&cron_job["status"]["lastScheduleTime"]);
    last.or_else(|| time(&cron_job["metadata"]["creationTimestamp"]))
}

/// The last time of the schedule that no job was made for yet.
fn due(cron_job: &Value, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    let since = since(cron_job)?;
    let deadline = cron_job["spec"]["startingDeadlineSeconds"].as_i64();
    let earliest = deadline.and_then(|deadline| {
        let patience = SignedDuration::from_secs(deadline);
        now.checked_sub(patience).ok()
    });
    let due = schedule.last(since, now)?;
    earliest
        .is_none_or(|earliest| due > earliest)
        .then_some(due)
}

fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"]
        .into_iter()
        .any(|kind| holds(job, kind))
}

fn holds(job: &Value, kind: &str) -> bool {
    condition(job, kind).is_some_and(|one| one["status"] == "True")
}

fn job(cron_job: &Value, name: &str, due: Timestamp) -> Value {
    let template = &cron_job["spec"]["jobTemplate"];
    let mut metadata = json!({
        "name": name,
        "ownerReferences": [controller_reference(cron_job)],
        "annotations": template["metadata"]["annotations"],
    });
    if let Some(labels) = template["metadata"].get("labels") {
        metadata["labels"] = labels.clone();
    }
    let annotations = object::member_mut(&mut metadata, "annotations");
    annotations.insert(SCHEDULED.to_owned(), json!(seconds(due)));
    json!({ "metadata": metadata, "spec": template["spec"] })
}

/// What the jobs that are there say of the cron job.
fn status(cron_job: &Value, jobs: &[Object]) -> Value {
    let mut status = if cron_job["status"].is_object() {
        cron_job["status"].clone()
    } else {
        json!({})
    };
    let active = jobs.iter().filter(|job| !is_finished(job));
    let active: Vec<Value> = active
        .map(|job| {
            json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": object::name(job),
                "namespace": object::namespace(job),
                "uid": object::uid(job),
                "resourceVersion": object::resource_version(job),
            })
        })
        .collect();
    // A reference is made once: what happens to the job does not change it.
    let had = object::elements(&cron_job["status"], "active");
    let had: Vec<&Value> = had.collect();
    let active: Vec<Value> = active
        .into_iter()
        .map(|one| {
            let known = had.iter().find(|had| had["uid"] == one["uid"]);
            known.map_or(one, |known| Value::clone(known))
        })
        .collect();
    if active.is_empty() {
        if let Some(members) = status.as_object_mut() {
            members.remove("active");
        }
    } else {
        status["active"] = json!(active);
    }
    let ended = jobs.iter().filter(|job| holds(job, "Complete"));
    let ended = ended.filter_map(|job| time(&job["status"]["completionTime"]));
    let told = time(&status["lastSuccessfulTime"]);
    if let Some(last) = ended
        .max()
        .filter(|last| told.is_none_or(|told| told < *last))
    {
        status["lastSuccessfulTime"] = json!(seconds(last));
    }
    status
}

/// Deletes the oldest of the jobs that are over, where there are more than are to be kept.
fn forget(cron_job: &Value, jobs: &[Object]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (kind, limit, default) in [
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ] {
        let limit = number(&cron_job["spec"], limit, default);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let over = jobs
            .iter()
            .filter(|job| holds(job, kind) && !object::is_being_deleted(job));
        let mut over: Vec<&Object> = over.collect();
        over.sort_by_key(|job| {
            let started = job["status"]["startTime"].as_str().map(str::to_owned);
            (started, object::name(job).to_owned())
        });
        let excess = over.len().saturating_sub(limit);
        let forgotten = over.iter().take(excess);
        steps.extend(forgotten.map(|job| Step::Delete(JOB, Subject::of(job))));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("it is a time")
    }

    fn cron_job(policy: &str) -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": { "name": "c", "uid": "u", "creationTimestamp": "2026-01-01T00:00:30Z" },
            "spec": {
                "schedule": "*/5 * * * *",
                "concurrencyPolicy": policy,
                "jobTemplate": { "metadata": { "labels": { "a": "b" } }, "spec": { "x": 1 } },
            },
        })
    }

    fn job_of(name: &str, condition: Option<&str>) -> Object {
        let conditions: Vec<Value> = condition
            .iter()
            .map(|kind| json!({ "type": kind, "status": "True" }))
            .collect();
        Object::new(json!({
            "metadata": { "name": name, "uid": name },
            "status": { "conditions": conditions, "startTime": "2026-01-01T00:00:00Z" },
        }))
    }

    fn plan_at(cron_job: &Value, own: &[Object], now: &str) -> Plan {
        let around = Around {
            own,
            claims: &[],
            nodes: &[],
            now: at(now),
        };
        plan(cron_job, &around)
    }

    /// What jobs are made and deleted.
    fn told(plan: &Plan) -> Vec<String> {
        let told = plan.steps.iter().filter_map(|step| match step {
            Step::Create(_, job) => Some(format!("+{}", object::name(job))),
            Step::Delete(_, subject) => Some(format!("-{}", subject.name())),
            Step::Patch(..) | Step::Status(..) => None,
        });
        told.collect()
    }

    #[test]
    fn a_job_is_made_in_time_and_once() {
        let mut cron_job = cron_job("Allow");
        let found = plan_at(&cron_job, &[], "2026-01-01T00:04:59Z");
        assert_eq!(told(&found), Vec::<String>::new());
        assert_eq!(found.wake, Some(at("2026-01-01T00:05:00Z")));
        let found = plan_at(&cron_job, &[], "2026-01-01T00:05:00Z");
        // 2026-01-01T00:05:00Z is 29,453,765 minutes after the epoch.
        assert_eq!(told(&found), ["+c-29453765"]);
        let Step::Create(_, job) = &found.steps[0] else {
            panic!("{found:?}");
        };
        assert_eq!(job["metadata"]["labels"], json!({ "a": "b" }));
        assert_eq!(
            job["metadata"]["annotations"][SCHEDULED],
            "2026-01-01T00:05:00Z"
        );
        assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
        let Some(Step::Status(_, _, status, _)) = found.steps.last() else {
            panic!("{found:?}");
        };
        cron_job["status"] = status.clone();
        assert_eq!(status["lastScheduleTime"], "2026-01-01T00:05:00Z");
        let found = plan_at(&cron_job, &[], "2026-01-01T00:05:01Z");
        assert_eq!(told(&found), Vec::<String>::new());
        // Of those that were missed, the last one is made up for, if it is not too late.
        let found = plan_at(&cron_job, &[], "2026-01-01T01:02:00Z");
        assert_eq!(told(&found), ["+c-29453820"]);
        cron_job["spec"]["startingDeadlineSeconds"] = json!(60);
        let found = plan_at(&cron_job, &[], "2026-01-01T01:02:00Z");
        assert_eq!(told(&found), Vec::<String>::new());
        cron_job["spec"]["suspend"] = json!(true);
        let found = plan_at(&cron_job, &[], "2026-01-01T01:05:00Z");
        assert_eq!((told(&found), found.wake), (Vec::new(), None));
    }

    #[test]
    fn while_one_runs() {
        let running = [job_of("c-1", None)];
        for (policy, expected) in [
            ("Allow", vec!["+c-29453765"]),
            ("Forbid", vec![]),
            ("Replace", vec!["-c-1", "+c-29453765"]),
        ] {
            let found = plan_at(&cron_job(policy), &running, "2026-01-01T00:05:00Z");
            assert_eq!(told(&found), expected, "{policy}");
        }
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let jobs: Vec<Object> = (0..5)
            .map(|number| job_of(&format!("good-{number}"), Some("Complete")))
            .chain((0..2).map(|number| job_of(&format!("bad-{number}"), Some("Failed"))))
            .collect();
        let found = plan_at(&cron_job("Allow"), &jobs, "2026-01-01T00:01:00Z");
        assert_eq!(told(&found), ["-good-0", "-good-1", "-bad-0"]);
    }
}

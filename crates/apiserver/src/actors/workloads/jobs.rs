//! Jobs: pods that run to an end, until enough of them have.

mod indexes;
mod status;
mod tally;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use self::indexes::Indexes;
use self::status::{Verdict, finish_time, has};
use self::tally::Tally;
use super::pods::{count, from_template, number, time, worth};
use super::step::{Around, JOB, POD, Plan, Step, Subject};
use crate::object;
use crate::storage::Object;

/// What keeps a pod until it is counted.
const TRACKED: &str = "batch.kubernetes.io/job-tracking";

/// Where a pod says which part of the work it does.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The first and the longest pause before a pod that failed is replaced, in seconds.
const FIRST_PAUSE: i64 = 10;
const LONGEST_PAUSE: i64 = 600;

/// What a job does about its pods.
pub(super) fn plan(job: &Value, around: &Around<'_>) -> Plan {
    let pods = around.own;
    if object::is_being_deleted(job) {
        let ended = pods.iter().filter(|pod| tally::is_over(pod));
        return Plan::of(ended.filter_map(|pod| release(pod)).collect());
    }
    if has(job, "Complete") || has(job, "Failed") {
        return clean_up(job, pods, around.now);
    }
    let tally = Tally::of(job, pods);
    let verdict = Verdict::of(job, &tally, around.now);
    let mut steps = Vec::new();
    let mut wake = verdict.deadline(job, around.now);
    let (new_status, counted) = status::of(job, &tally, &verdict, around.now);
    steps.extend(Step::status(JOB, job, new_status));
    // Pods go only when it is written that they count.
    let released = pods
        .iter()
        .filter(|pod| counted.iter().any(|uid| uid == object::uid(pod)));
    steps.extend(released.filter_map(|pod| release(pod)));
    match verdict {
        Verdict::Suspended | Verdict::Ends { .. } => {
            let fails = matches!(verdict, Verdict::Ends { well: false, .. });
            for pod in &tally.active {
                // What is only not needed has not failed.
                steps.extend((!fails).then(|| release(pod)).flatten());
                steps.push(Step::Delete(POD, Subject::of(pod)));
            }
        }
        Verdict::Goes => {
            let (managed, later) = manage(job, &tally, around.now);
            steps.extend(managed);
            wake = match (wake, later) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }
    Plan { steps, wake }
}

/// Makes the pods that are missing, and gives up those that are too many.
fn manage(job: &Value, tally: &Tally<'_>, now: Timestamp) -> (Vec<Step>, Option<Timestamp>) {
    let spec = &job["spec"];
    let parallelism = number(spec, "parallelism", 1);
    let active = count(tally.active.len());
    let wanted = match spec["completions"].as_i64() {
        Some(completions) => parallelism.min(completions - tally.succeeded),
        // The first that succeeds says that there is no more work.
        None if tally.succeeded > 0 => active.min(parallelism),
        None => parallelism,
    };
    if active > wanted {
        let mut pods = tally.active.clone();
        pods.sort_by_cached_key(|pod| worth(pod));
        let excess = usize::try_from(active - wanted.max(0)).unwrap_or_default();
        let given_up = pods.into_iter().take(excess);
        let steps = given_up.flat_map(|pod| {
            let deleted = Step::Delete(POD, Subject::of(pod));
            release(pod).into_iter().chain([deleted])
        });
        return (steps.collect(), None);
    }
    let ending = if spec["podReplacementPolicy"] == "Failed" {
        count(tally.terminating)
    } else {
        0
    };
    let missing = wanted - active - ending;
    if missing <= 0 {
        return (Vec::new(), None);
    }
    if let Some(until) = pause(tally).filter(|until| *until > now) {
        return (Vec::new(), Some(until));
    }
    if spec["completionMode"] == "Indexed" {
        let completions = number(spec, "completions", 0);
        let mut taken = tally.completed.clone();
        for pod in &tally.active {
            taken.extend(index_of(pod));
        }
        let free = taken.free(completions);
        let free = free.take(usize::try_from(missing).unwrap_or_default());
        let steps = free.map(|index| Step::Create(POD, pod(job, Some(index))));
        return (steps.collect(), None);
    }
    let steps = (0..missing).map(|_| Step::Create(POD, pod(job, None)));
    (steps.collect(), None)
}

/// Until when a pod that failed is not replaced.
fn pause(tally: &Tally<'_>) -> Option<Timestamp> {
    let failed = tally.failed_pods.iter().filter_map(|pod| ended_at(pod));
    let last = failed.clone().max()?;
    let times = u32::try_from(failed.count().saturating_sub(1)).unwrap_or(u32::MAX);
    let pause = 2_i64.checked_pow(times).unwrap_or(i64::MAX);
    let pause = FIRST_PAUSE.saturating_mul(pause).min(LONGEST_PAUSE);
    last.checked_add(SignedDuration::from_secs(pause)).ok()
}

/// When the last container of a pod ended.
fn ended_at(pod: &Value) -> Option<Timestamp> {
    object::elements(&pod["status"], "containerStatuses")
        .filter_map(|one| time(&one["state"]["terminated"]["finishedAt"]))
        .max()
}

fn index_of(pod: &Value) -> Option<i64> {
    pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok()
}

fn pod(job: &Value, index: Option<i64>) -> Value {
    let name = object::name(job);
    let mut pod = from_template(job, &job["spec"]["template"]);
    pod["metadata"]["finalizers"] = json!([TRACKED]);
    let Some(index) = index else {
        pod["metadata"]["generateName"] = json!(format!("{name}-"));
        return pod;
    };
    let number = index.to_string();
    pod["metadata"]["generateName"] = json!(format!("{name}-{number}-"));
    for member in ["labels", "annotations"] {
        object::member_mut(&mut pod["metadata"], member).insert(INDEX.to_owned(), json!(number));
    }
    if !pod["spec"]["hostname"].is_string() {
        pod["spec"]["hostname"] = json!(format!("{name}-{number}"));
    }
    for list in ["containers", "initContainers"] {
        for container in object::elements_mut(&mut pod["spec"], list) {
            let field = format!("metadata.labels['{INDEX}']");
            let variable = json!({
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": field } },
            });
            match container["env"].as_array_mut() {
                Some(env) => env.push(variable),
                None => container["env"] = json!([variable]),
            }
        }
    }
    pod
}

/// Lets a pod go that was kept to be counted.
pub(super) fn release(pod: &Value) -> Option<Step> {
    if !object::finalizers(pod).any(|one| one == TRACKED) {
        return None;
    }
    let rest: Vec<&str> = object::finalizers(pod)
        .filter(|one| *one != TRACKED)
        .collect();
    let rest = if rest.is_empty() {
        Value::Null
    } else {
        json!(rest)
    };
    let patch = json!({ "metadata": { "finalizers": rest } });
    Some(Step::Patch(POD, Subject::of(pod), patch))
}

/// Lets the pods of a job that is over go, and the job itself when its time has come.
fn clean_up(job: &Value, pods: &[Object], now: Timestamp) -> Plan {
    let mut steps: Vec<Step> = pods.iter().filter_map(|pod| release(pod)).collect();
    let Some(lifetime) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else {
        return Plan::of(steps);
    };
    let lifetime = SignedDuration::from_secs(lifetime);
    let end = finish_time(job).and_then(|time| time.checked_add(lifetime).ok());
    match end {
        Some(end) if end <= now => {
            steps.push(Step::Delete(JOB, Subject::of(job)));
            Plan::of(steps)
        }
        wake => Plan { steps, wake },
    }
}

//! What a job's status says, and whether it is over.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::pods::{condition, count, is_ready, number, time};
use super::super::replica_sets::set_number;
use super::tally::Tally;
use crate::environment::seconds;
use crate::object;

/// What becomes of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Goes,
    Suspended,
    /// It is over when the last pod has ended.
    Ends {
        well: bool,
        reason: String,
        message: String,
    },
}

const ENOUGH: &str = "CompletionsReached";
const TOO_LATE: &str = "DeadlineExceeded";
const TOO_OFTEN: &str = "BackoffLimitExceeded";

// === impl Verdict ===

impl Verdict {
    pub(super) fn of(job: &Value, tally: &Tally<'_>, now: Timestamp) -> Self {
        // What was once decided stays so.
        for (kind, well) in [("FailureTarget", false), ("SuccessCriteriaMet", true)] {
            if let Some(told) = condition(job, kind).filter(|told| told["status"] == "True") {
                let text = |member: &str| told[member].as_str().unwrap_or_default().to_owned();
                return Self::Ends {
                    well,
                    reason: text("reason"),
                    message: text("message"),
                };
            }
        }
        let ends = |well: bool, reason: &str, message: &str| Self::Ends {
            well,
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        let spec = &job["spec"];
        let limit = number(spec, "backoffLimit", 6);
        let restarts: i64 = tally.active.iter().map(|pod| restarts(pod)).sum();
        let starts_again = spec["template"]["spec"]["restartPolicy"] == "OnFailure";
        let restarted = starts_again && restarts > 0 && restarts >= limit;
        if tally.failed > limit || restarted {
            let message = "Job has reached the specified backoff limit";
            return ends(false, TOO_OFTEN, message);
        }
        if end(job).is_some_and(|end| end <= now) && spec["suspend"] != true {
            let message = "Job was active longer than specified deadline";
            return ends(false, TOO_LATE, message);
        }
        let enough = match spec["completions"].as_i64() {
            Some(completions) => tally.succeeded >= completions,
            None => tally.succeeded > 0 && tally.active.is_empty(),
        };
        if enough {
            return ends(true, ENOUGH, "Reached expected number of succeeded pods");
        }
        if spec["suspend"] == true {
            Self::Suspended
        } else {
            Self::Goes
        }
    }

    /// When a job that goes on has taken too long.
    pub(super) fn deadline(&self, job: &Value, now: Timestamp) -> Option<Timestamp> {
        let deadline = number(&job["spec"], "activeDeadlineSeconds", -1);
        if *self != Self::Goes || deadline < 0 {
            return None;
        }
        end(job).or_else(|| now.checked_add(SignedDuration::from_secs(deadline)).ok())
    }
}

fn restarts(pod: &Value) -> i64 {
    object::elements(&pod["status"], "containerStatuses")
        .filter_map(|one| one["restartCount"].as_i64())
        .sum()
}

/// When the time of a job that has started is over.
fn end(job: &Value) -> Option<Timestamp> {
    let limit = job["spec"]["activeDeadlineSeconds"].as_i64()?;
    let start = time(&job["status"]["startTime"])?;
    start.checked_add(SignedDuration::from_secs(limit)).ok()
}

pub(super) fn has(job: &Value, kind: &str) -> bool {
    condition(job, kind).is_some_and(|one| one["status"] == "True")
}

/// When a job was over.
pub(super) fn finish_time(job: &Value) -> Option<Timestamp> {
    let over = ["Complete", "Failed"].into_iter();
    let mut over = over.filter(|kind| has(job, kind));
    over.find_map(|kind| time(&condition(job, kind)?["lastTransitionTime"]))
}

/// The status, and the uids of the pods that it counts.
pub(super) fn of(
    job: &Value,
    tally: &Tally<'_>,
    verdict: &Verdict,
    now: Timestamp,
) -> (Value, Vec<String>) {
    let mut status = if job["status"].is_object() {
        job["status"].clone()
    } else {
        json!({})
    };
    let (good, bad) = &tally.uncounted;
    let mut uncounted = json!({});
    for (member, uids) in [("succeeded", good), ("failed", bad)] {
        if !uids.is_empty() {
            uncounted[member] = json!(uids);
        }
    }
    let ready = tally.active.iter().filter(|pod| is_ready(pod)).count();
    status["uncountedTerminatedPods"] = uncounted;
    status["ready"] = json!(ready);
    status["terminating"] = json!(tally.terminating);
    let indexed = job["spec"]["completionMode"] == "Indexed";
    let succeeded = if indexed {
        tally.succeeded
    } else {
        number(&status, "succeeded", 0) + tally.settled.0
    };
    let failed = number(&status, "failed", 0) + tally.settled.1;
    for (member, number) in [
        ("active", count(tally.active.len())),
        ("succeeded", succeeded),
        ("failed", failed),
    ] {
        set_number(&mut status, member, number);
    }
    if indexed && tally.completed.len() > 0 {
        status["completedIndexes"] = json!(tally.completed.to_string());
    }
    note(job, tally, verdict, &mut status, now);
    let counted = good.iter().chain(bad).cloned().collect();
    (status, counted)
}

/// Writes the times and conditions that follow from what becomes of the job.
fn note(job: &Value, tally: &Tally<'_>, verdict: &Verdict, status: &mut Value, now: Timestamp) {
    let now = seconds(now);
    let set = |status: &mut Value, kind: &str, holds: bool, reason: &str, message: &str| {
        let condition = json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
        });
        let had = object::elements(status, "conditions").find(|one| one["type"] == kind);
        let is_same = had.is_some_and(|had| had["status"] == condition["status"]);
        if !is_same {
            crate::registry::set_condition(&mut status["conditions"], condition, &now);
        }
    };
    match verdict {
        Verdict::Suspended => {
            set(status, "Suspended", true, "JobSuspended", "Job suspended");
            if let Some(members) = status.as_object_mut() {
                members.remove("startTime");
            }
        }
        Verdict::Goes => {
            if has(job, "Suspended") {
                set(status, "Suspended", false, "JobResumed", "Job resumed");
                status["startTime"] = json!(now);
            }
            if !status["startTime"].is_string() {
                status["startTime"] = json!(now);
            }
        }
        Verdict::Ends {
            well,
            reason,
            message,
        } => {
            let (first, last) = if *well {
                ("SuccessCriteriaMet", "Complete")
            } else {
                ("FailureTarget", "Failed")
            };
            if !status["startTime"].is_string() {
                status["startTime"] = json!(now);
            }
            set(status, first, true, reason, message);
            let left = !tally.active.is_empty() || tally.terminating > 0;
            let counts = tally.uncounted.0.is_empty() && tally.uncounted.1.is_empty();
            if !left && counts {
                set(status, last, true, reason, message);
                if *well {
                    status["completionTime"] = json!(now);
                }
            }
        }
    }
}

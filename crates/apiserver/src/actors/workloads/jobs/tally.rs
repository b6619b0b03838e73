//! How many pods of a job have ended, each counted once though it may be gone by the next look.

use serde_json::Value;

use super::super::pods::{has_ended, is_active, number};
use super::{Indexes, TRACKED, index_of};
use crate::object;
use crate::storage::Object;

/// The pods of a job, and what its status has already counted.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) active: Vec<&'a Object>,
    pub(super) terminating: usize,
    pub(super) failed_pods: Vec<&'a Object>,
    /// All that count, those that are not in the status's numbers yet included.
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// The parts of the work that are done, where they have numbers.
    pub(super) completed: Indexes,
    /// Those whose pods are still kept to be counted: `(succeeded, failed)`.
    pub(super) uncounted: (Vec<String>, Vec<String>),
    /// How many of the above are in the numbers from now on.
    pub(super) settled: (i64, i64),
}

// === impl Tally ===

impl<'a> Tally<'a> {
    pub(super) fn of(job: &Value, pods: &'a [Object]) -> Self {
        let status = &job["status"];
        let noted = |member: &str| -> Vec<String> {
            let noted = object::elements(&status["uncountedTerminatedPods"], member);
            noted
                .filter_map(|uid| uid.as_str().map(str::to_owned))
                .collect()
        };
        let (mut good, mut bad) = (noted("succeeded"), noted("failed"));
        let is_kept = |uid: &String| {
            pods.iter()
                .any(|pod| object::uid(pod) == uid && is_tracked(pod))
        };
        let before = (good.len(), bad.len());
        good.retain(is_kept);
        bad.retain(is_kept);
        let difference = |before: usize, after: usize| super::count(before - after);
        let settled = (
            difference(before.0, good.len()),
            difference(before.1, bad.len()),
        );
        let limit = job["spec"]["completions"].as_i64().unwrap_or(i64::MAX);
        let done = status["completedIndexes"].as_str().unwrap_or_default();
        let mut completed = Indexes::parse(done, limit);
        let waits = job["spec"]["podReplacementPolicy"] == "Failed";
        for pod in pods.iter().filter(|pod| is_tracked(pod)) {
            let uid = object::uid(pod).to_owned();
            let is_known = good.contains(&uid) || bad.contains(&uid);
            let ended_well = pod["status"]["phase"] == "Succeeded";
            if ended_well {
                completed.extend(index_of(pod));
            }
            if is_known {
                continue;
            }
            if ended_well {
                good.push(uid);
            } else if has_ended(pod) || (object::is_being_deleted(pod) && !waits) {
                bad.push(uid);
            }
        }
        let counted = |member: &str| number(status, member, 0);
        let indexed = job["spec"]["completionMode"] == "Indexed";
        let succeeded = if indexed {
            super::count(completed.len())
        } else {
            counted("succeeded") + settled.0 + super::count(good.len())
        };
        let is_terminating = |pod: &&Object| object::is_being_deleted(pod) && !has_ended(pod);
        Self {
            active: pods.iter().filter(|pod| is_active(pod)).collect(),
            terminating: pods.iter().filter(is_terminating).count(),
            failed_pods: pods
                .iter()
                .filter(|pod| pod["status"]["phase"] == "Failed")
                .collect(),
            succeeded,
            failed: counted("failed") + settled.1 + super::count(bad.len()),
            completed,
            uncounted: (good, bad),
            settled,
        }
    }
}

fn is_tracked(pod: &Value) -> bool {
    object::finalizers(pod).any(|one| one == TRACKED)
}

/// Whether a pod does nothing any more, or will not for long.
pub(super) fn is_over(pod: &Value) -> bool {
    has_ended(pod) || object::is_being_deleted(pod)
}

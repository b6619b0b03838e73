//! `StatefulSet`s: pods with a name each, made and given up in order, with claims that outlive them.

mod status;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::template::Template;
use super::pods::{controller_reference, has_ended, is_available, is_of, number, part};
use super::revisions::{LABEL, Revisions};
use super::step::{Around, CLAIM, POD, Plan, STATEFUL_SET, Step, Subject};
use crate::object;
use crate::storage::Object;

/// A set with its pods by their number.
struct View<'a> {
    set: &'a Value,
    pods: BTreeMap<i64, &'a Object>,
    claims: &'a [Object],
    first: i64,
    wanted: i64,
    /// Whether one pod waits for the one before.
    ordered: bool,
    /// The names of the revisions that new and old pods have.
    update: &'a str,
    current: &'a str,
    now: Timestamp,
}

/// What a set does about its pods and claims.
pub(super) fn plan(set: &Value, around: &Around<'_>) -> Plan {
    let revisions = Revisions::new(set, around.own);
    let is_going = object::is_being_deleted(set);
    if let Some(step) = revisions.renew(set).filter(|_| !is_going) {
        return Plan::of(vec![step]);
    }
    let update = revisions.present().map_or("", |one| object::name(one));
    let told = set["status"]["currentRevision"].as_str();
    let told = told.and_then(|name| revisions.named(name));
    let current = told.map_or(update, |one| object::name(one));
    let view = View::new(set, around, update, current);
    let (status, wake) = status::of(&view);
    let mut steps = Vec::new();
    if !is_going {
        let old = revisions.named(current);
        steps = view.steps(|ordinal| Template::of(set, ordinal, old, revisions.present()));
        if steps.is_empty() {
            let used = view
                .pods
                .values()
                .filter_map(|pod| object::label(pod, LABEL));
            let live: Vec<&str> = used.chain([update, current]).collect();
            steps = revisions.forget(set, &live);
        }
    }
    steps.extend(Step::status(STATEFUL_SET, set, status));
    Plan { steps, wake }
}

// === impl View ===

impl<'a> View<'a> {
    fn new(set: &'a Value, around: &Around<'a>, update: &'a str, current: &'a str) -> Self {
        let pods = around.own.iter().filter(|one| one["kind"] == "Pod");
        let numbered = pods.filter_map(|pod| Some((ordinal(set, pod)?, pod)));
        let spec = &set["spec"];
        Self {
            set,
            pods: numbered.collect(),
            claims: around.claims,
            first: number(&spec["ordinals"], "start", 0),
            wanted: number(spec, "replicas", 1),
            ordered: spec["podManagementPolicy"] != "Parallel",
            update,
            current,
            now: around.now,
        }
    }

    /// The numbers that pods are to have.
    fn ordinals(&self) -> std::ops::Range<i64> {
        self.first..self.first + self.wanted
    }

    fn is_available(&self, pod: &Value) -> bool {
        let min_ready = number(&self.set["spec"], "minReadySeconds", 0);
        !object::is_being_deleted(pod) && is_available(pod, min_ready, self.now) == Ok(true)
    }

    fn steps(&self, template: impl Fn(i64) -> Template) -> Vec<Step> {
        let mut steps = self.own_claims();
        for ordinal in self.ordinals() {
            let pod = self.pods.get(&ordinal);
            let waits = match pod {
                Some(pod) if object::is_being_deleted(pod) => true,
                Some(pod) if has_ended(pod) => {
                    steps.push(Step::Delete(POD, Subject::of(pod)));
                    true
                }
                Some(pod) => !self.is_available(pod),
                None => {
                    let template = template(ordinal);
                    steps.extend(self.missing_claims(&template));
                    steps.push(Step::Create(POD, template.pod));
                    true
                }
            };
            if waits && self.ordered {
                return steps;
            }
        }
        let (given_up, waits) = self.give_up();
        steps.extend(given_up);
        if steps.is_empty() && !(waits && self.ordered) {
            steps = self.update();
        }
        steps
    }

    /// Gives up pods whose numbers are too high or too low, the highest first.
    fn give_up(&self) -> (Vec<Step>, bool) {
        let mut steps = Vec::new();
        let ordinals = self.ordinals();
        let condemned = self.pods.iter().rev();
        let condemned = condemned.filter(|(ordinal, _)| !ordinals.contains(ordinal));
        let mut waits = false;
        for (ordinal, pod) in condemned {
            waits = true;
            if !object::is_being_deleted(pod) {
                steps.extend(self.hand_claims_to(*ordinal, pod));
                steps.push(Step::Delete(POD, Subject::of(pod)));
            }
            if self.ordered {
                break;
            }
        }
        (steps, waits)
    }

    /// Gives up pods of an older template, the highest number first, down to the partition.
    fn update(&self) -> Vec<Step> {
        let strategy = &self.set["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" {
            return Vec::new();
        }
        let rolling = &strategy["rollingUpdate"];
        let lowest = self.first + number(rolling, "partition", 0);
        let most = part(&rolling["maxUnavailable"], self.wanted, true).max(1);
        let is_away = |pod: &&&Object| !self.is_available(pod);
        let mut away =
            i64::try_from(self.pods.values().filter(is_away).count()).unwrap_or(i64::MAX);
        let mut steps = Vec::new();
        for ordinal in self.ordinals().rev().filter(|ordinal| *ordinal >= lowest) {
            let Some(pod) = self.pods.get(&ordinal) else {
                continue;
            };
            let is_new = object::label(pod, LABEL) == Some(self.update);
            if is_new || object::is_being_deleted(pod) {
                continue;
            }
            let is_away = !self.is_available(pod);
            if away >= most && !is_away {
                break;
            }
            away += i64::from(!is_away);
            steps.push(Step::Delete(POD, Subject::of(pod)));
        }
        steps
    }

    fn missing_claims<'t>(&self, template: &'t Template) -> impl Iterator<Item = Step> + use<'t> {
        let present: Vec<String> = self
            .claims
            .iter()
            .map(|one| object::name(one).to_owned())
            .collect();
        let missing = template.claims.iter();
        missing
            .filter(move |claim| !present.iter().any(|name| name == object::name(claim)))
            .map(|claim| Step::Create(CLAIM, claim.clone()))
    }

    /// Lets the claims of a pod go with it, if that is wanted.
    fn hand_claims_to(&self, ordinal: i64, pod: &Value) -> Vec<Step> {
        if self.set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] != "Delete" {
            return Vec::new();
        }
        let names = template::claim_names(self.set, ordinal);
        let claims = self.claims.iter().filter(|claim| {
            names.iter().any(|name| name == object::name(claim)) && !is_of(pod, claim)
        });
        claims
            .map(|claim| {
                let owners = json!([controller_reference(pod)]);
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                Step::Patch(CLAIM, Subject::of(claim), patch)
            })
            .collect()
    }

    /// Lets the claims go with the set, or stay, as is wanted.
    fn own_claims(&self) -> Vec<Step> {
        let policy = &self.set["spec"]["persistentVolumeClaimRetentionPolicy"];
        let wanted = policy["whenDeleted"] == "Delete";
        let names: Vec<String> = self
            .ordinals()
            .flat_map(|ordinal| template::claim_names(self.set, ordinal))
            .collect();
        let differing = self.claims.iter().filter(|claim| {
            names.iter().any(|name| name == object::name(claim))
                && is_of(self.set, claim) != wanted
                && (wanted
                    || object::controller(claim).is_some_and(|one| one["kind"] == "StatefulSet"))
        });
        differing
            .map(|claim| {
                let owners = if wanted {
                    json!([controller_reference(self.set)])
                } else {
                    Value::Null
                };
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                Step::Patch(CLAIM, Subject::of(claim), patch)
            })
            .collect()
    }
}

/// The number of a pod.
fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let number = object::name(pod).strip_prefix(object::name(set))?;
    number.strip_prefix('-')?.parse().ok()
}

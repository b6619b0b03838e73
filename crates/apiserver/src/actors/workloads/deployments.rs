//! Deployments: they roll out by way of `ReplicaSet`s, one for each template.

mod rollout;
mod status;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::rollout::{Limits, Part, Scale};
use self::status::Event;
use super::hash;
use super::pods::{controller_reference, number, part};
use super::step::{DEPLOYMENT, Plan, REPLICA_SET, Step, Subject};
use crate::object;
use crate::storage::Object;

/// The label by which the pods of one template are told from others.
const HASH: &str = "pod-template-hash";

const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many replicas a set's deployment wanted, and could have at most, when the set was scaled last.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a deployment that its sets do not get.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// A deployment with the sets that it looks after, the oldest first.
struct View<'a> {
    deployment: &'a Value,
    limits: Limits,
    /// The set of the present template.
    new: Option<&'a Object>,
    old: Vec<&'a Object>,
}

/// What a deployment does about its sets.
pub(super) fn plan(deployment: &Value, sets: &[Object], now: Timestamp) -> Plan {
    let view = View::new(deployment, sets);
    let mut event = Event::None;
    let mut steps = Vec::new();
    if !object::is_being_deleted(deployment) {
        let is_paused = deployment["spec"]["paused"] == true;
        if is_paused || view.is_scaled() {
            steps = view.scale_in_proportion();
        }
        if steps.is_empty() && !is_paused {
            steps = if deployment["spec"]["strategy"]["type"] == "Recreate" {
                view.recreate(&mut event)
            } else {
                view.roll(&mut event)
            };
        }
        if steps.is_empty() && view.is_complete() {
            steps = view.forget_history();
        }
    }
    let revision = view.revision(&event);
    let (status, wake) = status::of(&view, &event, now);
    let metadata = match revision {
        Some(revision) => json!({ "annotations": { REVISION: revision.to_string() } }),
        None => json!({}),
    };
    let annotated = deployment["metadata"]["annotations"][REVISION].as_str();
    let has_revision = revision.is_none_or(|one| annotated == Some(&one.to_string()));
    if deployment["status"] != status || !has_revision {
        let subject = Subject::of(deployment);
        steps.push(Step::Status(DEPLOYMENT, subject, status, metadata));
    }
    Plan { steps, wake }
}

/// The template of a deployment or a set without the label that tells it from others.
fn bare(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}

fn replicas(set: &Value) -> i64 {
    number(&set["spec"], "replicas", 1)
}

fn available(set: &Value) -> i64 {
    number(&set["status"], "availableReplicas", 0)
}

fn annotated(set: &Value, name: &str) -> Option<i64> {
    set["metadata"]["annotations"][name].as_str()?.parse().ok()
}

// === impl View ===

impl<'a> View<'a> {
    fn new(deployment: &'a Value, sets: &'a [Object]) -> Self {
        let spec = &deployment["spec"];
        let wanted = number(spec, "replicas", 1);
        let rolling = &spec["strategy"]["rollingUpdate"];
        let recreates = spec["strategy"]["type"] == "Recreate";
        let template = bare(&spec["template"]);
        let mut sets: Vec<&Object> = sets.iter().collect();
        sets.sort_by_key(|set| {
            let created = set["metadata"]["creationTimestamp"].as_str();
            (created.map(str::to_owned), object::name(set).to_owned())
        });
        let new = sets
            .iter()
            .copied()
            .find(|set| bare(&set["spec"]["template"]) == template);
        let uid = new.map(|set| object::uid(set));
        let others = sets.iter().copied();
        let old = others.filter(|set| Some(object::uid(set)) != uid).collect();
        Self {
            deployment,
            limits: Limits::new(
                wanted,
                if recreates {
                    0
                } else {
                    part(&rolling["maxSurge"], wanted, true)
                },
                if recreates {
                    wanted
                } else {
                    part(&rolling["maxUnavailable"], wanted, false)
                },
            ),
            new,
            old,
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a Object> {
        self.old.iter().copied().chain(self.new)
    }

    fn part(set: &Value) -> Part {
        Part {
            replicas: replicas(set),
            available: available(set),
        }
    }

    /// Whether the number of replicas was changed since the sets were scaled last.
    fn is_scaled(&self) -> bool {
        let mut active = self.all().filter(|set| replicas(set) > 0);
        active.any(|set| annotated(set, DESIRED).is_some_and(|had| had != self.limits.wanted))
    }

    /// Whether the rollout is over and nothing of it left.
    fn is_complete(&self) -> bool {
        let status = &self.deployment["status"];
        let all = ["replicas", "updatedReplicas", "availableReplicas"];
        let wanted = self.limits.wanted;
        let there = all.iter().all(|member| number(status, member, 0) == wanted);
        let observed = number(status, "observedGeneration", 0);
        there && observed == object::generation(self.deployment)
    }

    /// The steps that bring a set to so many replicas, and note what was wanted of all.
    fn scale(&self, set: &Value, replicas_wanted: i64) -> Option<Step> {
        let desired = self.limits.wanted.to_string();
        let max = self.limits.most().to_string();
        let annotations = &set["metadata"]["annotations"];
        let noted = annotations[DESIRED] == desired && annotations[MAX] == max;
        (replicas(set) != replicas_wanted || !noted).then(|| {
            let patch = json!({
                "metadata": { "annotations": { DESIRED: desired, MAX: max } },
                "spec": { "replicas": replicas_wanted },
            });
            Step::Patch(REPLICA_SET, Subject::of(set), patch)
        })
    }

    fn roll(&self, event: &mut Event) -> Vec<Step> {
        let old: Vec<Part> = self.old.iter().map(|set| Self::part(set)).collect();
        let Some(new) = self.new else {
            let size = self.limits.grow(0, &old);
            return vec![self.create(size, event)];
        };
        let renewed = self.renew(new, event);
        if !renewed.is_empty() {
            return renewed;
        }
        let scales = self.limits.next(Self::part(new), &old);
        let steps = scales.into_iter().filter_map(|scale| match scale {
            Scale::New(replicas) => self.scale(new, replicas),
            Scale::Old(index, replicas) => self.scale(self.old[index], replicas),
        });
        let mut steps: Vec<Step> = steps.collect();
        if steps.is_empty() {
            steps.extend(self.scale(new, replicas(new)));
        }
        steps
    }

    fn recreate(&self, event: &mut Event) -> Vec<Step> {
        let running = self.old.iter().filter(|set| replicas(set) > 0);
        let ended: Vec<Step> = running.filter_map(|set| self.scale(set, 0)).collect();
        if !ended.is_empty() {
            return ended;
        }
        let is_empty = |set: &Object| {
            let status = &set["status"];
            number(status, "observedGeneration", 0) == object::generation(set)
                && number(status, "replicas", 0) == 0
                && number(status, "terminatingReplicas", 0) == 0
        };
        if !self.old.iter().all(|set| is_empty(set)) {
            return Vec::new();
        }
        let Some(new) = self.new else {
            return vec![self.create(self.limits.wanted, event)];
        };
        let renewed = self.renew(new, event);
        if !renewed.is_empty() {
            return renewed;
        }
        self.scale(new, self.limits.wanted).into_iter().collect()
    }

    fn create(&self, size: i64, event: &mut Event) -> Step {
        let template = bare(&self.deployment["spec"]["template"]);
        let hash = hash::name(&template);
        let name = format!("{}-{hash}", object::name(self.deployment));
        *event = Event::Created(name.clone());
        let spec = &self.deployment["spec"];
        let mut annotations = self.handed_on();
        annotations[REVISION] = json!(self.next_revision().to_string());
        annotations[DESIRED] = json!(self.limits.wanted.to_string());
        annotations[MAX] = json!(self.limits.most().to_string());
        let mut set = json!({
            "metadata": {
                "name": name,
                "labels": spec["template"]["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [controller_reference(self.deployment)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": number(spec, "minReadySeconds", 0),
                "selector": spec["selector"],
                "template": template,
            },
        });
        for place in [
            "/metadata/labels",
            "/spec/selector/matchLabels",
            "/spec/template/metadata/labels",
        ] {
            let (parent, member) = place.rsplit_once('/').unwrap_or_default();
            if let Some(parent) = set.pointer_mut(parent) {
                object::member_mut(parent, member).insert(HASH.to_owned(), json!(hash));
            }
        }
        Step::Create(REPLICA_SET, set)
    }

    /// The annotations of the deployment that its sets get.
    fn handed_on(&self) -> Value {
        let annotations = self.deployment["metadata"]["annotations"].as_object();
        let handed_on = annotations.into_iter().flatten();
        let handed_on = handed_on.filter(|(name, _)| !OWN_ANNOTATIONS.contains(&name.as_str()));
        handed_on
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn next_revision(&self) -> i64 {
        let revisions = self.old.iter().filter_map(|set| annotated(set, REVISION));
        revisions.max().unwrap_or_default() + 1
    }

    /// The revision of the present template, when there is or will be a set for it.
    fn revision(&self, event: &Event) -> Option<i64> {
        let new = self.new.and_then(|set| annotated(set, REVISION));
        match (new, event) {
            (_, Event::Created(_) | Event::Found(_)) => Some(self.next_revision()),
            (new, Event::None) => new,
        }
    }

    /// Brings the annotations of the present template's set up to date. It is the newest revision, though it may be an
    /// old set that was rolled back to.
    fn renew(&self, new: &Object, event: &mut Event) -> Vec<Step> {
        let mut annotations = self.handed_on();
        let revision = annotated(new, REVISION);
        let next = self.next_revision();
        if revision.is_none_or(|revision| revision < next) {
            annotations[REVISION] = json!(next.to_string());
            if let Some(revision) = revision {
                let before = new["metadata"]["annotations"][HISTORY].as_str();
                let history = before.map_or_else(
                    || revision.to_string(),
                    |before| format!("{before},{revision}"),
                );
                annotations[HISTORY] = json!(history);
            }
            *event = Event::Found(object::name(new).to_owned());
        }
        let mut patch = json!({});
        let min_ready = number(&self.deployment["spec"], "minReadySeconds", 0);
        if number(&new["spec"], "minReadySeconds", 0) != min_ready {
            patch["spec"]["minReadySeconds"] = json!(min_ready);
        }
        let had = &new["metadata"]["annotations"];
        let annotations = annotations.as_object().into_iter().flatten();
        for (name, value) in annotations.filter(|(name, value)| had[*name] != **value) {
            patch["metadata"]["annotations"][name] = value.clone();
        }
        if patch == json!({}) {
            return Vec::new();
        }
        vec![Step::Patch(REPLICA_SET, Subject::of(new), patch)]
    }

    fn scale_in_proportion(&self) -> Vec<Step> {
        let active: Vec<&Object> = self.all().filter(|set| replicas(set) > 0).collect();
        let single = match (&active[..], self.new) {
            ([one], _) => Some(*one),
            ([], new) => new.or(self.old.last().copied()),
            _ => None,
        };
        if let Some(set) = single {
            return self.scale(set, self.limits.wanted).into_iter().collect();
        }
        let rolls = self.deployment["spec"]["strategy"]["type"] != "Recreate";
        if !rolls || active.is_empty() {
            return Vec::new();
        }
        let parts: Vec<(Part, Option<i64>)> = active
            .iter()
            .map(|set| (Self::part(set), annotated(set, MAX)))
            .collect();
        let sizes = self.limits.in_proportion(&parts);
        let scaled = active.iter().zip(sizes);
        scaled
            .filter_map(|(set, size)| self.scale(set, size))
            .collect()
    }

    /// Deletes sets of templates that nobody is going to roll back to.
    fn forget_history(&self) -> Vec<Step> {
        let limit = number(&self.deployment["spec"], "revisionHistoryLimit", 10);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut empty: Vec<&&Object> = self
            .old
            .iter()
            .filter(|set| {
                let status = number(&set["status"], "replicas", 0);
                replicas(set) == 0 && status == 0 && !object::is_being_deleted(set)
            })
            .collect();
        empty.sort_by_key(|set| annotated(set, REVISION));
        let excess = empty.len().saturating_sub(limit);
        let forgotten = empty.iter().take(excess);
        forgotten
            .map(|set| Step::Delete(REPLICA_SET, Subject::of(set)))
            .collect()
    }
}

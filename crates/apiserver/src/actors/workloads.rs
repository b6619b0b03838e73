//! Pretends that a cluster runs the workloads: what makes pods makes them, they run and end, and disruption budgets
//! say how many can go.
//!
//! What is to be done is decided by functions of what is there, which give [`Plan`]s; [`Workloads`] knows whom a
//! change concerns, and makes one write of a plan after the other.

mod budgets;
mod claims;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod hash;
mod jobs;
mod kubelet;
mod makers;
mod nodes;
mod pod_status;
mod pods;
mod replica_sets;
mod revisions;
mod stage;
mod stateful_sets;
mod step;
mod timers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use self::kubelet::Kubelet;
use self::makers::{MAKERS, Maker, Sees};
use self::pods::{claim, is_of};
use self::step::{Around, CLAIM, DAEMON_SET, JOB, Kind, NODE, POD, Plan, REVISION, Step, VOLUME};
use self::timers::Timers;
use super::MANAGER;
use crate::fate::{Fate, PodRule, Workload};
use crate::object;
use crate::registry::{Registry, selects};
use crate::storage::{Change, ChangeKind, Key, Object};

/// Looks at everything that has to do with pods when something changed that concerns it.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    seen: u64,
    has_nodes: bool,
    queues: BTreeMap<Workload, BTreeSet<Key>>,
    timers: Timers,
    /// What is left of a plan.
    left: VecDeque<(Workload, Key, Step)>,
    kubelet: Kubelet,
    /// How often each is held back.
    held: BTreeMap<Workload, usize>,
}

/// What budgets depend on beside pods: how many of them there are to be.
const COUNTED: [&str; 5] = [
    PODS,
    "/replicationcontrollers",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
];

const PODS: &str = "/pods";
const NODES: &str = "/nodes";
const CLAIMS: &str = "/persistentvolumeclaims";
const VOLUMES: &str = "/persistentvolumes";
const BUDGETS: &str = "policy/poddisruptionbudgets";

/// How long after a write that the server refused it is tried again.
const PAUSE_SECONDS: i64 = 10;

// === impl Workloads ===

impl Workloads {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        if !self.has_nodes {
            self.has_nodes = true;
            let none = NODE.keys(registry, None).is_empty();
            if none && nodes::first().make(registry, "", MANAGER) {
                return true;
            }
        }
        self.take_in(registry);
        self.timers.take_due(registry.timestamp(), &mut self.queues);
        loop {
            if let Some(place) = self.left.iter().position(|(one, ..)| !self.is_held(*one))
                && let Some((workload, key, step)) = self.left.remove(place)
            {
                if self.make(registry, workload, &key, &step) {
                    return true;
                }
                continue;
            }
            let Some((workload, key)) = self.next() else {
                return false;
            };
            if self.look_at(registry, workload, &key) {
                return true;
            }
        }
    }

    /// When there is something to look at though nothing changes.
    pub(super) fn wake(&self) -> Option<Timestamp> {
        self.timers.first(|workload| self.is_held(workload))
    }

    pub(crate) fn hold(&mut self, workload: Workload) {
        *self.held.entry(workload).or_default() += 1;
    }

    pub(crate) fn release(&mut self, workload: Workload) {
        if let Some(count) = self.held.get_mut(&workload) {
            *count = count.saturating_sub(1);
        }
    }

    /// Lets a fate be that of pods until it is taken away.
    pub(crate) fn add_rule(&mut self, registry: &Registry, rule: PodRule, fate: Fate) -> u64 {
        self.look_at_all_pods(registry);
        self.kubelet.add_rule(rule, fate)
    }

    pub(crate) fn remove_rule(&mut self, registry: &Registry, id: u64) {
        self.look_at_all_pods(registry);
        self.kubelet.remove_rule(id);
    }

    fn look_at_all_pods(&mut self, registry: &Registry) {
        let all = POD.keys(registry, None);
        self.queues.entry(Workload::Pods).or_default().extend(all);
    }

    fn is_held(&self, workload: Workload) -> bool {
        self.held.get(&workload).is_some_and(|count| *count > 0)
    }

    /// What is to be looked at next: pods first, so that those who make them see how they fare.
    fn next(&mut self) -> Option<(Workload, Key)> {
        let held = &self.held;
        let is_held = |workload: &Workload| held.get(workload).is_some_and(|count| *count > 0);
        self.queues
            .iter_mut()
            .filter(|(workload, _)| !is_held(workload))
            .find_map(|(workload, queue)| Some((*workload, queue.pop_first()?)))
    }

    fn enqueue(&mut self, workload: Workload, key: Key) {
        self.queues.entry(workload).or_default().insert(key);
    }

    fn take_in(&mut self, registry: &Registry) {
        let mut counted: BTreeSet<String> = BTreeSet::new();
        if self.seen < registry.store.compacted() {
            // Some changes are forgotten already: look at everything.
            for key in registry.store.keys() {
                if let Some(workload) = looked_at_by(&key.resource) {
                    self.enqueue(workload, key.clone());
                }
            }
        } else {
            for change in registry.store.all_changes_after(self.seen) {
                if COUNTED.contains(&&*change.key.resource) {
                    counted.insert(change.key.namespace.clone());
                }
                let resource = &change.key.resource;
                // Nobody looks at a revision, but whoever has made it does something next.
                if looked_at_by(resource).is_some() || REVISION.is_at(resource) {
                    self.take_in_change(registry, change);
                }
            }
        }
        self.seen = registry.store.revision();
        for namespace in counted {
            for budget in budgets::of_namespace(registry, &namespace) {
                self.enqueue(Workload::Budgets, budget);
            }
        }
    }

    fn take_in_change(&mut self, registry: &Registry, change: &Change) {
        let key = &change.key;
        let Some(object) = registry.store.object_of(change) else {
            return;
        };
        let is_gone = change.kind == ChangeKind::Deleted;
        if let Some(workload) = looked_at_by(&key.resource) {
            if is_gone {
                self.timers.forget(workload, key);
            } else {
                self.enqueue(workload, key.clone());
            }
        }
        match &*key.resource {
            PODS => self.take_in_pod(registry, key, &object, is_gone),
            NODES => self.take_in_node(registry),
            CLAIMS if is_gone => {
                let volume = VOLUME.target(registry, "", &claims::volume_name(&object));
                let volume = volume.map(|volume| volume.key());
                self.queues
                    .entry(Workload::Claims)
                    .or_default()
                    .extend(volume);
            }
            _ if is_gone && JOB.is_at(&key.resource) => {
                // Its pods are kept to be counted, and nobody counts them any more.
                let pods = registry.store.dependents(object::uid(&object));
                self.queues
                    .entry(Workload::Jobs)
                    .or_default()
                    .extend(pods.cloned());
            }
            _ => {}
        }
        self.enqueue_makers(registry, key, &object, is_gone);
        if change.kind == ChangeKind::Modified
            && let Some(before) = registry.store.previous_of(change)
        {
            if object::controller(&before) != object::controller(&object) {
                self.enqueue_makers(registry, key, &before, is_gone);
            }
            // Annotations of what makes pods say how they fare.
            if before["metadata"]["annotations"] != object["metadata"]["annotations"] {
                let dependents = registry.store.dependents(object::uid(&object));
                let pods = dependents.filter(|key| &*key.resource == PODS);
                let queue = self.queues.entry(Workload::Pods).or_default();
                queue.extend(pods.cloned());
            }
        }
    }

    /// Whoever looks after an object looks at it. If nobody does, those who would take it do.
    fn enqueue_makers(&mut self, registry: &Registry, key: &Key, object: &Value, is_gone: bool) {
        if let Some(controller) = object::controller(object) {
            let uid = controller["uid"].as_str().unwrap_or_default();
            let Some(maker) = registry.store.by_uid(uid) else {
                return;
            };
            if let Some(workload) = looked_at_by(&maker.resource) {
                self.enqueue(workload, maker.clone());
            }
            // A deployment that waits for the last pod is two steps away.
            let object = registry.store.get(maker).filter(|_| is_gone);
            let next = object.as_deref().and_then(object::controller);
            let next = next.and_then(|next| registry.store.by_uid(next["uid"].as_str()?));
            if let Some(next) = next
                && let Some(workload) = looked_at_by(&next.resource)
            {
                self.enqueue(workload, next.clone());
            }
            return;
        }
        if is_gone {
            return;
        }
        for maker in &MAKERS {
            if maker.makes.iter().any(|kind| kind.is_at(&key.resource)) {
                let all = maker.kind.keys(registry, Some(&key.namespace));
                let selecting = all.into_iter().filter(|key| {
                    let maker = registry.store.get(key);
                    maker.is_some_and(|maker| selects(&maker["spec"]["selector"], object))
                });
                let queue = self.queues.entry(maker.workload).or_default();
                queue.extend(selecting);
            }
        }
    }

    fn take_in_pod(&mut self, registry: &Registry, key: &Key, pod: &Value, is_gone: bool) {
        if is_gone {
            self.kubelet.forget(object::uid(pod));
        } else if jobs::release(pod).is_some() {
            self.enqueue(Workload::Jobs, key.clone());
        }
        // Claims that are to go wait for the pods that use them, and file systems that are to grow for one that runs.
        if is_gone || pods::has_ended(pod) || pod["status"]["phase"] == "Running" {
            let all = CLAIM.keys(registry, Some(&key.namespace));
            let used = all
                .into_iter()
                .filter(|claim| claims::mounts(pod, &claim.name));
            self.queues
                .entry(Workload::Claims)
                .or_default()
                .extend(used);
        }
    }

    /// Pods that wait may fit on a node now.
    fn take_in_node(&mut self, registry: &Registry) {
        let sets = DAEMON_SET.keys(registry, None);
        self.queues
            .entry(Workload::DaemonSets)
            .or_default()
            .extend(sets);
        let waits = |key: &Key| {
            let pod = registry.store.get(key);
            pod.is_some_and(|pod| !pod["spec"]["nodeName"].is_string())
        };
        let waiting = POD.keys(registry, None).into_iter().filter(waits);
        self.queues
            .entry(Workload::Pods)
            .or_default()
            .extend(waiting);
    }

    fn look_at(&mut self, registry: &mut Registry, workload: Workload, key: &Key) -> bool {
        if &*key.resource == PODS && workload == Workload::Pods {
            let look = self.kubelet.look_at(registry, key);
            self.timers.set(workload, key.clone(), look.wake);
            return look.worked;
        }
        if &*key.resource == BUDGETS {
            return budgets::look_at(registry, key);
        }
        let Some(object) = registry.store.get(key) else {
            return false;
        };
        let plan = match &*key.resource {
            PODS => plan_forgotten(registry, &object),
            NODES => Plan::of(nodes::plan(&object, &registry.now())),
            CLAIMS => {
                let pods = objects(registry, &POD.keys(registry, Some(&key.namespace)));
                let volume = VOLUME.target(registry, "", &claims::volume_name(&object));
                let volume = volume.and_then(|volume| registry.store.get(&volume.key()));
                claims::plan(&object, &pods, volume.as_deref(), &registry.now())
            }
            VOLUMES => {
                let claim = object["spec"]["claimRef"]["uid"]
                    .as_str()
                    .unwrap_or_default();
                claims::plan_volume(&object, registry.store.by_uid(claim).is_some())
            }
            storage => match MAKERS.iter().find(|maker| maker.kind.is_at(storage)) {
                Some(maker) => plan(registry, maker, key, &object),
                None => return false,
            },
        };
        self.follow(registry, workload, key, plan)
    }

    /// Makes the first write of a plan, and keeps the rest.
    fn follow(
        &mut self,
        registry: &mut Registry,
        workload: Workload,
        key: &Key,
        plan: Plan,
    ) -> bool {
        let Plan { steps, wake } = plan;
        self.timers.set(workload, key.clone(), wake);
        let mut steps = steps.into_iter();
        while let Some(step) = steps.next() {
            let worked = self.make(registry, workload, key, &step);
            if worked {
                let left = steps.map(|step| (workload, key.clone(), step));
                self.left.extend(left);
                return true;
            }
        }
        false
    }

    /// Makes a write. One that is refused is tried again after a while.
    fn make(
        &mut self,
        registry: &mut Registry,
        workload: Workload,
        key: &Key,
        step: &Step,
    ) -> bool {
        let worked = step.make(registry, &key.namespace, MANAGER);
        if !worked && step.must_work() {
            let pause = SignedDuration::from_secs(PAUSE_SECONDS);
            let again = registry.timestamp().checked_add(pause).ok();
            self.timers.set(workload, key.clone(), again);
        }
        worked
    }
}

/// Who looks at objects of a resource.
fn looked_at_by(storage: &str) -> Option<Workload> {
    match storage {
        PODS | NODES => Some(Workload::Pods),
        BUDGETS => Some(Workload::Budgets),
        CLAIMS | VOLUMES => Some(Workload::Claims),
        _ => {
            let maker = MAKERS.iter().find(|maker| maker.kind.is_at(storage));
            maker.map(|maker| maker.workload)
        }
    }
}

/// Lets a pod go whose job is gone, so that nobody counts it.
fn plan_forgotten(registry: &Registry, pod: &Value) -> Plan {
    let job = object::controller(pod).filter(|owner| owner["kind"] == "Job");
    let uid = job.and_then(|job| job["uid"].as_str());
    let is_looked_after = uid.is_some_and(|uid| registry.store.by_uid(uid).is_some());
    let release = jobs::release(pod).filter(|_| !is_looked_after);
    Plan::of(release.into_iter().collect())
}

/// What somebody does about what it makes. First it has to be clear what belongs to it.
fn plan(registry: &Registry, maker: &Maker, key: &Key, object: &Object) -> Plan {
    let selector = &object["spec"]["selector"];
    let mut own: Vec<Object> = Vec::new();
    let mut claims: Vec<Step> = Vec::new();
    for kind in maker.makes {
        let all = objects(registry, &kind.keys(registry, Some(&key.namespace)));
        let related: Vec<Object> = all
            .into_iter()
            .filter(|one| is_of(object, one) || selects(selector, one))
            .collect();
        // What selects nothing, as a CronJob, takes nothing and gives nothing away.
        if selector.is_object() {
            claims.extend(claim(object, *kind, &related));
        }
        own.extend(related.into_iter().filter(|one| is_of(object, one)));
    }
    if !claims.is_empty() {
        return Plan::of(claims);
    }
    let of =
        |kind: Kind, namespace: Option<&str>| objects(registry, &kind.keys(registry, namespace));
    let volume_claims = match maker.sees {
        Sees::Claims => of(CLAIM, Some(&key.namespace)),
        Sees::Nothing | Sees::Nodes => Vec::new(),
    };
    let nodes = match maker.sees {
        Sees::Nodes => nodes::all(registry),
        Sees::Nothing | Sees::Claims => Vec::new(),
    };
    let around = Around {
        own: &own,
        claims: &volume_claims,
        nodes: &nodes,
        now: registry.timestamp(),
    };
    (maker.plan)(object, &around)
}

fn objects(registry: &Registry, keys: &[Key]) -> Vec<Object> {
    let found = keys.iter().filter_map(|key| registry.store.get(key));
    found.collect()
}

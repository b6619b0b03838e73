//! The scheduler and the kubelets: pods get a node, run, and end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::nodes::{self, Fit};
use super::pod_status::{self, Place};
use super::pods::{has_ended, time};
use super::stage::{Stage, end_of};
use crate::actors::{delete_options, write_options};
use crate::fate::{Conduct, Fate, Outcome, PodRule};
use crate::object;
use crate::registry::{DeleteOptions, Registry, WriteOptions};
use crate::storage::{Key, Object};

/// What the kubelets know of their pods, and what tests want of them.
#[derive(Debug, Default)]
pub(super) struct Kubelet {
    /// At which stage each pod was seen to be, by its uid.
    told: BTreeMap<String, Stage>,
    /// How many addresses were given to pods.
    addresses: u32,
    /// How many pods were put on a node.
    placed: usize,
    rules: Vec<(u64, PodRule, Fate)>,
    next_rule: u64,
}

/// What came of a look at a pod.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) worked: bool,
    pub(super) wake: Option<Timestamp>,
}

/// Who writes what pods show.
const KUBELET: &str = "kubelet";
const SCHEDULER: &str = "kube-scheduler";

/// The scheduler of pods that name none.
const OWN_SCHEDULER: &str = "default-scheduler";

// === impl Kubelet ===

impl Kubelet {
    pub(super) fn add_rule(&mut self, rule: PodRule, fate: Fate) -> u64 {
        let id = self.next_rule;
        self.next_rule += 1;
        self.rules.push((id, rule, fate));
        id
    }

    pub(super) fn remove_rule(&mut self, id: u64) {
        self.rules.retain(|(one, ..)| *one != id);
    }

    pub(super) fn forget(&mut self, uid: &str) {
        self.told.remove(uid);
    }

    /// Makes the next write for a pod, if there is one to make.
    pub(super) fn look_at(&mut self, registry: &mut Registry, key: &Key) -> Look {
        let Some(pod) = registry.store.get(key) else {
            return Look::default();
        };
        let conduct = self.conduct(registry, &pod);
        let is_placed = pod["spec"]["nodeName"].is_string();
        if object::is_being_deleted(&pod) {
            return self.end(registry, key, &pod, conduct);
        }
        if !is_placed {
            return Look {
                worked: self.place(registry, key, &pod, conduct),
                wake: None,
            };
        }
        self.run(registry, key, &pod, conduct)
    }

    /// What is to become of a pod: as its annotations say, or those of what made it, and as the rules say.
    fn conduct(&self, registry: &Registry, pod: &Value) -> Conduct {
        let maker = object::controller(pod);
        let mut conduct = Conduct::usual(maker.is_some_and(|maker| maker["kind"] == "Job"));
        let uid = maker.and_then(|maker| maker["uid"].as_str());
        let maker = uid.and_then(|uid| registry.store.get(registry.store.by_uid(uid)?));
        if let Some(maker) = maker {
            conduct.take_annotations(&maker);
        }
        conduct.take_annotations(pod);
        let fitting = self.rules.iter().filter(|(_, rule, _)| rule.fits(pod));
        fitting.for_each(|(_, _, fate)| conduct.take(*fate));
        conduct
    }

    fn place(
        &mut self,
        registry: &mut Registry,
        key: &Key,
        pod: &Object,
        conduct: Conduct,
    ) -> bool {
        let scheduler = pod["spec"]["schedulerName"].as_str();
        let is_own = scheduler.is_none_or(|name| name == OWN_SCHEDULER);
        let is_gated = object::elements(&pod["spec"], "schedulingGates")
            .next()
            .is_some();
        if !is_own || is_gated || has_ended(pod) {
            return false;
        }
        let all = nodes::all(registry);
        let fit = if conduct.outcome == Outcome::Unschedulable {
            Fit::none(&all)
        } else {
            nodes::fit(&all, pod)
        };
        let Some(node) = fit.choose(self.placed) else {
            let now = registry.now();
            let problem = fit.problem();
            return registry.edit_status(key, &options(SCHEDULER), |pod| {
                pod_status::note_scheduling(pod, Some(&problem), &now);
            });
        };
        let Some(mut target) = registry.target_of(key) else {
            return false;
        };
        target.subresource = Some("binding".to_owned());
        let binding = json!({ "target": { "kind": "Node", "name": node } });
        let worked = registry
            .create(&target, binding, &options(SCHEDULER))
            .is_ok();
        self.placed += usize::from(worked);
        worked
    }

    fn run(&mut self, registry: &mut Registry, key: &Key, pod: &Object, conduct: Conduct) -> Look {
        let now = registry.timestamp();
        let started = time(&pod["status"]["startTime"]).unwrap_or(now);
        let (mut stage, mut wake) = Stage::of(pod, conduct, started, now);
        let uid = object::uid(pod).to_owned();
        let told = self.told.get(&uid).copied();
        let is_new = pod["status"]["phase"] == "Pending" && !pod["status"]["startTime"].is_string();
        match told {
            // Somebody else wrote the status of a pod that was never seen.
            None if !is_new => {
                self.told.insert(uid, stage);
                return Look {
                    worked: false,
                    wake,
                };
            }
            None => {
                let ordinary = object::elements(&pod["spec"], "initContainers")
                    .any(|one| one["restartPolicy"] != "Always");
                let ends = matches!(stage, Stage::Ended { .. });
                if ordinary {
                    (stage, wake) = (Stage::Initializing, None);
                } else if ends {
                    // Whoever watches sees that it has run.
                    stage = Stage::Running {
                        ready: true,
                        gates_open: true,
                    };
                    wake = None;
                }
            }
            Some(_) if has_ended(pod) => return Look::default(),
            Some(told) if told == stage && has_observed(pod) => {
                return Look {
                    worked: false,
                    wake,
                };
            }
            Some(_) => {}
        }
        self.told.insert(uid, stage);
        let place = Place {
            now: registry.now(),
            address: pod_status::address(self.addresses),
        };
        let worked = registry.edit_status(key, &options(KUBELET), |pod| {
            pod_status::observe(pod, stage, &place);
        });
        self.addresses += u32::from(worked && told.is_none());
        Look { worked, wake }
    }

    /// Lets a pod go that has time to end: first it says how its containers ended.
    fn end(&mut self, registry: &mut Registry, key: &Key, pod: &Object, conduct: Conduct) -> Look {
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if grace.unwrap_or_default() == 0 {
            return Look::default();
        }
        let end = end_of(pod, conduct);
        if let Some(end) = end.filter(|end| *end > registry.timestamp()) {
            return Look {
                worked: false,
                wake: Some(end),
            };
        }
        let was_seen = self.told.contains_key(object::uid(pod));
        if was_seen && !has_ended(pod) {
            let place = Place {
                now: registry.now(),
                address: String::new(),
            };
            // What is made to run to an end has not come to it.
            let well = pod["spec"]["restartPolicy"] == "Always";
            let stage = Stage::Ended {
                well,
                deadline: false,
            };
            let worked = registry.edit_status(key, &options(KUBELET), |pod| {
                pod_status::observe(pod, stage, &place);
            });
            if worked {
                return Look { worked, wake: None };
            }
        }
        let options = DeleteOptions {
            grace_seconds: Some(0),
            expected_uid: Some(object::uid(pod).to_owned()),
            ..delete_options()
        };
        let worked = registry
            .target_of(key)
            .is_some_and(|target| registry.delete(&target, &options).is_ok());
        Look { worked, wake: None }
    }
}

/// Whether the status is of the pod as it is. One that somebody else wrote says nothing about it.
fn has_observed(pod: &Value) -> bool {
    let observed = pod["status"]["observedGeneration"].as_i64();
    observed.is_none_or(|observed| observed == object::generation(pod))
}

fn options(manager: &str) -> WriteOptions {
    WriteOptions {
        manager: manager.to_owned(),
        ..write_options()
    }
}

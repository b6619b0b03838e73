//! A server that keeps leases, and members that talk to it.

mod balance;
mod interleavings;
mod scripts;
mod seeds;

use super::{Action, Answer, Config, Found, Input, Machine, Output, Record, Slots};
use crate::time::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const SLOTS: u32 = 8;

/// Keeps leases as an API server does: a write must name the version that is there.
#[derive(Clone, Debug, Default)]
struct Server {
    revision: u64,
    leases: BTreeMap<String, (u64, Record)>,
}

/// A request on its way.
#[derive(Clone, Debug)]
enum Request {
    List,
    Write(String, Option<String>, Record),
    Remove(String, String),
}

/// A member, and the slots that it runs.
#[derive(Clone, Debug)]
struct Node {
    machine: Machine,
    lease: String,
    running: BTreeSet<u64>,
}

impl Server {
    fn answer(&mut self, request: &Request) -> Answer {
        match request {
            Request::List => {
                let found = self.leases.iter().map(|(lease, (version, record))| Found {
                    lease: lease.clone(),
                    version: version.to_string(),
                    record: record.clone(),
                });
                Answer::Listed(found.collect())
            }
            Request::Write(lease, wanted, record) => {
                let present = self
                    .leases
                    .get(lease)
                    .map(|(version, _)| version.to_string());
                if wanted.is_some() && present.is_none() {
                    return Answer::Missing;
                }
                if *wanted != present {
                    return Answer::Conflict;
                }
                self.revision += 1;
                self.leases
                    .insert(lease.clone(), (self.revision, record.clone()));
                Answer::Written {
                    version: self.revision.to_string(),
                }
            }
            Request::Remove(lease, version) => {
                let present = self
                    .leases
                    .get(lease)
                    .map(|(version, _)| version.to_string());
                match present {
                    Some(present) if present != *version => Answer::Conflict,
                    Some(_) | None => {
                        self.leases.remove(lease);
                        Answer::Removed
                    }
                }
            }
        }
    }
}

impl Node {
    fn new(index: usize, now: Time) -> Self {
        let lease = format!("lease-{index}");
        let slots = Slots::new(SLOTS).expect("it is a power of two");
        let name = format!("member-{index}");
        Self {
            machine: Machine::new(now, Config::default(), slots, name, lease.clone()),
            lease,
            running: BTreeSet::new(),
        }
    }

    /// What the machine asks for, if it is a request.
    fn request(&self) -> Option<(u64, Time, Request)> {
        match self.machine.action() {
            Action::List { attempt, deadline } => Some((attempt, deadline, Request::List)),
            Action::Write {
                attempt,
                deadline,
                version,
                record,
            } => {
                let request = Request::Write(self.lease.clone(), version, record);
                Some((attempt, deadline, request))
            }
            Action::Bury {
                attempt,
                deadline,
                lease,
                version,
                record,
            } => {
                let request = Request::Write(lease, Some(version), record);
                Some((attempt, deadline, request))
            }
            Action::Remove {
                attempt,
                deadline,
                lease,
                version,
            } => Some((attempt, deadline, Request::Remove(lease, version))),
            Action::Sleep { .. } | Action::End => None,
        }
    }

    /// Tells the machine, and starts what may be started.
    fn tell(&mut self, now: Time, input: Input, random: f64) -> Vec<Output> {
        let outputs = self.machine.on(now, input, random);
        if outputs
            .iter()
            .any(|output| matches!(output, Output::Lost(_)))
        {
            self.running.clear();
        }
        if self.runs(now) {
            self.running.extend(owned(&self.machine));
        }
        outputs
    }

    fn runs(&self, now: Time) -> bool {
        self.machine.runs_until().is_some_and(|until| now < until)
    }

    /// What it runs at this moment.
    fn running(&self, now: Time) -> BTreeSet<u64> {
        if self.runs(now) {
            self.running.clone()
        } else {
            BTreeSet::new()
        }
    }

    /// Stops all that it should not run, and says so.
    fn stop_moved(&mut self, now: Time) {
        let owned: BTreeSet<u64> = owned(&self.machine).collect();
        self.running.retain(|slot| owned.contains(slot));
        let view = self.machine.share().view();
        self.tell(now, Input::Released { view }, 0.0);
    }
}

/// The slots that a member owns.
fn owned(machine: &Machine) -> impl Iterator<Item = u64> {
    let share = machine.share();
    (0..u64::from(SLOTS)).filter(|slot| share.owns(slot << 61))
}

fn secs(secs: u64) -> Time {
    Time::ORIGIN + Duration::from_secs(secs)
}

/// How many members run each slot.
fn runners(running: impl IntoIterator<Item = BTreeSet<u64>>) -> [usize; SLOTS as usize] {
    let mut counts = [0; SLOTS as usize];
    for slot in running.into_iter().flatten() {
        if let Some(count) = usize::try_from(slot)
            .ok()
            .and_then(|slot| counts.get_mut(slot))
        {
            *count += 1;
        }
    }
    counts
}

/// Carries out what a member asks for, at once and without faults, until it sleeps or ends.
fn settle(node: &mut Node, server: &mut Server, now: Time) -> Vec<Output> {
    let mut outputs = Vec::new();
    for _ in 0..20 {
        let input = if let Some((attempt, _, request)) = node.request() {
            let answer = server.answer(&request);
            Input::Answered { attempt, answer }
        } else if matches!(node.machine.action(), Action::Sleep { until } if until <= now) {
            Input::Awake
        } else {
            return outputs;
        };
        outputs.extend(node.tell(now, input, 0.0));
        if !outputs.is_empty() {
            node.stop_moved(now);
        }
    }
    panic!("it never rests: {node:?}");
}

//! Random worlds of a reconciler, a user, a child's controller and another writer. A reconciler that
//! is right is never reported, and one that is not is, whatever else happened before.

use super::{World, deployment, site};
use crate::loops::{Cause, Config, Form, Object, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The user wants another number of replicas.
    Want(u8),
    /// The child's controller makes one more replica ready, or one less.
    Progress,
    /// Somebody labels the object.
    Label(u8),
    /// Somebody writes a part of the status that is not the reconciler's.
    Probe(u8),
    /// Somebody asks for something, which is told by taking the request away.
    Ask,
    /// A timer fires.
    Tick,
    /// The key runs, if there is a cause.
    Run,
    /// It runs and fails after its first write.
    Fail,
}

/// What the reconciler is like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// All that differs is written in one run.
    AtOnce,
    /// One write in each run.
    StepByStep,
    /// The time is in the status.
    Stamps,
}

struct Small {
    world: World,
    manner: Manner,
    site: Value,
    child: Value,
    causes: Vec<Cause>,
    /// Runs so far.
    runs: u64,
}

impl Small {
    fn new(manner: Manner) -> Self {
        Self {
            world: World::new(Config::default()),
            manner,
            site: json!({ "metadata": { "generation": 1, "labels": {}, "annotations": { "do": null } }, "spec": { "replicas": 1 }, "status": {} }),
            child: json!({ "metadata": { "generation": 1 }, "spec": { "replicas": 0 }, "status": { "ready": 0 } }),
            causes: vec![Cause::First],
            runs: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Want(replicas) => {
                if replace(&mut self.site["spec"]["replicas"], json!(replicas)) {
                    grow(&mut self.site);
                    self.cause(Cause::Desired);
                }
            }
            Step::Progress => {
                let wanted = self.child["spec"]["replicas"].as_u64();
                let ready = self.child["status"]["ready"].as_u64();
                let (wanted, ready) = (wanted.unwrap_or(0), ready.unwrap_or(0));
                let next = if ready < wanted {
                    ready + 1
                } else {
                    ready.saturating_sub(1).max(wanted)
                };
                if replace(&mut self.child["status"]["ready"], json!(next)) {
                    self.cause(Cause::Foreign(Some(deployment())));
                }
            }
            Step::Label(label) => {
                if replace(&mut self.site["metadata"]["labels"]["team"], json!(label)) {
                    self.cause(Cause::Desired);
                }
            }
            Step::Probe(probe) => {
                if replace(&mut self.site["status"]["probe"], json!(probe)) {
                    self.cause(Cause::Foreign(Some(site())));
                }
            }
            Step::Ask => {
                if replace(&mut self.site["metadata"]["annotations"]["do"], json!("it")) {
                    self.cause(Cause::Desired);
                }
            }
            Step::Tick => self.cause(Cause::Timer),
            Step::Run => self.run(false),
            Step::Fail => self.run(true),
        }
    }

    fn cause(&mut self, cause: Cause) {
        if !self.causes.contains(&cause) {
            self.causes.push(cause);
        }
    }

    fn run(&mut self, fails: bool) {
        let causes = std::mem::take(&mut self.causes);
        if causes.is_empty() {
            return;
        }
        self.runs += 1;
        let one = fails || self.manner == Manner::StepByStep;
        let mut child = self.child.clone();
        child["spec"]["replicas"] = self.site["spec"]["replicas"].clone();
        let changed = self.write(deployment(), &child);
        if !(changed && one) {
            let mut site_ = self.site.clone();
            let [ready, wanted] = [
                &self.child["status"]["ready"],
                &self.site["spec"]["replicas"],
            ];
            site_["status"]["message"] = json!(format!("{ready} of {wanted}"));
            site_["status"]["team"] = self.site["metadata"]["labels"]["team"].clone();
            site_["status"]["observedGeneration"] = self.site["metadata"]["generation"].clone();
            if site_["metadata"]["annotations"]["do"].is_string() {
                site_["metadata"]["annotations"]["do"] = Value::Null;
                site_["status"]["done"] = json!(format!("{:?}", self.world.now));
            }
            if causes.contains(&Cause::Timer) {
                site_["status"]["polled"] = json!(format!("{:?}", self.world.now));
            }
            if self.manner == Manner::Stamps {
                site_["status"]["at"] = json!(format!("{:?}", self.world.now));
            }
            self.write(site(), &site_);
        }
        self.world.end(&causes, fails);
        if fails {
            self.cause(Cause::Retry);
        }
    }

    /// Writes an object, if it differs.
    fn write(&mut self, which: Object, desired: &Value) -> bool {
        let own = which == site();
        let live = if own { &mut self.site } else { &mut self.child };
        let before = live.clone();
        if !replace(live, desired.clone()) {
            return false;
        }
        if !own {
            grow(live);
        }
        let after = live.clone();
        self.world.write(
            which,
            Form::Merge,
            desired.clone(),
            Some(&before),
            Some(&after),
        );
        self.cause(Cause::Own);
        true
    }
}

fn replace(place: &mut Value, value: Value) -> bool {
    let differs = *place != value;
    *place = value;
    differs
}

fn grow(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_u64();
    object["metadata"]["generation"] = json!(generation.unwrap_or(0) + 1);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0..9u8).prop_map(Step::Want),
        2 => Just(Step::Progress),
        1 => (0..9u8).prop_map(Step::Label),
        1 => (0..9u8).prop_map(Step::Probe),
        2 => Just(Step::Ask),
        1 => Just(Step::Tick),
        8 => Just(Step::Run),
        1 => Just(Step::Fail),
    ];
    prop::collection::vec(step, 0..600)
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![Just(Manner::AtOnce), Just(Manner::StepByStep)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_is_right_is_never_reported(manner in manner(), steps in steps()) {
        let mut small = Small::new(manner);
        for step in steps {
            small.take(step);
        }
        prop_assert_eq!(small.world.report(), "");
        prop_assert!(small.world.delays.iter().all(|answer| answer.delay.is_none()));
    }

    #[test]
    fn who_is_wrong_is_reported_once(steps in steps()) {
        let mut small = Small::new(Manner::Stamps);
        for step in steps {
            small.take(step);
        }
        // From here on nobody else does anything.
        let before = small.world.reports.len();
        let looping = small.world.detector.incident(small.world.now, &"blog").is_some();
        for _ in 0..200 {
            small.take(Step::Run);
        }
        // What others did in the end may have ended the incident before it was clear who causes the runs.
        let reports = small.world.reports.len() - before;
        prop_assert!(reports == usize::from(!looping) || reports == 1 && small.world.reports.len() > 1);
        for report in &small.world.reports {
            prop_assert_eq!(report.verdict(), &Verdict::NotDeterministic);
            let paths: Vec<String> = report.findings[0].changes.iter().map(|change| change.path.to_string()).collect();
            prop_assert!(paths.contains(&".status.at".to_owned()), "{:?}", paths);
        }
    }
}

//! Watches runs for loops, reports those that are found, and says how they are slowed down (rule R22).

use crate::{
    client,
    controller::{
        ReconcileReason,
        reason::{Cause, Origin},
    },
    events::{Event, EventType, Recorder},
    reflector::ObjectKey,
};
use homeostat_core::{
    loops::{self, Answer, Blind, Detector, Incident, Object},
    queue::{Causes, Timer},
    time::Time,
};
use k8s_openapi::api::core::v1::ObjectReference;
use std::{sync::Arc, time::Duration};

/// What a loop detector is fed with, and where its reports go.
pub(super) struct Loops {
    /// `None` if loops are not looked for.
    detector: Option<Detector<ObjectKey>>,
    /// `None` if the client tells what runs write.
    blind: Option<Blind<ObjectKey>>,
    recorder: Option<Recorder>,
    names: Names,
}

/// Texts that come again with nearly every run: kinds, namespaces and field managers.
#[derive(Default)]
struct Names(Vec<Arc<str>>);

/// How many are kept. In a cluster with more namespaces than that, the others are made anew each time.
const NAMES: usize = 32;

/// Among how many earlier writes of a run a name is looked for.
const LATELY: usize = 8;

/// A run that has ended, as the driver knows it.
pub(super) struct Ended<'a> {
    pub(super) started: Time,
    pub(super) now: Time,
    pub(super) causes: &'a Causes<Cause>,
    pub(super) timer: Option<Timer>,
    pub(super) failed: bool,
    /// Whether it has sent anything through a client that tells so.
    pub(super) tracked: bool,
    /// The least time after which it runs again by itself.
    pub(super) after: Option<Duration>,
    /// The kind of the object that ran.
    pub(super) kind: &'a str,
    /// That object; seldom asked for.
    pub(super) object: &'a dyn Fn() -> ObjectReference,
}

// === impl Loops ===

impl Loops {
    pub(super) fn new(config: Option<loops::Config>, recorder: Option<Recorder>) -> Self {
        Self {
            blind: config.clone().map(Blind::new),
            detector: config.map(Detector::new),
            recorder,
            names: Names::default(),
        }
    }

    /// Whether the next run of a key is to be looked at closely.
    pub(super) fn observes(&self, key: &ObjectKey) -> bool {
        let detector = self.detector.as_ref();
        detector.is_some_and(|detector| detector.observes(key))
    }

    /// Takes in an event that nobody is known to want anything by.
    pub(super) fn happened(&mut self, now: Time, key: &ObjectKey) {
        if let Some(blind) = &mut self.blind {
            blind.happened(now, key);
        }
    }

    /// Takes in that a run begins, and why.
    pub(super) fn started(
        &mut self,
        now: Time,
        key: &ObjectKey,
        causes: &Causes<Cause>,
        timer: Option<Timer>,
    ) {
        if let Some(blind) = &mut self.blind {
            blind.started(now, key, is_wanted(causes, timer));
        }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(blind) = &mut self.blind {
            blind.forget(key);
        }
        if let Some(detector) = &mut self.detector {
            detector.forget(key);
        }
    }

    /// Takes in a run, and says for how long its key is not to be run. What was seen of the writes is
    /// taken out of them.
    pub(super) fn finished(
        &mut self,
        key: &ObjectKey,
        ended: &Ended<'_>,
        writes: &mut [client::Write],
    ) -> Answer {
        if ended.tracked {
            self.blind = None;
        }
        let Self {
            detector: Some(detector),
            blind,
            names,
            ..
        } = self
        else {
            return Answer::default();
        };
        if writes.is_empty() && !detector.counts(key) {
            // Most runs are like that, and are nothing to it.
            let mut answer = Answer::default();
            match blind {
                Some(blind) if is_wanted(ended.causes, ended.timer) => {
                    blind.wanted(ended.now, key, ended.after);
                }
                Some(blind) => {
                    let run = tell_run(ended, names.object(key, ended.kind), Vec::new());
                    answer = blind.finished(ended.now, key, &run);
                }
                None => {}
            }
            if let Some(incident) = &answer.report {
                self.report(key, incident, &(ended.object)());
            }
            return answer;
        }
        let mut told = Vec::with_capacity(writes.len());
        let own = names.object(key, ended.kind);
        for write in writes {
            told.push(names.tell_write(write, &told, &own));
        }
        let run = tell_run(ended, own, told);
        let blind = blind.as_mut();
        let guess = blind.map(|blind| blind.finished(ended.now, key, &run));
        let mut answer = detector.finished(ended.now, key, &run);
        if answer.delay.is_none() && detector.incident(ended.now, key).is_none() {
            answer = guess.unwrap_or(answer);
        }
        if let Some(incident) = &answer.report {
            self.report(key, incident, &(ended.object)());
        }
        answer
    }

    fn report(&self, key: &ObjectKey, incident: &Incident, object: &ObjectReference) {
        tracing::warn!(
            object = %key,
            verdict = incident.verdict().name(),
            "{incident}"
        );
        let Some(recorder) = &self.recorder else {
            return;
        };
        let event = Event {
            type_: EventType::Warning,
            reason: "ReconcileLoop".into(),
            note: Some(incident.summary()),
            action: "Reconciling".into(),
            secondary: None,
        };
        recorder.queue(&event, object);
    }
}

/// Whether somebody is known to want a run, or nobody knows why it is.
fn is_wanted(causes: &Causes<Cause>, timer: Option<Timer>) -> bool {
    let wanted = |cause: &Cause| matches!(cause.origin, Origin::Asked | Origin::Desired);
    causes.iter().any(wanted) || timer.is_none() && causes.is_empty()
}

/// A run for the detector.
fn tell_run(ended: &Ended<'_>, own: Object, writes: Vec<loops::Write>) -> loops::Run {
    let timer = ended.timer.map(|timer| match timer {
        Timer::Requeue => loops::Cause::Timer,
        Timer::Retry => loops::Cause::Retry,
    });
    let causes = ended.causes.iter().map(|cause| tell_cause(cause, &own));
    let causes = timer.into_iter().chain(causes).collect();
    loops::Run {
        started: ended.started,
        causes,
        object: own,
        failed: ended.failed,
        after: ended.after,
        writes,
    }
}

fn tell_cause(cause: &Cause, own: &Object) -> loops::Cause {
    match cause.origin {
        Origin::Asked => loops::Cause::First,
        Origin::Desired => loops::Cause::Desired,
        Origin::Own => loops::Cause::Own,
        Origin::Foreign => loops::Cause::Foreign(match &cause.reason {
            ReconcileReason::ObjectUpdated => Some(own.clone()),
            ReconcileReason::RelatedObjectUpdated { obj_ref } => Some(Object::new(
                &obj_ref.dyntype.kind,
                obj_ref.namespace.as_deref(),
                &obj_ref.name,
            )),
            ReconcileReason::Unknown
            | ReconcileReason::ReconcilerRequestedRetry
            | ReconcileReason::ErrorPolicyRequestedRetry
            | ReconcileReason::BulkReconcile
            | ReconcileReason::Custom { .. } => None,
        }),
    }
}

// === impl Names ===

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        let name = Arc::from(name);
        if self.0.len() < NAMES {
            self.0.push(Arc::clone(&name));
        }
        name
    }

    /// The object of a key for the detector.
    fn object(&mut self, key: &ObjectKey, kind: &str) -> Object {
        let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
        Object {
            kind: self.get(kind),
            namespace: namespace.map(|namespace| self.get(namespace)),
            name: key.name().into(),
        }
    }

    /// A write for the detector. Most runs write the same objects several times, or those that have the name of
    /// their own.
    fn tell_write(
        &mut self,
        write: &mut client::Write,
        told: &[loops::Write],
        own: &Object,
    ) -> loops::Write {
        let lately = told.iter().rev().take(LATELY);
        let mut known = lately.map(|write| &write.object.name).chain([&own.name]);
        let name = known.find(|name| ***name == *write.name()).cloned();
        loops::Write {
            object: Object {
                // An answer that is no object tells no kind; its name in paths serves as well.
                kind: self.get(write.kind().unwrap_or(write.resource())),
                namespace: write.namespace().map(|namespace| self.get(namespace)),
                name: name.unwrap_or_else(|| write.name().into()),
            },
            manager: write.field_manager().map(|manager| self.get(manager)),
            changed: write.changed(),
            sight: write.take_sight(),
        }
    }
}

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
use futures::FutureExt;
use homeostat_core::{
    loops::{self, Answer, Detector, Incident, Object},
    queue::{Causes, Timer},
    time::Time,
};
use k8s_openapi::api::core::v1::ObjectReference;
use std::sync::Arc;

/// What a loop detector is fed with, and where its reports go.
pub(super) struct Loops {
    /// `None` if loops are not looked for.
    detector: Option<Detector<ObjectKey>>,
    recorder: Option<Recorder>,
}

/// A run that has ended, as the driver knows it.
pub(super) struct Ended<'a> {
    pub(super) started: Time,
    pub(super) now: Time,
    pub(super) causes: &'a Causes<Cause>,
    pub(super) timer: Option<Timer>,
    pub(super) failed: bool,
    /// The kind of the object that ran.
    pub(super) kind: &'a str,
    /// That object; seldom asked for.
    pub(super) object: &'a dyn Fn() -> ObjectReference,
}

// === impl Loops ===

impl Loops {
    pub(super) fn new(config: Option<loops::Config>, recorder: Option<Recorder>) -> Self {
        Self {
            detector: config.map(Detector::new),
            recorder,
        }
    }

    /// Whether the next run of a key is to be looked at closely.
    pub(super) fn observes(&self, key: &ObjectKey) -> bool {
        let detector = self.detector.as_ref();
        detector.is_some_and(|detector| detector.observes(key))
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
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
        let Some(detector) = &mut self.detector else {
            return Answer::default();
        };
        let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
        let own = Object::new(ended.kind, namespace, key.name());
        let timer = ended.timer.map(|timer| match timer {
            Timer::Requeue => loops::Cause::Timer,
            Timer::Retry => loops::Cause::Retry,
        });
        let causes = ended.causes.iter().map(|cause| tell_cause(cause, &own));
        let causes = timer.into_iter().chain(causes).collect();
        let mut told = Vec::with_capacity(writes.len());
        for write in writes {
            told.push(tell_write(write, &told, &own));
        }
        let run = loops::Run {
            started: ended.started,
            causes,
            object: own,
            failed: ended.failed,
            writes: told,
        };
        let answer = detector.finished(ended.now, key, &run);
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
        // It only takes the event in, and a task of its own sends it.
        drop(recorder.publish(&event, object).now_or_never());
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

/// A write for the detector. Most runs write the same objects several times, or their own, by the same
/// name.
fn tell_write(write: &mut client::Write, told: &[loops::Write], own: &Object) -> loops::Write {
    // An answer that is no object tells no kind; its name in paths serves as well.
    let kind = write.kind().unwrap_or(write.resource());
    let (namespace, name) = (write.namespace(), write.name());
    let is_it = |object: &&Object| {
        *object.name == *name && *object.kind == *kind && object.namespace.as_deref() == namespace
    };
    let mut known = told.iter().map(|write| &write.object).chain([own]);
    let object = known.find(is_it).cloned();
    let manager = write.field_manager();
    let mut managers = told.iter().filter_map(|write| write.manager.as_ref());
    let known = manager.and_then(|manager| managers.find(|known| ***known == *manager));
    let object = object.unwrap_or_else(|| Object::new(kind, namespace, name));
    let manager = known.cloned().or_else(|| manager.map(Arc::from));
    loops::Write {
        object,
        manager,
        changed: write.changed(),
        sight: write.take_sight(),
    }
}
